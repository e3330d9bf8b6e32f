package verification

import (
	"testing"
	"time"
)

// TestTrackRefresh tells from a sequence of states which comparison ended a refresh.
func TestTrackRefresh(t *testing.T) {
	earlier, later := cluster, cluster.Add(time.Minute)
	for name, c := range map[string]struct {
		prev, next App
		want       time.Time
	}{
		"the mark has gone":     {App{UID: "a", RefreshPending: true}, App{UID: "a", ReconciledAt: later}, later},
		"it is still there":     {App{UID: "a", RefreshPending: true, RefreshedAt: earlier}, App{UID: "a", RefreshPending: true, ReconciledAt: later}, earlier},
		"there was none":        {App{UID: "a", RefreshedAt: earlier}, App{UID: "a", ReconciledAt: later}, earlier},
		"it has just been set":  {App{UID: "a", RefreshedAt: earlier}, App{UID: "a", RefreshPending: true, ReconciledAt: later}, earlier},
		"another object's mark": {App{UID: "a", RefreshPending: true, RefreshedAt: earlier}, App{UID: "b", ReconciledAt: later}, time.Time{}},
	} {
		if got := TrackRefresh(&c.prev, c.next).RefreshedAt; !got.Equal(c.want) {
			t.Errorf("%s: refreshed at %s, want %s", name, got, c.want)
		}
	}
	if got := TrackRefresh(nil, App{ReconciledAt: later}).RefreshedAt; !got.IsZero() {
		t.Errorf("seen for the first time, it was refreshed at %s", got)
	}
}

// TestSyncsByItself tells who waits for no person.
func TestSyncsByItself(t *testing.T) {
	for name, c := range map[string]struct {
		app  App
		want bool
	}{
		"automated":                          {App{AutoSync: true}, true},
		"in a step":                          {App{SetStep: SetStep{Status: "Waiting", Step: "2"}}, true},
		"in no step":                         {App{SetStep: SetStep{Status: "Waiting", Step: "-1"}}, false},
		"in a step that is never synced":     {App{SetStep: SetStep{Status: "Waiting", Step: "2", NoUpdate: true}}, false},
		"automated, and in no step":          {App{AutoSync: true, SetStep: SetStep{Status: "Waiting", Step: "-1"}}, true},
		"by people, and there are no steps":  {App{}, false},
		"nobody says that there is any step": {App{SetStep: SetStep{Step: "2"}}, false},
	} {
		if got := c.app.SyncsByItself(); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestAssessHealth has what an absent resource makes of an Application.
func TestAssessHealth(t *testing.T) {
	gone, slow := Resource{Group: "apps", Kind: "Deployment", Name: "web", Health: "Missing"}, Resource{Group: "apps", Kind: "Deployment", Name: "web", Health: "Degraded"}
	for name, c := range map[string]struct {
		app  App
		want string
	}{
		"Healthy, and something is absent":           {App{Health: "Healthy", SyncStatus: "OutOfSync", Unhealthy: []Resource{gone}}, "Missing"},
		"Suspended, and something is absent":         {App{Health: "Suspended", SyncStatus: "OutOfSync", Unhealthy: []Resource{gone}}, "Missing"},
		"Progressing, and something is absent":       {App{Health: "Progressing", SyncStatus: "OutOfSync", Unhealthy: []Resource{gone}}, "Missing"},
		"Degraded says more":                         {App{Health: "Degraded", SyncStatus: "OutOfSync", Unhealthy: []Resource{gone}}, "Degraded"},
		"Unknown may be anything":                    {App{Health: "Unknown", SyncStatus: "OutOfSync", Unhealthy: []Resource{gone}}, "Unknown"},
		"what is synced isn't absent":                {App{Health: "Healthy", SyncStatus: "Synced", Unhealthy: []Resource{gone}}, "Healthy"},
		"what is unhealthy isn't absent":             {App{Health: "Progressing", SyncStatus: "OutOfSync", Unhealthy: []Resource{slow}}, "Progressing"},
		"one of several is absent":                   {App{Health: "Progressing", SyncStatus: "OutOfSync", Unhealthy: []Resource{slow, gone}}, "Missing"},
		"a kind that Argo CD doesn't assess, absent": {App{Health: "Healthy", SyncStatus: "OutOfSync", Unhealthy: []Resource{{Kind: "ConfigMap", Name: "web", Health: "Missing"}}}, "Healthy"},
	} {
		if got := c.app.assessHealth(); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestIsBusy tells when another state is due without anybody's doing.
func TestIsBusy(t *testing.T) {
	for name, c := range map[string]struct {
		app  App
		want bool
	}{
		"at rest":              {App{Health: "Healthy", Operation: &Operation{Phase: "Succeeded"}}, false},
		"degraded":             {App{Health: "Degraded"}, false},
		"a sync was asked for": {App{Health: "Healthy", Pending: true}, true},
		"a sync runs":          {App{Health: "Healthy", Operation: &Operation{Phase: "Running"}}, true},
		"a refresh is due":     {App{Health: "Healthy", RefreshPending: true}, true},
		"it is progressing":    {App{Health: "Progressing"}, true},
	} {
		if got := c.app.IsBusy(); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestMayLackResource tells where the resources must be read one by one.
func TestMayLackResource(t *testing.T) {
	lacking := func(change func(a *App)) App {
		a := App{HealthInTree: true, Health: "Healthy", SyncStatus: "OutOfSync", Differing: 1}
		if change != nil {
			change(&a)
		}
		return a
	}
	for name, c := range map[string]struct {
		app  App
		want bool
	}{
		"Healthy":                          {lacking(nil), true},
		"Suspended":                        {lacking(func(a *App) { a.Health = "Suspended" }), true},
		"Progressing":                      {lacking(func(a *App) { a.Health = "Progressing" }), true},
		"Degraded says so itself":          {lacking(func(a *App) { a.Health = "Degraded" }), false},
		"Missing says so itself":           {lacking(func(a *App) { a.Health = "Missing" }), false},
		"the Application has their health": {lacking(func(a *App) { a.HealthInTree = false }), false},
		"nothing differs":                  {lacking(func(a *App) { a.Differing = 0 }), false},
		"synced":                           {lacking(func(a *App) { a.SyncStatus = "Synced" }), false},
		"a sync was asked for":             {lacking(func(a *App) { a.Pending = true }), false},
		"a sync runs":                      {lacking(func(a *App) { a.Operation = &Operation{Phase: "Running"} }), false},
	} {
		if got := c.app.MayLackResource(); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestSameResource tells resources apart that differ in one word.
func TestSameResource(t *testing.T) {
	web := Resource{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web", Health: "Missing"}
	for name, c := range map[string]struct {
		other Resource
		want  bool
	}{
		"the same, otherwise": {Resource{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web", Health: "Degraded"}, true},
		"another group":       {Resource{Group: "extensions", Kind: "Deployment", Namespace: "shop", Name: "web"}, false},
		"another kind":        {Resource{Group: "apps", Kind: "StatefulSet", Namespace: "shop", Name: "web"}, false},
		"another namespace":   {Resource{Group: "apps", Kind: "Deployment", Namespace: "far", Name: "web"}, false},
		"another name":        {Resource{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "api"}, false},
	} {
		if got := web.isSameAs(c.other); got != c.want {
			t.Errorf("%s: the same resource: %t", name, got)
		}
		d := Difference{Group: c.other.Group, Kind: c.other.Kind, Namespace: c.other.Namespace, Name: c.other.Name}
		if got := d.isAbout(web); got != c.want {
			t.Errorf("%s: a difference of it: %t", name, got)
		}
	}
}
