package controller

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/facts/people"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
	"github.com/liftlock/liftlock/internal/world/emulator"
	"github.com/liftlock/liftlock/policies"
)

const soakedQA = "    - {name: qa, after: [dev], merge: auto, gates: [{soak: {for: 720h}}], verify: " + quickly + "}\n"

// TestSkipsAreGiven holds who may skip a gate, what that does and where it shows. A skip is over
// with its time, its head, and its author's place in breakGlass.
func TestSkipsAreGiven(t *testing.T) {
	t.Parallel()
	skip := command.Command{Verb: command.Skip, Gate: "soak", Reason: "the outage of today"}
	labelled := func(w *fixture) bool {
		return slices.Contains(w.pulls()[0].Labels, promotion.LabelSkipped+"soak")
	}
	newOpen := func(t *testing.T, spec, env, key string, components []string) (*fixture, emulator.PullRequest) {
		w := newFixture(t, spec+"  breakGlass: {teams: [acme/oncall], users: [linus]}\n", env, components...)
		w.must(w.forge.SetTeam("acme/oncall", "", "ada", "rita"))
		return w, w.openOne(key, "2.0.0", components...)
	}
	for name, c := range listKindsOfUnit() {
		t.Run(name, func(t *testing.T) {
			w, p := newOpen(t, c.spec, soakedQA, c.key, c.components)
			for who, want := range map[string]string{"grace": "breakGlass names", "rita": "write to", "linus": "author of the release"} {
				var refused *RefusedError
				if _, err := w.command(who, p.Number, c.key, skip); !errors.As(err, &refused) || !strings.Contains(refused.Why, want) {
					t.Errorf("%s: %v", who, err)
				}
			}
			for gate, want := range map[string]string{"window": "it has soak", "hold": "Holds are lifted"} {
				var refused *RefusedError
				if _, err := w.command("ada", p.Number, c.key, command.Command{Verb: command.Skip, Gate: gate, Reason: "the outage of today"}); !errors.As(err, &refused) || !strings.Contains(refused.Why, want) {
					t.Errorf("%s: %v", gate, err)
				}
			}
			about := func(head string) (string, error) {
				return w.ExecuteCommand(t.Context(), Command{Unit: w.unit(c.key), Pull: p.Number, Command: skip, By: "oncall", Role: "breakglass", Via: "api", Source: "about " + head, Head: head})
			}
			var refused *RefusedError
			if _, err := about("0123456789ab"); !errors.As(err, &refused) || !strings.Contains(refused.Why, "and this is about 0123456789ab") {
				t.Errorf("about another head: %v", err)
			}
			if labelled(w) || w.pulls()[0].Merged {
				t.Fatal("what was refused has an effect")
			}
			counted := &skipCounter{}
			w.opts.Metrics = counted
			answer, err := w.command("ada", p.Number, c.key, skip)
			w.must(err)
			if _, err := w.command("ada", p.Number, c.key, skip); err != nil || !slices.Equal(counted.skips, []string{"shop qa soak"}) {
				t.Errorf("given twice it is counted as %q (%v)", counted.skips, err)
			}
			if !strings.Contains(answer, "skipped the gate `soak`") || !labelled(w) {
				t.Errorf("it answers %q, the labels are %v", answer, w.pulls()[0].Labels)
			}
			w.settle(c.key, "it is merged", func() bool { return w.pulls()[0].Merged })
			w.settle(c.key, "the skip is forgotten", func() bool {
				_, kept, err := w.opts.Store.Record(t.Context(), people.Skips.Key(record.OfPull(w.repo.ID, p.Number)))
				w.must(err)
				return !kept
			})
			for _, component := range c.components {
				all, err := w.opts.Store.Events(t.Context(), store.EventFilter{Component: component, Limit: 100})
				w.must(err)
				if !slices.ContainsFunc(all, func(e store.Event) bool { return e.Kind == "skipped" && e.Pull == p.Number }) {
					t.Errorf("the history of %s doesn't tell of it: %+v", component, all)
				}
			}
		})
	}
	for name, end := range map[string]func(w *fixture){
		"nothing":                   nil,
		"its time is over":          func(w *fixture) { w.clock.Step(promotion.SkipDuration) },
		"who gave it left the team": func(w *fixture) { w.must(w.forge.SetTeam("acme/oncall", "", "rita")); w.clock.Step(6 * time.Minute) },
		"who gave it lost write":    func(w *fixture) { w.must(w.forge.Grant(repoName, "ada", emulator.Read)); w.clock.Step(2 * time.Minute) },
		"the head is another one":   func(w *fixture) { w.release("3.0.0", "web") },
		"the database is lost":      func(w *fixture) { w.must(people.Skips.Drop(t.Context(), w.opts.Store, record.OfPull(w.repo.ID, 1))) },
	} {
		t.Run(name, func(t *testing.T) {
			w, p := newOpen(t, "", strings.Replace(soakedQA, "gates: [", "gates: [{approvals: {count: 1}}, ", 1), "web", []string{"web"})
			_, err := w.command("ada", p.Number, "web", skip)
			w.must(err)
			if end != nil {
				end(w)
				w.settle("web", "the label is off", func() bool { return !labelled(w) })
			}
			w.must(w.forge.Approve(repoName, p.Number, "grace"))
			w.must(w.run(wake.ForPull(w.repo.ID, p.Number))) // the webhook of the review
			looks := 0
			w.settle("web", "it was looked at again", func() bool { looks++; return looks > 3 })
			if merged := w.pulls()[0].Merged; merged != (end == nil) {
				t.Errorf("it is merged: %t", merged)
			}
		})
	}
}

