package emulator_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-github/v60/github"

	"github.com/liftlock/liftlock/internal/world/emulator"
)

func TestPulls_create(t *testing.T) {
	w := newForgeHarness(t, emulator.RepoOptions{})
	head := w.commitFiles("topic", map[string]string{"web/qa.yaml": "tag: 2\n"})
	create := func(login, branch, base string) (*github.PullRequest, error) {
		p, _, err := w.clientOf(login).PullRequests.Create(w.ctx, "acme", "fleet", &github.NewPullRequest{
			Title: github.String("Promote"), Head: &branch, Base: &base, Body: github.String("why"),
		})
		return p, err
	}
	p, err := create("liftlock", "topic", "main")
	w.must(err)
	if p.GetNumber() != 1 || p.GetHead().GetSHA() != head || p.GetHead().GetRef() != "topic" || p.GetBase().GetRef() != "main" ||
		p.GetUser().GetLogin() != "liftlock" || p.GetState() != "open" || p.GetBody() != "why" || p.GetHead().GetRepo().GetFullName() != repo {
		t.Errorf("opened: %v", p)
	}
	_, err = create("liftlock", "topic", "main")
	wantRefused(t, err, 422, "A pull request already exists for acme:topic.")
	_, err = create("liftlock", "missing", "main")
	wantRefused(t, err, 422, "PullRequest head invalid")
	_, err = create("liftlock", "topic", "missing")
	wantRefused(t, err, 422, "PullRequest base invalid")
	w.must(w.SetBranch(repo, "grace", "empty", branchHead(t, w, "main")))
	_, err = create("liftlock", "empty", "main")
	wantRefused(t, err, 422, "No commits between main and empty")
	_, err = create("mallory", "topic", "main")
	wantRefused(t, err, 404, "Not Found")
}

func branchHead(t *testing.T, w *forgeHarness, branch string) string {
	t.Helper()
	sha, err := w.Head(repo, branch)
	w.must(err)
	return sha
}

