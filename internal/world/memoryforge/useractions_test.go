package memoryforge_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/world/memoryforge"
)

// scene is a forge with one repository and two accounts that may write.
type scene struct {
	*memoryforge.Forge
	t      testing.TB
	repo   forge.Repo
	remote *git.MemoryRemote
	bot    forge.Forge
	clock  func() time.Time
	events []memoryforge.Event
}

func newScene(t testing.TB) *scene {
	t.Helper()
	s := &scene{t: t, repo: forge.Repo{Owner: "acme", Name: "apps"}, remote: newRemote(t), clock: steppingClock()}
	s.Forge = memoryforge.New(memoryforge.Options{Now: s.clock, Bot: botLogin, OnEvent: func(e memoryforge.Event) {
		s.events = append(s.events, e)
		if e.Number != 0 {
			s.read(e.Number) // it may be called
		}
	}})
	s.AddUser(reviewerLogin, 2, false)
	s.AddUser(strangerLogin, 3, false)
	s.AddRepo(s.repo, s.remote, "main")
	allow(t, s.Forge, s.repo, botLogin, forge.PermissionWrite)
	allow(t, s.Forge, s.repo, reviewerLogin, forge.PermissionWrite)
	allow(t, s.Forge, s.repo, strangerLogin, forge.PermissionRead)
	s.bot = s.As(botLogin)
	return s
}

func (s *scene) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) tip(branch string) string {
	sha, _ := s.remote.Head(branch)
	return sha
}

// push makes a commit upon what a branch (or main, where there is none) has, and pushes it.
func (s *scene) push(login, branch, file, content string) string {
	s.t.Helper()
	from := s.tip(branch)
	if from == "" {
		from = s.tip("main")
	}
	sha := writeCommit(s.t, s.remote, s.Ident(login), from, "Change "+file, file, content)
	s.must(s.Push(s.repo, login, branch, sha, false))
	return sha
}

func (s *scene) open(branch string) int {
	s.t.Helper()
	s.push(reviewerLogin, branch, branch+".txt", "1\n")
	number, err := s.OpenPull(s.repo, reviewerLogin, branch, "main", "Add "+branch, "")
	s.must(err)
	return number
}

func (s *scene) read(number int) *forge.PullRequest {
	s.t.Helper()
	pr, err := s.bot.PullRequest(context.Background(), s.repo, number)
	s.must(err)
	return pr
}

// takeEvents gives the events since the last time, in short.
func (s *scene) takeEvents() (short []string) {
	for _, e := range s.events {
		line := fmt.Sprintf("%s %s by %s", e.Kind, e.Action, e.Actor)
		if e.Kind == memoryforge.PushEvent {
			line = fmt.Sprintf("push %s by %s", e.Branch, e.Actor)
		}
		if e.Number != 0 {
			line += fmt.Sprintf(" #%d", e.Number)
		}
		short = append(short, line)
	}
	s.events = nil
	return short
}

func (s *scene) expectEvents(want ...string) {
	s.t.Helper()
	if diff := cmp.Diff(want, s.takeEvents()); diff != "" {
		s.t.Errorf("the events (-want +got):\n%s", diff)
	}
}

func (s *scene) expectKind(what string, err, kind error) {
	s.t.Helper()
	if !errors.Is(err, kind) {
		s.t.Errorf("%s: %v, want one of kind %q", what, err, kind)
	}
}

