package verification

import (
	"fmt"
	"slices"
	"time"
)

// waitingForHealth is how an operation says that it waits for what it has applied.
const waitingForHealth = "waiting for healthy state"

// queuedVerdict answers for a target whose RollingSync step waits its turn: its clock
// has not started. A step that is over, or another state of it, is no reason to wait,
// and neither is one that never syncs the target.
func (j *judgement) queuedVerdict() (Verdict, bool) {
	step := &j.app.SetStep
	if step.Status != "Waiting" && step.Status != "Pending" || step.isLeftOut() || inProgress(j.app) {
		return Verdict{}, false
	}
	why := fmt.Sprintf("its step of the ApplicationSet's RollingSync waits its turn (%s)", step.Status)
	if w := step.WaitsFor; w != nil {
		why += fmt.Sprintf(": waits for step %s: %s (%s)", w.Step, w.Application, w.describe())
		if w.isUnhealthy() {
			j.mem.QueuedSince = j.now // the people who manage that one are told of it there
		}
	}
	v := j.waitTurn(why)
	v.RunsFormer = j.mem.Done.IsZero() && j.operationRelation() == Before
	return v, true
}

// isUnhealthy says that the step after another Application's doesn't begin before somebody has
// mended that one.
func (s *StepMember) isUnhealthy() bool { return s.Health == degradedHealth || s.Health == missing }

// describe says how another Application of the set is.
func (s *StepMember) describe() string {
	said := s.Status
	if s.isUnhealthy() {
		said = s.Health + ", so it is blocked"
	}
	if !s.Since.IsZero() {
		said += " since " + s.Since.UTC().Format(time.RFC3339)
	}
	return said
}

// waitTurn answers for a target that waits for its turn or a sync window. Its other
// clocks stand still; when it has waited for queueFor a person is asked.
func (j *judgement) waitTurn(why string) Verdict {
	m := &j.mem
	j.queued = true
	m.Arrival, m.UndoneSince = time.Time{}, time.Time{}
	if m.QueuedSince.IsZero() {
		m.QueuedSince = j.now
	}
	v := Verdict{State: Queued, Reason: why}
	if w := j.e.Window; w != nil && w.Opens.After(j.now) {
		v.Next = w.Opens
	}
	if j.QueueFor <= 0 {
		return v
	}
	until := m.QueuedSince.Add(j.QueueFor)
	if !j.now.Before(until) {
		return Verdict{State: Failed, Reason: fmt.Sprintf("has waited for its turn for longer than %s: %s",
			formatDuration(j.QueueFor), why)}
	}
	v.lowerNext(until)
	return v
}

// describeOpening says when the sync window lets syncs through again, where that is known.
func (j *judgement) describeOpening() string {
	switch w := j.e.Window; {
	case w == nil:
		return ""
	case w.Opens.IsZero():
		return ", for a year at least"
	default:
		return " until " + w.Opens.UTC().Format(time.RFC3339)
	}
}

func (j *judgement) whyLeftOut() string {
	if j.app.SetStep.NoUpdate {
		return "its step's maxUpdate is 0"
	}
	return "it is in no step"
}

// isPausedInSync says that the sync of the commit runs and waits for something that is
// suspended, such as a canary that waits for a person.
func (j *judgement) isPausedInSync() bool {
	if !j.app.waitsInSync() || j.operationRelation() != Holds {
		return false
	}
	return j.health == suspended || slices.ContainsFunc(j.app.Unhealthy, func(r Resource) bool { return r.Health == suspended })
}
