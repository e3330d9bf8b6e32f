package promotion

import (
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/promotion/cause"
	"github.com/liftlock/liftlock/policies"
)

// TestHeadlines holds what a pull request says first: who or what it waits for, and never what Liftlock itself is at.
func TestHeadlines(t *testing.T) {
	wait := func(gate policies.GateName, reason, brief string) policies.Result {
		return policies.Result{Gate: gate, Outcome: policies.Wait, Reason: reason, Brief: brief}
	}
	approvals := wait(policies.GateApprovals, "0 of 1 approval", "grace (0 of 1)")
	hold := wait(GateHold, "environment prod is on hold by ada", "by ada until Mon 16:33 UTC: load test")
	base := wait(GateBase, "the files it edits changed on the tracked branch; it is composed anew", "")
	forge := wait(GateMergeable, "the forge blocks the merge: 1 check is missing", "")
	window := wait(policies.GateWindow, "closed until Mon 2026-03-09 09:00 CET", "")
	fail := policies.Result{Gate: policies.GateChecks, Outcome: policies.Fail, Reason: "ci is red"}
	passed := policies.Result{Gate: policies.GateSoak, Outcome: policies.Pass, Reason: "long enough"}
	for name, c := range map[string]struct {
		gates []policies.Result
		want  string
	}{
		"nothing waits":                  {[]policies.Result{passed}, "ready: every gate passes"},
		"a person":                       {[]policies.Result{approvals, passed}, "waiting: waiting for grace (0 of 1)"},
		"a time":                         {[]policies.Result{window}, "waiting: waiting for its window: closed until Mon 2026-03-09 09:00 CET"},
		"a person and a time":            {[]policies.Result{approvals, window}, "waiting: waiting for grace (0 of 1); also waiting for its window"},
		"a hold speaks first":            {[]policies.Result{approvals, hold}, "held: on hold by ada until Mon 16:33 UTC: load test; also waiting for grace (0 of 1)"},
		"holds that can't be read":       {[]policies.Result{wait(GateHold, "the holds can't be read", "")}, "held: on hold: the holds can't be read"},
		"what fails speaks before all":   {[]policies.Result{hold, fail}, "blocked: blocked by checks: ci is red; also waiting for the hold by ada until Mon 16:33 UTC: load test"},
		"Liftlock's own work":            {[]policies.Result{base}, "passing: being brought up to date"},
		"Liftlock's own work and more":   {[]policies.Result{base, approvals}, "waiting: waiting for grace (0 of 1)"},
		"the forge alone":                {[]policies.Result{forge, passed}, "forge: every gate passes; the forge blocks the merge: 1 check is missing"},
		"the forge, while others wait":   {[]policies.Result{forge, approvals}, "waiting: waiting for grace (0 of 1)"},
		"the same gate twice, once said": {[]policies.Result{window, wait(policies.GateWindows, "closed", ""), wait(policies.GateWindows, "closed too", "")}, "waiting: waiting for its window: closed until Mon 2026-03-09 09:00 CET; also waiting for one of its windows"},
	} {
		h := JudgeHeadline(c.gates)
		if got := string(h.Kind) + ": " + h.String(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestHeadlineOfAPull holds what a pull request says of which the gates don't tell all.
func TestHeadlineOfAPull(t *testing.T) {
	pass := []policies.Result{{Gate: policies.GateSoak, Outcome: policies.Pass}}
	manual := []Reason{{Code: cause.Manual, Text: "a person merges it"}}
	for name, c := range map[string]struct {
		state  EnvState
		revert bool
		want   string
	}{
		"there is none":          {EnvState{Gates: pass}, false, ""},
		"nobody has looked":      {EnvState{Pull: 7}, false, ""},
		"a person merges it":     {EnvState{Pull: 7, Gates: pass, Why: manual}, false, "every gate passes; a person merges it"},
		"it has no gates":        {EnvState{Pull: 7, Why: manual}, false, "every gate passes; a person merges it"},
		"another's work":         {EnvState{Pull: 7, Why: []Reason{{Code: cause.Unmanaged, Text: "mallory pushed"}}}, false, "stopped: mallory pushed"},
		"its revert has another": {EnvState{Revert: 8, Gates: pass, RevertGates: []policies.Result{{Gate: GateDegraded, Outcome: policies.Wait, Reason: "qa is well"}}}, true, "waiting for a person's decision: qa is well"},
	} {
		if got := c.state.JudgePull(c.revert).Text; got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestTimesOfHolds holds that a hold's end is read as a weekday where that says which day it is.
func TestTimesOfHolds(t *testing.T) {
	now := time.Date(2026, time.March, 6, 12, 0, 0, 0, time.UTC)
	for want, until := range map[string]time.Time{
		"by ada: load test":                                {},
		"by ada until Mon 16:33 UTC: load test":            time.Date(2026, time.March, 9, 16, 33, 0, 0, time.UTC),
		"by ada until Mon 2026-03-16 16:33 UTC: load test": time.Date(2026, time.March, 16, 16, 33, 0, 0, time.UTC),
	} {
		if got := briefHold("ada", until, "load test", now); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