func TestEvents(t *testing.T) {
	s := newScene(t)
	number := s.open("topic")
	s.expectEvents("push topic by grace", "pull_request opened by grace #1")
	s.push(reviewerLogin, "topic", "topic.txt", "2\n")
	s.expectEvents("push topic by grace", "pull_request synchronize by grace #1")
	id, err := s.Comment(s.repo, number, strangerLogin, "hello")
	s.must(err)
	s.must(s.EditComment(s.repo, id, strangerLogin, "hello!"))
	s.must(s.DeleteComment(s.repo, id, reviewerLogin))
	s.expectEvents("comment created by mallory #1", "comment edited by mallory #1", "comment deleted by grace #1")
	s.must(s.SetLabels(s.repo, number, reviewerLogin, "a", "b"))
	s.must(s.SetLabels(s.repo, number, reviewerLogin, "b"))
	s.expectEvents("pull_request labeled by grace #1", "pull_request labeled by grace #1", "pull_request unlabeled by grace #1")
	s.must(s.Review(s.repo, number, strangerLogin, memoryforge.Approve, ""))
	s.must(s.DismissReviews(s.repo, number, reviewerLogin, strangerLogin))
	s.expectEvents("review submitted by mallory #1", "review dismissed by grace #1")
	s.must(s.EditTitle(s.repo, number, reviewerLogin, "Another"))
	s.must(s.EditBody(s.repo, number, reviewerLogin, "Text"))
	s.must(s.EditBody(s.repo, number, reviewerLogin, "Text"))
	s.expectEvents("pull_request edited by grace #1", "pull_request edited by grace #1")
	s.must(s.Close(s.repo, number, reviewerLogin))
	s.must(s.Reopen(s.repo, number, reviewerLogin))
	s.expectEvents("pull_request closed by grace #1", "pull_request reopened by grace #1")
	s.must(s.bot.SetStatus(context.Background(), s.repo, s.tip("topic"), forge.Status{Context: "ci", State: forge.StatusSuccess}))
	s.expectEvents("status success by " + botLogin)
	_, err = s.MergeByHand(s.repo, number, reviewerLogin, "squash")
	s.must(err)
	s.expectEvents("pull_request closed by grace #1", "push main by grace")
}

func TestMergedByPush(t *testing.T) {
	s := newScene(t)
	number, other := s.open("topic"), s.open("other")
	head := s.read(number).Head
	// Somebody merges on their own machine, and pushes that with one more commit.
	base := s.tip("main")
	tree, conflicts, err := s.remote.Merge(context.Background(), base, head)
	if err != nil || len(conflicts) > 0 {
		t.Fatalf("merging: %v, %v", conflicts, err)
	}
	author := s.Ident(reviewerLogin)
	merge, err := s.remote.Write(context.Background(), git.CommitSpec{
		Parents: []string{base, head}, Base: tree, Message: "Merge topic", Author: &author, When: time.Date(2026, 5, 1, 11, 0, 0, 0, time.UTC),
	})
	s.must(err)
	s.must(s.Push(s.repo, reviewerLogin, "main", writeCommit(t, s.remote, author, merge, "More", "more.txt", "more\n"), false))
	if p := s.read(number); p.State != forge.Merged || p.MergeCommit != merge || p.MergedBy != reviewerLogin {
		t.Errorf("what was merged by a push: %+v", p)
	}
	if p := s.read(other); p.State != forge.Open {
		t.Errorf("another: %+v", p)
	}
	list, err := s.bot.MergedPullRequests(context.Background(), s.repo, head)
	if err != nil || len(list) != 1 || list[0].Number != number {
		t.Errorf("who brought its head: %+v, %v", list, err)
	}
}

