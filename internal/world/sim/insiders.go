package sim

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/appset/history"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
)

// insiderDeeds are what people with write access do besides in some of the worlds, without the
// service: with good reason, or to bring a release that may not come.
var insiderDeeds = []deed{
	{"roll back by hand", 5, (*Simulation).rollBack},
	{"go back in the source", 3, (*Simulation).goBack},
	{"reset the branch", 2, (*Simulation).resetBranch},
	{"bring back", 6, (*Simulation).bringBack},
	{"merge elsewhere", 2, (*Simulation).mergeOnOtherBranch},
	{"label what is closed", 2, (*Simulation).labelClosed},
	{"remove a hold's file", 3, (*Simulation).removeHold},
	{"edit a comment", 4, (*Simulation).editComment},
	{"release all the time", 1, (*Simulation).releaseQuickly},
	{"freeze", 2, (*Simulation).freezeOne},
	{"use the service's branch", 3, (*Simulation).squat},
}

// tempt lets people do at once about a pull request that was just opened what needs its moment.
func (sim *Simulation) tempt(pr *forge.PullRequest) {
	ref, ok := promotion.ParseBranch(pr.Branch)
	if !sim.scenario.insiders || !sim.faulty || !ok {
		return
	}
	soon := time.Second
	act := func(do func(pr forge.PullRequest, r *rand.Rand)) {
		r := rand.New(rand.NewPCG(uint64(sim.Seed), sim.chance.Uint64()))
		sim.after(sim.between(soon, 30*soon), func() {
			now, err := sim.forge.As(reviewer).PullRequest(sim.ctx, sim.repo, pr.Number)
			sim.must(err)
			if err == nil && sim.faulty && now.State == forge.Open && now.Base == trunk {
				do(*now, r)
			}
		})
	}
	draw := sim.chance.IntN(24)
	if !ref.Revert && draw%4 > 0 && sim.isWantedBack(pr, ref) {
		soon = 50 * time.Millisecond
		act(func(pr forge.PullRequest, _ *rand.Rand) { sim.landOnOtherBranch(pr, ref) })
		return
	}
	if ref.Revert {
		for _, c := range sim.componentsOf(ref) {
			if p := (target{c, ref.Environment}); sim.truth.aside[p] {
				delete(sim.truth.aside, p)
				draw = 14
			}
		}
		switch draw {
		case 0, 1, 2, 3, 4, 5:
			act(func(pr forge.PullRequest, _ *rand.Rand) { sim.landOnOtherBranch(pr, ref) })
		case 6, 7, 8, 9, 10, 11, 12, 13:
			act(func(pr forge.PullRequest, _ *rand.Rand) { sim.editBodyOf(pr, ref, "") })
		case 14, 15, 16, 17, 18, 19, 20: // nothing but its branch says what it was of
			act(func(pr forge.PullRequest, _ *rand.Rand) {
				sim.editBodyOf(pr, ref, "")
				sim.landOnOtherBranch(pr, ref)
			})
		}
		return
	}
	for _, c := range sim.componentsOf(ref) {
		if tag, ok := sim.truth.grudges[target{c, ref.Environment}]; ok {
			delete(sim.truth.grudges, target{c, ref.Environment})
			act(func(pr forge.PullRequest, _ *rand.Rand) { sim.pushOver(pr, ref, c, tag, true) })
			return
		}
	}
	switch {
	case draw < 2:
		act(func(pr forge.PullRequest, r *rand.Rand) { sim.rollBackBefore(pr, ref, r) })
	case draw < 4, draw < 12 && slices.ContainsFunc(sim.componentsOf(ref),
		func(c string) bool { return len(sim.keptOut(target{c, ref.Environment})) > 0 }):
		act(func(pr forge.PullRequest, r *rand.Rand) { sim.bringBackOver(pr, ref, r) })
	case draw == 12, draw == 13:
		act(func(pr forge.PullRequest, _ *rand.Rand) { sim.closeOne(pr, ref) })
	case draw < 20:
		sim.after(sim.between(5*time.Second, time.Minute), func() { sim.overtakeFar(*pr, ref, sim.ownChance()) })
	case draw < 22:
		act(func(pr forge.PullRequest, r *rand.Rand) { sim.takeAside(pr, ref, r) })
	case draw == 22:
		sim.after(sim.between(10*time.Second, time.Minute), func() { sim.mergePast(pr.Number, ref) })
	}
}