// TestASkipLeavesTheFloor holds that where the pipeline's own gate is skipped, what the server's
// file asks for stays, and that everybody counts whom that names.
func TestASkipLeavesTheFloor(t *testing.T) {
	w := newFixture(t, "  breakGlass: {users: [ada]}\n", "    - {name: qa, after: [dev], merge: auto, gates: [{approvals: {count: 2, from: {users: [grace, rita]}}}], verify: "+quickly+"}\n", "web")
	w.must(w.forge.SetTeam("acme/sre", "", "ada"))
	noVeto := false // so that the pipeline's gate says as much as the floor does
	w.floor = &policies.Approvals{Count: 1, Veto: &noVeto, From: policies.From{Teams: []string{"acme/sre"}, Users: []string{"grace", "rita"}}}
	w.addProcess(w.opts.Store, "with a floor")
	w.runRepository()
	p := w.openOne("web", "2.0.0", "web")
	_, err := w.command("ada", p.Number, "web", command.Command{Verb: command.Skip, Gate: "approvals", Reason: "the outage of today"})
	w.must(err)
	w.must(w.run(wake.ForPull(w.repo.ID, p.Number)))
	looks := 0
	w.settle("web", "it was looked at", func() bool { looks++; return looks > 2 })
	if w.pulls()[0].Merged {
		t.Fatal("it is merged past the server's floor")
	}
	w.must(w.forge.Approve(repoName, p.Number, "ada"))
	w.settle("web", "it is merged", func() bool { w.must(w.run(wake.ForPull(w.repo.ID, p.Number))); return w.pulls()[0].Merged })
}

