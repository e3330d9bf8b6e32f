package sim

import (
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
	eventkind "github.com/liftlock/liftlock/internal/pipeline/event"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
)

// recordedWithin is how long it may take, while nothing goes wrong, until it is on record that a person
// merged something past what it waited for.
const recordedWithin = 4 * time.Minute

// mergePast merges by hand a promotion that nobody has approved yet, where that is asked for.
func (sim *Simulation) mergePast(number int, ref promotion.BranchRef) {
	pr, err := sim.forge.As(intruder).PullRequest(sim.ctx, sim.repo, number)
	sim.must(err)
	if err != nil || !sim.faulty || sim.truth.forged[number] {
		return
	}
	if pr.State != forge.Open || pr.Base != trunk {
		return
	}
	approvals := sim.scenario.environment(ref.Environment).approvals
	if _, good := sim.carriedBy(pr, ref); !good || approvals == 0 || len(sim.truth.approvals[number]) > 0 {
		return
	}
	known, store := sim.showsStatus(pr.Head), sim.stores
	if !sim.mergeAs(intruder, pr, ref) || !known {
		return
	}
	at := sim.now
	sim.after(recordedWithin, func() {
		if store == sim.stores && !sim.isSlowedSince(at.Add(-recordedWithin)) && !sim.isOnRecord(pr.Number) {
			sim.broke(ruleUnrecorded, "%s was merged by %s past the approvals at %v", describePull(pr.Number, pr.Branch), intruder,
				at.Sub(sim.began))
		}
	})
}

// mergeAs merges at once as somebody, past the merge queue where there is one.
func (sim *Simulation) mergeAs(login string, pr *forge.PullRequest, ref promotion.BranchRef) bool {
	before := sim.head()
	sim.merging = true
	landed, err := sim.forge.MergeByHand(sim.repo, pr.Number, login, sim.scenario.method)
	sim.merging = false
	sim.report("%s merges %s at once: %v", login, describePull(pr.Number, pr.Branch), err)
	if err != nil {
		return false
	}
	sim.noteMergedByHand(pr, ref, before, landed)
	return true
}

// isOnRecord says that the audit trail tells of a pull request that it was merged past its gates.
func (sim *Simulation) isOnRecord(number int) bool {
	all, err := sim.store.Events(sim.ctx, store.EventFilter{Pull: number, Limit: 1000})
	sim.must(err)
	return slices.ContainsFunc(all, func(e store.Event) bool { return e.Kind == eventkind.Ungated })
}

// judgeRecorded judges that the audit trail says of nothing that the service merged itself that it went past
// the gates.
func (sim *Simulation) judgeRecorded() {
	all, err := sim.forge.As(reviewer).PullRequests(sim.ctx, sim.repo, time.Time{})
	sim.must(err)
	for _, pr := range all {
		if pr.State != forge.Merged || pr.Author != bot || !sim.isOnRecord(pr.Number) {
			continue
		}
		whole, err := sim.forge.As(reviewer).PullRequest(sim.ctx, sim.repo, pr.Number)
		sim.must(err)
		if err == nil && whole.MergedBy == bot {
			sim.broke(ruleUnrecorded, "%s was merged by the service, and is said to have gone past the gates",
				describePull(pr.Number, pr.Branch))
		}
	}
}
