package verification

import (
	"slices"
	"time"
)

// Requests to Argo CD are repeated while nothing happens, first soon, then rarely. A comparison takes it
// some seconds, and its end is heard of; but its times have a granularity of a second, so it may not show
// in reconciledAt.
const (
	firstRepeat     = 2 * time.Second
	firstUnnotified = 5 * time.Second // after a request for a comparison of which no end was heard
	lastRepeat      = 30 * time.Second
)

// unreachableRecheck is when to look again while Argo CD can't be asked.
const unreachableRecheck = time.Minute

// The Timeline keeps its first and its last marks: how it began and how it ended.
const (
	maxTimeline = 60
	keptFirst   = 10
)

// resumeMemory is the Memory to go on with: mem if it is about e and app, a new one
// otherwise. Times in the future, which a clock that was set back leaves behind,
// become now: a limit may take longer then, but never an hour.
func resumeMemory(mem Memory, e Expect, app *App, now time.Time) Memory {
	if mem.Commit != e.Commit || mem.Release != e.Release {
		mem = Memory{Commit: e.Commit, Release: e.Release, Habits: mem.Habits, Pins: mem.Pins}
	}
	if app != nil && app.UID != "" && app.UID != mem.UID {
		if mem.UID != "" {
			mem.startAgain()
		}
		mem.UID = app.UID
	}
	for _, t := range []*time.Time{
		&mem.Since, &mem.Arrival, &mem.Done, &mem.UndoneSince, &mem.SyncRequestedAt, &mem.RefreshRequestedAt,
		&mem.TimeoutFrom, &mem.DriftSince, &mem.PausedSince, &mem.HealthySince, &mem.BadSince, &mem.NotReadySince,
		&mem.QueuedSince, &mem.HeldUpAt, &mem.SuspendedSince, &mem.OthersSince, &mem.UnclearSince, &mem.SyncFailedSince, &mem.VerifiedAt,
		&mem.DegradedAt,
	} {
		*t = earliest(*t, now)
	}
	return mem
}

// isVerified tells whether the target was verified and has not been degraded since.
func (m *Memory) isVerified() bool { return !m.VerifiedAt.IsZero() && m.DegradedAt.IsZero() }

// startAgain forgets how far the target was, but not what happened: it no longer
// runs the commit, so whatever it runs next must arrive and become well anew. A
// clock that is already running goes on unless the target had been done.
func (m *Memory) startAgain() {
	arrival := m.Arrival
	if !m.Done.IsZero() {
		arrival = time.Time{}
	}
	*m = Memory{
		Commit: m.Commit, Release: m.Release, UID: m.UID,
		State: m.State, Health: m.Health, Since: m.Since, Timeline: m.Timeline,
		Arrival: arrival, QueuedSince: m.QueuedSince, HeldUpAt: m.HeldUpAt, SyncedWith: m.SyncedWith, DriftSince: m.DriftSince,
		Habits: m.Habits, Pins: m.Pins,
	}
}

// resetStreaks ends everything that must hold continuously: a time in which nobody
// could tell counts neither as healthy nor as unhealthy.
func (m *Memory) resetStreaks() {
	m.HealthySince, m.BadSince, m.NotReadySince, m.SuspendedSince = time.Time{}, time.Time{}, time.Time{}, time.Time{}
}

// pause stops the clock of the timeout; resume lets it go on.
func (m *Memory) pause(now time.Time) {
	if m.PausedSince.IsZero() {
		m.PausedSince = now
	}
}

func (m *Memory) resume(now time.Time) {
	if m.PausedSince.IsZero() {
		return
	}
	if !m.TimeoutFrom.IsZero() {
		m.TimeoutFrom = m.TimeoutFrom.Add(now.Sub(latest(m.PausedSince, m.TimeoutFrom)))
	}
	m.PausedSince = time.Time{}
}

