package doctor

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/server/config"
)

// DefaultTimeout is how long one part may take: a forge that answers slowly does so within it,
// and nobody waits longer for one that doesn't answer.
const DefaultTimeout = 30 * time.Second

// Forge is what is read of a forge: the part of the drivers that changes nothing.
type Forge interface {
	forge.Inspector
	Me(ctx context.Context) (forge.User, error)
	CloneURL(ctx context.Context, r forge.Repo) (string, error)
	GitAuth(ctx context.Context, r forge.Repo) (username, password string, err error)
	Permission(ctx context.Context, r forge.Repo, login string) (forge.Permission, error)
	Rules(ctx context.Context, r forge.Repo, branch string) (*forge.BranchRules, error)
	PullRequests(ctx context.Context, r forge.Repo, since time.Time) ([]forge.PullRequest, error)
	Checks(ctx context.Context, r forge.Repo, commit string) ([]forge.Check, error)
}

// Options say what is checked.
type Options struct {
	Config  *config.Config    // as the server would run with it
	Host    Host              // nil: this machine
	Forges  map[string]Forge  // by their names in the file
	ArgoCDs map[string]ArgoCD // likewise
	Login   Login             // of the file's oidc; nil: it has none
	// Sources and Charts are those of the file, in its order.
	Sources, Charts []External
	Targets         Targets // nil: pipelines aren't resolved
	// Probers are the forges whose repositories are written to, to see whether that is let; nil:
	// nothing is written.
	Probers map[string]Prober
	Now     func() time.Time // nil: time.Now
	Timeout time.Duration    // of each part; 0: DefaultTimeout
}

// doctor is one run.
type doctor struct {
	Options
	checkouts checkouts
}

// part is something that is checked by itself, in its own time.
type part func(ctx context.Context) findings

// Run checks everything. It ends in little more than the times of a forge, a repository, its fetch
// and its targets, also where nothing answers. It ends at once where the context does.
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
	d := &doctor{Options: o}
	parts := []part{d.checkHost, d.checkFile}
	if o.Login != nil {
		parts = append(parts, d.checkLogin)
	}
	for _, e := range o.Sources {
		parts = append(parts, func(ctx context.Context) findings { return d.checkSource(ctx, e) })
	}
	for _, e := range o.Charts {
		parts = append(parts, func(ctx context.Context) findings { return d.checkCharts(ctx, e) })
	}
	for i := range o.Config.Forges {
		parts = append(parts, func(ctx context.Context) findings { return d.checkForge(ctx, &o.Config.Forges[i]) })
	}
	for i := range o.Config.ArgoCD {
		parts = append(parts, func(ctx context.Context) findings { return d.checkArgoCD(ctx, &o.Config.ArgoCD[i]) })
	}
	defer d.checkouts.removeAll()
	found := runParts(ctx, parts)
	return &Report{Findings: append(found, d.checkTargets(ctx)...)}
}

// limit gives what is done next its time.
func (d *doctor) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d.Timeout)
}

// runParts runs the parts side by side and gives what they found in their order. Each limits
// itself.
func runParts(ctx context.Context, parts []part) findings {
	found := make([]findings, len(parts))
	var wg sync.WaitGroup
	for i, run := range parts {
		wg.Go(func() { found[i] = run(ctx) })
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
	return append(found, runParts(ctx, parts)...)
}
