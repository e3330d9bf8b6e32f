package verification

import (
	"strings"
	"testing"
	"time"
)

// bystanders are operations that end badly and say nothing of a release.
var bystanders = []struct {
	name string
	make func(op *Operation)
}{
	{"a dry run", func(op *Operation) { op.DryRun = true }},
	{"manifests from somebody's machine", func(op *Operation) { op.Local = true }},
	{"a sync of some resources", func(op *Operation) { op.Partial, op.By = true, "ada" }},
	{"a self-heal", func(op *Operation) { op.Partial, op.SelfHealAttempts = true, 3 }},
	{"a self-heal of everything", func(op *Operation) { op.SelfHealAttempts = 1 }},
}

// TestBystandersDontConvict ends operations badly that are not the release's own sync,
// before and after it is verified.
func TestBystandersDontConvict(t *testing.T) {
	for _, b := range bystanders {
		for _, phase := range []string{"Failed", "Error"} {
			t.Run(b.name+" "+phase, func(t *testing.T) {
				s := newScenario(t)
				s.notice()
				s.fail("boom")
				s.app.Operation.Phase = phase
				b.make(s.app.Operation)
				s.judgeAt(0, Syncing, "OutOfSync")
				s.judgeAt(15*minute, Failed, "OutOfSync")

				s = newScenario(t)
				s.verify()
				s.fail("boom")
				s.app.Operation.Phase = phase
				b.make(s.app.Operation)
				s.judgeAt(2*minute, Verified, "synced and healthy")
				s.app.SyncStatus = "OutOfSync"
				s.judgeAt(time2h, Verified, "healthy")
				s.app.Health = "Degraded"
				s.judgeAt(time2h+minute, Verified, "at the moment health is Degraded")
				s.judgeAt(time2h+2*minute, Degraded, "health is Degraded")
			})
		}
	}
}

const time2h = 120 * minute

// TestBystanderHidesTheFirstSync keeps a conviction by the release's own sync while another
// operation has taken its place.
func TestBystanderHidesTheFirstSync(t *testing.T) {
	for _, b := range bystanders {
		t.Run(b.name, func(t *testing.T) {
			s := newScenario(t)
			s.notice()
			s.fail("boom")
			s.judgeAt(0, Degraded, "admission denied")
			s.operate("Succeeded", "")
			b.make(s.app.Operation)
			s.judgeAt(minute, Degraded, "admission denied")
			s.operate("Failed", "other")
			b.make(s.app.Operation)
			if v := s.judgeAt(2*minute, Degraded, "admission denied"); len(v.Culprits) != 1 || v.Culprits[0].Name != "web" || v.Culprits[0].Message != "admission denied" {
				t.Errorf("it names %+v", v.Culprits)
			}
			s.e.DeployedBefore = true // another one of its own came between two looks
			s.judgeAt(2*minute+second, Syncing, "OutOfSync")
			s.e.DeployedBefore = false
			s.app.SyncStatus = "Synced" // it mended what had failed
			s.judgeAt(3*minute, Refreshing, "")
			s.app.SyncStatus = "OutOfSync"
			s.judgeAt(4*minute, Syncing, "OutOfSync")
		})
	}
}

