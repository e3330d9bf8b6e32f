package verification

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestVerdictEdges has the looks at which two rules meet, or only one of two conditions holds.
func TestVerdictEdges(t *testing.T) {
	unasked := func(s *scenario) { // nobody but Liftlock syncs it
		s.e.Limits.Trigger, s.app.AutoSync = true, false
		s.notice()
	}
	window := func(s *scenario) { s.e.Window = &Window{Project: "shop", Opens: start.Add(time.Hour)} }
	// laterFailed is a target that was done, and of which a later sync failed before
	// anybody knew how it was.
	laterFailed := func(s *scenario) {
		s.sync()
		s.judgeAt(0, Refreshing, "")
		s.operate("Error", "the repo-server is away")
		s.app.Health = "Degraded"
	}
	held := func(s *scenario) { // by a window that has opened
		window(s)
		s.notice()
		s.judgeAt(0, Queued, "")
		s.e.Window = nil
	}
	for _, c := range []struct {
		name string
		run  func(s *scenario)
	}{
		{"a relation without a revision", func(s *scenario) {
			s.app.Revisions = nil
			s.judgeAt(0, Arriving, "Argo CD has not reported a revision yet")
		}},
		{"revisions of other repositories only", func(s *scenario) {
			s.rel = nil
			s.judgeAt(0, Arriving, "Argo CD has not reported a revision yet")
		}},
		{"no revision after it was done is only unclear", func(s *scenario) {
			s.verify()
			s.rel, s.app.Revisions = nil, nil
			s.judgeAt(2*minute, Verified, "it can't be told how it is: Argo CD has not reported a revision yet")
		}},
		{"an operation that ended where a window blocked it", func(s *scenario) {
			s.notice()
			s.operate("Failed", "Sync operation blocked by sync window")
			s.judgeAt(0, Failed, "ended Failed")
		}},
		{"an object without an identity is the one before", func(s *scenario) {
			s.verify()
			s.app.UID = ""
			s.judgeAt(2*minute, Verified, "synced and healthy")
			s.app.UID = "u1"
			s.judgeAt(3*minute, Verified, "synced and healthy")
		}},
		{"a refresh that is pending changes nothing about when it is too late", func(s *scenario) {
			s.app.RefreshPending = true
			s.judgeAt(0, Arriving, "")
			s.wantNext(15 * minute)
		}},
		{"somebody's refresh proves nothing where refreshes are off", func(s *scenario) {
			s.e.Limits.NoRefresh = true
			s.sync()
			s.judgeAt(0, Refreshing, "")
			s.refresh(second, Refreshing, "")
			s.reconcile()
			s.judgeAt(3*second, Soaking, "")
		}},

		{"degraded in the middle of a sync counts", func(s *scenario) {
			s.deploy(0, "Healthy", Soaking)
			s.app.Health = "Degraded"
			s.operate("Running", "")
			s.judgeAt(second, Progressing, "health is Degraded")
			s.judgeAt(31*second, Degraded, "health is Degraded")
		}},
		{"missing before a sync that was asked for waits", func(s *scenario) {
			s.deploy(0, "Healthy", Soaking)
			s.app.Health, s.app.Pending = "Missing", true
			s.judgeAt(second, Progressing, "while a sync is under way")
			s.judgeAt(20*minute, Progressing, "")
		}},
		{"suspended for long after it was verified", func(s *scenario) {
			s.verify()
			s.app.Health = "Suspended"
			s.judgeAt(2*minute, Verified, "at the moment suspended")
			s.wantNext(24*time.Hour + 2*minute)
			s.judgeAt(24*time.Hour+2*minute, Verified, "at the moment suspended")
			s.judgeAt(48*time.Hour, Verified, "at the moment suspended")
		}},
		{"the earliest of two limits is the one", func(s *scenario) {
			s.verify()
			s.app.Health = "Progressing"
			s.judgeAt(2*minute, Verified, "")
			s.app.Health = "Degraded"
			s.judgeAt(12*minute-10*second, Verified, "")
			s.wantNext(12 * minute)
			s.judgeAt(12*minute, Degraded, "was healthy, and has not been again for longer than 10m")
		}},
		{"the Application's own message comes first", func(s *scenario) {
			s.app.HealthMessage, s.app.Unhealthy = "two of its hooks are gone", []Resource{{Kind: "Pod", Name: "web", Health: "Degraded", Message: "CrashLoopBackOff"}}
			s.deploy(0, "Degraded", Progressing)
			s.judgeAt(minute, Degraded, "for 30s: two of its hooks are gone")
		}},
		{"one that only names resources doesn't", func(s *scenario) {
			s.app.HealthMessage, s.app.Unhealthy = "Caused by apps/Deployment:shop/web", []Resource{{Kind: "Pod", Name: "web", Health: "Degraded", Message: "CrashLoopBackOff"}}
			s.deploy(0, "Degraded", Progressing)
			s.judgeAt(minute, Degraded, "for 30s: Pod web: CrashLoopBackOff")
			s.app.Unhealthy = nil
			s.judgeAt(2*minute, Degraded, ": Caused by apps/Deployment:shop/web")
		}},
		{"one that is absent is named before those that the message only names", func(s *scenario) {
			s.app.HealthMessage, s.app.Unhealthy = "Caused by apps/Deployment:shop/web", []Resource{{Kind: "Service", Name: "web", Health: "Missing"}}
			s.deploy(0, "Degraded", Progressing)
			s.judgeAt(minute, Degraded, "for 30s: Service web is not there")
		}},
		{"a sync of a part of another commit that failed isn't", func(s *scenario) {
			s.notice()
			s.app.Operation, s.e.OperationRel = &Operation{Phase: "Failed", Partial: true, Revisions: []string{commitW}}, []Relation{Before}
			s.judgeAt(0, Syncing, "OutOfSync, and no sync has begun")
		}},
		{"a sync of a part that failed after it was done convicts nobody", func(s *scenario) {
			s.notice()
			s.fail("boom")
			s.judgeAt(0, Degraded, "")
			s.app.SyncStatus = "Synced"
			s.operate("Failed", "one or more objects failed to apply")
			s.app.Operation.Partial = true
			s.judgeAt(second, Refreshing, "")
		}},
		{"a sync of a part that runs in the failed one's place doesn't acquit", func(s *scenario) {
			s.notice()
			s.fail("boom")
			s.judgeAt(0, Degraded, "")
			s.operate("Running", "")
			s.app.Operation.Partial, s.app.Pending = true, true
			s.judgeAt(second, Degraded, "boom")
		}},
		{"a sync that is over waits for nothing any more", func(s *scenario) {
			s.notice()
			s.operate("Succeeded", "waiting for healthy state of argoproj.io/Rollout/web")
			s.app.Health = "Suspended"
			s.judgeAt(0, Syncing, "although the sync of this commit succeeded")
		}},
		{"a sync that ended in a phase that isn't known", func(s *scenario) {
			s.notice()
			s.operate("Paused", "")
			s.judgeAt(0, Syncing, "OutOfSync, and no sync has begun")
		}},
		{"a sync of a part that failed is said", func(s *scenario) {
			s.notice()
			s.operate("Failed", "one or more objects failed to apply")
			s.app.Operation.Partial, s.app.Operation.By = true, "ada"
			s.judgeAt(0, Syncing, "OutOfSync: a sync that says nothing of the release ended Failed, asked for by ada: one or more objects failed to apply")
		}},
		{"of resources without a message the first that is absent is named", func(s *scenario) {
			s.app.Unhealthy = []Resource{{Kind: "Pod", Name: "web", Health: "Degraded"}, {Kind: "ConfigMap", Name: "web", Health: "Missing"}, {Kind: "Service", Name: "web", Health: "Missing"}, {Kind: "Service", Name: "api", Health: "Missing"}}
			s.deploy(0, "Degraded", Progressing)
			if v := s.judgeAt(minute, Degraded, "for 30s: Service web is not there"); strings.Contains(v.Reason, "api") {
				s.t.Error(v.Reason)
			}
		}},

		{"trigger: it says when it asks again", func(s *scenario) {
			unasked(s)
			s.judgeAt(0, Syncing, "")
			s.wantNext(2 * second)
			s.judgeAt(second, Syncing, "")
			s.wantNext(2 * second)
		}},
		{"trigger: nothing was ever synced", func(s *scenario) {
			unasked(s)
			s.app.Operation, s.e.OperationRel = nil, nil
			if v := s.judgeAt(0, Syncing, "so Liftlock asks for the sync"); !v.Sync {
				s.t.Error("it asks for none")
			}
		}},
		{"trigger: somebody synced a part of it only", func(s *scenario) {
			unasked(s)
			s.operate("Succeeded", "")
			s.app.Operation.Partial = true
			if v := s.judgeAt(0, Syncing, "OutOfSync: there is no automated sync policy, so Liftlock asks for the sync"); !v.Sync {
				s.t.Error("it asks for none")
			}
		}},
		{"trigger: not while the sync of another commit runs", func(s *scenario) {
			unasked(s)
			s.app.Operation, s.e.OperationRel = &Operation{Phase: "Running", Revisions: []string{commitW}}, []Relation{Before}
			if v := s.judgeAt(0, Syncing, "the sync is running"); v.Sync {
				s.t.Error("it asks for one more")
			}
		}},
		{"trigger: not for what is synced", func(s *scenario) {
			unasked(s)
			s.app.SyncStatus, s.app.Conditions = "Synced", []Condition{{"SyncError", "the last one failed"}}
			s.app.Operation, s.e.OperationRel = nil, nil
			if v := s.judgeAt(0, Syncing, "Argo CD reports SyncError: the last one failed"); v.Sync {
				s.t.Error("it asks for one")
			}
		}},
		{"trigger: a set without a RollingSync syncs nothing", func(s *scenario) {
			unasked(s)
			s.e.Generated = &Generated{Set: "shop"}
			if v := s.judgeAt(0, Syncing, "so Liftlock asks for the sync"); !v.Sync {
				s.t.Error("it asks for none")
			}
		}},
		{"no trigger: a mark that is missing is no matter", func(s *scenario) {
			s.app.AutoSync, s.e.Unmarked = false, "shop"
			s.notice()
			s.judgeAt(0, Syncing, "sync it, or set verify.sync to trigger")
		}},

		{"a sync that was asked for while another one runs", func(s *scenario) {
			s.notice()
			s.operate("Running", "wave 2")
			s.app.Pending = true
			s.judgeAt(0, Syncing, "the sync is running: wave 2")
		}},
		{"a sync of a revision that Git doesn't know, which succeeded", func(s *scenario) {
			s.sync()
			s.app.Operation, s.e.OperationRel = &Operation{Phase: "Succeeded", Revisions: []string{commitY}}, []Relation{Unresolved}
			s.judgeAt(0, Refreshing, "")
		}},
		{"a failed sync of some resources at a revision that Git doesn't know", func(s *scenario) {
			s.sync()
			s.app.Operation, s.e.OperationRel = &Operation{Phase: "Failed", Partial: true, Revisions: []string{commitY}}, []Relation{Unresolved}
			s.judgeAt(0, Refreshing, "")
		}},
		{"a sync of some resources brought nothing into sync", func(s *scenario) {
			s.notice()
			s.operate("Succeeded", "")
			s.app.Operation.Partial = true
			s.judgeAt(0, Syncing, "OutOfSync, and no sync has begun")
		}},
		{"a failed sync that runs again convicts nobody", func(s *scenario) {
			s.notice()
			s.fail("boom")
			s.judgeAt(0, Degraded, "")
			s.operate("Running", "Retrying attempt #2")
			s.judgeAt(second, Syncing, "the sync is running")
		}},
		{"after it was verified, the sync of another commit failed", func(s *scenario) {
			s.verify()
			s.fail("boom")
			s.app.Operation.Revisions, s.e.OperationRel = []string{commitW}, []Relation{Before}
			if v := s.judgeAt(2*minute, Verified, "synced and healthy"); strings.Contains(v.Reason, "later sync") {
				s.t.Error(v.Reason)
			}
		}},
		{"what the message of the sync says already is said once", func(s *scenario) {
			s.notice()
			s.fail("one task failed: admission denied")
			if v := s.judgeAt(0, Degraded, "ended Failed: Deployment web: admission denied"); strings.Count(v.Reason, "admission denied") != 1 {
				s.t.Error(v.Reason)
			}
		}},
		{"a resource that failed without a message", func(s *scenario) {
			s.notice()
			s.fail("one task failed")
			s.app.Operation.Results[0].Message = ""
			s.judgeAt(0, Degraded, "ended Failed: Deployment web: one task failed")
		}},

		{"settled: also where only its history knows of the sync", func(s *scenario) {
			s.sync()
			s.operate("Error", "the repo-server is away")
			s.e.DeployedBefore, s.app.Health, s.e.Limits.NoRefresh = true, "Degraded", true
			s.judgeAt(0, Refreshing, "may be about an older state")
			for i := range time.Duration(2) {
				s.app.ReconciledAt = s.app.ReconciledAt.Add(second)
				s.judgeAt((i+1)*second, []State{Refreshing, Progressing}[i], "")
			}
			s.judgeAt(32*second, Degraded, "health is Degraded, and has been for 30s")
		}},
		{"settled: since the first sync, not since the last look", func(s *scenario) {
			laterFailed(s)
			s.judgeAt(minute, Refreshing, "")
			if s.judgeAt(5*minute, Refreshing, ""); !s.mem.Done.Equal(start) {
				s.t.Errorf("it was done at %s", s.mem.Done)
			}
		}},
		{"settled: not where its history doesn't either", func(s *scenario) {
			s.sync()
			s.operate("Error", "the repo-server is away")
			s.app.Health = "Degraded"
			s.judgeAt(0, Failed, "ended Error")
		}},
		{"settled: not with another specification", func(s *scenario) {
			laterFailed(s)
			s.app.ComparedToSpec = false
			s.judgeAt(second, Syncing, "present spec")
		}},
		{"settled: not out of sync", func(s *scenario) {
			laterFailed(s)
			s.app.SyncStatus = "OutOfSync"
			s.judgeAt(second, Syncing, "OutOfSync: a later sync of this commit ended Error")
		}},
		{"settled: not while another sync is due", func(s *scenario) {
			laterFailed(s)
			s.app.Pending = true
			s.judgeAt(second, Syncing, "has not begun")
		}},
		{"settled: not for an error of which no sync tells", func(s *scenario) {
			laterFailed(s)
			s.operate("Succeeded", "")
			s.app.Conditions = []Condition{{"SyncError", "x"}}
			s.judgeAt(second, Syncing, "Argo CD reports SyncError: x")
		}},

		{"queued: a blocker that lacks a resource", func(s *scenario) {
			s.app.AutoSync, s.app.SetStep = false, SetStep{Status: "Waiting", Step: "2", WaitsFor: &StepMember{Application: "web-eu", Step: "1", Status: "Progressing", Health: "Missing"}}
			s.notice()
			s.judgeAt(0, Queued, "web-eu (Missing, so it is blocked)")
		}},
		{"queued: not what is being synced", func(s *scenario) {
			s.app.AutoSync, s.app.SetStep = false, SetStep{Status: "Waiting", Step: "2"}
			s.notice()
			s.operate("Running", "")
			s.judgeAt(0, Syncing, "the sync is running")
		}},
		{"queued: never synced by its set, and by nobody else", func(s *scenario) {
			s.app.AutoSync, s.app.SetStep = false, SetStep{Status: "Pending", Step: "1", NoUpdate: true}
			s.notice()
			s.judgeAt(0, Syncing, "RollingSync never syncs it (its step's maxUpdate is 0); sync it")
		}},
		{"queued: a window that should have opened by now", func(s *scenario) {
			s.e.Window = &Window{Project: "shop", Opens: start}
			s.notice()
			s.judgeAt(0, Queued, "")
			s.wantNext(24 * time.Hour)
		}},
		{"queued: a window for what Liftlock syncs", func(s *scenario) {
			window(s)
			unasked(s)
			if v := s.judgeAt(0, Queued, "a sync window of the project shop"); v.Sync {
				s.t.Error("it asks for a sync that can't run")
			}
		}},
		{"queued: a window says nothing of a sync that runs", func(s *scenario) {
			window(s)
			s.notice()
			s.operate("Running", "")
			s.judgeAt(0, Syncing, "the sync is running")
		}},
		{"queued: nor of one that was asked for", func(s *scenario) {
			window(s)
			s.notice()
			s.app.Pending = true
			s.judgeAt(0, Syncing, "has not begun")
		}},
		{"held: Argo CD is made to look", func(s *scenario) {
			held(s)
			if !s.judgeAt(time.Hour, Syncing, "").Refresh {
				s.t.Error("it isn't")
			}
		}},
		{"held: but not where a sync was asked for", func(s *scenario) {
			held(s)
			s.app.Pending = true
			if s.judgeAt(time.Hour, Syncing, "has not begun").Refresh {
				s.t.Error("it is")
			}
		}},
		{"held: nor where one runs", func(s *scenario) {
			held(s)
			s.operate("Running", "")
			if s.judgeAt(time.Hour, Syncing, "the sync is running").Refresh {
				s.t.Error("it is")
			}
		}},
		{"held: nor where it is in sync", func(s *scenario) {
			held(s)
			s.app.SyncStatus, s.app.ComparedToSpec = "Synced", false
			if s.judgeAt(time.Hour, Syncing, "present spec").Refresh {
				s.t.Error("it is")
			}
		}},
		{"held: nor where it never was", func(s *scenario) {
			s.notice()
			if s.judgeAt(0, Syncing, "").Refresh {
				s.t.Error("it is")
			}
		}},

		{"paused: not before the sync has begun", func(s *scenario) {
			s.notice()
			s.app.Health = "Suspended"
			s.judgeAt(0, Syncing, "OutOfSync")
		}},
		{"paused: not where the sync waits for nothing", func(s *scenario) {
			s.notice()
			s.operate("Running", "wave 1")
			s.app.Health = "Suspended"
			s.judgeAt(0, Syncing, "the sync is running: wave 1")
		}},
		{"paused: not in the sync of another commit", func(s *scenario) {
			s.notice()
			s.app.Operation, s.e.OperationRel = &Operation{Phase: "Running", Message: "waiting for healthy state of argoproj.io/Rollout/web", Revisions: []string{commitW}}, []Relation{Before}
			s.app.Health = "Suspended"
			s.judgeAt(0, Syncing, "the sync is running")
		}},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(newScenario(t)) })
	}
}

