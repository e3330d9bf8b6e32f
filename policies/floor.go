package policies

import "slices"

// ApplyFloor returns the gates with a server-side floor under them: facts that pass them have the
// floor's approvals too. A floor that a gate already guarantees adds nothing, and one that asks the
// same people raises that gate's count. Otherwise it becomes a gate of its own: "one from ada" and
// "two from anybody" are two conditions. The people whose reviews can keep it waiting are a
// condition of their own, too. A nil floor changes nothing. gates is not modified.
func ApplyFloor(gates []Gate, floor *Approvals) []Gate {
	raised := slices.Clone(gates)
	if floor == nil {
		return raised
	}
	for i := range raised {
		if a := raised[i].Approvals; a != nil && a.meetsFloor(floor) {
			return raised
		}
	}
	for i := range raised {
		if a := raised[i].Approvals; a != nil && a.isLikeFloor(floor) {
			own := *a
			own.Count = floor.Count
			raised[i].Approvals = &own
			return raised
		}
	}
	own := *floor
	own.From.Users, own.From.Teams = slices.Clone(floor.From.Users), slices.Clone(floor.From.Teams)
	return append(raised, Gate{Approvals: &own})
}

// isAsStrict says that a takes nothing for an approval that floor doesn't, as far as it
// isn't about whose they are.
func (a *Approvals) isAsStrict(floor *Approvals) bool {
	if floor.hasVeto() && !a.hasVeto() || floor.Distinct && !a.Distinct {
		return false
	}
	return floor.MaxAge == 0 || a.MaxAge > 0 && a.MaxAge <= floor.MaxAge
}

// meetsFloor says that the gate demands all that the floor does. Everybody who can keep it waiting
// by the floor can by the gate too.
func (a *Approvals) meetsFloor(floor *Approvals) bool {
	if a.Count < floor.Count || !a.From.isWithin(floor.From) || !a.isAsStrict(floor) {
		return false
	}
	return !floor.hasVeto() || floor.From.isWithin(a.From)
}

// isLikeFloor says that the gate demands what the floor does but for how many have to approve.
func (a *Approvals) isLikeFloor(floor *Approvals) bool {
	isFromSame := a.From.isWithin(floor.From) && floor.From.isWithin(a.From)
	return isFromSame && a.isAsStrict(floor) && floor.isAsStrict(a)
}

// hasVeto says that somebody whose approval would count can keep it waiting.
func (a *Approvals) hasVeto() bool { return a.Veto == nil || *a.Veto }

// isWithin says that other lets everybody approve whom f lets approve, and that f asks for an owner
// of each file where other does.
func (f From) isWithin(other From) bool {
	if other.IsEmpty() {
		return true
	}
	if f.Codeowners != other.Codeowners || other.Strict && !f.Strict {
		return false
	}
	if isNamed := func(x *From) bool { return len(x.Users)+len(x.Teams) > 0 }; !isNamed(&f) && isNamed(&other) {
		return false // of files that nobody owns anybody may approve
	}
	isIn := func(all []string) func(string) bool {
		return func(name string) bool { return !containsLogin(all, name) }
	}
	return !slices.ContainsFunc(f.Users, isIn(other.Users)) && !slices.ContainsFunc(f.Teams, isIn(other.Teams))
}
