package promotion

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/internal/wording"
	"github.com/liftlock/liftlock/policies"
)

// batchFixture is several components of one pipeline that travel together.
type batchFixture map[string]*ComponentFacts

// newBatchFixture has every component on line.
func newBatchFixture(components ...string) batchFixture {
	y := batchFixture{}
	for _, name := range components {
		f := linearFacts()
		f.Unit.Component = name
		f.Pipeline.Spec.Batch = pipeline.BatchEnvironment
		for i := range f.Envs {
			f.Envs[i].Targets[0].Name = name + "-" + f.Envs[i].Name
		}
		y[name] = f
	}
	return y
}

func (b batchFixture) names() []string {
	var out []string
	for name := range b {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// makeMembers are passengers from "web r2" each.
func makeMembers(texts ...string) []Member {
	var out []Member
	for _, text := range texts {
		component, release, _ := strings.Cut(text, " ")
		out = append(out, Member{Component: component, Release: id(release), Name: release})
	}
	return out
}

// arrived has a component's release verified in dev and composed for qa.
func (b batchFixture) arrived(component, release string) batchFixture {
	b[component].land("dev", release, ByPerson, 0)
	b[component].verified("dev").composed("qa", release)
	return b
}

// openBatchPull opens a pull request of several into an environment.
func (b batchFixture) openBatchPull(env string, who []Member, change func(*Pull)) batchFixture {
	p := Pull{Number: 7, Head: "head", Release: BatchID(who), Members: who, Batch: true, Mergeable: "yes", CreatedAt: noon.Add(-time.Hour), UpdatedAt: noon.Add(-time.Hour)}
	if change != nil {
		change(&p)
	}
	for name, f := range b {
		own := p
		q, in := FindMember(who, name)
		if !in {
			f.env(env).BatchPull = &own
			continue
		}
		own.Release, own.Name, own.DeclaredRelease = q.Release, q.Name, Sure(q.Release)
		f.env(env).Open = &own
		f.composed(env, q.Name)
	}
	return b
}

// landed puts several releases into an environment by one merged pull request.
func (b batchFixture) landed(env string, number int, who []Member) batchFixture {
	for _, q := range who {
		e := b[q.Component].land(env, q.Name, ByPromotion, number)
		e.Landed.Value.Commit, e.History[0].Commit = fmt.Sprint("merge-", number), fmt.Sprint("merge-", number)
		e.Landed.Value.Members, e.Landed.Value.Batch = who, true
	}
	return b
}

// openBatchRevert opens a revert of several.
func (b batchFixture) openBatchRevert(env string, who []Member, change func(*Pull)) batchFixture {
	for _, q := range who {
		p := Pull{Number: 9, Head: "undo", Release: q.Release, Name: q.Name, Members: who, Batch: true, Mergeable: "yes", CreatedAt: noon.Add(-time.Minute), UpdatedAt: noon.Add(-time.Minute)}
		if change != nil {
			change(&p)
		}
		b[q.Component].env(env).Revert = &p
	}
	return b
}

// verifyAll has everything of some components in an environment verified.
func (b batchFixture) verifyAll(env string, components ...string) batchFixture {
	for _, name := range components {
		b[name].verified(env)
	}
	return b
}

func (b batchFixture) with(component string, change func(*ComponentFacts)) batchFixture {
	change(b[component])
	return b
}

func (b batchFixture) facts(compose func(FactRequest) Composition) (Facts, Decision) {
	f := Facts{Compositions: map[string]map[string]Composition{}}
	for _, name := range b.names() {
		f.Components = append(f.Components, *b[name])
	}
	for range 8 {
		d := Decide(f)
		looks := 0
		for _, a := range d.Actions {
			if l, ok := a.(FactRequest); ok && compose != nil {
				looks++
				if f.Compositions[l.Environment] == nil {
					f.Compositions[l.Environment] = map[string]Composition{}
				}
				f.Compositions[l.Environment][BatchID(l.Members)] = compose(l)
			}
		}
		if looks == 0 {
			return f, d
		}
	}
	panic("asks without end")
}

// batchCase is what is decided of several components.
type batchCase struct {
	name      string
	fixture   batchFixture
	compose   func(FactRequest) Composition
	want      []string // Describe of every shared action
	own       []string // and of every component's own, after its name
	component string   // the component with these reasons
	env       string
	why       string // part of one; "-": none
}

func (b batchCase) check(t *testing.T) {
	_, d := b.fixture.facts(b.compose)
	var got, own []string
	for _, a := range d.Actions {
		got = append(got, a.Describe())
	}
	names := b.fixture.names()
	for _, s := range d.Steps() {
		if _, ok := s.Action.(FactRequest); !ok && s.Component >= 0 {
			own = append(own, names[s.Component]+": "+s.Action.Describe())
		}
	}
	if strings.Join(got, "\n") != strings.Join(b.want, "\n") {
		t.Errorf("shared actions\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(b.want, "\n"))
	}
	if strings.Join(own, "\n") != strings.Join(b.own, "\n") {
		t.Errorf("own actions\n%s\nwant\n%s", strings.Join(own, "\n"), strings.Join(b.own, "\n"))
	}
	if b.why == "" || b.why == "-" {
		return
	}
	var why []string
	for i, name := range names {
		if name == b.component {
			for _, w := range d.Components[i].Env(b.env).Why {
				why = append(why, w.Text)
			}
		}
	}
	if !strings.Contains(strings.Join(why, "\n"), b.why) {
		t.Errorf("%s in %s says\n%s\nwant %q", b.component, b.env, strings.Join(why, "\n"), b.why)
	}
}

// TestDecideBatch has a case for each thing that is joined.
func TestDecideBatch(t *testing.T) {
	both := makeMembers("api r2", "web r2")
	fine := func(FactRequest) Composition { return Composition{Tip: tip} }
	ready := func() batchFixture {
		return newBatchFixture("api", "db", "web").arrived("api", "r2").arrived("web", "r2")
	}
	inQA := func() batchFixture {
		return newBatchFixture("api", "db", "web").arrived("api", "r2").arrived("web", "r2").landed("qa", 5, both)
	}
	degraded := func() batchFixture {
		return inQA().verifyAll("qa", "api", "web").with("web", func(f *ComponentFacts) {
			f.verdict("qa", verification.Degraded, "Deployment web is Degraded")
			f.env("qa").Restore = Sure(Composition{Tip: tip, Files: []string{"f"}})
		})
	}
	ada := func(p *Pull) {
		p.Review.Approvals = []policies.Approval{{User: "ada", MayWrite: true, Current: true}}
	}
	for _, c := range []batchCase{
		{name: "nothing new", fixture: newBatchFixture("api", "web")},
		{name: "what moves together is asked for", fixture: ready(), want: []string{"look: compose in qa"}},
		{name: "all that are ready move together", fixture: ready(), compose: fine, want: []string{"open a promotion of api r2, web r2 into qa"}},
		{name: "who isn't ready stays behind", fixture: ready().with("web", func(f *ComponentFacts) {
			f.verdict("dev", verification.Soaking, "not yet").env("dev").History[0].VerifiedAt = time.Time{}
		}),
			compose: fine, want: []string{"open a promotion of api r2 into qa"}, component: "web", env: "qa", why: "dev has not verified r2"},
		{name: "who is on hold stays behind", fixture: ready().with("web", func(f *ComponentFacts) { f.Holds = Sure([]Hold{{Scope: "component", By: "ada"}}) }),
			compose: fine, want: []string{"open a promotion of api r2 into qa"}, component: "web", env: "qa", why: "component web is on hold"},
		{name: "an edit of one that is refused", fixture: ready().with("web", func(f *ComponentFacts) {
			f.env("qa").Compositions[id("r2")] = Composition{Tip: tip, State: EditRefused, Reason: "shared with web-prod"}
		}),
			compose: fine, want: []string{"open a promotion of api r2 into qa"}, component: "web", env: "qa", why: "shared with web-prod"},
		{name: "a part that can't be made with the others", fixture: ready(), compose: func(l FactRequest) Composition {
			if _, in := FindMember(l.Members, "web"); in {
				return Composition{Tip: tip, RefusedByMember: map[string]string{"web": "db-qa reads it too"}}
			}
			return fine(l)
		}, want: []string{"open a promotion of api r2 into qa"}, component: "web", env: "qa", why: "db-qa reads it too"},
		{name: "refused as a whole", fixture: ready(), compose: func(FactRequest) Composition {
			return Composition{Tip: tip, State: EditRefused, Reason: "what they do together"}
		}, component: "api", env: "qa", why: "what they do together"},
		{name: "composed on an older tip", fixture: ready(), compose: nil, want: []string{"look: compose in qa"}},
		{name: "a broken file opens nothing", fixture: ready().with("api", func(f *ComponentFacts) { f.PipelineErr = "x" }).with("web", func(f *ComponentFacts) { f.PipelineErr = "x" }), compose: fine},

		{name: "a newcomer joins", fixture: ready().openBatchPull("qa", makeMembers("api r2"), nil), compose: fine, want: []string{"compose #7 anew for api r2, web r2: web r2 is ready too"}},
		{name: "a newer release takes its place", fixture: ready().arrived("web", "r3").openBatchPull("qa", both, nil), compose: fine,
			want: []string{"compose #7 anew for api r2, web r3: web: r3 is newer"}},
		{name: "one that can't be judged with the others stays behind", fixture: ready().openBatchPull("qa", makeMembers("api r2"), nil), compose: func(l FactRequest) Composition {
			if len(l.Members) > 1 {
				return Composition{Tip: tip, State: EditRefused, Reason: "it could not be shown in time"}
			}
			return fine(l)
		}, want: []string{"merge #7 into qa at head"}, component: "web", env: "qa", why: "could not be shown in time"},
		{name: "and whoever asked for it is told", fixture: ready().openBatchPull("qa", makeMembers("api r2"), ada).with("web", func(f *ComponentFacts) {
			f.PendingCommands = []PendingCommand{{ID: 3, Verb: "promote", Environment: "qa", At: noon}}
		}), compose: func(l FactRequest) Composition {
			if _, in := FindMember(l.Members, "web"); in {
				return Composition{Tip: tip, RefusedByMember: map[string]string{"web": "db-qa reads it too"}}
			}
			return fine(l)
		}, want: []string{"merge #7 into qa at head"}, own: []string{"web: answer 3: db-qa reads it too"}},
		{name: "not into an approved one", fixture: ready().openBatchPull("qa", makeMembers("api r2"), ada), compose: fine, want: []string{"merge #7 into qa at head"}, component: "web", env: "qa", why: "behind #7, which is approved without it"},
		{name: "not into a held one", fixture: ready().openBatchPull("qa", makeMembers("api r2"), func(p *Pull) { p.Held = true }), compose: fine, component: "web", env: "qa", why: "behind #7, which is on hold"},
		{name: "not into somebody else's", fixture: ready().openBatchPull("qa", makeMembers("api r2"), func(p *Pull) { p.MarkModified("not ours") }), compose: fine, component: "web", env: "qa", why: "not ours"},
		{name: "asked for, also into an approved one", fixture: ready().openBatchPull("qa", makeMembers("api r2"), ada).with("web", func(f *ComponentFacts) {
			f.PendingCommands = []PendingCommand{{ID: 3, Verb: "promote", Environment: "qa", At: noon}}
		}),
			compose: fine, want: []string{"compose #7 anew for api r2, web r2: web r2 is ready too"}},
		{name: "merged when all may be", fixture: ready().openBatchPull("qa", both, nil), compose: fine, want: []string{"merge #7 into qa at head"}},
		{name: "a gate of one keeps all", fixture: ready().openBatchPull("qa", both, nil).with("web", func(f *ComponentFacts) { f.Holds = Unsure[[]Hold]("unreadable") }), compose: fine, component: "api", env: "qa", why: "#7 also moves web, which may not be merged yet: hold: the holds can't be read"},
		{name: "its files moved on", fixture: ready().openBatchPull("qa", both, func(p *Pull) { p.Stale = true }), compose: fine, want: []string{"compose #7 anew for api r2, web r2: the files it edits changed on the tracked branch"}},
		{name: "one must leave", fixture: ready().openBatchPull("qa", both, nil).with("web", func(f *ComponentFacts) { f.verdict("dev", verification.Degraded, "unwell") }), compose: fine,
			want: []string{"compose #7 anew for api r2: web: r2 degraded in dev at 2026-03-02T12:00:00Z"}, own: []string{"web: record 723200000000 degraded in dev"}},
		{name: "one that is put on hold leaves", fixture: ready().openBatchPull("qa", both, nil).with("web", func(f *ComponentFacts) { f.Holds = Sure([]Hold{{Scope: "component", By: "ada", At: noon}}) }), compose: fine,
			want: []string{"compose #7 anew for api r2: web: it is on hold by ada since 2026-03-02T12:00:00Z"}},
		{name: "but stays where it is approved", fixture: ready().openBatchPull("qa", both, ada).with("web", func(f *ComponentFacts) { f.Holds = Sure([]Hold{{Scope: "component", By: "ada", At: noon}}) }), compose: fine, component: "api", env: "qa", why: "also moves web"},
		{name: "nobody is left", fixture: ready().openBatchPull("qa", both, nil).with("web", func(f *ComponentFacts) { f.env("qa").Release = Sure(rel("r2")) }).with("api", func(f *ComponentFacts) { f.env("qa").Release = Sure(rel("r2")) }), compose: fine,
			want: []string{"close #7: api: qa already carries r2; web: qa already carries r2"}},
		{name: "it moves nothing any more", fixture: newBatchFixture("api", "web").openBatchPull("qa", nil, nil), want: []string{"close #7: it moves nothing any more"}},
		{name: "somebody else's work is left alone", fixture: ready().openBatchPull("qa", both, func(p *Pull) { p.MarkModified("not ours") }), compose: fine, component: "web", env: "qa", why: "not ours"},
		{name: "also where it has another release than ours", fixture: ready().openBatchPull("qa", both, func(p *Pull) { p.MarkModified("not ours") }).with("web", func(f *ComponentFacts) { f.env("qa").Open.Release = id("r9") }), compose: fine, component: "web", env: "qa", why: "not ours"},
		{name: "and taken over where somebody asks", fixture: ready().openBatchPull("qa", both, func(p *Pull) { p.MarkModified("not ours") }).with("web", func(f *ComponentFacts) {
			f.PendingCommands = []PendingCommand{{ID: 3, Verb: "retry", Environment: "qa", At: noon}}
		}),
			compose: fine, want: []string{"compose #7 anew for api 723200000000, web r2: taken over by /liftlock retry"}, own: []string{"web: answer 3: the pull request is composed anew"}},
		{name: "one of the other kind with somebody's work is left to people", fixture: ready().with("web", func(f *ComponentFacts) {
			f.pull("qa", "r2")
			f.env("qa").Open.MarkModified("#7 is not what Liftlock composed")
			f.env("qa").WrongKind, f.env("qa").Open = f.env("qa").Open, nil
		}), compose: fine, want: []string{"open a promotion of api r2 into qa"}, component: "web", env: "qa", why: "#7 is not what Liftlock composed; spec.batch is environment by now"},
		{name: "one of the other kind is closed first", fixture: ready().with("web", func(f *ComponentFacts) {
			f.pull("qa", "r2")
			f.env("qa").WrongKind, f.env("qa").Open = f.env("qa").Open, nil
		}), compose: fine,
			want: []string{"open a promotion of api r2 into qa", "close #7: spec.batch is environment by now: what is ready opens anew that way"}},

		{name: "downstream waits for all", fixture: inQA().verifyAll("qa", "web").with("web", func(f *ComponentFacts) { f.composed("prod", "r2") }).with("api", func(f *ComponentFacts) { f.verdict("qa", verification.Soaking, "not yet for 1m") }),
			compose: fine, component: "web", env: "prod", why: "api r2 came with it and is not verified in qa: api-qa: not yet for 1m"},
		{name: "downstream goes on when all are verified", fixture: inQA().verifyAll("qa", "api", "web").with("web", func(f *ComponentFacts) { f.composed("prod", "r2") }).with("api", func(f *ComponentFacts) { f.composed("prod", "r2") }),
			compose: fine, want: []string{"open a promotion of api r2, web r2 into prod"}},
		{name: "who has moved on since isn't waited for", fixture: inQA().verifyAll("qa", "web").with("web", func(f *ComponentFacts) { f.composed("prod", "r2") }).arrived("api", "r3").landed("qa", 6, makeMembers("api r3")).verifyAll("qa", "api").with("api", func(f *ComponentFacts) { f.composed("prod", "r3") }),
			compose: fine, want: []string{"open a promotion of api r3, web r2 into prod"}},
		{name: "unless what took its place is not verified", fixture: inQA().verifyAll("qa", "web").with("web", func(f *ComponentFacts) { f.composed("prod", "r2") }).arrived("api", "r3").landed("qa", 6, makeMembers("api r3")).with("api", func(f *ComponentFacts) { f.verdict("qa", verification.Soaking, "not yet") }),
			compose: fine, component: "web", env: "prod", why: "r3, which took its place in qa, is not verified"},
		{name: "what is open downstream waits too", fixture: inQA().verifyAll("qa", "web").openBatchPull("prod", makeMembers("web r2"), ada).with("web", func(f *ComponentFacts) { f.env("prod").Gates = nil }).with("api", func(f *ComponentFacts) { f.verdict("qa", verification.Soaking, "not yet") }), compose: fine},

		{name: "one degrades, all go back", fixture: degraded(), want: []string{"open a revert of #5 in qa"}, own: []string{"web: record 723200000000 degraded in qa"}},
		{name: "two degrade, one way back", fixture: degraded().with("api", func(f *ComponentFacts) {
			f.verdict("qa", verification.Degraded, "Deployment api is Degraded")
			f.env("qa").Restore = Sure(Composition{Tip: tip, Files: []string{"f"}})
		}), want: []string{"open a revert of #5 in qa"}, own: []string{"api: record 723200000000 degraded in qa", "web: record 723200000000 degraded in qa"}},
		{name: "those who came along are no weather", fixture: degraded().with("web", func(f *ComponentFacts) {
			f.ClusterIncidents = []ClusterIncident{{Cluster: "one", Target: "api-qa", Component: "api", Environment: "qa", Since: noon}}
		}), want: []string{"open a revert of #5 in qa"}, own: []string{"web: record 723200000000 degraded in qa"}},
		{name: "but others are", fixture: degraded().with("web", func(f *ComponentFacts) {
			f.ClusterIncidents = []ClusterIncident{{Cluster: "one", Target: "db-qa", Component: "db", Environment: "qa", Since: noon}}
		}), own: []string{"web: record 723200000000 degraded in qa"}, component: "web", env: "qa", why: "an incident is likely"},
		{name: "a way back that can't be made", fixture: degraded().with("web", func(f *ComponentFacts) {
			f.env("qa").Restore = Sure(Composition{Tip: tip, State: EditRefused, Reason: "api's fields changed since"})
		}),
			own: []string{"web: record 723200000000 degraded in qa"}, component: "web", env: "qa", why: "api's fields changed since"},
		{name: "a way back that one has left", fixture: degraded().with("api", func(f *ComponentFacts) { f.land("qa", "r9", ByPerson, 0) }),
			own: []string{"web: record 723200000000 degraded in qa"}, component: "web", env: "qa", why: "#5 brought 2 components together, and they can't all be taken back: api: qa no longer carries what it takes back; a person has to decide"},
		{name: "a way back that one has left and come back to", fixture: degraded().with("api", func(f *ComponentFacts) { f.land("qa", "r2", ByPromotion, 8) }),
			own: []string{"api: record 723200000000 verified in qa", "web: record 723200000000 degraded in qa"}, component: "web", env: "qa", why: "they can't all be taken back: api: #8 has brought it anew; a person has to decide"},
		{name: "one that a later revert has put back goes back too", fixture: degraded().with("api", func(f *ComponentFacts) { f.land("qa", "r2", ByRevert, 8) }),
			want: []string{"open a revert of #5 in qa"}, own: []string{"api: record 723200000000 verified in qa", "web: record 723200000000 degraded in qa"}},
		{name: "and its revert stays open", fixture: degraded().openBatchRevert("qa", both, nil).with("api", func(f *ComponentFacts) { f.land("qa", "r2", ByRevert, 8) }),
			want: []string{"merge #9 into qa at undo"}, own: []string{"api: record 723200000000 verified in qa", "web: record 723200000000 degraded in qa"}},
		{name: "what goes back doesn't go on", fixture: degraded().with("api", func(f *ComponentFacts) { f.composed("prod", "r2") }), compose: fine,
			want: []string{"open a revert of #5 in qa"}, own: []string{"web: record 723200000000 degraded in qa"}, component: "api", env: "prod", why: "web r2 came with it and is not verified"},
		{name: "what is open over it waits", fixture: degraded().arrived("api", "r3").openBatchPull("qa", makeMembers("api r3"), ada), compose: fine,
			want: []string{"open a revert of #5 in qa"}, own: []string{"web: record 723200000000 degraded in qa"}},
		{name: "one is asked for, all go back", fixture: inQA().verifyAll("qa", "api", "web").with("api", func(f *ComponentFacts) {
			f.PendingCommands = []PendingCommand{{ID: 4, Verb: "revert", Environment: "qa", By: "ada", At: noon}}
			f.env("qa").Restore = Sure(Composition{Tip: tip})
		}).with("web", func(f *ComponentFacts) { f.composed("prod", "r2") }), compose: fine, want: []string{"open a revert of #5 in qa"}},
		{name: "a revert of all merges though only one is degraded", fixture: degraded().openBatchRevert("qa", both, nil), want: []string{"merge #9 into qa at undo"}, own: []string{"web: record 723200000000 degraded in qa"}},
		{name: "and waits when none is", fixture: inQA().verifyAll("qa", "api", "web").openBatchRevert("qa", both, nil), component: "api", env: "qa", why: "-"},
		{name: "a hold on one keeps it", fixture: degraded().openBatchRevert("qa", both, nil).with("api", func(f *ComponentFacts) { f.Holds = Sure([]Hold{{Scope: "component", By: "ada", Reverts: true}}) }), own: []string{"web: record 723200000000 degraded in qa"}},
		{name: "composed anew for one, for all", fixture: degraded().openBatchRevert("qa", both, func(p *Pull) { p.Stale = true }), want: []string{"compose revert #9 anew"}, own: []string{"web: record 723200000000 degraded in qa"}},
		{name: "overtaken in one", fixture: degraded().openBatchRevert("qa", both, nil).with("api", func(f *ComponentFacts) { f.env("qa").Release = Sure(rel("r9")) }), want: []string{"close #9: it takes several back at once, and of api it no longer can: qa no longer carries what it takes back"}, own: []string{"web: record 723200000000 degraded in qa"}},
		{name: "overtaken in all", fixture: degraded().openBatchRevert("qa", both, nil).with("api", func(f *ComponentFacts) { f.env("qa").Release = Sure(rel("r9")) }).with("web", func(f *ComponentFacts) { f.land("qa", "r9", ByPerson, 0) }),
			want: []string{"close #9: qa no longer carries what it takes back"}},
	} {
		t.Run(c.name, c.check)
	}
}

// TestBatchIsPure holds that facts stay as they are, that the same facts give the
// same answer, and that both can be kept as JSON.
func TestBatchIsPure(t *testing.T) {
	both := makeMembers("api r2", "web r2")
	y := newBatchFixture("api", "web").arrived("api", "r2").arrived("web", "r2").landed("qa", 5, both).verifyAll("qa", "api", "web").openBatchRevert("qa", both, nil).with("web", func(f *ComponentFacts) { f.verdict("qa", verification.Degraded, "unwell") })
	f, d := y.facts(func(FactRequest) Composition { return Composition{Tip: tip} })
	before, answer := mustJSON(t, f), mustJSON(t, d)
	if again := mustJSON(t, Decide(f)); string(again) != string(answer) {
		t.Errorf("the same facts give another answer:\n%s\n%s", answer, again)
	}
	if after := mustJSON(t, f); string(after) != string(before) {
		t.Errorf("the facts were changed:\n%s\n%s", before, after)
	}
	var kept Facts
	if err := json.Unmarshal(before, &kept); err != nil {
		t.Fatal(err)
	}
	if again := mustJSON(t, Decide(kept)); string(again) != string(answer) {
		t.Errorf("kept facts give another answer:\n%s\n%s", answer, again)
	}
	if !strings.Contains(string(answer), `"Merge"`) {
		t.Errorf("the shared actions aren't written: %s", answer)
	}
}

func TestMembersInTrailers(t *testing.T) {
	who := makeMembers("api r2", "web r3")
	folded := strings.ReplaceAll(MembersTrailer(who), "\n", "")
	trailers := map[string]string{TrailerPipeline: "shop", TrailerEnvironment: "qa", TrailerComponent: BatchName, TrailerRelease: BatchID(who), TrailerMembers: folded}
	for component, want := range map[string]string{"api": wording.Short(id("r2")), "web": wording.Short(id("r3")), "db": "", "a": ""} {
		if got := ReleaseFromTrailers(trailers, Unit{Pipeline: "shop", Component: component}, "qa"); got != want {
			t.Errorf("%s: %q, want %q", component, got, want)
		}
	}
	if got := ReleaseFromTrailers(trailers, Unit{Pipeline: "shop", Component: "api"}, "prod"); got != "" {
		t.Errorf("of another environment: %q", got)
	}
	delete(trailers, TrailerMembers) // a component that is called so, in a pipeline where each travels alone
	if got := ReleaseFromTrailers(trailers, Unit{Pipeline: "shop", Component: BatchName}, "qa"); got != BatchID(who) {
		t.Errorf("a component called %s: %q", BatchName, got)
	}
	if BatchID(who) != BatchID(makeMembers("web r3", "api r2")) || BatchID(who) == BatchID(makeMembers("api r3", "web r2")) || BatchID(nil) != "" {
		t.Error("the identity of what moves together")
	}
}

// TestMembersAreLimited leaves behind whom one pull request has no room for.
func TestMembersAreLimited(t *testing.T) {
	var names []string
	for i := range maxMembers + 2 {
		names = append(names, fmt.Sprintf("c%03d", i))
	}
	y := newBatchFixture(names...)
	for _, name := range names {
		y.arrived(name, "r2")
	}
	y.openBatchPull("qa", makeMembers(names[len(names)-1]+" r2"), nil)
	_, d := y.facts(func(FactRequest) Composition { return Composition{Tip: tip} })
	r, ok := d.Actions[0].(Replace)
	if _, in := FindMember(r.Members, names[len(names)-1]); !ok || len(r.Members) != maxMembers || !in {
		t.Errorf("%d components move, want %d, and who was in it stays", len(r.Members), maxMembers)
	}
	if why := d.Components[len(names)-2].Env("qa").Why; len(why) != 1 || why[0].Code != "limit" {
		t.Errorf("who stays behind hears %+v", why)
	}
}