func TestBranchesCloseTheirPullRequests(t *testing.T) {
	s := newScene(t)
	deleted, reset, kept := s.open("deleted"), s.open("reset"), s.open("kept")
	head := s.read(deleted).Head
	s.must(s.Push(s.repo, reviewerLogin, "deleted", "", false))
	s.must(s.Push(s.repo, reviewerLogin, "reset", s.tip("main"), true))
	for number, want := range map[int]forge.State{deleted: forge.Closed, reset: forge.Closed, kept: forge.Open} {
		if p := s.read(number); p.State != want {
			t.Errorf("#%d is %s, want %s", number, p.State, want)
		}
	}
	s.expectKind("reopening without a branch", s.Reopen(s.repo, deleted, reviewerLogin), forge.ErrInvalid)
	s.must(s.Push(s.repo, reviewerLogin, "deleted", head, false))
	s.must(s.Reopen(s.repo, deleted, reviewerLogin))
	if p := s.read(deleted); p.State != forge.Open || p.Head != head {
		t.Errorf("reopened: %+v", p)
	}
	s.must(s.Close(s.repo, kept, reviewerLogin))
	s.must(s.Push(s.repo, reviewerLogin, "kept", writeCommit(t, s.remote, s.Ident(reviewerLogin), s.tip("main"), "Anew", "anew.txt", "1\n"), true))
	s.expectKind("reopening what was forced", s.Reopen(s.repo, kept, reviewerLogin), forge.ErrInvalid)
	s.expectKind("deleting the default branch", s.Push(s.repo, reviewerLogin, "main", "", true), forge.ErrInvalid)
	old := s.tip("main")
	s.push(reviewerLogin, "main", "main.txt", "1\n")
	s.expectKind("a push that isn't forced", s.Push(s.repo, reviewerLogin, "main", old, false), forge.ErrConflict)
}

func TestRetarget(t *testing.T) {
	s := newScene(t)
	s.push(reviewerLogin, "side", "side.txt", "1\n")
	number := s.open("change")
	if err := s.Retarget(s.repo, number, strangerLogin, "side"); !errors.Is(err, forge.ErrForbidden) {
		t.Errorf("a stranger: %v", err)
	}
	if err := s.Retarget(s.repo, number, reviewerLogin, "nowhere"); !errors.Is(err, forge.ErrInvalid) {
		t.Errorf("to a branch that isn't there: %v", err)
	}
	s.must(s.Retarget(s.repo, number, reviewerLogin, "side"))
	main := s.tip("main")
	landed, err := s.MergeByHand(s.repo, number, reviewerLogin, "merge")
	s.must(err)
	if pr := s.read(number); pr.Base != "side" || pr.MergeCommit != landed || s.tip("side") != landed || s.tip("main") != main {
		t.Errorf("it landed as %s, side is at %s and main at %s: %+v", landed, s.tip("side"), s.tip("main"), pr)
	}
	if err := s.Retarget(s.repo, number, reviewerLogin, "main"); !errors.Is(err, forge.ErrInvalid) {
		t.Errorf("a merged one: %v", err)
	}
}

func TestDeletedBaseClosesItsPullRequests(t *testing.T) {
	s := newScene(t)
	s.push(reviewerLogin, "release", "release.txt", "1\n")
	s.push(reviewerLogin, "topic", "topic.txt", "1\n")
	number, err := s.OpenPull(s.repo, reviewerLogin, "topic", "release", "T", "")
	s.must(err)
	s.must(s.Push(s.repo, reviewerLogin, "release", "", false))
	if p := s.read(number); p.State != forge.Closed {
		t.Errorf("it is %s", p.State)
	}
	s.expectKind("reopening onto a branch that is gone", s.Reopen(s.repo, number, reviewerLogin), forge.ErrInvalid)
}

func TestFork(t *testing.T) {
	s := newScene(t)
	first := writeCommit(t, s.remote, s.Ident(strangerLogin), s.tip("main"), "One", "a.txt", "1\n")
	number, err := s.OpenForkPull(s.repo, strangerLogin, "main", first, "main", "From my main", "")
	s.must(err)
	second := writeCommit(t, s.remote, s.Ident(strangerLogin), first, "Two", "a.txt", "2\n")
	s.expectKind("pushing to another's fork", s.PushFork(s.repo, number, reviewerLogin, second), forge.ErrForbidden)
	s.must(s.PushFork(s.repo, number, strangerLogin, second))
	s.push(reviewerLogin, "main", "main.txt", "1\n") // the repository's own main is another branch
	if p := s.read(number); !p.Fork || p.Head != second || p.State != forge.Open {
		t.Errorf("from a fork: %+v", p)
	}
	s.expectEvents("pull_request opened by mallory #1", "pull_request synchronize by mallory #1", "push main by grace")
	landed, err := s.MergeByHand(s.repo, number, reviewerLogin, "merge")
	s.must(err)
	merge, err := s.remote.Commit(context.Background(), landed)
	if err != nil || merge.Subject != "Merge pull request #1 from mallory/main" {
		t.Errorf("the merge is %+v, %v", merge, err)
	}
	// Its pushes went to the fork, which isn't read.
	all, err := s.bot.PullRequestAuthors(context.Background(), s.repo, s.read(number))
	if err != nil || len(all) != 2 || all[1].Pusher != (forge.User{}) {
		t.Errorf("the authors: %+v, %v", all, err)
	}
}

