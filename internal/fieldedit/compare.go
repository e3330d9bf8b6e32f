package fieldedit

import (
	"fmt"
	"maps"
	"slices"
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
func (f FieldDiff) String() string {
	return Change{File: f.File, Kind: f.Kind, Path: f.Path, Old: f.Old, New: f.New, Added: f.Added, Removed: f.Removed}.String()
}

// Compare lists what the release to has otherwise than from, by place: what an
// environment with from is behind one with to. It is empty when they have the
// same identity.
func Compare(from, to Release) []FieldDiff {
	was, is := from.byKey(), to.byKey()
	var out []FieldDiff
	for _, key := range unionKeys(was, is) {
		a, had := was[key]
		b, has := is[key]
		at := b
		if !has {
			at = a
		}
		if had != has || a.Value != b.Value {
			out = append(out, FieldDiff{Kind: at.Kind, File: at.File, Path: at.Path, Old: a.Value, New: b.Value, Added: !had,
				Removed: !has})
		}
	}
	return out
}

func (r Release) byKey() map[string]Field {
	out := make(map[string]Field, len(r.Fields))
	for _, f := range r.Fields {
		out[f.Key()] = f
	}
	return out
}

// unionKeys are the keys of both, sorted.
func unionKeys[V any](a, b map[string]V) []string {
	return slices.Compact(slices.Sorted(func(yield func(string) bool) {
		maps.Keys(a)(yield)
		maps.Keys(b)(yield)
	}))
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
