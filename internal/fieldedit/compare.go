package fieldedit

import (
	"fmt"
	"strings"
)

// FieldDiff is one field in which two releases differ.
type FieldDiff struct {
	Kind    string `json:"kind"`
	File    string `json:"file"` // relative to a root
	Path    string `json:"path,omitempty"`
	Old     string `json:"old"`               // "" where Added
	New     string `json:"new"`               // "" where Removed
	Added   bool   `json:"added,omitempty"`   // only the second has it
	Removed bool   `json:"removed,omitempty"` // only the first has it
}

// String is the difference in one line.
func (d FieldDiff) String() string {
	return Change{File: d.File, Kind: d.Kind, Path: d.Path, Old: d.Old, New: d.New, Added: d.Added, Removed: d.Removed}.String()
}

// Compare lists what the release to has otherwise than from, by place: what an
// environment with from is behind one with to. It is empty when they have the
// same identity.
func Compare(from, to Release) []FieldDiff {
	a := Release{Fields: append([]Field(nil), from.Fields...)}
	b := Release{Fields: append([]Field(nil), to.Fields...)}
	a.Sort()
	b.Sort()
	var out []FieldDiff
	i, j := 0, 0
	for i < len(a.Fields) || j < len(b.Fields) {
		switch {
		case j == len(b.Fields) || i < len(a.Fields) && a.Fields[i].Key() < b.Fields[j].Key():
			f := a.Fields[i]
			out = append(out, FieldDiff{Kind: f.Kind, File: f.File, Path: f.Path, Old: f.Value, Removed: true})
			i++
		case i == len(a.Fields) || b.Fields[j].Key() < a.Fields[i].Key():
			f := b.Fields[j]
			out = append(out, FieldDiff{Kind: f.Kind, File: f.File, Path: f.Path, New: f.Value, Added: true})
			j++
		default:
			was, is := a.Fields[i], b.Fields[j]
			if was.Value != is.Value {
				out = append(out, FieldDiff{Kind: is.Kind, File: is.File, Path: is.Path, Old: was.Value, New: is.Value})
			}
			i++
			j++
		}
	}
	return out
}

// summarizeDifferences are a few of them, for an error.
func summarizeDifferences(from, to Release) string {
	var at []string
	for i, d := range Compare(from, to) {
		if i == 5 {
			at = append(at, "…")
			break
		}
		at = append(at, d.String())
	}
	return fmt.Sprintf("%d (%s)", len(at), strings.Join(at, "; "))
}
