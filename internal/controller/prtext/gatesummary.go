package prtext

import (
	"github.com/liftlock/liftlock/internal/promotion"
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

// summarizeGates reads the decision. A decision lists no gates both where none stands in
// the way and where it didn't get so far (the pull request is composed anew,
// closed, or can't be judged), so the two are told apart by what it does instead.
func summarizeGates(in Input) gateSummary {
	st := stateOf(in)
	s := gateSummary{gates: st.Gates, byHand: needsPerson(in)}
	if in.Revert {
		s.gates = st.RevertGates
	}
	e := environmentOf(in)
	if e == nil {
		s.evaluated = len(s.gates) > 0
		return s
	}
	pull := e.Open
	if in.Revert {
		pull = e.Revert
	}
	if pull != nil {
		s.headModified = pull.HeadReason
	}
	readable := e.Fields != promotion.FieldsMixed && e.BranchState != promotion.BranchUnmanaged && e.Release.OK && e.Landed.OK
	s.evaluated = len(s.gates) > 0 ||
		pull != nil && pull.HeadState != promotion.HeadModified && !pull.Diverged && (readable || in.Revert) && !isDryRun(in) && !actsOtherwise(in)
	return s
}

// actsOtherwise says whether the decision does something else with the pull request
// than judge its gates.
func actsOtherwise(in Input) bool {
	if in.Decision == nil {
		return true
	}
	for _, a := range in.Decision.Actions {
		switch a := a.(type) {
		case promotion.FactRequest:
			if a.Environment == in.Environment && a.What == promotion.RequestComposition && !in.Revert {
				return true
			}
		case promotion.Replace:
			if a.Environment == in.Environment && !in.Revert {
				return true
			}
		case promotion.RecomposeRevert:
			if a.Environment == in.Environment && in.Revert {
				return true
			}
		case promotion.Close:
			if a.Environment == in.Environment && a.Revert == in.Revert {
				return true
			}
		}
	}
	return false
}

// isDryRun says whether the pipeline only says what it would do.
func isDryRun(in Input) bool {
	return in.Facts != nil && in.Facts.Pipeline != nil && string(in.Facts.Pipeline.Spec.Mode) == dryRunMode
}

// needsPerson says whether the merge is a person's.
func needsPerson(in Input) bool {
	e := environmentOf(in)
	switch {
	case e == nil || isDryRun(in):
		return true
	case in.Revert:
		return e.Spec.OnDegraded != revertAndMerge
	}
	return e.Spec.Merge != mergeAuto
}

// isHeld says whether a hold is among what waits.
func (s gateSummary) isHeld() bool {
	for _, g := range s.gates {
		if g.Gate == gateHold && g.Outcome != policies.Pass {
			return true
		}
	}
	return false
}
