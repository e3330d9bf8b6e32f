package verification

import (
	"testing"
	"time"
)

const (
	second = time.Second
	minute = time.Minute
)

// TestVerification has a case for every line of "Verification".
func TestVerification(t *testing.T) {
	cases := []struct {
		name string
		run  func(s *scenario)
	}{
		{"1 there: not generated yet waits, until arriveWithin, then failed", func(s *scenario) {
			s.app = nil
			s.judgeAt(0, Absent, "no such Application")
			s.wantNext(15 * minute)
			s.judgeAt(15*minute-second, Absent, "")
			s.judgeAt(15*minute, Failed, "not synced within 15m: no such Application")
		}},
		{"1 there: generated late, arrives and is verified", func(s *scenario) {
			app := s.app
			s.app = nil
			s.judgeAt(0, Absent, "")
			s.app = app
			s.sync()
			s.judgeAt(10*minute, Refreshing, "")
			s.refresh(10*minute, Soaking, "")
			s.judgeAt(11*minute, Verified, "")
		}},
		{"1 there: failed is no end, it may still come", func(s *scenario) {
			app := s.app
			s.app = nil
			s.judgeAt(0, Absent, "")
			s.judgeAt(20*minute, Failed, "")
			s.app = app
			s.sync()
			s.judgeAt(21*minute, Refreshing, "")
		}},
		{"2 has X: healthy with the old commit is never enough", func(s *scenario) {
			v := s.judgeAt(0, Arriving, "has not noticed the commit")
			if !v.Refresh {
				s.t.Error("the revision may lag until a refresh: want one")
			}
			s.reconcile()
			s.judgeAt(5*minute, Arriving, commitW)
			s.reconcile()
			s.judgeAt(10*minute, Arriving, "")
			s.judgeAt(15*minute, Failed, "has not noticed")
		}},
		{"2 has X: nothing reported yet", func(s *scenario) {
			s.rel, s.app.Revisions, s.app.SyncStatus = nil, nil, ""
			s.judgeAt(0, Arriving, "not reported a revision")
			s.judgeAt(15*minute, Failed, "not reported a revision")
		}},
		{"2 has X: a descendant holds it", func(s *scenario) {
			s.sync()
			s.app.Revisions = []string{commitY}
			s.judgeAt(0, Refreshing, "")
		}},
		{"2 has X: a descendant that changed the fields again", func(s *scenario) {
			s.sync()
			s.rel = []Relation{Superseded}
			s.judgeAt(0, Arriving, "a later commit has changed the carried fields")
			s.judgeAt(time.Hour, Arriving, "")
			s.app.Health = "Degraded"
			s.judgeAt(2*time.Hour, Arriving, "")
		}},
		{"2 has X: moved on and back starts anew", func(s *scenario) {
			s.verify()
			s.rel = []Relation{Superseded}
			s.judgeAt(2*minute, Arriving, "")
			s.rel = []Relation{Holds}
			s.judgeAt(3*minute, Refreshing, "")
		}},
		{"2 has X: every source must", func(s *scenario) {
			s.sync()
			s.rel = []Relation{Holds, Before}
			s.judgeAt(0, Arriving, "")
			s.rel = []Relation{Holds, Holds}
			s.judgeAt(second, Refreshing, "")
		}},
		{"2 has X: a revision Git doesn't know yet", func(s *scenario) {
			s.sync()
			s.rel = []Relation{Unresolved}
			s.judgeAt(0, Arriving, "Git doesn't know")
			s.judgeAt(15*minute, Failed, "Git doesn't know")
		}},
		{"2 has X: an unknown revision after it was done is only unclear", func(s *scenario) {
			s.deploy(0, "Healthy", Soaking)
			s.rel = []Relation{Unresolved}
			s.judgeAt(30*second, Unclear, "Git doesn't know")
			s.rel = []Relation{Holds}
			s.judgeAt(90*second, Soaking, "")
			s.judgeAt(150*second, Verified, "")
		}},
		{"2 has X: deployed back to an older commit", func(s *scenario) {
			s.verify()
			s.rel = []Relation{Before}
			s.judgeAt(2*minute, Arriving, "")
			s.wantNext(2*minute + 2*second)
			s.judgeAt(17*minute, Failed, "")
		}},
		{"2 has X: not until the Application is as its set generates it", func(s *scenario) {
			s.app.Sources = []Source{{Path: "web", Options: "old"}}
			s.e.Generated = &Generated{Set: "shop", Sources: []Source{{Path: "web", Options: "new"}}, Carries: true}
			s.sync()
			s.judgeAt(0, Arriving, "the ApplicationSet shop has not brought the Application up to date yet: its options")
			s.wantNext(15 * minute)
			s.app.Sources = []Source{{Path: "web", Options: "new"}}
			s.app.ComparedToSpec = false
			s.judgeAt(minute, Syncing, "present spec")
			s.app.ComparedToSpec = true
			s.judgeAt(2*minute, Refreshing, "")
			s.refresh(2*minute, Soaking, "")
			s.app.Sources = []Source{{Path: "web", Options: "newer"}} // another commit's doing, after it was done
			s.judgeAt(3*minute, Verified, "")
		}},
		{"2 failed: a set that never updates its Applications", func(s *scenario) {
			s.app.Sources = []Source{{TargetRevision: "v1"}}
			s.e.Generated = &Generated{Set: "shop", Sources: []Source{{TargetRevision: "v2"}}, Carries: true, NoUpdate: true}
			s.sync()
			s.judgeAt(0, Arriving, "the ApplicationSet shop only creates Applications and never updates them (applicationsSync, or its controller's policy), so this one stays as it is: its targetRevision is v1 and should be v2")
			s.judgeAt(15*minute, Failed, "never updates them")
			s.app.Sources = []Source{{TargetRevision: "v2"}} // by hand
			s.judgeAt(16*minute, Refreshing, "")
		}},
		{"2 has X: not until the Application is as its file says", func(s *scenario) {
			s.app.Sources = []Source{{Path: "web", TargetRevision: "v1"}}
			s.e.Generated = &Generated{File: "argocd/web.yaml", Sources: []Source{{Path: "web", TargetRevision: "v2"}}, Carries: true}
			s.sync()
			s.judgeAt(0, Arriving, "the manifest of the Application in argocd/web.yaml has not been applied yet: its targetRevision is v1 and should be v2; "+
				"whatever applies that file, an Application over it for example, may have to be synced")
		}},
		{"2 has X: what the release is not carried through may differ", func(s *scenario) {
			s.app.Sources = []Source{{Options: "old"}}
			s.e.Generated = &Generated{Set: "shop", Sources: []Source{{Options: "new"}}, NoUpdate: true}
			s.sync()
			s.judgeAt(0, Refreshing, "")
		}},
		{"2 failed: pinned elsewhere", func(s *scenario) {
			s.app.Sources = []Source{{TargetRevision: "v1"}, {Ref: "values"}}
			s.e.Generated = &Generated{Set: "shop", Sources: []Source{{TargetRevision: "main"}, {Ref: "values"}}, Ignored: []string{"/spec/sources/0/targetRevision"}}
			s.judgeAt(0, Arriving, "it compares with revision "+commitW+"; the ApplicationSet shop has not brought the Application up to date: its source 1's targetRevision is v1 and should be main; its ignoreApplicationDifferences (/spec/sources/0/targetRevision) may keep it so")
			s.judgeAt(15*minute, Failed, "targetRevision is v1")
		}},
		{"2 has X: another number of sources", func(s *scenario) {
			s.app.Sources = []Source{{Path: "a"}}
			s.e.Generated = &Generated{Set: "shop", Sources: []Source{{Path: "a"}, {Chart: "c"}}}
			s.judgeAt(0, Arriving, "it has 1 source and should have 2 sources")
			s.app.Sources = []Source{{Path: "a"}, {}}
			s.judgeAt(0, Arriving, "its source 2's chart is not set and should be c")
		}},
		{"2 has X: the hydrator is at work, then fails", func(s *scenario) {
			s.app.Hydration = &Hydration{Phase: "Hydrating"}
			s.judgeAt(0, Arriving, "the source hydrator is at work")
			s.app.Hydration = &Hydration{Phase: "Failed", Message: "kustomize build failed"}
			s.judgeAt(minute, Arriving, "the source hydrator failed: kustomize build failed")
			s.e.NotHydrated = "the hydrated manifests don't have it"
			s.judgeAt(minute, Arriving, "the source hydrator failed: kustomize build failed")
			s.app.Hydration = &Hydration{Phase: "Hydrated", Dry: commitX}
			s.judgeAt(minute, Arriving, "the hydrated manifests don't have it")
			s.e.NotHydrated = ""
			s.app.Hydration = &Hydration{Phase: "Hydrated", Dry: commitW}
			s.judgeAt(2*minute, Arriving, "has not noticed")
			s.judgeAt(15*minute, Failed, "")
		}},
		{"2 failed: no automated policy", func(s *scenario) {
			s.app.AutoSync = false
			s.notice()
			s.judgeAt(0, Syncing, "no automated sync policy")
			if s.v.Sync {
				s.t.Error("sync: wait must not sync")
			}
			s.judgeAt(15*minute, Failed, "set verify.sync to trigger")
		}},
		{"2 sync: trigger asks for the sync, again and more rarely", func(s *scenario) {
			s.app.AutoSync, s.e.Limits.Trigger = false, true
			s.notice()
			for _, attempt := range []struct {
				at   time.Duration
				want bool
			}{{0, true}, {second, false}, {2 * second, true}, {3 * second, false}, {6 * second, true}, {40 * second, true}, {60 * second, true}, {61 * second, false}} {
				if v := s.judgeAt(attempt.at, Syncing, "Liftlock asks for the sync"); v.Sync != attempt.want {
					s.t.Errorf("at %s: Sync %v", attempt.at, v.Sync)
				}
			}
			s.app.Pending = true
			if v := s.judgeAt(5*minute, Syncing, "has not begun"); v.Sync {
				s.t.Error("one is pending already")
			}
		}},
		{"2 sync: trigger leaves automated and step-wise targets alone", func(s *scenario) {
			s.e.Limits.Trigger = true
			s.notice()
			if v := s.judgeAt(0, Syncing, "automated"); v.Sync {
				s.t.Error("automated")
			}
			s.app.AutoSync, s.app.SetStep = false, SetStep{Status: "Progressing"}
			if v := s.judgeAt(0, Syncing, "RollingSync"); v.Sync {
				s.t.Error("RollingSync syncs it")
			}
		}},
		{"2 sync: trigger does not sync the same commit twice", func(s *scenario) {
			s.app.AutoSync, s.e.Limits.Trigger = false, true
			s.notice()
			s.operate("Succeeded", "")
			if v := s.judgeAt(0, Syncing, "although the sync of this commit succeeded"); v.Sync {
				s.t.Error("synced already")
			}
		}},
		{"2 failed: a sync window", func(s *scenario) {
			s.notice()
			s.operate("Running", "Sync operation blocked by sync window")
			s.judgeAt(0, Queued, "sync window")
			s.judgeAt(24*time.Hour, Failed, "has waited for its turn for longer than 24h: a sync window")
		}},
		{"2 failed: automated, but nothing syncs", func(s *scenario) {
			s.notice()
			s.judgeAt(0, Syncing, "closed sync window")
			s.judgeAt(15*minute, Failed, "OutOfSync, and no sync has begun")
		}},
		{"2 failed: out of sync with the controller's message", func(s *scenario) {
			s.notice()
			s.app.Conditions = []Condition{{"SyncError", "Skipping sync attempt: auto-sync will wipe out all resources"}}
			s.judgeAt(0, Syncing, "wipe out")
			s.judgeAt(15*minute, Failed, "OutOfSync: Skipping")
		}},
		{"2 queued: a waiting step's clock has not started", func(s *scenario) {
			s.app.AutoSync = false
			s.judgeAt(0, Arriving, "")
			s.notice()
			s.app.SetStep.Status = "Waiting"
			s.judgeAt(10*minute, Queued, "waits its turn")
			s.app.SetStep.Status = "Pending"
			s.judgeAt(3*time.Hour, Queued, "Pending")
			s.wantNext(24*time.Hour + 10*minute)
			s.app.SetStep.Status = "Progressing"
			s.judgeAt(4*time.Hour, Syncing, "")
			s.judgeAt(4*time.Hour+15*minute, Failed, "RollingSync")
		}},
		{"2 sync: trigger leaves a step-wise target alone whose step is unknown", func(s *scenario) {
			s.e.Limits.Trigger, s.app.AutoSync = true, false
			s.e.Generated = &Generated{Set: "shop", Rolling: true}
			s.notice()
			if v := s.judgeAt(0, Syncing, "the ApplicationSet's RollingSync has not synced it"); v.Sync {
				s.t.Error("a sync was asked for")
			}
		}},
		{"2 sync: trigger leaves a plain target alone that isn't marked for the pipeline", func(s *scenario) {
			s.e.Limits.Trigger, s.e.Unmarked = true, "shop"
			s.app.AutoSync = false
			s.notice()
			if v := s.judgeAt(0, Syncing, "where its annotation liftlock.dev/pipeline is shop"); v.Sync {
				s.t.Error("it asks for a sync")
			}
		}},
		{"2 queued: what is synced is not waiting, whatever the set says", func(s *scenario) {
			s.sync()
			s.app.SetStep.Status = "Waiting"
			s.judgeAt(0, Refreshing, "")
		}},
		{"3 done: compared to an older spec", func(s *scenario) {
			s.sync()
			s.app.ComparedToSpec = false
			s.judgeAt(0, Syncing, "present spec")
			s.judgeAt(15*minute, Failed, "")
		}},
		{"3 done: an operation is pending", func(s *scenario) {
			s.sync()
			s.app.Pending = true
			s.judgeAt(0, Syncing, "not begun")
		}},
		{"3 done: an operation runs", func(s *scenario) {
			s.sync()
			s.operate("Running", "waiting for healthy state of apps/Deployment/web")
			s.judgeAt(0, Syncing, "waiting for healthy state")
			s.judgeAt(16*minute, Syncing, "") // it took the commit in time
			s.judgeAt(25*minute, Failed, "not synced within 25m: the sync is running")
		}},
		{"3 done: an operation terminates", func(s *scenario) {
			s.sync()
			s.operate("Terminating", "")
			s.judgeAt(0, Syncing, "")
		}},
		{"3 done: no operation at all, when nothing differed", func(s *scenario) {
			s.sync()
			s.app.Operation, s.e.OperationRel = nil, nil
			s.judgeAt(0, Refreshing, "")
		}},
		{"3 done: the old commit's operation, when nothing differed", func(s *scenario) {
			s.sync()
			s.app.Operation, s.e.OperationRel = &Operation{Phase: "Succeeded", Revisions: []string{commitW}}, []Relation{Before}
			s.judgeAt(0, Refreshing, "")
		}},
		{"3 done: the old commit's failed operation doesn't count against a revert", func(s *scenario) {
			s.sync()
			s.app.Operation, s.e.OperationRel = &Operation{Phase: "Failed", Revisions: []string{commitW}}, []Relation{Before}
			s.judgeAt(0, Refreshing, "")
		}},
		{"3 done: a failed operation of an unknown revision", func(s *scenario) {
			s.sync()
			s.app.Operation, s.e.OperationRel = &Operation{Phase: "Failed", Revisions: []string{commitY}}, []Relation{Unresolved}
			s.judgeAt(0, Syncing, "Git doesn't know")
		}},
		{"3 done: ComparisonError is unclear, then failed", func(s *scenario) {
			s.sync()
			s.app.SyncStatus, s.app.Revisions, s.rel = "Unknown", nil, nil
			s.app.Conditions = []Condition{{"ComparisonError", "Failed to load target state: kustomize build failed"}}
			s.judgeAt(0, Unclear, "ComparisonError: Failed to load")
			s.judgeAt(15*minute, Failed, "kustomize build failed")
		}},
		{"3 done: InvalidSpecError", func(s *scenario) {
			s.sync()
			s.app.Conditions = []Condition{{"InvalidSpecError", "project does not exist"}}
			s.judgeAt(0, Unclear, "InvalidSpecError")
		}},
		{"3 done: a warning is no error", func(s *scenario) {
			s.sync()
			s.app.Conditions = []Condition{{"SharedResourceWarning", "shared"}}
			s.judgeAt(0, Refreshing, "")
		}},
		{"3 done: not Synced", func(s *scenario) {
			s.notice()
			s.judgeAt(0, Syncing, "OutOfSync")
		}},
		{"4 fresh: the same reconciledAt is the same state", func(s *scenario) {
			s.sync()
			s.judgeAt(0, Refreshing, "older state")
			s.judgeAt(second, Refreshing, "")
		}},
		{"4 fresh: the mark must be gone", func(s *scenario) {
			s.sync()
			s.judgeAt(0, Refreshing, "")
			s.app.RefreshPending = true
			s.reconcile()
			s.judgeAt(second, Refreshing, "")
			s.reconcile()
			s.judgeAt(2*second, Refreshing, "")
		}},
		{"4 fresh: one change without a mark may be a comparison that began before", func(s *scenario) {
			s.sync()
			s.judgeAt(0, Refreshing, "")
			s.reconcile()
			s.judgeAt(second, Refreshing, "")
			s.reconcile()
			s.judgeAt(2*second, Soaking, "")
		}},
		{"4 fresh: a mark from before doesn't count", func(s *scenario) {
			s.sync()
			s.app.RefreshPending = true
			if v := s.judgeAt(0, Refreshing, ""); v.Refresh {
				s.t.Error("one is under way, and its end says nothing")
			}
			s.app.RefreshPending = false
			s.reconcile()
			if v := s.judgeAt(second, Refreshing, ""); !v.Refresh {
				s.t.Error("now is the time to ask")
			}
			s.refresh(2*second, Soaking, "")
		}},
		{"4 fresh: no error condition", func(s *scenario) {
			s.sync()
			s.judgeAt(0, Refreshing, "")
			s.app.RefreshPending = true
			s.judgeAt(second, Refreshing, "")
			s.app.RefreshPending = false
			s.reconcile()
			s.app.Conditions = []Condition{{"ComparisonError", "repo server is down"}}
			s.judgeAt(2*second, Unclear, "")
			s.app.Conditions = nil
			s.judgeAt(3*second, Soaking, "")
		}},
		{"4 fresh: within the same second it is asked again", func(s *scenario) {
			s.sync()
			if v := s.judgeAt(0, Refreshing, ""); !v.Refresh {
				s.t.Error("want a refresh")
			}
			s.wantNext(5 * second)
			s.app.RefreshPending = true
			s.judgeAt(100*time.Millisecond, Refreshing, "")
			s.app.RefreshPending = false
			s.judgeAt(200*time.Millisecond, Refreshing, "")
			s.wantNext(2 * second) // that it ended was heard
			if v := s.judgeAt(2*second, Refreshing, ""); !v.Refresh {
				s.t.Error("want it again")
			}
			s.wantNext(6 * second)
			s.refresh(2100*time.Millisecond, Soaking, "")
		}},
		{"4 fresh: asked at most every 30 s in the long run", func(s *scenario) {
			s.sync()
			requests := 0
			for at := time.Duration(0); at < 9*minute; at += second {
				if s.judgeAt(at, Refreshing, "").Refresh {
					requests++
				}
			}
			if requests < 15 || requests > 22 {
				s.t.Errorf("asked %d times in 9 minutes", requests)
			}
		}},
		{"4 fresh: a comparison that never comes is unclear", func(s *scenario) {
			s.sync()
			s.judgeAt(0, Refreshing, "")
			s.app.Health = "Degraded"
			s.judgeAt(10*minute, Unclear, "has not compared again within 10m")
			s.judgeAt(time.Hour, Unclear, "")
		}},
		{"4 fresh: refresh off takes two further changes", func(s *scenario) {
			s.e.Limits.NoRefresh = true
			if v := s.judgeAt(0, Arriving, ""); v.Refresh {
				s.t.Error("refresh is off")
			}
			s.sync()
			if v := s.judgeAt(second, Refreshing, ""); v.Refresh {
				s.t.Error("refresh is off")
			}
			s.reconcile()
			s.judgeAt(3*minute, Refreshing, "")
			s.reconcile()
			s.judgeAt(6*minute, Soaking, "")
		}},
		{"4 fresh: an older state that another process sees is no further change", func(s *scenario) {
			s.e.Limits.NoRefresh = true
			s.sync()
			s.judgeAt(0, Refreshing, "")
			older := s.app.ReconciledAt
			s.reconcile()
			s.judgeAt(second, Refreshing, "")
			newer := s.app.ReconciledAt
			s.app.ReconciledAt = older
			s.judgeAt(2*second, Refreshing, "")
			s.app.ReconciledAt = newer
			s.judgeAt(3*second, Refreshing, "")
			s.reconcile()
			s.judgeAt(3*minute, Soaking, "")
		}},
		{"4 fresh: another sync before that begins it again", func(s *scenario) {
			s.sync()
			s.judgeAt(0, Refreshing, "")
			s.app.RefreshPending = true
			s.judgeAt(second, Refreshing, "")
			s.operate("Running", "")
			s.judgeAt(2*second, Syncing, "")
			s.app.RefreshPending = false
			s.sync()
			s.judgeAt(3*second, Refreshing, "")
			s.refresh(4*second, Soaking, "")
		}},
		{"4 fresh: clocks may differ by years", func(s *scenario) {
			s.now = start
			s.app.ReconciledAt = cluster.AddDate(-20, 0, 0)
			s.sync()
			s.verify()
		}},
		{"5 well: healthy for healthyFor", func(s *scenario) {
			s.deploy(0, "Healthy", Soaking)
			s.wantNext(minute)
			s.judgeAt(59*second, Soaking, "not yet for 1m")
			s.judgeAt(60*second, Verified, "")
		}},
		{"5 well: continuously", func(s *scenario) {
			s.deploy(0, "Healthy", Soaking)
			s.app.Health = "Progressing"
			s.judgeAt(50*second, Progressing, "")
			s.app.Health = "Healthy"
			s.judgeAt(55*second, Soaking, "")
			s.judgeAt(114*second, Soaking, "")
			s.judgeAt(115*second, Verified, "")
		}},
		{"5 well: a transition between two looks counts", func(s *scenario) {
			s.app.HealthSince = cluster
			s.deploy(0, "Healthy", Soaking)
			s.app.HealthSince = cluster.Add(30 * second)
			s.judgeAt(60*second, Soaking, "")
			s.judgeAt(119*second, Soaking, "")
			s.judgeAt(120*second, Verified, "")
		}},
		{"5 well: progressing waits until the timeout, counted from done", func(s *scenario) {
			s.deploy(0, "Progressing", Progressing)
			s.wantNext(10 * minute)
			s.judgeAt(10*minute-second, Progressing, "")
			s.app.Health = "Healthy"
			s.judgeAt(10*minute-second, Soaking, "")
			s.judgeAt(11*minute, Verified, "")
		}},
		{"5 well: suspended waits, then failed", func(s *scenario) {
			s.deploy(0, "Suspended", Suspended)
			s.wantNext(24 * time.Hour)
			s.judgeAt(24*time.Hour, Failed, "suspended for longer than 24h")
			s.app.Health = "Healthy"
			s.judgeAt(25*time.Hour, Soaking, "")
		}},
		{"5 well: unknown waits and is not healthy time", func(s *scenario) {
			s.deploy(0, "Healthy", Soaking)
			s.app.Health = "Unknown"
			s.judgeAt(30*second, Unclear, "health is Unknown")
			s.app.Health = "Healthy"
			s.judgeAt(70*second, Soaking, "")
			s.judgeAt(130*second, Verified, "")
		}},
		{"5 well: missing in the middle of a sync waits", func(s *scenario) {
			s.deploy(0, "Healthy", Soaking)
			s.app.Health = "Missing"
			s.operate("Running", "")
			s.judgeAt(second, Progressing, "while a sync is under way")
			s.judgeAt(20*minute, Progressing, "")
		}},
		{"5 well: out of sync again is not verified", func(s *scenario) {
			s.deploy(0, "Healthy", Soaking)
			s.app.SyncStatus = "OutOfSync"
			s.judgeAt(2*minute, Syncing, "OutOfSync")
			s.app.SyncStatus = "Synced"
			s.judgeAt(3*minute, Verified, "")
		}},
		{"5 well: what was synced in its place counts for nothing when it is back", func(s *scenario) {
			s.deploy(0, "Degraded", Progressing)
			// The branch had something else for a moment, which Argo CD synced, and it is well.
			s.app.SyncStatus, s.app.Health = "OutOfSync", "Healthy"
			s.app.Operation = &Operation{Phase: "Succeeded", Revisions: []string{commitY}, StartedAt: cluster.Add(time.Hour)}
			s.e.OperationRel = []Relation{Superseded}
			s.judgeAt(2*minute, Syncing, "OutOfSync")
			// The release before comes back, while the API server shows the health from before that
			// sync.
			s.sync()
			s.app.Operation.StartedAt, s.e.OperationRel = cluster.Add(2*time.Hour), nil
			s.judgeAt(3*minute+second, Refreshing, "")
			s.app.Health = "Degraded"
			s.refresh(3*minute+2*second, Progressing, "")
		}},
		{"5 well: the health from before another sync counts for nothing", func(s *scenario) {
			s.deploy(0, "Degraded", Progressing)
			// Something else was synced and is well, and nobody looked; what was there before is being synced again.
			s.app.SyncStatus, s.app.Health = "OutOfSync", "Healthy"
			s.operate("Running", "")
			s.app.Operation.StartedAt = cluster.Add(2 * time.Hour)
			s.judgeAt(2*minute, Syncing, "sync is running")
			s.app.Operation.Phase, s.app.SyncStatus = "Succeeded", "Synced"
			s.judgeAt(3*minute+second, Refreshing, "")
			s.app.Health = "Degraded"
			s.refresh(3*minute+2*second, Progressing, "")
		}},
		{"5 well: out of sync for good is failed", func(s *scenario) {
			s.deploy(0, "Healthy", Soaking)
			s.app.SyncStatus = "OutOfSync"
			s.judgeAt(second, Syncing, "")
			s.judgeAt(15*minute+second, Failed, "OutOfSync")
		}},
		{"verified stays so while watching", func(s *scenario) {
			s.verify()
			s.app.SyncStatus = "OutOfSync"
			s.judgeAt(2*minute, Verified, "")
			s.app.Health = "Suspended"
			s.judgeAt(time.Hour, Verified, "")
			s.app.Conditions = []Condition{{"ComparisonError", "x"}}
			s.judgeAt(2*time.Hour, Verified, "ComparisonError")
			s.e.Unreachable = "connection refused"
			s.judgeAt(3*time.Hour, Verified, "connection refused")
		}},
		{"a deleted Application is no longer verified", func(s *scenario) {
			s.verify()
			s.app = nil
			s.judgeAt(2*minute, Absent, "")
			s.judgeAt(17*minute, Failed, "")
		}},
		{"an Application made anew starts anew", func(s *scenario) {
			s.verify()
			s.app.UID = "u2"
			s.judgeAt(2*minute, Refreshing, "")
		}},
		{"one that is being deleted is unclear", func(s *scenario) {
			s.deploy(0, "Healthy", Soaking)
			s.app.Deleting, s.app.Health = true, "Missing"
			s.judgeAt(time.Hour, Unclear, "being deleted")
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { c.run(newScenario(t)) })
	}
}

// TestDegraded has a case for every line of "When health degrades" that is about
// one target.
func TestDegraded(t *testing.T) {
	cases := []struct {
		name string
		run  func(s *scenario)
	}{
		{"Degraded continuously for debounce", func(s *scenario) {
			s.deploy(0, "Degraded", Progressing)
			s.wantNext(30 * second)
			s.judgeAt(29*second, Progressing, "")
			s.judgeAt(30*second, Degraded, "health is Degraded, and has been for 30s")
		}},
		{"Missing continuously for debounce", func(s *scenario) {
			s.deploy(0, "Missing", Progressing)
			s.judgeAt(30*second, Degraded, "health is Missing")
		}},
		{"a lost resource, as Argo CD says it up to 3.3", func(s *scenario) {
			s.deploy(0, "Healthy", Soaking)
			s.app.Health, s.app.SyncStatus, s.app.Unhealthy = "Missing", "OutOfSync", []Resource{{Group: "apps", Kind: "Deployment", Name: "web", Health: "Missing"}}
			s.judgeAt(0, Progressing, "health is Missing: Deployment web is not there")
			s.judgeAt(30*second, Degraded, "health is Missing, and has been for 30s: Deployment web is not there")
		}},
		{"a lost resource, as Argo CD says it from 3.4 on", func(s *scenario) {
			s.deploy(0, "Healthy", Soaking)
			s.app.SyncStatus, s.app.Unhealthy = "OutOfSync", []Resource{{Group: "apps", Kind: "Deployment", Name: "web", Health: "Missing"}}
			s.judgeAt(0, Progressing, "health is Missing: Deployment web is not there")
			s.judgeAt(30*second, Degraded, "health is Missing, and has been for 30s: Deployment web is not there")
			if WasHealthy(s.app) || !s.app.HasBadHealth() {
				s.t.Error("it is unhealthy for others too")
			}
		}},
		{"a lost resource that a sync is about to bring back", func(s *scenario) {
			s.deploy(0, "Healthy", Soaking)
			s.app.SyncStatus, s.app.Unhealthy = "OutOfSync", []Resource{{Kind: "Service", Name: "web", Health: "Missing"}}
			s.operate("Running", "")
			s.judgeAt(10*minute, Progressing, "while a sync is under way")
		}},
		{"a lost resource of a kind that never counted", func(s *scenario) {
			s.verify()
			s.app.SyncStatus, s.app.Unhealthy = "OutOfSync", []Resource{{Kind: "ConfigMap", Name: "web", Health: "Missing"}, {Group: "example.com", Kind: "Deployment", Name: "web", Health: "Missing"}}
			s.judgeAt(10*minute, Verified, "")
			s.app.SyncStatus, s.app.Unhealthy = "Synced", []Resource{{Kind: "Service", Name: "web", Health: "Missing"}} // left from before
			s.judgeAt(11*minute, Verified, "")
		}},
		{"Degraded and Missing in turns is still continuous", func(s *scenario) {
			s.deploy(0, "Missing", Progressing)
			s.app.Health = "Degraded"
			s.judgeAt(20*second, Progressing, "")
			s.judgeAt(30*second, Degraded, "")
		}},
		{"a blip is not", func(s *scenario) {
			s.deploy(0, "Healthy", Soaking)
			s.app.Health = "Degraded"
			s.judgeAt(10*second, Progressing, "")
			s.app.Health = "Healthy"
			s.judgeAt(20*second, Soaking, "")
			s.app.Health = "Degraded"
			s.judgeAt(35*second, Progressing, "")
			s.judgeAt(64*second, Progressing, "")
			s.judgeAt(65*second, Degraded, "")
		}},
		{"the health of the old commit doesn't count", func(s *scenario) {
			s.app.Health = "Degraded"
			s.judgeAt(0, Arriving, "")
			s.notice()
			s.judgeAt(minute, Syncing, "")
			s.sync()
			s.judgeAt(2*minute, Refreshing, "")
			s.refresh(5*minute, Progressing, "Degraded")
			s.wantNext(5*minute + 30*second)
		}},
		{"healthy, then progressing for longer than timeout", func(s *scenario) {
			s.verify()
			s.app.Health = "Progressing"
			s.judgeAt(2*minute, Verified, "at the moment health is Progressing")
			s.wantNext(12 * minute)
			s.judgeAt(12*minute-second, Verified, "")
			s.judgeAt(12*minute, Degraded, "was healthy")
		}},
		{"progressing and degraded in turns, never healthy again", func(s *scenario) {
			s.verify()
			for at := 2 * minute; at < 12*minute; at += 20 * second {
				s.app.Health = map[bool]string{true: "Degraded", false: "Progressing"}[s.app.Health != "Degraded"]
				s.judgeAt(at, Verified, "")
			}
			s.app.Health = "Progressing"
			s.judgeAt(12*minute, Degraded, "was healthy")
		}},
		{"never healthy within timeout", func(s *scenario) {
			s.deploy(0, "Progressing", Progressing)
			s.judgeAt(10*minute, Degraded, "did not become healthy within 10m")
		}},
		{"a late refresh doesn't convict at once", func(s *scenario) {
			s.sync()
			s.app.Health = "Progressing"
			s.judgeAt(0, Refreshing, "")
			s.app.RefreshPending = true
			s.judgeAt(second, Refreshing, "")
			s.app.RefreshPending = false
			s.reconcile()
			s.judgeAt(20*minute, Progressing, "")
			s.wantNext(20*minute + 30*second)
			s.judgeAt(20*minute+30*second, Degraded, "")
		}},
		{"the time in which nobody could tell doesn't count", func(s *scenario) {
			s.deploy(0, "Progressing", Progressing)
			s.app.Health = "Unknown"
			s.judgeAt(5*minute, Unclear, "")
			s.app.Health = "Progressing"
			s.judgeAt(11*minute, Progressing, "")
			s.wantNext(16 * minute)
			s.judgeAt(16*minute, Degraded, "")
		}},
		{"nor that in which it was suspended", func(s *scenario) {
			s.deploy(0, "Suspended", Suspended)
			s.app.Health = "Progressing"
			s.judgeAt(9*minute, Progressing, "")
			s.wantNext(19 * minute)
		}},
		{"the sync of X failed after Argo CD's retries", func(s *scenario) {
			s.notice()
			s.operate("Running", "one or more objects failed to apply. Retrying attempt #3")
			s.judgeAt(0, Syncing, "")
			s.fail("one or more objects failed to apply (retried 5 times).")
			s.app.Operation.Retries = 5
			s.judgeAt(second, Degraded, "the sync of this commit ended Failed after 5 retries: Deployment web: admission denied: one or more")
		}},
		{"told by its revisions alone", func(s *scenario) {
			s.notice()
			s.fail("boom")
			s.e.OperationRel = nil
			s.judgeAt(0, Degraded, "")
		}},
		{"the sync of another commit failed", func(s *scenario) {
			s.notice()
			s.fail("boom")
			s.app.Operation.Revisions, s.e.OperationRel = []string{commitW}, []Relation{Before}
			s.judgeAt(0, Syncing, "")
		}},
		{"a newer commit that holds the release may be tried yet", func(s *scenario) {
			s.notice()
			s.fail("boom")
			s.app.Revisions = []string{commitY}
			s.judgeAt(0, Syncing, "a newer commit may be tried")
			s.wantNext(30 * second)
			s.judgeAt(30*second, Degraded, "")
		}},
		{"a failed sync that is tried again", func(s *scenario) {
			s.notice()
			s.fail("boom")
			s.judgeAt(0, Degraded, "")
			s.app.Pending = true
			s.judgeAt(second, Syncing, "")
			s.app.Pending = false
			s.verify()
		}},
		{"a failed hook, although all is synced", func(s *scenario) {
			s.sync()
			s.operate("Failed", "one or more synchronization tasks completed unsuccessfully")
			s.app.Operation.Results = []SyncResult{{Group: "batch", Kind: "Job", Name: "smoke", Hook: "PostSync", Phase: "Failed", Message: "Job has reached the specified backoff limit"}}
			s.judgeAt(0, Degraded, "the PostSync hook Job smoke: Job has reached the specified backoff limit")
		}},
		{"within the watch, and after it", func(s *scenario) {
			s.verify()
			s.app.Health = "Degraded"
			s.judgeAt(20*minute, Verified, "at the moment")
			s.judgeAt(20*minute+30*second, Degraded, "")
			s.app.Health = "Healthy"
			s.judgeAt(2*time.Hour, Soaking, "")
			s.judgeAt(2*time.Hour+minute, Verified, "")
			s.app.Health = "Degraded"
			s.judgeAt(5*time.Hour, Verified, "")
			s.judgeAt(6*time.Hour, Degraded, "")
		}},
		{"health that comes back before anyone acted", func(s *scenario) {
			s.deploy(0, "Degraded", Progressing)
			s.judgeAt(minute, Degraded, "")
			s.app.Health = "Progressing"
			s.judgeAt(2*minute, Degraded, "has not been Healthy since")
			s.app.Health = "Healthy"
			s.judgeAt(3*minute, Soaking, "")
			s.judgeAt(4*minute, Verified, "")
		}},
		{"a degraded sibling resource is named", func(s *scenario) {
			s.app.Unhealthy = []Resource{{Kind: "Deployment", Name: "web", Health: "Degraded", Message: "exceeded its progress deadline"}}
			s.deploy(0, "Degraded", Progressing)
			s.judgeAt(minute, Degraded, "Deployment web: exceeded its progress deadline")
		}},
		{"Unknown is never degraded", func(s *scenario) {
			s.deploy(0, "Healthy", Soaking)
			s.app.Health = "Unknown"
			s.judgeAt(minute, Unclear, "")
			s.judgeAt(100*time.Hour, Unclear, "")
		}},
		{"ComparisonError is never degraded", func(s *scenario) {
			s.deploy(0, "Healthy", Soaking)
			s.app.Health, s.app.Conditions = "Degraded", []Condition{{"ComparisonError", "x"}}
			s.judgeAt(minute, Unclear, "")
			s.judgeAt(100*time.Hour, Unclear, "")
		}},
		{"a sync window is never degraded", func(s *scenario) {
			s.deploy(0, "Healthy", Soaking)
			s.operate("Running", "Sync operation blocked by sync window")
			s.app.Health = "Degraded"
			s.judgeAt(minute, Unclear, "sync window")
			s.judgeAt(100*time.Hour, Unclear, "")
		}},
		{"a cluster that doesn't answer is never degraded, and pauses the clocks", func(s *scenario) {
			s.judgeAt(0, Arriving, "")
			s.e.Unreachable = "dial tcp 10.0.0.1:443: connection refused"
			s.judgeAt(minute, Unclear, "connection refused")
			s.judgeAt(100*time.Hour, Unclear, "")
			s.e.Unreachable = ""
			s.judgeAt(101*time.Hour, Arriving, "")
			s.judgeAt(101*time.Hour+14*minute, Arriving, "")
			s.judgeAt(101*time.Hour+15*minute, Failed, "")
		}},
		{"a gap interrupts the debounce", func(s *scenario) {
			s.deploy(0, "Degraded", Progressing)
			s.e.Unreachable = "timeout"
			s.judgeAt(20*second, Unclear, "")
			s.e.Unreachable = ""
			s.judgeAt(40*second, Progressing, "")
			s.judgeAt(70*second, Degraded, "")
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { c.run(newScenario(t)) })
	}
}

func TestWasHealthy(t *testing.T) {
	cases := []struct {
		name string
		app  *App
		want bool
	}{
		{"healthy", &App{Health: "Healthy", SyncStatus: "Synced"}, true},
		{"out of sync but healthy", &App{Health: "Healthy", SyncStatus: "OutOfSync"}, true},
		{"none", nil, false},
		{"degraded", &App{Health: "Degraded", SyncStatus: "Synced"}, false},
		{"progressing", &App{Health: "Progressing", SyncStatus: "Synced"}, false},
		{"unsure", &App{Health: "Healthy", SyncStatus: "Unknown"}, false},
		{"error", &App{Health: "Healthy", SyncStatus: "Synced", Conditions: []Condition{{"ComparisonError", ""}}}, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := WasHealthy(c.app); got != c.want {
				t.Errorf("WasWell = %v", got)
			}
		})
	}
}
