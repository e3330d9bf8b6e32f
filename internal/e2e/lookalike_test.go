//go:build e2e

package e2e

import (
	"testing"

	"code.gitea.io/sdk/gitea"

	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/cause"
)

// Branches that are named like Liftlock's own and aren't: without a pull request,
// with somebody's pull request, and from a fork. None is adopted, none is touched;
// a fork's doesn't even stand in the way.
func TestStrangersBranchIsNotAdopted(t *testing.T) {
	t.Parallel()
	f := repoFixture{components: map[string][]string{"web": {"web"}, "cart": {"cart"}, "mail": {"mail"}}, environments: threeSteps, sets: map[string]string{"shop.yaml": byDirectory}}
	s := startScenario(t, normalCluster, "stranger", f, nil)

	bare := s.pushLookalikeBranch("cart", "6.6.6")
	tipped := s.pushLookalikeBranch("mail", "6.6.6")
	theirs := s.openPullAs(dev, promotionBranch("mail", "qa"))
	fork := s.openForkPull("web", "6.6.6")

	for _, c := range []string{"cart", "mail", "web"} {
		s.pushRelease(c, "dev", "1.1.0")
	}
	s.checkOneEnvironment(s.awaitMerged("web", "qa", "1.1.0", 0), "web", "qa", 1)
	s.awaitState("web", "qa", "1.1.0", promotion.Verified)
	s.awaitReason("cart", "qa", cause.Unmanaged)
	s.awaitReason("mail", "qa", cause.Unmanaged)

	for c, tip := range map[string]string{"cart": bare, "mail": tipped} {
		if got := s.readTag(c, "qa"); got != firstTag {
			t.Errorf("qa's %s has %s", c, got)
		}
		b, _, err := s.cluster.accounts[dev].api.GetRepoBranch(s.cluster.org, s.repo, promotionBranch(c, "qa"))
		s.must(err)
		if b.Commit.ID != tip {
			t.Errorf("the branch %s was moved from %s to %s", promotionBranch(c, "qa"), tip, b.Commit.ID)
		}
		s.checkNoPull(promotionBranch(c, "qa"))
	}
	for _, n := range []int64{theirs.Index, fork.Index} {
		if p := s.getPull(n); p.State != gitea.StateOpen || p.HasMerged {
			t.Errorf("#%d of %s is %s (merged %t); it is not Liftlock's to touch", n, p.Poster.UserName, p.State, p.HasMerged)
		}
	}
}

// pushLookalikeBranch pushes a branch with the name of a promotion into qa.
func (s *scenario) pushLookalikeBranch(component, tag string) string {
	s.Helper()
	commit, err := s.clone.push(s.ctx, s.cluster.accounts[dev], "main", promotionBranch(component, "qa"), "Liftlock-Kind: promotion", map[string]edit{overlayFile(component, "qa"): setTag(component, tag)})
	s.must(err)
	return commit
}

func (s *scenario) openPullAs(login, head string) *gitea.PullRequest {
	s.Helper()
	p, _, err := s.cluster.accounts[login].api.CreatePullRequest(s.cluster.org, s.repo, gitea.CreatePullRequestOption{Head: head, Base: "main", Title: "Promote it", Body: "By hand"})
	s.must(err)
	return p
}

// openForkPull is a pull request from the stranger's fork, from a branch of that name.
func (s *scenario) openForkPull(component, tag string) *gitea.PullRequest {
	s.Helper()
	m := s.cluster.accounts[stranger]
	name := s.prefix
	_, _, err := m.api.CreateFork(s.cluster.org, s.repo, gitea.CreateForkOption{Name: &name})
	s.must(err)
	s.runGit("fetch", "-q", "origin")
	s.runGit("checkout", "-q", "--detach", "origin/main")
	commit, err := s.clone.commitAndPush(s.ctx, m, s.cluster.giteaURL+"/"+m.login+"/"+name+".git", promotionBranch(component, "qa"), "Promote it", map[string]edit{overlayFile(component, "qa"): setTag(component, tag)})
	s.must(err)
	p := s.openPullAs(stranger, stranger+":"+promotionBranch(component, "qa"))
	s.Logf("        %s opens #%d from a fork at %.10s", stranger, p.Index, commit)
	return p
}
