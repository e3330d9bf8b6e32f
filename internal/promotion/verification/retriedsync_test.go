package verification

import (
	"strings"
	"testing"
	"time"
)

// retrySync is a person who has another sync asked for.
func (s *scenario) retrySync() {
	s.t.Helper()
	if s.v.Unsynced == nil || s.v.Unsynced.Barred != "" {
		s.t.Fatalf("it can't be retried: %+v", s.v.Unsynced)
	}
	s.mem = throughJSON(s.t, RetrySync(s.e.Commit, s.e.Release, s.v.Unsynced, s.now))
}

// startAgain is a person who has the verification started again without another sync.
func (s *scenario) startAgain() {
	mem := Memory{}
	if kept := StartAgain(s.e.Commit, s.e.Release, &s.v); kept != nil {
		mem = *kept
	}
	s.mem = throughJSON(s.t, mem)
}

// TestStartAgain remembers of a target that lacked something before the sync that it did, for as
// long as it does.
func TestStartAgain(t *testing.T) {
	for health, want := range map[string]bool{"Missing": true, "Degraded": false} {
		t.Run(health, func(t *testing.T) {
			s := newScenario(t)
			s.notice()
			s.app.Health = "Missing"
			s.judgeAt(0, Syncing, "")
			s.fail("boom")
			s.app.Operation.StartedAt = cluster.Add(time.Minute)
			if v := s.judgeAt(second, Degraded, "ended Failed"); !v.UnhealthyBefore || !v.OnlyMissingBefore {
				t.Errorf("before it is started again: %+v", v)
			}
			s.startAgain()
			s.app.Health, s.app.HealthSince = health, cluster.Add(2*time.Minute)
			s.judgeAt(2*second, s.judgeState(), "")
			if v := s.judgeAt(minute, Degraded, ""); v.UnhealthyBefore != want {
				t.Errorf("it was unhealthy before: %t", v.UnhealthyBefore)
			}
		})
	}
}

// TestRetriedSync has a person ask for another sync after a failed one. The failed sync counts no
// longer, the new one is requested until it has begun, and then it counts.
func TestRetriedSync(t *testing.T) {
	cases := []struct {
		name string
		fail func(s *scenario)
	}{
		{"a resource failed", func(s *scenario) { s.fail("boom") }},
		{"a hook failed at the end", func(s *scenario) { s.fail("boom"); s.app.SyncStatus = "Synced" }},
		{"the cluster was away", func(s *scenario) { s.operate("Error", "connection refused") }},
		{"its RollingSync's own", func(s *scenario) {
			s.fail("boom")
			s.app.AutoSync, s.app.SetStep = false, SetStep{Status: "Progressing", Step: "1"}
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := newScenario(t)
			s.notice()
			c.fail(s)
			s.app.Operation.StartedAt = cluster.Add(time.Minute)
			s.judgeAt(0, s.judgeState(), "ended")
			s.retrySync()
			if v := s.judgeAt(time.Second, Syncing, "the sync that /liftlock retry has asked for has not begun"); !v.Sync || v.HeldUpAt.IsZero() {
				t.Errorf("it doesn't ask: %+v", v)
			}
			if v := s.judgeAt(2*time.Second, Syncing, "has not begun"); v.Sync {
				t.Error("it asks again at once")
			}
			if !s.mem.Done.IsZero() {
				t.Error("what never was synced is done")
			}
			if v := s.judgeAt(4*time.Second, Syncing, "has not begun"); !v.Sync {
				t.Error("it doesn't ask again")
			}
			s.app.Pending = true
			if v := s.judgeAt(30*time.Second, Syncing, "a sync was asked for and has not begun"); v.Sync {
				t.Error("it asks for one that is asked for")
			}
			s.app.Pending = false
			s.fail("again")
			s.app.Operation.StartedAt = cluster.Add(time.Hour)
			s.judgeAt(40*time.Second, Degraded, "ended Failed")
			s.retrySync()
			s.judgeAt(41*time.Second, Syncing, "has not begun")
			s.sync()
			s.app.Operation.StartedAt = cluster.Add(2 * time.Hour)
			s.judgeAt(50*time.Second, Refreshing, "")
			if s.mem.RetriedAfter != nil {
				t.Error("it still remembers")
			}
		})
	}
}

// judgeState is what the scenario's failed sync comes to.
func (s *scenario) judgeState() State {
	if s.app.Operation.Phase == "Error" {
		return Failed
	}
	return Degraded
}

// TestRetriedSyncNeverBegins comes to an end, and may be asked for again.
func TestRetriedSyncNeverBegins(t *testing.T) {
	for _, status := range []string{"OutOfSync", "Synced"} {
		s := newScenario(t)
		s.notice()
		s.fail("boom")
		s.app.SyncStatus = status
		s.judgeAt(0, Degraded, "")
		s.retrySync()
		s.judgeAt(0, Syncing, "has not begun")
		s.judgeAt(15*minute, Failed, "not synced within 15m: the sync that /liftlock retry has asked for has not begun")
		s.retrySync()
		s.judgeAt(16*minute, Syncing, "has not begun")
	}
}

