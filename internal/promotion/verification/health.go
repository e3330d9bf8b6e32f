package verification

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// isHealthFresh tells whether the health that Argo CD shows is certainly about the commit, and
// remembers it once it was.
//
// reconciledAt is stamped when a comparison ends, so one that began before the sync finished can
// carry the old health. It may also have ended after we saw the target done. Comparisons of one
// Application never overlap. So a state is fresh when a refresh mark was set after that (there was
// none then) and has gone with a later reconciledAt. It is fresh, too, when reconciledAt has
// changed twice. Either way a comparison began after the target was done.
func (j *judgement) isHealthFresh() bool {
	m, at := &j.mem, normalizeTime(j.app.ReconciledAt)
	if m.Fresh {
		return true
	}
	if m.DoneReconciled.IsZero() {
		if !j.app.RefreshPending {
			m.DoneReconciled, m.LastReconciled, m.Reconciles = at, at, 0
		}
		return false
	}
	// Another process may see an older state than the one before it: that is no new comparison.
	if at.After(m.LastReconciled) {
		m.LastReconciled = at
		m.Reconciles++
	}
	if j.app.RefreshPending || at.Equal(m.DoneReconciled) {
		return false
	}
	refreshed := !j.NoRefresh && j.app.RefreshedAt.After(m.DoneReconciled)
	if !refreshed && m.Reconciles < 2 {
		return false
	}
	m.Fresh = true
	if j.health == suspended { // as it may have been all the time, in which it couldn't get well
		m.TimeoutFrom = j.now
	}
	return true
}

func (j *judgement) refreshingVerdict() Verdict {
	until := j.mem.TimeoutFrom.Add(j.Timeout)
	v := Verdict{State: Refreshing, Reason: "synced; waiting for Argo CD to compare again, because its health may be about an older state",
		Next: until}
	if !j.now.Before(until) {
		v = Verdict{State: Unclear, Reason: fmt.Sprintf("synced, but Argo CD has not compared again within %s, so its health may be "+
			"about an older state", formatDuration(j.Timeout))}
		// Another image that ran all the while in the release's place used up that one's time.
		if !j.OtherImagesPass && j.mem.OthersSince.IsZero() && j.describeOtherImages() != "" {
			j.mem.OthersSince = j.now
		}
	}
	if !j.mem.DoneReconciled.IsZero() {
		j.requestRefresh(&v)
	}
	return v
}

// healthVerdict answers for a target that runs the commit and whose state is fresh.
// done is false while it is out of sync again or being synced, for the reason
// undone: then it can't become verified.
func (j *judgement) healthVerdict(done bool, notDone string) Verdict {
	m := &j.mem
	if why := j.describeOtherImages(); why != "" && !j.OtherImagesPass && !m.isVerified() && j.health != suspended {
		return j.otherImagesVerdict(why)
	}
	if !m.OthersSince.IsZero() {
		// It may run what landed since just now: the time to get well begins.
		m.OthersSince, m.TimeoutFrom = time.Time{}, j.now
	}
	switch j.health {
	case healthy:
		return j.healthyVerdict(done, notDone)
	case suspended:
		m.HealthySince, m.BadSince, m.NotReadySince = time.Time{}, time.Time{}, time.Time{}
		m.pause(j.now)
		return j.suspendedVerdict()
	case progressing, degradedHealth, missing:
		m.HealthySince, m.SuspendedSince = time.Time{}, time.Time{}
		if j.health == missing && j.app.isOperating() {
			// In the middle of a sync a resource may be gone for a moment.
			m.BadSince = time.Time{}
			return j.keepVerified(Verdict{State: Progressing, Reason: "health is Missing while a sync is under way"})
		}
		return j.unhealthyVerdict()
	default:
		return j.unclearVerdict("health is Unknown" + messageSuffix(j.app.HealthMessage))
	}
}

func (j *judgement) healthyVerdict(done bool, notDone string) Verdict {
	m := &j.mem
	mark := normalizeTime(j.app.HealthSince)
	if m.HealthySince.IsZero() || !mark.Equal(m.HealthMark) {
		m.HealthySince = j.now
	}
	m.HealthMark, m.EverHealthy, m.Unhealed = mark, true, false
	m.UnhealthyBefore, m.MissingBefore = false, false // it got well with the release: what becomes of it now may be that one's doing
	m.BadSince, m.NotReadySince, m.SuspendedSince = time.Time{}, time.Time{}, time.Time{}
	switch until := m.HealthySince.Add(j.HealthyFor); {
	case m.isVerified() && j.failedLater():
		return Verdict{State: Verified, Reason: "verified and healthy; but " + notDone}
	case m.isVerified() && j.drift != nil:
		return Verdict{State: Verified, Reason: "verified and healthy; it " + j.drift.Describe()}
	case m.isVerified():
		return Verdict{State: Verified, Reason: "synced and healthy"}
	case !done:
		return j.syncingVerdict(notDone)
	case j.now.Before(until):
		return Verdict{State: Soaking, Reason: fmt.Sprintf("healthy, but not yet for %s", formatDuration(j.HealthyFor)), Next: until}
	case j.RequireHealthChecks && j.app.UncheckedError != "":
		return Verdict{State: Unclear, Reason: "healthy, but which resources have no health check can't be told: " +
			clipMessage(j.app.UncheckedError)}
	case j.RequireHealthChecks:
		if why := j.app.missingHealthChecks(); why != "" {
			return Verdict{State: Failed, Reason: "healthy, but " + why + " (verify.ignoreMissingHealth: false)"}
		}
	}
	reason := fmt.Sprintf("synced and healthy for %s", formatDuration(j.HealthyFor))
	if m.VerifiedAt.IsZero() {
		m.VerifiedAt, m.OtherImages = j.now, j.describeOtherImages()
		if habits := j.learnHabits(); habits != "" {
			reason += "; " + habits
		}
	}
	m.DegradedAt = time.Time{}
	return Verdict{State: Verified, Reason: reason}
}

