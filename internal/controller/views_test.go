package controller

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/facts/effects"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/promotion/verification"
)

const awaitedRepo = "hub:acme/away"

// TestShownRepositories holds what pages and channels are told of a repository, of one that hasn't been
// reached yet and of one that isn't looked after.
func TestShownRepositories(t *testing.T) {
	w := newFixture(t, "  notify: [{to: chat, on: [failed]}, {to: pager, on: [degraded]}, {to: chat, on: [merged]}]\n", manualQA, "web")
	w.opts.Awaited = []string{awaitedRepo}
	w.Controller = New(w.opts)
	p := w.openOne("web", "2.0.0", "web")

	for repo, want := range map[string]string{awaitedRepo: "has not been reached yet", "hub:acme/gone": "no longer in the server's file"} {
		u := w.unit("web")
		u.Repo = repo
		var none *effects.NoDifferenceError
		if _, err := w.Difference(t.Context(), u, "qa", p.Number); !errors.As(err, &none) || !strings.Contains(none.Why, repo+" "+want) && !strings.Contains(none.Why, repo+" is "+want) {
			t.Errorf("the difference of %s: %v", repo, err)
		}
		if _, err := w.Compare(t.Context(), repo, "shop"); !errors.Is(err, branch.ErrNoPipeline) || !strings.Contains(err.Error(), "shop in "+repo) {
			t.Errorf("the comparison of %s: %v", repo, err)
		}
		if routes, known := w.NotificationRoutes(t.Context(), repo, "shop"); routes != nil || known != (repo != awaitedRepo) {
			t.Errorf("the routes of %s: %v, %t", repo, routes, known)
		}
		if url := w.PullURL(t.Context(), repo, p.Number); url != "" {
			t.Errorf("the address of a pull request of %s: %q", repo, url)
		}
	}
	w.must(w.run(wake.ForUnit(w.unit("web"))))
	d, err := w.Difference(t.Context(), w.unit("web"), "qa", p.Number)
	if err != nil || d.Landed || d.After != p.Head || !slices.Equal(d.Files, []string{kustomizationOf("web", "qa")}) {
		t.Errorf("the difference of an open pull request: %+v, %v", d, err)
	}
	if _, err := w.Compare(t.Context(), w.repo.ID, "shop"); err == nil || !strings.Contains(err.Error(), "no connection to the Argo CD hub") {
		t.Errorf("the comparison with an Argo CD that isn't connected: %v", err)
	}
	routes, known := w.NotificationRoutes(t.Context(), w.repo.ID, "shop")
	if diff := cmp.Diff(map[string][]string{"chat": {"failed", "merged"}, "pager": {"degraded"}}, routes); diff != "" || !known {
		t.Errorf("the routes (-want +got), known %t:\n%s", known, diff)
	}
	if routes, known := w.NotificationRoutes(t.Context(), w.repo.ID, "other"); len(routes) != 0 || !known {
		t.Errorf("the routes of no pipeline: %v, %t", routes, known)
	}
	if url := w.PullURL(t.Context(), w.repo.ID, p.Number); url != p.URL || url == "" {
		t.Errorf("the address is %q, not %q", url, p.URL)
	}
	if url := w.PullURL(t.Context(), w.repo.ID, 99); url != "" {
		t.Errorf("the address of one that nobody knows is %q", url)
	}
}

// TestABrokenPipelineFileIsShown holds that a page says why a repository's pipeline files can't be
// used, as long as they can't. The present units stay.
func TestABrokenPipelineFileIsShown(t *testing.T) {
	w := newFixture(t, "", manualQA, "web")
	w.must(w.run(wake.ForUnit(w.unit("web"))))
	rules, _, err := w.forge.File(repoName, "main", ".liftlock.yaml")
	w.must(err)
	for _, text := range []string{"nothing: [that is", rules} {
		want := text != rules
		_, err := w.forge.CommitAs(repoName, "linus", "main", "Rules", map[string]string{".liftlock.yaml": text})
		w.must(err)
		w.runRepository()
		all := w.PipelineErrors()
		if why := all[w.repo.ID]; (why != "") != want || len(all) > 0 != want {
			t.Errorf("with %.10q it says %q", text, all)
		}
		w.must(w.run(wake.ForUnit(w.unit("web"))))
		if _, known, err := w.opts.Store.Unit(t.Context(), wake.UnitName(w.unit("web"))); err != nil || !known {
			t.Errorf("with %.10q the unit is known: %t, %v", text, known, err)
		}
	}
}

// TestFreePlaceWakesWaitingUnits holds that when a place among the open pull requests of an
// environment comes free, the units that wait for it run, and no other.
func TestFreePlaceWakesWaitingUnits(t *testing.T) {
	w := newFixture(t, "  limits: {openPerEnvironment: 1}\n", manualQA, "api", "db", "web")
	for _, c := range []string{"api", "db", "web"} {
		w.must(w.run(wake.ForUnit(w.unit(c))))
	}
	w.release("2.0.0", "api", "web")
	w.open("api")
	for range 4 {
		w.must(w.run(wake.ForUnit(w.unit("web"))))
	}
	if n := len(w.pulls()); n != 1 {
		t.Fatalf("%d pull requests are open", n)
	}
	number := w.pulls()[0].Number
	w.dropDue()
	w.must(w.run(wake.ForPull(w.repo.ID, number)))
	if due := w.dropDue(); !slices.Equal(due, []string{"api"}) {
		t.Errorf("while there is no place %q are looked at", due)
	}
	_, err := w.forge.MergePull(repoName, number, "grace", "merge")
	w.must(err)
	w.must(w.run(wake.ForPull(w.repo.ID, number)))
	if due := w.dropDue(); !slices.Equal(due, []string{"api", "web"}) {
		t.Errorf("when it is merged %q are looked at", due)
	}
	w.runRepository()
	if due := w.dropDue(); !slices.Equal(due, []string{"api", "web"}) {
		t.Errorf("when that is fetched %q are looked at", due)
	}
}

