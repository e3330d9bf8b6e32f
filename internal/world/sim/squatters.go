package sim

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
)

// squatter is another account's branch, of a name that the service would use.
type squatter struct {
	target target
	head   string
	ended  time.Time // zero: it is there
}

// squat pushes a branch that the service would use next, and has it deleted after a while.
func (sim *Simulation) squat(r *rand.Rand) {
	p := target{pick(r, sim.scenario.components), pick(r, sim.scenario.environments[1:]).name}
	branch := sim.nextBranch(p, r)
	if _, there := sim.remote.Head(branch); there || branch == "" {
		return
	}
	sim.planned++
	head, ident := sim.head(), sim.forge.Ident(intruder)
	mine := fileWrites(map[string]string{"README.md": fmt.Sprintf("Mine, %d.\n", sim.planned)})
	sha, err := sim.remote.Write(sim.ctx, git.CommitSpec{Parents: []string{head}, Base: head, Files: mine, Message: "Mine", Author: &ident,
		Committer: &ident, When: sim.now})
	sim.must(err)
	if err != nil {
		return
	}
	sim.must(sim.forge.Push(sim.repo, intruder, branch, sha, false))
	sim.report("%s pushes %s", intruder, branch)
	sim.truth.squatters[branch] = squatter{target: p, head: sha}
	sim.after(sim.between(20*time.Second, 4*time.Minute), func() { sim.endSquatter(branch) })
}

// nextBranch is a branch that the service would use for a target: of a promotion, or of a revert of what is there;
// empty: it isn't known.
func (sim *Simulation) nextBranch(p target, r *rand.Rand) string {
	component := p.component
	if sim.scenario.batch {
		component = promotion.BatchName
	}
	if sim.scenario.batch || r.IntN(2) == 0 {
		return promotion.Branch(pipeline, p.env, component)
	}
	view, err := sim.viewOf(p.component)
	if err != nil || view == nil {
		return ""
	}
	for _, st := range view.Decision.Envs {
		if st.Environment == p.env && st.Release != "" {
			return promotion.RevertBranch(pipeline, p.env, component, st.Release)
		}
	}
	return ""
}

// endSquatter deletes another account's branch, if the service hasn't taken it over.
func (sim *Simulation) endSquatter(branch string) {
	s := sim.truth.squatters[branch]
	if !s.ended.IsZero() {
		return
	}
	s.ended = sim.now
	sim.truth.squatters[branch] = s
	if head, _ := sim.remote.Head(branch); head == s.head {
		sim.report("%s deletes %s", reviewer, branch)
		sim.must(sim.forge.Push(sim.repo, reviewer, branch, "", true))
	}
}

// endSquatters ends all that are there.
func (sim *Simulation) endSquatters() {
	for _, branch := range slices.Sorted(maps.Keys(sim.truth.squatters)) {
		sim.endSquatter(branch)
	}
}

// isSquatted says that another account uses a branch that the service would for a target, or did
// until the forge may not have reported yet that it is over.
func (sim *Simulation) isSquatted(p target) bool {
	for _, s := range sim.truth.squatters {
		sameTarget := s.target == p || sim.scenario.batch && s.target.env == p.env
		if sameTarget && (s.ended.IsZero() || sim.now.Sub(s.ended) < polledWithin) {
			return true
		}
	}
	return false
}
