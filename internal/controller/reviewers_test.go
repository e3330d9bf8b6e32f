package controller

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/world/emulator"
)

const requestReviews = "request reviews of"

// TestReviewersAreRequested holds that the people whom an approvals gate names are requested on the
// forge with one call and once. People who remove the request aren't asked again, and reviewers of
// a release are asked about the next.
func TestReviewersAreRequested(t *testing.T) {
	for name, c := range listKindsOfUnit() {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, c.spec, "    - {name: qa, after: [dev], merge: auto, gates: [{approvals: {count: 2, from: {users: [ada, linus, grace], teams: [acme/sre]}}}], verify: "+quickly+"}\n", c.components...)
			w.must(w.forge.SetTeam("acme/sre", "", "ada"))
			requested := func(what string, calls int, want ...string) {
				t.Helper()
				for range 2 {
					w.must(w.run(wake.ForPull(w.repo.ID, w.pulls()[0].Number)))
					looks := 0
					w.settle(c.key, "it was looked at", func() bool { looks++; return looks > 2 })
				}
				p := w.pulls()[0]
				slices.Sort(p.Requested)
				if !p.Open || len(w.pulls()) != 1 || !slices.Equal(p.Requested, want) {
					t.Errorf("%s: requested are %q, want %q", what, p.Requested, want)
				}
				if n := w.callsFor(requestReviews); n != calls {
					t.Errorf("%s: %d calls, want %d", what, n, calls)
				}
			}
			p := w.openOne(c.key, "2.0.0", c.components...)
			requested("opened", 1, "acme/sre", "ada", "grace") // linus made it
			w.must(w.forge.RemoveReviewRequest(repoName, p.Number, "grace", "grace"))
			requested("grace took herself off", 1, "acme/sre", "ada")
			w.must(w.forge.RequestChanges(repoName, p.Number, "ada", "not on a Friday"))
			requested("ada asks for changes", 1)
			w.release("3.0.0", c.components...)
			w.settle(c.key, "it is about the next release", func() bool { return strings.Contains(w.pulls()[0].Title, "3.0.0") })
			requested("the next release", 2, "ada")
			w.must(w.forge.Approve(repoName, p.Number, "ada"))
			requested("ada approves", 2)
		})
	}
}

// TestReviewersThatCannotBeRequested holds that a name which the forge doesn't take keeps nothing
// from being opened, nor the others from being asked, and is said where it waits.
func TestReviewersThatCannotBeRequested(t *testing.T) {
	w := newFixture(t, "", "    - {name: qa, after: [dev], merge: auto, gates: [{approvals: {count: 1, from: {users: [zed, grace], teams: [other/sre]}}}], verify: "+quickly+"}\n", "web")
	w.must(w.forge.SetTeam("other/sre", "", "ada"))
	p := w.openOne("web", "2.0.0", "web")
	const said = "the forge takes no request for a review from other/sre (it is no team of acme), zed (Reviews may only be requested from collaborators)"
	w.settle("web", "it is said", func() bool {
		return slices.ContainsFunc(w.pulls()[0].Comments, func(c emulator.Comment) bool { return strings.Contains(c.Body, "takes no request for a review") })
	})
	if got := w.gateResult("web", "approvals").Reason; !strings.Contains(got, said) {
		t.Errorf("the gate says %s", got)
	}
	if got := w.pulls()[0].Requested; !slices.Equal(got, []string{"grace"}) {
		t.Errorf("requested are %q", got)
	}
	calls := w.callsFor(requestReviews)
	if calls != 1 {
		t.Errorf("%d calls", calls)
	}
	w.clock.Step(time.Minute)
	w.must(w.run(wake.ForPull(w.repo.ID, p.Number)))
	w.settle("web", "it was looked at", func() bool { return true })
	if n := w.callsFor(requestReviews); n != calls {
		t.Errorf("%d calls more", n-calls)
	}
	// A retry tries those again, and nobody else.
	_, err := w.command("grace", p.Number, "web", command.Command{Verb: command.Retry, Environment: "qa"})
	w.must(err)
	w.settle("web", "they are tried again", func() bool { return w.callsFor(requestReviews) > calls })
	if got := w.gateResult("web", "approvals").Reason; !strings.Contains(got, said) || !slices.Equal(w.pulls()[0].Requested, []string{"grace"}) {
		t.Errorf("after a retry the gate says %s, requested are %q", got, w.pulls()[0].Requested)
	}
	w.must(w.forge.Approve(repoName, p.Number, "grace"))
	w.settle("web", "it is merged", func() bool { w.must(w.run(wake.ForPull(w.repo.ID, p.Number))); return w.pulls()[0].Merged })
}

// TestARevertDoesNotWaitForReviewRequests has a forge fail requests for reviews, such as those from
// a team that it chokes on. They keep no revert of the same environment from being opened, and are
// made when the forge doesn't fail any more.
func TestARevertDoesNotWaitForReviewRequests(t *testing.T) {
	for name, c := range listKindsOfUnit() {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, c.spec, "    - {name: qa, after: [dev], merge: auto, gates: [{approvals: {count: 1, from: {users: [ada]}}}], verify: "+quickly+"}\n", c.components...)
			first := w.openOne(c.key, "2.0.0", c.components...)
			w.must(w.forge.Approve(repoName, first.Number, "ada"))
			w.settle(c.key, "it is merged", func() bool { w.must(w.run(wake.ForPull(w.repo.ID, first.Number))); return w.pulls()[0].Merged })
			w.fail(requestReviews, forge.ErrRetryable)
			w.release("3.0.0", c.components...)
			look := func(what string, so func() bool) {
				t.Helper()
				for range 30 {
					if err := w.run(wake.ForUnit(w.unit(c.key))); err != nil && !strings.Contains(err.Error(), "request reviews") {
						t.Fatal(err)
					}
					if w.runRepository(); so() {
						return
					}
				}
				t.Fatalf("it never came to that: %s", what)
			}
			look("the next is open", func() bool { return len(w.pulls()) == 2 })
			w.mu.Lock()
			for _, component := range c.components {
				w.health[component+"-qa"] = "Degraded"
			}
			w.mu.Unlock()
			look("a revert is open", func() bool { return len(w.pulls()) == 3 && strings.Contains(w.pulls()[2].Title, "evert") })
			if second := w.pulls()[1]; len(second.Requested) > 0 {
				t.Fatalf("requested are %q in spite of the fault", second.Requested)
			}
			w.failNothing()
			look("the review is requested", func() bool { return slices.Equal(w.pulls()[1].Requested, []string{"ada"}) })
		})
	}
}
