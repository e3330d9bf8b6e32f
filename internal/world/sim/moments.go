package sim

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
)

// People by chance seldom meet the moment in which their action would hurt. Here they know it.

// temptApproved lets a person, in some cases, withdraw one of several releases that a pull request
// moves while some of its approvals are there and others aren't. Then the pull request is kept, and
// has to wait.
func (sim *Simulation) temptApproved(pr *forge.PullRequest, ref promotion.BranchRef) bool {
	if !sim.scenario.insiders || !sim.faulty || ref.Revert || sim.chance.IntN(2) > 0 {
		return false
	}
	r := sim.ownChance()
	sim.after(sim.between(time.Second, 10*time.Second), func() {
		now, err := sim.forge.As(reviewer).PullRequest(sim.ctx, sim.repo, pr.Number)
		sim.must(err)
		if err != nil || now.State != forge.Open || now.Base != trunk {
			return
		}
		moved := sim.movedBy(pr.Number, ref.Environment)
		if len(moved) > 1 {
			moved = moved[1:] // what is asked of the first may be thought to hold for all
		}
		if len(moved) > 0 {
			sim.rollBackUpstream(target{pick(r, moved), pick(r, sim.scenario.upstream(ref.Environment))}, r)
		}
	})
	return true
}

// farUpstream are the environments before one that releases come to by promotions, and that it doesn't
// come right after.
func (sim *Simulation) farUpstream(env string) []string {
	return slices.DeleteFunc(sim.scenario.upstream(env), func(up string) bool {
		return sim.scenario.isSource(up) || slices.Contains(sim.scenario.environment(env).after, up)
	})
}

// isFarBefore says that there is an environment which has one far upstream, and comes right after another.
func (sim *Simulation) isFarBefore(far, near string) bool {
	return slices.ContainsFunc(sim.scenario.environments, func(e environment) bool {
		return slices.Contains(e.after, near) && slices.Contains(sim.farUpstream(e.name), far)
	})
}

// overtakeFar has a release withdrawn, while a pull request brings it on, from an environment
// further back. The next release has both behind it.
func (sim *Simulation) overtakeFar(pr forge.PullRequest, ref promotion.BranchRef, r *rand.Rand) {
	for _, far := range sim.scenario.upstream(ref.Environment) {
		if sim.isFarBefore(far, ref.Environment) {
			sim.revertIn(target{pick(r, sim.componentsOf(ref)), far})
			return
		}
	}
}

// takeAside has a release that a pull request brings on reverted at an environment before, and the
// revert merged into another branch with a text that doesn't name its subject. The release stays
// healthy there, and nothing but the revert's branch keeps it from going on.
func (sim *Simulation) takeAside(pr forge.PullRequest, ref promotion.BranchRef, r *rand.Rand) {
	before := slices.DeleteFunc(sim.scenario.upstream(ref.Environment), sim.scenario.isSource)
	moved := sim.movedBy(pr.Number, ref.Environment)
	if len(before) == 0 || len(moved) == 0 {
		return
	}
	if p := (target{pick(r, moved), pick(r, before)}); sim.revertIn(p) {
		sim.truth.aside[p] = true
	}
}

// isWantedBack says that a pull request brings what was taken back, because somebody asked for it.
func (sim *Simulation) isWantedBack(pr *forge.PullRequest, ref promotion.BranchRef) bool {
	return slices.ContainsFunc(sim.componentsOf(ref), func(c string) bool {
		p := target{c, ref.Environment}
		return sim.isKeptOut(deployment{p, sim.tagAt(pr.Head, p)}) && sim.isLifted(p)
	})
}

// isKeptOut says that a revert took a release back from a target, or was merged into another branch.
func (sim *Simulation) isKeptOut(d deployment) bool { return !sim.keptOutSince(d).IsZero() }

// keptOutSince is since when isKeptOut says so; zero: it doesn't.
func (sim *Simulation) keptOutSince(d deployment) time.Time {
	if at, ok := sim.truth.reverted[d]; ok {
		return at
	}
	return sim.truth.revertedAside[d]
}

// noteOnOtherBranch records the consequences of a pull request of the service that was merged into
// another branch. A revert keeps its release out all the same, and the person who asked for a
// promotion has got it.
func (sim *Simulation) noteOnOtherBranch(pr *forge.PullRequest, ref promotion.BranchRef) {
	if sim.truth.forged[pr.Number] {
		return
	}
	base, _, err := sim.remote.MergeBase(sim.ctx, sim.head(), pr.Head)
	sim.must(err)
	for _, c := range sim.movedBy(pr.Number, ref.Environment) {
		p := target{c, ref.Environment}
		if ref.Revert {
			sim.truth.revertedAside[deployment{p, sim.tagAt(base, p)}] = sim.now
			continue
		}
		// Nothing but the one promote that was asked for opens what was taken back.
		if sim.isKeptOut(deployment{p, sim.tagAt(pr.Head, p)}) && sim.truth.promotes[p] == 1 && pr.CreatedAt.After(sim.truth.lifted[p]) {
			sim.after(boundWithin, func() { sim.endPromote(p, pr.CreatedAt) })
		}
	}
}

