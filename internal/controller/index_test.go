package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/internal/store"
)

const testRepo = "hub:acme/fleet"

// targetSnapshot is a snapshot in which components, each with one target in dev,
// belong to the pipeline shop.
func targetSnapshot(repo string, batch string, components ...string) *branch.Snapshot {
	p := &branch.ResolvedPipeline{Pipeline: &pipeline.Pipeline{}, Units: map[string]*branch.ResolvedUnit{}}
	p.Metadata.Name = "shop"
	p.Spec.Batch = batch
	for _, c := range components {
		p.Units[c] = &branch.ResolvedUnit{Unit: promotion.Unit{Repo: repo, Pipeline: "shop", Component: c},
			Envs: map[string]*branch.ResolvedEnv{"dev": {Targets: []appset.Target{{Name: c + "-dev"}}}}}
	}
	return &branch.Snapshot{Repo: &branch.Repository{ID: repo}, Pipelines: []*branch.ResolvedPipeline{p}}
}

func mainArgoCD(*appset.Target) string { return "main" }

func unitKey(component string) wake.Key {
	return wake.ForUnit(promotion.Unit{Repo: testRepo, Pipeline: "shop", Component: component})
}

// TestApplicationChangeWakesItsUnits holds that a unit is woken by what is news for
// it, by nothing else, and that applications are compared by what they say.
func TestApplicationChangeWakesItsUnits(t *testing.T) {
	t.Parallel()
	web := unitKey("web")
	app := func(change func(*verification.App)) verification.App {
		a := verification.App{ArgoCD: "main", Namespace: "argocd", Name: "web-dev", SyncStatus: "Synced", Health: "Healthy",
			Revisions: []string{"c1"}, Operation: &verification.Operation{Phase: "Succeeded", Revisions: []string{"c1"}}}
		if change != nil {
			change(&a)
		}
		return a
	}
	reconciled := func(a *verification.App) { a.ReconciledAt = time.Unix(7, 0) }
	for _, c := range []struct {
		name      string
		awaiting  string // what the unit waits for
		requested bool   // somebody had asked for a reconciliation
		next      verification.App
		deleted   bool
		want      []wake.Key
	}{
		{name: "the same", next: app(nil)},
		{name: "only reconciled", next: app(reconciled)},
		{name: "only reconciled, which the unit waits for", awaiting: "main/web-dev", next: app(reconciled), want: []wake.Key{web}},
		{name: "reconciled within the same second, as was asked", awaiting: "main/web-dev", requested: true, next: app(nil), want: []wake.Key{web}},
		{name: "somebody asks for a reconciliation, which the unit waits for", awaiting: "main/web-dev", next: app(func(a *verification.App) { a.RefreshPending = true })},
		{name: "only reconciled, and the unit waits for another", awaiting: "main/web-qa", next: app(reconciled)},
		{name: "unhealthy", next: app(func(a *verification.App) { a.Health = "Degraded" }), want: []wake.Key{web}},
		{name: "another operation", next: app(func(a *verification.App) { a.Operation.Phase = "Failed" }), want: []wake.Key{web}},
		{name: "its operation is gone", next: app(func(a *verification.App) { a.Operation = nil }), want: []wake.Key{web}},
		{name: "a newer commit, in which nothing changed for it", next: app(func(a *verification.App) { a.Revisions = []string{"c2"} })},
		{name: "a newer commit, which the unit waits for", awaiting: "main/web-dev", next: app(func(a *verification.App) { a.Revisions = []string{"c2"} }), want: []wake.Key{web}},
		{name: "a newer commit that is to be synced", next: app(func(a *verification.App) { a.Revisions, a.SyncStatus = []string{"c2"}, "OutOfSync" }), want: []wake.Key{web}},
		{name: "deleted", next: app(nil), deleted: true, want: []wake.Key{web}},
		{name: "nobody's", next: app(func(a *verification.App) { a.Name = "other"; a.Health = "Degraded" })},
		{name: "of another Argo CD", next: app(func(a *verification.App) { a.ArgoCD = "edge"; a.Health = "Degraded" })},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			x := newApplicationIndex()
			x.setTargets(targetSnapshot(testRepo, "", "web", "api"), mainArgoCD)
			x.setAwaiting(web, map[string]bool{c.awaiting: true}, nil)
			if first, _ := x.keysOfChange(app(func(a *verification.App) { a.RefreshPending = c.requested }), false, time.Time{}); !slices.Equal(first, []wake.Key{web}) {
				t.Errorf("what was never heard of wakes %v", first)
			}
			got, state := x.keysOfChange(c.next, c.deleted, time.Time{})
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if hasState := len(c.want) > 0 && !c.deleted; hasState != (state != "") {
				t.Errorf("the state's digest is %q", state)
			}
		})
	}
}

