package facts

import (
	"encoding/json"
	"fmt"
	"sync"
)

// taken remembers the Applications that targets were taken from.
type taken struct {
	mu      sync.Mutex
	answers map[string]takenAnswer
}

type takenAnswer struct {
	version uint64
	objects []json.RawMessage // without status
}

// maxTaken bounds how many answers are remembered; past it all are forgotten.
const maxTaken = 256

func (t *taken) get(question string, version uint64, ask func() ([]json.RawMessage, error)) ([]json.RawMessage, error) {
	t.mu.Lock()
	known, ok := t.answers[question]
	t.mu.Unlock()
	if ok && known.version == version {
		return known.objects, nil
	}
	objects, err := ask()
	if err != nil {
		return nil, err
	}
	for i, raw := range objects {
		var top map[string]json.RawMessage
		if json.Unmarshal(raw, &top) != nil {
			continue // whoever reads it says why
		}
		delete(top, "status")
		if objects[i], err = json.Marshal(top); err != nil {
			return nil, fmt.Errorf("keep an Application: %w", err)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.answers == nil || len(t.answers) >= maxTaken {
		t.answers = map[string]takenAnswer{}
	}
	t.answers[question] = takenAnswer{version, objects}
	return objects, nil
}