// TestUnsynced tells what another sync could mend from what it couldn't, and who may ask.
func TestUnsynced(t *testing.T) {
	failed := func(s *scenario) { s.notice(); s.fail("boom") }
	cases := []struct {
		name string
		run  func(s *scenario)
		want string // why it is barred; "no" it needs none, empty: it isn't
	}{
		{"no sync of it ever began", func(s *scenario) { s.notice(); s.judgeAt(0, Syncing, ""); s.judgeAt(15*minute, Failed, "") }, ""},
		{"its own sync failed", func(s *scenario) { failed(s); s.judgeAt(0, Degraded, "") }, ""},
		{"nobody syncs it", func(s *scenario) { failed(s); s.app.AutoSync = false; s.judgeAt(0, Degraded, "") }, "verify.sync is wait: sync it in Argo CD"},
		{"Liftlock syncs it", func(s *scenario) {
			failed(s)
			s.app.AutoSync, s.e.Limits.Trigger = false, true
			s.judgeAt(0, Degraded, "")
		}, ""},
		{"it isn't marked", func(s *scenario) { failed(s); s.e.Unmarked = "shop"; s.judgeAt(0, Degraded, "") }, "liftlock.dev/pipeline is shop"},
		{"a window is closed", func(s *scenario) {
			failed(s)
			s.e.Window = &Window{Project: "shop", Opens: start.Add(time.Hour)}
			s.judgeAt(0, Degraded, "")
		}, "until 2025-03-04T11:00:00Z: /liftlock retry once"},
		{"its health degraded", func(s *scenario) { s.deploy(0, "Degraded", Progressing); s.judgeAt(minute, Degraded, "") }, "no"},
		{"a later sync failed", func(s *scenario) {
			s.verify()
			s.fail("boom")
			s.app.Health, s.app.SyncStatus = "Degraded", "OutOfSync"
			s.judgeAt(2*minute, Verified, "")
			s.judgeAt(3*minute, Degraded, "")
		}, "no"},
		{"it has not noticed the commit", func(s *scenario) { s.judgeAt(0, Arriving, ""); s.judgeAt(15*minute, Failed, "") }, "no"},
		{"a sync runs", func(s *scenario) {
			s.notice()
			s.operate("Running", "slow")
			s.judgeAt(0, Syncing, "")
			s.judgeAt(25*minute, Failed, "")
		}, "no"},
		{"a sync is due", func(s *scenario) {
			s.notice()
			s.app.Pending = true
			s.judgeAt(0, Syncing, "")
			s.judgeAt(25*minute, Failed, "")
		}, "no"},
		{"it only isn't synced yet", func(s *scenario) { s.notice(); s.judgeAt(0, Syncing, "") }, "no"},
		{"it waits its turn", func(s *scenario) {
			s.notice()
			s.app.SetStep = SetStep{Status: "Waiting", Step: "2"}
			s.judgeAt(0, Queued, "")
			s.judgeAt(24*time.Hour, Failed, "")
		}, "no"},
		{"it is well", func(s *scenario) { s.verify() }, "no"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := newScenario(t)
			c.run(s)
			u := s.v.Unsynced
			if (u == nil) != (c.want == "no") || u != nil && (!strings.Contains(u.Barred, c.want) || (c.want == "") != (u.Barred == "")) {
				t.Errorf("got %+v", u)
			}
		})
	}
}

// TestRetriedSyncAfterItBroke goes on blaming the release for the effects of its first sync, and
// the release before it for earlier faults, whoever has it synced again.
func TestRetriedSyncAfterItBroke(t *testing.T) {
	person := func(*scenario) {}
	for name, c := range map[string]struct {
		before string // the health before the first sync began
		broke  string // and after it
		again  func(s *scenario)
		want   bool // it was unhealthy before
	}{
		"the first sync broke it":               {"Healthy", "Degraded", (*scenario).retrySync, false},
		"and somebody syncs it in Argo CD":      {"Healthy", "Degraded", person, false},
		"it was degraded":                       {"Degraded", "Progressing", (*scenario).retrySync, true},
		"it lacked something, and still does":   {"Missing", "Missing", (*scenario).retrySync, true},
		"it lacked something, which it has now": {"Missing", "Degraded", (*scenario).retrySync, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScenario(t)
			s.notice()
			s.app.Health = c.before
			s.judgeAt(0, Syncing, "")
			s.fail("boom")
			s.app.Operation.StartedAt = cluster.Add(time.Minute)
			s.app.Health, s.app.HealthSince = c.broke, cluster.Add(2*time.Minute)
			s.judgeAt(second, Degraded, "ended Failed")
			c.again(s)
			s.operate("Running", "")
			s.app.Operation.StartedAt = cluster.Add(time.Hour)
			for i := range 2 {
				s.judgeAt(time.Duration(2+i)*second, Syncing, "the sync is running")
			}
			s.fail("again")
			s.app.Operation.StartedAt = cluster.Add(time.Hour)
			if v := s.judgeAt(minute, Degraded, "ended Failed"); v.UnhealthyBefore != c.want {
				t.Errorf("it was unhealthy before: %t", v.UnhealthyBefore)
			}
		})
	}
}
