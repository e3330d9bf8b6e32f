package sim

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
)

// The people of every world.
const (
	author   = "ana"     // makes the releases
	reviewer = "bob"     // approves, merges, gives commands
	second   = "carol"   // approves
	third    = "dan"     // approves
	fourth   = "erin"    // approves, where one of the others may not
	intruder = "mallory" // may write, and forges
	stranger = "sam"     // may only read
)

func (sim *Simulation) addUsers() {
	sim.forge.AddUser(bot, botID, true)
	sim.forge.AddRepo(sim.repo, sim.remote, trunk)
	for i, login := range []string{author, reviewer, second, intruder, stranger, third, fourth} {
		sim.forge.AddUser(login, int64(i+1), false)
		sim.must(sim.forge.SetPermission(sim.repo, login, map[bool]forge.Permission{true: forge.PermissionRead,
			false: forge.PermissionWrite}[login == stranger]))
	}
	sim.must(sim.forge.SetPermission(sim.repo, bot, forge.PermissionAdmin))
	if sim.scenario.queues {
		sim.must(sim.forge.QueueMerges(sim.repo))
	}
}

// must is for what only a mistake in the simulation itself can make fail.
func (sim *Simulation) must(err error) {
	if err != nil {
		sim.broke("harness", "%v", err)
	}
}

// deed is something that a person does, or that befalls the world.
type deed struct {
	name   string
	weight int
	do     func(sim *Simulation, r *rand.Rand)
}

// deeds are all that may happen, and how often, one against another.
var deeds = []deed{
	{"release", 46, (*Simulation).release},
	{"stray push", 4, (*Simulation).pushDocs},
	{"hold a pull request", 4, (*Simulation).holdPull},
	{"hold", 3, (*Simulation).holdByCommand},
	{"promote", 4, (*Simulation).promoteByCommand},
	{"revert", 2, (*Simulation).revertByCommand},
	{"retry", 3, (*Simulation).retryByCommand},
	{"close", 3, (*Simulation).closePull},
	{"edit a body", 3, (*Simulation).editBody},
	{"forge a head", 4, (*Simulation).forgeHead},
	{"delete a branch", 2, (*Simulation).deleteBranch},
	{"hotfix", 2, (*Simulation).hotfix},
	{"break the pipeline", 2, (*Simulation).breakPipeline},
	{"chat", 4, (*Simulation).chat},
	{"forge a delivery", 2, (*Simulation).forgeDelivery},
	{"incident", 2, (*Simulation).incident},
	{"pin", 4, (*Simulation).pin},
	{"outage", 6, (*Simulation).outage},
	{"kill", 3, (*Simulation).killOne},
	{"machines sleep", 2, (*Simulation).sleepMachines},
	{"lose the database", 1, (*Simulation).loseStore},
}

// planActs plans what happens. Each has chance of its own, so that leaving one out
// changes no other.
func (sim *Simulation) planActs() {
	r := rand.New(rand.NewPCG(uint64(sim.Seed), 3))
	all := deeds
	if sim.scenario.insiders {
		all = slices.Concat(deeds, insiderDeeds)
	}
	if sim.scenario.discovers {
		all = slices.Concat(all, registryDeeds)
	}
	total := 0
	for _, a := range all {
		total += a.weight
	}
	pace := []time.Duration{90 * time.Second, 3 * time.Minute, 6 * time.Minute}[r.IntN(3)]
	calm := r.IntN(4) == 0 // nothing but releases, which would supersede each other more quickly than they are verified
	if calm {
		pace *= 2
	}
	for at := time.Minute; at < sim.Lasts; at += time.Duration(r.Int64N(int64(2 * pace))) {
		draw, which := r.IntN(total), 0
		for draw >= all[which].weight {
			draw -= all[which].weight
			which++
		}
		if calm {
			which = 0
		}
		n := sim.result.Acts
		sim.result.Acts++
		if sim.Without[n] {
			continue
		}
		sim.after(at, func() {
			sim.report("[%d] %s", n, all[which].name)
			all[which].do(sim, rand.New(rand.NewPCG(uint64(sim.Seed), uint64(1000+n))))
		})
	}
}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

