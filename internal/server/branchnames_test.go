package server_test

import (
	"net/url"
	"os/exec"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/world/emulator"
)

// TestForksBranchOfOurName has an account without any right open a pull request from a fork's
// branch that is named as a promotion's. It keeps no promotion from being opened, approved and
// merged, with the database and without.
func TestForksBranchOfOurName(t *testing.T) {
	eachFace(t, func(t *testing.T, face emulator.Face) {
		s := startHarness(t, harnessOptions{face: face, access: map[string]emulator.Permission{"mallory": emulator.Read}})
		s.awaitJudged()
		fork, err := s.Forge.Fork(repoName, "mallory")
		s.must("fork the repository", err)
		var theirs []int
		for _, env := range []string{"qa", "prod"} {
			branch := promotion.Branch("shop", env, "web")
			_, err = s.Forge.CommitAs(fork, "mallory", branch, "Promote web", map[string]string{overlayPath("web", env) + "/kustomization.yaml": "images: []\n"})
			s.must("push to the fork", err)
			n, err := s.Forge.OpenPullFrom(repoName, "mallory", fork, branch, "main", "Promote web to "+env+": 1.1.0")
			s.must("open a pull request", err)
			theirs = append(theirs, n)
		}
		s.awaitIdle()
		p := s.releaseToProd("1.1.0")
		s.deleteDatabase()
		s.start()
		s.awaitJudged()
		s.approve(p.Number, "ada")
		s.approve(p.Number, "grace")
		s.awaitMerged(p.Number)
		for _, n := range theirs {
			if now := s.readPull(n); !now.Open || now.Merged || len(now.Labels) > 0 {
				t.Errorf("#%d of the fork was touched: %+v", n, now)
			}
		}
	})
}

// pushRef pushes a commit to any ref, as an account.
func (ha *harness) pushRef(login, commit, ref string) {
	ha.t.Helper()
	to, err := url.Parse(ha.Forge.CloneURL(repoName))
	ha.must("read the forge's address", err)
	to.User = url.UserPassword(login, "token-of-"+login)
	dir, err := ha.Forge.GitDir(repoName)
	ha.must("find the repository", err)
	cmd := exec.Command("git", "push", "-q", to.String(), commit+":"+ref)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		ha.t.Fatalf("push %s: %v\n%s", ref, err, out)
	}
}

// TestTagsNamedAsBranches has a writer push tags, and branches with the names of refs, that are
// called as the tracked branch and as a promotion's. Liftlock reads, composes and merges the
// branches.
func TestTagsNamedAsBranches(t *testing.T) {
	s := startHarness(t, harnessOptions{})
	s.awaitJudged()
	evil := s.editTagOn("linus", "evil", "web", "prod", "6.6.6")
	for _, ref := range []string{"refs/tags/main", "refs/tags/heads/main", "refs/tags/origin/main", "refs/heads/refs/heads/main", "refs/heads/heads/main", "refs/heads/tags/main",
		"refs/tags/" + promotion.Branch("shop", "prod", "web"), "refs/tags/" + promotion.Branch("shop", "qa", "web"), "refs/tags/liftlock-state"} {
		s.pushRef("linus", evil, ref)
	}
	p := s.releaseToProd("1.1.0")
	s.approve(p.Number, "ada")
	s.approve(p.Number, "grace")
	s.awaitMerged(p.Number)
	s.awaitVerified("web", "prod", "1.1.0")
	head, err := s.Forge.Head(repoName, "main")
	s.must("read main", err)
	text, _, err := s.Forge.File(repoName, head, overlayPath("web", "prod")+"/kustomization.yaml")
	if err != nil || !strings.Contains(text, "newTag: 1.1.0") {
		t.Errorf("prod has (%v)\n%s", err, text)
	}
}

// TestBranchInTheWayOfHolds has a writer push a branch below the one that has the holds, so that
// none can be written. Nothing is merged past a hold that was given and isn't written yet, and it
// is once the branch is gone.
func TestBranchInTheWayOfHolds(t *testing.T) {
	s := startHarness(t, harnessOptions{})
	p := s.releaseToProd("1.1.0")
	head, err := s.Forge.Head(repoName, "main")
	s.must("read main", err)
	const inTheWay = "liftlock-state/x"
	s.must("push a branch", s.Forge.SetBranch(repoName, "linus", inTheWay, head))
	id := s.addComment(p.Number, "ada", "/liftlock hold component the database is moving")
	s.waitFor("the hold can't be written", func() (bool, string) { return s.countLogged("a run failed and is tried again") > 0, "" })
	s.approve(p.Number, "ada")
	s.approve(p.Number, "grace")
	s.awaitIdle()
	if s.readPull(p.Number).Merged {
		t.Fatal("it was merged past a hold")
	}
	s.must("delete the branch", s.Forge.SetBranch(repoName, "linus", inTheWay, ""))
	s.awaitReaction(p.Number, id, "+1")
	s.awaitReason("web", "prod", "the database is moving")
	s.awaitIdle()
	if s.readPull(p.Number).Merged {
		t.Error("it was merged while it was held")
	}
}