// unhealthyFor lets the first sync of the commit begin at one time, and the target be unwell
// since another, both by the cluster's clock.
func unhealthyFor(began, unhealthy time.Duration) func(*scenario) {
	return func(s *scenario) {
		s.sync()
		s.mem.Commit, s.mem.Release, s.mem.UID = s.e.Commit, s.e.Release, s.app.UID
		s.app.Operation.StartedAt, s.app.HealthSince = cluster.Add(began), cluster.Add(unhealthy)
	}
}

// TestRunsFormer holds when a target is known to run what was there before the commit still.
func TestRunsFormer(t *testing.T) {
	queued := func(s *scenario) {
		s.app.AutoSync, s.app.SetStep = false, SetStep{Status: "Waiting", Step: "2"}
		s.notice()
	}
	nothing := func(s *scenario) { s.app.Operation, s.e.OperationRel = nil, nil }
	for name, c := range map[string]struct {
		see   func(s *scenario)
		state State
		want  bool
	}{
		"it hasn't noticed the commit":                    {func(*scenario) {}, Arriving, true},
		"nor was anything ever synced":                    {nothing, Arriving, true},
		"its sync has begun, and isn't compared with yet": {func(s *scenario) { s.operate("Running", "") }, Arriving, false},
		"which commit it has isn't known":                 {func(s *scenario) { s.rel, s.app.Revisions = nil, nil }, Arriving, false},
		"it waits its turn":                               {queued, Queued, true},
		"it waits its turn, and was never synced":         {func(s *scenario) { queued(s); nothing(s) }, Queued, true},
		"it waits its turn anew":                          {func(s *scenario) { queued(s); s.operate("Succeeded", "") }, Queued, false},
		"it was done, and waits its turn anew": {func(s *scenario) {
			s.sync()
			s.judgeAt(0, Refreshing, "")
			queued(s)
			nothing(s)
		}, Queued, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScenario(t)
			c.see(s)
			if v := s.judgeAt(second, c.state, ""); v.RunsFormer != c.want || v.OnlyMissingBefore {
				t.Errorf("%+v", v)
			}
		})
	}
}