func TestHook(t *testing.T) {
	s := newScene(t)
	allow(t, s.Forge, s.repo, botLogin, forge.PermissionAdmin)
	for _, c := range []struct {
		what, secret string
		changed      bool
	}{{"made", "one", true}, {"as it was", "one", false}, {"with another secret", "two", true}} {
		changed, err := s.bot.EnsureHook(context.Background(), s.repo, forge.Hook{URL: "https://liftlock.example", Secret: c.secret})
		if err != nil || changed != c.changed {
			t.Errorf("%s: changed %t, %v", c.what, changed, err)
		}
	}
}

// TestLimits are GitHub's.
func TestLimits(t *testing.T) {
	s := newScene(t)
	ctx := context.Background()
	number := s.open("topic")
	long := strings.Repeat("x", 65537)
	_, err := s.Comment(s.repo, number, reviewerLogin, long)
	s.expectKind("a long comment", err, forge.ErrInvalid)
	_, err = s.Comment(s.repo, number, reviewerLogin, " \n")
	s.expectKind("an empty comment", err, forge.ErrInvalid)
	s.expectKind("a long text", s.EditBody(s.repo, number, reviewerLogin, long), forge.ErrInvalid)
	s.expectKind("a long label", s.SetLabels(s.repo, number, reviewerLogin, strings.Repeat("x", 51)), forge.ErrInvalid)
	for range 1000 {
		s.must(s.bot.SetStatus(ctx, s.repo, s.tip("topic"), forge.Status{Context: "ci", State: forge.StatusPending}))
	}
	s.expectKind("many statuses", s.bot.SetStatus(ctx, s.repo, s.tip("topic"), forge.Status{Context: "ci", State: forge.StatusPending}), forge.ErrInvalid)
	s.must(s.bot.SetStatus(ctx, s.repo, s.tip("topic"), forge.Status{Context: "another", State: forge.StatusPending}))
	tip := s.tip("topic")
	for i := range forge.MaxCommits {
		tip = writeCommit(t, s.remote, s.Ident(reviewerLogin), tip, "More", "topic.txt", fmt.Sprint(i))
	}
	s.must(s.Push(s.repo, reviewerLogin, "topic", tip, false))
	_, err = s.bot.PullRequestAuthors(ctx, s.repo, s.read(number))
	s.expectKind("the authors of many commits", err, forge.ErrTooMany)
	_, err = s.bot.CommitAuthors(ctx, s.repo, s.tip("main"), tip)
	s.expectKind("the authors of many commits", err, forge.ErrTooMany)
	for i := range forge.MaxPushes {
		s.must(s.Push(s.repo, reviewerLogin, "much", []string{tip, s.tip("main")}[i%2], true))
	}
	all := 0
	count := func(forge.Push) bool { all++; return false }
	s.must(s.bot.Pushes(ctx, s.repo, "much", count))
	s.must(s.Push(s.repo, reviewerLogin, "much", tip, true))
	s.expectKind("many pushes", s.bot.Pushes(ctx, s.repo, "much", count), forge.ErrTooMany)
	if all != 2*forge.MaxPushes {
		t.Errorf("%d pushes were given", all)
	}
}

