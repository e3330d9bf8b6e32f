package controller

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/emulator"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/store"
)

const soakedQA = "    - {name: qa, after: [dev], merge: auto, gates: [{soak: {for: 720h}}], verify: " + quickly + "}\n"

// TestSkipsAreGiven holds who may skip a gate, what that does and where it shows, and that
// it is over with its time, its head, and who gave it being in breakGlass.
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
	for name, c := range kindsOfUnit {
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
			if labelled(w) || w.pulls()[0].Merged {
				t.Fatal("what was refused has an effect")
			}
			answer, err := w.command("ada", p.Number, c.key, skip)
			w.must(err)
			if !strings.Contains(answer, "skipped the gate `soak`") || !labelled(w) {
				t.Errorf("it answers %q, the labels are %v", answer, w.pulls()[0].Labels)
			}
			w.settle(c.key, "it is merged", func() bool { return w.pulls()[0].Merged })
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
		"its time is over":          func(w *fixture) { w.clock.Step(promotion.SkipDuration) },
		"who gave it left the team": func(w *fixture) { w.must(w.forge.SetTeam("acme/oncall", "", "rita")); w.clock.Step(6 * time.Minute) },
		"who gave it lost write":    func(w *fixture) { w.must(w.forge.Grant(repoName, "ada", emulator.Read)); w.clock.Step(2 * time.Minute) },
		"the head is another one":   func(w *fixture) { w.release("3.0.0", "web") },
		"the database is lost":      func(w *fixture) { w.must(w.opts.Store.DeleteState(t.Context(), "skips|"+w.repo.ID+"|1")) },
	} {
		t.Run(name, func(t *testing.T) {
			w, p := newOpen(t, "", strings.Replace(soakedQA, "gates: [", "gates: [{approvals: {count: 1}}, ", 1), "web", []string{"web"})
			_, err := w.command("ada", p.Number, "web", skip)
			w.must(err)
			end(w)
			w.settle("web", "the label is off", func() bool { return !labelled(w) })
			w.must(w.forge.Approve(repoName, p.Number, "grace"))
			looks := 0
			w.settle("web", "it was looked at again", func() bool { looks++; return looks > 3 })
			if w.pulls()[0].Merged {
				t.Error("it is merged")
			}
		})
	}
}
