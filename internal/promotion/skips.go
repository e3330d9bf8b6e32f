package promotion

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/liftlock/liftlock/policies"
)

// SkipDuration is how long a skipped gate stays skipped.
const SkipDuration = 4 * time.Hour

// Skip is a person's word that a promotion may go past one of its pipeline's gates. It is
// about the pull request's head as it was then, so the facts have it only while that is
// the head.
type Skip struct {
	Gate    policies.GateName `json:"gate"` // the gate's kind: soak
	By      string            `json:"by"`
	ByID    int64             `json:"byID,omitempty"`    // of the account; 0: not known
	Via     string            `json:"via,omitempty"`     // "api": By is the name of one of the API's tokens, "console": a user there
	Account string            `json:"account,omitempty"` // via console: the user's login on the forge; empty: not known
	Subject string            `json:"subject,omitempty"` // via console: which user, as of a Holding
	Reason  string            `json:"reason"`
	At      time.Time         `json:"at"`
	Until   time.Time         `json:"until"`         // not from then on
	Err     string            `json:"err,omitempty"` // why it doesn't count any more; empty: it does
}

// Giver is the account that gave the skip; false where it isn't known: then nothing tells whether
// it is an author's.
func (s *Skip) Giver() (a policies.Account, known bool) {
	if s.Via == "" {
		return policies.Account{ID: s.ByID, Login: s.By}, true
	}
	return policies.Account{Login: s.Account}, s.Account != ""
}

// Replaces says that a skip is the same person's as an older one of the same gate.
func (s *Skip) Replaces(older *Skip) bool {
	if s.Gate != older.Gate || s.Via != older.Via {
		return false
	}
	if s.Via == ViaConsole {
		return s.Subject != "" && s.Subject == older.Subject
	}
	return strings.EqualFold(s.By, older.By)
}

// findSkip finds the skip of a gate that counts now; nil when none does. why says of one
// that doesn't why not.
func (ev *evaluator) findSkip(p *Pull, gate policies.GateName) (skip *Skip, why string) {
	b := ev.spec.BreakGlass
	for i := range p.Skips {
		s := &p.Skips[i]
		giver, known := s.Giver()
		second := known && !(b != nil && b.AllowSelf) // it takes a second person
		switch {
		case s.Gate != gate || !ev.facts.Now.Before(s.Until):
		case s.At.After(ev.facts.Now.Add(policies.MaxClockAhead)):
			why = "it was given at " + s.At.UTC().Format(time.RFC3339) + ", by a clock that was ahead"
		case s.Err != "":
			why = s.Err
		case second && slices.ContainsFunc(p.Review.Authors, giver.Matches):
			why = s.By + " is an author of the release by now, and it takes a second person"
		case second && p.Review.AuthorsErr != "":
			why = "it takes a second person, and who made the release can't be told: " + p.Review.AuthorsErr
		default:
			ev.recheckAt(s.Until)
			return s, ""
		}
	}
	return nil, why
}

// skipFound is a skip of a gate, or why none counts.
type skipFound struct {
	skip *Skip
	why  string // of a skip that doesn't count
}

// listUnskippedGates lists the gates that weren't skipped, and the skips found by the gate's kind.
// A skipped gate keeps the floor's part.
func (ev *evaluator) listUnskippedGates(e *Env, p *Pull) ([]policies.Gate, map[policies.GateName]skipFound) {
	skips := map[policies.GateName]skipFound{}
	for _, s := range p.Skips {
		if found, why := ev.findSkip(p, s.Gate); found != nil || why != "" {
			skips[s.Gate] = skipFound{skip: found, why: why}
		}
	}
	var gates []policies.Gate
	for _, g := range e.Gates {
		if skips[g.Name()].skip == nil {
			gates = append(gates, g)
		}
	}
	for _, g := range e.Floor {
		if skips[g.Name()].skip != nil {
			gates = append(gates, g)
		}
	}
	return gates, skips
}

// evaluatePipelineGates evaluates the gates of the pipeline file and of the server's
// floor. A skip passes those of its kind that the pipeline asks for, and none of the floor.
func (ev *evaluator) evaluatePipelineGates(e *Env, p *Pull, facts policies.Facts) []policies.Result {
	gates, skips := ev.listUnskippedGates(e, p)
	for _, g := range gates {
		if g.Approvals != nil {
			facts.ApprovalGates = append(facts.ApprovalGates, g.Approvals)
		}
	}
	var out []policies.Result
	for _, g := range orderGates(gates) {
		r := g.Evaluate(facts)
		if why := skips[g.Name()].why; why != "" && r.Outcome != policies.Pass {
			r.Reason += "; the skip doesn't count: " + why
		}
		ev.recheckAt(r.Until)
		ev.recheckAt(r.Next)
		out = append(out, r)
	}
	for _, g := range e.Spec.Gates {
		s := skips[g.Name()].skip
		if s == nil {
			continue
		}
		r := g.Evaluate(facts)
		ev.recheckAt(r.Until)
		ev.recheckAt(r.Next)
		if r.Outcome != policies.Pass {
			r = policies.Result{Gate: r.Gate, Outcome: policies.Pass, SkippedBy: cmp.Or(s.By, "somebody"), Until: s.Until,
				Reason: fmt.Sprintf("skipped by %s until %s: %s (without that: %s)", orSomebody(s.By), s.Until.UTC().Format(time.RFC3339),
					s.Reason, r.Reason)}
		}
		out = append(out, r)
	}
	return out
}