// TestPushersFarBack holds that the pushers of a pull request's commits are searched as far back as
// moves are read. Where that isn't far enough, that is reported.
func TestPushersFarBack(t *testing.T) {
	s := newScene(t)
	number := s.open("topic")
	head := s.tip("topic")
	before := s.tip("main")
	landed, err := s.MergeByHand(s.repo, number, reviewerLogin, "merge")
	s.must(err)
	for i := range forge.MaxPushes {
		switch i {
		case 0, 110, forge.MaxPushes - 1: // with the push itself as many as are read
			all, err := s.bot.PullRequestAuthors(context.Background(), s.repo, s.read(number))
			if err != nil || len(all) != 1 || all[0].Commit != head || all[0].Pusher.Login != reviewerLogin {
				t.Fatalf("after %d moves: %+v, %v", i, all, err)
			}
		}
		s.must(s.Push(s.repo, botLogin, "topic", []string{landed, before}[i%2], true))
	}
	_, err = s.bot.PullRequestAuthors(context.Background(), s.repo, s.read(number))
	s.expectKind("after too many moves", err, forge.ErrTooMany)
}

// TestPushesOverAMirror are noticed as the bot's, or as whose they are said to be.
func TestPushesOverAMirror(t *testing.T) {
	s := newScene(t)
	first := writeCommit(t, s.remote, s.Ident(botLogin), s.tip("main"), "One", "a.txt", "1\n")
	s.must(s.remote.Update("topic", first, ""))
	pr, created, err := s.bot.CreatePullRequest(context.Background(), s.repo, forge.NewPullRequest{Title: "T", Branch: "topic", Base: "main"})
	if err != nil || !created {
		t.Fatalf("created %v, %v", created, err)
	}
	s.expectEvents("push topic by "+botLogin, "pull_request opened by "+botLogin+" #1")
	second := writeCommit(t, s.remote, s.Ident(reviewerLogin), first, "Two", "a.txt", "2\n")
	s.must(s.remote.Update("topic", second, first))
	s.must(s.NoticePush(s.repo, reviewerLogin))
	s.expectEvents("push topic by grace", "pull_request synchronize by grace #1")
	all, err := s.bot.PullRequestAuthors(context.Background(), s.repo, pr)
	if err != nil || len(all) != 2 || all[0].Pusher.Login != botLogin || all[1].Pusher.Login != reviewerLogin || all[1].Contributors[0].User.ID != 2 {
		t.Errorf("the authors: %+v, %v", all, err)
	}
	if got := s.read(pr.Number); got.Head != second {
		t.Errorf("the head is %s, want %s", got.Head, second)
	}
}

func TestRights(t *testing.T) {
	s := newScene(t)
	number := s.open("topic")
	id, err := s.Comment(s.repo, number, reviewerLogin, "mine")
	s.must(err)
	s.expectKind("pushing", s.Push(s.repo, strangerLogin, "topic", s.tip("main"), true), forge.ErrForbidden)
	_, err = s.MergeByHand(s.repo, number, strangerLogin, "merge")
	s.expectKind("merging", err, forge.ErrForbidden)
	s.expectKind("labelling", s.SetLabels(s.repo, number, strangerLogin, "a"), forge.ErrForbidden)
	s.expectKind("closing", s.Close(s.repo, number, strangerLogin), forge.ErrForbidden)
	s.expectKind("editing another's comment", s.EditComment(s.repo, id, strangerLogin, "yours"), forge.ErrForbidden)
	_, err = s.OpenPull(s.repo, strangerLogin, "topic", "main", "T", "")
	s.expectKind("opening from a branch of the repository", err, forge.ErrForbidden)
	s.expectKind("approving one's own", s.Review(s.repo, number, reviewerLogin, memoryforge.Approve, ""), forge.ErrInvalid)
	allow(t, s.Forge, s.repo, strangerLogin, forge.PermissionNone)
	_, err = s.Comment(s.repo, number, strangerLogin, "hello")
	s.expectKind("commenting where one may not look", err, forge.ErrNotFound)
	_, err = s.Comment(s.repo, number, "nobody", "hello")
	s.expectKind("commenting as nobody", err, forge.ErrUnauthorized)
	_, err = s.bot.EnsureHook(context.Background(), s.repo, forge.Hook{URL: "https://liftlock.example"})
	s.expectKind("a hook without administering", err, forge.ErrNotFound)
}

