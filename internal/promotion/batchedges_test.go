package promotion

import (
	"slices"
	"testing"

	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/policies"
)

// TestDecideBatchEdges has who moves with whom where one component is unlike the others.
func TestDecideBatchEdges(t *testing.T) {
	both := makeMembers("api r2", "web r2")
	fine := func(FactRequest) Composition { return Composition{Tip: tip} }
	refusedBatch := func(l FactRequest) Composition {
		if len(l.Members) > 1 {
			return Composition{Tip: tip, State: EditRefused, Reason: "it could not be shown in time"}
		}
		return fine(l)
	}
	ready := func() batchFixture {
		return newBatchFixture("api", "db", "web").arrived("api", "r2").arrived("web", "r2")
	}
	inQA := func() batchFixture { return ready().landed("qa", 5, both) }
	// verifiedInQA has only web composed further.
	verifiedInQA := func() batchFixture {
		return inQA().verifyAll("qa", "api", "web").with("web", func(f *ComponentFacts) { f.composed("prod", "r2") })
	}
	degraded := func() batchFixture {
		return inQA().verifyAll("qa", "api", "web").with("web", func(f *ComponentFacts) {
			f.verdict("qa", verification.Degraded, "Deployment web is Degraded")
			f.env("qa").Restore = Sure(Composition{Tip: tip, Files: []string{"f"}})
		})
	}
	const degradedWeb = "web: record 723200000000 degraded in qa"
	spoilt := func(p *Pull) { p.MarkModified("not ours") }
	hold := func(holds ...Hold) func(*ComponentFacts) {
		return func(f *ComponentFacts) { f.Holds = Sure(holds) }
	}
	component := Hold{Scope: "component", By: "ada", At: noon}
	leaves := []string{"compose #7 anew for api r2: web: it is on hold by ada since 2026-03-02T12:00:00Z"}
	wrongKind := func(change func(*Pull)) func(*ComponentFacts) {
		return func(f *ComponentFacts) {
			f.pull("qa", "r2")
			e := f.env("qa")
			change(e.Open)
			e.WrongKind, e.Open = e.Open, nil
		}
	}
	for _, c := range []batchCase{
		{name: "who has no such environment is nobody's business", fixture: ready().with("db", func(f *ComponentFacts) { f.Envs = f.Envs[:1] }), compose: fine, want: []string{"open a promotion of api r2, web r2 into qa"}},
		{name: "nor where something is reverted that it came with", fixture: newBatchFixture("api", "db", "web").landed("qa", 5, makeMembers("api r2", "db r2", "web r2")).with("db", func(f *ComponentFacts) { f.Envs = f.Envs[:1] }).verifyAll("qa", "api", "web").with("web", func(f *ComponentFacts) {
			f.verdict("qa", verification.Degraded, "bad").env("qa").Restore = Sure(Composition{Tip: tip, Files: []string{"f"}})
		}), want: []string{"open a revert of #5 in qa"}, own: []string{degradedWeb}},
		{name: "nor where something is reverted", fixture: degraded().openBatchRevert("qa", both, nil).with("db", func(f *ComponentFacts) { f.Envs = f.Envs[:1] }), want: []string{"merge #9 into qa at undo"}, own: []string{degradedWeb}},

		{name: "one that is put on hold stays in a held one", fixture: ready().openBatchPull("qa", both, func(p *Pull) { p.Held = true }).with("web", hold(component)), compose: fine},
		{name: "and where all are on hold", fixture: ready().openBatchPull("qa", both, nil).with("web", hold(component, Hold{Scope: "pipeline"})), compose: fine},
		{name: "and where the environment is", fixture: ready().openBatchPull("qa", both, nil).with("web", hold(component, Hold{Scope: "environment", Environment: "qa"})), compose: fine},
		{name: "but not for another environment's", fixture: ready().openBatchPull("qa", both, nil).with("web", hold(component, Hold{Scope: "environment", Environment: "prod"})), compose: fine, want: leaves},
		{name: "nobody leaves while the holds can't be read", fixture: ready().openBatchPull("qa", both, nil).with("web", func(f *ComponentFacts) {
			f.Holds = Known[[]Hold]{Value: []Hold{component}, Err: "gone"}
		}), compose: fine},
		{name: "one of the other kind that is held keeps what would open", fixture: ready().with("web", wrongKind(func(p *Pull) { p.Held = true })), compose: fine, want: []string{"open a promotion of api r2 into qa"},
			component: "web", env: "qa", why: "#7 from before spec.batch became environment has the label liftlock/hold"},

		{name: "one in which nobody is any more is taken up by who joins", fixture: newBatchFixture("api").arrived("api", "r2").openBatchPull("qa", makeMembers("gone r2"), nil), compose: fine, want: []string{"compose #7 anew for api r2: api r2 is ready too"}},
		{name: "who is asked for joins a held one", fixture: ready().openBatchPull("qa", makeMembers("api r2"), func(p *Pull) { p.Held = true }).with("web", request("promote", "qa", "", noon)), compose: fine,
			want: []string{"compose #7 anew for api r2, web r2: web r2 is ready too"}},
		{name: "but not somebody else's work", fixture: ready().openBatchPull("qa", makeMembers("api r2"), spoilt).with("web", request("promote", "qa", "", noon)), compose: fine, component: "web", env: "qa", why: "not ours"},
		{name: "one whose joining can't be judged is left, not those in it who change", fixture: ready().arrived("api", "r3").openBatchPull("qa", makeMembers("api r2"), nil), compose: refusedBatch, component: "api", env: "qa", why: "it could not be shown in time"},
		{name: "one in it whose newer release can't be judged waits", fixture: ready().arrived("api", "r3").openBatchPull("qa", both, nil), compose: refusedBatch, component: "web", env: "qa", why: "it could not be shown in time"},
		{name: "what is taken back there and isn't in it keeps it from nothing", fixture: ready().openBatchPull("qa", both, nil).landed("qa", 5, makeMembers("db r2")).verifyAll("qa", "db").with("db", func(f *ComponentFacts) {
			f.verdict("qa", verification.Degraded, "bad").env("qa").Restore = Sure(Composition{Tip: tip, Files: []string{"f"}})
		}), compose: fine, want: []string{"open a revert of #5 in qa", "merge #7 into qa at head"}, own: []string{"db: record 723200000000 degraded in qa"}},
		{name: "of those whose joining is refused only the one whose part can't be made is left", fixture: ready().arrived("db", "r2").openBatchPull("qa", makeMembers("api r2"), nil), compose: func(l FactRequest) Composition {
			if _, in := FindMember(l.Members, "web"); in {
				return Composition{Tip: tip, State: EditRefused, Reason: "db-qa reads it too", RefusedByMember: map[string]string{"web": "db-qa reads it too"}}
			}
			return fine(l)
		}, want: []string{"compose #7 anew for api r2, db r2: db r2 is ready too; web r2 is ready too"}, component: "web", env: "qa", why: "db-qa reads it too"},
		{name: "a release of one in it that can't be told leaves", fixture: ready().openBatchPull("qa", both, spoilt).with("web", func(f *ComponentFacts) { f.env("qa").Open.DeclaredRelease = Unsure[string]("no mark") }).with("api", request("retry", "qa", "", noon)), compose: fine,
			want: []string{"compose #7 anew for api r2: which release of web Liftlock put there can't be told; taken over by /liftlock retry"}, own: []string{"api: answer 3: the pull request is composed anew"}},
		{name: "one in it that can't be composed leaves", fixture: ready().openBatchPull("qa", both, func(p *Pull) { p.Stale = true }), compose: func(l FactRequest) Composition {
			if _, in := FindMember(l.Members, "web"); in {
				return Composition{Tip: tip, RefusedByMember: map[string]string{"web": "db-qa reads it too"}}
			}
			return fine(l)
		}, want: []string{"compose #7 anew for api r2: web r2 can't be composed: db-qa reads it too; the files it edits changed on the tracked branch"}, component: "web", env: "qa", why: "db-qa reads it too"},
		{name: "nothing joins under a broken pipeline file", fixture: ready().openBatchPull("qa", both, nil).with("web", func(f *ComponentFacts) { f.verdict("dev", verification.Degraded, "unwell") }).with("api", func(f *ComponentFacts) { f.PipelineErr = "x" }), compose: fine,
			own: []string{"web: record 723200000000 degraded in dev"}, component: "api", env: "qa", why: "what moves together can't be composed now: the pipeline file on the default branch is broken: x"},
		{name: "nor while targets can't be resolved", fixture: ready().openBatchPull("qa", both, nil).with("web", func(f *ComponentFacts) { f.verdict("dev", verification.Degraded, "unwell") }).with("api", func(f *ComponentFacts) { f.Problems = []string{"no such file"} }), compose: fine,
			own: []string{"web: record 723200000000 degraded in dev"}, component: "api", env: "qa", why: "what moves together can't be composed now: no such file"},
		{name: "a gate of one is named to the others", fixture: ready().openBatchPull("qa", both, nil).with("web", func(f *ComponentFacts) { f.env("qa").Open.Held = true }), compose: fine,
			component: "api", env: "qa", why: "#7 also moves web, which may not be merged yet: hold: the pull request has the label"},

		{name: "and that a person merges one", fixture: ready().openBatchPull("qa", both, nil).with("web", func(f *ComponentFacts) { f.env("qa").Spec.Merge = pipeline.Manual }), compose: fine,
			component: "api", env: "qa", why: "#7 also moves web, which may not be merged yet: every gate passes; merge: manual, so a person merges it"},
		{name: "one whose newer release is refused is told as well that all are", fixture: ready().openBatchPull("qa", both, nil).arrived("api", "r3").with("api", func(f *ComponentFacts) {
			f.env("qa").Compositions[id("r3")] = Composition{Tip: tip, State: EditRefused, Reason: "db-qa reads it too"}
		}).with("web", func(f *ComponentFacts) { f.env("qa").Open.Stale = true }), compose: refusedBatch, component: "api", env: "qa", why: "it could not be shown in time"},
		{name: "what was composed for several is refused for all", fixture: ready(), compose: refusedBatch, component: "web", env: "qa", why: "it could not be shown in time"},
		{name: "the revert of several isn't wanted for what a person or nobody knows brought", fixture: degraded().openBatchRevert("qa", both, nil).with("api", func(f *ComponentFacts) { f.env("qa").Landed.Value.By = ByBaseline }), own: []string{degradedWeb}, want: []string{"close #9: it takes several back at once, and of api it no longer can: what qa carries was not brought by a promotion"}},

		{name: "downstream waits for who is degraded now", fixture: verifiedInQA().with("api", func(f *ComponentFacts) { f.verdict("qa", verification.Degraded, "bad") }), compose: fine,
			want: nil, own: []string{"api: record 723200000000 degraded in qa"}, component: "web", env: "prod", why: "api r2 came with it and is not verified in qa: api-qa: bad"},
		{name: "and for who can't be read", fixture: verifiedInQA().with("api", func(f *ComponentFacts) { f.env("qa").Release = Unsure[Release]("line 3") }), compose: fine,
			component: "web", env: "prod", why: "api r2 came with it, and qa can't be read now: line 3"},
		{name: "but not for itself", fixture: verifiedInQA().with("web", func(f *ComponentFacts) { f.env("qa").Release = Unsure[Release]("line 3") }), compose: fine, want: []string{"open a promotion of web r2 into prod"}},
		{name: "and for whose landing can't be told", fixture: verifiedInQA().with("api", func(f *ComponentFacts) { f.env("qa").Landed = Known[Landed]{} }), compose: fine,
			component: "web", env: "prod", why: "api r2 came with it, and qa can't be read now: not read yet"},
		{name: "who went back since isn't waited for", fixture: inQA().verifyAll("qa", "web").with("web", func(f *ComponentFacts) { f.composed("prod", "r2") }).with("api", func(f *ComponentFacts) {
			f.land("qa", "r1", ByRevert, 9).PastPulls = []PastPull{{Number: 9, Revert: true, Merged: true, Release: id("r2"), At: noon}}
		}), compose: fine,
			want: []string{"open a promotion of web r2 into prod"}, own: []string{"api: record 723100000000 verified in qa"}},
		{name: "nor who was verified and moved on", fixture: verifiedInQA().arrived("api", "r3").landed("qa", 6, makeMembers("api r3")).with("api", func(f *ComponentFacts) { f.verdict("qa", verification.Soaking, "not yet") }), compose: fine,
			want: []string{"open a promotion of web r2 into prod"}},
		{name: "what took its place and is degraded is waited for", fixture: inQA().verifyAll("qa", "web").with("web", func(f *ComponentFacts) { f.composed("prod", "r2") }).arrived("api", "r3").landed("qa", 6, makeMembers("api r3")).verifyAll("qa", "api").with("api", func(f *ComponentFacts) {
			f.verdict("qa", verification.Degraded, "bad").env("qa").Spec.OnDegraded.Action = pipeline.OnDegradedHold
		}), compose: fine, own: []string{"api: record 723300000000 degraded in qa"}, component: "web", env: "prod", why: "r3, which took its place in qa, is not verified: api-qa: bad"},

		{name: "of several that came along one that isn't verified is enough", fixture: ready().arrived("db", "r2").landed("qa", 5, makeMembers("api r2", "db r2", "web r2")).verifyAll("qa", "api", "db").with("api", func(f *ComponentFacts) { f.composed("prod", "r2") }).with("web", func(f *ComponentFacts) { f.verdict("qa", verification.Soaking, "not yet") }),
			compose: fine, component: "api", env: "prod", why: "web r2 came with it and is not verified in qa: web-qa: not yet"},
		{name: "what is taken back keeps what didn't come along from nothing", fixture: inQA().arrived("db", "r2").landed("qa", 6, makeMembers("db r2")).verifyAll("qa", "api", "db", "web").with("db", func(f *ComponentFacts) { f.composed("prod", "r2") }).with("web", func(f *ComponentFacts) { f.composed("prod", "r2") }).with("api", func(f *ComponentFacts) {
			f.PendingCommands = []PendingCommand{{ID: 4, Verb: "revert", Environment: "qa", By: "ada", At: noon}}
			f.env("qa").Restore = Sure(Composition{Tip: tip})
		}), compose: fine, want: []string{"open a revert of #5 in qa", "open a promotion of db r2 into prod"}},
		{name: "what is open further on waits while what it moves is taken back", fixture: degraded().openBatchPull("prod", both, nil), compose: fine, want: []string{"open a revert of #5 in qa"}, own: []string{degradedWeb},
			component: "api", env: "prod", why: "what moves together can't be composed now: api r2 is being taken back"},

		{name: "an incident of one that came along in another environment counts", fixture: degraded().with("web", func(f *ComponentFacts) {
			f.ClusterIncidents = []ClusterIncident{{Cluster: "one", Target: "api-prod", Component: "api", Environment: "prod", Since: noon}}
		}), own: []string{degradedWeb}, component: "web", env: "qa", why: "an incident is likely"},
		{name: "one that a newer release has taken further can't go back", fixture: degraded().arrived("api", "r3").with("api", func(f *ComponentFacts) { f.land("qa", "r3", ByPromotion, 8) }),
			own: []string{"api: record 723300000000 verified in qa", degradedWeb}, component: "web", env: "qa", why: "they can't all be taken back: api: qa no longer carries what it takes back; a person has to decide"},
		{name: "somebody else's work on the revert of several stays", fixture: degraded().openBatchRevert("qa", both, spoilt), own: []string{degradedWeb}, component: "api", env: "qa", why: "not ours"},
		{name: "and is closed for all where one asks", fixture: degraded().openBatchRevert("qa", both, spoilt).with("api", request("retry", "qa", "", noon)), own: []string{degradedWeb, "api: answer 3: #9 is closed; where it is still needed it is opened anew"},
			want: []string{"close #9: its branch was changed by somebody else; where it is still needed it is opened anew"}},
		{name: "a revert of several that was asked for merges though nobody is degraded", fixture: verifiedInQA().openBatchRevert("qa", both, nil).with("api", request("revert", "qa", "r2", noon)).with("web", func(f *ComponentFacts) { f.env("prod").Compositions = nil }), want: []string{"merge #9 into qa at undo"}},
		{name: "but not because something else was", fixture: verifiedInQA().openBatchRevert("qa", both, nil).with("api", func(f *ComponentFacts) {
			f.PendingCommands = []PendingCommand{{ID: 1, Verb: "revert", Environment: "prod", Release: id("r2"), At: noon}, {ID: 2, Verb: "promote", Environment: "qa", Release: id("r2"), At: noon}}
		}), own: []string{"api: answer 2: qa carries it", "api: answer 1: prod no longer carries it"}},
		{name: "nor a revert of another release", fixture: verifiedInQA().openBatchRevert("qa", both, nil).with("api", request("revert", "qa", "r9", noon)), own: []string{"api: answer 3: qa no longer carries it"}},
	} {
		t.Run(c.name, c.check)
	}
}

