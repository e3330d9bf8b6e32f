package verification

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// retryErrored is how long after a sync that ended in an error Liftlock asks for
// another one, where it asks for them at all.
const retryErrored = 2 * time.Minute

func isRunning(op *Operation) bool {
	return op.Phase == "Running" || op.Phase == "Terminating"
}

func inProgress(a *App) bool { return a.Operation != nil && isRunning(a.Operation) }

// isOperating says that an operation is asked for or under way.
func (a *App) isOperating() bool { return a.Pending || inProgress(a) }

// waitsInSync says that a sync runs and waits for what it synced to get well.
func (a *App) waitsInSync() bool {
	return inProgress(a) && strings.Contains(a.Operation.Message, waitingForHealth)
}

func hasFailed(op *Operation) bool {
	return op != nil && (op.Phase == failed || op.Phase == errored)
}

// HasFailedSync says that the last sync of the whole Application failed.
func (a *App) HasFailedSync() bool { return hasFailed(a.Operation) && a.Operation.IsWhole() }

// NeedsHistory says that it depends on what was synced before the last sync whether that one,
// or the health that it met, speaks of a release.
func (a *App) NeedsHistory() bool {
	return a.Operation != nil && (!a.Operation.IsWhole() || hasFailed(a.Operation) || a.Health == degradedHealth)
}

// IsWhole says that the operation synced the whole Application to what Git says, so
// that how it ended says something of the commit. A dry run, a sync of manifests from
// somebody's machine, one of some resources, and one that undoes a change in the
// cluster say nothing of it.
func (op *Operation) IsWhole() bool {
	return !op.DryRun && !op.Local && !op.Partial && op.SelfHealAttempts == 0
}

// wasTerminated says that a person, or the controller's time for a sync, ended it. Only Argo
// CD's own words count: the message may go on with what resources and hooks say.
func (op *Operation) wasTerminated() bool {
	message := strings.ToLower(op.Message)
	return strings.HasPrefix(message, "operation terminat") || strings.HasPrefix(message, "operation is terminating")
}

// firstFailure is the first of its results that failed; nil when none is known.
func (op *Operation) firstFailure() *SyncResult {
	for i := range op.Results {
		if op.Results[i].HasFailed() {
			return &op.Results[i]
		}
	}
	return nil
}

// HasFailed says that the resource could not be applied, or that it or the hook failed.
func (s *SyncResult) HasFailed() bool {
	return s.Status == syncFailed || s.Phase == failed || s.Phase == errored
}

// describe names what failed, with its message.
func (s *SyncResult) describe() string {
	name := s.Kind + " " + s.Name
	if s.Hook != "" {
		name = "the " + s.Hook + " hook " + name
	}
	return clipMessage(name + messageSuffix(s.Message))
}

// operationRelation is how the last operation stands to the commit. Before means
// that it was of another commit, or of none that is known.
func (j *judgement) operationRelation() Relation {
	op := j.app.Operation
	switch {
	case op == nil:
		return Before
	case len(j.e.OperationRel) > 0:
		return combineRelations(j.e.OperationRel)
	case len(op.Revisions) > 0 && slices.Equal(op.Revisions, j.app.Revisions):
		return combineRelations(j.rel)
	default:
		return Before
	}
}

// isSyncedAnew says that a whole sync has begun since the target was last seen done with the
// commit, before it was verified. The health that Argo CD shows may be from before that sync. A
// verified target stays verified.
func (j *judgement) isSyncedAnew() bool {
	op := j.app.Operation
	isUnverified := !j.mem.Done.IsZero() && !j.mem.isVerified()
	return isUnverified && op != nil && op.IsWhole() && !j.lastSyncBegan().Equal(j.mem.DoneWith)
}

// isReplaced says that something else was synced since, so that the running, healthy release isn't
// the commit's. A person went back in Argo CD, or the branch was reset.
func (j *judgement) isReplaced() bool {
	relation := j.operationRelation()
	return j.isSyncedAnew() && j.app.Operation.Phase == succeeded && (relation == Before || relation == Superseded)
}

// failedLater says that the last operation was a sync of the commit that failed after another one
// had succeeded. The release could be synced, so the trouble is a bystander's, or the cluster's,
// until the health says otherwise.
func (j *judgement) failedLater() bool {
	return j.app.HasFailedSync() && j.operationRelation() == Holds && j.hasBeenSynced()
}

// hasBeenSynced says that the commit was synced to the target before.
func (j *judgement) hasBeenSynced() bool { return !j.mem.Done.IsZero() || j.e.DeployedBefore }

