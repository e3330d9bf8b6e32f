package argocd

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// recordedLooks are Applications as they were in the lab while its stories were told, in
// testdata/recorded/<line>, with what is said of the release that they were about.
var recordedLooks = []struct {
	name   string
	before string // as which it was verified before; empty: it wasn't
	now    string
	want   map[string]verification.State
	why    string                     // in the reason of one that isn't verified
	expect func(*verification.Expect) // what else is expected of it; nil: nothing
	step   verification.SetStep       // its turn, as its ApplicationSet says it
}{
	{"a dry run of a commit that there isn't ends in an error", "bystander", "bystander-dry-run", everyLine(verification.Verified), "", nil, noStep},
	{"somebody syncs one resource, and fails", "bystander", "bystander-partial", everyLine(verification.Verified), "", nil, noStep},
	{"a canary pauses", "", "rollout-paused", everyLine(verification.Suspended), "suspended (a paused rollout)", nil, noStep},
	{"somebody deletes the Deployment", "deleted-before", "deleted", everyLine(verification.Degraded), "health is Missing", nil, noStep},
	{"the release's migration fails", "", "hook-failed", everyLine(verification.Degraded), "the PreSync hook Job migration", nil, noStep},
	{"the release's smoke test fails", "", "smoke-failed", oldestAndNewest(verification.Degraded), "the PostSync hook Job smoke", nil, noStep},
	{"a person ends the release's sync", "", "ended", oldestAndNewest(verification.Failed), "a person, or the controller's limit for syncs, ended it", nil, noStep},
	{"a nightly job fails", "nightly-before", "nightly-failed", map[string]verification.State{"3.2.11": verification.Degraded, "3.5.7": verification.Degraded}, "health is Degraded", nil, noStep},
	{"nobody has synced it yet", "", "manual", everyLine(verification.Syncing), "there is no automated sync policy; sync it, or set verify.sync to trigger", nil, noStep},
	{"Liftlock is to sync it", "", "manual", everyLine(verification.Syncing), "so Liftlock asks for the sync", func(e *verification.Expect) { e.Limits.Trigger = true }, noStep},
	{"the repo-server is away while it is synced", "", "outage", everyLine(verification.Unclear), "Argo CD reports ComparisonError", nil, noStep},
	{"the repo-server is back", "", "outage-over", everyLine(verification.Failed), "ended Error, asked for by ada", nil, noStep},
	{"the repo-server is back, and Liftlock is to sync it", "", "outage-over", everyLine(verification.Syncing), "Liftlock asks for the sync once more", func(e *verification.Expect) { e.Limits.Trigger = true }, noStep},
	{"somebody has synced it again", "", "outage-synced", everyLine(verification.Verified), "", nil, noStep},
	{"a sync window is closed", "", "window", everyLine(verification.Queued), "a sync window of the project shop keeps it from being synced until 2026-03-02T12:00:00Z", func(e *verification.Expect) {
		e.Window = &verification.Window{Project: "shop", Opens: time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)}
	}, noStep},
	{"its step waits for another one's", "", "rolling", everyLine(verification.Queued), "waits for step 1: shop-api-dev", nil,
		verification.SetStep{Status: "Waiting", Step: "2", WaitsFor: &verification.StepMember{Application: "shop-api-dev", Step: "1", Status: "Progressing"}}},
	{"the third step waits for the second", "", "rolling-third", oldestAndNewest(verification.Queued), "waits for step 2: shop-web-dev", nil,
		verification.SetStep{Status: "Waiting", Step: "3", WaitsFor: &verification.StepMember{Application: "shop-web-dev", Step: "2", Status: "Progressing"}}},
	{"no step syncs it", "", "rolling-no-step", everyLine(verification.Syncing), "its ApplicationSet's RollingSync never syncs it (it is in no step)", nil, verification.SetStep{Status: "Waiting", Step: "-1"}},
	{"its step updates nothing", "", "rolling-no-update", everyLine(verification.Syncing), "RollingSync never syncs it (its step's maxUpdate is 0)", nil, verification.SetStep{Status: "Pending", Step: "1", NoUpdate: true}},
	{"something breaks that no release changed", "incident-before", "incident", everyLine(verification.Degraded), "health is Degraded", nil, noStep},
	{"the hydrator fails for another component of the branch", "", "hydration-failed", everyLine(verification.Arriving), "the source hydrator failed: Failed to hydrate", func(e *verification.Expect) { e.Commit = "of the dry branch" }, noStep},
	{"by Argo CD's own API, without a kubeconfig: it is well", "", "api-verified", everyLine(verification.Verified), "", nil, noStep},
	{"by Argo CD's own API: its image can't be had", "", "api-degraded", everyLine(verification.Degraded), "health is Degraded", nil, noStep},
	{"its namesake in another Argo CD is unwell", "", "namesake", everyLine(verification.Verified), "", nil, noStep},
	{"its namesake in another Argo CD is well", "", "namesake-degraded", everyLine(verification.Degraded), "health is Degraded", nil, noStep},
}

