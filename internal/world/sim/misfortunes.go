package sim

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
)

func (sim *Simulation) editBody(r *rand.Rand) {
	sim.onOne(r, func(pr forge.PullRequest, ref promotion.BranchRef) {
		sim.editBodyOf(pr, ref, pick(r, []string{"", "nothing to see", pr.Body + "\n<!-- liftlock:promotion release=" +
			hash("x") + " -->"}))
	})
}

func (sim *Simulation) editBodyOf(pr forge.PullRequest, ref promotion.BranchRef, body string) {
	sim.report("%s edits the text of #%d", intruder, pr.Number)
	for _, c := range sim.componentsOf(ref) {
		sim.truth.unmarked[c] = true
	}
	sim.must(sim.forge.EditBody(sim.repo, pr.Number, intruder, body))
}

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// forgeHead pushes another release over the service's branch: an intruder's own, or the
// newest there is, which people would approve. Half of the times the intruder approves it
// besides.
func (sim *Simulation) forgeHead(r *rand.Rand) {
	sim.onOne(r, func(pr forge.PullRequest, ref promotion.BranchRef) {
		c := sim.componentsOf(ref)[0]
		sim.planned++
		tag := fmt.Sprintf("evil-%d", sim.planned)
		if r.IntN(2) == 0 {
			tag = sim.tagAt(sim.head(), target{c, sim.scenario.environments[0].name})
		}
		sim.pushOver(pr, ref, c, tag, r.IntN(2) == 0)
	})
}

// pushOver pushes a release of a component over a pull request of the service, if that hasn't it
// already. A release that a person with write access approves besides keeps its place before newer
// ones.
func (sim *Simulation) pushOver(pr forge.PullRequest, ref promotion.BranchRef, c, tag string, approves bool) {
	p := target{c, ref.Environment}
	commit, err := sim.remote.Commit(sim.ctx, pr.Head)
	sim.must(err)
	if err != nil || tag == sim.tagAt(pr.Head, p) {
		return
	}
	head := sim.head()
	ident := sim.forge.Ident(bot)
	sha, err := sim.remote.Write(sim.ctx, git.CommitSpec{Parents: []string{head}, Base: head,
		Files: []git.FileWrite{{Path: sim.scenario.file(p), Content: []byte(sim.scenario.overlayWith(c, tag))}}, Message: commit.Message,
		Author: &ident, Committer: &ident, When: sim.now})
	sim.must(err)
	if err != nil {
		return
	}
	sim.report("%s pushes %s over %s", intruder, tag, describePull(pr.Number, pr.Branch))
	sim.must(sim.forge.Push(sim.repo, intruder, pr.Branch, sha, true))
	sim.truth.forged[pr.Number] = true
	for _, c := range sim.componentsOf(ref) {
		sim.excuse(c, "somebody pushed to the service's branch")
	}
	if approves {
		pr.Head = sha
		carried, _ := sim.carriedBy(&pr, ref)
		sim.approve(&pr, intruder, carried)
	}
}

func (sim *Simulation) deleteBranch(r *rand.Rand) {
	sim.onOne(r, func(pr forge.PullRequest, ref promotion.BranchRef) {
		sim.report("%s deletes the branch of #%d", intruder, pr.Number)
		sim.must(sim.forge.Push(sim.repo, intruder, pr.Branch, "", true))
		for _, c := range sim.componentsOf(ref) {
			sim.excuse(c, "somebody deleted the service's branch")
		}
	})
}

// forgeDelivery sends what claims to be the forge's.
func (sim *Simulation) forgeDelivery(*rand.Rand) {
	sim.deliverTo(fmt.Sprint("forged-", sim.planned), "push", `{"ref":"refs/heads/main","repository":{"full_name":"acme/fleet"}}`,
		hash("guessed"), false)
}

func (sim *Simulation) incident(r *rand.Rand) {
	sim.argocd.strike(time.Duration(1+r.IntN(8)) * time.Minute)
}