// TestFirstSync has a case for every way in which the release's own sync can end.
func TestFirstSync(t *testing.T) {
	failing := []SyncResult{{Kind: "Deployment", Name: "web", Status: "SyncFailed", Message: "admission denied"}}
	cases := []struct {
		name    string
		op      Operation
		state   State
		because string
	}{
		{"a resource can't be applied", Operation{Phase: "Failed", Results: failing}, Degraded, "ended Failed: Deployment web: admission denied"},
		{"a hook fails", Operation{Phase: "Failed", Results: []SyncResult{{Kind: "Job", Name: "migrate", Hook: "PreSync", Phase: "Failed", Message: "backoff limit"}}}, Degraded, "the PreSync hook Job migrate: backoff limit; nothing of the release was applied: what was there before still runs"},
		{"a hook ends in an error", Operation{Phase: "Failed", Results: []SyncResult{{Kind: "Job", Name: "migrate", Hook: "PreSync", Phase: "Error", Message: "no node"}}}, Degraded, "the PreSync hook Job migrate: no node"},
		{"a hook fails at the end", Operation{Phase: "Failed", Results: []SyncResult{{Kind: "Job", Name: "smoke", Hook: "PostSync", Phase: "Failed", Message: "404"}}}, Degraded, "the PostSync hook Job smoke: 404; the release itself was applied and runs"},
		{"a resource degrades in its wave", Operation{Phase: "Failed", Results: []SyncResult{{Kind: "Deployment", Name: "web", Status: "Synced", Phase: "Failed", Message: "progress deadline"}}}, Degraded, "Deployment web: progress deadline"},
		{"a person asked for it", Operation{Phase: "Failed", By: "ada", Results: failing}, Degraded, "asked for by ada: Deployment web"},
		{"nothing is named", Operation{Phase: "Failed", Message: "the destination is unknown"}, Failed, "names no resource or hook"},
		{"only what wasn't pruned is named", Operation{Phase: "Failed", Results: []SyncResult{{Kind: "ConfigMap", Name: "old", Status: "PruneSkipped"}}}, Failed, "names no resource or hook"},
		{"a person terminated it", Operation{Phase: "Failed", Message: "Operation terminated", Results: failing}, Failed, "ended it"},
		{"terminated between retries", Operation{Phase: "Failed", Message: "Operation terminated (retried 2 times).", Results: failing}, Failed, "ended it"},
		{"the controller's limit", Operation{Phase: "Failed", Message: "Operation terminated, triggered by controller sync timeout", Results: failing}, Failed, "ended it"},
		{"a hook speaks of such a limit", Operation{Phase: "Failed", Message: "one or more synchronization tasks completed unsuccessfully, reason: lock: sync timeout, Operation terminated", Results: failing}, Degraded, "Deployment web: admission denied"},
		{"it is being terminated", Operation{Phase: "Failed", Message: "operation is terminating", Results: failing}, Failed, "ended it"},
		{"terminating it failed", Operation{Phase: "Error", Message: "Operation termination had errors"}, Failed, "ended it"},
		{"the repo-server is away", Operation{Phase: "Error", Message: "connection refused"}, Failed, "ended Error: connection refused; that is the cluster's or Argo CD's trouble"},
		{"an error with failing resources", Operation{Phase: "Error", Results: failing}, Failed, "trouble"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := newScenario(t)
			s.notice()
			s.operate("", "")
			c.op.Revisions = s.app.Operation.Revisions
			s.app.Operation = &c.op
			v := s.judgeAt(0, c.state, c.because)
			if named := len(v.Culprits) == 1 && v.Culprits[0].Health == degradedHealth && strings.Contains(c.because, v.Culprits[0].Kind+" "+v.Culprits[0].Name); named != (c.state == Degraded) {
				t.Errorf("it names %+v", v.Culprits)
			}
			s.judgeAt(time2h, c.state, c.because)

			s = newScenario(t) // the release was synced before, by the Application's own history
			s.notice()
			s.operate("", "")
			s.app.Operation, s.e.DeployedBefore = &c.op, true
			s.judgeAt(0, Syncing, "OutOfSync: a later sync of this commit ended "+c.op.Phase)
			s.judgeAt(15*minute, Failed, "a later sync")

			s = newScenario(t)
			s.verify()
			s.app.Operation = &c.op
			s.judgeAt(2*minute, Verified, "verified and healthy; but a later sync of this commit ended "+c.op.Phase)
			s.app.Health = "Degraded"
			s.judgeAt(3*minute, Verified, "")
			s.judgeAt(3*minute+30*second, Degraded, "health is Degraded")
		})
	}
}

// TestErrorIsSyncedOnceMore asks for one more sync after an error where syncs are
// Liftlock's to ask for, and then asks a person.
func TestErrorIsSyncedOnceMore(t *testing.T) {
	s := newScenario(t)
	s.app.AutoSync, s.e.Limits.Trigger = false, true
	s.notice()
	s.operate("Error", "connection refused")
	if s.judgeAt(0, Syncing, "asks for the sync once more").Sync {
		t.Error("at once")
	}
	s.wantNext(2 * minute)
	if !s.judgeAt(2*minute, Syncing, "once more").Sync {
		t.Error("it asks for none")
	}
	s.operate("Running", "")
	s.judgeAt(2*minute+second, Syncing, "running")
	s.operate("Error", "connection refused")
	if s.judgeAt(3*minute, Failed, "trouble").Sync {
		t.Error("it asks again and again")
	}
	s.operate("Succeeded", "")
	s.app.SyncStatus = "Synced"
	s.judgeAt(4*minute, Refreshing, "")
}

// TestDeletionErrorHidesNothing: what tells of trouble beside the comparison is no
// reason not to judge.
func TestDeletionErrorHidesNothing(t *testing.T) {
	for _, kind := range []string{"DeletionError", "OrphanedResourceWarning", "SomethingNewError"} {
		s := newScenario(t)
		s.app.Conditions = []Condition{{kind, "can't delete a PersistentVolume"}}
		s.verify()
		s.app.Health = "Degraded"
		s.judgeAt(2*minute, Verified, "at the moment")
		s.judgeAt(3*minute, Degraded, "")
	}
	for _, kind := range []string{"ComparisonError", "InvalidSpecError", "UnknownError", UnreadableCondition} {
		s := newScenario(t)
		s.app.Conditions = []Condition{{kind, "x"}}
		s.sync()
		s.judgeAt(0, Unclear, kind)
	}
}