// rollBack takes what an environment has back by hand: to what was there before it, to something
// older, or to a release that comes from nowhere.
func (sim *Simulation) rollBack(r *rand.Rand) {
	sim.onOne(r, func(pr forge.PullRequest, ref promotion.BranchRef) {
		if ref.Revert {
			sim.rollBackIn(target{pick(r, sim.componentsOf(ref)), pick(r, sim.scenario.environments[1:]).name}, r)
		} else {
			sim.rollBackBefore(pr, ref, r)
		}
	})
}

// rollBackBefore takes back what a pull request brings further on, where it comes from: by hand, or by
// the service.
func (sim *Simulation) rollBackBefore(pr forge.PullRequest, ref promotion.BranchRef, r *rand.Rand) {
	moved := sim.movedBy(pr.Number, ref.Environment)
	if len(moved) == 0 {
		moved = sim.componentsOf(ref)
	}
	sim.rollBackUpstream(target{pick(r, moved), pick(r, sim.scenario.upstream(ref.Environment))}, r)
}

// rollBackUpstream takes back what a target has: by hand, or by the service.
func (sim *Simulation) rollBackUpstream(p target, r *rand.Rand) {
	switch {
	case sim.scenario.isSource(p.env):
		sim.goBackOf(p.component, r)
	case r.IntN(3) > 0 || !sim.revertIn(p):
		sim.rollBackIn(p, r)
	}
}

// revertIn asks the service to take back what it brought to a target, if it did.
func (sim *Simulation) revertIn(p target) bool {
	pulls, err := sim.forge.As(reviewer).PullRequests(sim.ctx, sim.repo, time.Time{})
	sim.must(err)
	var newest *forge.PullRequest
	for _, pr := range pulls {
		ref, ok := promotion.ParseBranch(pr.Branch)
		if !ok || ref.Revert || pr.Author != bot || pr.State != forge.Merged {
			continue
		}
		if ref.Environment != p.env || !slices.Contains(sim.componentsOf(ref), p.component) {
			continue
		}
		if newest == nil || pr.MergedAt.After(newest.MergedAt) {
			newest = &pr
		}
	}
	if newest == nil || sim.tagAt(newest.Head, p) != sim.tagAt(sim.head(), p) {
		return false
	}
	sim.requestRevert(newest)
	return true
}

// tagsBefore are what a target had before what it has, newest first, each once.
func (sim *Simulation) tagsBefore(p target) []string {
	now, tags := sim.tagAt(sim.head(), p), []string(nil)
	for _, l := range slices.Backward(append([]landing{{tag: firstTag}}, sim.truth.landings[p]...)) {
		if l.tag != now && !slices.Contains(tags, l.tag) {
			tags = append(tags, l.tag)
		}
	}
	return tags
}

func (sim *Simulation) rollBackIn(p target, r *rand.Rand) {
	before := sim.tagsBefore(p)
	if len(before) == 0 {
		return
	}
	tag := before[0]
	switch r.IntN(4) {
	case 0:
		tag = pick(r, before)
	case 1:
		sim.planned++
		tag = fmt.Sprintf("%d-hotfix", sim.planned)
	}
	sim.excuse(p.component, "a person rolled "+p.env+" back")
	sim.report("%s rolls %s back to %s", reviewer, p, tag)
	sim.commit(reviewer, "Roll "+p.component+" back", map[string]string{sim.scenario.file(p): sim.scenario.overlayWith(p.component, tag)})
}

