package impact

import (
	"fmt"
	"slices"
)

// Group is the targets of an environment to which a change does the same.
type Group struct {
	Names  []string // of the targets
	Target          // what is the same for all; its other fields are the first one's
}

// Groups gathers the targets that a change touches alike, as those are that
// share a base, so that a thousand of them are one thing to read.
func (e *Environment) Groups() []Group {
	var out []Group
	at := map[string]int{}
	for i := range e.Targets {
		t := &e.Targets[i]
		key := fmt.Sprintf("%q", []any{t.What, t.From, t.To, t.Fields, t.More, t.Files, t.Unsure, t.Kept})
		n, known := at[key]
		if !known {
			n = len(out)
			at[key] = n
			out = append(out, Group{Target: *t})
		}
		if !slices.Contains(out[n].Names, t.Name) {
			out[n].Names = append(out[n].Names, t.Name)
		}
	}
	return out
}
