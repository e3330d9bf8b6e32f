package memoryforge_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/github"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/world/emulator"
	"github.com/liftlock/liftlock/internal/world/memoryforge"
)

// both is the emulated GitHub behind its driver and the forge in memory, to which the
// same happens at the same times. Their commits have the same ids.
type both struct {
	t       *testing.T
	ctx     context.Context
	now     time.Time
	repo    forge.Repo
	em      *emulator.Forge
	mem     *memoryforge.Forge
	remote  *git.MemoryRemote
	random  *rand.Rand
	drivers map[string][2]forge.Forge // of the emulator, in memory
	commits []string
	pulls   int
	trail   []string // what happened
}

func newBoth(t *testing.T, seed uint64) *both {
	t.Helper()
	s := &both{
		t: t, ctx: context.Background(), now: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC), repo: forge.Repo{Owner: "acme", Name: "apps"},
		random: rand.New(rand.NewPCG(seed, seed)), remote: git.NewMemoryRemote(), drivers: map[string][2]forge.Forge{},
	}
	clock := func() time.Time { return s.now }
	var err error
	s.em, err = emulator.NewForge(emulator.ForgeOptions{Dir: t.TempDir(), WholeSeconds: true, Now: clock, RateLimit: 1_000_000})
	s.must(err)
	t.Cleanup(func() { s.must(s.em.Close()) })
	s.mem = memoryforge.New(memoryforge.Options{Now: clock, Bot: botLogin, SlowMergeable: true})
	access := map[string]emulator.Permission{}
	for _, login := range []string{botLogin, reviewerLogin} {
		s.must(s.em.AddUser(login, login+"-token", emulator.UserOptions{}))
		access[login] = emulator.Write
		driver, err := github.New(github.Options{URL: s.em.URL() + "/api/v3", Token: login + "-token"})
		s.must(err)
		me, err := driver.Me(s.ctx)
		s.must(err)
		s.mem.AddUser(login, me.ID, false)
		s.drivers[login] = [2]forge.Forge{driver, s.mem.As(login)}
	}
	files := map[string]string{"a.txt": "a\n", "b.txt": "b\n"}
	s.must(s.em.CreateRepo(s.repo.String(), emulator.RepoOptions{Author: botLogin, Access: access, Files: files}))
	s.mem.AddRepo(s.repo, s.remote, "main")
	for login := range access {
		s.must(s.mem.SetPermission(s.repo, login, forge.PermissionWrite))
	}
	first := s.writeTwin(botLogin, "", "First commit", files)
	s.must(s.mem.Push(s.repo, botLogin, "main", first, false))
	s.commits = []string{first}
	return s
}

func (b *both) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatalf("%v, after\n%s", err, strings.Join(b.trail, "\n"))
	}
}

// writeTwin makes the commit that the emulator makes of the same.
func (b *both) writeTwin(login, parent, message string, files map[string]string) string {
	b.t.Helper()
	author := b.mem.Ident(login)
	spec := git.CommitSpec{Base: parent, Message: message, Author: &author, Committer: &author, When: b.now}
	if parent != "" {
		spec.Parents = []string{parent}
	}
	for path, content := range files {
		spec.Files = append(spec.Files, git.FileWrite{Path: path, Content: []byte(content)})
	}
	sha, err := b.remote.Write(b.ctx, spec)
	b.must(err)
	return sha
}

func choose[T any](s *both, from ...T) T { return from[s.random.IntN(len(from))] }

func (b *both) chooseBranch() string  { return choose(b, "main", "one", "two", "three") }
func (b *both) choosePull() int       { return 1 + b.random.IntN(max(1, b.pulls)) }
func (b *both) chooseCommit() string  { return choose(b, b.commits...) }
func (b *both) chooseContent() string { return choose(b, "a\n", "1\n", "2\n", "3\n") }

// sameOutcome holds that both did it, or refused it for the same kind of reason.
func (b *both) sameOutcome(emulated, inMemory error) {
	b.t.Helper()
	for _, kind := range []error{nil, forge.ErrConflict, forge.ErrNotMergeable, forge.ErrInvalid, forge.ErrNotFound, forge.ErrForbidden, forge.ErrTooMany, forge.ErrRetryable} {
		if kind == nil && (emulated == nil) == (inMemory == nil) || kind != nil && errors.Is(emulated, kind) == errors.Is(inMemory, kind) {
			continue
		}
		b.t.Fatalf("the emulator: %v\nin memory: %v\nafter\n%s", emulated, inMemory, strings.Join(b.trail, "\n"))
	}
}

