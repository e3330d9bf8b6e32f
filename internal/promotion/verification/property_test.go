package verification

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// applicationModel draws the states that an Application can be seen in. It knows the truth
// that the properties are about: since when what Judge needs has really held.
type applicationModel struct {
	app        *App
	rel        []Relation
	op         []Relation
	down       string
	holds      bool // the compared revision holds the commit
	reconciled bool // reconciledAt has changed since it was first seen done
	doneAt     time.Time
	sure       bool // Argo CD can tell
}

var relations = []Relation{Holds, Superseded, Before, Unresolved}

func (am *applicationModel) step(t *rapid.T) {
	pick := func(label string, from ...string) string { return rapid.SampledFrom(from).Draw(t, label) }
	if rapid.IntRange(0, 30).Draw(t, "gone") == 0 {
		am.app = nil
	} else if am.app == nil {
		am.app = &App{Name: "web", UID: pick("uid", "u1", "u2"), ComparedToSpec: true, AutoSync: true, ReconciledAt: cluster}
	}
	am.down = pick("down", "", "", "", "", "", "", "", "connection refused")
	if am.app == nil {
		return
	}
	next := *am.app
	a := &next
	for range rapid.IntRange(1, 4).Draw(t, "changes") {
		switch rapid.IntRange(0, 12).Draw(t, "change") {
		case 0, 1:
			a.ReconciledAt = a.ReconciledAt.Add(time.Duration(rapid.IntRange(0, 2).Draw(t, "tick")) * time.Second)
		case 2:
			a.Health = pick("health", "Healthy", "Healthy", "Progressing", "Degraded", "Missing", "Suspended", "Unknown", "")
		case 3:
			a.SyncStatus = pick("sync", "Synced", "Synced", "Synced", "OutOfSync", "Unknown", "")
		case 4:
			am.rel = rapid.SliceOfN(rapid.SampledFrom(append(relations, Holds, Holds, Holds, Holds, Holds)), 0, 2).Draw(t, "rel")
			a.Revisions = []string{fmt.Sprint(am.rel)}
		case 5:
			a.Operation = &Operation{Phase: pick("phase", "Running", "Succeeded", "Succeeded", "Failed", "Error", "Terminating"), Revisions: a.Revisions,
				Message: pick("message", "", "x", "Sync operation blocked by sync window")}
			am.op = rapid.SliceOfN(rapid.SampledFrom(relations), 0, 1).Draw(t, "op")
		case 6:
			a.RefreshPending = !a.RefreshPending
			if !a.RefreshPending {
				a.ReconciledAt = a.ReconciledAt.Add(time.Second)
			}
		case 7:
			a.Pending = rapid.IntRange(0, 3).Draw(t, "pending") == 0
		case 8:
			a.Conditions = nil
			if c := pick("condition", "", "", "ComparisonError", "SyncError", "OrphanedResourceWarning"); c != "" {
				a.Conditions = []Condition{{c, "m"}}
			}
		case 9:
			a.SetStep = SetStep{Status: pick("step", "", "", "Waiting", "Healthy"), Step: pick("which", "1", "2", "2", "-1")}
		case 10:
			a.ComparedToSpec = rapid.IntRange(0, 5).Draw(t, "spec") > 0
		case 11:
			a.HealthInTree = rapid.IntRange(0, 3).Draw(t, "in the tree") == 0
			a.Unchecked.Total = rapid.IntRange(0, 1).Draw(t, "unchecked")
		case 12: // all is well
			am.rel, a.Revisions, am.op, a.Operation = []Relation{Holds}, []string{"x"}, nil, nil
			a.SyncStatus, a.Health, a.ComparedToSpec, a.Pending, a.Conditions = "Synced", "Healthy", true, false, nil
		}
	}
	next = TrackRefresh(am.app, next)
	am.app = &next
}

// recordTruth notes the truth after a step: done means the facts of 2 and 3.
func (am *applicationModel) recordTruth() (done bool) {
	a := am.app
	am.sure = am.down == "" && a != nil && a.SyncStatus != "Unknown" &&
		!slices.ContainsFunc(a.Conditions, func(c Condition) bool { return c.Type == "ComparisonError" })
	am.holds = am.down == "" && a != nil && len(am.rel) > 0 && !slices.ContainsFunc(am.rel, func(r Relation) bool { return r != Holds })
	done = am.sure && am.holds && a.SyncStatus == "Synced" && a.ComparedToSpec && !a.Pending && !inProgress(a)
	if a == nil {
		return done
	}
	if done && am.doneAt.IsZero() {
		am.doneAt = a.ReconciledAt
	}
	if !am.doneAt.IsZero() && !a.ReconciledAt.Equal(am.doneAt) {
		am.reconciled = true
	}
	return done
}

func TestJudgeKeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := Expect{Commit: "x", Release: "r", Limits: limits()}
		e.Limits.NoRefresh = rapid.Bool().Draw(t, "norefresh")
		e.Limits.Trigger = rapid.Bool().Draw(t, "trigger")
		e.Limits.RequireHealthChecks = rapid.Bool().Draw(t, "health checks")
		w := &applicationModel{rel: []Relation{Holds}}
		var mem Memory
		now, last := start, Verdict{}
		for range rapid.IntRange(1, 60).Draw(t, "looks") {
			w.step(t)
			if !last.Next.IsZero() && rapid.Bool().Draw(t, "on time") && last.Next.After(now) {
				now = last.Next
			} else {
				now = now.Add(time.Duration(rapid.IntRange(0, 400).Draw(t, "wait")) * time.Second)
			}
			e.OperationRel, e.Unreachable = w.op, w.down
			done := w.recordTruth()
			before := mem
			v, next := Judge(e, w.app, w.rel, mem, now)
			again, _ := Judge(e, w.app, w.rel, before, now)
			if !reflect.DeepEqual(v, again) {
				t.Fatalf("the same arguments gave %+v and %+v", v, again)
			}
			mem = throughJSON(t, next)

			if v.State == Verified && last.State != Verified && before.VerifiedAt.IsZero() && !(done && w.reconciled) {
				t.Fatalf("verified, but done=%v reconciled=%v: %+v", done, w.reconciled, w.app)
			}
			if v.State == Verified && before.VerifiedAt.IsZero() && e.Limits.RequireHealthChecks && (w.app.HealthInTree || w.app.Unchecked.Total > 0) {
				t.Fatalf("verified without a health check: %+v", w.app)
			}
			if v.State == Verified && mem.VerifiedAt.IsZero() {
				t.Fatal("verified without remembering it")
			}
			if v.State == Degraded && (!w.sure || !w.holds || w.app.Health == "Unknown" && w.app.Operation == nil) {
				t.Fatalf("degraded on doubt: %+v", w.app)
			}
			if (v.State == Verified || v.State == Degraded) && w.sure && !w.holds && w.app != nil && slices.Contains(w.rel, Superseded) {
				t.Fatalf("%s about another release", v.State)
			}
			if !v.Next.IsZero() && !v.Next.After(now) {
				t.Fatalf("Next %s is not after %s", v.Next, now)
			}
			if v.Since.After(now) || v.Since.IsZero() {
				t.Fatalf("Since %s at %s", v.Since, now)
			}
			if v.Refresh && (e.Limits.NoRefresh || w.app == nil || w.app.RefreshPending) {
				t.Fatal("a refresh that is forbidden, impossible or under way")
			}
			if v.Sync && (!e.Limits.Trigger || w.app.AutoSync || w.app.SetStep.Status != "" && !w.app.SetStep.isLeftOut()) {
				t.Fatal("a sync that somebody else does")
			}
			if answers := []bool{v.InSync, v.Drift != nil, v.DriftUntold != ""}; count(answers) != 1 {
				t.Fatalf("whether it has drifted has not one answer: %+v", v)
			}
			if v.InSync && (!w.sure || w.app.SyncStatus != "Synced" || !w.app.ComparedToSpec || w.app.Pending || inProgress(w.app)) {
				t.Fatalf("in sync on doubt: %+v", w.app)
			}
			if v.Reason == "" || len(mem.Timeline) > maxTimeline {
				t.Fatalf("reason %q, %d marks", v.Reason, len(mem.Timeline))
			}
			for i := 1; i < len(mem.Timeline); i++ {
				if mem.Timeline[i].At.Before(mem.Timeline[i-1].At) {
					t.Fatal("the timeline goes backwards")
				}
			}
			last = v
		}
	})
}

// count counts what is so.
func count(answers []bool) int {
	n := 0
	for _, is := range answers {
		if is {
			n++
		}
	}
	return n
}

// With nothing changing, looking only when Next says so ends in a state that
// waits for news, after a bounded number of looks.
func TestJudgeSettles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &applicationModel{rel: []Relation{Holds}}
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			w.step(t)
		}
		e := Expect{Commit: "x", Limits: limits(), OperationRel: w.op, Unreachable: w.down}
		var mem Memory
		now := start
		for range 200 {
			v, next := Judge(e, w.app, w.rel, mem, now)
			if v.Next.IsZero() {
				return
			}
			if v.State == Unclear && (v.Refresh || w.down != "") {
				return // a comparison is asked for as long as none comes
			}
			mem, now = next, v.Next
		}
		t.Fatalf("still busy after 200 looks: %+v %+v", mem, w.app)
	})
}

func TestMemoryAboutAnotherExpectIsDiscarded(t *testing.T) {
	s := newScenario(t)
	s.verify()
	for _, other := range []Expect{{Commit: commitY, Release: "r1"}, {Commit: commitX, Release: "r2"}} {
		other.Limits = s.e.Limits
		v, mem := Judge(other, s.app, []Relation{Holds}, s.mem, s.now.Add(time.Second))
		if v.State != Refreshing || !mem.VerifiedAt.IsZero() || len(mem.Timeline) != 1 {
			t.Errorf("%+v: %s, %+v", other, v.State, mem)
		}
	}
}

func TestClockSetBack(t *testing.T) {
	s := newScenario(t)
	s.deploy(time.Hour, "Healthy", Soaking)
	s.judgeAt(0, Soaking, "")
	s.wantNext(time.Minute)
	s.judgeAt(time.Minute, Verified, "")
}

func TestTimelineKeepsItsEnds(t *testing.T) {
	s := newScenario(t)
	s.verify()
	first := s.mem.Timeline[0]
	for i := range 200 {
		s.app.Health = []string{"Progressing", "Healthy"}[i%2]
		s.judgeAt(time.Duration(120+i)*time.Second, Verified, "")
	}
	line := s.mem.Timeline
	if len(line) != maxTimeline || line[0] != first || !line[len(line)-1].At.Equal(s.now) {
		t.Errorf("%d marks, from %+v to %+v", len(line), line[0], line[len(line)-1])
	}
}