func TestProtection(t *testing.T) {
	s := newScene(t)
	ctx := context.Background()
	s.must(s.Protect(s.repo, "main", memoryforge.Protection{Approvals: 1, Contexts: []string{"ci"}, DismissStale: true, Strict: true}))
	number := s.open("topic")
	expect := func(what string, want forge.Mergeable) {
		t.Helper()
		if p := s.read(number); p.Mergeable != want {
			t.Errorf("%s: %s (%s), want %s", what, p.Mergeable, p.MergeReason, want)
		}
		_, err := s.bot.Merge(ctx, s.repo, forge.MergeRequest{Number: number, Head: s.tip("topic"), Method: "merge"})
		if want != forge.MergeableYes {
			s.expectKind(what, err, forge.ErrNotMergeable)
		} else {
			s.must(err)
		}
	}
	expect("without anything", forge.MergeableBlocked)
	s.must(s.bot.SetStatus(ctx, s.repo, s.tip("topic"), forge.Status{Context: "ci", State: forge.StatusSuccess}))
	expect("with its status", forge.MergeableBlocked)
	s.must(s.Review(s.repo, number, strangerLogin, memoryforge.Approve, ""))
	expect("approved by somebody who may not write", forge.MergeableBlocked)
	s.must(s.Review(s.repo, number, botLogin, memoryforge.Approve, ""))
	s.push(reviewerLogin, "topic", "topic.txt", "2\n")
	s.must(s.bot.SetStatus(ctx, s.repo, s.tip("topic"), forge.Status{Context: "ci", State: forge.StatusSuccess}))
	expect("approved before a push", forge.MergeableBlocked)
	s.must(s.Review(s.repo, number, botLogin, memoryforge.Approve, ""))
	s.push(reviewerLogin, "main", "main.txt", "1\n")
	expect("behind", forge.MergeableBehind)
	s.must(s.Protect(s.repo, "main", memoryforge.Protection{Approvals: 1, Contexts: []string{"ci"}}))
	s.must(s.SetDraft(s.repo, number, reviewerLogin, true))
	expect("a draft", forge.MergeableBlocked)
	s.must(s.SetDraft(s.repo, number, reviewerLogin, false))
	s.must(s.DeleteMergedBranches(s.repo))
	expect("all of it", forge.MergeableYes)
	if tip := s.tip("topic"); tip != "" {
		t.Errorf("the branch is still at %s", tip)
	}
}

// TestMergeableIsSlow has the forge not know at first, as GitHub.
func TestMergeableIsSlow(t *testing.T) {
	s := newScene(t)
	s.Forge = memoryforge.New(memoryforge.Options{Now: steppingClock(), Bot: botLogin, SlowMergeable: true})
	s.AddRepo(s.repo, s.remote, "main")
	s.AddUser(reviewerLogin, 2, false)
	allow(t, s.Forge, s.repo, botLogin, forge.PermissionWrite)
	allow(t, s.Forge, s.repo, reviewerLogin, forge.PermissionWrite)
	s.bot = s.As(botLogin)
	number := s.open("topic")
	s.push(reviewerLogin, "main", "topic.txt", "another\n")
	_, err := s.bot.Merge(context.Background(), s.repo, forge.MergeRequest{Number: number, Head: s.tip("topic"), Method: "merge"})
	s.expectKind("merging a conflict that isn't known yet", err, forge.ErrConflict)
	if p := s.read(number); p.Mergeable != forge.MergeableDirty {
		t.Errorf("once it was computed: %s", p.Mergeable)
	}
	s.push(reviewerLogin, "main", "main.txt", "1\n")
	if p := s.read(number); p.Mergeable != forge.MergeableUnknown {
		t.Errorf("after the base moved: %s", p.Mergeable)
	}
}

