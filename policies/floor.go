package policies

import "slices"

// ApplyFloor returns the gates with a server-side floor under them: whatever passes
// them has the floor's approvals too. A floor that a gate already guarantees
// adds nothing; one that asks the same people raises that gate's count;
// otherwise it becomes a gate of its own, because "one from ada" and "two from
// anybody" are two conditions. A nil floor changes nothing. gates is not
// modified.
func ApplyFloor(gates []Gate, floor *Approvals) []Gate {
	raised := slices.Clone(gates)
	if floor == nil {
		return raised
	}
	for i := range raised {
		if a := raised[i].Approvals; a != nil && a.Count >= floor.Count && a.From.isWithin(floor.From) {
			return raised
		}
	}
	for i := range raised {
		if a := raised[i].Approvals; a != nil && a.From.isWithin(floor.From) && floor.From.isWithin(a.From) {
			raised[i].Approvals = &Approvals{Count: floor.Count, From: a.From}
			return raised
		}
	}
	own := *floor
	own.From.Users = slices.Clone(floor.From.Users)
	return append(raised, Gate{Approvals: &own})
}

// isWithin says that whoever f lets approve, other lets approve too.
func (f From) isWithin(other From) bool {
	if len(other.Users) == 0 {
		return true
	}
	if len(f.Users) == 0 {
		return false
	}
	return !slices.ContainsFunc(f.Users, func(u string) bool { return !containsLogin(other.Users, u) })
}
