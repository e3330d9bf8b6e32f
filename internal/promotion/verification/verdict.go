package verification

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Judge says whether one target has taken the commit of e and is well with it.
//
// app is the target's Application as last seen, nil when there is none. rel has
// one Relation for each of its sources that lies in this repository, for the
// revisions in app.Revisions; empty means that Argo CD has reported no revision.
// mem is what the previous call returned, the zero Memory at first; a Memory
// about another Expect or another Application object is discarded. now is the
// caller's clock.
//
// The verdict holds until something is heard of the Application or of Git, or
// until Verdict.Next. Judge is pure and may be called concurrently; the same
// arguments give the same answer. It asks for refreshes and syncs by setting
// Refresh and Sync, again and more rarely while nothing happens, and never when
// Limits forbid it. Reasons don't mention the current time, so that they only
// change when the situation does.
func Judge(e Expect, app *App, rel []Relation, mem Memory, now time.Time) (Verdict, Memory) {
	now = normalizeTime(now)
	j := &judgement{Limits: e.Limits, e: e, app: app, rel: rel, now: now, mem: resumeMemory(mem, e, app, now)}
	if app != nil {
		j.health = app.assessHealth()
	}
	j.drift = j.findDrift()
	v := j.decideVerdict()
	v.Unsynced = j.findUnsynced(&v)
	j.noteUntold(&v)
	v.Drift, v.DriftUntold, v.InSync = j.drift, j.driftUntold, j.drift == nil && j.driftUntold == ""
	if app != nil {
		v.Unchecked, v.UncheckedUnknown = app.Unchecked, app.HealthInTree && !app.UncheckedKnown
	}
	if v.State == Verified {
		v.OtherImages = j.mem.OtherImages
	}
	j.noteRuns(&v)
	j.rememberVerdict(&v)
	return v, j.mem
}

// judgement is one call of Judge. Its methods update mem as they go.
type judgement struct {
	Limits
	e   Expect
	app *App
	rel []Relation
	now time.Time
	mem Memory

	health string // the Application's, empty without one
	drift  *Drift
	// driftUntold says why it can't be told whether it has drifted; empty: it can.
	driftUntold string
	queued      bool // this look found that the target waits its turn
	compared    bool // this look found that the target is compared with the commit
	untold      bool // this look couldn't tell how the target is
}

// decideVerdict goes through the questions in PROMOTION's order; whatever can't be
// known comes first, because a doubtful state answers none of them.
func (j *judgement) decideVerdict() Verdict {
	if j.e.Unreachable != "" {
		return j.unreachableVerdict()
	}
	if j.app == nil {
		j.mem.startAgain()
		return j.waitingVerdict(Absent, "no such Application exists yet")
	}
	relation := combineRelations(j.rel)
	if relation == Superseded { // a fact of Git, whatever Argo CD can't tell
		j.mem.startAgain()
		return Verdict{State: Arriving, Reason: "a later commit has changed the carried fields: this release is no longer what the " +
			"environment asks for"}
	}
	if why := unclearReason(j.app); why != "" {
		return j.unclearVerdict(why)
	}
	j.mem.resume(j.now)
	if !j.awaitsRetriedSync() {
		j.mem.RetriedAfter = nil
	}
	j.recordHealthBefore(relation)
	if relation != Holds {
		return j.arrivingVerdict()
	}
	if g := j.e.Generated; g != nil && g.Carries && j.mem.Done.IsZero() {
		if why := j.describeOutdated(); why != "" {
			return j.waitingVerdict(Arriving, why)
		}
	}
	return j.comparedVerdict()
}

// recordHealthBefore remembers how the target is while the sync of the commit has not
// begun: what is wrong by then is nothing of the release's making.
func (j *judgement) recordHealthBefore(relation Relation) {
	begun := j.operationRelation() == Holds || !j.mem.Done.IsZero() || j.e.DeployedBefore
	if begun || relation == Holds && j.app.SyncStatus != outOfSync {
		if j.brokeBeforeItsSync() {
			j.mem.UnhealthyBefore = true
		}
		j.mem.MissingBefore = j.mem.MissingBefore && j.health == missing
		return
	}
	switch {
	case j.health == missing && relation == Holds: // maybe what the commit brings, and its sync makes
		j.mem.MissingBefore = true
	case j.app.HasBadHealth():
		j.mem.UnhealthyBefore = true
	case j.health == healthy:
		j.mem.UnhealthyBefore, j.mem.MissingBefore = false, false
	}
}