// boundWithin is how long after the service opened a pull request it may not be on record that a command
// was about it.
const boundWithin = 2 * time.Second

// endPromote ends what a promote allows that was about a pull request opened at a time. Where something went wrong
// since, nobody may have noted that it was: then it opens another one.
func (sim *Simulation) endPromote(p target, opened time.Time) {
	if sim.truth.promotes[p] != 1 || sim.wasTroubledSince(opened.Add(-time.Second)) || sim.failed.After(opened) {
		return
	}
	delete(sim.truth.lifted, p)
	delete(sim.truth.liftedBefore, p)
	delete(sim.truth.promotes, p)
}

// mergeInOwnWords squashes a revert as a person whose commit doesn't say what it is of.
func (sim *Simulation) mergeInOwnWords(pr *forge.PullRequest) (landed string, err error) {
	return sim.forge.As(reviewer).Merge(sim.ctx, sim.repo, forge.MergeRequest{Number: pr.Number, Head: pr.Head, Method: sim.scenario.method,
		Title: "Back to what was there", Message: "It looked odd."})
}

// sayWhileRead has a comment written right after a run has read a pull request's comments, and
// reported while that run is still working. Where no run reads them, it is written in a moment.
func (sim *Simulation) sayWhileRead(number int, say func()) {
	said := false
	once := func() {
		if !said {
			said = true
			delete(sim.whispers, number)
			say()
		}
	}
	sim.whispers[number] = once
	sim.after(10*time.Second, once)
}

// noteCommentsRead lets be said what waits for a run to have read the comments.
func (sim *Simulation) noteCommentsRead(t *task, number int) {
	if whisper := sim.whispers[number]; whisper != nil && t != nil && !t.dead {
		whisper()
		sim.sleep(t, sim.between(time.Second, 3*time.Second))
	}
}

// dawdles says that a call takes a moment longer than it could: nothing is wrong with that.
func (sim *Simulation) dawdles() bool { return sim.faulty && sim.chance.IntN(200) == 0 }

// ownChance is a chance of its own for something that people do.
func (sim *Simulation) ownChance() *rand.Rand {
	return rand.New(rand.NewPCG(uint64(sim.Seed), sim.chance.Uint64()))
}

// temptToRevert has, in some cases, a pull request's release reverted at an environment before, in
// the moment in which another person gives its last approval. One look finds both.
func (sim *Simulation) temptToRevert(pr *forge.PullRequest, ref promotion.BranchRef) {
	if !sim.scenario.insiders || !sim.faulty || ref.Revert || sim.chance.IntN(6) > 0 {
		return
	}
	before := slices.DeleteFunc(sim.scenario.upstream(ref.Environment), sim.scenario.isSource)
	if moved := sim.movedBy(pr.Number, ref.Environment); len(before) > 0 && len(moved) > 0 {
		r := sim.ownChance()
		sim.revertIn(target{pick(r, moved), pick(r, before)})
	}
}

// judgeRevertedNow judges a merge of the run that has opened a revert of the same release before.
func (sim *Simulation) judgeRevertedNow(name string, p target, tag string) {
	for _, env := range sim.scenario.upstream(p.env) {
		if t := sim.truth.revertedBy[deployment{target{p.component, env}, tag}]; t != nil && t == sim.current {
			sim.broke(ruleQuarantine, "%s brought %s to %s, and the same run has opened a revert of it from %s", name, tag, p, env)
		}
	}
}

// furtherMove is what a merge of the service brought to a target, and when the run began that made it.
type furtherMove struct {
	deployment
	began time.Time
	by    *task
}

// noteFurther keeps what the service has merged of late.
func (sim *Simulation) noteFurther(known insight, d deployment) {
	sim.truth.further = slices.DeleteFunc(sim.truth.further, func(f furtherMove) bool { return sim.now.Sub(f.began) > commandsActWithin })
	sim.truth.further = append(sim.truth.further, furtherMove{d, known.began, sim.current})
}

// judgeFurther judges, when the service opens a revert that somebody asked for, whether it brought further on
// what it takes back since it said that it would.
func (sim *Simulation) judgeFurther(pr *forge.PullRequest, ref promotion.BranchRef) {
	for _, c := range sim.componentsOf(ref) {
		d := deployment{target{c, ref.Environment}, sim.tagAt(sim.head(), target{c, ref.Environment})}
		at, wanted := sim.truth.wantedBack[d]
		delete(sim.truth.wantedBack, d)
		sim.truth.revertedBy[d] = sim.current
		for _, f := range sim.truth.further {
			if f.tag != d.tag || f.target.component != c || !slices.Contains(sim.scenario.upstream(f.target.env), ref.Environment) {
				continue
			}
			if sim.current != nil && f.by == sim.current {
				sim.broke(ruleQuarantine, "%s takes %s back from %s, and the same run has brought it to %s",
					describePull(pr.Number, pr.Branch), d.tag, d.target, f.target)
			}
			if wanted && !sim.isSlowedSince(at) && f.began.After(at) {
				sim.broke(ruleQuarantine, "%s takes %s back from %s, which was brought to %s since that was acknowledged at %v",
					describePull(pr.Number, pr.Branch), d.tag, d.target, f.target, at.Sub(sim.began))
			}
		}
	}
}
