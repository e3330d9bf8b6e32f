package doctor

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/liftlock/liftlock/internal/config"
	"github.com/liftlock/liftlock/internal/forge"
)

// DefaultTimeout is how long one part may take: a forge that answers slowly does so within it,
// and nobody waits longer for one that doesn't answer.
const DefaultTimeout = 30 * time.Second

// Forge is what is read of a forge: the part of the drivers that changes nothing.
type Forge interface {
	forge.Inspector
	Me(ctx context.Context) (forge.User, error)
}

// Options say what is checked.
type Options struct {
	Config  *config.Config   // as the server would run with it
	Host    Host             // nil: this machine
	Forges  map[string]Forge // by their names in the file
	Now     func() time.Time // nil: time.Now
	Timeout time.Duration    // of each part; 0: DefaultTimeout
}

// doctor is one run.
type doctor struct {
	Options
}

// part is something that is checked by itself, in its own time.
type part func(ctx context.Context) findings

// Run checks everything. It ends in little more than the longest part's time, also where
// nothing answers.
func Run(ctx context.Context, o Options) *Report {
	if o.Host == nil {
		o.Host = System{}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	d := &doctor{o}
	parts := []part{d.checkHost, d.checkFile}
	for i := range o.Config.Forges {
		parts = append(parts, func(ctx context.Context) findings { return d.checkForge(ctx, &o.Config.Forges[i]) })
	}
	return &Report{Findings: runParts(ctx, o.Timeout, parts)}
}

// runParts runs the parts side by side and gives what they found in their order.
func runParts(ctx context.Context, timeout time.Duration, parts []part) findings {
	found := make([]findings, len(parts))
	var wg sync.WaitGroup
	for i, run := range parts {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			found[i] = run(ctx)
		})
	}
	wg.Wait()
	return slices.Concat(found...)
}

// checkForge checks a forge's credentials, and then, side by side, its repositories.
func (d *doctor) checkForge(ctx context.Context, c *config.Forge) findings {
	f := d.Forges[c.Name]
	found, usable := d.checkCredentials(ctx, c, f)
	if !usable {
		return found // each repository would say the same
	}
	var parts []part
	for i := range d.Config.Repositories {
		if r := &d.Config.Repositories[i]; r.Forge == c.Name {
			parts = append(parts, func(ctx context.Context) findings { return d.checkRepository(ctx, c, r, f) })
		}
	}
	return append(found, runParts(context.WithoutCancel(ctx), d.Timeout, parts)...)
}
