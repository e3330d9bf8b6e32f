package facts

import (
	"slices"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/policies"
)

// gatherSyncWindows fills in how Argo CD's sync windows stand for the environment's targets,
// where a gate goes by them.
func (ag *argocdGatherer) gatherSyncWindows(env *promotion.Env, at *ResolvedEnv) {
	if !slices.ContainsFunc(env.Gates, func(g policies.Gate) bool { return g.FollowsSyncWindows() }) {
		return
	}
	for i := range at.Targets {
		w := ag.findSyncWindow(&at.Targets[i])
		w.Target = ag.argocds.TargetLabel(at, &at.Targets[i])
		env.SyncWindows = append(env.SyncWindows, w)
	}
}

// findSyncWindow says how the sync windows stand that are about one target.
func (ag *argocdGatherer) findSyncWindow(t *appset.Target) policies.TargetWindow {
	app, err := ag.argocds.findApp(t)
	windows := ag.argocds.byName[ag.argocds.ArgoCDOf(t)].Windows
	switch {
	case err != nil:
		return policies.TargetWindow{Err: err.Error()}
	case app == nil:
		return policies.TargetWindow{Err: "no such Application exists yet"}
	case windows == nil:
		return policies.TargetWindow{Project: app.Project, Err: "its Argo CD's AppProjects aren't read"}
	}
	isOpen, changes, err := windows.SyncWindow(app, ag.health.now())
	if err != nil {
		return policies.TargetWindow{Project: app.Project, Err: err.Error()}
	}
	return policies.TargetWindow{Project: app.Project, Closed: !isOpen, Changes: changes}
}