// goBack goes back where releases come from.
func (sim *Simulation) goBack(r *rand.Rand) { sim.goBackOf(pick(r, sim.scenario.components), r) }

func (sim *Simulation) goBackOf(c string, r *rand.Rand) {
	p := target{c, sim.scenario.environments[0].name}
	before := sim.tagsBefore(p)
	if len(before) == 0 {
		return
	}
	tag := before[0]
	if r.IntN(3) == 0 {
		tag = pick(r, before)
	}
	sim.truth.noteMaker(deployment{p, tag}, author)
	sim.report("%s goes back to %s of %s", author, tag, c)
	sim.commit(author, "Release "+c+" "+tag+" again", map[string]string{sim.scenario.file(p): sim.scenario.overlayWith(c, tag)})
}

// resetBranch takes the last commits off the branch.
func (sim *Simulation) resetBranch(r *rand.Rand) {
	line, err := sim.remote.Log(sim.ctx, git.LogQuery{From: sim.head(), FirstParent: true, Limit: 4})
	sim.must(err)
	if len(line) < 4 {
		return
	}
	to := line[1+r.IntN(2)].SHA
	sim.report("%s resets the branch to %s", reviewer, to[:8])
	sim.resetting = true
	sim.must(sim.forge.Push(sim.repo, reviewer, trunk, to, true))
	sim.resetting = false
	data, err := sim.remote.Tree(to).ReadFile(pipelineAt)
	sim.must(err)
	switch broken := string(data) != sim.scenario.pipelineFile(); {
	case !broken:
		sim.truth.brokenSince = time.Time{}
	case sim.truth.brokenSince.IsZero():
		sim.truth.brokenSince = sim.now
		sim.after(sim.between(time.Minute, 10*time.Minute), sim.mendPipeline)
	}
}

// bringBack wants a release to come that may not, by pushing it over the service's pull request.
func (sim *Simulation) bringBack(r *rand.Rand) {
	sim.onOne(r, func(pr forge.PullRequest, ref promotion.BranchRef) {
		if !ref.Revert {
			sim.bringBackOver(pr, ref, r)
		}
	})
}

func (sim *Simulation) bringBackOver(pr forge.PullRequest, ref promotion.BranchRef, r *rand.Rand) {
	c := pick(r, sim.componentsOf(ref))
	p := target{c, ref.Environment}
	tag, restrained := sim.pickForbidden(p, r)
	if tag == "" || tag == sim.tagAt(pr.Head, p) {
		return
	}
	sim.pushOver(pr, ref, c, tag, r.IntN(3) > 0)
	if _, vetoed := sim.truth.vetoed[deployment{p, tag}]; vetoed && r.IntN(3) == 0 {
		sim.goBackOf(c, r) // what would take its place is taken back
		return
	}
	if pushed, err := sim.forge.As(intruder).PullRequest(sim.ctx, sim.repo, pr.Number); err == nil && r.IntN(4) == 0 {
		sim.mergeAs(intruder, pushed, ref)
		return
	}
	if restrained && r.IntN(2) == 0 { // to have it count as promoted again; then the next one
		sim.truth.grudges[p] = tag
		sim.landOnOtherBranch(pr, ref)
	}
}

// keptOut are the releases that were taken back from a target by a revert, or closed.
func (sim *Simulation) keptOut(p target) []string {
	return slices.DeleteFunc(sim.tagsBefore(target{p.component, sim.scenario.environments[0].name}), func(tag string) bool {
		_, vetoed := sim.truth.vetoed[deployment{p, tag}]
		return !vetoed && !sim.isKeptOut(deployment{p, tag})
	})
}