func (j *judgement) suspendedVerdict() Verdict {
	if j.mem.SuspendedSince.IsZero() {
		j.mem.SuspendedSince = j.now
	}
	why := "suspended (a paused rollout)" + messageSuffix(j.healthDetail())
	if j.SuspendedFails && !j.mem.isVerified() {
		return Verdict{State: Failed, Reason: why + ", and verify.suspended is fail"}
	}
	if run := j.app.inconclusiveAnalysis(); run != "" && !j.mem.isVerified() {
		return j.inconclusiveVerdict(Suspended, run, j.mem.SuspendedSince)
	}
	until := j.mem.SuspendedSince.Add(j.SuspendedFor)
	if j.now.Before(until) || j.mem.isVerified() {
		v := Verdict{State: Suspended, Reason: why}
		if j.now.Before(until) {
			v.Next = until
		}
		return j.keepVerified(v)
	}
	return Verdict{State: Failed, Reason: fmt.Sprintf("suspended for longer than %s%s", formatDuration(j.SuspendedFor),
		messageSuffix(j.healthDetail()))}
}

// unhealthyVerdict answers for Progressing, Degraded and Missing: the target is degraded as soon as
// the first of the limits that apply is over. Its time without ever being healthy counts from when
// the target was done. But it must have been unhealthy for debounce without a break, and certainly
// so: neither a late refresh nor the end of a pause must convict at once.
func (j *judgement) unhealthyVerdict() Verdict {
	m := &j.mem
	var until time.Time
	var verdict string
	limit := func(at time.Time, why string) {
		if until.IsZero() || at.Before(until) {
			until, verdict = at, why
		}
	}
	if j.health == progressing {
		m.BadSince = time.Time{}
	} else {
		if m.BadSince.IsZero() {
			m.BadSince = j.now
		}
		limit(m.BadSince.Add(j.Debounce), fmt.Sprintf("health is %s, and has been for %s", j.health, formatDuration(j.Debounce)))
	}
	if m.NotReadySince.IsZero() {
		m.NotReadySince = j.now
	}
	if m.EverHealthy {
		limit(m.NotReadySince.Add(j.Timeout), fmt.Sprintf("was healthy, and has not been again for longer than %s",
			formatDuration(j.Timeout)))
	} else {
		limit(latest(m.TimeoutFrom.Add(j.Timeout), m.NotReadySince.Add(j.Debounce)), fmt.Sprintf("did not become healthy within %s",
			formatDuration(j.Timeout)))
	}
	if m.Unhealed || !j.now.Before(until) {
		if m.Unhealed {
			verdict = "health is " + j.health + " and has not been Healthy since it degraded"
		}
		m.Unhealed = true
		return j.degradedVerdict(verdict + messageSuffix(j.healthDetail()))
	}
	return j.keepVerified(Verdict{State: Progressing, Reason: "health is " + j.health + messageSuffix(j.healthDetail()), Next: until,
		Worsening: j.health != progressing})
}

// keepVerified keeps a verified target verified while nothing has convicted it, with
// the reason for looking twice.
func (j *judgement) keepVerified(v Verdict) Verdict {
	if j.mem.isVerified() {
		v.State, v.Lapsed, v.Reason = Verified, true, "verified before; at the moment "+v.Reason
	}
	return v
}

// causedBy begins a message of Argo CD 3.6 that only names resources, whose own messages
// say more.
const causedBy = "Caused by "

// healthDetail is what Argo CD says about why the target is not healthy.
func (j *judgement) healthDetail() string {
	names := strings.HasPrefix(j.app.HealthMessage, causedBy)
	if j.app.HealthMessage != "" && !names {
		return clipMessage(j.app.HealthMessage)
	}
	absent := ""
	for _, r := range j.app.Unhealthy {
		switch {
		case r.Message != "":
			return clipMessage(fmt.Sprintf("%s %s: %s", r.Kind, r.Name, r.Message))
		case absent == "" && r.isAbsent():
			absent = clipMessage(fmt.Sprintf("%s %s is not there", r.Kind, r.Name))
		}
	}
	return cmp.Or(absent, clipMessage(j.app.HealthMessage))
}
