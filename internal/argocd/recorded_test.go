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
	why    string // in the reason of one that isn't verified
}{
	{"a dry run of a commit that there isn't ends in an error", "bystander", "bystander-dry-run", map[string]verification.State{"2.14.21": verification.Verified, "3.5.7": verification.Verified}, ""},
	{"somebody syncs one resource, and fails", "bystander", "bystander-partial", map[string]verification.State{"2.14.21": verification.Verified, "3.5.7": verification.Verified}, ""},
	{"a canary pauses", "", "rollout-paused", map[string]verification.State{"2.14.21": verification.Suspended, "3.5.7": verification.Suspended}, "suspended (a paused rollout)"},
	{"somebody deletes the Deployment", "deleted-before", "deleted", map[string]verification.State{"2.14.21": verification.Degraded, "3.5.7": verification.Degraded}, "health is Missing"},
	{"the release's migration fails", "", "hook-failed", map[string]verification.State{"2.14.21": verification.Degraded, "3.5.7": verification.Degraded}, "the PreSync hook Job migration"},
	{"a nightly job fails", "nightly-before", "nightly-failed", map[string]verification.State{"3.5.7": verification.Degraded}, "health is Degraded"},
}

// TestRecordedVerdicts says the same of what happened on each line of Argo CD, however that
// shows it.
func TestRecordedVerdicts(t *testing.T) {
	for _, c := range recordedLooks {
		for line, want := range c.want {
			t.Run(c.name+" on "+line, func(t *testing.T) {
				l := &recordedLook{t: t, line: line, now: time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)}
				last := l.read(c.now)
				l.commit = last.Revisions[0]
				if c.before != "" {
					before := l.read(c.before)
					l.commit = before.Revisions[0]
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
	mem    verification.Memory
	now    time.Time
}

func (l *recordedLook) read(name string) *verification.App {
	l.t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "recorded", l.line, name+".json"))
	if err != nil {
		l.t.Fatal(err)
	}
	app, _, err := decodeApplication("hub", raw)
	if err != nil || len(app.Revisions) != 1 {
		l.t.Fatalf("%v: %+v", err, app)
	}
	return &app
}

// relation is how revisions stand to what landed, in a history with one release.
func (l *recordedLook) relation(revisions []string) []verification.Relation {
	if slices.Contains(revisions, l.commit) {
		return []verification.Relation{verification.Holds}
	}
	return []verification.Relation{verification.Unresolved}
}

// judgeTwice judges an Application for long enough to be sure of it, through several
// comparisons that find it the same.
func (l *recordedLook) judgeTwice(app *verification.App) verification.Verdict {
	e := verification.Expect{Commit: l.commit, Release: "r", Limits: verification.Limits{NoRefresh: true, Debounce: 30 * time.Second, HealthyFor: 30 * time.Second,
		ArriveWithin: time.Hour, Timeout: time.Hour, SuspendedFor: time.Hour}}
	if app.Operation != nil {
		e.OperationRel = l.relation(app.Operation.Revisions)
		e.DeployedBefore = slices.ContainsFunc(app.Deployed, func(d verification.Deployment) bool {
			return slices.Contains(d.Revisions, l.commit) && !d.At.After(app.Operation.StartedAt)
		})
	}
	var v verification.Verdict
	for range 6 {
		l.now = l.now.Add(20 * time.Second)
		seen := *app
		seen.ReconciledAt, seen.RefreshPending = l.now, false // of the time only that it changes counts
		v, l.mem = verification.Judge(e, &seen, l.relation(app.Revisions), l.mem, l.now)
	}
	return v
}