// TestSkipIsForTheHeadThatWasSeen holds that a comment skips a gate of the head that was there when
// it was written. It does so once, until four hours after that, and never for another head, however
// late it is heard of and however often it is taken.
func TestSkipIsForTheHeadThatWasSeen(t *testing.T) {
	t.Parallel()
	const comment = "/liftlock skip soak the outage of today"
	waits := strings.Replace(soakedQA, "gates: [", "gates: [{approvals: {count: 1}}, ", 1)
	for name, c := range map[string]struct {
		act    func(w *fixture, pull wake.Key, another func())
		merges bool
		says   string // the last answer
	}{
		"in time":                        {func(*fixture, wake.Key, func()) {}, true, ""},
		"heard of late, of another head": {func(_ *fixture, _ wake.Key, another func()) { another() }, false, "write it again"},
		"heard of after hours":           {func(w *fixture, _ wake.Key, _ func()) { w.clock.Step(promotion.SkipDuration) }, false, "write it again"},
		"taken again, of another head": {func(w *fixture, pull wake.Key, another func()) {
			w.fail("react to", forge.ErrForbidden)
			_ = w.run(pull)
			w.failNothing()
			another()
		}, false, ""},
		"taken again, after hours": {func(w *fixture, pull wake.Key, _ func()) {
			w.fail("react to", forge.ErrForbidden)
			_ = w.run(pull)
			w.failNothing()
			w.clock.Step(promotion.SkipDuration)
		}, false, ""},
		"written again": {func(w *fixture, pull wake.Key, another func()) {
			another()
			w.must(w.run(pull))
			_, err := w.forge.Comment(repoName, 1, "ada", comment)
			w.must(err)
		}, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, "  breakGlass: {users: [ada]}\n", waits, "web")
			p := w.openOne("web", "2.0.0", "web")
			w.clock.Step(time.Minute)
			_, err := w.forge.Comment(repoName, p.Number, "ada", comment)
			w.must(err)
			pull, at := wake.ForPull(w.repo.ID, p.Number), w.clock.Now()
			c.act(w, pull, func() {
				old := w.pulls()[0].Head
				w.release("3.0.0", "web")
				w.settle("web", "it is composed anew", func() bool { return w.pulls()[0].Head != old })
				w.clock.Step(time.Minute)
			})
			w.must(w.run(pull))
			if all := w.pulls()[0].Comments; c.says != "" && !strings.Contains(all[len(all)-1].Body, c.says) {
				t.Errorf("the answer is %q", all[len(all)-1].Body)
			}
			if _, d := w.evaluate(); c.merges {
				for _, g := range d.Components[0].Env("qa").Gates {
					if until := at.Add(promotion.SkipDuration); g.SkippedBy != "" && name == "in time" && !strings.Contains(g.Reason, until.UTC().Format(time.RFC3339)) {
						t.Errorf("it isn't until %s: %s", until, g.Reason)
					}
				}
			}
			w.must(w.forge.Approve(repoName, p.Number, "grace"))
			w.must(w.run(wake.ForPull(w.repo.ID, p.Number))) // the webhook of the review
			looks := 0
			w.settle("web", "it was looked at again", func() bool { looks++; return looks > 3 })
			if q := w.pulls()[0]; q.Merged != c.merges {
				t.Errorf("it is merged: %t; labels %v", q.Merged, q.Labels)
			}
			if n := len(w.skipEvents("web")); c.merges && n != 1 {
				t.Errorf("%d skips are on record", n)
			}
		})
	}
}

// TestSkipsThatAreRefused holds why a skip isn't given, and that then nothing is skipped.
func TestSkipsThatAreRefused(t *testing.T) {
	w := newFixture(t, "  breakGlass: {users: [ada]}\n", soakedQA, "web")
	w.floor = &policies.Approvals{Count: 1}
	w.addProcess(w.opts.Store, "with a floor")
	w.runRepository()
	p := w.openOne("web", "2.0.0", "web")
	w.clock.Step(time.Minute)
	refused := func(pull int, component, gate, want string) {
		t.Helper()
		var refused *RefusedError
		if _, err := w.command("ada", pull, component, command.Command{Verb: command.Skip, Gate: gate, Reason: "the outage of today"}); !errors.As(err, &refused) || !strings.Contains(refused.Why, want) {
			t.Errorf("a skip of %s of #%d: %v, want %q", gate, pull, err, want)
		}
	}
	refused(0, "web", "soak", "which pull request?")
	refused(99, "web", "soak", "#99 is not an open promotion of Liftlock's")
	refused(p.Number, "web", "approvals", "is the server's own, which nobody skips")
	refused(p.Number, "web", "window", "has no gate window that could be skipped; it has soak.")
	refused(p.Number, "gone", "soak", "gone")
	s, err := w.opts.Gatherer.Targets.Snapshot(t.Context(), w.repo.Repository)
	w.must(err)
	var why *RefusedError
	if err := w.checkSkippable(s.Pipeline("shop"), "nowhere", "soak"); !errors.As(err, &why) || !strings.Contains(why.Why, "has no environment nowhere any more") {
		t.Errorf("in no environment: %v", err)
	}
	if err := w.checkSkippable(s.Pipeline("shop"), "dev", "soak"); !errors.As(err, &why) || !strings.Contains(why.Why, "dev has no gates in the pipeline file") {
		t.Errorf("without gates: %v", err)
	}
	_, err = w.forge.CommitAs(repoName, "linus", p.Branch, "Mine", map[string]string{"x": "x"})
	w.must(err)
	w.runRepository()
	w.must(w.run(wake.ForPull(w.repo.ID, p.Number)))
	w.clock.Step(time.Minute)
	refused(p.Number, "web", "soak", "is not what Liftlock composed, so nothing is skipped for it")
	if n := len(w.skipEvents("web")); n != 0 {
		t.Errorf("%d skips are on record", n)
	}
}

