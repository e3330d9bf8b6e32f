package forgetest

import (
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/forge"
)

// me is who the driver's credentials belong to.
func me(t *testing.T, s *fixture, f forge.Forge) forge.User {
	t.Helper()
	u, err := f.Me(s.ctx)
	if err != nil || u.ID == 0 {
		t.Fatalf("who are we: %+v, %v", u, err)
	}
	u.Email = "" // which only it is shown
	return u
}

// linkedUser is the account of a commit's contributor with an address.
func linkedUser(t *testing.T, c forge.CommitAuthors, email string) forge.User {
	t.Helper()
	for _, p := range c.Contributors {
		if strings.EqualFold(p.Email, email) {
			return p.User
		}
	}
	t.Errorf("%s doesn't name %s: %+v", c.Commit, email, c.Contributors)
	return forge.User{}
}

// unlinked is an address that belongs to no account.
const unlinked = "somebody@example.com"

func testCommitAuthors(t *testing.T, s *fixture) {
	before := s.branchTip(t, "main")
	reviewer := me(t, s, s.Reviewer)
	shas := s.pushCommits(t, "main",
		[2]string{s.ReviewerEmail, "By an account"},
		[2]string{unlinked, "By nobody known, with others\n\nCo-authored-by: A Reviewer <" + s.ReviewerEmail +
			">\nCo-Authored-By: Ghost <ghost@nowhere.example>"},
	)
	all, err := s.Forge.CommitAuthors(s.ctx, s.Repo, before, shas[1])
	if err != nil || len(all) != 2 || all[0].Commit != shas[0] || all[1].Commit != shas[1] {
		t.Fatalf("the authors of a push: %+v, %v", all, err)
	}
	if u := linkedUser(t, all[0], s.ReviewerEmail); u != reviewer {
		t.Errorf("the account of an author is %+v, want %+v", u, reviewer)
	}
	for email, want := range map[string]forge.User{s.ReviewerEmail: reviewer, unlinked: {}, "ghost@nowhere.example": {}} {
		if u := linkedUser(t, all[1], email); u != want {
			t.Errorf("the account of %s is %+v, want %+v", email, u, want)
		}
	}
	listed, err := s.Forge.Commits(s.ctx, s.Repo, before, shas[1])
	if err != nil || len(listed) != 2 || listed[0].SHA != shas[0] || listed[1].SHA != shas[1] {
		t.Fatalf("the commits of a push: %+v, %v", listed, err)
	}
	for i, subject := range []string{"By an account", "By nobody known, with others"} {
		if c := listed[i]; c.Author == "" || c.At.IsZero() || strings.Split(strings.TrimSpace(c.Message), "\n")[0] != subject {
			t.Errorf("the commit %q is %+v", subject, c)
		}
	}
	_, err = s.Forge.Commits(s.ctx, s.Repo, before, strings.Repeat("0123456789", 4))
	wantKind(t, "the commits up to one that isn't there", err, forge.ErrNotFound)
	if there, err := s.Forge.Commits(s.ctx, s.Repo, shas[1], before); err != nil || len(there) != 0 {
		t.Errorf("an older commit has what a newer one hasn't: %+v, %v", there, err)
	}
	// A commit by itself: what another commit of the push said doesn't help.
	one, err := s.Forge.CommitAuthors(s.ctx, s.Repo, "", shas[1])
	if err != nil || len(one) != 1 || one[0].Commit != shas[1] {
		t.Fatalf("the authors of one commit: %+v, %v", one, err)
	}
	if u := linkedUser(t, one[0], s.ReviewerEmail); u != reviewer {
		t.Errorf("the account of a co-author is %+v, want %+v", u, reviewer)
	}
	_, err = s.Forge.CommitAuthors(s.ctx, s.Repo, "", strings.Repeat("0123456789", 4))
	wantKind(t, "a commit that isn't there", err, forge.ErrNotFound)
}