// TestDeterministic has the same calls at the same times make the same commits and events, also
// where the handler of an event calls the forge.
func TestDeterministic(t *testing.T) {
	live := func() []memoryforge.Event {
		s := newScene(t)
		for i := range 10 {
			s.open(fmt.Sprint("open-", i))
		}
		for i := range 20 {
			s.promote(i)
			s.must(s.SetLabels(s.repo, 1+i%10, reviewerLogin, fmt.Sprint("label-", i)))
		}
		return s.events
	}
	first := live()
	if len(first) < 100 {
		t.Fatalf("only %d events", len(first))
	}
	if diff := cmp.Diff(first, live()); diff != "" {
		t.Errorf("the second time (-first +second):\n%s", diff)
	}
}

// TestCopies lets a caller write into what it was given.
func TestCopies(t *testing.T) {
	s := newScene(t)
	number := s.open("topic")
	s.must(s.SetLabels(s.repo, number, reviewerLogin, "a", "b"))
	list, err := s.bot.PullRequests(context.Background(), s.repo, time.Time{})
	s.must(err)
	list[0].Labels[0], list[0].Title = "x", "x"
	if p := s.read(number); p.Labels[0] != "a" || p.Title == "x" {
		t.Errorf("it has become %+v", p)
	}
}

// TestPublicAndBeforeCall has somebody without rights talk where everybody may, and a call
// refused before it is made.
func TestPublicAndBeforeCall(t *testing.T) {
	s := newScene(t)
	var calls []string
	refuse := false
	s.Forge = memoryforge.New(memoryforge.Options{Now: steppingClock(), Bot: botLogin, Public: true, BeforeCall: func(login, op string) error {
		calls = append(calls, login+": "+op)
		if refuse {
			return &forge.Error{Op: op, Kind: forge.ErrRetryable, Message: "down"}
		}
		return nil
	}})
	s.AddRepo(s.repo, s.remote, "main")
	s.AddUser("passer-by", 7, false)
	s.AddUser(reviewerLogin, 2, false)
	allow(t, s.Forge, s.repo, reviewerLogin, forge.PermissionWrite)
	allow(t, s.Forge, s.repo, botLogin, forge.PermissionWrite)
	s.bot = s.As(botLogin)
	number := s.open("topic")
	id, err := s.Comment(s.repo, number, "passer-by", "hello")
	s.must(err)
	if has, err := s.bot.Permission(context.Background(), s.repo, "passer-by"); err != nil || has != forge.PermissionNone {
		t.Errorf("they may %v, %v", has, err)
	}
	s.expectKind("a label by somebody without rights", s.SetLabels(s.repo, number, "passer-by", "x"), forge.ErrForbidden)
	s.must(s.bot.React(context.Background(), s.repo, number, id, "eyes"))
	if got := s.Reactions(s.repo, id); len(got) != 1 || got[0] != botLogin+" eyes" {
		t.Errorf("the reactions are %q", got)
	}
	refuse = true
	_, err = s.bot.CreateComment(context.Background(), s.repo, number, "hello")
	s.expectKind("a call that is refused", err, forge.ErrRetryable)
	if last := calls[len(calls)-1]; last != botLogin+": comment on "+s.repo.Number(number) {
		t.Errorf("the last call is %q", last)
	}
	refuse = false
	if list, err := s.bot.Comments(context.Background(), s.repo, number, time.Time{}); err != nil || len(list) != 1 {
		t.Errorf("there are %d comments, %v", len(list), err)
	}
}
