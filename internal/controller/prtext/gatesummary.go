package prtext

import (
	"cmp"
	"slices"

	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/cause"
	"github.com/liftlock/liftlock/policies"
)

// gateSummary is where an open pull request stands, as its comment and its commit
// status say it.
type gateSummary struct {
	gates        []policies.Result
	evaluated    bool   // the gates were evaluated; if not, none of them may be called passing
	byHand       bool   // a person merges it
	headModified string // why its head is not what Liftlock composed
}

// summarizeGates reads the decision. A decision lists no gates both where none stands in the way
// and where it didn't get that far (the pull request is composed anew, closed, or can't be judged).
// Its other actions tell the two apart.
func summarizeGates(in Input) gateSummary {
	st := stateOf(in)
	s := gateSummary{gates: st.Gates, byHand: needsPerson(in)}
	if in.Revert {
		s.gates = st.RevertGates
	}
	if environmentOf(in) == nil {
		s.evaluated = len(s.gates) > 0
		return s
	}
	found, readable, diverged := false, true, false
	for i := range in.Members {
		e := in.Members[i].envIn(in.Environment)
		if e == nil {
			continue
		}
		pull := e.Open
		if in.Revert {
			pull = e.Revert
		}
		if pull != nil {
			found, diverged = true, diverged || pull.Diverged
			s.headModified = cmp.Or(s.headModified, pull.HeadReason)
		}
		if e.Fields == promotion.FieldsMixed || e.BranchState == promotion.BranchUnmanaged || !e.Release.OK || !e.Landed.OK {
			readable = false
		}
	}
	for _, r := range st.Why {
		if r.Code == cause.Unmanaged && !in.Revert {
			s.headModified = cmp.Or(s.headModified, r.Text)
		}
	}
	isOwn := found && s.headModified == "" && !diverged
	isReadable := readable || in.Revert
	restsOnGates := !isDryRun(in) && !actsOtherwise(in)
	s.evaluated = len(s.gates) > 0 || isOwn && isReadable && restsOnGates
	return s
}

// actsOtherwise says whether the decision does something else with the pull request
// than judge its gates.
func actsOtherwise(in Input) bool {
	for _, m := range in.Members {
		if m.Decision == nil {
			return true
		}
		if !in.Revert && slices.ContainsFunc(m.Decision.Actions, func(a promotion.Action) bool { return composes(a, in.Environment) }) {
			return true
		}
	}
	return slices.ContainsFunc(in.Actions, func(a promotion.Action) bool {
		p, ok := a.(promotion.PullAction)
		if !ok {
			return !in.Revert && composes(a, in.Environment)
		}
		_, merges := a.(promotion.Merge)
		_, reverts := a.(promotion.OpenRevert) // its number is the promotion's
		number, _ := p.Subject()
		return !merges && !reverts && number == in.Number
	})
}

// composes says whether an action has to know first what a promotion would change.
func composes(a promotion.Action, environment string) bool {
	r, ok := a.(promotion.FactRequest)
	return ok && r.What == promotion.RequestComposition && r.Environment == environment
}

// isDryRun says whether the pipeline only says what it would do.
func isDryRun(in Input) bool {
	p := in.component().Pipeline
	return p != nil && string(p.Spec.Mode) == dryRunMode
}

// needsPerson says whether the merge is a person's.
func needsPerson(in Input) bool {
	e := environmentOf(in)
	switch {
	case e == nil || isDryRun(in):
		return true
	case in.Revert:
		return e.Spec.OnDegraded.Action != revertAndMerge
	}
	return e.Spec.Merge != mergeAuto
}

// isHeld says whether a hold is among what waits.
func (gs gateSummary) isHeld() bool {
	for _, g := range gs.gates {
		if g.Gate == promotion.GateHold && g.Outcome != policies.Pass {
			return true
		}
	}
	return false
}
