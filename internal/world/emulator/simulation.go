package emulator

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/liftlock/liftlock/internal/world/argoemulator"
	"go.uber.org/zap"
)

// Options say how a World is made.
type Options struct {
	Dir     string               // where the repositories go; created when missing; required
	Timings argoemulator.Timings // DemoTimings or FastTimings, or one's own
	Face    Face                 // whose API the forge has; empty: GitHub's
	// KeepHooks, PublicLimits, RateLimit and SecondaryShare are the forge's, as in ForgeOptions.
	KeepHooks, PublicLimits   bool
	RateLimit, SecondaryShare int
	Now                       func() time.Time // the clock of both parts; nil: time.Now
	Log                       *zap.Logger      // nil: silent
}

// Simulation is a forge and an Argo CD that deploys from it.
type Simulation struct {
	Forge  *Forge
	ArgoCD *argoemulator.ArgoCD
}

// New starts a world without people, repositories or Applications. The caller
// closes it.
func New(o Options) (*Simulation, error) {
	forge, err := NewForge(ForgeOptions{Dir: filepath.Join(o.Dir, "repositories"), Now: o.Now, Log: o.Log, Face: o.Face,
		WholeSeconds: o.Timings.WholeSeconds,
		KeepHooks:    o.KeepHooks, PublicLimits: o.PublicLimits, RateLimit: o.RateLimit, SecondaryShare: o.SecondaryShare})
	if err != nil {
		return nil, err
	}
	argo, err := argoemulator.New(argoemulator.Options{Repos: forge, Timings: o.Timings, Now: o.Now, Log: o.Log})
	if err != nil {
		return nil, errors.Join(err, forge.Close())
	}
	return &Simulation{Forge: forge, ArgoCD: argo}, nil
}

// Close stops both parts.
func (s *Simulation) Close() error {
	if err := errors.Join(s.ArgoCD.Close(), s.Forge.Close()); err != nil {
		return fmt.Errorf("closing the emulated world: %w", err)
	}
	return nil
}