// rememberVerdict writes the verdict into the memory and completes it with Since.
func (j *judgement) rememberVerdict(v *Verdict) {
	m, health := &j.mem, ""
	if j.e.Unreachable == "" {
		health = j.health
	}
	if m.State != v.State || m.Health != health {
		if m.State != v.State {
			m.Since = j.now
		}
		m.State, m.Health = v.State, health
		m.appendTimeline(StateChange{At: j.now, State: v.State, Note: v.Reason})
	}
	if v.State == Queued || v.State == Suspended {
		m.HeldUpAt = j.now
	}
	if !j.queued && v.State != Unclear {
		m.QueuedSince = time.Time{}
	}
	v.HeldUpAt = m.HeldUpAt
	v.Since, v.UnhealthyBefore = m.Since, m.UnhealthyBefore || m.MissingBefore
	v.OnlyMissingBefore = m.MissingBefore && !m.UnhealthyBefore
}

// appendTimeline appends to a copy of the Timeline, so that an earlier Memory keeps its own.
func (m *Memory) appendTimeline(change StateChange) {
	timeline := make([]StateChange, 0, len(m.Timeline)+1)
	timeline = append(append(timeline, m.Timeline...), change)
	if over := len(timeline) - maxTimeline; over > 0 {
		timeline = append(timeline[:keptFirst], timeline[keptFirst+over:]...)
	}
	m.Timeline = timeline
}

// requestRefresh sets Refresh if it is time to, and Next to when it is next time.
func (j *judgement) requestRefresh(v *Verdict) {
	if j.NoRefresh {
		return
	}
	first := firstUnnotified
	if !j.app.RefreshedAt.IsZero() && j.app.RefreshedAt.Equal(j.app.ReconciledAt) {
		first = firstRepeat // the marks seen are those that were asked for
	}
	request, next := scheduleRequest(&j.mem.RefreshRequestedAt, &j.mem.RefreshRequests, first, j.now, j.app.RefreshPending)
	v.Refresh = request
	v.lowerNext(next)
}

// requestSync sets Sync where a person has one asked for, or where Liftlock is to trigger syncs and
// nothing else will. In the second case the target is out of sync with the commit and has not been
// synced to it already. It has no automated policy and is in no RollingSync.
func (j *judgement) requestSync(v *Verdict) {
	a := j.app
	isSynced := a.SyncStatus != outOfSync || a.Operation != nil && a.Operation.IsWhole() && j.operationRelation() == Holds
	isDue := j.awaitsRetriedSync() || j.isTriggered() && !isSynced
	if a.isOperating() || !isDue {
		return
	}
	request, next := scheduleRequest(&j.mem.SyncRequestedAt, &j.mem.SyncRequests, firstRepeat, j.now, false)
	v.Sync = request
	v.lowerNext(next)
}

// isTriggered says that syncs of the target are Liftlock's to ask for.
func (j *judgement) isTriggered() bool {
	return j.Trigger && j.e.Unmarked == "" && !j.app.AutoSync && !j.usesRollingSync()
}

// scheduleRequest decides whether to request again: for the first time after a while that is given, and
// not while the last request is still pending.
func scheduleRequest(requestedAt *time.Time, requests *int, first time.Duration, now time.Time, pending bool) (request bool,
	next time.Time) {
	wait := func() time.Duration { return min(first<<max(min(*requests, 5)-1, 0), lastRepeat) }
	due := requestedAt.Add(wait())
	switch {
	case pending:
		return false, time.Time{}
	case now.Before(due):
		return false, due
	}
	*requestedAt = now
	*requests = min(*requests+1, 1000)
	return true, now.Add(wait())
}

func (v *Verdict) lowerNext(at time.Time) {
	switch {
	case at.IsZero():
	case v.Next.IsZero():
		v.Next = at
	default:
		v.Next = earliest(v.Next, at)
	}
}

// earliest and latest are the one of two times that comes first and last.
func earliest(a, b time.Time) time.Time { return slices.MinFunc([]time.Time{a, b}, time.Time.Compare) }
func latest(a, b time.Time) time.Time   { return slices.MaxFunc([]time.Time{a, b}, time.Time.Compare) }