// sameAnswer asks both the same.
func sameAnswer[T any](s *both, what string, query func(forge.Forge) (T, error)) T {
	s.t.Helper()
	drivers := s.drivers[botLogin]
	emulated, err := query(drivers[0])
	inMemory, memErr := query(drivers[1])
	s.sameOutcome(err, memErr)
	ignore := []cmp.Option{
		cmpopts.EquateEmpty(), cmpopts.IgnoreFields(forge.PullRequest{}, "URL"), cmpopts.IgnoreFields(forge.Comment{}, "URL", "ID", "NodeID"),
		cmpopts.IgnoreFields(forge.Review{}, "ID"),
		// Commits of two lines that were merged may come in any order.
		cmpopts.SortSlices(func(a, b forge.CommitAuthors) bool { return a.Commit < b.Commit }),
	}
	if diff := cmp.Diff(emulated, inMemory, ignore...); diff != "" {
		s.t.Fatalf("%s (-emulator +in memory):\n%s\nafter\n%s", what, diff, strings.Join(s.trail, "\n"))
	}
	return inMemory
}

// happen does something to both.
func (b *both) happen() {
	b.t.Helper()
	b.now = b.now.Add(time.Minute)
	login := choose(b, botLogin, reviewerLogin)
	other := map[string]string{botLogin: reviewerLogin, reviewerLogin: botLogin}[login]
	branch, number := b.chooseBranch(), b.choosePull()
	record := func(format string, args ...any) {
		b.trail = append(b.trail, login+": "+fmt.Sprintf(format, args...))
	}
	call := func(do func(f forge.Forge) error) { b.sameOutcome(do(b.drivers[login][0]), do(b.drivers[login][1])) }
	switch b.random.IntN(15) {
	case 0, 1, 2:
		b.commitToBoth(login, branch)
	case 3:
		commit := b.chooseCommit()
		record("force %s to %s", branch, commit)
		b.sameOutcome(b.em.SetBranch(b.repo.String(), login, branch, commit), b.mem.Push(b.repo, login, branch, commit, true))
	case 4, 5, 6:
		record("open from %s", branch)
		call(func(f forge.Forge) error {
			pr, created, err := f.CreatePullRequest(b.ctx, b.repo, forge.NewPullRequest{Title: "From " + branch, Body: "B", Branch: branch, Base: "main", Labels: []string{"liftlock"}})
			if created {
				b.pulls = max(b.pulls, pr.Number)
			}
			return err
		})
	case 7, 8:
		method, title := choose(b, "merge", "squash", "rebase"), choose(b, "", "Merge it")
		record("%s #%d", method, number)
		call(func(f forge.Forge) error {
			pr, err := f.PullRequest(b.ctx, b.repo, number)
			if err != nil {
				return err
			}
			_, err = f.Merge(b.ctx, b.repo, forge.MergeRequest{Number: number, Head: pr.Head, Method: method, Title: title})
			return err
		})
	case 9:
		state := choose(b, forge.Open, forge.Closed)
		record("make #%d %s", number, state)
		call(func(f forge.Forge) error {
			return f.UpdatePullRequest(b.ctx, b.repo, number, forge.PullRequestUpdate{State: &state})
		})
	case 10:
		if branch != "main" {
			record("delete %s", branch)
			call(func(f forge.Forge) error { return f.DeleteBranch(b.ctx, b.repo, branch) })
		}
	case 11:
		verdict := choose(b, memoryforge.Approve, memoryforge.RequestChanges, memoryforge.Remark)
		event := map[memoryforge.Verdict]string{memoryforge.Approve: "APPROVE", memoryforge.RequestChanges: "REQUEST_CHANGES", memoryforge.Remark: "COMMENT"}[verdict]
		record("%s #%d", verdict, number)
		b.bothOrNeither(b.em.Review(b.repo.String(), number, login, event, "so", ""), b.mem.Review(b.repo, number, login, verdict, ""))
	case 12:
		record("dismiss %s's reviews of #%d, label it, comment on it", other, number)
		b.bothOrNeither(b.em.DismissReviews(b.repo.String(), number, login, other), b.mem.DismissReviews(b.repo, number, login, other))
		call(func(f forge.Forge) error { return f.AddLabels(b.ctx, b.repo, number, "b", "a") })
		call(func(f forge.Forge) error { return f.RemoveLabel(b.ctx, b.repo, number, "b") })
		call(func(f forge.Forge) error { _, err := f.CreateComment(b.ctx, b.repo, number, "hello"); return err })
	case 13:
		commit := b.chooseCommit()
		record("set a status of %s", commit)
		call(func(f forge.Forge) error {
			return f.SetStatus(b.ctx, b.repo, commit, forge.Status{Context: "ci", State: forge.StatusSuccess, Description: "fine"})
		})
	case 14:
		stale, contexts := choose(b, true, false), choose(b, nil, []string{"ci"})
		approvals := choose(b, 0, 1)
		record("protect main: %d approvals, %v, dismiss stale: %t", approvals, contexts, stale)
		b.must(b.em.Protect(b.repo.String(), "main", emulator.Protection{Approvals: approvals, Contexts: contexts, DismissStale: stale}))
		b.must(b.mem.Protect(b.repo, "main", memoryforge.Protection{Approvals: approvals, Contexts: contexts, DismissStale: stale}))
	}
}