// commit writes files onto the trunk as somebody.
func (sim *Simulation) commit(login, message string, files map[string]string) {
	head := sim.head()
	ident := sim.forge.Ident(login)
	sha, err := sim.remote.Write(sim.ctx, git.CommitSpec{Parents: []string{head}, Base: head, Files: fileWrites(files), Message: message,
		Author: &ident, Committer: &ident, When: sim.now})
	sim.must(err)
	if err == nil {
		sim.must(sim.forge.Push(sim.repo, login, trunk, sha, false))
	}
}

// release brings a new release into the source environment.
func (sim *Simulation) release(r *rand.Rand) {
	for _, c := range sim.scenario.components {
		if r.IntN(len(sim.scenario.components)) > 0 && c != sim.scenario.components[0] {
			continue
		}
		sim.releaseOne(c, r, false)
	}
}

// releaseNext lets the author go on to the next release of what has arrived everywhere
// with a commit: releases that follow each other more quickly supersede each other.
func (sim *Simulation) releaseNext(head string) {
	if !sim.faulty || sim.Without[WithoutNextReleases] {
		return
	}
	for _, c := range sim.scenario.components {
		tag := sim.tagAt(head, target{c, sim.scenario.environments[0].name})
		if sim.truth.arrived[c] == tag || !sim.isEverywhere(head, c, tag) {
			continue
		}
		sim.truth.arrived[c] = tag
		r := rand.New(rand.NewPCG(uint64(sim.Seed), sim.chance.Uint64()))
		sim.after(sim.between(20*time.Second, 3*time.Minute), func() {
			if sim.faulty && sim.tagAt(sim.head(), target{c, sim.scenario.environments[0].name}) == tag {
				sim.releaseOne(c, r, false)
			}
		})
	}
}

// isEverywhere says whether a release of a component is wherever it comes without being
// asked for.
func (sim *Simulation) isEverywhere(head, component, tag string) bool {
	return !slices.ContainsFunc(sim.scenario.environments, func(e environment) bool {
		return !sim.scenario.needsCommand(e.name) && sim.tagAt(head, target{component, e.name}) != tag
	})
}

func (sim *Simulation) releaseOne(c string, r *rand.Rand, good bool) {
	sim.planned++
	tag := fmt.Sprint(sim.planned)
	sim.releaseAs(c, tag, func(string) quality {
		if !good && r.IntN(12) == 0 {
			return quality(1 + r.IntN(2))
		}
		return well
	})
}

// releaseAs releases a component with a tag, which will be in each environment as is said.
func (sim *Simulation) releaseAs(c, tag string, becomes func(env string) quality) {
	sim.drawQuality(c, tag, becomes)
	source, maker := target{c, sim.scenario.environments[0].name}, author
	if sim.scenario.shared && sim.chance.IntN(3) == 0 {
		maker = second
	}
	sim.truth.noteMaker(deployment{source, tag}, maker)
	sim.report("%s releases %s of %s%s", maker, tag, c, sim.describeQuality(c, tag))
	sim.commit(maker, "Release "+c+" "+tag, map[string]string{sim.scenario.file(source): sim.scenario.overlayWith(c, tag)})
}

// drawQuality fixes what becomes of a release.
func (sim *Simulation) drawQuality(c, tag string, becomes func(env string) quality) {
	for _, e := range sim.scenario.environments {
		sim.truth.quality[deployment{target{c, e.name}, tag}] = becomes(e.name)
	}
}

func (sim *Simulation) describeQuality(c, tag string) string {
	out := ""
	for _, e := range sim.scenario.environments {
		if q := sim.truth.quality[deployment{target{c, e.name}, tag}]; q != well {
			out += fmt.Sprintf(", which will be unwell in %s%s", e.name, map[quality]string{degradesLater: " after a while"}[q])
		}
	}
	return out
}

func (sim *Simulation) pushDocs(*rand.Rand) {
	sim.planned++
	sim.commit(author, "Docs", map[string]string{"README.md": fmt.Sprintf("Overlays, %d.\n", sim.planned)})
}

// ours are the open pull requests of the service.
func (sim *Simulation) ours() []forge.PullRequest {
	return slices.DeleteFunc(sim.openPulls(), func(pr forge.PullRequest) bool { return pr.Author != bot })
}