// brokeBeforeItsSync says, by Argo CD's own times, that the target has been unwell since
// before the first sync of the commit began, though nobody looked then. Where an earlier
// sync of it is known, that one may have done it.
func (j *judgement) brokeBeforeItsSync() bool {
	op := j.app.Operation
	if j.hasBeenSynced() || j.mem.SyncTried {
		return false
	}
	if op == nil || !op.IsWhole() || op.Retries != 0 || j.operationRelation() != Holds {
		return false
	}
	return j.app.Health == degradedHealth && !j.app.HealthSince.IsZero() && j.app.HealthSince.Before(op.StartedAt)
}

// unreachableVerdict suspends every clock: neither the time to arrive nor the time to
// become healthy passes while nobody can look.
func (j *judgement) unreachableVerdict() Verdict {
	j.mem.Arrival, j.mem.UndoneSince = time.Time{}, time.Time{}
	j.mem.resetStreaks()
	j.mem.pause(j.now)
	j.untold = true
	why := "Argo CD can't be asked: " + clipMessage(j.e.Unreachable)
	// No news will come from there: look whether it is back.
	return j.keepVerified(Verdict{State: Unclear, Reason: why, Next: j.now.Add(unreachableRecheck)})
}

// unclearVerdict answers while Argo CD itself can't tell. Before the commit was taken the time to
// arrive goes on: a commit that can't be compared is not synced. Afterwards it is neither healthy
// nor unhealthy, without a limit. Only an analysis that came to no result has one, because nothing
// but a person brings it to any.
func (j *judgement) unclearVerdict(why string) Verdict {
	j.mem.resetStreaks()
	j.mem.pause(j.now)
	j.untold = true
	if j.mem.isVerified() {
		return Verdict{State: Verified, Lapsed: true, Reason: "verified before; at the moment it can't be told how it is: " + why}
	}
	if j.mem.Done.IsZero() && isBlockedByWindow(j.app) {
		return j.waitTurn(why + j.describeOpening())
	}
	if j.mem.Done.IsZero() {
		return j.waitingVerdict(Unclear, why)
	}
	j.mem.UndoneSince = time.Time{}
	if run := j.app.inconclusiveAnalysis(); run != "" {
		return j.inconclusiveVerdict(Unclear, run, j.untoldSince())
	}
	return Verdict{State: Unclear, Reason: why}
}

// inconclusiveVerdict answers for an analysis that has been without a result since then: only a
// person brings it to any, and is asked after timeout.
func (j *judgement) inconclusiveVerdict(state State, run string, since time.Time) Verdict {
	why, until := run+" came to no result", since.Add(j.Timeout)
	if j.now.Before(until) {
		return Verdict{State: state, Reason: why, Next: until}
	}
	return Verdict{State: Failed, Reason: fmt.Sprintf("%s, and hasn't for %s", why, formatDuration(j.Timeout))}
}

// untoldTimeouts is for how many timeouts a target's state may be unknown before a person is told
// of it. By then neither a restart nor a short failure explains it.
const untoldTimeouts = 6

// untoldSince is since when nobody has been able to tell: until now somebody was, where
// there is no earlier time.
func (j *judgement) untoldSince() time.Time {
	if at := j.mem.UnclearSince; !at.IsZero() {
		return at
	}
	return j.now
}

// noteUntold remembers since when nobody can tell, and says so of the verdict when that has
// been too long.
func (j *judgement) noteUntold(v *Verdict) {
	if !j.untold {
		j.mem.UnclearSince = time.Time{}
		return
	}
	j.mem.UnclearSince = j.untoldSince()
	if v.State != Unclear && !v.Lapsed {
		return // it waits for its turn, or a person is asked already
	}
	limit := untoldTimeouts * j.Timeout
	until := j.mem.UnclearSince.Add(limit)
	if j.now.Before(until) {
		v.lowerNext(until)
		return
	}
	v.Untold = true
	v.Reason += "; it could not be told for longer than " + formatDuration(limit)
}

// arrivingVerdict answers while the compared revision isn't known to hold the commit.
// After the target was done with it, an unknown revision is only that: a later
// commit that isn't fetched yet.
func (j *judgement) arrivingVerdict() Verdict {
	if !j.mem.Done.IsZero() {
		if combineRelations(j.rel) == Unresolved {
			return j.unclearVerdict(j.whyNotArrived())
		}
		j.mem.startAgain()
	}
	if v, ok := j.queuedVerdict(); ok {
		return v
	}
	v := j.waitingVerdict(Arriving, j.whyNotArrived())
	v.RunsFormer = combineRelations(j.rel) == Before && j.operationRelation() == Before
	if v.State == Arriving {
		// With manifest-generate-paths, or a long revision cache, the
		// revision lags until a refresh.
		j.requestRefresh(&v)
	}
	return v
}

