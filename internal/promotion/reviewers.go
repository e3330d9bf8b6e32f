package promotion

import (
	"slices"

	"github.com/liftlock/liftlock/policies"
)

// requestReviewers has reviews of an open promotion requested from whom its gates name.
func (ev *evaluator) requestReviewers(e *Env, p *Pull) {
	release := p.Release
	if p.Batch {
		release = BatchID(ev.membersOf(p))
	}
	gates, _ := ev.listUnskippedGates(e, p)
	facts := p.Review
	facts.Now = ev.facts.Now
	for _, g := range gates {
		if g.Approvals != nil {
			facts.ApprovalGates = append(facts.ApprovalGates, g.Approvals)
		}
	}
	if wanted := policies.WantedReviewers(gates, facts, release); !wanted.IsEmpty() {
		ev.addAction(RequestReviewers{Environment: e.Name, Pull: p.Number, Release: release, Reviewers: wanted})
	}
}

// requestReviewersOnce leaves the requests for reviews of a pull request to the first of the
// components that it moves: they all have the same gates.
func (d *Decision) requestReviewersOnce() {
	requested := map[int]bool{}
	for i := range d.Components {
		c := &d.Components[i]
		c.Actions = slices.DeleteFunc(c.Actions, func(a Action) bool {
			r, is := a.(RequestReviewers)
			if !is {
				return false
			}
			again := requested[r.Pull]
			requested[r.Pull] = true
			return again
		})
	}
}
