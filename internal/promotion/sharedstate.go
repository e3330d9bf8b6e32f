package promotion

import (
	"slices"
	"strings"

	"github.com/liftlock/liftlock/policies"
)

// SharedState is what the components say together of one of their shared pull
// requests: its gates are all of theirs, and what one of them waits for all wait
// for. A sentence that isn't true of all begins with the component.
func (d *Decision) SharedState(facts []ComponentFacts, env string, number int) EnvState {
	out := EnvState{Environment: env, Promotion: Opened}
	var states []*EnvState
	var names []string
	for i := range facts {
		e := facts[i].findEnv(env)
		st := d.Components[i].Env(env)
		if e == nil || st == nil {
			continue
		}
		open := e.Open != nil && e.Open.Number == number
		revert := e.Revert != nil && e.Revert.Number == number
		landed := e.Landed.OK && e.Landed.Value.Pull == number
		if !open && !revert && !landed {
			continue
		}
		if open {
			out.Pull = number
		}
		if revert {
			out.Revert = number
		}
		states = append(states, st)
		names = append(names, facts[i].Unit.Component)
		out.Promotion = prevailingState(out.Promotion, st.Promotion)
		if st.Commit != "" && landed {
			out.Commit, out.Since, out.LandedPull, out.LandedBy = st.Commit, st.Since, st.LandedPull, st.LandedBy
		}
	}
	out.Gates = joinGates(names, states, func(st *EnvState) []policies.Result { return st.Gates })
	out.RevertGates = joinGates(names, states, func(st *EnvState) []policies.Result { return st.RevertGates })
	out.Why = joinReasons(names, states)
	return out
}

// prevailingState is what two components' words of one pull request come to.
func prevailingState(a, b string) string {
	for _, s := range []string{Held, Reverting} {
		if a == s || b == s {
			return s
		}
	}
	return a
}

// joinGates lists the gates of all: one that says the same of everybody once, of
// the others those that don't pass, by component; a gate that passes everywhere
// in different words passes in the first's.
func joinGates(names []string, states []*EnvState, of func(*EnvState) []policies.Result) []policies.Result {
	var out []policies.Result
	has := func(st *EnvState, r policies.Result) bool {
		return slices.ContainsFunc(of(st), func(o policies.Result) bool {
			return o.Gate == r.Gate && o.Outcome == r.Outcome && o.Reason == r.Reason
		})
	}
	for i, st := range states {
		for _, r := range of(st) {
			everybody := !slices.ContainsFunc(states, func(o *EnvState) bool { return !has(o, r) })
			known := slices.ContainsFunc(out, func(o policies.Result) bool { return o.Gate == r.Gate })
			passes := !slices.ContainsFunc(states, func(o *EnvState) bool {
				return slices.ContainsFunc(of(o), func(x policies.Result) bool { return x.Gate == r.Gate && x.Outcome != policies.Pass })
			})
			switch {
			case everybody && i > 0, passes && known, !passes && r.Outcome == policies.Pass:
				continue
			case !everybody && !passes:
				r.Reason = names[i] + ": " + r.Reason
			}
			out = append(out, r)
		}
	}
	return out
}

// joinReasons lists the reasons of all, each once; that one waits for another is
// said by the other's own.
func joinReasons(names []string, states []*EnvState) []Reason {
	var out []Reason
	for i, st := range states {
		for _, w := range st.Why {
			everybody := !slices.ContainsFunc(states, func(o *EnvState) bool {
				return !slices.ContainsFunc(o.Why, func(x Reason) bool { return x.Code == w.Code && x.Text == w.Text })
			})
			switch {
			case everybody && i > 0, w.Code == "together" && strings.Contains(w.Text, "which may not be merged yet"):
				continue
			case !everybody:
				w.Text = names[i] + ": " + w.Text
			}
			out = append(out, w)
		}
	}
	return out
}