func (j *judgement) whyNotArrived() string {
	at := ""
	if len(j.app.Revisions) > 0 {
		at = clipMessage(j.app.Revisions[0])
	}
	switch h := j.app.Hydration; {
	case h != nil && h.Phase == "Failed":
		return "the source hydrator failed" + messageSuffix(h.Message)
	case h != nil && h.Phase == "Hydrating":
		return "the source hydrator is at work"
	case j.e.NotHydrated != "":
		return clipMessage(j.e.NotHydrated)
	case len(j.rel) == 0 || at == "":
		return "Argo CD has not reported a revision yet"
	case slices.Contains(j.rel, Unresolved):
		return "Argo CD reports revision " + at + ", which Git doesn't know here yet"
	}
	why := "Argo CD has not noticed the commit: it compares with revision " + at
	if g := j.describeOutdated(); g != "" {
		why += "; " + g
	}
	return why
}

// comparedVerdict answers when the compared revision holds the commit.
func (j *judgement) comparedVerdict() Verdict {
	j.compared = true
	notDone := j.whyNotDone()
	if v, ok := j.failedSyncVerdict(notDone == ""); ok {
		return v
	}
	if notDone == "" {
		j.mem.UndoneSince, j.mem.SyncRequests, j.mem.SyncRequestedAt = time.Time{}, 0, time.Time{}
		if j.isSyncedAnew() && j.health == healthy {
			j.mem.Fresh, j.mem.DoneReconciled, j.mem.HealthySince = false, time.Time{}, time.Time{}
		}
		if !j.mem.isVerified() {
			j.mem.DoneWith = j.lastSyncBegan()
		}
		if j.mem.Done.IsZero() {
			j.mem.Done, j.mem.TimeoutFrom = j.now, j.now
			j.mem.RefreshRequests, j.mem.RefreshRequestedAt = 0, time.Time{}
		}
		if !j.isHealthFresh() {
			return j.refreshingVerdict()
		}
		return j.healthVerdict(true, "")
	}
	if j.mem.Done.IsZero() && j.isSyncedButForFailure() {
		// The sync that succeeded and the one that failed came between two looks.
		j.mem.Done, j.mem.TimeoutFrom = j.now, j.now
	}
	if j.isSyncedButForFailure() && !j.isHealthFresh() && j.app.HasBadHealth() {
		return j.refreshingVerdict() // a later sync that failed doesn't hide what the first one did
	}
	if j.isPausedInSync() {
		j.mem.Arrival, j.mem.UndoneSince = time.Time{}, time.Time{}
		j.mem.pause(j.now)
		return j.suspendedVerdict()
	}
	if j.isReplaced() {
		j.mem.startAgain()
	}
	if j.mem.Fresh {
		// The running release is the commit. A new difference of the target (drift, a later
		// commit's sync) stops it from becoming verified, but its health still counts.
		return j.healthVerdict(false, notDone)
	}
	if j.mem.SuspendedSince = (time.Time{}); !j.isSyncedButForFailure() {
		j.mem.DoneReconciled = time.Time{}
	}
	return j.syncingVerdict(notDone)
}

// syncingVerdict is the answer while the commit is compared with but not synced.
func (j *judgement) syncingVerdict(why string) Verdict {
	if j.app.SyncStatus == outOfSync {
		if v, ok := j.queuedVerdict(); ok {
			return v
		}
		isAwaited := j.app.AutoSync || j.isTriggered() // somebody syncs it once the window opens
		if j.e.Window != nil && !j.app.isOperating() && isAwaited {
			return j.waitTurn(fmt.Sprintf("a sync window of the project %s keeps it from being synced%s", j.e.Window.Project,
				j.describeOpening()))
		}
	}
	v := j.waitingVerdict(Syncing, why)
	if v.State == Syncing {
		j.requestSync(&v)
		if j.app.SyncStatus == outOfSync && !j.mem.HeldUpAt.IsZero() && !j.app.isOperating() {
			// Argo CD may not look again by itself when a window opens.
			j.requestRefresh(&v)
		}
	}
	return v
}

