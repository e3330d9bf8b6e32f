package promotion

import (
	"fmt"
	"slices"
	"testing"

	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// withTargets gives qa so many targets like its one, of which the first ones are degraded.
func withTargets(total, degraded int, quorum pipeline.Quorum) func(*ComponentFacts) {
	return func(f *ComponentFacts) {
		e := f.env("qa")
		e.Spec.OnDegraded.Quorum = quorum
		one := e.Targets[0]
		e.Targets = nil
		for i := range total {
			t := one
			t.Name = fmt.Sprintf("web-qa-%d", i)
			t.Verdict = verification.Verdict{State: verification.Verified}
			if i < degraded {
				t.Verdict = verification.Verdict{State: verification.Degraded, Reason: "bad"}
			}
			e.Targets = append(e.Targets, t)
		}
	}
}

// TestQuorum holds a degradation of fewer targets than the quorum for a person, with all that they
// have to know. It opens the revert, or merges it, as soon as there are as many.
func TestQuorum(t *testing.T) {
	only := []string{"record 723200000000 degraded in qa"}
	revert := append(only[:1:1], "open a revert of #5 in qa")
	merge := append(only[:1:1], "merge #9 into qa at undo")
	half, two := pipeline.Quorum{Percent: 50}, pipeline.Quorum{Targets: 2}
	in := func(total, degraded int, quorum pipeline.Quorum) *ComponentFacts {
		return degradedInQA().with(withTargets(total, degraded, quorum))
	}
	open := func(total, degraded int, quorum pipeline.Quorum) *ComponentFacts {
		return in(total, degraded, quorum).openRevert("qa", "r2")
	}
	manyReverts := func(f *ComponentFacts) { f.Limits.RevertsByEnv = map[string]int{"qa": 3} }
	runCases(t, []decisionCase{
		{name: "any one target where none is asked for", facts: in(12, 1, pipeline.Quorum{}), want: revert},
		{name: "one of twelve, of half", facts: in(12, 1, half), want: only, env: "qa", state: Degraded,
			why: "{hold 1 of 12 targets is degraded (web-qa-0), and onDegraded.quorum (50%) asks for 6: it may be something of theirs alone; a person has to decide (/liftlock revert)"},
		{name: "five of twelve, of half", facts: in(12, 5, half), want: only, env: "qa", why: "{hold 5 of 12 targets are degraded (web-qa-0, web-qa-1, web-qa-2, web-qa-3, web-qa-4), and onDegraded.quorum (50%) asks for 6: "},
		{name: "six of twelve, of half", facts: in(12, 6, half), want: revert},
		{name: "one of three, of half", facts: in(3, 1, half), want: only, env: "qa", why: "{hold 1 of 3 targets is degraded (web-qa-0), and onDegraded.quorum (50%) asks for 2"},
		{name: "two of three, of half", facts: in(3, 2, half), want: revert},
		{name: "one of one, of half", facts: in(1, 1, half), want: revert},
		{name: "one, of two", facts: in(3, 1, two), want: only, env: "qa", why: "onDegraded.quorum (2) asks for 2"},
		{name: "two, of two", facts: in(3, 2, two), want: revert},
		{name: "the only one, of two", facts: in(1, 1, two), want: revert},
		{name: "more than there are: all but one", facts: in(12, 11, pipeline.Quorum{Targets: 20}), want: only, env: "qa", why: "web-qa-4 and 6 more), and onDegraded.quorum (20) asks for 12"},
		{name: "more than there are: all", facts: in(12, 12, pipeline.Quorum{Targets: 20}), want: revert},
		{name: "below it somebody asks for the revert", facts: in(12, 1, half).with(request("revert", "qa", "", noon)), want: revert},
		{name: "below it in a storm, which isn't what keeps the revert from opening", facts: in(12, 1, half).with(manyReverts), want: only, env: "qa", why: "{hold 1 of 12"},
		{name: "the quorum in a storm", facts: in(12, 6, half).with(manyReverts), want: only, env: "qa", why: "{storm 3 reverts"},
		{name: "the quorum, and one was unwell before", facts: in(12, 6, half).with(func(f *ComponentFacts) { f.env("qa").Targets[3].HealthyBefore = Sure(false) }), want: only, env: "qa", why: "{hold web-qa-3 was already unwell"},
		{name: "what has not arrived doesn't count as degraded", facts: in(3, 1, two).with(func(f *ComponentFacts) { f.env("qa").Targets[2].Verdict.State = verification.Failed }), want: only, env: "qa", why: "{hold 1 of 3 targets"},

		{name: "the open revert of the quorum", facts: open(12, 6, half), want: merge},
		{name: "the open revert of what recovered to less than it", facts: open(12, 5, half), want: only, env: "qa", promo: Reverting, why: "{degraded wait 5 of 12 targets are degraded (web-qa-0, web-qa-1, web-qa-2, web-qa-3, web-qa-4), and onDegraded.quorum (50%) asks for 6; a person merges or closes it"},
		{name: "the open revert that somebody asked for", facts: open(12, 1, half).with(request("revert", "qa", "r2", noon)), want: merge},
	})
}

// TestQuorumOfBatch counts each component's own targets: the first one that reaches its quorum
// takes back what came by the same pull request.
func TestQuorumOfBatch(t *testing.T) {
	both := makeMembers("api r2", "web r2")
	decide := func(degraded int, reverting bool) (Decision, string) {
		y := newBatchFixture("api", "web").arrived("api", "r2").arrived("web", "r2").landed("qa", 5, both).verifyAll("qa", "api", "web")
		y = y.with("web", func(f *ComponentFacts) { withTargets(3, degraded, pipeline.Quorum{Targets: 2})(f) }).
			with("api", func(f *ComponentFacts) { withTargets(3, 1, pipeline.Quorum{Targets: 2})(f) })
		for _, name := range []string{"api", "web"} {
			y = y.with(name, func(f *ComponentFacts) { f.env("qa").Restore = Sure(Composition{Tip: tip}) })
		}
		if reverting {
			y = y.openBatchRevert("qa", both, nil)
		}
		_, d := y.facts(nil)
		return d, fmt.Sprint(d.Components[0].Env("qa").Why)
	}
	has := func(d Decision, is func(Action) bool) bool { return slices.ContainsFunc(d.Actions, is) }
	opens := func(a Action) bool { _, ok := a.(OpenRevert); return ok }
	merges := func(a Action) bool { m, ok := a.(Merge); return ok && m.Revert }
	if d, why := decide(1, false); has(d, opens) || why == "[]" {
		t.Errorf("one of three each, of two: %+v, %s", d.Actions, why)
	}
	if d, _ := decide(2, false); !has(d, opens) {
		t.Errorf("two of three of one, of two: %+v", d.Actions)
	}
	if d, _ := decide(1, true); has(d, merges) {
		t.Errorf("the open revert, of which no component reaches its quorum: %+v", d.Actions)
	}
	if d, _ := decide(2, true); !has(d, merges) {
		t.Errorf("the open revert, of which one component reaches its quorum: %+v", d.Actions)
	}
}

// TestQuorumIsEvidence keeps with the revert that as many were degraded as it takes.
func TestQuorumIsEvidence(t *testing.T) {
	find := func(f *ComponentFacts) []RuledOut {
		d := decideAlone(t, *f)
		i := slices.IndexFunc(d.Actions, func(a Action) bool { _, ok := a.(OpenRevert); return ok })
		if i < 0 {
			t.Fatalf("no revert: %+v", d.Actions)
		}
		return d.Actions[i].(OpenRevert).Evidence[0].RuledOut
	}
	want := RuledOut{CheckQuorum, "2 of 3 targets are degraded (web-qa-0, web-qa-1), and onDegraded.quorum (50%) asks for 2"}
	if got := find(degradedInQA().with(withTargets(3, 2, pipeline.Quorum{Percent: 50}))); got[0] != want {
		t.Errorf("it is %+v", got)
	}
	for _, r := range find(degradedInQA().with(withTargets(3, 2, pipeline.Quorum{}))) {
		if r.Check == CheckQuorum {
			t.Errorf("without a quorum: %+v", r)
		}
	}
}