// TestNothingIsMissedDuringALook has an Application reconciled while a unit is evaluated, which
// only then turns out to wait for it. It isn't forgotten: another process may have evaluated the
// unit before.
func TestNothingIsMissedDuringALook(t *testing.T) {
	t.Parallel()
	reconciled := func(minutes int) verification.App {
		return verification.App{ArgoCD: "main", Name: "web-dev", ReconciledAt: time.Unix(int64(60*minutes), 0)}
	}
	for name, c := range map[string]struct {
		during  bool
		awaited string
		want    bool
	}{
		"what it waits for":      {true, "main/web-dev", true},
		"what it doesn't":        {true, "main/web-qa", false},
		"before the look began":  {false, "main/web-dev", false},
		"of a unit of that name": {true, "edge/web-dev", false},
	} {
		x := newApplicationIndex()
		x.setTargets(targetSnapshot(testRepo, "", "web", "api"), mainArgoCD)
		x.keysOfChange(reconciled(1), false, time.Time{})
		if !c.during {
			x.keysOfChange(reconciled(2), false, time.Time{})
		}
		x.beginLook(unitKey("web"), time.Time{})
		x.beginLook(unitKey("api"), time.Time{})
		if c.during {
			if got, _ := x.keysOfChange(reconciled(2), false, time.Time{}); len(got) != 0 {
				t.Errorf("%s: it wakes %v", name, got)
			}
		}
		if got := x.setAwaiting(unitKey("web"), map[string]bool{c.awaited: true}, nil); got != c.want {
			t.Errorf("%s: look again: %t", name, got)
		}
		x.endLook(unitKey("api"))
		if x.setAwaiting(unitKey("api"), map[string]bool{c.awaited: true}, nil) || len(x.passed) != 0 {
			t.Errorf("%s: a look that failed is remembered: %v", name, x.passed)
		}
	}
}

// TestABatchIsWokenAsOne holds that an application of a component that moves with
// others wakes the key under which all of them are evaluated.
func TestABatchIsWokenAsOne(t *testing.T) {
	t.Parallel()
	x := newApplicationIndex()
	x.setTargets(targetSnapshot(testRepo, pipeline.BatchEnvironment, "web", "api"), mainArgoCD)
	got, _ := x.keysOfChange(verification.App{ArgoCD: "main", Name: "api-dev"}, false, time.Time{})
	if !slices.Equal(got, []wake.Key{unitKey(promotion.BatchName)}) {
		t.Errorf("got %v", got)
	}
	if got := x.keysOfTarget(&verification.App{ArgoCD: "main", Name: "api-dev"}); !slices.Equal(got, []wake.Key{unitKey(promotion.BatchName)}) {
		t.Errorf("as a target it is of %v", got)
	}
	if got := x.keysOfTarget(&verification.App{ArgoCD: "edge", Name: "api-dev"}); len(got) > 0 {
		t.Errorf("another Argo CD's is of %v", got)
	}
}