// TestUnhealthyBeforeByItsHistory asks for how a target was only as long as nothing tells
// that the sync of the commit began.
func TestUnhealthyBeforeByItsHistory(t *testing.T) {
	for name, c := range map[string]struct {
		see  func(s *scenario)
		want bool
	}{
		"noticed, and not begun":    {func(*scenario) {}, true},
		"by the Application's past": {func(s *scenario) { s.e.DeployedBefore = true }, false},
		"nothing differed":          {func(s *scenario) { s.app.SyncStatus = "Synced" }, false},
		"of its sync no revision is known": {func(s *scenario) {
			s.app.Revisions, s.app.Operation.Revisions = nil, nil
		}, true},
		"it lacks what its sync makes": {func(s *scenario) { s.operate("Running", ""); s.app.Health = "Missing" }, false},
		"its sync runs":                {func(s *scenario) { s.operate("Running", "") }, false},
		"an older commit's sync ran":   {func(s *scenario) { s.app.Operation, s.e.OperationRel = nil, nil }, true},
		"by Argo CD's own times":       {unhealthyFor(minute, minute-second), true},
		"since its sync began":         {unhealthyFor(minute, minute), false},
		"since when isn't told":        {func(s *scenario) { unhealthyFor(minute, minute-second)(s); s.app.HealthSince = time.Time{} }, false},
		"another commit's sync ran and failed": {func(s *scenario) {
			unhealthyFor(minute, minute-second)(s)
			s.app.SyncStatus, s.app.Operation.Revisions, s.e.OperationRel = "Synced", []string{commitW}, []Relation{Before}
		}, false},
		"before a part was synced":   {func(s *scenario) { unhealthyFor(minute, minute-second)(s); s.app.Operation.Partial = true }, false},
		"after it was tried again":   {func(s *scenario) { unhealthyFor(minute, minute-second)(s); s.app.Operation.Retries = 1 }, false},
		"after another sync of it":   {func(s *scenario) { unhealthyFor(minute, minute-second)(s); s.e.DeployedBefore = true }, false},
		"after one of it had failed": {func(s *scenario) { unhealthyFor(minute, minute-second)(s); s.mem.SyncTried = true }, false},
		"and is well since":          {func(s *scenario) { unhealthyFor(minute, minute-second)(s); s.app.Health = "Healthy" }, false},
	} {
		s := newScenario(t)
		s.notice()
		s.app.Health = "Degraded"
		c.see(s)
		if _, mem := Judge(s.e, s.app, s.rel, s.mem, start); (mem.UnhealthyBefore || mem.MissingBefore) != c.want {
			t.Errorf("%s: it was unhealthy before: %t, or missing: %t", name, mem.UnhealthyBefore, mem.MissingBefore)
		}
	}
	s := newScenario(t)
	s.verify()
	s.app.Operation, s.e.OperationRel = &Operation{Phase: "Succeeded", Revisions: []string{commitW}}, []Relation{Before}
	s.app.Health, s.app.SyncStatus = "Degraded", "OutOfSync"
	if v := s.judgeAt(2*minute, Verified, ""); v.UnhealthyBefore {
		t.Error("what was done had been unhealthy before")
	}
}

