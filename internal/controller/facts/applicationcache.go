package facts

import (
	"encoding/json"
	"fmt"
	"sync"
)

// applicationCache remembers the Applications that targets were taken from.
type applicationCache struct {
	mu         sync.Mutex
	byQuestion map[string]cachedApplications
}

type cachedApplications struct {
	version uint64
	objects []json.RawMessage // without status
}

// maxCachedQueries bounds how many answers are remembered; past it all are forgotten.
const maxCachedQueries = 256

func (t *applicationCache) get(question string, version uint64, list func() ([]json.RawMessage, error)) ([]json.RawMessage, error) {
	t.mu.Lock()
	known, ok := t.byQuestion[question]
	t.mu.Unlock()
	if ok && known.version == version {
		return known.objects, nil
	}
	objects, err := list()
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
	if t.byQuestion == nil || len(t.byQuestion) >= maxCachedQueries {
		t.byQuestion = map[string]cachedApplications{}
	}
	t.byQuestion[question] = cachedApplications{version, objects}
	return objects, nil
}
