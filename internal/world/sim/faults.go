package sim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
)

// part is something outside of the service's processes that can be away.
type part string

const (
	theStore  part = "store"
	theForge  part = "forge"
	theGit    part = "git"
	theArgoCD part = "argocd"
)

// faults are what may go wrong, and how often, in thousandths of all calls.
type faults struct {
	before, after, slow, crash int
	switching                  int // how often another task goes on, in hundredths
}

// drawFaults draws how rough a world is.
func drawFaults(r *rand.Rand) faults {
	rough := []int{0, 2, 8, 25}[r.IntN(4)]
	return faults{before: rough, after: rough / 2, slow: rough, crash: []int{0, 0, 1, 2}[r.IntN(4)], switching: []int{2, 10, 40}[r.IntN(3)]}
}

// What Options.Without may leave out besides what people do.
const (
	WithoutCrashes = -1 - iota
	WithoutSlowness
	WithoutLostAnswers
	WithoutFailures
	WithoutInsiders // who do on the spot what needs its moment
	WithoutFreezes
	WithoutNextReleases // by an author whose last release has arrived
)

// leaveOut takes kinds of faults out.
func (f *faults) leaveOut(without map[int]bool) {
	for kind, rate := range map[int]*int{WithoutCrashes: &f.crash, WithoutSlowness: &f.slow, WithoutLostAnswers: &f.after,
		WithoutFailures: &f.before} {
		if without[kind] {
			*rate = 0
		}
	}
}

var errAnswerLost = errors.New("the connection broke before the answer came")

// failure is an error as the part gives it.
func (sim *Simulation) failure(of part, op string, answered bool) error {
	switch of {
	case theForge:
		e := &forge.Error{Op: op, Kind: forge.ErrRetryable, Status: 502, Message: "Bad Gateway"}
		if answered {
			e.Status, e.Err = 0, errAnswerLost
		} else if sim.chance.IntN(4) == 0 {
			e.Kind, e.Status, e.RetryAfter = forge.ErrRateLimited, 429, sim.now.Add(time.Duration(1+sim.chance.IntN(60))*time.Second)
			// Runs that it puts off come up to a tenth later than it says.
			if until := e.RetryAfter.Add(e.RetryAfter.Sub(sim.now) / 10); until.After(sim.limits) {
				sim.limits = until
			}
		}
		return e
	case theStore:
		sim.storeFailures++
	case theGit:
		return &git.Error{Op: op, Kind: git.ErrRemote, Err: errAnswerLost}
	}
	return fmt.Errorf("%s: %w", op, errAnswerLost)
}

// reach is called before everything that a task does outside of its process, and again after calls
// that have an effect there. Its answer may be that the call fails, or that the process is gone.
// Others may go on meanwhile.
func (sim *Simulation) reach(t *task, of part, op string, answered bool) error {
	if t == nil {
		return nil // the world itself
	}
	if t.dead {
		return errKilled
	}
	sim.now = sim.now.Add(time.Duration(1+sim.chance.IntN(9)) * time.Millisecond)
	sim.steps++
	if sim.faulty {
		if err := sim.meetFault(t, of, op, answered); err != nil {
			return err
		}
	}
	if sim.dawdles() {
		if sim.sleep(t, sim.between(50*time.Millisecond, 1500*time.Millisecond)); t.dead {
			return errKilled
		}
	}
	if sim.freezesNow(t, op, answered) {
		sim.freeze(t.process, sim.between(25*time.Second, 2*time.Minute))
		sim.yield(t)
	}
	if sim.chance.IntN(100) < sim.faults.switching || len(sim.agenda) > 0 && !sim.agenda[0].at.After(sim.now) {
		sim.yield(t)
	}
	if t.dead {
		return errKilled
	}
	if until := sim.away[of]; sim.now.Before(until) {
		return sim.failure(of, op, answered)
	}
	return nil
}

func (sim *Simulation) meetFault(t *task, of part, op string, answered bool) error {
	draw := sim.chance.IntN(1000)
	f := sim.faults
	if draw < f.crash+f.before || draw >= 1000-f.slow {
		sim.trouble = sim.now
	}
	switch {
	case draw < f.crash:
		sim.report("%s is killed at %s%s", t.process.name, op, map[bool]string{true: ", after its effect"}[answered])
		sim.kill(t.process)
		return errKilled
	case answered && draw < f.crash+f.after, !answered && draw < f.crash+f.before:
		sim.report("%s: %s fails%s", t.process.name, op, map[bool]string{true: " after its effect"}[answered])
		return sim.failure(of, op, answered)
	case draw >= 1000-f.slow:
		d := time.Duration(1+sim.chance.IntN(20)) * time.Second
		if sim.chance.IntN(10) == 0 {
			d = 45 * time.Second // its lease ends meanwhile
		}
		sim.report("%s: %s takes %v", t.process.name, op, d)
		sim.noteSlow(d)
		sim.sleep(t, d)
	}
	return nil
}

// noteSlow keeps that a call takes long.
func (sim *Simulation) noteSlow(d time.Duration) {
	sim.slow = slices.DeleteFunc(sim.slow, func(s span) bool { return sim.now.Sub(s.to) > lookedAtWithin })
	sim.slow = append(sim.slow, span{sim.now, sim.now.Add(d)})
}

// slowedSince is how much of the time since then slow calls took, of all processes together.
func (sim *Simulation) slowedSince(at time.Time) (sum time.Duration) {
	for _, s := range sim.slow {
		if s.from.Before(at) {
			s.from = at
		}
		if s.to.After(sim.now) {
			s.to = sim.now
		}
		sum += max(s.to.Sub(s.from), 0)
	}
	return sum
}
