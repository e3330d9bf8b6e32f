package facts

import (
	"encoding/json"
	"path"
	"strings"

	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/git"
)

// place is where an environment has its carried fields, worked out.
type place struct {
	key    string // the overlay, as a part of a key
	scope  fieldedit.Scope
	inputs []string // folders and files: the same ones, the same reading
	err    error    // why there is no scope
}

func placeOf(p *PipelineAt, e *EnvAt) place {
	at := e.Overlay(p.Pipeline)
	text, _ := json.Marshal(at) // strings and lists of them: there is no error
	out := place{key: string(text)}
	if out.scope, out.err = fieldedit.NewScope(at); out.err == nil {
		out.inputs = out.scope.Inputs()
	}
	return out
}

// keyAt is the key of a reading, given the identities of the inputs.
func (at *place) keyAt(ids []string) string {
	var b strings.Builder
	b.WriteString(at.key)
	for _, id := range ids {
		b.WriteByte(0)
		b.WriteString(id)
	}
	return b.String()
}

// places are the environments of a pipeline's units; snapshots share them as
// long as neither the targets nor what is carried changes.
type places struct {
	of map[*EnvAt]*place
	by map[string][]*EnvAt // by input
	// above are the folders that inputs lie in: where one stops being a folder,
	// what is below it is read otherwise though nothing there has changed.
	above map[string]bool
}

func placesOf(p *PipelineAt) *places {
	out := &places{of: map[*EnvAt]*place{}, by: map[string][]*EnvAt{}, above: map[string]bool{}}
	for _, u := range p.Units {
		for _, e := range u.Envs {
			at := placeOf(p, e)
			out.of[e] = &at
			for _, in := range at.inputs {
				out.by[in] = append(out.by[in], e)
				for up := path.Dir(in); up != "." && !out.above[up]; up = path.Dir(up) {
					out.above[up] = true
				}
			}
		}
	}
	return out
}

// place is that of one of the pipeline's environments.
func (p *PipelineAt) place(e *EnvAt) *place {
	if p.places != nil && p.places.of[e] != nil {
		return p.places.of[e]
	}
	at := placeOf(p, e)
	return &at
}

// touched are the environments with an input that one of the changes is in; nil
// when it may be all of them.
func (p *places) touched(changes []git.FileChange) map[*EnvAt]bool {
	out := map[*EnvAt]bool{}
	for _, c := range changes {
		if c.Status != 'M' && p.above[c.Path] {
			return nil
		}
		for at := c.Path; ; at = path.Dir(at) {
			for _, e := range p.by[at] {
				out[e] = true
			}
			if at == "." {
				break
			}
		}
	}
	return out
}
