//go:build e2e

package e2e

import (
	"testing"

	"code.gitea.io/sdk/gitea"

	"github.com/liftlock/liftlock/internal/promotion"
)

// Branches that are named like Liftlock's own and aren't: without a pull request,
// with somebody's pull request, and from a fork. None is adopted, none is touched;
// a fork's doesn't even stand in the way.
func TestStrangersBranchIsNotAdopted(t *testing.T) {
	t.Parallel()
	f := fleet{components: map[string][]string{"web": {"web"}, "cart": {"cart"}, "mail": {"mail"}}, environments: threeSteps, sets: map[string]string{"shop.yaml": byDirectory}}
	s := begin(t, normal, "stranger", f, nil)

	bare := s.foreignBranch("cart", "6.6.6")
	tipped := s.foreignBranch("mail", "6.6.6")
	theirs := s.pullBy(dev, branch("mail", "qa"))
	fork := s.forkPull("web", "6.6.6")

	for _, c := range []string{"cart", "mail", "web"} {
		s.release(c, "dev", "1.1.0")
	}
	s.oneEnvironment(s.merged("web", "qa", "1.1.0", 0), "web", "qa", 1)
	s.state("web", "qa", "1.1.0", promotion.Verified)
	s.says("cart", "qa", "foreign")
	s.says("mail", "qa", "foreign")

	for c, tip := range map[string]string{"cart": bare, "mail": tipped} {
		if got := s.tag(c, "qa"); got != first {
			t.Errorf("qa's %s has %s", c, got)
		}
		b, _, err := s.w.people[dev].api.GetRepoBranch(s.w.org, s.repo, branch(c, "qa"))
		s.must(err)
		if b.Commit.ID != tip {
			t.Errorf("the branch %s was moved from %s to %s", branch(c, "qa"), tip, b.Commit.ID)
		}
		s.never(branch(c, "qa"))
	}
	for _, n := range []int64{theirs.Index, fork.Index} {
		if p := s.get(n); p.State != gitea.StateOpen || p.HasMerged {
			t.Errorf("#%d of %s is %s (merged %t); it is not Liftlock's to touch", n, p.Poster.UserName, p.State, p.HasMerged)
		}
	}
}

// foreignBranch pushes a branch with the name of a promotion into qa.
func (s *story) foreignBranch(component, tag string) string {
	s.Helper()
	commit, err := s.clone.push(s.ctx, s.w.people[dev], "main", branch(component, "qa"), "Liftlock-Kind: promotion", map[string]edit{overlay(component, "qa"): setTag(component, tag)})
	s.must(err)
	return commit
}

func (s *story) pullBy(login, head string) *gitea.PullRequest {
	s.Helper()
	p, _, err := s.w.people[login].api.CreatePullRequest(s.w.org, s.repo, gitea.CreatePullRequestOption{Head: head, Base: "main", Title: "Promote it", Body: "By hand"})
	s.must(err)
	return p
}

// forkPull is a pull request from the stranger's fork, from a branch of that name.
func (s *story) forkPull(component, tag string) *gitea.PullRequest {
	s.Helper()
	m := s.w.people[stranger]
	name := s.prefix
	_, _, err := m.api.CreateFork(s.w.org, s.repo, gitea.CreateForkOption{Name: &name})
	s.must(err)
	s.gits("fetch", "-q", "origin")
	s.gits("checkout", "-q", "--detach", "origin/main")
	commit, err := s.clone.commitAndPush(s.ctx, m, s.w.gitea+"/"+m.login+"/"+name+".git", branch(component, "qa"), "Promote it", map[string]edit{overlay(component, "qa"): setTag(component, tag)})
	s.must(err)
	p := s.pullBy(stranger, stranger+":"+branch(component, "qa"))
	s.Logf("        %s opens #%d from a fork at %.10s", stranger, p.Index, commit)
	return p
}
