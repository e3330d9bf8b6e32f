package fieldedit

import (
	"slices"
	"strings"
)

// JoinEdits makes one list of edits and of later ones that were composed on top of
// them, with one Edit a file, sorted. A file that the first create and the later
// delete isn't among them.
func JoinEdits(edits, later []Edit) []Edit {
	out := slices.Clone(edits)
	for _, e := range later {
		i := slices.IndexFunc(out, func(o Edit) bool { return o.File == e.File })
		if i < 0 {
			out = append(out, e)
			continue
		}
		first := out[i]
		if first.Created && e.Deleted {
			out = slices.Delete(out, i, i+1)
			continue
		}
		e.Before, e.Created = first.Before, first.Created
		e.Changes = append(slices.Clone(first.Changes), e.Changes...)
		out[i] = e
	}
	slices.SortFunc(out, func(a, b Edit) int { return strings.Compare(a.File, b.File) })
	return out
}
