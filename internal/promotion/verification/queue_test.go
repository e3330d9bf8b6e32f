package verification

import (
	"strings"
	"testing"
	"time"
)

// TestQueued waits with whom or when it waits for, and asks a person after queueFor.
func TestQueued(t *testing.T) {
	blocker := &StepMember{Application: "web-eu", Step: "1", Status: "Progressing", Health: "Progressing", Since: start}
	opens := start.Add(2 * time.Hour)
	cases := []struct {
		name string
		run  func(s *scenario)
	}{
		{"a step names whom it waits for", func(s *scenario) {
			s.app.AutoSync, s.app.SetStep = false, SetStep{Status: "Waiting", Step: "2", WaitsFor: blocker}
			s.notice()
			s.judgeAt(0, Queued, "waits for step 1: web-eu (Progressing since 2025-03-04T10:00:00Z)")
			s.wantNext(24 * time.Hour)
			s.judgeAt(24*time.Hour, Failed, "has waited for its turn for longer than 24h: its step of the ApplicationSet's RollingSync waits its turn (Waiting): waits for step 1: web-eu")
			s.judgeAt(30*time.Hour, Failed, "web-eu")
			s.app.SetStep.Status = "Progressing"
			s.judgeAt(31*time.Hour, Syncing, "")
		}},
		{"a degraded one blocks", func(s *scenario) {
			ill := *blocker
			ill.Health = "Degraded"
			s.app.AutoSync, s.app.SetStep = false, SetStep{Status: "Waiting", Step: "2", WaitsFor: &ill}
			s.notice()
			s.judgeAt(0, Queued, "web-eu (Degraded, so it is blocked since")
			s.judgeAt(23*time.Hour, Queued, "")
			s.judgeAt(48*time.Hour, Queued, "so it is blocked") // people are told of that one
			s.app.SetStep.WaitsFor = blocker
			s.judgeAt(49*time.Hour, Queued, "")
			s.wantNext(72 * time.Hour)
		}},
		{"for ever", func(s *scenario) {
			s.e.Limits.QueueFor = 0
			s.app.AutoSync, s.app.SetStep = false, SetStep{Status: "Waiting", Step: "2"}
			s.notice()
			s.judgeAt(0, Queued, "waits its turn (Waiting)")
			if v := s.judgeAt(1000*time.Hour, Queued, ""); !v.Next.IsZero() {
				s.t.Errorf("it looks again at %v", v.Next)
			}
		}},
		{"the clock stands still while nobody can look", func(s *scenario) {
			s.app.AutoSync, s.app.SetStep = false, SetStep{Status: "Waiting", Step: "2"}
			s.notice()
			s.judgeAt(0, Queued, "")
			s.e.Unreachable = "timeout"
			s.judgeAt(time.Hour, Unclear, "")
			s.e.Unreachable = ""
			s.judgeAt(2*time.Hour, Queued, "")
			s.wantNext(24 * time.Hour)
		}},
		{"another turn begins anew", func(s *scenario) {
			s.app.AutoSync, s.app.SetStep = false, SetStep{Status: "Waiting", Step: "2"}
			s.notice()
			s.judgeAt(0, Queued, "")
			s.app.SetStep.Status = "Progressing"
			s.judgeAt(time.Hour, Syncing, "")
			s.app.SetStep.Status = "Waiting"
			s.judgeAt(2*time.Hour, Queued, "")
			s.wantNext(26 * time.Hour)
		}},
		{"in no step: only people sync it", func(s *scenario) {
			s.app.AutoSync, s.app.SetStep = false, SetStep{Status: "Waiting", Step: "-1"}
			s.notice()
			s.judgeAt(0, Syncing, "RollingSync never syncs it (it is in no step); sync it, or set verify.sync to trigger")
			s.judgeAt(15*minute, Failed, "it is in no step")
		}},
		{"maxUpdate 0: Liftlock may be told to", func(s *scenario) {
			s.e.Limits.Trigger = true
			s.app.AutoSync, s.app.SetStep = false, SetStep{Status: "Pending", Step: "1", NoUpdate: true}
			s.e.Generated = &Generated{Set: "shop", Rolling: true}
			s.notice()
			if v := s.judgeAt(0, Syncing, "Liftlock asks for the sync"); !v.Sync {
				s.t.Error("it asks for none")
			}
		}},
		{"a sync window opens, and Argo CD is made to look", func(s *scenario) {
			s.e.Window = &Window{Project: "shop", Opens: opens}
			s.notice()
			s.judgeAt(0, Queued, "a sync window of the project shop keeps it from being synced until 2025-03-04T12:00:00Z")
			s.wantNext(2 * time.Hour)
			s.judgeAt(time.Hour, Queued, "")
			s.e.Window = nil
			if v := s.judgeAt(2*time.Hour, Syncing, "no sync has begun"); !v.Refresh {
				s.t.Error("Argo CD isn't asked to look")
			}
			s.sync()
			s.judgeAt(2*time.Hour+second, Refreshing, "")
		}},
		{"a sync that a window holds", func(s *scenario) {
			s.e.Window = &Window{Project: "shop", Opens: opens}
			s.notice()
			s.operate("Running", "Sync operation blocked by sync window")
			s.judgeAt(0, Queued, "a sync window keeps the sync from running until 2025-03-04T12:00:00Z")
			s.e.Window.Opens = time.Time{}
			s.judgeAt(0, Queued, "for a year at least")
		}},
		{"a window says nothing of who isn't synced by anybody", func(s *scenario) {
			s.e.Window = &Window{Project: "shop", Opens: opens}
			s.app.AutoSync = false
			s.notice()
			s.judgeAt(0, Syncing, "no automated sync policy")
		}},
		{"a window says nothing of what is synced", func(s *scenario) {
			s.e.Window = &Window{Project: "shop", Opens: opens}
			s.verify()
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { c.run(newScenario(t)) })
	}
}

// TestSuspended waits for a paused rollout, or doesn't, as the pipeline says.
func TestSuspended(t *testing.T) {
	t.Run("fail", func(t *testing.T) {
		s := newScenario(t)
		s.e.Limits.SuspendedFails = true
		s.deploy(0, "Suspended", Failed)
		s.judgeAt(second, Failed, "verify.suspended is fail")
		s.app.Health = "Healthy"
		s.judgeAt(2*second, Soaking, "")
		s.judgeAt(time2h, Verified, "")
		s.app.Health = "Suspended"
		s.judgeAt(time2h+minute, Verified, "at the moment suspended")
	})
	t.Run("a sync that waits for what is suspended", func(t *testing.T) {
		for _, resource := range []bool{true, false} {
			s := newScenario(t)
			s.notice()
			s.operate("Running", "waiting for healthy state of argoproj.io/Rollout/web")
			if s.app.Health = "Suspended"; resource {
				s.app.Health, s.app.Unhealthy = "Progressing", []Resource{{Kind: "Rollout", Name: "web", Health: "Suspended", Message: "CanaryPauseStep"}}
			}
			s.judgeAt(0, Suspended, "suspended (a paused rollout)")
			if resource && !strings.Contains(s.v.Reason, "Rollout web: CanaryPauseStep") {
				t.Error(s.v.Reason)
			}
			s.judgeAt(20*time.Hour, Suspended, "")
			s.operate("Running", "waiting for healthy state of argoproj.io/Rollout/web")
			s.app.Health, s.app.Unhealthy = "Progressing", nil
			s.judgeAt(21*time.Hour, Syncing, "the sync is running")
			s.app.Health = "Suspended" // another pause of the same rollout
			s.judgeAt(40*time.Hour, Suspended, "")
			s.app.Health = "Progressing"
			s.sync()
			s.judgeAt(41*time.Hour, Refreshing, "")
		}
	})
	t.Run("a pause that began before the health was certain", func(t *testing.T) {
		s := newScenario(t)
		s.sync()
		s.app.Health = "Suspended"
		s.judgeAt(0, Refreshing, "")
		s.refresh(9*minute, Suspended, "") // Argo CD was slow to compare
		s.app.Health = "Progressing"
		s.judgeAt(11*minute, Progressing, "")
		s.wantNext(21 * minute) // the timeout begins with the pause's end
		s.judgeAt(20*minute, Progressing, "")
		s.judgeAt(21*minute, Degraded, "did not become healthy within 10m")
	})
	t.Run("what goes on at the very end of the timeout has debounce", func(t *testing.T) {
		s := newScenario(t)
		s.deploy(0, "Progressing", Progressing)
		s.app.Health = "Suspended"
		s.judgeAt(10*minute-second, Suspended, "")
		s.app.Health = "Progressing"
		s.judgeAt(12*minute, Progressing, "")
		s.wantNext(12*minute + 30*second)
		s.judgeAt(12*minute+30*second, Degraded, "did not become healthy within 10m")
	})
	t.Run("a paused sync is not for ever", func(t *testing.T) {
		s := newScenario(t)
		s.notice()
		s.app.Health = "Suspended"
		s.operate("Running", "waiting for healthy state of argoproj.io/Rollout/web")
		s.judgeAt(0, Suspended, "")
		s.judgeAt(24*time.Hour, Failed, "suspended for longer than 24h")
	})
}
