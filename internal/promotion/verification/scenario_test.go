package verification

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

// A scenario is one target judged over time. Its fields are what the next look
// sees; cases change them in place.
type scenario struct {
	t      *testing.T
	e      Expect
	app    *App
	rel    []Relation
	mem    Memory
	now    time.Time
	v      Verdict
	prev   *App
	second time.Duration // the cluster's clock: how far reconciledAt has come
}

var (
	start   = time.Date(2025, 3, 4, 10, 0, 0, 0, time.UTC)
	cluster = time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC) // another clock altogether
)

const (
	commitX = "1111111111111111111111111111111111111111"
	commitW = "0000000000000000000000000000000000000000"
	commitY = "2222222222222222222222222222222222222222"
)

func limits() Limits {
	return Limits{ArriveWithin: 15 * time.Minute, Timeout: 10 * time.Minute, HealthyFor: time.Minute, Watch: 30 * time.Minute, Debounce: 30 * time.Second, QueueFor: 24 * time.Hour, SuspendedFor: 24 * time.Hour}
}

// newScenario begins with a target that runs W, well, and has not noticed X.
func newScenario(t *testing.T) *scenario {
	s := &scenario{t: t, now: start, rel: []Relation{Before}}
	s.e = Expect{Commit: commitX, Release: "r1", Landed: start, Limits: limits()}
	s.app = &App{
		ArgoCD: "hub", Namespace: "argocd", Name: "web-qa", UID: "u1", AutoSync: true,
		SyncStatus: "Synced", Revisions: []string{commitW}, ComparedToSpec: true, Health: "Healthy", ReconciledAt: cluster,
		Operation: &Operation{Phase: "Succeeded", Revisions: []string{commitW}},
	}
	return s
}

// judgeAt judges at start+at and expects state, and text in its reason.
func (s *scenario) judgeAt(at time.Duration, state State, text string) Verdict {
	s.t.Helper()
	s.now = start.Add(at)
	var app *App
	if s.app != nil {
		next := TrackRefresh(s.prev, *s.app)
		s.prev, app = &next, &next
	}
	before, _ := json.Marshal(s.mem)
	v, mem := Judge(s.e, app, s.rel, s.mem, s.now)
	if after, _ := json.Marshal(s.mem); string(after) != string(before) {
		s.t.Fatalf("at %s: Judge changed the memory it was given", at)
	}
	s.v, s.mem = v, throughJSON(s.t, mem)
	if v.State != state || !strings.Contains(v.Reason, text) {
		s.t.Fatalf("at %s: %s (%s), want %s (…%s…)", at, v.State, v.Reason, state, text)
	}
	if !v.Next.IsZero() && !v.Next.After(s.now) {
		s.t.Fatalf("at %s: Next %s is not in the future", at, v.Next)
	}
	return v
}

func throughJSON(t interface{ Fatalf(string, ...any) }, mem Memory) Memory {
	raw, err := json.Marshal(mem)
	if err != nil {
		t.Fatalf("marshal: %v", err)
	}
	var back Memory
	if err := json.Unmarshal(raw, &back); err != nil {
		t.Fatalf("unmarshal: %v", err)
	}
	if !reflect.DeepEqual(back, mem) {
		t.Fatalf("memory does not survive JSON:\n%+v\n%+v", mem, back)
	}
	return back
}

// reconcile lets the controller finish a comparison.
func (s *scenario) reconcile() {
	s.second += time.Second
	s.app.ReconciledAt = cluster.Add(s.second)
}

// notice: the comparison is with X now, and differs.
func (s *scenario) notice() {
	s.reconcile()
	s.rel, s.app.Revisions, s.app.SyncStatus = []Relation{Holds}, []string{commitX}, "OutOfSync"
}

// operate: the last sync is one of X in this phase.
func (s *scenario) operate(phase, message string) {
	s.app.Operation = &Operation{Phase: phase, Message: message, Revisions: []string{commitX}}
	s.e.OperationRel = []Relation{Holds}
}

// fail: the last sync is one of X in which a resource failed.
func (s *scenario) fail(message string) {
	s.operate("Failed", message)
	s.app.Operation.Results = []SyncResult{{Group: "apps", Kind: "Deployment", Name: "web", Status: "SyncFailed", Message: "admission denied"}}
}

// sync: the sync of X succeeded, and a comparison says so.
func (s *scenario) sync() {
	s.notice()
	s.operate("Succeeded", "successfully synced (all tasks run)")
	s.app.SyncStatus = "Synced"
}

// refresh: the mark is seen, then goes with a later comparison.
func (s *scenario) refresh(at time.Duration, state State, text string) Verdict {
	s.t.Helper()
	s.app.RefreshPending = true
	s.judgeAt(at, Refreshing, "")
	s.app.RefreshPending = false
	s.reconcile()
	return s.judgeAt(at, state, text)
}

// deploy takes X to a fresh state at the given time.
func (s *scenario) deploy(at time.Duration, health string, state State) {
	s.t.Helper()
	s.sync()
	s.app.Health = health
	if v := s.judgeAt(at, Refreshing, ""); !v.Refresh {
		s.t.Fatal("no refresh asked for")
	}
	s.refresh(at, state, "")
}

// verify takes X to Verified; it is so at start+61s.
func (s *scenario) verify() {
	s.t.Helper()
	s.deploy(time.Second, "Healthy", Soaking)
	s.judgeAt(61*time.Second, Verified, "healthy for 1m")
}

func (s *scenario) wantNext(after time.Duration) {
	s.t.Helper()
	if want := start.Add(after); !s.v.Next.Equal(want) {
		s.t.Fatalf("Next = %s, want %s", s.v.Next, want)
	}
}