// onOne does something to one of the service's open pull requests, if there is one.
func (sim *Simulation) onOne(r *rand.Rand, do func(pr forge.PullRequest, ref promotion.BranchRef)) {
	open := sim.ours()
	if len(open) == 0 {
		return
	}
	pr := pick(r, open)
	if ref, ok := promotion.ParseBranch(pr.Branch); ok {
		do(pr, ref)
	}
}

// componentsOf are those that a pull request is about.
func (sim *Simulation) componentsOf(ref promotion.BranchRef) []string {
	if ref.Component == promotion.BatchName {
		return sim.scenario.components
	}
	return []string{ref.Component}
}

// movedBy are the components of which a pull request changes something.
func (sim *Simulation) movedBy(number int, env string) []string {
	pr, err := sim.forge.As(reviewer).PullRequest(sim.ctx, sim.repo, number)
	sim.must(err)
	if err != nil || sim.truth.forged[number] {
		return nil // what it is about isn't what its head changes
	}
	return slices.DeleteFunc(slices.Clone(sim.scenario.components), func(c string) bool { return !sim.changes(pr, target{c, env}) })
}

func (sim *Simulation) say(login string, number int, text string) (comment int64) {
	sim.report("%s says on #%d: %s", login, number, text)
	comment, err := sim.forge.Comment(sim.repo, number, login, text)
	sim.must(err)
	sim.noteSaid(comment, login, number, text)
	return comment
}

// noteReaction keeps what the service says that it has done.
func (sim *Simulation) noteReaction(comment int64, reaction string) {
	delete(sim.truth.said, comment)
	if reaction == "+1" {
		for _, d := range sim.truth.revertComments[comment] {
			sim.truth.wantedBack[d] = sim.now
		}
	}
	if text, known := sim.truth.strangers[comment]; known && reaction == "+1" {
		sim.broke(ruleStranger, "%q is acknowledged, and %s may only read", text, stranger)
	}
	if number, holds := sim.truth.holdComments[comment]; holds && reaction == "+1" {
		sim.truth.acknowledged[number] = sim.now
		delete(sim.truth.holdComments, comment)
	}
	if h, holds := sim.truth.wideHolds[comment]; holds && reaction == "+1" && h.since.IsZero() {
		h.since = sim.now
		// It may be composed anew for others while it is read.
		still := sim.movedBy(h.pull, h.env)
		h.components = slices.DeleteFunc(h.components, func(c string) bool { return !slices.Contains(still, c) })
		sim.truth.wideHolds[comment] = h
		if sim.scenario.insiders && sim.faulty && sim.chance.IntN(3) == 0 {
			r := sim.ownChance()
			sim.after(sim.between(time.Second, 40*time.Second), func() { sim.removeHold(r) })
		}
	}
}

// forgetHold forgets what was said of a hold: somebody who may lifts it.
func (sim *Simulation) forgetHold(number int) {
	delete(sim.truth.acknowledged, number)
	maps.DeleteFunc(sim.truth.holdComments, func(_ int64, of int) bool { return of == number })
}

func (sim *Simulation) holdPull(r *rand.Rand) {
	sim.onOne(r, func(pr forge.PullRequest, _ promotion.BranchRef) { sim.holdOne(&pr) })
}

func (sim *Simulation) holdOne(pr *forge.PullRequest) {
	if pr.HasLabel(promotion.LabelHold) {
		return // a label that is there can't be set again
	}
	sim.must(sim.forge.SetLabels(sim.repo, pr.Number, reviewer, append(slices.Clone(pr.Labels), promotion.LabelHold)...))
	sim.truth.heldSince[pr.Number] = sim.now
	sim.report("%s holds #%d by its label", reviewer, pr.Number)
	sim.after(sim.between(time.Minute, 15*time.Minute), func() { sim.liftPullHold(pr.Number) })
}

