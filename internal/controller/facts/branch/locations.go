package branch

import (
	"encoding/json"
	"path"
	"strings"

	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/git"
)

// location is where an environment has its carried fields, worked out.
type location struct {
	Key    string // the overlay, as a part of a key
	scope  fieldedit.Scope
	inputs []string // folders and files: the same ones, the same reading
	err    error    // why there is no scope
}

func newLocation(p *ResolvedPipeline, e *ResolvedEnv) location {
	at := e.Overlay(p.Pipeline)
	text, _ := json.Marshal(at) // strings and lists of them: there is no error
	out := location{Key: string(text)}
	if out.scope, out.err = fieldedit.NewScope(at); out.err == nil {
		out.inputs = out.scope.Inputs()
	}
	return out
}

// readingKey is the key of a reading, given the identities of the inputs.
func (l *location) readingKey(ids []string) string {
	return l.Key + "\x00" + strings.Join(ids, "\x00")
}

// locations are the environments of a pipeline's units; snapshots share them as
// long as neither the targets nor what is carried changes.
type locations struct {
	byEnv   map[*ResolvedEnv]*location
	byInput map[string][]*ResolvedEnv // by input
	// parents are the folders that inputs lie in: where one stops being a folder,
	// what is below it is read otherwise though nothing there has changed.
	parents map[string]bool
}

func newLocations(p *ResolvedPipeline) *locations {
	out := &locations{byEnv: map[*ResolvedEnv]*location{}, byInput: map[string][]*ResolvedEnv{}, parents: map[string]bool{}}
	for _, u := range p.Units {
		for _, e := range u.Envs {
			at := newLocation(p, e)
			out.byEnv[e] = &at
			for _, in := range at.inputs {
				out.byInput[in] = append(out.byInput[in], e)
				for up := path.Dir(in); up != "." && !out.parents[up]; up = path.Dir(up) {
					out.parents[up] = true
				}
			}
		}
	}
	return out
}

// LocationOf is that of one of the pipeline's environments.
func (r *ResolvedPipeline) LocationOf(e *ResolvedEnv) *location {
	if r.locations != nil && r.locations.byEnv[e] != nil {
		return r.locations.byEnv[e]
	}
	at := newLocation(r, e)
	return &at
}

// changedEnvs are the environments with an input that one of the changes is in; nil
// when it may be all of them.
func (l *locations) changedEnvs(changes []git.FileChange) map[*ResolvedEnv]bool {
	out := map[*ResolvedEnv]bool{}
	for _, c := range changes {
		if c.Status != 'M' && l.parents[c.Path] {
			return nil
		}
		for at := c.Path; ; at = path.Dir(at) {
			for _, e := range l.byInput[at] {
				out[e] = true
			}
			if at == "." {
				break
			}
		}
	}
	return out
}