// TestTheIndexForgets holds that what is gone takes no room for ever.
func TestTheIndexForgets(t *testing.T) {
	t.Parallel()
	x := newApplicationIndex()
	x.setTargets(targetSnapshot(testRepo, "", "web", "api"), mainArgoCD)
	x.setTargets(targetSnapshot("hub:acme/other", "", "web"), mainArgoCD)
	a := verification.App{ArgoCD: "main", Name: "web-dev"}
	if got, _ := x.keysOfChange(a, false, time.Time{}); len(got) != 2 {
		t.Errorf("two repositories have a target of one Application, and it wakes %v", got)
	}
	x.keysOfChange(a, true, time.Time{})
	x.keysOfChange(a, false, time.Time{})
	x.keysOfChange(a, true, time.Time{})
	x.setAwaiting(unitKey("web"), map[string]bool{"main/web-dev": true}, []string{"main"})
	x.setAwaiting(unitKey("web"), nil, nil)
	x.setTargets(targetSnapshot(testRepo, ""), mainArgoCD)
	x.setTargets(targetSnapshot("hub:acme/other", ""), mainArgoCD)
	if n := len(x.last) + len(x.unsettled) + len(x.units) + len(x.awaiting) + len(x.unreachable) + len(x.recent); n != 0 {
		t.Errorf("%d entries are left: %+v", n, x)
	}
}

// TestReturningArgoCDWakesItsUnits holds that they are woken once.
func TestReturningArgoCDWakesItsUnits(t *testing.T) {
	t.Parallel()
	x := newApplicationIndex()
	x.setAwaiting(unitKey("web"), nil, []string{"main", "edge"})
	x.setAwaiting(unitKey("api"), nil, []string{"edge"})
	x.setAwaiting(unitKey("api"), nil, nil) // evaluated since, with every Argo CD in reach
	if got := x.takeUnreachable("edge"); !slices.Equal(got, []wake.Key{unitKey("web")}) {
		t.Errorf("edge wakes %v", got)
	}
	if got := x.takeUnreachable("edge"); len(got) != 0 {
		t.Errorf("edge wakes %v a second time", got)
	}
	if got := x.takeUnreachable("main"); !slices.Equal(got, []wake.Key{unitKey("web")}) {
		t.Errorf("main wakes %v", got)
	}
}

// TestABurstIsOneWake holds that whatever comes before the store is written is
// taken once and nothing of it is lost.
func TestABurstIsOneWake(t *testing.T) {
	t.Parallel()
	p := newPendingWakes()
	p.add(false, wakeAfterBurst)
	select {
	case <-p.notified:
		t.Error("nothing was added")
	default:
	}
	for range 100 {
		p.add(false, wakeAfterBurst, unitKey("web"))
	}
	p.add(true, wakeAfterBurst)
	<-p.notified
	p.add(false, wakeUrgently, unitKey("web"))
	p.add(false, wakeAfterBurst, unitKey("web"))
	inputs, keys := p.take()
	if !inputs || len(keys) != 1 || keys[unitKey("web")].how != wakeUrgently {
		t.Errorf("took %t %v", inputs, keys)
	}
	if inputs, keys = p.take(); inputs || len(keys) != 0 {
		t.Errorf("took %t %v a second time", inputs, keys)
	}
	p.add(false, wakeAfterBurst, unitKey("api"))
	<-p.notified
}

