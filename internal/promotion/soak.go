package promotion

import (
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/policies"
)

// Soak is for how long an arrival was verified without a break: one stretch that goes on or stands
// still, and the longest of those that ended. A degradation, another release or a change by hand
// ends a stretch. A stretch begins with the verification. Unobserved time isn't counted.
type Soak struct {
	Served  time.Duration `json:"served,omitempty"`  // of the stretch, until Seen
	Seen    time.Time     `json:"seen,omitzero"`     // until when it was counted; zero: there is no stretch
	Paused  bool          `json:"paused,omitempty"`  // it stands still: how the environment is can't be told
	Longest time.Duration `json:"longest,omitempty"` // of the stretches that ended
}

// soakState is what a look says of an arrival's stretch.
type soakState int

const (
	soakUnclear soakState = iota // it stands still
	soakWell                     // it goes on, or begins
	soakBroken                   // it ends
)

// advance is the soak after a look. Two looks with more than maxGap in between say
// nothing of the time between them.
func (s Soak) advance(state soakState, now time.Time, maxGap time.Duration) Soak {
	isOpen := !s.Seen.IsZero()
	switch {
	case state == soakBroken:
		return Soak{Longest: max(s.Longest, s.Served)}
	case state == soakUnclear && isOpen:
		s.Paused = true
	case state == soakWell:
		if since := now.Sub(s.Seen); isOpen && !s.Paused && since > 0 && since <= maxGap {
			s.Served += since
		}
		// A clock may be behind the one that was used then, and that time isn't counted twice. One
		// that is behind by more is right, and the other was far ahead.
		if s.Seen.Sub(now) > maxGap {
			s.Seen = now
		} else {
			s.Seen = latest(s.Seen, now)
		}
		s.Paused = false
	}
	return s
}

// isWorthStoring says that a look's change has to outlive it: a stretch begins, ends, stands still
// or goes on, or it went on for a part of maxGap. Every look would be a write otherwise.
func (s Soak) isWorthStoring(before Soak, maxGap time.Duration) bool {
	return s.Seen.IsZero() != before.Seen.IsZero() || s.Paused != before.Paused || s.Seen.Sub(before.Seen).Abs() >= maxGap/4
}

// AdvanceSoaks counts, for each arrival in the environment's history, for how long it has been
// verified without a break, by a look at now. The verdicts of its targets must be filled in. maxGap
// is the longest time between two looks that counts. It returns the arrivals whose count has to be
// stored.
func (e *Env) AdvanceSoaks(now time.Time, maxGap time.Duration) []*Arrival {
	var changed []*Arrival
	for i := range e.History {
		a := &e.History[i]
		before := a.Soak
		a.Soak = before.advance(e.soakStateOf(a), now, maxGap)
		if a.Soak.isWorthStoring(before, maxGap) {
			changed = append(changed, a)
		}
	}
	return changed
}

func (e *Env) soakStateOf(a *Arrival) soakState {
	if e.Fields == FieldsMixed {
		return soakBroken
	}
	if !e.Release.OK || !e.Landed.OK {
		return soakUnclear
	}
	if a != e.currentArrival() || e.isChangedByHand() {
		return soakBroken
	}
	switch r := rollUpTargets(e); {
	case r.state == Degraded, r.state == Failed, a.IsDegraded():
		return soakBroken
	case r.clear && a.IsVerified():
		return soakWell
	}
	return soakUnclear
}

// listSoaked says for how long a release was verified without a break in the environments
// before e. One that is being, or was, reverted there counts for nothing.
func (ev *evaluator) listSoaked(e *Env, release string) []policies.Soaked {
	var out []policies.Soaked
	for _, u := range ev.listUpstream(e) {
		s := policies.Soaked{Environment: u.Name, Direct: slices.Contains(e.Spec.After, u.Name)}
		for i := range u.History {
			a := &u.History[i]
			if a.Release != release || u.isReverted(i) {
				continue
			}
			s.Longest = max(s.Longest, a.Soak.Longest)
			if a == u.currentArrival() && !a.Soak.Seen.IsZero() {
				s.Running, s.Goes = a.Soak.Served, !a.Soak.Paused
				if a.Soak.Paused {
					s.Err = ev.rollups[u.Name].reason
				}
			} else {
				s.Longest = max(s.Longest, a.Soak.Served)
			}
		}
		if why, _ := ev.quarantineReason(u, release); why != "" {
			s.Running, s.Longest, s.Goes, s.Err = 0, 0, false, "it "+why
		}
		out = append(out, s)
	}
	return out
}

// cannotSoak says that a soak keeps an open promotion for good: its release has left an
// environment before it had been verified there for long enough.
func (ev *evaluator) cannotSoak(e *Env) bool {
	skip, _ := ev.findSkip(e.Open, policies.GateSoak)
	soaked := ev.listSoaked(e, e.Open.Release)
	return skip == nil && slices.ContainsFunc(e.Gates, func(g policies.Gate) bool {
		return g.Soak != nil && slices.ContainsFunc(soaked, func(s policies.Soaked) bool {
			of := g.Soak.Environment == s.Environment || g.Soak.Environment == "" && s.Direct
			u := ev.facts.findEnv(s.Environment)
			return of && s.Longest < g.Soak.For && u != nil && u.Release.OK && u.Release.Value.ID != e.Open.Release
		})
	})
}

// IsSoaking says that what an environment has is verified and may have to soak there before
// it goes on: what nobody looks at isn't counted.
func IsSoaking(spec *pipeline.Spec, all []EnvState, st *EnvState) bool {
	if st.State != Verified {
		return false
	}
	return slices.ContainsFunc(all, func(to EnvState) bool {
		e := spec.EnvironmentByName(to.Environment)
		return e != nil && to.Release != st.Release && slices.ContainsFunc(e.Gates, func(g policies.Gate) bool {
			return g.RequiresSoak(st.Environment, slices.Contains(e.After, st.Environment))
		})
	})
}
