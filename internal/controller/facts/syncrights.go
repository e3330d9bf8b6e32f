package facts

import (
	"context"

	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// Rights knows what an Argo CD lets Liftlock do. *argocd.Watcher does.
type Rights interface {
	// SyncBarred says why a sync of an Application can't be asked for, and what to allow;
	// empty: it can. The error says why that isn't known.
	SyncBarred(ctx context.Context, app *verification.App) (string, error)
}

// answerSyncRights says of which targets that lack a sync Liftlock may ask for one. That this
// isn't known is an answer too.
func (ag *argocdGatherer) answerSyncRights(ctx context.Context, c *ComponentEvaluation, env *promotion.Env, at *ResolvedEnv) error {
	within, cancel := context.WithTimeout(ctx, treesTimeout)
	defer cancel()
	for i := range env.Targets {
		out := &env.Targets[i]
		t := c.targetAt(env, at, i)
		if t == nil || out.Verdict.Unsynced == nil || out.SyncBarred.OK {
			continue
		}
		rights := ag.argocds.byName[ag.argocds.ArgoCDOf(t)].Rights
		app, err := ag.argocds.findApp(t)
		switch {
		case err != nil:
		case app == nil || rights == nil:
			out.SyncBarred = promotion.Sure("its Argo CD can't be asked for it")
			continue
		default:
			out.SyncBarred.Value, err = rights.SyncBarred(within, app)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if out.SyncBarred.OK = err == nil; err != nil {
			out.SyncBarred.Err = err.Error()
		}
	}
	return nil
}
