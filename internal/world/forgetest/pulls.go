package forgetest

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
)

const branchA, branchB = "liftlock/shop/qa/web", "liftlock/shop/qa/api"

func testIdentity(t *testing.T, s *fixture) {
	me, err := s.Forge.Me(s.ctx)
	if err != nil || me.Login == "" || me.Bot != s.App {
		t.Errorf("Me: %+v, %v", me, err)
	}
	other, err := s.Reviewer.Me(s.ctx)
	if err != nil || other.Login == me.Login {
		t.Errorf("the second account is %+v, %v", other, err)
	}
	if strings.Contains(s.remote, "@") || !strings.HasSuffix(s.remote, "/"+s.Repo.String()+".git") {
		t.Errorf("CloneURL: %s", s.remote)
	}
	if s.branchTip(t, "main") == "" {
		t.Error("the repository has no branch main")
	}
}

func testCreate(t *testing.T, s *fixture) {
	head := s.pushCommit(t, branchA, "main", "a.txt", "a\n")
	n := forge.NewPullRequest{Title: "qa: web 1 to 2", Body: "a *body*\nof lines", Branch: branchA, Base: "main",
		Labels: []string{"liftlock", "env/qa"}}
	if err := s.Forge.MayOpen(s.ctx, s.Repo); err != nil {
		t.Errorf("where no limit is near: %v", err)
	}
	pr, created, err := s.Forge.CreatePullRequest(s.ctx, s.Repo, n)
	if err != nil || !created {
		t.Fatalf("created %v, %v", created, err)
	}
	for _, p := range []*forge.PullRequest{pr, s.readPull(t, pr.Number)} {
		isAsWanted := p.Title == n.Title && p.Body == n.Body && p.Branch == branchA && p.Base == "main"
		isOpen := p.State == forge.Open && !p.Draft && !p.Fork && p.Head == head
		isOwn := p.Number > 0 && p.Author == s.ownLogin(t) && strings.Join(p.Labels, " ") == "env/qa liftlock"
		if !isAsWanted || !isOpen || !isOwn {
			t.Errorf("got %+v", p)
		}
		hasTimes := !p.CreatedAt.IsZero() && !p.UpdatedAt.IsZero() && p.ClosedAt.IsZero() && p.MergedAt.IsZero()
		if !hasTimes || !strings.Contains(p.URL, "://") || p.MergeCommit != "" {
			t.Errorf("got %+v", p)
		}
	}
	n.Labels = append(n.Labels, "another")
	again, created, err := s.Forge.CreatePullRequest(s.ctx, s.Repo, n)
	if err != nil || created || again.Number != pr.Number || strings.Join(again.Labels, " ") != "another env/qa liftlock" {
		t.Errorf("the second time: %+v, created %v, %v", again, created, err)
	}
	if got := s.readPull(t, pr.Number).Labels; strings.Join(got, " ") != "another env/qa liftlock" {
		t.Errorf("labels are %v", got)
	}
	if all, err := s.Forge.PullRequests(s.ctx, s.Repo, time.Time{}); err != nil || len(all) != 1 {
		t.Errorf("there are %d pull requests, %v", len(all), err)
	}
}

