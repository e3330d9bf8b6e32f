package policies

import (
	"fmt"
	"slices"
)

// maxAssignmentSteps bounds for how long ways to give the owners to the gates are tried.
const maxAssignmentSteps = 500_000

// findShared says that the approvals gates of the environment can't all be met by
// different people; empty when they can.
func findShared(f Facts) []string {
	a := newAssignment(f)
	switch {
	case a.assignOwners():
		return nil
	case a.steps > maxAssignmentSteps:
		return []string{"nobody counts in two gates here (distinct), and there are too many ways to give those who approved to the gates " +
			"to tell whether they meet all of them: let somebody approve who owns more of the files"}
	case a.filled < len(a.places):
		return []string{fmt.Sprintf("nobody counts in two gates here (distinct): the approvals gates together take %d different people, "+
			"and %d of them approved", len(a.places), a.filled)}
	}
	return []string{"nobody counts in two gates here (distinct): those who approved own the changed files only where one of them counts " +
		"in two gates; one more owner has to approve"}
}

// assignment gives the people who approved to the approvals gates of an environment: each
// to one.
type assignment struct {
	places []int      // for each approval that a gate takes, the gate
	counts [][]string // by gate, who counts in it
	owned  []ownedPart

	given  map[string]int // by person: the gate
	steps  int
	filled int // of places, at most, with nobody given to a gate for their files
}

// ownedPart is a file, or several of the same owners, that a gate takes an owner's approval of.
type ownedPart struct {
	gate      int
	approvers []string // those who counted, any of whom is enough
}

func newAssignment(f Facts) *assignment {
	a := &assignment{given: map[string]int{}}
	for i, g := range f.ApprovalGates {
		t := g.countApprovals(f)
		var approvers []string
		for _, user := range t.counted {
			approvers = append(approvers, normalizeLogin(user))
		}
		a.counts = append(a.counts, approvers)
		for range g.Count {
			a.places = append(a.places, i)
		}
		if !g.From.Codeowners {
			continue
		}
		for j := range f.Files {
			file := &f.Files[j]
			if len(file.Owners) == 0 {
				continue
			}
			part := ownedPart{gate: i}
			for _, user := range t.counted {
				if v := t.byUser[user]; g.From.names(v) || file.isOwnedBy(v) {
					part.approvers = append(part.approvers, normalizeLogin(user))
				}
			}
			if !slices.ContainsFunc(a.owned, func(o ownedPart) bool { return o.gate == i && slices.Equal(o.approvers, part.approvers) }) {
				a.owned = append(a.owned, part)
			}
		}
	}
	a.filled = a.fillPlaces()
	return a
}

// assignOwners gives each gate owners of its files, in all ways until the places that are
// left can be filled too.
func (a *assignment) assignOwners() bool {
	if a.steps += 1 + len(a.owned) + len(a.places); a.steps > maxAssignmentSteps {
		return false
	}
	part, open := a.findHardest()
	if !open {
		return a.fillPlaces() == len(a.places)
	}
	for _, user := range part.approvers {
		if _, is := a.given[user]; is {
			continue
		}
		a.given[user] = part.gate
		if a.assignOwners() {
			return true
		}
		delete(a.given, user)
	}
	return false
}

// findHardest finds the part that the fewest can still approve of those that nobody given
// to its gate does; false when there is none.
func (a *assignment) findHardest() (hardest ownedPart, open bool) {
	fewest := 0
	for _, part := range a.owned {
		isCovered, left := false, 0
		for _, user := range part.approvers {
			gate, is := a.given[user]
			isCovered = isCovered || is && gate == part.gate
			if !is {
				left++
			}
		}
		if !isCovered && (!open || left < fewest) {
			hardest, fewest, open = part, left, true
		}
	}
	return hardest, open
}

// fillPlaces says how many places can be filled, at most, each by a person of its own. The
// people are given to the places one by one, and moved on where another can take theirs;
// who was given to a gate stays there.
func (a *assignment) fillPlaces() (filled int) {
	holds := map[string]int{} // by person: the place
	var fill func(place int, tried map[string]bool) bool
	fill = func(place int, tried map[string]bool) bool {
		for _, user := range a.counts[a.places[place]] {
			if gate, is := a.given[user]; tried[user] || is && gate != a.places[place] {
				continue
			}
			tried[user] = true
			if other, has := holds[user]; !has || fill(other, tried) {
				holds[user] = place
				return true
			}
		}
		return false
	}
	for place := range a.places {
		if fill(place, map[string]bool{}) {
			filled++
		}
	}
	return filled
}
