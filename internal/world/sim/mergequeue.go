package sim

import (
	"time"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
)

// leavesWithin is how long a pull request may stay in the forge's merge queue when the service
// knows a reason against it and nothing goes wrong. The service checks the queue every minute, and
// its knowledge of it may be half a minute old. Besides, that a person had it join may be unknown
// until a sweep.
const leavesWithin = 2 * time.Minute

// polledWithin is how long a move of the branch may be unknown to the service, whatever the forge
// reports, while nothing goes wrong. It is its poll interval, and a run.
const polledWithin = 6 * time.Minute

// queuedPull is a pull request that joined the merge queue.
type queuedPull struct {
	head  string
	at    time.Time
	by    string  // login
	known insight // of the run that had it join; of a person's: none
}

// joinedHead is a head that the service had join the merge queue.
type joinedHead struct {
	head  string
	times int // since somebody wanted that, or the service took it out
}

// noteQueued keeps that a pull request is in the merge queue, by a run of the service or by a
// person.
func (sim *Simulation) noteQueued(t *task, pr *forge.PullRequest, by string) {
	if pr.Queue == forge.Queued && sim.truth.queued[pr.Number].by == bot && by == bot {
		return // its judge finds out by what it is judged since
	}
	sim.truth.queued[pr.Number] = queuedPull{pr.Head, sim.now, by, insightOf(t)}
	sim.report("%s joins the merge queue by %s", describePull(pr.Number, pr.Branch), by)
	if by == bot {
		j := sim.truth.joined[pr.Number]
		if j.head != pr.Head {
			j = joinedHead{head: pr.Head}
		}
		j.times++
		sim.truth.joined[pr.Number] = j
		if j.times > maxSame {
			sim.broke(ruleRejoined, "%s joined it %d times, and nobody wanted that", describePull(pr.Number, pr.Branch), j.times)
		}
		if sim.faulty && sim.chance.IntN(5) == 0 {
			sim.after(sim.between(time.Second, 2*time.Minute), func() { sim.holdQueued(pr.Number) })
		}
	}
	sim.planQueueRun()
}

// holdQueued lets a person think better of what is in the merge queue.
func (sim *Simulation) holdQueued(number int) {
	pr, err := sim.forge.As(reviewer).PullRequest(sim.ctx, sim.repo, number)
	sim.must(err)
	if err == nil && sim.faulty && pr.State == forge.Open && pr.Queue == forge.Queued {
		sim.holdOne(pr)
	}
}

// queueByHand lets a person have a pull request join the merge queue.
func (sim *Simulation) queueByHand(pr *forge.PullRequest) {
	_, err := sim.forge.As(reviewer).Merge(sim.ctx, sim.repo, forge.MergeRequest{Number: pr.Number, Head: pr.Head,
		Method: sim.scenario.method})
	switch {
	case err != nil:
		sim.report("%s can't queue #%d: %v", reviewer, pr.Number, err)
	case pr.Queue != forge.Queued:
		sim.noteQueued(nil, pr, reviewer)
	}
}

// planQueueRun lets the merge queue go on, if it isn't about to.
func (sim *Simulation) planQueueRun() {
	if sim.queueRuns {
		return
	}
	sim.queueRuns = true
	slowest := 8 * time.Minute
	if !sim.faulty {
		slowest = time.Minute
	}
	sim.after(sim.between(10*time.Second, slowest), sim.runMergeQueue)
}

// runMergeQueue lands a group of what is in the merge queue, but for what a person takes out and
// what fails.
func (sim *Simulation) runMergeQueue() {
	sim.queueRuns = false
	group, err := sim.forge.QueuedPulls(sim.repo)
	sim.must(err)
	if len(group) == 0 {
		return
	}
	for _, number := range group[:1+sim.chance.IntN(len(group))] {
		pr, err := sim.forge.As(reviewer).PullRequest(sim.ctx, sim.repo, number)
		sim.must(err)
		switch {
		case err != nil:
			return
		case sim.faulty && sim.chance.IntN(12) == 0:
			sim.dropQueued(pr, reviewer+" takes it out")
		case sim.faulty && hash(pr.Head)[0] < '2' && !sim.truth.mended[pr.Head]:
			sim.dropQueued(pr, "its pipeline failed")
		default:
			sim.landQueued(pr)
		}
	}
	sim.planQueueRun()
}

