package sim

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/world/memoryforge"
)

// statusForge takes a status, or refuses it.
type statusForge struct {
	forge.Forge
	err error
}

func (s statusForge) SetStatus(context.Context, forge.Repo, string, forge.Status) error { return s.err }

// TestSeenByItsStatus takes a head for shown only once its status has been set.
func TestSeenByItsStatus(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		left int
	}{
		"it is set":     {nil, 1},
		"it is refused": {errors.New("no more than 1000 statuses"), 2},
	} {
		sim := &Simulation{ctx: t.Context(), truth: newTruth(), forge: memoryforge.New(memoryforge.Options{Now: time.Now})}
		sim.forge.AddUser(reviewer, 1, false)
		sim.forge.AddRepo(sim.repo, git.NewMemoryRemote(), trunk)
		sim.must(sim.forge.SetPermission(sim.repo, reviewer, forge.PermissionRead))
		sim.truth.pushed["one"], sim.truth.pushed["another"] = pushedHead{"c1", time.Time{}}, pushedHead{"c2", time.Time{}}
		f := sim.reachForge(statusForge{err: c.err})
		if err := f.SetStatus(t.Context(), forge.Repo{}, "c1", forge.Status{}); !errors.Is(err, c.err) || len(sim.truth.pushed) != c.left {
			t.Errorf("%s: %v, and %d heads are left", name, err, len(sim.truth.pushed))
		}
	}
}