// testMergedPull says who opened and who merged what landed, whatever the method.
func testMergedPull(t *testing.T, s *fixture, method string) {
	bot, reviewer := me(t, s, s.Forge), me(t, s, s.Reviewer)
	s.pushCommit(t, branchA, "main", "one.txt", "one\n")
	head := s.pushCommits(t, branchA, [2]string{s.ReviewerEmail, "Another"})[0]
	pr, _, err := s.Reviewer.CreatePullRequest(s.ctx, s.Repo, forge.NewPullRequest{Title: "T", Branch: branchA, Base: "main"})
	if err != nil {
		t.Fatal(err)
	}
	landed := s.mergePull(t, pr, method)
	list, err := s.Forge.MergedPullRequests(s.ctx, s.Repo, landed)
	if err != nil || len(list) != 1 {
		t.Fatalf("the pull requests of what landed: %+v, %v", list, err)
	}
	p := list[0]
	isIt := p.Number == pr.Number && p.MergeCommit == landed && p.Base == "main" && p.State == forge.Merged
	isTheirs := p.Author == reviewer.Login && p.AuthorID == reviewer.ID && p.MergedBy == bot.Login && p.MergedByID == bot.ID
	if !isIt || !isTheirs {
		t.Errorf("the pull request that landed: %+v", p)
	}
	all, err := s.Forge.PullRequestAuthors(s.ctx, s.Repo, &list[0])
	if err != nil || len(all) != 2 {
		t.Fatalf("the authors of a merged pull request: %+v, %v", all, err)
	}
	for _, c := range all {
		if c.Commit == head {
			if u := linkedUser(t, c, s.ReviewerEmail); u != reviewer {
				t.Errorf("the account of an author is %+v, want %+v", u, reviewer)
			}
		} else if u := linkedUser(t, c, unlinked); u != (forge.User{}) {
			t.Errorf("an unknown address belongs to %+v", u)
		}
	}
	direct := s.pushCommits(t, "main", [2]string{unlinked, "Direct"})[0]
	if list, err := s.Forge.MergedPullRequests(s.ctx, s.Repo, direct); err != nil || len(list) != 0 {
		t.Errorf("the pull requests of a pushed commit: %+v, %v", list, err)
	}
}

func testPushes(t *testing.T, s *fixture) {
	bot, reviewer := me(t, s, s.Forge), me(t, s, s.Reviewer)
	before := s.branchTip(t, "main")
	s.pushCommit(t, branchA, "main", "elsewhere.txt", "another branch's\n")
	s.pusher = s.Reviewer
	// Under an administrator's name: who pushed is another matter.
	after := s.pushCommits(t, "main", [2]string{unlinked, "One"}, [2]string{unlinked, "Two"})[1]
	s.pusher = s.Forge
	last := s.pushCommits(t, "main", [2]string{s.ReviewerEmail, "Three"})[0]
	var seen []forge.Push
	s.eventually(t, "the pushes", func() bool {
		seen = nil
		err := s.Forge.Pushes(s.ctx, s.Repo, "main", func(p forge.Push) bool {
			seen = append(seen, p)
			return p.After == after
		})
		if err != nil {
			t.Fatal(err)
		}
		return len(seen) > 1
	})
	if len(seen) != 2 || seen[0] != (forge.Push{Before: after, After: last, By: bot}) ||
		seen[1] != (forge.Push{Before: before, After: after, By: reviewer}) {
		t.Errorf("the pushes to main: %+v", seen)
	}
	all := 0
	if err := s.Forge.Pushes(s.ctx, s.Repo, "no-such-branch", func(forge.Push) bool { all++; return false }); err != nil || all != 0 {
		t.Errorf("the pushes to a branch that isn't there: %d, %v", all, err)
	}
}

// testPushers finds who pushed the commits of a merged pull request behind more moves of its
// branch than the forge lists at once.
func testPushers(t *testing.T, s *fixture) {
	if s.MoveBranch == nil {
		t.Skip("the world can't move branches, or the forge doesn't say who did")
	}
	bot, reviewer := me(t, s, s.Forge), me(t, s, s.Reviewer)
	main := s.branchTip(t, "main")
	s.pusher = s.Reviewer
	first := s.pushCommit(t, branchA, "main", "one.txt", "one\n") // under another's name
	s.pusher = s.Forge
	second := s.pushCommits(t, branchA, [2]string{s.ReviewerEmail, "Two"})[0]
	pr, _, err := s.Forge.CreatePullRequest(s.ctx, s.Repo, forge.NewPullRequest{Title: "T", Branch: branchA, Base: "main"})
	if err != nil {
		t.Fatal(err)
	}
	landed := s.mergePull(t, pr, "merge")
	for i := range 110 {
		s.MoveBranch(t, branchA, []string{main, landed}[i%2])
	}
	pr = s.readPull(t, pr.Number)
	var pushers map[string]forge.User
	s.eventually(t, "who pushed", func() bool {
		all, err := s.Forge.PullRequestAuthors(s.ctx, s.Repo, pr)
		if err != nil {
			t.Fatal(err)
		}
		pushers = map[string]forge.User{}
		for _, c := range all {
			pushers[c.Commit] = c.Pusher
		}
		return pushers[first] != forge.User{}
	})
	if len(pushers) != 2 || pushers[first] != reviewer || pushers[second] != bot {
		t.Errorf("the commits were pushed by %+v", pushers)
	}
}
