package controller

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/appset/history"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion/command"
)

// TestDeletedHoldsAreRestored deletes the branch with the holds, as anybody who may push can. Nothing
// is merged before it is back, and it comes back with the next look at the repository.
func TestDeletedHoldsAreRestored(t *testing.T) {
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
	s, err := w.opts.Gatherer.Targets.Snapshot(t.Context(), w.repo.Repository)
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

// TestReleasesArriveWithoutTheHolds deletes the branch with the holds where it can't be restored,
// as another branch is in its way. Nothing is merged, but pushes are evaluated all the same, and
// the holds are back once nothing is in the way.
func TestReleasesArriveWithoutTheHolds(t *testing.T) {
	w := newFixture(t, "", manualQA, "api", "web")
	p := w.openOne("web", "2.0.0", "web")
	_, err := w.command("ada", p.Number, "web", command.Command{Verb: command.Hold, Scope: command.ScopeComponent, Reason: "a freeze"})
	w.must(err)
	w.runRepository()
	held, err := w.forge.Head(repoName, history.StateBranch)
	w.must(err)
	w.must(w.forge.SetBranch(repoName, "linus", history.StateBranch, ""))
	w.must(w.forge.SetBranch(repoName, "linus", history.StateBranch+"/x", held))

	for _, tag := range []string{"2.1.0", "2.2.0"} {
		w.dropDue()
		_, err = w.forge.CommitAs(repoName, "linus", "main", "Release "+tag, map[string]string{kustomizationOf("api", "dev"): kustomization("api", tag)})
		w.must(err)
		if err := w.run(wake.ForRepository(w.repo.ID)); err == nil || !strings.Contains(err.Error(), "can't be pushed there again") {
			t.Fatalf("what is in the way of the holds is said as %v", err)
		}
		if woken := w.dropDue(); !slices.Contains(woken, "api") {
			t.Errorf("the release %s wakes %q", tag, woken)
		}
	}
	s, err := w.opts.Gatherer.Targets.Snapshot(t.Context(), w.repo.Repository)
	w.must(err)
	ev, err := w.opts.Gatherer.Gather(t.Context(), s, w.unit("web"), false)
	w.must(err)
	if h := ev.Components[0].Facts.Holds; h.OK {
		t.Errorf("without the branch the holds are %+v", h)
	}

	w.must(w.forge.SetBranch(repoName, "linus", history.StateBranch+"/x", ""))
	w.runRepository()
	if back, err := w.forge.Head(repoName, history.StateBranch); err != nil || back != held {
		t.Errorf("it is back at %q, %v; it was at %s", back, err, held)
	}
}

// TestReleasesArriveWithoutAStatus breaks the pipeline file where the forge takes no status of the
// tracked branch: pushes are evaluated all the same.
func TestReleasesArriveWithoutAStatus(t *testing.T) {
	w := newFixture(t, "", manualQA, "api", "web")
	w.fail("status", forge.ErrForbidden)
	w.dropDue()
	_, err := w.forge.CommitAs(repoName, "linus", "main", "Break the pipeline file, and release", map[string]string{".liftlock.yaml": "kind: Pipe\n", kustomizationOf("api", "dev"): kustomization("api", "2.0.0")})
	w.must(err)
	if err := w.run(wake.ForRepository(w.repo.ID)); !errors.Is(err, forge.ErrForbidden) {
		t.Errorf("the refused status is %v", err)
	}
	if woken := w.dropDue(); !slices.Contains(woken, "api") {
		t.Errorf("the release wakes %q", woken)
	}
}

// TestLostHoldsStopNothingElse has a process that never had the deleted holds, so that it can't
// restore them. It says so, sees releases all the same, and doesn't forget where the holds were.
func TestLostHoldsStopNothingElse(t *testing.T) {
	w := newFixture(t, "", manualQA, "web")
	_, err := w.command("ada", 0, "web", command.Command{Verb: command.Hold, Scope: command.ScopeComponent})
	w.must(err)
	w.runRepository()
	held, err := w.forge.Head(repoName, history.StateBranch)
	w.must(err)
	w.must(w.forge.SetBranch(repoName, "linus", history.StateBranch, ""))
	w.addProcess(w.opts.Store, "another")
	released, err := w.forge.CommitAs(repoName, "linus", "main", "Release 2.0.0", map[string]string{kustomizationOf("web", "dev"): kustomization("web", "2.0.0")})
	w.must(err)
	for range 2 {
		if err := w.run(wake.ForRepository(w.repo.ID)); err == nil || !strings.Contains(err.Error(), held) {
			t.Errorf("that the holds can't be put back is told as %v", err)
		}
	}
	seen, err := w.opts.Gatherer.History.SeenHeads(t.Context(), w.repo.Repository)
	w.must(err)
	if seen["main"] != released || seen[history.StateBranch] != held {
		t.Errorf("it has seen %v; main is at %s, and the holds were at %s", seen, released, held)
	}
}