// TestAwaitedApplicationWakesAtOnce holds that a unit runs as soon as the last Application that it
// waits for has come to rest. The steps before it, and news of other Applications, wait for more to
// come.
func TestAwaitedApplicationWakesAtOnce(t *testing.T) {
	const web, api = "web-dev", "api-dev"
	synced := verification.App{SyncStatus: "Synced", Health: "Healthy", Operation: &verification.Operation{Phase: "Succeeded"}}
	with := func(change func(*verification.App)) verification.App {
		a := synced
		change(&a)
		return a
	}
	for name, c := range map[string]struct {
		awaiting []string
		other    string // how api-dev is, besides healthy: its sync status
		next     verification.App
		want     pendingWake
	}{
		"all is there":                          {awaiting: []string{web}, next: synced, want: wakeAtOnce},
		"of several, the last":                  {awaiting: []string{web, api}, other: "Synced", next: synced, want: wakeAtOnce},
		"of several, not the last":              {awaiting: []string{web, api}, other: "OutOfSync", next: synced, want: wakeAfterBurst},
		"only compared, and about to be synced": {awaiting: []string{web}, next: with(func(a *verification.App) { a.SyncStatus = "OutOfSync" }), want: wakeAfterBurst},
		"in the middle of a sync":               {awaiting: []string{web}, next: with(func(a *verification.App) { a.Operation = &verification.Operation{Phase: "Running"} }), want: wakeAfterBurst},
		"still rolling out":                     {awaiting: []string{web}, next: with(func(a *verification.App) { a.Health = "Progressing" }), want: wakeAfterBurst},
		"about to be compared":                  {awaiting: []string{web}, next: with(func(a *verification.App) { a.RefreshPending = true }), want: wakeAfterBurst},
		"what nobody waits for":                 {awaiting: []string{api}, other: "Synced", next: synced, want: wakeAfterBurst},
		"nobody waits":                          {next: synced, want: wakeAfterBurst},
		"broken":                                {awaiting: []string{web}, next: with(func(a *verification.App) { a.Health = "Degraded" }), want: wakeUrgently},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, "", manualQA, "web")
			change := func(name string, a verification.App) {
				a.ArgoCD, a.Namespace, a.Name = "main", "argocd", name
				w.AppChanged(a, false)
			}
			w.apps.setTargets(targetSnapshot(testRepo, "", "web"), mainArgoCD)
			change(api, with(func(a *verification.App) { a.SyncStatus = c.other }))
			awaited := map[string]bool{}
			for _, name := range c.awaiting {
				awaited[applicationName("main", name)] = true
			}
			w.apps.setAwaiting(unitKey("web"), awaited, nil)
			w.pending.take()
			change(web, c.next)
			_, keys := w.pending.take()
			if got := keys[unitKey("web")].how; len(keys) != 1 || got != c.want {
				t.Errorf("it wakes %+v, not %+v", keys, c.want)
			}
		})
	}
}

// TestWakeRunsAtItsTime holds when keys that are pending are due: the sooner and the more urgently
// of all that woke them.
func TestWakeRunsAtItsTime(t *testing.T) {
	w := newFixture(t, "", manualQA, "web")
	w.dropDue()
	due := func() string {
		t.Helper()
		claims, err := w.opts.Store.Claim(t.Context(), "others", 1000)
		w.must(err)
		var keys []string
		for _, c := range claims {
			w.must(w.opts.Store.Finish(t.Context(), "others", c, store.Outcome{}))
			keys = append(keys, fmt.Sprint(c.Key, " ", c.Urgency))
		}
		slices.Sort(keys)
		return strings.Join(keys, ", ")
	}
	for _, k := range []string{"a", "b", "c"} {
		w.pending.add(false, wakeAfterBurst, unitKey(k))
	}
	w.pending.add(false, wakeAtOnce, unitKey("b"))
	w.pending.add(false, wakeAfterBurst, unitKey("b"))
	w.pending.add(false, wakeUrgently, unitKey("c"))
	if !w.storePending(t.Context(), w.wakePending) {
		t.Fatal("nothing is written")
	}
	if got, want := due(), fmt.Sprint(unitKey("b"), " ", store.Normal, ", ", unitKey("c"), " ", store.Urgent); got != want {
		t.Errorf("at once due are %s, not %s", got, want)
	}
	w.clock.Step(burstDelay)
	if got, want := due(), fmt.Sprint(unitKey("a"), " ", store.Normal); got != want {
		t.Errorf("then due are %s, not %s", got, want)
	}
}

