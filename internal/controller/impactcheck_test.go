package controller

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/github"
)

// TestALargeHeadIsRefused holds that a head which brings too much is not kept, that the
// pull request says so, and that it isn't fetched again only to be refused again.
func TestALargeHeadIsRefused(t *testing.T) {
	w := newEmulatedFixture(t, "", manualQA, "web")
	fork, err := w.emulated.Fork(repoName, "rita")
	w.must(err)
	r, text := rand.New(rand.NewPCG(1, 2)), make([]byte, 2*maxRefBytes)
	for i := range text {
		text[i] = byte('!' + r.IntN(90))
	}
	_, err = w.forge.CommitAs(fork, "rita", "theirs", "Large", map[string]string{"apps/web/dev/large": string(text)})
	w.must(err)
	rita, err := github.New(github.Options{URL: w.emulated.URL() + "/api/v3", Token: "token-of-rita"})
	w.must(err)
	p, _, err := rita.CreatePullRequest(t.Context(), w.repo.Name, forge.NewPullRequest{Title: "Large", Branch: "rita:theirs", Base: "main"})
	w.must(err)
	w.must(w.run(wake.ForPull(w.repo.ID, p.Number)))
	now := w.pulls()[0]
	if len(now.Comments) != 1 || !strings.Contains(now.Comments[0].Body, "more than Liftlock fetches") {
		t.Errorf("it is told in %+v", now.Comments)
	}
	if len(now.Statuses) != 1 || now.Statuses[0].State != "failure" {
		t.Errorf("the status is %+v", now.Statuses)
	}
	if ok, err := w.repo.Mirror.Has(t.Context(), now.Head); ok || err != nil {
		t.Errorf("the head is in the mirror: %t, %v", ok, err)
	}
	w.must(w.forge.SetBranch(fork, "rita", "theirs", "")) // whoever fetched it again would fail
	calls := w.calls.Load()
	w.must(w.run(wake.ForPull(w.repo.ID, p.Number)))
	if n := w.calls.Load() - calls; n > 2 { // the pull request, and its comments, as one is new
		t.Errorf("looking again took %d calls", n)
	}
}
