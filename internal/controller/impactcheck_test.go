package controller

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/appset/impact"
	"github.com/liftlock/liftlock/internal/controller/act"
	"github.com/liftlock/liftlock/internal/controller/facts/effects"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/github"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/webhooks"
)

// TestALargeHeadIsRefused holds that a head that brings too much is not kept, and that the pull
// request says so. It isn't fetched again only to be refused again.
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
	if len(now.Comments) != 1 || !strings.Contains(now.Comments[0].Body, "more than 0 MiB that the repository") {
		t.Errorf("it is told in %+v", now.Comments)
	}
	if len(now.Statuses) != 1 || now.Statuses[0].State != "failure" {
		t.Errorf("the status is %+v", now.Statuses)
	}
	if ok, err := w.repo.Mirror.Has(t.Context(), now.Head); ok || err != nil {
		t.Errorf("the head is in the mirror: %t, %v", ok, err)
	}
	w.must(w.forge.SetBranch(fork, "rita", "theirs", "")) // another fetch of it would fail
	calls := w.calls.Load()
	w.must(w.run(wake.ForPull(w.repo.ID, p.Number)))
	if n := w.calls.Load() - calls; n > 2 { // the pull request, and its comments, as one is new
		t.Errorf("looking again took %d calls", n)
	}
}

// TestAPromotionsStatusIsItsOwn holds that a person's pull request at the head of a promotion
// doesn't turn the promotion's commit status into its own. A commit has one, and anybody who reads
// a repository can propose another's commits.
func TestAPromotionsStatusIsItsOwn(t *testing.T) {
	w := newFixture(t, "", manualQA, "web")
	p := w.openOne("web", "1.1.0", "web")
	_, err := w.command("linus", p.Number, "web", command.Command{Verb: command.Hold})
	w.must(err)
	w.must(w.run(wake.ForUnit(w.unit("web"))))
	state := func() string {
		t.Helper()
		all, err := w.repo.Forge.Statuses(t.Context(), w.repo.Name, p.Head)
		w.must(err)
		if len(all) != 1 {
			t.Fatalf("the statuses of its head are %+v", all)
		}
		return string(all[0].State)
	}
	held := state()
	w.must(w.forge.SetBranch(repoName, "linus", "theirs", p.Head))
	theirs, err := w.forge.OpenPull(repoName, "linus", "theirs", "main", "The same", "")
	w.must(err)
	w.reportImpactOf(theirs)
	if got := state(); held == "success" || got != held {
		t.Errorf("the status of a promotion on hold is %q, and with a person's pull request at its head %q", held, got)
	}
	if _, err := w.forge.CommitAs(repoName, "linus", "theirs", "More", map[string]string{"more.txt": "more\n"}); err != nil {
		t.Fatal(err)
	}
	pr := w.reportImpactOf(theirs)
	if all, err := w.repo.Forge.Statuses(t.Context(), w.repo.Name, pr.Head); err != nil || len(all) != 1 || all[0].State != forge.StatusSuccess {
		t.Errorf("with a commit of its own it has the statuses %+v, %v", all, err)
	}
}

// TestAMergeGroupsStatusIsItsOwn holds that a person's pull request at the head of a merge group
// doesn't let the group pass. On other forges a branch of that name is one like any other.
func TestAMergeGroupsStatusIsItsOwn(t *testing.T) {
	for forgeType, want := range map[string]forge.StatusState{webhooks.GitHub: forge.StatusPending, webhooks.GitLab: forge.StatusSuccess} {
		t.Run(forgeType, func(t *testing.T) {
			w := newFixture(t, "", manualQA, "web")
			w.repo.ForgeType = forgeType
			head, err := w.forge.CommitAs(repoName, "linus", "gh-readonly-queue/main/pr-7-x", "Write", map[string]string{"docs.txt": "x\n"})
			w.must(err)
			w.must(w.repo.Forge.SetStatus(t.Context(), w.repo.Name, head, forge.Status{Context: act.StatusContext, State: forge.StatusPending}))
			w.must(w.forge.SetBranch(repoName, "linus", "theirs", head))
			theirs, err := w.forge.OpenPull(repoName, "linus", "theirs", "main", "The same", "")
			w.must(err)
			w.runRepository()
			w.reportImpactOf(theirs)
			all, err := w.repo.Forge.Statuses(t.Context(), w.repo.Name, head)
			w.must(err)
			if len(all) != 1 || all[0].State != want {
				t.Errorf("the statuses of its head are %+v, want %s", all, want)
			}
		})
	}
}

// reportImpactOf writes the report of a change that touches nothing on a person's pull request.
func (f *fixture) reportImpactOf(number int) *forge.PullRequest {
	f.t.Helper()
	pr, err := f.repo.Forge.PullRequest(f.t.Context(), f.repo.Name, number)
	f.must(err)
	f.must(f.reportImpactOn(pr))
	return pr
}

func (f *fixture) reportImpactOn(pr *forge.PullRequest) error {
	snapshot, err := f.opts.Gatherer.Targets.Snapshot(f.t.Context(), f.repo.Repository)
	if err != nil {
		return err
	}
	_, err = f.reportImpact(f.t.Context(), f.repo, pr, snapshot, &effects.ProposedChange{Head: pr.Head}, &effects.ChangeReport{Report: &impact.Report{}})
	return err
}