func testCreateWithoutBranch(t *testing.T, s *fixture) {
	_, _, err := s.Forge.CreatePullRequest(s.ctx, s.Repo, forge.NewPullRequest{Title: "T", Branch: "nowhere", Base: "main"})
	if !errors.Is(err, forge.ErrInvalid) && !errors.Is(err, forge.ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

func testUpdate(t *testing.T, s *fixture) {
	pr := s.openPull(t, branchA)
	title, body := "another title", "another body"
	for _, step := range []struct {
		change      forge.PullRequestUpdate
		title, body string
	}{
		{forge.PullRequestUpdate{}, pr.Title, "B"},
		{forge.PullRequestUpdate{Title: &title}, title, "B"},
		{forge.PullRequestUpdate{Body: &body}, title, body},
	} {
		if err := s.Forge.UpdatePullRequest(s.ctx, s.Repo, pr.Number, step.change); err != nil {
			t.Fatal(err)
		}
		if p := s.readPull(t, pr.Number); p.Title != step.title || p.Body != step.body || p.State != forge.Open {
			t.Errorf("got %q %q %s, want %q %q", p.Title, p.Body, p.State, step.title, step.body)
		}
	}
}

func testChangeBase(t *testing.T, s *fixture) {
	pr := s.openPull(t, branchA)
	const other = "another-base"
	s.pushCommit(t, other, "main", "another-base.txt", "x\n")
	for _, base := range []string{other, other, "main"} { // changing it to what it is changes nothing
		if err := s.Forge.UpdatePullRequest(s.ctx, s.Repo, pr.Number, forge.PullRequestUpdate{Base: &base}); err != nil {
			t.Fatal(err)
		}
		if p := s.readPull(t, pr.Number); p.Base != base || p.State != forge.Open || p.Head != pr.Head {
			t.Errorf("got %q %s at %s, want %q", p.Base, p.State, p.Head, base)
		}
	}
}

func testCloseAndReopen(t *testing.T, s *fixture) {
	pr := s.openPull(t, branchA)
	closed, open := forge.Closed, forge.Open
	for range 2 { // closing what is closed changes nothing
		if err := s.Forge.UpdatePullRequest(s.ctx, s.Repo, pr.Number, forge.PullRequestUpdate{State: &closed}); err != nil {
			t.Fatal(err)
		}
	}
	p := s.readPull(t, pr.Number)
	isMerged := !p.MergedAt.IsZero() || p.MergeCommit != ""
	if p.State != forge.Closed || p.ClosedAt.IsZero() || isMerged || p.Head != pr.Head {
		t.Errorf("closed: %+v", p)
	}
	if err := s.Forge.UpdatePullRequest(s.ctx, s.Repo, pr.Number, forge.PullRequestUpdate{State: &open}); err != nil {
		t.Fatal(err)
	}
	if p := s.readPull(t, pr.Number); p.State != forge.Open || !p.ClosedAt.IsZero() {
		t.Errorf("reopened: %+v", p)
	}
	// A closed one isn't found again: a new one is opened.
	if err := s.Forge.UpdatePullRequest(s.ctx, s.Repo, pr.Number, forge.PullRequestUpdate{State: &closed}); err != nil {
		t.Fatal(err)
	}
	next, created, err := s.Forge.CreatePullRequest(s.ctx, s.Repo, forge.NewPullRequest{Title: "T", Branch: branchA, Base: "main"})
	if err != nil || !created || next.Number == pr.Number {
		t.Errorf("opened after a close: %+v, created %v, %v", next, created, err)
	}
}

func testLabels(t *testing.T, s *fixture) {
	pr := s.openPull(t, branchA)
	check := func(want string) {
		t.Helper()
		p := s.readPull(t, pr.Number)
		if got := strings.Join(p.Labels, ","); got != want {
			t.Errorf("labels are %q, want %q", got, want)
		}
		all, err := s.Forge.PullRequests(s.ctx, s.Repo, time.Time{})
		if err != nil || len(all) != 1 || strings.Join(all[0].Labels, ",") != want {
			t.Errorf("in the list: %v, %v", all, err)
		}
	}
	for range 2 { // twice is once
		if err := s.Forge.AddLabels(s.ctx, s.Repo, pr.Number, "liftlock/hold", "env/qa", "two words"); err != nil {
			t.Fatal(err)
		}
	}
	check("env/qa,liftlock/hold,two words")
	for range 2 { // one that isn't there is success
		if err := s.Forge.RemoveLabel(s.ctx, s.Repo, pr.Number, "liftlock/hold"); err != nil {
			t.Fatal(err)
		}
	}
	check("env/qa,two words")
	if err := s.Forge.RemoveLabel(s.ctx, s.Repo, pr.Number, "two words"); err != nil {
		t.Fatal(err)
	}
	check("env/qa")
	if err := s.Forge.AddLabels(s.ctx, s.Repo, pr.Number); err != nil {
		t.Errorf("adding none: %v", err)
	}
	wantKind(t, "labelling what isn't there", s.Forge.AddLabels(s.ctx, s.Repo, 9999, "liftlock"), forge.ErrNotFound)
	wantKind(t, "unlabelling what isn't there", s.Forge.RemoveLabel(s.ctx, s.Repo, 9999, "liftlock"), forge.ErrNotFound)
}

// pullNumbers are pull requests' numbers, in order.
func pullNumbers(list []forge.PullRequest) []int {
	found := []int{}
	for _, p := range list {
		found = append(found, p.Number)
	}
	return found
}

func testByBranch(t *testing.T, s *fixture) {
	find := func(branch string, want ...int) {
		t.Helper()
		list, err := s.Forge.PullRequestsByBranch(s.ctx, s.Repo, branch)
		if err != nil {
			t.Fatal(err)
		}
		if got := pullNumbers(list); !slices.Equal(got, want) {
			t.Errorf("from %s: %v, want %v", branch, got, want)
		}
	}
	find(branchA)
	a := s.openPull(t, branchA)
	find(branchA, a.Number)
	find(branchB)
	b := s.openPull(t, branchB)
	find(branchA, a.Number)
	find(branchB, b.Number)
	closed := forge.Closed
	if err := s.Forge.UpdatePullRequest(s.ctx, s.Repo, a.Number, forge.PullRequestUpdate{State: &closed}); err != nil {
		t.Fatal(err)
	}
	next, _, err := s.Forge.CreatePullRequest(s.ctx, s.Repo, forge.NewPullRequest{Title: "T", Branch: branchA, Base: "main"})
	if err != nil {
		t.Fatal(err)
	}
	find(branchA, next.Number, a.Number)
	// A change of a known one is seen.
	list, err := s.Forge.PullRequestsByBranch(s.ctx, s.Repo, branchA)
	if err != nil || len(list) != 2 || list[0].State != forge.Open || list[1].State != forge.Closed {
		t.Errorf("got %+v, %v", list, err)
	}
	find("liftlock/shop/qa")
}

// testBranchUsedAgain merges one pull request and closes another, uses their branch
// again, and expects of each the head that it was merged or closed with.
func testBranchUsedAgain(t *testing.T, s *fixture) {
	first := s.openPull(t, branchA)
	landed := s.mergePull(t, first, "squash")
	second, created, err := func() (*forge.PullRequest, bool, error) {
		s.pushCommit(t, branchA, "main", "second.txt", "2\n")
		return s.Forge.CreatePullRequest(s.ctx, s.Repo, forge.NewPullRequest{Title: "T", Branch: branchA, Base: "main"})
	}()
	if err != nil || !created {
		t.Fatalf("created %v, %v", created, err)
	}
	closed := forge.Closed
	if err := s.Forge.UpdatePullRequest(s.ctx, s.Repo, second.Number, forge.PullRequestUpdate{State: &closed}); err != nil {
		t.Fatal(err)
	}
	s.pushCommit(t, branchA, "main", "third.txt", "3\n")
	third, created, err := s.Forge.CreatePullRequest(s.ctx, s.Repo, forge.NewPullRequest{Title: "T", Branch: branchA, Base: "main"})
	if err != nil || !created {
		t.Fatalf("created %v, %v", created, err)
	}
	check := func(what string, list []forge.PullRequest, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		heads := map[int]string{}
		for _, p := range list {
			heads[p.Number] = p.Head
		}
		for n, want := range map[int]string{first.Number: first.Head, second.Number: second.Head, third.Number: third.Head} {
			if heads[n] != want {
				t.Errorf("%s: the head of #%d is %s, want %s", what, n, heads[n], want)
			}
		}
	}
	list, err := s.Forge.PullRequestsByBranch(s.ctx, s.Repo, branchA)
	check("by branch", list, err)
	all, err := s.Forge.PullRequests(s.ctx, s.Repo, time.Time{})
	check("in the list", all, err)
	if p := s.readPull(t, first.Number); p.Head != first.Head || p.MergeCommit != landed || p.State != forge.Merged {
		t.Errorf("the first: %+v", p)
	}
	// Merging the first again is success only with its own head.
	commit, err := s.Forge.Merge(s.ctx, s.Repo, forge.MergeRequest{Number: first.Number, Head: first.Head, Method: "squash"})
	if err != nil || commit != landed {
		t.Errorf("merged again: %s, %v; want %s", commit, err, landed)
	}
	_, err = s.Forge.Merge(s.ctx, s.Repo, forge.MergeRequest{Number: first.Number, Head: third.Head, Method: "squash"})
	wantKind(t, "merging the first with another head", err, forge.ErrConflict)
}

func testListSince(t *testing.T, s *fixture) {
	a, b := s.openPull(t, branchA), s.openPull(t, branchB)
	// Forges count in whole seconds: b is changed until that shows.
	var newer *forge.PullRequest
	i := 0
	s.eventually(t, "a later update", func() bool {
		i++
		title := strings.Repeat("!", i)
		if err := s.Forge.UpdatePullRequest(s.ctx, s.Repo, b.Number, forge.PullRequestUpdate{Title: &title}); err != nil {
			t.Fatal(err)
		}
		newer = s.readPull(t, b.Number)
		return newer.UpdatedAt.After(s.readPull(t, a.Number).UpdatedAt)
	})
	for _, c := range []struct {
		name  string
		since time.Time
		want  []int
	}{
		{"everything", time.Time{}, []int{b.Number, a.Number}},
		{"an old time", newer.CreatedAt.Add(-time.Hour), []int{b.Number, a.Number}},
		{"the last update", newer.UpdatedAt, []int{b.Number}},
		{"the future", newer.UpdatedAt.Add(time.Hour), []int{}},
	} {
		list, err := s.Forge.PullRequests(s.ctx, s.Repo, c.since)
		if err != nil {
			t.Fatal(err)
		}
		if got := pullNumbers(list); !slices.Equal(got, c.want) {
			t.Errorf("since %s: %v, want %v", c.name, got, c.want)
		}
	}
}

func testFork(t *testing.T, s *fixture) {
	if s.Fork == nil {
		t.Skip("this world has no forks")
	}
	own := s.openPull(t, branchA)
	forkPull := s.Fork(t, branchA)
	if p := s.readPull(t, forkPull); !p.Fork || p.Branch != branchA || p.State != forge.Open {
		t.Errorf("from the fork: %+v", p)
	}
	if p := s.readPull(t, own.Number); p.Fork {
		t.Errorf("our own: %+v", p)
	}
	list, err := s.Forge.PullRequestsByBranch(s.ctx, s.Repo, branchA)
	if err != nil || !slices.Equal(pullNumbers(list), []int{own.Number}) {
		t.Errorf("by branch: %v, %v; want only #%d", pullNumbers(list), err, own.Number)
	}
	again, created, err := s.Forge.CreatePullRequest(s.ctx, s.Repo, forge.NewPullRequest{Title: "T", Branch: branchA, Base: "main"})
	if err != nil || created || again.Number != own.Number {
		t.Errorf("found %+v, created %v, %v; want #%d", again, created, err, own.Number)
	}
}