// TestUnhealthyBeforeAndAfter goes on blaming what was before only for as long as the target
// never was anything else with the release.
func TestUnhealthyBeforeAndAfter(t *testing.T) {
	s := newScenario(t) // it brings a Deployment, which is Missing until its sync has made it
	s.notice()
	s.app.Health = "Missing"
	s.judgeAt(0, Syncing, "")
	s.sync()
	if v := s.judgeAt(second, Refreshing, ""); !v.UnhealthyBefore {
		t.Error("what was Missing before is Missing still, and the release is blamed")
	}
	s.refresh(2*second, Progressing, "")
	s.app.Health = "Degraded"
	s.judgeAt(3*second, Progressing, "")
	if v := s.judgeAt(minute, Degraded, ""); v.UnhealthyBefore {
		t.Error("what is Degraded with the release was only Missing before")
	}

	s = newScenario(t)
	unhealthyFor(minute, minute-second)(s)
	s.app.Health = "Degraded"
	if v := s.judgeAt(0, Refreshing, ""); !v.UnhealthyBefore {
		t.Error("it has been Degraded since before the sync")
	}
	s.refresh(second, Progressing, "")
	s.app.Health = "Healthy"
	s.judgeAt(2*second, Soaking, "")
	s.judgeAt(2*minute, Verified, "")
	s.app.Health = "Degraded"
	s.judgeAt(3*minute, Verified, "")
	if v := s.judgeAt(4*minute, Degraded, ""); v.UnhealthyBefore {
		t.Error("it got well with the release, and degraded after")
	}
}