// waitingVerdict is the answer while the target has time left to take the commit, and
// Failed with the same reason when it hasn't. A sync that is running when the
// time is over has the timeout on top: the commit was taken, a wave or hook is slow.
func (j *judgement) waitingVerdict(state State, why string) Verdict {
	start := &j.mem.Arrival
	if !j.mem.Done.IsZero() {
		start = &j.mem.UndoneSince
	}
	if start.IsZero() {
		*start = j.now
	}
	limit := j.ArriveWithin
	if state == Syncing && inProgress(j.app) {
		limit += j.Timeout
	}
	until := start.Add(limit)
	if j.now.Before(until) {
		return Verdict{State: state, Reason: why, Next: until}
	}
	return Verdict{State: Failed, Reason: fmt.Sprintf("not synced within %s: %s", formatDuration(limit), why)}
}

func (j *judgement) degradedVerdict(why string) Verdict {
	if j.mem.DegradedAt.IsZero() {
		j.mem.DegradedAt = j.now
	}
	return Verdict{State: Degraded, Reason: why}
}

// isSyncedButForFailure says that nothing but a later sync that failed speaks against the
// target's being done with the commit.
func (j *judgement) isSyncedButForFailure() bool {
	a := j.app
	return a.ComparedToSpec && a.SyncStatus == synced && !a.Pending && j.failedLater()
}

// whyNotDone says what keeps the target from being done with the commit it is
// compared with; empty when it is done. A completed operation of another commit
// says nothing: Argo CD runs none when nothing differs, which is how a revert of
// a failed sync ends.
func (j *judgement) whyNotDone() string {
	a := j.app
	switch op := a.Operation; {
	case !a.ComparedToSpec:
		return "Argo CD has not compared with the Application's present spec yet"
	case a.Pending && !inProgress(a):
		return "a sync was asked for and has not begun"
	case inProgress(a):
		return "the sync is running" + messageSuffix(op.Message)
	case j.awaitsRetriedSync():
		return "the sync that /liftlock retry has asked for has not begun"
	case a.SyncStatus != synced:
		return j.whyOutOfSync()
	case hasFailed(op) && op.IsWhole() && j.operationRelation() == Unresolved:
		return fmt.Sprintf("a sync of a revision that Git doesn't know here ended %s", op.Phase)
	case j.failedLater():
		return j.describeFailedSync("a later sync of this commit")
	case syncError(a) != "":
		return "Argo CD reports SyncError" + messageSuffix(syncError(a))
	}
	return ""
}

func (j *judgement) whyOutOfSync() string {
	a := j.app
	status := cmp.Or(a.SyncStatus, "not compared yet")
	switch {
	case syncError(a) != "":
		return status + ": " + clipMessage(syncError(a))
	case j.failedLater():
		return status + ": " + j.describeFailedSync("a later sync of this commit")
	case a.Operation != nil && a.Operation.Phase == succeeded && a.Operation.IsWhole() && j.operationRelation() == Holds:
		return status + " although the sync of this commit succeeded" + messageSuffix(a.Operation.Message)
	case hasFailed(a.Operation) && !a.Operation.IsWhole() && j.operationRelation() == Holds:
		return status + ": " + j.describeFailedSync("a sync that says nothing of the release")
	case a.AutoSync:
		return status + ", and no sync has begun although one is automated: a closed sync window, or a prune that isn't automated"
	case j.app.SetStep.isLeftOut() && !j.Trigger:
		return status + ": its ApplicationSet's RollingSync never syncs it (" + j.whyLeftOut() + "); sync it, or set verify.sync to trigger"
	case j.usesRollingSync():
		return status + ": the ApplicationSet's RollingSync has not synced it"
	case j.Trigger && j.e.Unmarked != "":
		return status + ": there is no automated sync policy, and Liftlock syncs a plain Application only where its annotation " +
			MarkAnnotation + " is " + j.e.Unmarked
	case j.Trigger:
		return status + ": there is no automated sync policy, so Liftlock asks for the sync"
	default:
		return status + ": there is no automated sync policy; sync it, or set verify.sync to trigger"
	}
}

// combineRelations sums up one relation a source: all must hold; one that has moved on
// decides; then what isn't known, as nothing is of no source.
func combineRelations(rel []Relation) Relation {
	switch {
	case slices.Contains(rel, Superseded):
		return Superseded
	case len(rel) == 0, slices.Contains(rel, Unresolved):
		return Unresolved
	}
	if slices.ContainsFunc(rel, func(r Relation) bool { return r != Holds }) {
		return Before
	}
	return Holds
}
