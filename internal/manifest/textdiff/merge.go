package textdiff

import "slices"

// Merge applies to a text what two others changed of it; false where their changes
// touch, unless they are the same. As in git, changes with no unchanged line between
// them touch.
func Merge(base, ours, theirs []string) (merged []string, ok bool) {
	a, b := Hunks(base, ours), Hunks(base, theirs)
	at := 0 // of base
	apply := func(h Hunk, side []string) {
		merged = append(merged, base[at:h.OldFrom]...)
		merged = append(merged, side[h.NewFrom:h.NewTo]...)
		at = h.OldTo
	}
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].OldTo < b[0].OldFrom:
			apply(a[0], ours)
			a = a[1:]
		case len(a) == 0 || b[0].OldTo < a[0].OldFrom:
			apply(b[0], theirs)
			b = b[1:]
		case a[0].OldFrom == b[0].OldFrom && a[0].OldTo == b[0].OldTo &&
			slices.Equal(ours[a[0].NewFrom:a[0].NewTo], theirs[b[0].NewFrom:b[0].NewTo]):
			apply(a[0], ours)
			a, b = a[1:], b[1:]
		default:
			return nil, false
		}
	}
	return append(merged, base[at:]...), true
}
