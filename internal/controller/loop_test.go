package controller

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/appset/history"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/store"
)

// kindOfUnit is a way in which releases move: by themselves, or several at once.
type kindOfUnit struct {
	spec, key, branch string
	components        []string
}

// listKindsOfUnit are both, and the one that does more when time is short.
func listKindsOfUnit() map[string]kindOfUnit {
	kinds := map[string]kindOfUnit{"several": {"  batch: environment\n", "batch", "liftlock/shop/qa/batch", []string{"api", "web"}}}
	if !testing.Short() {
		kinds["one component"] = kindOfUnit{"", "web", "liftlock/shop/qa/web", []string{"web"}}
	}
	return kinds
}

// TestAReleaseIsPromoted holds the loop's own way, from a push to a merge, and that a
// newer release takes the open pull request's place instead of a second one's.
func TestAReleaseIsPromoted(t *testing.T) {
	t.Parallel()
	for name, c := range listKindsOfUnit() {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, c.spec, manualQA, c.components...)
			first := w.openOne(c.key, "2.0.0", c.components...)
			if first.Branch != c.branch || first.Author != bot || !slices.Contains(first.Labels, promotion.LabelOurs) {
				t.Errorf("opened %+v", first)
			}
			w.release("3.0.0", c.components...)
			w.settle(c.key, "the newer release is in it", func() bool { return strings.Contains(w.pulls()[0].Body, "3.0.0") && w.pulls()[0].Head != first.Head })
			if n := len(w.pulls()); n != 1 {
				t.Errorf("there are %d pull requests", n)
			}
			for range 3 { // done again, it changes nothing
				w.must(w.run(wake.ForUnit(w.unit(c.key))))
			}
			if p := w.pulls(); len(p) != 1 || len(p[0].Comments) != 1 {
				t.Errorf("after nothing happened: %+v", p)
			}
		})
	}
}

// TestMergesAreServed holds that the merge key merges the queued promotions, evaluated again, and
// that one that can't be read holds up no other.
func TestMergesAreServed(t *testing.T) {
	t.Parallel()
	for name, c := range listKindsOfUnit() {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, c.spec, autoQA, c.components...)
			w.openOne(c.key, "2.0.0", c.components...)
			w.must(w.opts.Store.Tx(t.Context(), "queue", func(tx *store.Tx) error { return tx.EnqueueMerge(t.Context(), w.repo.ID, "nobody's unit") }))
			w.settle(c.key, "it is merged", func() bool { return w.pulls()[0].Merged })
			for _, component := range c.components {
				if text, _, err := w.forge.File(repoName, "main", kustomizationOf(component, "qa")); err != nil || text != kustomization(component, "2.0.0") {
					t.Errorf("qa has of %s: %q, %v", component, text, err)
				}
			}
			if left, err := w.opts.Store.MergeQueue(t.Context(), w.repo.ID); err != nil || len(left) != 0 {
				t.Errorf("the queue still has %v, %v", left, err)
			}
		})
	}
}

// TestCommandsAreAuthorised holds who may do what, and that what is refused does nothing.
func TestCommandsAreAuthorised(t *testing.T) {
	t.Parallel()
	for name, c := range listKindsOfUnit() {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, c.spec, manualQA, c.components...)
			p := w.openOne(c.key, "2.0.0", c.components...)
			hold := command.Command{Verb: command.Hold}
			var refused *RefusedError
			if _, err := w.command("rita", p.Number, c.key, hold); !errors.As(err, &refused) {
				t.Errorf("who may only read held it: %v", err)
			}
			if slices.Contains(w.pulls()[0].Labels, promotion.LabelHold) {
				t.Error("a refused hold holds")
			}
			_, err := w.command("ada", p.Number, c.key, hold)
			w.must(err)
			if !slices.Contains(w.pulls()[0].Labels, promotion.LabelHold) {
				t.Errorf("it is not held: %v", w.pulls()[0].Labels)
			}
			hold.Scope, hold.Reason = command.ScopeComponent, "a freeze"
			_, err = w.command("ada", p.Number, c.key, hold)
			w.must(err)
			for _, component := range c.components {
				if text, ok, err := w.forge.File(repoName, history.StateBranch, history.HoldPath("shop", command.ScopeComponent, component)); err != nil || !ok || !strings.Contains(text, "a freeze") {
					t.Errorf("the hold of %s: %q, %v", component, text, err)
				}
			}
			answer, err := w.command("rita", p.Number, c.key, command.Command{Verb: command.Status})
			w.must(err)
			for _, component := range c.components {
				if len(c.components) > 1 && !strings.Contains(answer, component+":\n\n") {
					t.Errorf("the status doesn't speak of %s:\n%s", component, answer)
				}
			}
			if _, err := w.command("ada", p.Number, c.key, command.Command{Verb: command.Revert, Environment: "nowhere"}); !errors.As(err, &refused) {
				t.Errorf("a revert of no environment: %v", err)
			}
		})
	}
}

// TestABranchOfSomebodyElseStaysItsOwn holds that a promotion is not pushed over what
// somebody else pushed to the branch that it would use.
func TestABranchOfSomebodyElseStaysItsOwn(t *testing.T) {
	t.Parallel()
	for name, c := range listKindsOfUnit() {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, c.spec, manualQA, c.components...)
			w.must(w.run(wake.ForUnit(w.unit(c.key))))
			head, err := w.forge.Head(repoName, "main")
			w.must(err)
			w.must(w.forge.SetBranch(repoName, "linus", c.branch, head))
			theirs, err := w.forge.CommitAs(repoName, "linus", c.branch, "Mine", map[string]string{"x": "x"})
			w.must(err)
			w.release("2.0.0", c.components...)
			for range 6 {
				w.must(w.run(wake.ForUnit(w.unit(c.key))))
			}
			if now, err := w.forge.Head(repoName, c.branch); err != nil || now != theirs || len(w.pulls()) != 0 {
				t.Errorf("the branch is at %s, was at %s; %d pull requests; %v", now, theirs, len(w.pulls()), err)
			}
		})
	}
}

// TestAComponentThatIsGoneIsForgotten holds that a component that the tracked branch no longer has
// is forgotten, and a command about it refused. Where the others of its pipeline are one unit,
// nothing is evaluated in its name.
func TestAComponentThatIsGoneIsForgotten(t *testing.T) {
	t.Parallel()
	for name, c := range listKindsOfUnit() {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, c.spec, manualQA, c.components...)
			w.must(w.run(wake.ForUnit(w.unit(c.key))))
			gone := w.unit("gone")
			w.must(w.opts.Store.Tx(t.Context(), "old", func(tx *store.Tx) error {
				return tx.PutUnit(t.Context(), store.Unit{Key: wake.UnitName(gone), Repo: gone.Repo, Pipeline: gone.Pipeline, Component: gone.Component, UpdatedAt: w.clock.Now(), Data: []byte("{}")})
			}))
			w.must(w.run(wake.ForUnit(gone)))
			rows, err := w.opts.Store.Units(t.Context(), store.UnitFilter{Repo: w.repo.ID})
			w.must(err)
			if slices.ContainsFunc(rows, func(u store.Unit) bool { return u.Component == "gone" }) {
				t.Error("it is still there")
			}
			var refused *RefusedError
			if _, err := w.command("ada", 0, "gone", command.Command{Verb: command.Status}); !errors.As(err, &refused) {
				t.Errorf("its status: %v", err)
			}
		})
	}
}
