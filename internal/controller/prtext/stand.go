package prtext

import (
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/policies"
)

// standing is where an open pull request stands, as its comment and its commit
// status say it.
type standing struct {
	gates  []policies.Result
	judged bool   // the gates were evaluated; if not, none of them may be called passing
	byHand bool   // a person merges it
	alien  string // why its head is not what Liftlock composed
}

// stand reads the decision. A decision lists no gates both where none stands in
// the way and where it didn't get so far (the pull request is composed anew,
// closed, or can't be judged), so the two are told apart by what it does instead.
func stand(in Input) standing {
	st := state(in)
	s := standing{gates: st.Gates, byHand: byHand(in)}
	if in.Revert {
		s.gates = st.UndoGates
	}
	e := environment(in)
	if e == nil {
		s.judged = len(s.gates) > 0
		return s
	}
	pull := e.Open
	if in.Revert {
		pull = e.Undo
	}
	if pull != nil {
		s.alien = pull.Unsound
	}
	readable := e.Mixed == "" && e.Foreign == "" && e.Now.OK && e.Landed.OK
	s.judged = len(s.gates) > 0 ||
		pull != nil && pull.Unsound == "" && !pull.Diverged && (readable || in.Revert) && !observes(in) && !instead(in)
	return s
}

// instead says whether the decision does something else with the pull request
// than judge its gates.
func instead(in Input) bool {
	if in.Decision == nil {
		return true
	}
	for _, a := range in.Decision.Actions {
		switch a := a.(type) {
		case promotion.Look:
			if a.Environment == in.Environment && a.What == promotion.LookCompose && !in.Revert {
				return true
			}
		case promotion.Replace:
			if a.Environment == in.Environment && !in.Revert {
				return true
			}
		case promotion.RestoreUndo:
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

// observes says whether the pipeline only says what it would do.
func observes(in Input) bool {
	return in.Facts != nil && in.Facts.Pipeline != nil && string(in.Facts.Pipeline.Spec.Mode) == modeObserve
}

// byHand says whether the merge is a person's.
func byHand(in Input) bool {
	e := environment(in)
	switch {
	case e == nil || observes(in):
		return true
	case in.Revert:
		return e.Spec.OnDegraded != revertAndMerge
	}
	return e.Spec.Merge != mergeAuto
}

// held says whether a hold is among what waits.
func (s standing) held() bool {
	for _, g := range s.gates {
		if g.Gate == gateHold && g.Outcome != policies.Pass {
			return true
		}
	}
	return false
}
