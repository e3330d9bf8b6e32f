package live

import (
	"context"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/promotion"
)

// AnswerSyncRights says of which targets that lack a sync Liftlock may ask for one. That this
// isn't known is an answer too.
func (ga *Gatherer) AnswerSyncRights(ctx context.Context, env *promotion.Env, at *branch.ResolvedEnv, children []ChildTarget) error {
	within, cancel := context.WithTimeout(ctx, treesTimeout)
	defer cancel()
	for i := range env.Targets {
		out := &env.Targets[i]
		t := TargetAt(env, at, children, i)
		if t == nil || out.Verdict.Unsynced == nil || out.SyncBarred.OK {
			continue
		}
		rights := ga.Argocds.ByName[ga.Argocds.ArgoCDOf(t)].Rights
		app, err := ga.Argocds.FindApp(t)
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