var noStep verification.SetStep

// everyLine says that it is the same on each line of versions. These are the oldest that Liftlock
// knows, one that keeps the health of resources in trees, and one that calls a lost resource
// Healthy.
func everyLine(s verification.State) map[string]verification.State {
	return map[string]verification.State{"2.14.21": s, "3.2.11": s, "3.5.7": s}
}

// oldestAndNewest says that it is the same on the lines that the whole suite of stories is told on.
func oldestAndNewest(s verification.State) map[string]verification.State {
	return map[string]verification.State{"2.14.21": s, "3.5.7": s}
}

// TestRecordedVerdicts says the same of what happened on each line of Argo CD, however that
// shows it.
func TestRecordedVerdicts(t *testing.T) {
	for _, c := range recordedLooks {
		for line, want := range c.want {
			t.Run(c.name+" on "+line, func(t *testing.T) {
				l := &recordedLook{t: t, line: line, now: time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC), expect: c.expect}
				last := l.read(c.now)
				last.SetStep = c.step
				l.commit = commitOf(last)
				if c.before != "" {
					before := l.read(c.before)
					l.commit = commitOf(before)
					if v := l.judgeTwice(before); v.State != verification.Verified {
						t.Fatalf("before, it is %s: %s", v.State, v.Reason)
					}
				}
				v := l.judgeTwice(last)
				if v.State != want || v.State != verification.Verified && !strings.Contains(v.Reason, c.why) {
					t.Errorf("it is %s: %s; want %s: …%s…", v.State, v.Reason, want, c.why)
				}
			})
		}
	}
}

// recordedLook looks at recorded Applications as time goes on.
type recordedLook struct {
	t      *testing.T
	line   string
	commit string // that landed
	expect func(*verification.Expect)
	mem    verification.Memory
	now    time.Time
}

func (r *recordedLook) read(name string) *verification.App {
	r.t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "recorded", r.line, name+".json"))
	if err != nil {
		r.t.Fatal(err)
	}
	app, _, err := decodeApplication("hub", raw)
	if err != nil || len(app.Revisions) > 1 {
		r.t.Fatalf("%v: %+v", err, app)
	}
	return &app
}

// commitOf is the commit that an Application is at or, where that can't be told, that it
// was being synced to.
func commitOf(app *verification.App) string {
	if app.SyncStatus == "Unknown" {
		return app.Operation.Revisions[0]
	}
	return app.Revisions[0]
}

// relation is how revisions stand to what landed, in a history with one release.
func (r *recordedLook) relation(revisions []string) []verification.Relation {
	switch {
	case slices.Contains(revisions, r.commit):
		return []verification.Relation{verification.Holds}
	case len(revisions) == 0:
		return nil
	}
	return []verification.Relation{verification.Unresolved}
}

// judgeTwice judges an Application for long enough to be sure of it, through several
// comparisons that find it the same.
func (r *recordedLook) judgeTwice(app *verification.App) verification.Verdict {
	e := verification.Expect{Commit: r.commit, Release: "r", Limits: verification.Limits{NoRefresh: true, Debounce: 30 * time.Second, HealthyFor: 30 * time.Second,
		ArriveWithin: time.Hour, Timeout: time.Hour, SuspendedFor: time.Hour}}
	if r.expect != nil {
		r.expect(&e)
		r.commit = e.Commit
	}
	if app.Operation != nil {
		e.OperationRel = r.relation(app.Operation.Revisions)
		e.DeployedBefore = slices.ContainsFunc(app.Deployed, func(d verification.Deployment) bool {
			return slices.Contains(d.Revisions, r.commit) && !d.At.After(app.Operation.StartedAt)
		})
	}
	var v verification.Verdict
	for range 6 {
		r.now = r.now.Add(20 * time.Second)
		seen := *app
		seen.ReconciledAt, seen.RefreshPending = r.now, false // of the time only that it changes counts
		v, r.mem = verification.Judge(e, &seen, r.relation(app.Revisions), r.mem, r.now)
	}
	return v
}
