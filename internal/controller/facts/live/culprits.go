package live

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/argocd"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/verification"
)

const (
	// maxTreesAtOnce bounds the targets of which one decision asks what is unhealthy.
	maxTreesAtOnce = 50
	// treesTimeout bounds how long it may wait for the answers.
	treesTimeout = 20 * time.Second
	// treesRetry is when what failed is looked for again, where it may pass.
	treesRetry = 30 * time.Second
)

// treesBudget is what is left to one look for reading resource trees.
type treesBudget struct {
	ctx    context.Context // nil: none has been read
	cancel context.CancelFunc
}

// treesContext is of all reads of trees in a look: from the first one on they take treesTimeout
// together, since the decision about the unit waits for them. A remembered tree is answered after
// that too.
func (t *targetLook) treesContext() context.Context {
	if t.trees.ctx == nil {
		t.trees.ctx, t.trees.cancel = context.WithTimeout(t.ctx, treesTimeout)
	}
	return t.trees.ctx
}

func (t *treesBudget) stop() {
	if t.cancel != nil {
		t.cancel()
	}
}

// noteTreeError has what failed looked for again where that may pass, and waits in this look for no
// other tree where too many are asked for already.
func (t *targetLook) noteTreeError(err error) {
	if errors.Is(err, argocd.ErrTreesBusy) {
		t.trees.stop()
	}
	if !errors.Is(err, argocd.ErrHealthNotKept) {
		t.out.RetryAt = branch.Earliest(t.out.RetryAt, t.c.Now.Add(treesRetry))
	}
}

// unhealthyAtFirst is what is known of a target's unhealthy resources before anybody asks
// for them, which only a decision about a degraded one does.
func (ga *Gatherer) unhealthyAtFirst(t *appset.Target, app *verification.App,
	v *verification.Verdict) promotion.Known[[]verification.Resource] {
	switch {
	case app != nil && v.State == verification.Degraded && ga.Argocds.ByName[ga.Argocds.ArgoCDOf(t)].Trees != nil:
		return promotion.Known[[]verification.Resource]{}
	case app != nil && app.HealthInTree && len(v.Culprits) == 0:
		return promotion.Unsure[[]verification.Resource](argocd.ErrHealthNotKept.Error())
	case app == nil:
		return promotion.Sure(v.Culprits)
	}
	return promotion.Sure(verification.AddCulprits(app.Unhealthy, v.Culprits))
}

// lookForAbsent finds out whether a target that was done with the landed commit, or has drifted,
// lacks a resource, where its Application doesn't say so. It is nil when it doesn't, or that can't
// be told.
func (ga *Gatherer) lookForAbsent(l *targetLook, t *appset.Target, app *verification.App, v *verification.Verdict,
	mem *verification.Memory) *verification.App {
	trees := ga.Argocds.ByName[ga.Argocds.ArgoCDOf(t)].Trees
	if app == nil || trees == nil {
		return nil
	}
	isAwaited := mem.Done.IsZero() && v.Drift == nil // it may be about to come
	if isAwaited || !app.MayLackResource() {
		return nil
	}
	list, err := trees.UnhealthyResources(l.treesContext(), app)
	if err != nil {
		l.noteTreeError(err)
		return nil
	}
	return app.WithAbsent(list)
}

// lookForInconclusive finds out whether an analysis without a result is what a target waits
// for, where its Application doesn't say so; nil when it isn't, or that can't be told. Before a
// target is done with what landed, an Unknown one waits for that, whatever its analyses say.
func (ga *Gatherer) lookForInconclusive(l *targetLook, t *appset.Target, app *verification.App, v *verification.Verdict,
	mem *verification.Memory) *verification.App {
	trees := ga.Argocds.ByName[ga.Argocds.ArgoCDOf(t)].Trees
	if app == nil || trees == nil {
		return nil
	}
	isUnclear := v.State == verification.Unclear && !mem.Done.IsZero()
	if v.State != verification.Suspended && !isUnclear || !app.MayBeInconclusive() {
		return nil
	}
	list, err := trees.UnhealthyResources(l.treesContext(), app)
	if err != nil {
		l.noteTreeError(err)
		return nil
	}
	return app.WithInconclusive(list)
}

// lookForUnchecked finds out which resources of a target have no health check, where its
// environment asks for them, its Application doesn't say it, and nothing else keeps it from being
// verified. It is nil where it isn't asked or that can't be told.
func (ga *Gatherer) lookForUnchecked(l *targetLook, t *appset.Target, app *verification.App, e *verification.Expect,
	v *verification.Verdict) *verification.App {
	trees := ga.Argocds.ByName[ga.Argocds.ArgoCDOf(t)].Trees
	if app == nil || trees == nil || !e.Limits.RequireHealthChecks {
		return nil
	}
	mayHide := app.HealthInTree && !app.UncheckedKnown
	if !mayHide || v.State != verification.Failed || !verification.WasHealthy(app) {
		return nil
	}
	unchecked, err := trees.UncheckedResources(l.treesContext(), app)
	if errors.Is(err, argocd.ErrHealthNotKept) {
		return nil
	}
	if err != nil {
		l.noteTreeError(err)
	}
	return app.WithUnchecked(unchecked, err)
}

// showUnchecked completes a verdict with what was read before of resources without a health
// check, where its Application doesn't say which they are.
func (ga *Gatherer) showUnchecked(t *appset.Target, app *verification.App, v *verification.Verdict) {
	trees := ga.Argocds.ByName[ga.Argocds.ArgoCDOf(t)].Trees
	if !v.UncheckedUnknown || trees == nil {
		return
	}
	if unchecked, ok := trees.RememberedUnchecked(app); ok {
		v.Unchecked, v.UncheckedUnknown = unchecked, false
	}
}

// AnswerCulprits says which resources of the degraded targets are unhealthy. That this is
// not known is an answer too; where that may pass, it is looked for again.
func (ga *Gatherer) AnswerCulprits(ctx context.Context, c *branch.ComponentBasis, env *promotion.Env, at *branch.ResolvedEnv,
	children []ChildTarget) error {
	within, cancel := context.WithTimeout(ctx, treesTimeout)
	defer cancel()
	count := 0
	for i := range env.Targets {
		out := &env.Targets[i]
		t := TargetAt(env, at, children, i)
		if t == nil || out.Verdict.State != verification.Degraded || out.Unhealthy.OK {
			continue
		}
		list, err := ga.unhealthyResources(within, t, count)
		count++
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && len(out.Verdict.Culprits) == 0:
			out.Unhealthy = promotion.Unsure[[]verification.Resource](err.Error())
		default:
			out.Unhealthy = promotion.Sure(verification.AddCulprits(list, out.Verdict.Culprits))
		}
		if err != nil && !errors.Is(err, argocd.ErrHealthNotKept) {
			c.ScheduleRetry(c.Now.Add(treesRetry))
		}
	}
	return nil
}

// unhealthyResources asks about one target, which so many were before.
func (ga *Gatherer) unhealthyResources(ctx context.Context, t *appset.Target, before int) ([]verification.Resource, error) {
	if before >= maxTreesAtOnce {
		return nil, fmt.Errorf("more than %d targets are degraded at once; not all of them are looked into", maxTreesAtOnce)
	}
	app, err := ga.Argocds.FindApp(t)
	switch {
	case err != nil:
		return nil, err
	case app == nil:
		return nil, errors.New("the Application is gone")
	}
	return ga.Argocds.ByName[ga.Argocds.ArgoCDOf(t)].Trees.UnhealthyResources(ctx, app)
}
