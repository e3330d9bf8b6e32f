package emulator

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"go.uber.org/zap"
)

// Options say how a World is made.
type Options struct {
	Dir  string           // where the repositories go; created when missing; required
	Pace Pace             // DemoPace or FastPace, or one's own
	Now  func() time.Time // the clock of both parts; nil: time.Now
	Log  *zap.Logger      // nil: silent
}

// World is a forge and an Argo CD that deploys from it.
type World struct {
	Forge  *Forge
	ArgoCD *ArgoCD
}

// New starts a world without people, repositories or Applications. The caller
// closes it.
func New(o Options) (*World, error) {
	forge, err := NewForge(ForgeOptions{Dir: filepath.Join(o.Dir, "repositories"), Now: o.Now, Log: o.Log, WholeSeconds: o.Pace.WholeSeconds})
	if err != nil {
		return nil, err
	}
	argo, err := NewArgoCD(ArgoOptions{Repos: forge, Pace: o.Pace, Now: o.Now, Log: o.Log})
	if err != nil {
		return nil, errors.Join(err, forge.Close())
	}
	return &World{Forge: forge, ArgoCD: argo}, nil
}

// Close stops both parts.
func (w *World) Close() error {
	if err := errors.Join(w.ArgoCD.Close(), w.Forge.Close()); err != nil {
		return fmt.Errorf("closing the emulated world: %w", err)
	}
	return nil
}
