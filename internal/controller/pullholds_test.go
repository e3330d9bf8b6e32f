package controller

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
	"github.com/liftlock/liftlock/internal/world/emulator"
)

// TestClosingLiftsNoHold holds that a hold that a command set outlives it that its pull request is
// closed and opened again, and ends at its end all the same.
func TestClosingLiftsNoHold(t *testing.T) {
	for name, lasting := range map[string]time.Duration{"without an end": 0, "with an end": time.Hour} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, "", manualQA, "web")
			p := w.openOne("web", "2.0.0", "web")
			run := func(err error) {
				t.Helper()
				w.must(err)
				w.must(w.run(wake.ForPull(w.repo.ID, p.Number)))
			}
			isLabelled := func() bool { return slices.Contains(w.pulls()[0].Labels, promotion.LabelHold) }
			_, err := w.command("ada", p.Number, "web", command.Command{Verb: command.Hold, For: lasting})
			run(err)
			run(w.forge.ClosePull(repoName, p.Number, "linus"))
			run(w.forge.RemoveLabel(repoName, p.Number, "linus", promotion.LabelHold))
			if isLabelled() {
				t.Error("the label of a closed pull request is put back")
			}
			run(w.forge.ReopenPull(repoName, p.Number, "linus"))
			if !isLabelled() {
				t.Error("who closed it and opened it again lifted the hold")
			}
			run(w.forge.ClosePull(repoName, p.Number, "linus"))
			w.clock.Step(2 * time.Hour)
			run(nil)
			run(w.forge.ReopenPull(repoName, p.Number, "linus"))
			if isLabelled() != (lasting == 0) {
				t.Errorf("two hours later it is on hold: %t", isLabelled())
			}
		})
	}
}

// TestHoldsOfClosedPullsAreForgotten holds that who holds a pull request is forgotten when it is
// merged, and, where it is closed, when its history is.
func TestHoldsOfClosedPullsAreForgotten(t *testing.T) {
	w := newFixture(t, "", manualQA, "api", "web")
	closed, merged := w.openOne("web", "2.0.0", "web"), w.openOne("api", "2.0.0", "api")
	for component, p := range map[string]int{"web": closed.Number, "api": merged.Number} {
		_, err := w.command("ada", p, component, command.Command{Verb: command.Hold})
		w.must(err)
		w.must(labelling.Put(t.Context(), w.opts.Store, record.OfPull(w.repo.ID, p), "a command"))
	}
	w.clock.Step(time.Minute) // a later state than what was read of them
	w.must(w.forge.ClosePull(repoName, closed.Number, "linus"))
	_, err := w.forge.MergePull(repoName, merged.Number, "linus", "merge")
	w.must(err)
	check := func(what string, number int, want bool) {
		t.Helper()
		for _, key := range []store.RecordKey{facts.PullHolds.Key(record.OfPull(w.repo.ID, number)), labelling.Key(record.OfPull(w.repo.ID, number))} {
			_, held, err := w.opts.Store.Record(t.Context(), key)
			w.must(err)
			if held != want {
				t.Errorf("%s: %s is there: %t", what, key, held)
			}
		}
	}
	w.must(w.run(wake.ForSweep(w.repo.ID)))
	check("merged", merged.Number, false)
	check("closed", closed.Number, true)
	w.clock.Step(defaultRetention - time.Hour)
	w.must(w.run(wake.ForSweep(w.repo.ID)))
	check("closed for nearly as long", closed.Number, true)
	w.clock.Step(2 * time.Hour)
	w.must(w.run(wake.ForSweep(w.repo.ID)))
	check("closed for longer", closed.Number, false)
}

// TestARenamedHolderMayLiftTheHold holds who may lift a hold where an environment has an approvals
// gate. The account that set it may, under another login too, and an account with the former login
// may not.
func TestARenamedHolderMayLiftTheHold(t *testing.T) {
	gated := strings.Replace(manualQA, "merge: manual", "merge: manual, gates: [{approvals: {count: 1, from: {users: [grace]}}}]", 1)
	for _, scope := range []string{command.ScopePR, command.ScopeComponent, command.ScopeEnvironment, command.ScopePipeline} {
		t.Run(scope, func(t *testing.T) {
			w := newEmulatedFixture(t, "", gated, "web")
			p := w.openOne("web", "2.0.0", "web")
			give := func(login string, verb command.Verb, want string) {
				t.Helper()
				id, err := w.forge.Comment(repoName, p.Number, login, "/liftlock "+string(verb)+" "+scope)
				w.must(err)
				w.must(w.run(wake.ForPull(w.repo.ID, p.Number)))
				if got := w.reactionsTo(p.Number, id); !slices.Contains(got, bot+" "+want) {
					t.Errorf("%s gives %s: %q", login, verb, got)
				}
			}
			give("ada", command.Hold, reactionDone)
			w.must(w.emulated.RenameUser("ada", "lovelace"))
			w.must(w.emulated.AddUser("ada", "token-of-another", emulator.UserOptions{}))
			w.must(w.forge.Grant(repoName, "ada", emulator.Write))
			give("ada", command.Unhold, reactionRefused)
			give("lovelace", command.Unhold, reactionDone)
			w.runRepository()
			if _, d := w.evaluate(); d.Components[0].Env("qa").Promotion == promotion.Held {
				t.Error("it is on hold still")
			}
		})
	}
}
