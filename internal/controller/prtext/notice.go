package prtext

import (
	"fmt"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/policies"
)

// openNotice is the request of an open pull request's comment to a person. Its words stay while the
// same is asked of the same people; "" where nobody is asked.
func openNotice(s gateSummary) string {
	fails, waits := s.splitGates()
	switch {
	case s.headModified != "":
		return "stopped"
	case len(fails) > 0:
		return "blocked by " + strings.Join(fails, ",")
	case s.isHeld():
		return "held"
	case !s.evaluated:
		return ""
	case len(waits) == 0 && s.byHand:
		return "merge by hand"
	}
	var requests []string
	for _, g := range s.gates {
		if g.Outcome == policies.Wait && len(g.Who) > 0 {
			requests = append(requests, string(g.Gate)+" of "+strings.Join(g.Who, ","))
		}
	}
	return strings.Join(requests, ";")
}

// LandedNotice is what the comment after the merge tells at once: which state the release
// has come to, and why a person has to decide where one has.
func LandedNotice(in Input) string {
	var states []string
	open := false
	for _, m := range in.Members {
		st := m.stateIn(in.Environment)
		if st == nil {
			continue
		}
		state := st.State
		if in.Batch && st.LandedPull != in.Number {
			continue // something else is there by now
		}
		if isUntold(st) {
			state += " untold"
		} else if in.Batch && state == promotion.Verifying {
			state, open = "", true // some of many: only what they come to is told at once
		}
		if st.Revert > 0 {
			state += fmt.Sprintf(" #%d", st.Revert)
		}
		for _, w := range holdReasons(st) {
			state += " " + string(w.Code)
		}
		if state != "" && !slices.Contains(states, state) {
			states = append(states, state)
		}
	}
	slices.Sort(states)
	if open && len(states) > 0 {
		states = append(states, "and others to come") // the last of them ends the whole's
	}
	return "landed " + strings.Join(states, ";")
}
