package server

import (
	"context"
	"fmt"
	"time"

	"k8s.io/utils/clock"

	"github.com/liftlock/liftlock/internal/argocd"
	"github.com/liftlock/liftlock/internal/cache"
	"github.com/liftlock/liftlock/internal/server/doctor"
)

// Doctor checks the installation that a server with these options would be; of those, Config,
// Version and Clock count. No port is opened, no store, and nothing is written, unless what may be
// written is to be probed. The error is of a file that the server couldn't start with either.
func Doctor(ctx context.Context, o Options, probe bool) (*doctor.Report, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	var caches cache.Group
	checks := doctor.Options{Config: o.Config, Now: o.Clock.Now, Forges: map[string]doctor.Forge{}, ArgoCDs: map[string]doctor.ArgoCD{},
		Probers: map[string]doctor.Prober{}}
	for _, f := range o.Config.Forges {
		d, err := newDriver(o.Config, f, driverOptions{version: o.Version, caches: &caches, now: o.Clock.Now})
		if err != nil {
			return nil, fmt.Errorf("forge %s: %w", f.Name, err)
		}
		inspected, ok := d.(doctor.Forge)
		if !ok {
			return nil, fmt.Errorf("forge %s: its driver can't be inspected", f.Name)
		}
		checks.Forges[f.Name] = inspected
		if probe {
			checks.Probers[f.Name] = d
		}
	}
	for _, a := range o.Config.ArgoCD {
		options, err := argocdOptions(a)
		if err != nil {
			return nil, fmt.Errorf("argocd %s: %w", a.Name, err)
		}
		options.Kubeconfig, options.Context = a.Kubernetes.Kubeconfig, a.Kubernetes.Context
		checks.ArgoCDs[a.Name] = inspectedArgoCD{options}
	}
	consoleLogin, err := newLogin(o.Config, len(o.Config.API.Tokens) > 0, o.Clock.Now)
	if err != nil {
		return nil, err
	}
	checks.Sources = sourcesForDoctor(o.Config.Sources)
	if checks.Charts, err = chartsForDoctor(o.Config.Charts, o.Clock.Now); err != nil {
		return nil, err
	}
	if checks.Targets, err = newDoctorTargets(o.Config, o.Clock.Now); err != nil {
		return nil, err
	}
	if consoleLogin != nil && consoleLogin.Provider != nil {
		checks.Login = consoleLogin.Provider
	}
	return doctor.Run(ctx, checks), nil
}

// inspectedArgoCD is an Argo CD of the server's file, for doctor.
type inspectedArgoCD struct{ options argocd.Options }

// Inspect implements doctor.ArgoCD.
func (i inspectedArgoCD) Inspect(ctx context.Context, now time.Time) (*argocd.Inspection, error) {
	return argocd.Inspect(ctx, i.options, now)
}