// bothOrNeither is for what the emulator doesn't give a kind of error.
func (b *both) bothOrNeither(emulated, inMemory error) {
	b.t.Helper()
	if (emulated == nil) != (inMemory == nil) {
		b.t.Fatalf("the emulator: %v\nin memory: %v\nafter\n%s", emulated, inMemory, strings.Join(b.trail, "\n"))
	}
}

func (b *both) commitToBoth(login, branch string) {
	b.t.Helper()
	files := map[string]string{choose(b, "a.txt", "b.txt", "c.txt"): b.chooseContent()}
	b.trail = append(b.trail, fmt.Sprintf("%s: commit %v to %s", login, files, branch))
	parent, ok := b.remote.Head(branch)
	if !ok {
		parent, _ = b.remote.Head("main")
	}
	sha, err := b.em.CommitAs(b.repo.String(), login, branch, "Change "+branch, files)
	b.must(err)
	if twin := b.writeTwin(login, parent, "Change "+branch, files); twin != sha {
		b.t.Fatalf("the emulator's commit is %s, the one in memory %s, after\n%s", sha, twin, strings.Join(b.trail, "\n"))
	}
	b.must(b.mem.Push(b.repo, login, branch, sha, false))
	b.commits = append(b.commits, sha)
}

// compare asks both for everything about the pull requests.
func (b *both) compare() {
	b.t.Helper()
	list := sameAnswer(b, "the list", func(f forge.Forge) ([]forge.PullRequest, error) { return f.PullRequests(b.ctx, b.repo, time.Time{}) })
	for _, p := range list {
		sameAnswer(b, fmt.Sprintf("#%d", p.Number), func(f forge.Forge) (*forge.PullRequest, error) { return f.PullRequest(b.ctx, b.repo, p.Number) })
	}
}

// compareHistory asks both who did what.
func (b *both) compareHistory() {
	b.t.Helper()
	list := sameAnswer(b, "the list", func(f forge.Forge) ([]forge.PullRequest, error) { return f.PullRequests(b.ctx, b.repo, time.Time{}) })
	for _, p := range list {
		sameAnswer(b, "the authors", func(f forge.Forge) ([]forge.CommitAuthors, error) { return f.PullRequestAuthors(b.ctx, b.repo, &p) })
		sameAnswer(b, "the reviews", func(f forge.Forge) ([]forge.Review, error) { return f.Reviews(b.ctx, b.repo, p.Number) })
		sameAnswer(b, "the comments", func(f forge.Forge) ([]forge.Comment, error) { return f.Comments(b.ctx, b.repo, p.Number, time.Time{}) })
		if p.MergeCommit != "" {
			b.commits = append(b.commits, p.MergeCommit)
		}
	}
	for _, branch := range []string{"main", "one", "two", "three"} {
		sameAnswer(b, "the pushes to "+branch, func(f forge.Forge) (all []forge.Push, err error) {
			err = f.Pushes(b.ctx, b.repo, branch, func(p forge.Push) bool { all = append(all, p); return false })
			return all, err
		})
		sameAnswer(b, "those from "+branch, func(f forge.Forge) ([]forge.PullRequest, error) {
			return f.PullRequestsByBranch(b.ctx, b.repo, branch)
		})
	}
	for _, commit := range b.commits {
		sameAnswer(b, "who brought "+commit, func(f forge.Forge) ([]forge.PullRequest, error) { return f.MergedPullRequests(b.ctx, b.repo, commit) })
		base := b.chooseCommit()
		sameAnswer(b, "who made "+base+"…"+commit, func(f forge.Forge) ([]forge.CommitAuthors, error) {
			return f.CommitAuthors(b.ctx, b.repo, base, commit)
		})
		sameAnswer(b, "the statuses of "+commit, func(f forge.Forge) ([]forge.Status, error) { return f.Statuses(b.ctx, b.repo, commit) })
		sameAnswer(b, "the checks of "+commit, func(f forge.Forge) ([]forge.Check, error) { return f.Checks(b.ctx, b.repo, commit) })
	}
}

// TestSameAsTheEmulator lets the same happen to the emulated GitHub and to the forge in
// memory, and asks both the same.
func TestSameAsTheEmulator(t *testing.T) {
	for seed := range uint64(2) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s := newBoth(t, seed)
			for range 40 {
				s.happen()
				s.compare()
			}
			s.compareHistory()
		})
	}
}