// TestNeedsHistory reads what was synced before only where it matters.
func TestNeedsHistory(t *testing.T) {
	for name, c := range map[string]struct {
		app  App
		want bool
	}{
		"nothing was synced":             {App{Health: "Degraded"}, false},
		"well":                           {App{Health: "Healthy", Operation: &Operation{Phase: "Succeeded"}}, false},
		"its sync failed":                {App{Health: "Healthy", Operation: &Operation{Phase: "Failed"}}, true},
		"it is Degraded":                 {App{Health: "Degraded", Operation: &Operation{Phase: "Succeeded"}}, true},
		"only a part of it was synced":   {App{Health: "Healthy", Operation: &Operation{Phase: "Succeeded", Partial: true}}, true}, // it hides the sync before
		"it has yet to make a resource ": {App{Health: "Missing", Operation: &Operation{Phase: "Running"}}, false},
	} {
		if got := c.app.NeedsHistory(); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestTimeline has a mark for each change of a state or a health, and none for a look that
// shows the same again. Since is when the state changed, whatever the health did.
func TestTimeline(t *testing.T) {
	s := newScenario(t)
	looks := []struct {
		at    time.Duration
		see   func()
		state State
		since time.Duration
	}{
		{0, func() {}, Arriving, 0},
		{second, func() {}, Arriving, 0},
		{2 * second, func() { s.app.Health = "Progressing" }, Arriving, 0},
		{3 * second, func() { s.app.Health = "Healthy"; s.sync() }, Refreshing, 3 * second},
		{4 * second, s.reconcile, Refreshing, 3 * second},
		{5 * second, s.reconcile, Soaking, 5 * second},
		{65 * second, func() {}, Verified, 65 * second},
		{70 * second, func() { s.e.Unreachable = "timeout" }, Verified, 65 * second},
		{80 * second, func() {}, Verified, 65 * second},
		{90 * second, func() { s.e.Unreachable = "" }, Verified, 65 * second},
		{95 * second, func() { s.app = nil }, Absent, 95 * second},
	}
	for _, l := range looks {
		l.see()
		if v := s.judgeAt(l.at, l.state, ""); !v.Since.Equal(start.Add(l.since)) {
			t.Errorf("at %s it has been so since %s", l.at, v.Since)
		}
	}
	var got []string
	for _, c := range s.mem.Timeline {
		note, _, _ := strings.Cut(c.Note, ":")
		got = append(got, c.At.Sub(start).String()+" "+string(c.State)+" "+note)
	}
	want := []string{
		"0s arriving Argo CD has not noticed the commit", "2s arriving Argo CD has not noticed the commit",
		"3s refreshing synced; waiting for Argo CD to compare again, because its health may be about an older state",
		"5s soaking healthy, but not yet for 1m", "1m5s verified synced and healthy for 1m",
		"1m10s verified verified before; at the moment Argo CD can't be asked", "1m30s verified synced and healthy",
		"1m35s absent no such Application exists yet",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestHeldUpAt is when a target last waited for somebody else.
func TestHeldUpAt(t *testing.T) {
	s := newScenario(t)
	s.sync()
	s.app.Health = "Suspended"
	if v := s.judgeAt(0, Refreshing, ""); !v.HeldUpAt.IsZero() {
		t.Errorf("before it was ever held up: %s", v.HeldUpAt)
	}
	s.refresh(second, Suspended, "")
	if v := s.judgeAt(2*second, Suspended, ""); !v.HeldUpAt.Equal(s.now) {
		t.Errorf("suspended: %s", v.HeldUpAt)
	}
	s.app.Health = "Healthy"
	if v := s.judgeAt(3*second, Soaking, ""); !v.HeldUpAt.Equal(start.Add(2 * second)) {
		t.Errorf("no longer suspended: %s", v.HeldUpAt)
	}
}