// TestARevisionIsFetchedForOnce holds that a revision that no fetch brings doesn't
// make the server fetch for ever, and that who looked before a fetch knows of it.
func TestARevisionIsFetchedForOnce(t *testing.T) {
	t.Parallel()
	f := newFetchRequests(nil)
	for _, c := range []struct {
		repo      string
		revisions []string
		want      bool
	}{{testRepo, nil, false}, {testRepo, []string{"c1"}, true}, {testRepo, []string{"c1"}, false}, {testRepo, []string{"c1", "c2"}, true},
		{"hub:acme/other", []string{"c1"}, true}, {"hub:acme/other", []string{"c1"}, false}} {
		before := f.fetches()
		if got := f.isNew(c.repo, c.revisions); got != c.want {
			t.Errorf("%s needs a fetch for %v: %t", c.repo, c.revisions, got)
		}
		f.noteFetch(c.repo)
		f.remember(c.repo, c.revisions)
		if !f.fetchedSince(c.repo, before) || f.fetchedSince(c.repo, f.fetches()) || f.fetchedSince("hub:acme/another", before) {
			t.Errorf("after a fetch of %s for %v it isn't told which were fetched since", c.repo, c.revisions)
		}
	}
	for i := range maxRequestedRevisions + 10 {
		f.remember("hub:acme/other", []string{fmt.Sprint("r", i)})
	}
	if n := f.requested.Stats().Entries; n > maxRequestedRevisions {
		t.Errorf("%d revisions are remembered", n)
	}
}

// TestFailuresAreKeptWhileTheyLast holds what a person is shown of runs that fail.
func TestFailuresAreKeptWhileTheyLast(t *testing.T) {
	t.Parallel()
	now := time.Unix(100, 0)
	f := failingRuns{now: func() time.Time { return now }, byKey: map[string]Failure{}}
	first := now
	f.record("repo:a", errors.New("refused"), now.Add(time.Second))
	now = now.Add(time.Minute)
	f.record("repo:a", errors.New("refused again"), now.Add(2*time.Second))
	f.record("repo:b", errors.New("no"), now)
	f.record("repo:b", nil, time.Time{})
	if diff := cmp.Diff(map[string]Failure{"repo:a": {Since: first, Err: "refused again", RetryAt: now.Add(2 * time.Second)}}, f.list()); diff != "" {
		t.Error(diff)
	}
}

// TestRetriesBecomeRarer holds the delays after failures and after what was stale.
func TestRetriesBecomeRarer(t *testing.T) {
	t.Parallel()
	last, lastStale := time.Duration(0), time.Duration(-1)
	for fails := range 40 {
		if d := retryDelay(fails); d < last || d > maxRetryDelay || fails == 0 && d > 2*minRetryDelay {
			t.Errorf("after %d failures: %s, before %s", fails, d, last)
		} else {
			last = d
		}
		if d := staleDelay(fails); d < lastStale || d > maxRetryDelay || fails == 0 && d != 0 {
			t.Errorf("stale %d times: %s, before %s", fails, d, lastStale)
		} else {
			lastStale = d
		}
	}
	if last != maxRetryDelay {
		t.Errorf("in the end it is %s", last)
	}
}

// TestPendingWakesOutliveTheDatabase holds that what was heard from Argo CD while the
// database can't be written is written when it can, as urgently as it was.
func TestPendingWakesOutliveTheDatabase(t *testing.T) {
	w := newFixture(t, "", manualQA, "web")
	w.pending.add(true, wakeUrgently, unitKey("web"))
	<-w.pending.notified
	away := errors.New("the database is away")
	if w.storePending(t.Context(), func(context.Context, wakesByKind) error { return away }) {
		t.Error("what could not be written counts as written")
	}
	w.pending.add(false, wakeAfterBurst, unitKey("api")) // heard meanwhile
	<-w.pending.notified
	var written wakesByKind
	if !w.storePending(t.Context(), func(_ context.Context, keys wakesByKind) error { written = keys; return nil }) {
		t.Error("what was written counts as not written")
	}
	if !slices.Equal(written[wakeUrgently], []wake.Key{unitKey("web")}) || !slices.Contains(written[wakeAfterBurst], unitKey("api")) {
		t.Errorf("written %v", written)
	}
	if inputs, keys := w.pending.take(); inputs || len(keys) > 0 {
		t.Errorf("still pending: %t %v", inputs, keys)
	}
}