// dropQueued takes a pull request out of the merge queue, though the service had it join.
func (sim *Simulation) dropQueued(pr *forge.PullRequest, why string) {
	sim.must(sim.forge.As(reviewer).LeaveQueue(sim.ctx, sim.repo, pr.Number))
	sim.noteDropped(pr, why)
}

// noteDropped lets people see to what the merge queue dropped: by itself it doesn't join again.
func (sim *Simulation) noteDropped(pr *forge.PullRequest, why string) {
	sim.report("the merge queue drops %s: %s", describePull(pr.Number, pr.Branch), why)
	sim.after(sim.between(time.Minute, 10*time.Minute), func() {
		sim.truth.mended[pr.Head] = true
		now, err := sim.forge.As(reviewer).PullRequest(sim.ctx, sim.repo, pr.Number)
		sim.must(err)
		ref, ok := promotion.ParseBranch(pr.Branch)
		if err != nil || !ok {
			return
		}
		if now.State == forge.Open && now.Head == pr.Head && now.Queue != forge.Queued {
			sim.retry(reviewer, pr.Number, ref)
		}
	})
}

// landQueued lands what is first in the merge queue, if it can be merged still.
func (sim *Simulation) landQueued(pr *forge.PullRequest) {
	q, before := sim.truth.queued[pr.Number], sim.head()
	sim.merging = true
	sim.must(sim.forge.MergeNextQueued(sim.repo, reviewer))
	sim.merging = false
	landed, err := sim.forge.As(reviewer).PullRequest(sim.ctx, sim.repo, pr.Number)
	sim.must(err)
	if err != nil {
		return
	}
	if landed.State != forge.Merged {
		sim.noteDropped(pr, "it can't be merged any more")
		return
	}
	sim.report("%s lands from the merge queue", describePull(pr.Number, pr.Branch))
	if landed.Head != q.head {
		sim.broke(ruleUngated, "%s landed with %s, and what joined the merge queue was %s", describePull(pr.Number, pr.Branch),
			landed.Head, q.head)
	}
	after := sim.head()
	if q.by == bot {
		sim.judgeMerge(sim.insightOfQueued(q), pr, before, after)
		sim.noteMerged(pr, before, after)
		return
	}
	ref, ok := promotion.ParseBranch(pr.Branch)
	if !ok {
		sim.broke("harness", "%s landed, which is nobody's", describePull(pr.Number, pr.Branch))
		return
	}
	if !sim.truth.forged[pr.Number] { // what somebody else composed is theirs to merge
		sim.judgeRestraints(sim.insightOfQueued(q), pr, ref, sim.movedTargets(ref, before, after))
	}
	sim.noteMergedByHand(pr, ref, before, after)
}

// insightOfQueued is what the service must know about a pull request that lands from the merge
// queue. It has what the service knew when the pull request joined, and every reason for which it
// had the time to take it out since.
func (sim *Simulation) insightOfQueued(q queuedPull) insight {
	known, unseen := q.known, time.Duration(0)
	if q.by != bot {
		unseen = sweepInterval
	}
	if at := sim.now.Add(-leavesWithin - unseen); at.After(q.at) && !sim.wasTroubledSince(at.Add(-time.Minute)) {
		known.began = at
	}
	if at := sim.now.Add(-polledWithin - unseen); at.After(q.at) && !sim.wasTroubledSince(at.Add(-time.Minute)) {
		known.lookedAt = at
	}
	known.late, known.branchLate = sim.now.Sub(known.began), sim.now.Sub(known.lookedAt)
	return known
}