func TestPulls_list(t *testing.T) {
	w := newForgeHarness(t, emulator.RepoOptions{})
	for i := range 5 {
		w.openPullRequest(fmt.Sprintf("b%d", i+1))
		w.clock.Add(time.Minute)
	}
	w.must(w.ClosePull(repo, 2, "ada"))
	w.clock.Add(time.Minute)
	_, err := w.Comment(repo, 1, "ada", "hello")
	w.must(err)
	list := func(o github.PullRequestListOptions) (numbers []int) {
		t.Helper()
		for {
			page, res, err := w.clientOf("liftlock").PullRequests.List(w.ctx, "acme", "fleet", &o)
			w.must(err)
			for _, p := range page {
				numbers = append(numbers, p.GetNumber())
			}
			if res.NextPage == 0 {
				return numbers
			}
			o.Page = res.NextPage
		}
	}
	for _, c := range []struct {
		name string
		o    github.PullRequestListOptions
		want []int
	}{
		{"open ones, newest first", github.PullRequestListOptions{}, []int{5, 4, 3, 1}},
		{"closed ones", github.PullRequestListOptions{State: "closed"}, []int{2}},
		{"over pages", github.PullRequestListOptions{State: "all", ListOptions: github.ListOptions{PerPage: 2}}, []int{5, 4, 3, 2, 1}},
		{"by update", github.PullRequestListOptions{State: "all", Sort: "updated", Direction: "desc"}, []int{1, 2, 5, 4, 3}},
		{"by head", github.PullRequestListOptions{State: "all", Head: "acme:b2"}, []int{2}},
		{"a head without an owner is ignored", github.PullRequestListOptions{State: "all", Head: "b2"}, []int{5, 4, 3, 2, 1}},
		{"by another base", github.PullRequestListOptions{Base: "release"}, nil},
	} {
		if got := list(c.o); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestPulls_mergeabilityIsComputedLate(t *testing.T) {
	w := newForgeHarness(t, emulator.RepoOptions{})
	n := w.openPullRequest("topic")
	c := w.clientOf("liftlock")
	look := func() *github.PullRequest {
		p, _, err := c.PullRequests.Get(w.ctx, "acme", "fleet", n)
		w.must(err)
		return p
	}
	if p := look(); p.Mergeable != nil || p.GetMergeableState() != "unknown" {
		t.Errorf("first: %v %s, want unknown", p.Mergeable, p.GetMergeableState())
	}
	if p := look(); !p.GetMergeable() || p.GetMergeableState() != "clean" || p.GetMergeCommitSHA() == "" || p.GetMerged() {
		t.Errorf("then: %v %s %s, want clean with a test merge's commit", p.Mergeable, p.GetMergeableState(), p.GetMergeCommitSHA())
	}
	w.must(w.SetStatus(repo, "liftlock", branchHead(t, w, "topic"), emulator.Status{Context: "liftlock", State: "pending"}))
	if p := look(); p.GetMergeableState() != "unstable" {
		t.Errorf("with a pending status: %s, want unstable", p.GetMergeableState())
	}
	w.must(w.Protect(repo, "main", emulator.Protection{Approvals: 1}))
	if p := look(); p.GetMergeableState() != "blocked" {
		t.Errorf("without the approval it needs: %s, want blocked", p.GetMergeableState())
	}
	w.commitFiles("main", map[string]string{"web/qa.yaml": "tag: other\n"})
	if p := look(); p.GetMergeableState() != "unknown" {
		t.Errorf("after its base moved: %s, want unknown", p.GetMergeableState())
	}
	if p := look(); p.GetMergeable() || p.GetMergeableState() != "dirty" {
		t.Errorf("then: %v %s, want dirty", p.Mergeable, p.GetMergeableState())
	}
}

func TestPulls_merge(t *testing.T) {
	for _, method := range []string{"merge", "squash", "rebase"} {
		t.Run(method, func(t *testing.T) {
			w := newForgeHarness(t, emulator.RepoOptions{})
			n := w.openPullRequest("topic")
			w.commitFiles("topic", map[string]string{"web/new.yaml": "tag: 1\n"})
			base := w.commitFiles("main", map[string]string{"web/dev.yaml": "tag: 3\n"})
			head := branchHead(t, w, "topic")
			res, _, err := w.clientOf("liftlock").PullRequests.Merge(w.ctx, "acme", "fleet", n, "body\n\nLiftlock-Kind: promotion",
				&github.PullRequestOptions{SHA: head, MergeMethod: method, CommitTitle: "Promote web"})
			w.must(err)
			if !res.GetMerged() || res.GetSHA() != branchHead(t, w, "main") {
				t.Fatalf("merged: %v; main is %s", res, branchHead(t, w, "main"))
			}
			c, _, err := w.clientOf("liftlock").Repositories.GetCommit(w.ctx, "acme", "fleet", res.GetSHA(), nil)
			w.must(err)
			parents := map[string]int{"merge": 2, "squash": 1, "rebase": 1}[method]
			if len(c.Parents) != parents || (parents == 2) != (c.Parents[0].GetSHA() == base && len(c.Parents) == 2) && method == "merge" {
				t.Errorf("parents: %v", c.Parents)
			}
			if method != "rebase" && (!strings.HasPrefix(c.GetCommit().GetMessage(), "Promote web\n\nbody") || !strings.HasSuffix(c.GetCommit().GetMessage(), "promotion")) {
				t.Errorf("message: %q", c.GetCommit().GetMessage())
			}
			want := map[string]string{"merge": "liftlock", "squash": "liftlock", "rebase": "grace"}[method]
			if c.GetAuthor().GetLogin() != want {
				t.Errorf("the author is %s, want %s", c.GetAuthor().GetLogin(), want)
			}
			for path, content := range map[string]string{"web/dev.yaml": "tag: 3\n", "web/qa.yaml": "tag: topic\n", "web/new.yaml": "tag: 1\n"} {
				if got, _, err := w.File(repo, "main", path); err != nil || got != content {
					t.Errorf("%s on main is %q (%v), want %q", path, got, err, content)
				}
			}
			p, _, err := w.clientOf("liftlock").PullRequests.Get(w.ctx, "acme", "fleet", n)
			w.must(err)
			if !p.GetMerged() || p.GetState() != "closed" || p.GetMergedBy().GetLogin() != "liftlock" || p.GetMergeCommitSHA() != res.GetSHA() || p.MergedAt == nil {
				t.Errorf("afterwards: %v", p)
			}
			brought, _, err := w.clientOf("liftlock").PullRequests.ListPullRequestsWithCommit(w.ctx, "acme", "fleet", res.GetSHA(), nil)
			w.must(err)
			if len(brought) != 1 || brought[0].GetNumber() != n {
				t.Errorf("pull requests of the commit: %v", brought)
			}
		})
	}
}

func TestPulls_mergeIsRefused(t *testing.T) {
	for _, c := range []struct {
		name   string
		o      emulator.RepoOptions
		before func(w *forgeHarness, n int)
		sha    string
		method string
		status int
		words  string
	}{
		{name: "another head", sha: strings.Repeat("1", 40), status: 409, words: "Head branch was modified. Review and try the merge again."},
		{name: "a conflict", before: func(w *forgeHarness, n int) { w.commitFiles("main", map[string]string{"web/qa.yaml": "tag: x\n"}) },
			status: 405, words: "Pull Request is not mergeable"},
		{name: "a conflict in a rebase", method: "rebase", before: func(w *forgeHarness, n int) { w.commitFiles("main", map[string]string{"web/qa.yaml": "tag: x\n"}) },
			status: 405, words: "This branch can't be rebased"},
		{name: "closed", before: func(w *forgeHarness, n int) { w.must(w.ClosePull(repo, n, "ada")) }, status: 405, words: "Pull Request is not mergeable"},
		{name: "too few approvals", before: func(w *forgeHarness, n int) {
			w.must(w.Protect(repo, "main", emulator.Protection{Approvals: 2}))
			w.must(w.Approve(repo, n, "ada"))
		}, status: 405, words: "At least 2 approving reviews are required by reviewers with write access."},
		{name: "changes requested", before: func(w *forgeHarness, n int) {
			w.must(w.Protect(repo, "main", emulator.Protection{Approvals: 1}))
			w.must(w.Approve(repo, n, "ada"))
			w.must(w.RequestChanges(repo, n, "linus", "no"))
		}, status: 405, words: "Changes have been requested"},
		{name: "a check that isn't there", before: func(w *forgeHarness, n int) {
			w.must(w.Protect(repo, "main", emulator.Protection{Contexts: []string{"ci/test"}}))
		}, status: 405, words: `Required status check "ci/test" is expected.`},
		{name: "behind, where that counts", before: func(w *forgeHarness, n int) {
			w.must(w.Protect(repo, "main", emulator.Protection{Strict: true}))
			w.commitFiles("main", map[string]string{"x": "y"})
		}, status: 405, words: "not up to date"},
		{name: "commits without a signature, where one is required", before: func(w *forgeHarness, n int) {
			w.must(w.Protect(repo, "main", emulator.Protection{Signatures: true, Ruleset: "signed", Bypass: []string{"ada"}}))
		}, status: 405, words: "Commits must have verified signatures."},
		{name: "a method that isn't allowed", o: emulator.RepoOptions{Methods: []string{"squash"}}, status: 405, words: "Merge commits are not allowed on this repository."},
		{name: "injected", before: func(w *forgeHarness, n int) {
			w.must(w.InjectFault(emulator.Fault{Method: "PUT", Path: "/merge$", Status: 405, Body: `{"message":"Base branch was modified. Review and try the merge again."}`}))
		}, status: 405, words: "Base branch was modified"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newForgeHarness(t, c.o)
			n := w.openPullRequest("topic")
			if c.before != nil {
				c.before(w, n)
			}
			before := branchHead(t, w, "main")
			_, _, err := w.clientOf("liftlock").PullRequests.Merge(w.ctx, "acme", "fleet", n, "", &github.PullRequestOptions{SHA: c.sha, MergeMethod: c.method})
			wantRefused(t, err, c.status, c.words)
			if branchHead(t, w, "main") != before {
				t.Error("main moved all the same")
			}
		})
	}
}

// TestPulls_bypass: who may bypass a ruleset merges whatever it asks for.
func TestPulls_bypass(t *testing.T) {
	w := newForgeHarness(t, emulator.RepoOptions{})
	n := w.openPullRequest("topic")
	w.must(w.Protect(repo, "main", emulator.Protection{Approvals: 2, Ruleset: "main", Bypass: []string{"liftlock"}}))
	if _, err := w.MergePull(repo, n, "ada", "merge"); err == nil {
		t.Error("somebody else merged")
	}
	_, err := w.MergePull(repo, n, "liftlock", "merge")
	w.must(err)
}

func TestPulls_requirementsMet(t *testing.T) {
	w := newForgeHarness(t, emulator.RepoOptions{DeleteMergedBranches: true})
	n := w.openPullRequest("topic")
	w.must(w.Protect(repo, "main", emulator.Protection{Approvals: 2, Contexts: []string{"ci/test"}, DismissStale: true}))
	w.must(w.Approve(repo, n, "ada"))
	head := w.commitFiles("topic", map[string]string{"more": "1"})
	w.must(w.Approve(repo, n, "grace"))
	w.must(w.SetStatus(repo, "grace", head, emulator.Status{Context: "ci/test", State: "success"}))
	if _, err := w.MergePull(repo, n, "liftlock", "merge"); err == nil {
		t.Error("an approval from before the push still counts")
	}
	w.must(w.Approve(repo, n, "linus"))
	_, err := w.MergePull(repo, n, "liftlock", "merge")
	w.must(err)
	if branchHead(t, w, "topic") != "" {
		t.Error("the branch is still there")
	}
}

func TestPulls_followTheirBranches(t *testing.T) {
	w := newForgeHarness(t, emulator.RepoOptions{})
	n := w.openPullRequest("topic")
	at := func() emulator.PullRequest {
		p, err := w.Pull(repo, n)
		w.must(err)
		return p
	}
	w.clock.Add(time.Minute)
	updated := at().Updated
	if head := w.commitFiles("topic", map[string]string{"more": "1"}); at().Head != head || !at().Updated.After(updated) {
		t.Errorf("after a push: %+v", at())
	}
	before := at().Head
	w.must(w.ClosePull(repo, n, "ada"))
	w.must(w.ReopenPull(repo, n, "ada"))
	w.must(w.SetBranch(repo, "grace", "topic", ""))
	if p := at(); p.Open || p.Merged || p.Head != before {
		t.Errorf("after its branch was deleted: %+v", p)
	}
	_, _, err := w.clientOf("liftlock").PullRequests.Edit(w.ctx, "acme", "fleet", n, &github.PullRequest{State: github.String("open")})
	wantRefused(t, err, 422, "has been deleted")
	w.commitFiles("topic", map[string]string{"another": "1"})
	_, _, err = w.clientOf("liftlock").PullRequests.Edit(w.ctx, "acme", "fleet", n, &github.PullRequest{State: github.String("open")})
	wantRefused(t, err, 422, "force-pushed or recreated")
	w.must(w.SetBranch(repo, "grace", "topic", before))
	w.must(w.ReopenPull(repo, n, "ada"))

	merged := at().Head
	w.must(w.SetBranch(repo, "grace", "main", merged))
	if p := at(); p.Open || !p.Merged || p.MergedBy != "grace" || p.MergeCommit != merged {
		t.Errorf("after somebody pushed it to main: %+v", p)
	}
}

func TestPulls_editAndReview(t *testing.T) {
	w := newForgeHarness(t, emulator.RepoOptions{})
	n := w.openPullRequest("topic")
	c := w.clientOf("liftlock")
	p, _, err := c.PullRequests.Edit(w.ctx, "acme", "fleet", n, &github.PullRequest{Title: github.String("New"), Body: github.String("Text")})
	w.must(err)
	if p.GetTitle() != "New" || p.GetBody() != "Text" {
		t.Errorf("edited: %v", p)
	}
	_, _, err = c.PullRequests.CreateReview(w.ctx, "acme", "fleet", n, &github.PullRequestReviewRequest{Event: github.String("APPROVE")})
	wantRefused(t, err, 422, "Can not approve your own pull request")
	v, _, err := w.clientOf("ada").PullRequests.CreateReview(w.ctx, "acme", "fleet", n, &github.PullRequestReviewRequest{Event: github.String("APPROVE")})
	w.must(err)
	_, _, err = w.clientOf("ada").PullRequests.DismissReview(w.ctx, "acme", "fleet", n, v.GetID(), &github.PullRequestReviewDismissalRequest{Message: github.String("no")})
	w.must(err)
	_, _, err = w.clientOf("grace").PullRequests.CreateReview(w.ctx, "acme", "fleet", n, &github.PullRequestReviewRequest{Event: github.String("REQUEST_CHANGES"), Body: github.String("hm")})
	w.must(err)
	all, _, err := c.PullRequests.ListReviews(w.ctx, "acme", "fleet", n, nil)
	w.must(err)
	var got []string
	for _, v := range all {
		got = append(got, v.GetUser().GetLogin()+" "+v.GetState()+" "+fmt.Sprint(v.GetCommitID() == branchHead(t, w, "topic")))
	}
	if want := []string{"ada DISMISSED true", "grace CHANGES_REQUESTED true"}; !slices.Equal(got, want) {
		t.Errorf("reviews: %v, want %v", got, want)
	}
}

func TestPulls_fromAFork(t *testing.T) {
	w := newForgeHarness(t, emulator.RepoOptions{})
	w.must(w.Grant(repo, "mallory", emulator.Read))
	fork, err := w.Fork(repo, "mallory")
	w.must(err)
	head, err := w.CommitAs(fork, "mallory", "topic", "Mine", map[string]string{"web/qa.yaml": "tag: 9\n"})
	w.must(err)
	p, _, err := w.clientOf("mallory").PullRequests.Create(w.ctx, "acme", "fleet", &github.NewPullRequest{
		Title: github.String("Mine"), Head: github.String("mallory:topic"), Base: github.String("main"),
	})
	w.must(err)
	if p.GetHead().GetSHA() != head || p.GetHead().GetRepo().GetFullName() != "mallory/fleet" {
		t.Errorf("opened: %v", p.GetHead())
	}
	found, _, err := w.clientOf("liftlock").PullRequests.List(w.ctx, "acme", "fleet", &github.PullRequestListOptions{Head: "acme:topic"})
	w.must(err)
	if len(found) != 0 {
		t.Error("a fork's branch is found as ours")
	}
	head, err = w.CommitAs(fork, "mallory", "topic", "More", map[string]string{"x": "y"})
	w.must(err)
	if p, err := w.Pull(repo, 1); err != nil || p.Head != head {
		t.Errorf("after a push to the fork: %v %v", p, err)
	}
	_, err = w.MergePull(repo, 1, "ada", "merge")
	w.must(err)
}
