package live

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/policies"
)

// knownWindows are closed for the Applications in it until a time.
type knownWindows struct {
	closed map[string]time.Time
	err    error
}

func (*knownWindows) ClosedWindow(*verification.App, time.Time) *verification.Window { return nil }

func (k *knownWindows) SyncWindow(app *verification.App, _ time.Time) (bool, time.Time, error) {
	until, isClosed := k.closed[app.Name]
	return !isClosed, until, k.err
}

// TestSyncWindowsAreGathered looks at the targets' windows where a gate goes by them, and says
// of each why they can't be told.
func TestSyncWindowsAreGathered(t *testing.T) {
	opens := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	follows := []policies.Gate{{Window: &policies.Window{ArgoCD: true}}}
	for name, c := range map[string]struct {
		gates   []policies.Gate
		windows branch.Windows
		away    error
		want    []policies.TargetWindow
	}{
		"no gate goes by them": {gates: []policies.Gate{{Window: &policies.Window{Cron: "0 9 * * *"}}}, windows: &knownWindows{}},
		"one is closed": {gates: follows, windows: &knownWindows{closed: map[string]time.Time{"web-1": opens}}, want: []policies.TargetWindow{
			{Target: "web-0", Project: "shop"}, {Target: "web-1", Project: "shop", Closed: true, Changes: opens}, {Target: "web-2", Err: "no such Application exists yet"}}},
		"the projects can't be read": {gates: []policies.Gate{{Windows: policies.Windows{{ArgoCD: true}}}}, windows: &knownWindows{err: errors.New("forbidden")}, want: []policies.TargetWindow{
			{Target: "web-0", Project: "shop", Err: "forbidden"}, {Target: "web-1", Project: "shop", Err: "forbidden"}, {Target: "web-2", Err: "no such Application exists yet"}}},
		"nobody reads the projects": {gates: follows, want: []policies.TargetWindow{
			{Target: "web-0", Project: "shop", Err: "its Argo CD's AppProjects aren't read"}, {Target: "web-1", Project: "shop", Err: "its Argo CD's AppProjects aren't read"}, {Target: "web-2", Err: "no such Application exists yet"}}},
		"the Argo CD is away": {gates: follows, away: errors.New("connection refused"), want: []policies.TargetWindow{
			{Target: "web-0", Err: "connection refused"}, {Target: "web-1", Err: "connection refused"}, {Target: "web-2", Err: "connection refused"}}},
	} {
		t.Run(name, func(t *testing.T) {
			apps := &knownApps{apps: map[string]*verification.App{}, ready: c.away}
			o := &Gatherer{Health: NewHealthClock(time.Now), Argocds: &branch.ArgoCDs{Main: "hub", ByName: map[string]branch.ArgoCD{"hub": {Apps: apps, Windows: c.windows}}}}
			at := &branch.ResolvedEnv{}
			for _, name := range []string{"web-0", "web-1", "web-2"} {
				at.Targets = append(at.Targets, appset.Target{Namespace: "argocd", Name: name})
				if name != "web-2" {
					apps.apps["argocd/"+name] = &verification.App{Name: name, Project: "shop"}
				}
			}
			if diff := cmp.Diff(c.want, o.GatherSyncWindows(c.gates, at)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