// TestSkipsAreBounded holds that only so many skips of a head are kept, of those that aren't over.
// A person who skips a gate again replaces their own.
func TestSkipsAreBounded(t *testing.T) {
	w := newFixture(t, "", soakedQA, "web")
	p := w.openOne("web", "2.0.0", "web")
	ev, _ := w.evaluate()
	open := ev.OpenPulls[p.Number]
	give := func(by string, at time.Time) (bool, error) {
		return w.storeSkip(t.Context(), w.repo, ev, open, people.StoredSkip{Head: open.Head, Release: open.Release, Source: by + at.String(),
			Skip: promotion.Skip{Gate: "soak", By: by, At: at, Until: at.Add(promotion.SkipDuration)}}, "")
	}
	now := w.clock.Now()
	for i := range maxSkips {
		if added, err := give(fmt.Sprint("somebody ", i), now); err != nil || !added {
			t.Fatalf("skip %d: %t, %v", i, added, err)
		}
	}
	var refused *RefusedError
	if added, err := give("one more", now); added || !errors.As(err, &refused) || !strings.Contains(refused.Why, "50 skips of #1 hold already") {
		t.Errorf("one more than may be: %t, %v", added, err)
	}
	if added, err := give("somebody 0", now); added || err != nil {
		t.Errorf("the same once more: %t, %v", added, err)
	}
	if added, err := give("somebody 0", now.Add(time.Second)); !added || err != nil {
		t.Errorf("somebody again: %t, %v", added, err)
	}
	if added, err := give("one more", now.Add(promotion.SkipDuration)); !added || err != nil {
		t.Errorf("when the others are over: %t, %v", added, err)
	}
	known, err := people.ReadSkips(t.Context(), w.opts.Store, w.repo.ID, open.Number, open.Head, open.Release)
	if w.must(err); len(known) != 2 {
		t.Errorf("%d are kept", len(known))
	}
}

// evaluate looks at web as it is now.
func (f *fixture) evaluate() (*facts.Evaluation, *promotion.Decision) {
	f.t.Helper()
	s, err := f.opts.Gatherer.Targets.Snapshot(f.t.Context(), f.repo.Repository)
	f.must(err)
	ev, d, err := f.opts.Gatherer.Evaluate(f.t.Context(), s, f.unit("web"), true)
	f.must(err)
	return ev, d
}

// skipEvents are what the history of a component tells of skips.
func (f *fixture) skipEvents(component string) []store.Event {
	f.t.Helper()
	all, err := f.opts.Store.Events(f.t.Context(), store.EventFilter{Component: component, Limit: 100})
	f.must(err)
	return slices.DeleteFunc(all, func(e store.Event) bool { return e.Kind != "skipped" })
}

// skipCounter has which gates were skipped, and how long what came in by itself took.
type skipCounter struct {
	skips      []string
	discovered []time.Duration
}

func (*skipCounter) Run(string, time.Duration, error) {}
func (*skipCounter) Check(time.Duration, bool)        {}
func (s *skipCounter) Discovered(_, _ string, took time.Duration) {
	s.discovered = append(s.discovered, took)
}
func (s *skipCounter) Skipped(pipeline, environment, gate string) {
	s.skips = append(s.skips, pipeline+" "+environment+" "+gate)
}