// TestReasonOfSeveralIsGivenOnce says the same of a component once, however many ways lead to it.
func TestReasonOfSeveralIsGivenOnce(t *testing.T) {
	b := &batchPlanner{components: map[string]int{"web": 0}, decision: &Decision{Components: []ComponentDecision{{Envs: []EnvState{{Environment: "qa"}}}}}}
	given := []Reason{{Code: "refused", Text: "db-qa reads it too"}, {Code: "behind", Text: "db-qa reads it too"}, {Code: "refused", Text: "it could not be shown"}}
	for range 2 {
		for _, r := range given {
			b.addReason("web", "qa", r.Code, r.Text)
		}
	}
	if got := b.decision.Components[0].Envs[0].Why; !slices.Equal(got, given) {
		t.Errorf("it says %+v, want %+v", got, given)
	}
}

// TestBatchIsComposedOnTheTip composes what moves together anew where the branch has moved
// since.
func TestBatchIsComposedOnTheTip(t *testing.T) {
	f, d := newBatchFixture("api", "web").arrived("api", "r2").arrived("web", "r2").facts(nil)
	for _, of := range []string{"old", tip} {
		if got := d.Actions[0].Describe(); len(d.Actions) != 1 || got != "look: compose in qa" {
			t.Fatalf("before it was composed on %s it does %q", of, got)
		}
		f.Compositions = map[string]map[string]Composition{"qa": {BatchID(makeMembers("api r2", "web r2")): {Tip: of}}}
		d = Decide(f)
	}
	if got := d.Actions[0].Describe(); got != "open a promotion of api r2, web r2 into qa" {
		t.Errorf("composed on the tip it does %q", got)
	}
}

// TestFirstObstacle holds what is said of a member that isn't ready: a gate that waits before any
// other reason, and something in any case.
func TestFirstObstacle(t *testing.T) {
	gate := policies.Result{Gate: "soak", Outcome: policies.Wait, Reason: "not yet"}
	why := Reason{Code: "hold", Text: "it is on hold"}
	for want, st := range map[string]EnvState{
		"soak: not yet":         {Gates: []policies.Result{{Gate: "window", Outcome: policies.Pass}, gate}, Why: []Reason{why}},
		"it is on hold":         {Why: []Reason{why}},
		"it is looked at again": {},
	} {
		st.Environment = "qa"
		b := &batchPlanner{decision: &Decision{Components: []ComponentDecision{{Envs: []EnvState{st}}}}, components: map[string]int{"web": 0}}
		if got := b.firstObstacle(&batchPlan{env: "qa"}, "web"); got != want {
			t.Errorf("it says %q, want %q", got, want)
		}
	}
}
