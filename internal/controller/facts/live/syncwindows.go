package live

import (
	"slices"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/policies"
)

// GatherSyncWindows says how Argo CD's sync windows stand for the environment's targets,
// where a gate goes by them.
func (ga *Gatherer) GatherSyncWindows(gates []policies.Gate, at *branch.ResolvedEnv) (out []policies.TargetWindow) {
	if !slices.ContainsFunc(gates, func(g policies.Gate) bool { return g.FollowsSyncWindows() }) {
		return nil
	}
	for i := range at.Targets {
		w := ga.findSyncWindow(&at.Targets[i])
		w.Target = ga.Argocds.TargetLabel(at, &at.Targets[i])
		out = append(out, w)
	}
	return out
}

// findSyncWindow says how the sync windows stand that are about one target.
func (ga *Gatherer) findSyncWindow(t *appset.Target) policies.TargetWindow {
	app, err := ga.Argocds.FindApp(t)
	windows := ga.Argocds.ByName[ga.Argocds.ArgoCDOf(t)].Windows
	switch {
	case err != nil:
		return policies.TargetWindow{Err: err.Error()}
	case app == nil:
		return policies.TargetWindow{Err: "no such Application exists yet"}
	case windows == nil:
		return policies.TargetWindow{Project: app.Project, Err: "its Argo CD's AppProjects aren't read"}
	}
	isOpen, changes, err := windows.SyncWindow(app, ga.Health.now())
	if err != nil {
		return policies.TargetWindow{Project: app.Project, Err: err.Error()}
	}
	return policies.TargetWindow{Project: app.Project, Closed: !isOpen, Changes: changes}
}