// TestTurnedByItself tells what happened to an Application from what it did itself.
func TestTurnedByItself(t *testing.T) {
	at := func(minutes int) time.Time { return cluster.Add(time.Duration(minutes) * minute) }
	finished := func(minutes int) *Operation {
		return &Operation{Phase: "Succeeded", StartedAt: at(minutes - 1), FinishedAt: at(minutes)}
	}
	for name, c := range map[string]struct {
		app  App
		want bool
	}{
		"Progressing long after its sync":          {App{Health: "Progressing", HealthSince: at(9), Operation: finished(0)}, true},
		"Unknown long after its sync":              {App{Health: "Unknown", HealthSince: at(9), Operation: finished(0)}, true},
		"without any operation":                    {App{Health: "Progressing", HealthSince: at(9), CreatedAt: at(0)}, true},
		"after a dry run":                          {App{Health: "Progressing", HealthSince: at(9), Operation: &Operation{Phase: "Succeeded", DryRun: true, FinishedAt: at(9)}}, true},
		"just made":                                {App{Health: "Progressing", HealthSince: at(9), CreatedAt: at(9)}, false},
		"right after its sync":                     {App{Health: "Progressing", HealthSince: at(1), Operation: finished(1)}, false},
		"right after its sync, then a dry run":     {App{Health: "Progressing", HealthSince: at(1), Operation: &Operation{Phase: "Failed", DryRun: true, FinishedAt: at(9)}, Deployed: []Deployment{{At: at(1)}}}, false},
		"a minute after its sync":                  {App{Health: "Progressing", HealthSince: at(1), Operation: finished(0)}, false},
		"later than that":                          {App{Health: "Progressing", HealthSince: at(1).Add(time.Second), Operation: finished(0)}, true},
		"just made again, with an older sync":      {App{Health: "Progressing", HealthSince: at(9), CreatedAt: at(9), Operation: finished(0)}, false},
		"since before a later sync":                {App{Health: "Progressing", HealthSince: at(1), Operation: finished(9)}, false},
		"a sync runs":                              {App{Health: "Progressing", HealthSince: at(9), Operation: &Operation{Phase: "Running", StartedAt: at(8)}}, false},
		"a sync was asked for":                     {App{Health: "Progressing", HealthSince: at(9), Pending: true}, false},
		"it is being deleted":                      {App{Health: "Progressing", HealthSince: at(9), Deleting: true}, false},
		"since when isn't told":                    {App{Health: "Progressing", Operation: finished(0)}, false},
		"Healthy":                                  {App{Health: "Healthy", HealthSince: at(9)}, false},
		"Degraded, which counts for itself anyway": {App{Health: "Degraded", HealthSince: at(9)}, false},
	} {
		if got := c.app.TurnedByItself(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestUnhealthyBeforeItsSync remembers that a target was unwell before the sync of the commit
// began, and forgets it when it was healthy again before that.
func TestUnhealthyBeforeItsSync(t *testing.T) {
	for _, c := range []struct {
		name    string
		healths []string
		want    bool
	}{
		{"well", []string{"Healthy"}, false},
		{"unwell", []string{"Healthy", "Degraded"}, true},
		{"and then rolling", []string{"Missing", "Progressing"}, true},
		{"well again", []string{"Degraded", "Healthy"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScenario(t)
			for i, h := range c.healths {
				s.app.Health = h
				s.judgeAt(time.Duration(i)*second, Arriving, "")
			}
			s.notice()
			s.judgeAt(10*second, Syncing, "")
			s.operate("Running", "")
			s.app.Health = "Degraded"
			s.judgeAt(11*second, Syncing, "")
			s.sync()
			s.judgeAt(12*second, Refreshing, "")
			s.refresh(13*second, Progressing, "")
			if v := s.judgeAt(minute, Degraded, ""); v.UnhealthyBefore != c.want {
				t.Errorf("UnhealthyBefore = %v", v.UnhealthyBefore)
			}
			s.startAgain()
			s.judgeAt(2*minute, Refreshing, "")
			s.refresh(2*minute+second, Progressing, "")
			if v := s.judgeAt(4*minute, Degraded, ""); v.UnhealthyBefore != c.want {
				t.Errorf("started again, UnhealthyBefore = %v", v.UnhealthyBefore)
			}
		})
	}
}

// TestLaterFailureHidesNothing convicts a release whose target is Degraded although a later
// sync of it failed before anybody knew how the target was.
func TestLaterFailureHidesNothing(t *testing.T) {
	s := newScenario(t)
	s.sync()
	s.judgeAt(0, Refreshing, "")
	s.operate("Error", "the repo-server is away")
	s.judgeAt(second, Syncing, "a later sync of this commit ended Error")
	s.app.Health = "Degraded"
	if v := s.judgeAt(2*second, Refreshing, ""); !v.Refresh && s.mem.RefreshRequests == 0 {
		t.Error("no refresh is asked for")
	}
	s.refresh(3*second, Progressing, "health is Degraded")
	s.judgeAt(33*second, Degraded, "health is Degraded, and has been for 30s")
}
