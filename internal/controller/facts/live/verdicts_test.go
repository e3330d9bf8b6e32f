package live

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
)

// newPlainFixture is qa of web without a source hydrator.
func newPlainFixture(t *testing.T) *hydrationFixture {
	f := newHydrationFixture(t)
	f.target.Hydration = nil
	f.at.Targets = []appset.Target{f.target}
	return f
}

// TestRevisionRelations holds how what an Application reports stands to what landed.
func TestRevisionRelations(t *testing.T) {
	f := newPlainFixture(t)
	f.look.c.Pipeline.Spec.Carry = carryImage
	f.at.Roots = []string{"apps/web/qa"}
	f.look.env.Release.Value.ID = f.o.Releases.ReleaseIDAt(f.own, f.landed, f.look.c.Pipeline, f.at)
	docs := f.commit(f.own, "main", f.landed, map[string]string{"README.md": "x"})
	replaced := f.commit(f.own, "main", docs, map[string]string{"apps/web/qa/deploy.yaml": deployment("web:1.2.0", 1)})
	here, outside := appset.Source{Here: true}, appset.Source{}
	for name, c := range map[string]struct {
		sources   []appset.Source
		revisions []string
		want      []verification.Relation
		fetches   []string
	}{
		"what landed":            {[]appset.Source{here}, []string{f.landed}, []verification.Relation{verification.Holds}, nil},
		"docs since":             {[]appset.Source{here}, []string{docs}, []verification.Relation{verification.Holds}, nil},
		"another release since":  {[]appset.Source{here}, []string{replaced}, []verification.Relation{verification.Superseded}, nil},
		"what was before":        {[]appset.Source{here}, []string{f.before}, []verification.Relation{verification.Before}, nil},
		"what nobody fetched":    {[]appset.Source{here}, []string{landedHash}, []verification.Relation{verification.Unresolved}, []string{landedHash}},
		"of two sources":         {[]appset.Source{here, here}, []string{f.landed, f.before}, []verification.Relation{verification.Holds, verification.Before}, nil},
		"of this repository's":   {[]appset.Source{outside, here}, []string{"1.0.0", f.before}, []verification.Relation{verification.Before}, nil},
		"of none that says it":   {[]appset.Source{here, here}, []string{f.landed}, nil, nil},
		"of no source from here": {[]appset.Source{outside}, []string{"1.0.0"}, nil, nil},
	} {
		f.look.out.FetchRequests = nil
		f.target.Sources = c.sources
		got, why := f.o.revisionRelations(f.look, f.at, &f.target, f.app, c.revisions, false)
		if diff := cmp.Diff(c.want, got); diff != "" || why != "" {
			t.Errorf("%s: %q (-want +got):\n%s", name, why, diff)
		}
		if diff := cmp.Diff(c.fetches, f.look.out.FetchRequests[f.own.ID]); diff != "" {
			t.Errorf("%s: to be fetched (-want +got):\n%s", name, diff)
		}
	}
}

