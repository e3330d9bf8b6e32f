package api

import (
	"testing"
	"time"
)

var at = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

func TestEnvironmentsAreExplained(t *testing.T) {
	pull := &Pull{Number: 14}
	wait := []Gate{{Gate: "checks", Outcome: "pass", Reason: "ci is green"}, {Gate: "approvals", Outcome: "wait", Reason: "1 of 2", Who: []string{"ada", "grace"}, Until: at}}
	for _, c := range []struct {
		name                       string
		env                        Environment
		want                       string
		moving, waiting, attention bool
	}{
		{"at rest", Environment{Environment: "qa", Name: "1", State: "verified", Reason: "well", Since: at},
			"qa carries 1 since 2026-03-02T09:00:00Z: verified, well", false, false, false},
		{"unreadable", Environment{Environment: "qa", State: "unreadable", Reason: "not read yet"},
			"qa carries nothing that can be read: unreadable, not read yet", false, false, true},
		{"not there", Environment{Environment: "qa", State: "not-here", Reason: "web is not in qa: no ApplicationSet generates a target for it there"},
			"web is not in qa: no ApplicationSet generates a target for it there", false, false, false},
		{"with a headline", Environment{Environment: "qa", Name: "1", State: "verified", Incoming: &Incoming{State: "open", Name: "2", Pull: pull, Headline: "waiting for grace (0 of 1)"}},
			"qa carries 1: verified\n2 is in #14: waiting for grace (0 of 1)", true, false, false},
		{"verifying", Environment{Environment: "dev", Name: "2", State: "verifying"}, "dev carries 2: verifying", true, false, false},
		{"waiting for its turn", Environment{Environment: "qa", Name: "1", State: "verified", Incoming: &Incoming{State: "waiting", Name: "2"}, Why: []Reason{{Text: "10 are open", Who: "anyone", When: at}}},
			"qa carries 1: verified\n2 is waiting; it has no open pull request\n- 10 are open (anyone), until 2026-03-02T09:00:00Z", false, true, false},
		{"open", Environment{Environment: "qa", Name: "1", State: "verified", Incoming: &Incoming{State: "open", Name: "2", Pull: pull, Gates: wait}},
			"qa carries 1: verified\n2 is in #14\n- approvals: 1 of 2 (ada, grace), until 2026-03-02T09:00:00Z", true, true, false},
		{"held", Environment{Environment: "qa", Name: "1", State: "verified", Incoming: &Incoming{State: "held", Pull: pull}},
			"qa carries 1: verified\na release is held in #14", true, false, true},
		{"vetoed", Environment{Environment: "qa", Name: "1", State: "verified", Incoming: &Incoming{State: "closed", Name: "2"}, Why: []Reason{{Text: "closed by a person"}}},
			"qa carries 1: verified\n2 is closed; it has no open pull request\n- closed by a person", false, false, false},
		{"failing gate", Environment{Environment: "qa", Name: "1", State: "verified", Incoming: &Incoming{State: "open", Name: "2", Pull: pull, Gates: []Gate{{Gate: "checks", Outcome: "fail", Reason: "ci is red"}}}},
			"qa carries 1: verified\n2 is in #14\n- checks: ci is red", true, true, true},
		{"reverting", Environment{Environment: "qa", Name: "2", State: "degraded", Revert: &OpenRevert{Pull: Pull{Number: 15}, Gates: []Gate{{Gate: "manual", Outcome: "wait", Reason: "a person merges it"}}}},
			"qa carries 2: degraded\nthe revert #15 is open\n- revert #15: manual: a person merges it", true, false, true},
		{"on GitLab", Environment{Environment: "qa", Name: "2", State: "degraded", Incoming: &Incoming{State: "open", Name: "3", Pull: &Pull{16, "https://git.example/acme/fleet/-/merge_requests/16"}}, Revert: &OpenRevert{Pull: Pull{15, "https://git.example/acme/fleet/-/merge_requests/15"}}},
			"qa carries 2: degraded\n3 is in !16\nthe revert !15 is open", true, false, true},
		{"diverged", Environment{Environment: "qa", Name: "2", State: "diverged"}, "qa carries 2: diverged", false, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.env.Explain(); got != c.want {
				t.Errorf("it is explained as\n%s\nwant\n%s", got, c.want)
			}
			if e := c.env; e.Moving() != c.moving || e.Waiting() != c.waiting || e.Attention() != c.attention {
				t.Errorf("moving %t, waiting %t, attention %t; want %t, %t, %t", e.Moving(), e.Waiting(), e.Attention(), c.moving, c.waiting, c.attention)
			}
		})
	}
}

func TestShownReasonsOmitTheState(t *testing.T) {
	e := Environment{Reason: "changed by hand", Why: []Reason{{Code: "baseline", Text: "since before"}, {Code: "diverged", Text: "changed by hand"}, {Code: "limit", Text: "full"}}}
	if got := e.WhyShown(); len(got) != 1 || got[0].Code != "limit" {
		t.Errorf("shown are %+v", got)
	}
	e.Targets = []Target{{State: "verified"}, {State: "soaking"}, {State: "verified"}}
	if e.Verified() != 2 {
		t.Errorf("%d targets are verified", e.Verified())
	}
}
