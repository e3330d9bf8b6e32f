package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/server/config"
	"github.com/liftlock/liftlock/internal/wording"
)

// Targets resolves pipelines to their targets.
type Targets interface {
	// Resolve resolves what the newest fetched commit of a checkout's tracked branch has, as the
	// server would. all are the checkouts that generators may read of. The error is for what can't
	// be read; what can't be resolved is in the answer.
	Resolve(ctx context.Context, of *Checkout, all []*Checkout) ([]PipelineTargets, error)
}

// Checkout is a repository of the server's file as it was fetched.
type Checkout struct {
	Config *config.Repository
	URL    string // by which it was fetched
	Mirror *git.Mirror

	usable []string // the pipelines by name whose sources are there
	remove func()
}

// PipelineTargets is what a pipeline was resolved to.
type PipelineTargets struct {
	Pipeline            string
	Targets, Components int
	Problems            []string // what couldn't be resolved, and why
	// Unread says why an Argo CD that runs one of its sets couldn't be read; nil: all could.
	Unread error
	// Discover tries at the registries what comes in by itself; nil: nothing does.
	Discover func(ctx context.Context) *Discovered
}

// checkouts are those of one run, from the repositories' parts, which run side by side.
type checkouts struct {
	mu  sync.Mutex
	all []*Checkout
}

func (c *checkouts) add(one *Checkout) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, one)
}

// removeAll removes the checkouts' folders.
func (c *checkouts) removeAll() {
	for _, one := range c.all {
		one.remove()
	}
}

// checkTargets resolves the pipelines of all repositories, when all of those were fetched: sets of
// one may generate from files of another.
func (d *doctor) checkTargets(ctx context.Context) findings {
	if d.Targets == nil {
		return nil
	}
	names := make([]string, len(d.Config.Repositories)) // as the server's file has them
	for i := range d.Config.Repositories {
		names[i] = d.Config.Repositories[i].Forge + ":" + d.Config.Repositories[i].Name
	}
	slices.SortFunc(d.checkouts.all, func(a, b *Checkout) int {
		return slices.Index(names, a.Config.Forge+":"+a.Config.Name) - slices.Index(names, b.Config.Forge+":"+b.Config.Name)
	})
	var parts []part
	for _, c := range d.checkouts.all {
		if len(c.usable) > 0 {
			parts = append(parts, func(ctx context.Context) findings { return d.checkTargetsOf(ctx, c) })
		}
	}
	return runParts(ctx, parts)
}

func (d *doctor) checkTargetsOf(ctx context.Context, c *Checkout) (found findings) {
	resolving, cancel := d.limit(ctx)
	defer cancel()
	resolved, err := d.Targets.Resolve(resolving, c, d.checkouts.all)
	if err != nil {
		found.add("targets-unread", "targets in "+c.Config.Name, err.Error(),
			"try again; liftlock resolve in a checkout says what its files alone come to")
		return found
	}
	for _, p := range resolved {
		if !slices.Contains(c.usable, p.Pipeline) {
			continue
		}
		judgeTargets(&found, fmt.Sprintf("targets of %s in %s", p.Pipeline, c.Config.Name), &p)
		if p.Discover != nil {
			found = append(found, d.checkDiscovered(ctx, fmt.Sprintf("discover of %s in %s", p.Pipeline, c.Config.Name), p.Discover)...)
		}
	}
	return found
}

// judgeTargets judges what one pipeline was resolved to.
func judgeTargets(found *findings, where string, p *PipelineTargets) {
	const cure = "correct it: until then the targets from before stay in force, and nothing of theirs is opened or merged; liftlock " +
		"resolve in a checkout shows the rest"
	switch {
	case p.Unread != nil && (len(p.Problems) > 0 || p.Targets == 0):
		found.add("targets-unread", where, "not all is known: "+p.Unread.Error(), "mend what is said of that Argo CD")
	case len(p.Problems) > 0:
		lines := p.Problems
		if len(lines) > maxErrorsShown {
			lines = append(slices.Clone(lines[:maxErrorsShown]), fmt.Sprintf("and %d more", len(lines)-maxErrorsShown))
		}
		found.add("targets-unresolved", where, strings.Join(lines, "; "), cure)
	case p.Targets == 0:
		found.add("targets-none", where, "the ApplicationSets generate nothing that its templates give a component and an environment, "+
			"so there is nothing to promote", "see what liftlock resolve shows in a checkout; correct the generators' paths, or "+
			"component and environment in the pipeline file")
	default:
		found.add(CodeTargets, where, fmt.Sprintf("%s of %s", wording.Count(p.Targets, "target"), wording.Count(p.Components, "component")),
			"")
	}
}