func (sim *Simulation) pin(r *rand.Rand) {
	x := pick(r, sim.argocd.apps)
	var which [workloads]bool
	which[r.IntN(workloads)] = true
	if r.IntN(2) == 0 {
		which = [workloads]bool{true, true}
	}
	if d := time.Duration(2+r.IntN(15)) * time.Minute; !sim.scenario.plain && x.health == healthy && x.runsAll() {
		sim.argocd.pin(x, which, d)
	}
}

// pinLanded keeps, in some cases, what one of a target's workloads runs as something else comes there.
func (sim *Simulation) pinLanded(p target) {
	x := sim.appOf(p)
	if !sim.faulty || sim.scenario.plain {
		return
	}
	if x.health != healthy || !x.runsAll() || sim.chance.IntN(24) > 0 {
		return
	}
	var which [workloads]bool
	which[sim.chance.IntN(workloads)] = true
	sim.argocd.pin(x, which, sim.between(2*time.Minute, 6*time.Minute))
}

func (sim *Simulation) outage(r *rand.Rand) {
	of := pick(r, []part{theStore, theStore, theForge, theGit, theArgoCD})
	sim.takeAway(of, time.Duration(1+r.IntN(120))*time.Second)
}

// takeAway lets a part be away for a while.
func (sim *Simulation) takeAway(of part, d time.Duration) {
	sim.report("%s is away for %v", of, d)
	if !sim.now.Before(sim.away[of]) {
		sim.left[of] = sim.now
	}
	if until := sim.now.Add(d); until.After(sim.away[of]) {
		sim.away[of] = until
	}
}

func (sim *Simulation) killOne(r *rand.Rand) {
	alive := slices.DeleteFunc(slices.Clone(sim.processes), func(p *process) bool { return p.dead })
	if len(alive) > 0 {
		p := pick(r, alive)
		sim.report("%s is killed", p.name)
		sim.kill(p)
	}
}

// sleepMachines has a process's machine sleep for a moment: its clock is behind from then on by
// that much more. That the time of day is set doesn't show between two readings of a clock
// that only ever goes forward, which is what the store asks.
func (sim *Simulation) sleepMachines(r *rand.Rand) {
	sim.trouble = sim.now
	for _, p := range sim.processes {
		if !p.dead {
			p.skew -= pick(r, sim.skews).Abs()
		}
	}
}

// isForgottenInQueue says that, without the database, nothing tells that what brings something to a
// target is the service's: somebody edited its text. It stays in the merge queue that it joined, as
// what anybody else pushed does.
func (sim *Simulation) isForgottenInQueue(p target) bool {
	if !sim.truth.unmarked[p.component] {
		return false
	}
	group, err := sim.forge.QueuedPulls(sim.repo)
	sim.must(err)
	return slices.ContainsFunc(group, func(number int) bool {
		return sim.truth.queued[number].by == bot && slices.Contains(sim.movedBy(number, p.env), p.component)
	})
}

// loseStore deletes the database under the servers, which start again with an empty one.
func (sim *Simulation) loseStore(*rand.Rand) {
	sim.report("the database is lost")
	for _, p := range sim.processes {
		sim.kill(p)
	}
	for t := sim.pickTask(); t != nil; t = sim.pickTask() {
		sim.switchTo(t)
	}
	sim.closeStore()
	sim.openStore()
	for c := range sim.truth.unmarked { // neither the mark nor the store says any more whose it was
		sim.excuse(c, "somebody edited a pull request's text, and the database was lost")
	}
	// A command that loosens may have to be given again, but for one that wasn't read yet.
	maps.Copy(sim.truth.liftedBefore, sim.truth.lifted)
	maps.DeleteFunc(sim.truth.lifted, func(p target, _ time.Time) bool { return !sim.isForgottenInQueue(p) })
	maps.DeleteFunc(sim.truth.withdrawn, func(_ deployment, w withdrawal) bool { return !w.inGit })
	for _, h := range sim.truth.health {
		h.badSeen = false
	}
	clear(sim.truth.joined) // what the merge queue dropped joins it once more
}