func (sim *Simulation) liftPullHold(number int) {
	delete(sim.truth.heldSince, number)
	sim.forgetHold(number)
	pr, err := sim.forge.As(reviewer).PullRequest(sim.ctx, sim.repo, number)
	sim.must(err)
	if err == nil && pr.HasLabel(promotion.LabelHold) {
		sim.report("%s takes the hold off #%d", reviewer, number)
		sim.must(sim.forge.SetLabels(sim.repo, number, reviewer,
			slices.DeleteFunc(slices.Clone(pr.Labels), func(l string) bool { return l == promotion.LabelHold })...))
	}
}

func (sim *Simulation) holdByCommand(r *rand.Rand) {
	sim.onOne(r, func(pr forge.PullRequest, ref promotion.BranchRef) {
		scope := pick(r, []string{"", "component", "environment", "pipeline"})
		var held []string
		hold := func() {
			comment := sim.say(reviewer, pr.Number, "/liftlock hold "+scope)
			held = sim.movedBy(pr.Number, ref.Environment)
			if scope == "" {
				sim.truth.holdComments[comment] = pr.Number
			} else {
				sim.truth.wideHolds[comment] = wideHold{pull: pr.Number, scope: scope, env: ref.Environment, components: held}
			}
		}
		if r.IntN(2) == 0 {
			sim.say(stranger, pr.Number, "wait")
			sim.sayWhileRead(pr.Number, hold)
		} else {
			hold()
		}
		sim.after(sim.between(time.Minute, 15*time.Minute), func() {
			sim.forgetHold(pr.Number)
			if scope == "" {
				delete(sim.truth.heldSince, pr.Number) // the label goes with it, whoever set it
			}
			// Another one of the same is lifted with it.
			maps.DeleteFunc(sim.truth.wideHolds, func(_ int64, h wideHold) bool { return h.scope == scope })
			sim.say(reviewer, pr.Number, "/liftlock unhold "+scope)
			if !sim.scenario.batch || scope != "component" {
				return
			}
			moved := sim.movedBy(pr.Number, ref.Environment)
			for _, c := range held {
				if !slices.Contains(moved, c) {
					sim.excuse(c, excusedByHold)
				}
			}
		})
	})
}

func (sim *Simulation) promoteByCommand(r *rand.Rand) {
	sim.onOne(r, func(pr forge.PullRequest, ref promotion.BranchRef) {
		if ref.Revert {
			return
		}
		sim.promoteTo(pick(r, []string{reviewer, reviewer, stranger}), pr, ref)
	})
}

// promoteTo asks for a promotion into the environment that a pull request is about.
func (sim *Simulation) promoteTo(who string, pr forge.PullRequest, ref promotion.BranchRef) {
	if who == reviewer {
		for _, c := range sim.componentsOf(ref) {
			sim.truth.lifted[target{c, ref.Environment}] = sim.now
		}
		sim.forgetVetoes(ref)
	}
	sim.say(who, pr.Number, "/liftlock promote "+ref.Environment)
	if who == reviewer {
		for _, c := range sim.componentsOf(ref) {
			sim.truth.promotes[target{c, ref.Environment}]++
		}
	}
}

func (sim *Simulation) revertByCommand(r *rand.Rand) {
	merged, err := sim.forge.As(bot).PullRequests(sim.ctx, sim.repo, time.Time{})
	sim.must(err)
	merged = slices.DeleteFunc(merged, func(pr forge.PullRequest) bool { return pr.Author != bot || pr.State != forge.Merged })
	if len(merged) == 0 {
		return
	}
	pr := pick(r, merged)
	sim.requestRevert(&pr)
}

// excusedByRevert is why a component is excused of which a person wanted something to be taken back.
const excusedByRevert = "a person asked for a revert"

// excusedByHold is why one is excused for good that a hold keeps.
const excusedByHold = "a hold on it stays that was set in a pull request which doesn't move it any more"

func (sim *Simulation) requestRevert(pr *forge.PullRequest) {
	ref, ok := promotion.ParseBranch(pr.Branch)
	if !ok || ref.Revert {
		return
	}
	for _, c := range sim.componentsOf(ref) {
		sim.truth.requestedReverts[target{c, ref.Environment}] = true
		sim.excuse(c, excusedByRevert)
	}
	comment := sim.say(reviewer, pr.Number, "/liftlock revert looks odd")
	for _, c := range sim.componentsOf(ref) {
		p := target{c, ref.Environment}
		sim.truth.revertComments[comment] = append(sim.truth.revertComments[comment], deployment{p, sim.tagAt(sim.head(), p)})
	}
}