// pickForbidden is a release that may not come to a target. It is one that was reverted, there or
// before, or closed, if there is one, else one that is older than the release there.
func (sim *Simulation) pickForbidden(p target, r *rand.Rand) (tag string, restrained bool) {
	if out := sim.keptOut(p); len(out) > 0 && r.IntN(4) > 0 {
		return pick(r, out), true
	}
	var kept, older []string
	for _, tag := range sim.tagsBefore(target{p.component, sim.scenario.environments[0].name}) {
		_, vetoed := sim.truth.vetoed[deployment{p, tag}]
		for _, env := range append(sim.scenario.upstream(p.env), p.env) {
			d := deployment{target{p.component, env}, tag}
			_, reverted := sim.truth.reverted[d]
			_, withdrawn := sim.truth.withdrawn[d]
			h := sim.truth.health[d]
			wasBad := h != nil && h.badSeen
			vetoed = vetoed || reverted || withdrawn || wasBad
		}
		if vetoed {
			kept = append(kept, tag)
		} else if slices.Contains(sim.tagsBefore(p), tag) {
			older = append(older, tag)
		}
	}
	switch {
	case len(kept) > 0 && (len(older) == 0 || r.IntN(4) > 0):
		return pick(r, kept), true
	case len(older) > 0:
		return pick(r, older), false
	}
	return "", false
}

// mergeOnOtherBranch has one of the service's pull requests merged into another branch.
func (sim *Simulation) mergeOnOtherBranch(r *rand.Rand) {
	sim.onOne(r, sim.landOnOtherBranch)
}

func (sim *Simulation) landOnOtherBranch(pr forge.PullRequest, ref promotion.BranchRef) {
	sim.planned++
	branch := fmt.Sprintf("%s/%d", intruder, sim.planned)
	sim.must(sim.forge.Push(sim.repo, intruder, branch, sim.head(), false))
	if err := sim.forge.Retarget(sim.repo, pr.Number, intruder, branch); err != nil {
		sim.report("%s can't retarget #%d: %v", intruder, pr.Number, err)
		return
	}
	_, err := sim.forge.MergeByHand(sim.repo, pr.Number, intruder, sim.scenario.method)
	sim.report("%s merges %s into %s: %v", intruder, describePull(pr.Number, pr.Branch), branch, err)
	if err == nil {
		sim.noteOnOtherBranch(&pr, ref)
	}
	if !ref.Revert {
		return
	}
	for _, c := range sim.componentsOf(ref) {
		p := target{c, ref.Environment}
		if h := sim.truth.health[deployment{p, sim.tagAt(sim.head(), p)}]; h != nil && err == nil {
			h.answered, h.unanswered = false, sim.now
		}
		if last := sim.lastLanding(p); sim.now.Sub(last.at) > watchFor/2 {
			sim.excuse(c, "a revert was merged elsewhere when what it was of wasn't watched any more")
		}
	}
}

// labelClosed puts labels on a pull request of the service that was closed, as if it had itself.
func (sim *Simulation) labelClosed(r *rand.Rand) {
	all, err := sim.forge.As(bot).PullRequests(sim.ctx, sim.repo, time.Time{})
	sim.must(err)
	closed := slices.DeleteFunc(all, func(pr forge.PullRequest) bool { return pr.Author != bot || pr.State != forge.Closed })
	if len(closed) > 0 {
		sim.labelOne(pick(r, closed))
	}
}

func (sim *Simulation) labelOne(pr forge.PullRequest) {
	sim.report("%s labels %s", intruder, describePull(pr.Number, pr.Branch))
	sim.must(sim.forge.SetLabels(sim.repo, pr.Number, intruder, append(slices.Clone(pr.Labels), promotion.LabelSuperseded)...))
}

// relabel lets an insider label what a person has just closed, in some cases.
func (sim *Simulation) relabel(number int, ref promotion.BranchRef) {
	if !sim.scenario.insiders || !sim.faulty || ref.Revert || sim.chance.IntN(3) > 0 {
		return
	}
	sim.after(sim.between(time.Second, time.Minute), func() {
		pr, err := sim.forge.As(intruder).PullRequest(sim.ctx, sim.repo, number)
		sim.must(err)
		if err == nil && pr.State == forge.Closed {
			sim.labelOne(*pr)
		}
	})
}

