package controller

import (
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/appset/history"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/promotion/command"
)

// TestDeletedHoldsComeBack deletes the branch with the holds, as anybody who may push can: nothing
// is merged before it is back, and it comes back with the next look at the repository.
func TestDeletedHoldsComeBack(t *testing.T) {
	w := newFixture(t, "", manualQA, "web")
	p := w.openOne("web", "2.0.0", "web")
	_, err := w.command("ada", p.Number, "web", command.Command{Verb: command.Hold, Scope: command.ScopeComponent, Reason: "a freeze"})
	w.must(err)
	w.runRepository()
	held, err := w.forge.Head(repoName, history.StateBranch)
	w.must(err)

	w.must(w.forge.SetBranch(repoName, "linus", history.StateBranch, ""))
	_, err = w.repo.Mirror.Fetch(t.Context())
	w.must(err)
	s, err := w.opts.Gatherer.Snapshot(t.Context(), w.repo.Repository)
	w.must(err)
	ev, err := w.opts.Gatherer.Gather(t.Context(), s, w.unit("web"), false)
	w.must(err)
	if h := ev.Components[0].Facts.Holds; h.OK || !strings.Contains(h.Err, "was deleted") || !strings.Contains(h.Err, held) {
		t.Errorf("before it is back the holds are %+v", h)
	}

	w.runRepository()
	if back, err := w.forge.Head(repoName, history.StateBranch); err != nil || back != held {
		t.Errorf("it is back at %q, %v; it was at %s", back, err, held)
	}
	w.must(w.run(wake.ForUnit(w.unit("web"))))
	if n := len(w.pulls()); n != 1 {
		t.Errorf("%d pull requests", n)
	}
}

// TestAHoldBringsTheDeletedOnesBack sets a hold while the branch with the others is deleted: all
// of them stand then, and not the new one alone.
func TestAHoldBringsTheDeletedOnesBack(t *testing.T) {
	w := newFixture(t, "", manualQA, "web")
	p := w.openOne("web", "2.0.0", "web")
	hold := func(by, scope string) {
		t.Helper()
		_, err := w.command(by, p.Number, "web", command.Command{Verb: command.Hold, Scope: scope, Environment: "qa"})
		w.must(err)
	}
	hold("ada", command.ScopeComponent)
	w.runRepository()
	w.must(w.forge.SetBranch(repoName, "linus", history.StateBranch, ""))
	_, err := w.repo.Mirror.Fetch(t.Context())
	w.must(err)
	hold("grace", command.ScopeEnvironment)
	w.runRepository()
	for _, file := range []string{history.HoldPath("shop", command.ScopeComponent, "web"), history.HoldPath("shop", command.ScopeEnvironment, "qa")} {
		if _, ok, err := w.forge.File(repoName, history.StateBranch, file); err != nil || !ok {
			t.Errorf("%s is on the branch: %t, %v", file, ok, err)
		}
	}
}
