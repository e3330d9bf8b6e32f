package promotion

import (
	"slices"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// degradedInQA is r2 in qa by #5, degraded, which could be taken back.
func degradedInQA() *ComponentFacts {
	f := arrivedFacts()
	f.land("qa", "r2", ByPromotion, 5)
	f.env("qa").Restore = Sure(Composition{Tip: tip, Files: []string{"f"}})
	return f.verdict("qa", verification.Degraded, "bad")
}

// TestDegradationEdges has degradations where two rules meet and where a time is just over. It
// holds the actions, and the code under which a person reads that there are none.
func TestDegradationEdges(t *testing.T) {
	const recorded = "record 723200000000 degraded in qa"
	only := []string{recorded}
	revert := []string{recorded, "open a revert of #5 in qa"}
	qa := func(change func(e *Env)) func(*ComponentFacts) {
		return func(f *ComponentFacts) { change(f.env("qa")) }
	}
	landed := func(ago time.Duration) func(*ComponentFacts) {
		return qa(func(e *Env) { e.Landed.Value.At = noon.Add(-ago) })
	}
	unseen := qa(func(e *Env) { e.Targets[0].Unhealthy = Known[[]verification.Resource]{} })
	requested := request("revert", "qa", "", noon)
	toRevert := func() *ComponentFacts { return degradedInQA().openRevert("qa", "r2") }
	runCases(t, []decisionCase{
		{name: "merged as long ago as it is watched", facts: degradedInQA().with(landed(watchWindow)), want: revert},
		{name: "and a second longer", facts: degradedInQA().with(landed(watchWindow + time.Second)), want: only, env: "qa", why: "{hold it was merged longer ago than its watch (56m0s)"},
		{name: "nobody looked what is unhealthy, as long as it is watched", facts: degradedInQA().with(landed(watchWindow)).with(unseen), want: []string{recorded, "look: culprits in qa"}},
		{name: "and no longer", facts: degradedInQA().with(landed(watchWindow + time.Second)).with(unseen), want: only, env: "qa", why: "longer ago than its watch"},
		{name: "but where somebody asks for the revert", facts: degradedInQA().with(landed(watchWindow + time.Second)).with(unseen).with(requested), want: []string{recorded, "look: culprits in qa"}},
		{name: "onDegraded: hold", facts: degradedInQA().with(qa(func(e *Env) { e.Spec.OnDegraded.Action = pipeline.OnDegradedHold })), want: only, env: "qa", why: "{hold onDegraded: hold"},
		{name: "a person closed its revert", facts: degradedInQA().with(qa(func(e *Env) {
			e.PastPulls = append([]PastPull{{Number: 9, Revert: true, Release: id("r2"), At: noon}}, e.PastPulls...)
		})), want: only, env: "qa", why: "{hold the revert #9 was closed by a person"},
		{name: "nobody knows how it was", facts: degradedInQA().with(qa(func(e *Env) { e.Targets[0].HealthyBefore = Known[bool]{} })), want: only, env: "qa", why: "{hold whether web-qa was well before the merge is not known (no record)"},
		{name: "it was unwell before", facts: degradedInQA().with(qa(func(e *Env) { e.Targets[0].HealthyBefore = Sure(false) })), want: only, env: "qa", why: "{hold web-qa was already unwell before the merge"},
		{name: "before its sync", facts: degradedInQA().with(qa(func(e *Env) { e.Targets[0].Verdict.UnhealthyBefore = true })), want: only, env: "qa", why: "{hold web-qa became unwell before the sync"},
		{name: "a storm in the environment", facts: degradedInQA().with(func(f *ComponentFacts) { f.Limits.RevertsByEnv = map[string]int{"qa": 3} }), want: only, env: "qa", why: "{storm 3 reverts were opened in qa within 10 minutes"},
		{name: "a storm on the cluster", facts: degradedInQA().with(func(f *ComponentFacts) { f.Limits.RevertsByCluster = map[string]int{"one": 3} }), want: only, env: "qa", why: "{storm 3 reverts were opened on cluster one within 10 minutes"},
		{name: "as many as aren't one yet", facts: degradedInQA().with(func(f *ComponentFacts) { f.Limits.RevertsByCluster = map[string]int{"one": 2, "two": 3} }), want: revert},
		{name: "it can't be told what else changed", facts: degradedInQA().with(qa(func(e *Env) { e.Targets[0].ChangedSince = Unsure[[]string]("the clone is shallow") })), want: only, env: "qa", why: "{hold what else changed since the merge can't be told: the clone is shallow"},
		{name: "it came with others when they moved together", facts: degradedInQA().with(qa(func(e *Env) { e.Landed.Value.Batch, e.Landed.Value.Members = true, makeMembers("api r2", "web r2") })), want: only, env: "qa", why: "{hold #5 brought 2 components together, when spec.batch was environment"},
		{name: "and somebody asks for its revert", facts: degradedInQA().with(qa(func(e *Env) { e.Landed.Value.Batch, e.Landed.Value.Members = true, makeMembers("api r2", "web r2") })).with(requested), want: []string{recorded, "answer 3: #5 brought 2 components together, when spec.batch was environment; taking them back is left to people"}},
		{name: "a revert that is asked for where the release can't be read", facts: degradedInQA().with(qa(func(e *Env) { e.Release = Unsure[Release]("line 3") })).with(requested), want: []string{"answer 3: qa can't be read: line 3"}},
		{name: "what a revert put back is degraded", facts: linearFacts().with(func(f *ComponentFacts) { f.land("qa", "r1", ByRevert, 9) }).verdict("qa", verification.Degraded, "bad"), want: []string{"record 723100000000 degraded in qa"}, env: "qa", state: Degraded, promo: Idle, why: "{hold what qa carries was not brought by a promotion"},
		{name: "a revert that nobody composed yet", facts: degradedInQA().with(qa(func(e *Env) { e.Restore = Known[Composition]{} })), want: []string{recorded, "look: restore in qa"}},
		{name: "a revert that was composed on another tip", facts: degradedInQA().with(qa(func(e *Env) { e.Restore.Value.Tip = "old" })), want: []string{recorded, "look: restore in qa"}},

		{name: "the undo where nobody knows who brought what is there", facts: toRevert().with(qa(func(e *Env) { e.Landed = Unsure[Landed]("the clone is shallow") })), env: "qa", promo: Reverting, why: "{unreadable the clone is shallow"},
		{name: "the undo isn't composed anew under a broken pipeline file", facts: toRevert().with(func(f *ComponentFacts) { f.PipelineErr = "x" }).with(qa(func(e *Env) { e.Revert.Stale = true })), want: only, env: "qa", promo: Reverting},
		{name: "the undo of what is well, which somebody asked for", facts: toRevert().verdict("qa", verification.Verified, "").verified("qa").with(request("revert", "qa", "r2", noon)), want: []string{"merge #9 into qa at undo"}},
		{name: "the undo of what is well, which nobody asked for", facts: toRevert().verdict("qa", verification.Verified, "").verified("qa"), env: "qa", why: "qa is not degraded right now"},
	})
}

// TestDegradationsWithoutAPromotion says nothing of a degradation that concerns no promotion.
func TestDegradationsWithoutAPromotion(t *testing.T) {
	for name, f := range map[string]*ComponentFacts{
		"what a person put there":       linearFacts().with(func(f *ComponentFacts) { f.land("qa", "r9", ByPerson, 0) }),
		"what was there from the start": linearFacts(),
	} {
		d := decideAlone(t, *f.verdict("qa", verification.Degraded, "bad"))
		if why := d.Env("qa").Why; slices.ContainsFunc(why, func(r Reason) bool { return r.Code == "hold" }) {
			t.Errorf("%s: %+v", name, why)
		}
	}
}

// TestRevertAnswersItsCommand ties the command to the component that it was given for.
func TestRevertAnswersItsCommand(t *testing.T) {
	both := makeMembers("api r2", "web r2")
	y := newBatchFixture("api", "web").arrived("api", "r2").arrived("web", "r2").landed("qa", 5, both).verifyAll("qa", "api", "web")
	y.with("web", func(f *ComponentFacts) {
		f.env("qa").Restore = Sure(Composition{Tip: tip})
		f.PendingCommands = []PendingCommand{{ID: 4, Verb: "revert", Environment: "qa", By: "ada", Reason: "slow"}}
	})
	_, d := y.facts(nil)
	i := slices.IndexFunc(d.Actions, func(a Action) bool { _, is := a.(OpenRevert); return is })
	if i < 0 {
		t.Fatalf("it does %+v", d.Actions)
	}
	o := d.Actions[i].(OpenRevert)
	if p, _ := FindMember(o.Members, "api"); p.CommandID != 0 || o.By != "ada" || o.Reason != "slow" {
		t.Errorf("it is %+v", o)
	}
	if p, _ := FindMember(o.Members, "web"); p.CommandID != 4 {
		t.Errorf("the command of web isn't answered by %+v", o)
	}
}
