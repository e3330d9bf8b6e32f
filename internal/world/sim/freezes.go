package sim

import (
	"math/rand/v2"
	"slices"
	"time"
)

// freezesNow says that a process is stopped here: most of all right before a merge.
func (sim *Simulation) freezesNow(t *task, op string, answered bool) bool {
	if !sim.faulty || !sim.scenario.freezes || answered {
		return false
	}
	switch op {
	case "Merge":
		return sim.chance.IntN(12) == 0
	case "git push", "CreatePullRequest":
		return sim.chance.IntN(60) == 0
	}
	return false
}

// freeze stops a process as it is; when it goes on, it knows of nothing that happened meanwhile.
func (sim *Simulation) freeze(p *process, d time.Duration) {
	sim.report("%s stands still for %v", p.name, d)
	sim.trouble, p.frozen = sim.now, sim.now.Add(d)
	sim.after(d, func() { sim.trouble = sim.now })
}

// freezeOne stops one of the servers, whatever it is at.
func (sim *Simulation) freezeOne(r *rand.Rand) {
	awake := slices.DeleteFunc(slices.Clone(sim.processes), func(p *process) bool { return p.dead || p.frozen.After(sim.now) })
	if len(awake) > 0 {
		sim.freeze(pick(r, awake), time.Duration(10+r.IntN(110))*time.Second)
	}
}
