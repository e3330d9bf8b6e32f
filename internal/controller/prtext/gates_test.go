package prtext

import (
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/policies"
)

func TestGatesNameTheirActors(t *testing.T) {
	in := promotionInput()
	for _, c := range []struct {
		gate  policies.Result
		waits string
		who   string
	}{
		{policies.Result{Gate: "approvals", Who: []string{"ada", "a_b"}}, "approvals", `ada, a\_b`},
		{policies.Result{Gate: "approvals"}, "approvals", "a review by somebody who may write and is no author of the release"},
		{policies.Result{Gate: "approvals", Outcome: policies.Fail}, "approvals", "a commit that changes the pipeline file, or another release"},
		{policies.Result{Gate: "approvals", Outcome: policies.Pass, Who: []string{"ada"}}, "approvals", ""},
		{policies.Result{Gate: "window", Until: at(17, 0)}, "its window", "by itself; at 2026-03-09 17:00 UTC"},
		{policies.Result{Gate: "freeze", Until: at(17, 0)}, "the end of a freeze", "by itself; at 2026-03-09 17:00 UTC"},
		{policies.Result{Gate: "expression"}, "its expression", "another release, or a change of what the expression asks for"},
		{policies.Result{Gate: "checks"}, "checks on its head", "the checks, when they pass"},
		{policies.Result{Gate: "checks", Outcome: policies.Fail}, "checks on its head", "the checks, when they run again and pass; or another release"},
		{policies.Result{Gate: "windows"}, "one of its windows", "by itself"},
		{policies.Result{Gate: "limit", Until: at(17, 0)}, "the limit of merges", "by itself; at 2026-03-09 17:00 UTC"},
		{policies.Result{Gate: "pipeline-file"}, "a working pipeline file", "a commit that mends the pipeline file"},
		{policies.Result{Gate: "targets"}, "its targets", "a commit that mends the ApplicationSets or the pipeline file"},
		{policies.Result{Gate: "hold"}, "the hold", "`/liftlock unhold`, as the reason says"},
		{policies.Result{Gate: "mergeable"}, "the forge", "the forge: its checks and branch protection"},
		{policies.Result{Gate: "diverged"}, "a decision about a change by hand", "`/liftlock promote prod`"},
		{policies.Result{Gate: "base"}, "being composed anew", "Liftlock, by itself"},
		{policies.Result{Gate: "reverting"}, "the open revert", "merging or closing the revert"},
		{policies.Result{Gate: "settled"}, "its targets to be as Git says", "a sync of the targets, or a commit with what was changed in them"},
		{policies.Result{Gate: "verifying"}, "what is there to be verified", "by itself, when the targets are well; `/liftlock why` shows them"},
		{policies.Result{Gate: "upstream"}, "upstream to be well", "by itself, when the targets are well; `/liftlock why` shows them"},
		{policies.Result{Gate: "degraded"}, "a person's decision", "a person: merge it or close it"},
		{policies.Result{Gate: "weather"}, "weather", ""},
	} {
		if got := waitsFor(c.gate.Gate); got != c.waits {
			t.Errorf("%s waits for %q, want %q", c.gate.Gate, got, c.waits)
		}
		if got := whoCanPass(in, c.gate); got != c.who {
			t.Errorf("%s is changed by %q, want %q", c.gate.Gate, got, c.who)
		}
	}
}

func TestLongListsAreCut(t *testing.T) {
	in := promotionInput()
	st, e := stateOf(in), environmentOf(in)
	g := st.Gates[0]
	g.Brief = ""
	for i := range 80 {
		g.Gate = policies.GateName("gate" + strings.Repeat("i", i))
		st.Gates = append(st.Gates, g)
		st.Why = append(st.Why, promotion.Reason{Code: "hold", Text: "another"})
		e.Gates[0].Approvals.From.Users = append(e.Gates[0].Approvals.From.Users, "ada")
	}
	p := Render(in)
	for _, want := range []string{"and 31 more", "- and 30 more", "**Waiting for grace (1 of 2)**; also waiting for gate, gatei,"} {
		if !strings.Contains(p.Comment, want) {
			t.Errorf("the comment doesn't say %q:\n%s", want, p.Comment)
		}
	}
	if !strings.Contains(p.Body, "72 more; not from the release's authors") {
		t.Errorf("the body lists everybody:\n%s", p.Body)
	}
	if got := WhyText(in.Members[0].Decision.Envs, "prod"); !strings.Contains(got, "and 31 more gates") {
		t.Errorf("why lists every gate:\n%s", got)
	}
}

func TestNothingWaits(t *testing.T) {
	for want, st := range map[string]promotion.EnvState{
		"#14 is being worked on":                             {Pull: 14},
		"its pull request is about to be opened":             {Promotion: promotion.Waiting},
		"it goes on when every target is synced and healthy": {State: promotion.Verifying},
		"no newer release was verified before it":            {State: promotion.Verified},
	} {
		if got := WhyText([]promotion.EnvState{st}, ""); !strings.Contains(got, "nothing waits: "+want) {
			t.Errorf("%q isn't in\n%s", want, got)
		}
	}
	if got := StatusText(nil) + WhyText(nil, "qa"); got != strings.Repeat("This component has no environments.", 2) {
		t.Error(got)
	}
}