func (sim *Simulation) retryByCommand(r *rand.Rand) {
	sim.onOne(r, func(pr forge.PullRequest, ref promotion.BranchRef) {
		sim.retry(pick(r, []string{reviewer, stranger}), pr.Number, ref)
	})
}

func (sim *Simulation) retry(who string, number int, ref promotion.BranchRef) {
	if who == reviewer {
		sim.forgetVetoes(ref)
		delete(sim.truth.joined, number) // it may join the merge queue again
	}
	sim.say(who, number, "/liftlock retry")
}

// forgetVetoes forgets what was closed of what a pull request is about: somebody who may
// wants it again.
func (sim *Simulation) forgetVetoes(ref promotion.BranchRef) {
	maps.DeleteFunc(sim.truth.vetoed, func(d deployment, _ int) bool {
		return d.target.env == ref.Environment && slices.Contains(sim.componentsOf(ref), d.target.component)
	})
}

func (sim *Simulation) closePull(r *rand.Rand) {
	sim.onOne(r, sim.closeOne)
}

func (sim *Simulation) closeOne(pr forge.PullRequest, ref promotion.BranchRef) {
	sim.report("%s closes %s", reviewer, describePull(pr.Number, pr.Branch))
	sim.must(sim.forge.Close(sim.repo, pr.Number, reviewer))
	for _, c := range sim.componentsOf(ref) {
		p := target{c, ref.Environment}
		if ref.Revert {
			sim.excuse(c, "a person closed a revert")
		} else if tag := sim.tagAt(pr.Head, p); tag != sim.tagAt(sim.head(), p) && !pr.HasLabel(promotion.LabelSuperseded) {
			sim.truth.vetoed[deployment{p, tag}] = pr.Number
		}
	}
	sim.relabel(pr.Number, ref)
}

// hotfix puts another release into an environment by hand: a new one, or an old one.
func (sim *Simulation) hotfix(r *rand.Rand) {
	c := pick(r, sim.scenario.components)
	p := target{c, pick(r, sim.scenario.environments[1:]).name}
	tag := firstTag
	if r.IntN(2) == 0 {
		sim.planned++
		tag = fmt.Sprintf("%d-hotfix", sim.planned)
	}
	if sim.tagAt(sim.head(), p) == tag {
		return
	}
	sim.excuse(c, "a person put a release into "+p.env)
	sim.commit(reviewer, "Hotfix "+c, map[string]string{sim.scenario.file(p): sim.scenario.overlayWith(c, tag)})
}

func (sim *Simulation) breakPipeline(r *rand.Rand) {
	if sim.truth.brokenSince.IsZero() {
		sim.truth.brokenSince = sim.now
	}
	sim.commit(reviewer, "Improve the pipeline", map[string]string{pipelineAt: sim.scenario.pipelineFile() + pick(r,
		[]string{"  oops: true\n", "\t{", "    - {name: dev}\n"})})
	sim.after(sim.between(time.Minute, 10*time.Minute), sim.mendPipeline)
}

func (sim *Simulation) mendPipeline() {
	data, err := sim.remote.Tree(sim.head()).ReadFile(pipelineAt)
	sim.must(err)
	if string(data) != sim.scenario.pipelineFile() {
		sim.truth.brokenSince = time.Time{}
		sim.commit(reviewer, "Mend the pipeline", map[string]string{pipelineAt: sim.scenario.pipelineFile()})
	}
}

func (sim *Simulation) chat(r *rand.Rand) {
	sim.onOne(r, func(pr forge.PullRequest, _ promotion.BranchRef) {
		text := pick(r, []string{"nice", "/liftlock promte", "/liftlock status", "/liftlock unhold", "/liftlock revert"})
		who := stranger // who may do nothing; the author may write, and what she says is done
		if !strings.HasSuffix(text, "unhold") && !strings.HasSuffix(text, "revert") {
			who = pick(r, []string{stranger, author})
		}
		sim.say(who, pr.Number, text)
	})
}
