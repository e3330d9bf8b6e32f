package server

import (
	"context"
	"fmt"

	"k8s.io/utils/clock"

	"github.com/liftlock/liftlock/internal/cache"
	"github.com/liftlock/liftlock/internal/server/doctor"
)

// Doctor checks the installation that a server with these options would be; of those, Config,
// Version and Clock count. No port is opened, no store, and nothing is written. The error is of a
// file that the server couldn't start with either.
func Doctor(ctx context.Context, o Options) (*doctor.Report, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	var caches cache.Group
	checks := doctor.Options{Config: o.Config, Now: o.Clock.Now, Forges: map[string]doctor.Forge{}}
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
	}
	return doctor.Run(ctx, checks), nil
}
