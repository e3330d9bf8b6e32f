package forgetest

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
)

// fixture is a repository with the means to write to it, for one case.
type fixture struct {
	*Repository
	Differences
	ctx     context.Context
	timeout time.Duration
	remote  string
	pusher  forge.Forge // with whose credentials is pushed
}

func newFixture(t *testing.T, w Backend, r *Repository) *fixture {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	s := &fixture{Repository: r, Differences: w.Differences, ctx: ctx, timeout: w.Timeout}
	s.pusher = s.Forge
	var err error
	if s.remote, err = s.Forge.CloneURL(ctx, s.Repo); err != nil {
		t.Fatal(err)
	}
	if s.Git == nil {
		s.Git = newClone(ctx, t, s.Forge, s.Repo, s.remote)
	}
	return s
}

// pushCommit makes a commit on a branch and pushes it. The branch starts at from (a
// branch or commit of the remote); when from is empty it goes on from where it is.
func (f *fixture) pushCommit(t *testing.T, branch, from, file, content string) string {
	t.Helper()
	if len(from) != 40 {
		from = f.Git.Tip(t, cmp.Or(from, branch))
	}
	return f.Git.Push(t, f.pusher, branch, from, NewCommit{Email: unlinked, Message: "change " + file, File: file, Content: content})[0]
}

// pushCommits makes commits onto a branch, each with its author's address and message, and
// pushes them in one go.
func (f *fixture) pushCommits(t *testing.T, branch string, commits ...[2]string) []string {
	t.Helper()
	var made []NewCommit
	for _, c := range commits {
		made = append(made, NewCommit{Email: c[0], Message: c[1], File: "counter.txt", Content: c[1] + "\n"})
	}
	return f.Git.Push(t, f.pusher, branch, f.Git.Tip(t, branch), made...)
}

// branchTip is a branch's commit on the forge; empty when there is no such branch.
func (f *fixture) branchTip(t *testing.T, branch string) string {
	t.Helper()
	return f.Git.Tip(t, branch)
}

// openPull opens a pull request for a branch with one change in it.
func (f *fixture) openPull(t *testing.T, branch string) *forge.PullRequest {
	t.Helper()
	f.pushCommit(t, branch, "main", strings.ReplaceAll(branch, "/", "-")+".txt", "from "+branch+"\n")
	pr, created, err := f.Forge.CreatePullRequest(f.ctx, f.Repo, forge.NewPullRequest{Title: "T " + branch, Body: "B", Branch: branch,
		Base: "main"})
	if err != nil || !created {
		t.Fatalf("opening a pull request: created %v, %v", created, err)
	}
	return pr
}

// readPull reads a pull request.
func (f *fixture) readPull(t *testing.T, number int) *forge.PullRequest {
	t.Helper()
	pr, err := f.Forge.PullRequest(f.ctx, f.Repo, number)
	if err != nil {
		t.Fatal(err)
	}
	return pr
}

// awaitPull reads a pull request until it is as wanted.
func (f *fixture) awaitPull(t *testing.T, number int, what string, wanted func(*forge.PullRequest) bool) *forge.PullRequest {
	t.Helper()
	var pr *forge.PullRequest
	f.eventually(t, what, func() bool {
		pr = f.readPull(t, number)
		return wanted(pr)
	})
	return pr
}

// eventually tries until something holds or patience is over.
func (f *fixture) eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	if holds() {
		return
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	end := time.NewTimer(f.timeout)
	defer end.Stop()
	for {
		select {
		case <-tick.C:
			if holds() {
				return
			}
		case <-end.C:
			t.Fatalf("%s: not within %v", what, f.timeout)
		}
	}
}

// ownLogin is the login of the driver under test.
func (f *fixture) ownLogin(t *testing.T) string {
	t.Helper()
	u, err := f.Forge.Me(f.ctx)
	if err != nil {
		t.Fatal(err)
	}
	return u.Login
}

// mergePull merges when the forge has finished its check for conflicts.
func (f *fixture) mergePull(t *testing.T, pr *forge.PullRequest, method string) string {
	t.Helper()
	f.awaitPull(t, pr.Number, "mergeable", func(p *forge.PullRequest) bool { return p.Mergeable == forge.MergeableYes })
	var commit string
	f.eventually(t, "merged", func() bool {
		var err error
		commit, err = f.Forge.Merge(f.ctx, f.Repo, forge.MergeRequest{
			Number: pr.Number, Head: pr.Head, Method: method, Title: "Merge title", Message: "Merge body\n\nLiftlock-Kind: promotion",
		})
		if err != nil && !errors.Is(err, forge.ErrConflict) {
			t.Fatal(err)
		}
		return err == nil
	})
	return commit
}

func wantKind(t *testing.T, what string, err, kind error) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("%s: got error %v, want one of kind %q", what, err, kind)
	}
}