// TestWasDeployedBefore takes for a deployment of what landed only one as a whole, before the last sync
// began.
func TestWasDeployedBefore(t *testing.T) {
	f := newPlainFixture(t)
	began := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	f.app.Operation = &verification.Operation{StartedAt: began}
	deployed := func(at time.Time, revisions ...string) verification.Deployment {
		return verification.Deployment{At: at, Revisions: revisions}
	}
	two := []appset.Source{{Here: true}, {Here: true}}
	for name, c := range map[string]struct {
		sources  []appset.Source
		deployed []verification.Deployment
		want     bool
	}{
		"never":                         {f.target.Sources, nil, false},
		"before it began":               {f.target.Sources, []verification.Deployment{deployed(began.Add(-time.Minute), f.landed)}, true},
		"in the moment that it began":   {f.target.Sources, []verification.Deployment{deployed(began, f.landed)}, true},
		"after it began":                {f.target.Sources, []verification.Deployment{deployed(began.Add(time.Second), f.landed)}, false},
		"what was there before":         {f.target.Sources, []verification.Deployment{deployed(began.Add(-time.Minute), f.before)}, false},
		"of several one":                {f.target.Sources, []verification.Deployment{deployed(began.Add(time.Second), f.landed), deployed(began.Add(-time.Minute), f.before), deployed(began.Add(-time.Hour), f.landed)}, true},
		"nothing is said of what":       {f.target.Sources, []verification.Deployment{deployed(began.Add(-time.Minute))}, false},
		"of two sources both":           {two, []verification.Deployment{deployed(began.Add(-time.Minute), f.landed, f.landed)}, true},
		"of two sources the first":      {two, []verification.Deployment{deployed(began.Add(-time.Minute), f.landed, f.before)}, false},
		"of two sources the second":     {two, []verification.Deployment{deployed(began.Add(-time.Minute), f.before, f.landed)}, false},
		"a source that isn't from here": {[]appset.Source{{}}, []verification.Deployment{deployed(began.Add(-time.Minute), "1.0.0")}, false},
	} {
		f.target.Sources, f.app.Deployed = c.sources, c.deployed
		if got := f.o.wasDeployedBefore(f.look, f.at, &f.target, f.app, false); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestFailedSyncOfADeployedRelease convicts a release of a sync that failed unless it was deployed before.
func TestFailedSyncOfADeployedRelease(t *testing.T) {
	for name, c := range map[string]struct {
		deployed string
		want     bool
	}{"for the first time": {"", true}, "another commit was": {"dddddddddddddddddddddddddddddddddddddddd", true}, "it was": {landedHash, false}} {
		f := newParentFixture()
		app := f.apps["argocd/web-qa"]
		app.Children = nil
		app.SyncStatus = "OutOfSync"
		app.Operation = &verification.Operation{Phase: "Failed", Message: "one or more objects failed", Revisions: []string{landedHash}, StartedAt: f.now.Add(-time.Minute), FinishedAt: f.now.Add(-time.Second), By: "argocd",
			Results: []verification.SyncResult{{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web", Status: "SyncFailed"}}}
		if c.deployed != "" {
			app.Deployed = []verification.Deployment{{Revisions: []string{c.deployed}, At: f.now.Add(-time.Hour)}}
		}
		var memories []store.Observation
		f.c.Snapshot.Repo.Mirror = newPlainFixture(t).own.Mirror // which knows no other commit
		f.c.Snapshot.Repo.ID = "hub:acme/fleet"
		got := f.judgeAll(&memories)["web-qa"]
		if (got == verification.Degraded) != c.want {
			t.Errorf("%s: it is %s: %s", name, got, f.got.Targets[0].Verdict.Reason)
		}
		if sync := f.got.Targets[0].LastSync; (sync != nil) != c.want || sync != nil && (sync.InitiatedBy != "argocd" || sync.Phase != "Failed" || sync.Message == "" || !sync.FinishedAt.Equal(app.Operation.FinishedAt) || !sync.StartedAt.Equal(app.Operation.StartedAt)) {
			t.Errorf("%s: the last sync is %+v", name, sync)
		}
	}
}

// TestLastSyncOf gives no sync where there was none.
func TestLastSyncOf(t *testing.T) {
	if lastSyncOf(nil) != nil || lastSyncOf(&verification.App{}) != nil || lastSyncOf(&verification.App{Operation: &verification.Operation{}}) == nil {
		t.Error("a sync is made up, or lost")
	}
}

// TestIsBeingVerified lists in which states the next that happens to a target decides about its release.
func TestIsBeingVerified(t *testing.T) {
	want := map[verification.State]bool{verification.Syncing: true, verification.Refreshing: true, verification.Progressing: true, verification.Suspended: true, verification.Soaking: true}
	for _, s := range []verification.State{verification.Syncing, verification.Refreshing, verification.Progressing, verification.Suspended, verification.Soaking, verification.Verified, verification.Degraded, verification.Failed, verification.Unclear, verification.Arriving, verification.Absent} {
		if IsBeingVerified(s) != want[s] {
			t.Errorf("%s: %t", s, IsBeingVerified(s))
		}
	}
}

// TestHealthIsRecordedBeforeTheMerge keeps how targets are while their promotion is open, as far as that
// says something of how they were before it.
func TestHealthIsRecordedBeforeTheMerge(t *testing.T) {
	f := newPlainFixture(t)
	f.look.c.Pipeline.Spec.Carry, f.at.Roots = carryImage, []string{"apps/web/qa"}
	idAt := func(commit string) string { return f.o.Releases.ReleaseIDAt(f.own, commit, f.look.c.Pipeline, f.at) }
	f.look.env.Release.Value.ID = idAt(f.before)
	apps := &knownApps{apps: map[string]*verification.App{}}
	f.o.Argocds, f.o.Store = &branch.ArgoCDs{Main: "hub", ByName: map[string]branch.ArgoCD{"hub": {Apps: apps}}}, newTestStore(t)
	c := f.look.c
	c.Unit = &branch.ResolvedUnit{Envs: map[string]*branch.ResolvedEnv{"qa": f.at}}
	c.Facts.Unit = promotion.Unit{Repo: f.own.ID, Pipeline: "shop", Component: "web"}
	open := &promotion.Pull{Number: 7, Release: idAt(f.landed)}
	f.look.env.Open, f.look.env.Landed.Value.By = open, promotion.ByPromotion
	const id = "hub/argocd/web-qa"
	healthy := func(name, rev string) *verification.App {
		return &verification.App{ArgoCD: "hub", Namespace: "argocd", Name: name, Health: "Healthy", SyncStatus: "Synced", Revisions: []string{rev}}
	}
	sick := healthy("web-qa", f.before)
	sick.Health = "Degraded"
	start := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for i, step := range []struct {
		what  string
		app   *verification.App
		batch bool
		err   bool
		want  HealthBeforeMerge
	}{
		{"it is healthy", healthy("web-qa", f.before), false, false, HealthBeforeMerge{At: start, Healthy: map[string]bool{id: true}, Components: map[string]bool{"web": true}}},
		{"it is as it was", healthy("web-qa", f.before), false, false, HealthBeforeMerge{At: start, Healthy: map[string]bool{id: true}, Components: map[string]bool{"web": true}}},
		{"it has the release already", healthy("web-qa", f.landed), false, false, HealthBeforeMerge{At: start, Healthy: map[string]bool{id: true}, Components: map[string]bool{"web": true}}},
		{"it degrades", sick, false, false, HealthBeforeMerge{At: start.Add(3 * time.Minute), Healthy: map[string]bool{id: false}, Components: map[string]bool{"web": true}}},
		{"it has the release, and is healthy with it", healthy("web-qa", f.landed), false, false, HealthBeforeMerge{At: start.Add(3 * time.Minute), Healthy: map[string]bool{id: false}, Components: map[string]bool{"web": true}}},
		{"a commit that nobody fetched", healthy("web-qa", landedHash), false, false, HealthBeforeMerge{At: start.Add(3 * time.Minute), Healthy: map[string]bool{id: false}, Components: map[string]bool{"web": true}}},
		{"it is healthy again", healthy("web-qa", f.before), false, false, HealthBeforeMerge{At: start.Add(6 * time.Minute), Healthy: map[string]bool{id: true}, Components: map[string]bool{"web": true}}},
		{"nobody can tell", healthy("web-qa", f.before), false, true, HealthBeforeMerge{At: start.Add(7 * time.Minute), Healthy: map[string]bool{id: true}, Unknown: map[string]time.Time{id: start.Add(7 * time.Minute)}, Components: map[string]bool{"web": true}}},
		{"nobody can tell yet", healthy("web-qa", f.before), false, true, HealthBeforeMerge{At: start.Add(7 * time.Minute), Healthy: map[string]bool{id: true}, Unknown: map[string]time.Time{id: start.Add(7 * time.Minute)}, Components: map[string]bool{"web": true}}},
		{"it has the release when somebody can tell", healthy("web-qa", f.landed), false, false, HealthBeforeMerge{At: start.Add(7 * time.Minute), Healthy: map[string]bool{id: true}, Unknown: map[string]time.Time{id: start.Add(7 * time.Minute)}, Components: map[string]bool{"web": true}}},
		{"it has what it had when somebody can tell", healthy("web-qa", f.before), false, false, HealthBeforeMerge{At: start.Add(10 * time.Minute), Healthy: map[string]bool{id: true}, Components: map[string]bool{"web": true}}},
		{"it isn't there", nil, false, false, HealthBeforeMerge{At: start.Add(11 * time.Minute), Healthy: map[string]bool{}, Components: map[string]bool{"web": true}}},
		{"it is new, and has the release", healthy("web-qa", f.landed), false, false, HealthBeforeMerge{At: start.Add(11 * time.Minute), Healthy: map[string]bool{}, Components: map[string]bool{"web": true}}},
	} {
		clear(apps.apps)
		if step.app != nil {
			apps.apps["argocd/web-qa"] = step.app
		}
		apps.ready = nil
		if step.err {
			apps.ready = context.DeadlineExceeded
		}
		c.Facts.Now = start.Add(time.Duration(i) * time.Minute)
		if err := f.o.FillHealthBefore(t.Context(), c, f.look.env, nil); err != nil {
			t.Fatal(err)
		}
		got, ok, err := HealthBefore.Get(t.Context(), f.o.Store, record.OfPull(f.own.ID, 7))
		if diff := cmp.Diff(step.want, got); diff != "" || err != nil || !ok {
			t.Errorf("%s: %v (-want +got):\n%s", step.what, err, diff)
		}
	}
}
