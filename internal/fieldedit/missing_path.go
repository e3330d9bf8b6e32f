package fieldedit

import (
	"fmt"

	"gopkg.in/yaml.v3"

	"github.com/liftlock/liftlock/internal/pipeline/strictyaml"
	"github.com/liftlock/liftlock/internal/wording"
)

// maxKeyShown bounds a key in a message.
const maxKeyShown = 60

// MissingPath is a path of which a file has only the beginning, so that Set would add the rest.
type MissingPath struct {
	Path   string
	Line   int      // of the mapping that the rest would be added to, from 1
	Parent string   // that mapping's path; empty: the document itself
	Key    string   // the first key that isn't there
	Keys   []string // those that are, in the file's order
	// Spelled is the path of a value that is there, whose keys are the path's with the dots
	// elsewhere: ["image.tag"] is one key. Empty where there is none.
	Spelled string
}

// FindMissing lists which paths of ops aren't in a file, in their order; file is as for Set.
// Images are none of them: Set adds no entry to a kustomization. Where a path leads nowhere for
// another reason Set's refusal says which.
func FindMissing(data []byte, file string, ops []Op) ([]MissingPath, error) {
	_, as, err := fileKind(file)
	if err != nil {
		return nil, err
	}
	d, err := parseDocument(data, as)
	if err != nil {
		return nil, withLocation(err, file, "")
	}
	var out []MissingPath
	for _, op := range ops {
		if op.Image != "" {
			continue
		}
		at, err := d.findPath(op.Path)
		if err != nil {
			return nil, withLocation(err, file, op.Path.String())
		}
		if at.node != nil || at.mismatch != nil || at.parent == nil || at.parent.Kind != yaml.MappingNode {
			continue
		}
		m := MissingPath{Path: op.Path.String(), Line: at.parent.Line, Key: at.rest[0].Key, Spelled: d.otherSpelling(op.Path.Segments())}
		if at.depth > 0 {
			m.Parent = op.Path.UpTo(at.depth)
		}
		for i := 0; i < len(at.parent.Content); i += 2 {
			m.Keys = append(m.Keys, at.parent.Content[i].Value)
		}
		out = append(out, m)
	}
	return out, nil
}

// Near is the key that is there and may have been meant; empty where none is near.
func (m *MissingPath) Near() string { return strictyaml.Nearest(m.Key, m.Keys) }

// Refuse is the error of a file in which the path had to be.
func (m *MissingPath) Refuse(file string) error {
	where := m.Parent
	if where == "" {
		where = "the file"
	}
	if len(m.Keys) == 0 {
		return &RefusedError{File: file, Line: m.Line, Field: m.Path, Reason: fmt.Sprintf("it isn't there: %s is empty", where)}
	}
	var keys []string
	for _, k := range m.Keys {
		keys = append(keys, wording.ClipRunes(displayValue(KindYAML, k), maxKeyShown))
	}
	reason := fmt.Sprintf("it isn't there: %s has no %q, but %s", where, m.Key, wording.JoinFew(keys, maxExplained))
	if m.Spelled != "" {
		reason += fmt.Sprintf("; did you mean %s, which is there?", m.Spelled)
	} else if near := m.Near(); near != "" {
		reason += fmt.Sprintf("; did you mean %q?", near)
	}
	return &RefusedError{File: file, Line: m.Line, Field: m.Path, Reason: reason}
}
