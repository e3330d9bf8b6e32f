package prtext

import (
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/cause"
	"github.com/liftlock/liftlock/policies"
)

// stateOf is the decision's state of the page's environment; never nil. Several components together
// make the state of their pull request: its gates are all of theirs, and all wait for whatever one
// of them waits for. A sentence that isn't true of all begins with the component.
func stateOf(in Input) *promotion.EnvState {
	out := &promotion.EnvState{Environment: in.Environment}
	if !in.Batch {
		if len(in.Members) > 0 {
			if st := in.Members[0].stateIn(in.Environment); st != nil {
				return st
			}
		}
		return out
	}
	var states []*promotion.EnvState
	var names []string
	for i := range in.Members {
		e, st := in.Members[i].envIn(in.Environment), in.Members[i].stateIn(in.Environment)
		if e == nil || st == nil {
			continue
		}
		open := e.Open != nil && e.Open.Number == in.Number
		revert := e.Revert != nil && e.Revert.Number == in.Number
		landed := e.Landed.OK && e.Landed.Value.Pull == in.Number
		if !open && !revert && !landed {
			continue
		}
		states = append(states, st)
		names = append(names, in.Members[i].Component)
		if st.Commit != "" && landed {
			out.Commit, out.Since = st.Commit, st.Since
		}
	}
	out.Gates = joinGates(names, states, func(st *promotion.EnvState) []policies.Result { return st.Gates })
	out.RevertGates = joinGates(names, states, func(st *promotion.EnvState) []policies.Result { return st.RevertGates })
	out.Why = joinReasons(names, states)
	return out
}

// joinGates lists the gates of all components. A gate that says the same of all comes once. Among
// the others those that don't pass come by component. A gate that passes everywhere in different
// words has the first's.
func joinGates(names []string, states []*promotion.EnvState, of func(*promotion.EnvState) []policies.Result) []policies.Result {
	var out []policies.Result
	has := func(st *promotion.EnvState, r policies.Result) bool {
		return slices.ContainsFunc(of(st), func(o policies.Result) bool {
			return o.Gate == r.Gate && o.Outcome == r.Outcome && o.Reason == r.Reason
		})
	}
	for i, st := range states {
		for _, r := range of(st) {
			everybody := !slices.ContainsFunc(states, func(o *promotion.EnvState) bool { return !has(o, r) })
			known := slices.ContainsFunc(out, func(o policies.Result) bool { return o.Gate == r.Gate })
			passes := !slices.ContainsFunc(states, func(o *promotion.EnvState) bool {
				return slices.ContainsFunc(of(o), func(x policies.Result) bool { return x.Gate == r.Gate && x.Outcome != policies.Pass })
			})
			switch {
			case everybody && i > 0, passes && known, !passes && r.Outcome == policies.Pass:
				continue
			case !everybody && !passes:
				r.Reason = names[i] + ": " + r.Reason
				if r.Brief != "" {
					r.Brief += " for " + names[i]
				}
			}
			out = append(out, r)
		}
	}
	return out
}

// joinReasons lists the reasons of all, each once; that one waits for another is
// said by the other's own.
func joinReasons(names []string, states []*promotion.EnvState) []promotion.Reason {
	var out []promotion.Reason
	for i, st := range states {
		for _, w := range st.Why {
			everybody := !slices.ContainsFunc(states, func(o *promotion.EnvState) bool {
				return !slices.ContainsFunc(o.Why, func(x promotion.Reason) bool { return x.Code == w.Code && x.Text == w.Text })
			})
			switch {
			case everybody && i > 0, w.Code == cause.BatchMembers && strings.Contains(w.Text, "which may not be merged yet"):
				continue
			case !everybody:
				w.Text = names[i] + ": " + w.Text
			}
			out = append(out, w)
		}
	}
	return out
}