// failedSyncVerdict answers for a target whose last operation ended Failed or Error. Argo CD keeps
// an operation Running between its own retries, so an ended one has used them up. It convicts the
// release only if it was its own first sync of the whole Application and a resource or a hook
// failed in it. A person who ended it, a cluster or a repo-server that was away, and a bystander's
// sync are no fault of the release. Where the failed sync was of an ancestor that also held the
// release, Argo CD may be about to try the newer commit. Then it counts only after debounce.
func (j *judgement) failedSyncVerdict(done bool) (Verdict, bool) {
	op, m := j.app.Operation, &j.mem
	isPartial := op != nil && !op.IsWhole()
	switch {
	case op != nil && j.app.Pending && !isRunning(op), j.awaitsRetriedSync():
		return Verdict{}, false // nobody can tell yet what was asked for
	case isPartial && !done && m.SyncFailure != "" && !j.e.DeployedBefore:
		// Another operation took the place of the release's own, and none that succeeded came
		// between two looks.
		return j.convictBySync(), true
	case !j.app.HasFailedSync() || j.operationRelation() != Holds || j.hasBeenSynced():
		m.SyncFailedSince, m.SyncFailure, m.SyncCulprits = time.Time{}, "", nil
		return Verdict{}, false
	}
	m.HealthySince = time.Time{}
	if m.SyncFailedSince.IsZero() {
		m.SyncFailedSince = j.now
	}
	m.SyncTried = true
	why := j.describeFailedSync("the sync of this commit")
	until := m.SyncFailedSince.Add(j.Debounce)
	if j.now.Before(until) && !slices.Equal(op.Revisions, j.app.Revisions) {
		return Verdict{State: Syncing, Reason: why + "; a newer commit may be tried yet", Next: until, Worsening: true}, true
	}
	switch {
	case op.wasTerminated():
		return Verdict{State: Failed, Reason: why + "; a person, or the controller's limit for syncs, ended it: sync it again, or revert"},
			true
	case op.Phase == errored:
		return j.erroredVerdict(why), true
	case op.firstFailure() == nil:
		return Verdict{State: Failed, Reason: why + "; Argo CD names no resource or hook that failed: sync it again, or revert"}, true
	}
	m.SyncFailure, m.SyncCulprits = why+op.describeWhatRuns(), op.listFailed()
	return j.convictBySync(), true
}

// describeWhatRuns says which release a failed sync left running, where its hooks tell;
// empty where they don't.
func (op *Operation) describeWhatRuns() string {
	hooks := map[string]bool{}
	for i := range op.Results {
		if r := &op.Results[i]; r.HasFailed() {
			hooks[r.Hook] = true
		}
	}
	switch {
	case len(hooks) != 1:
		return ""
	case hooks["PreSync"]:
		return "; nothing of the release was applied: what was there before still runs"
	case hooks["PostSync"]:
		return "; the release itself was applied and runs"
	}
	return ""
}

// convictBySync convicts the release by its own sync, which failed.
func (j *judgement) convictBySync() Verdict {
	v := j.degradedVerdict(j.mem.SyncFailure)
	v.Culprits = j.mem.SyncCulprits
	return v
}

// listFailed lists the resources and hooks that failed, as resources that are unhealthy.
func (op *Operation) listFailed() []Resource {
	var out []Resource
	for i := range op.Results {
		if r := &op.Results[i]; r.HasFailed() {
			out = append(out, Resource{Group: r.Group, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name, Health: degradedHealth,
				Message: r.Message})
		}
	}
	return out
}

// erroredVerdict answers for the release's own sync that ended in an error: the cluster
// or the repo-server was away. Argo CD doesn't try that commit again by itself; where
// syncs are Liftlock's to ask for it asks once more.
func (j *judgement) erroredVerdict(why string) Verdict {
	m, again := &j.mem, j.mem.SyncFailedSince.Add(retryErrored)
	v := Verdict{State: Failed, Reason: why + "; that is the cluster's or Argo CD's trouble, which Argo CD doesn't try again: sync it " +
		"again, or revert"}
	if !j.isTriggered() || m.ErrorRetried {
		return v
	}
	v.State, v.Reason = Syncing, why+"; Liftlock asks for the sync once more"
	if j.now.Before(again) {
		v.Next = again
		return v
	}
	v.Sync, m.ErrorRetried = true, true
	v.Next = j.now.Add(lastRepeat)
	return v
}

// describeFailedSync says how the last operation ended, and names what failed.
func (j *judgement) describeFailedSync(whose string) string {
	op := j.app.Operation
	why := fmt.Sprintf("%s ended %s", whose, op.Phase)
	if op.Retries > 0 {
		why += fmt.Sprintf(" after %d retries", op.Retries)
	}
	if op.By != "" {
		why += ", asked for by " + clipMessage(op.By)
	}
	if r := op.firstFailure(); r != nil {
		why += ": " + r.describe()
		if strings.Contains(op.Message, r.Message) && r.Message != "" {
			return why
		}
	}
	return why + messageSuffix(op.Message)
}