// removeHold removes the file of a hold from the service's branch of them, or that branch.
func (sim *Simulation) removeHold(r *rand.Rand) {
	head, ok := sim.remote.Head(history.StateBranch)
	if !ok {
		return
	}
	var files []string
	sim.must(sim.remote.Tree(head).List(sim.ctx, func(path string, _ fs.FileMode, _ string) error {
		files = append(files, path)
		return nil
	}))
	if len(files) == 0 {
		return
	}
	if r.IntN(3) == 0 {
		sim.report("%s deletes %s", intruder, history.StateBranch)
		sim.must(sim.forge.Push(sim.repo, intruder, history.StateBranch, "", true))
		return
	}
	file := pick(r, files)
	ident := sim.forge.Ident(intruder)
	sha, err := sim.remote.Write(sim.ctx, git.CommitSpec{Parents: []string{head}, Base: head,
		Files: []git.FileWrite{{Path: file, Delete: true}}, Message: "Lift a hold", Author: &ident, Committer: &ident, When: sim.now})
	sim.must(err)
	if err == nil {
		sim.report("%s removes %s from %s", intruder, file, history.StateBranch)
		sim.must(sim.forge.Push(sim.repo, intruder, history.StateBranch, sha, false))
	}
}

// editComment makes what a reviewer said a command, within the second in which it was said.
func (sim *Simulation) editComment(r *rand.Rand) {
	sim.onOne(r, func(pr forge.PullRequest, ref promotion.BranchRef) {
		id := sim.say(reviewer, pr.Number, "nice")
		text := pick(r, []string{"/liftlock unhold", "/liftlock unhold environment", "/liftlock promote " + ref.Environment,
			"/liftlock retry"})
		sim.report("%s makes it: %s", intruder, text)
		sim.must(sim.forge.EditComment(sim.repo, id, intruder, text))
	})
}

// releaseQuickly has a release turn unwell where it comes from, after it has moved on, and then many
// more come there, one after the other.
func (sim *Simulation) releaseQuickly(r *rand.Rand) {
	c, source := pick(r, sim.scenario.components), sim.scenario.environments[0].name
	sim.planned++
	sim.releaseAs(c, fmt.Sprint(sim.planned), func(env string) quality {
		if env == source {
			return degradesLater
		}
		return well
	})
	sim.releaseMany(c, time.Duration(6+r.IntN(4))*time.Minute, r)
}

// outrun, in some cases, has a release that a promotion has just brought to an environment
// withdrawn at its source, where then many more releases come. It stays where it is, is verified,
// and goes no further.
func (sim *Simulation) outrun(p target, tag string) {
	source := target{p.component, sim.scenario.environments[0].name}
	isLast := !slices.ContainsFunc(sim.scenario.environments, func(e environment) bool { return slices.Contains(e.after, p.env) })
	if !sim.scenario.insiders || !sim.faulty || isLast || sim.chance.IntN(20) > 0 {
		return
	}
	r := sim.ownChance()
	sim.after(sim.between(time.Second, 20*time.Second), func() {
		if sim.faulty && sim.tagAt(sim.head(), source) == tag {
			sim.goBackOf(p.component, r)
			sim.releaseMany(p.component, 20*time.Second, r)
		}
	})
}

func (sim *Simulation) releaseMany(c string, at time.Duration, r *rand.Rand) {
	for range quickReleases {
		at += time.Duration(3+r.IntN(8)) * time.Second
		sim.after(at, func() {
			if sim.faulty {
				sim.releaseOne(c, r, true)
			}
		})
	}
}

// quickReleases is how many come one after the other: more than are kept of an environment.
const quickReleases = 55