// TestUnreachedRepositoryLosesNothing holds that nothing is refused or dropped for good of a
// repository that the server hasn't reached yet, and that all is evaluated once it has.
func TestUnreachedRepositoryLosesNothing(t *testing.T) {
	w := newFixture(t, "", manualQA, "web")
	w.opts.Awaited = []string{awaitedRepo}
	w.Controller = New(w.opts)
	next, err := w.runKey(t.Context(), wake.ForRepository(awaitedRepo).String())
	if !errors.Is(err, errPutOff) || !next.Equal(w.clock.Now().Add(awaitedDelay)) {
		t.Errorf("its key runs again after %s, %v", next.Sub(w.clock.Now()), err)
	}
	next, err = w.runKey(t.Context(), wake.ForRepository("hub:acme/gone").String())
	if err != nil || !next.IsZero() {
		t.Errorf("the key of one that isn't looked after runs again at %s, %v", next, err)
	}
	for repo, want := range map[string]string{awaitedRepo: "has not been reached yet; try again later", "hub:acme/gone": "no repository hub:acme/gone is looked after"} {
		_, err := w.ExecuteCommand(t.Context(), Command{Unit: promotion.Unit{Repo: repo, Pipeline: "shop", Component: "web"}, Command: command.Command{Verb: command.Status}, By: "ada", Via: "comment", Source: repo})
		var refused *RefusedError
		if !errors.As(err, &refused) || !strings.Contains(refused.Why, want) {
			t.Errorf("a command about %s: %v", repo, err)
		}
	}
	w.dropDue()
	w.must(w.Start(t.Context()))
	if due := w.takeDue(); len(due) != 2 {
		t.Errorf("at the start it wakes %q", due)
	}
	reached := *w.repo.Repository
	reached.ID = awaitedRepo
	w.must(w.AddRepository(t.Context(), &Repository{Repository: &reached, Hook: &forge.Hook{URL: hookURL}}))
	want := []string{"hook:" + awaitedRepo, "repo:" + awaitedRepo, "repo:" + w.repo.ID, "sweep:" + awaitedRepo, "sweep:" + w.repo.ID}
	if diff := cmp.Diff(want, w.takeDue()); diff != "" {
		t.Errorf("once it is reached it wakes (-want +got):\n%s", diff)
	}
}

// TestArgoCDChangesAreRecorded holds which keys Argo CD's changes wake, and that a step records
// them and runs a key that is due. Changes that can't be recorded are kept.
func TestArgoCDChangesAreRecorded(t *testing.T) {
	w := newFixture(t, "", manualQA, "api", "web")
	step := func(want bool) {
		t.Helper()
		if ran, err := w.Step(t.Context()); err != nil || ran != want {
			t.Errorf("a step ran %t, %v", ran, err)
		}
	}
	wakes := func(want ...string) {
		t.Helper()
		if due := w.takeDue(); !slices.Equal(due, want) {
			t.Errorf("due are %q, not %q", due, want)
		}
	}
	w.dropDue()
	step(false)
	web := wake.ForUnit(w.unit("web")).String()
	w.WindowsChanged([]verification.App{{ArgoCD: "hub", Namespace: "argocd", Name: "web-qa"}, {ArgoCD: "hub", Namespace: "argocd", Name: "nobody's"}})
	if !w.HasPendingWakes() {
		t.Error("nothing is pending")
	}
	step(false) // it waits for more
	if w.HasPendingWakes() {
		t.Error("what was written down is pending still")
	}
	wakes(web)

	w.apps.setAwaiting(wake.ForUnit(w.unit("web")), nil, []string{"hub"})
	w.ArgoCDReachable("another")
	step(false)
	wakes()
	w.ArgoCDReachable("hub")
	w.clock.Step(time.Second)
	step(false)
	wakes(web)
	w.ArgoCDReachable("hub") // it was told
	step(false)
	wakes()

	w.injected.Deep, w.injected.At = true, len(w.injected.Calls)+1
	w.WindowsChanged([]verification.App{{ArgoCD: "hub", Namespace: "argocd", Name: "api-qa"}})
	step(false)
	if w.injected.Hit == "" || !w.HasPendingWakes() {
		t.Errorf("%q failed, and it is kept: %t", w.injected.Hit, w.HasPendingWakes())
	}
	w.injected.Deep = false
	step(false)
	w.clock.Step(burstDelay)
	step(true)
	step(false)
	wakes()
	if _, known, err := w.opts.Store.Unit(t.Context(), wake.UnitName(w.unit("api"))); err != nil || !known {
		t.Errorf("what a step ran was looked at: %t, %v", known, err)
	}
}
