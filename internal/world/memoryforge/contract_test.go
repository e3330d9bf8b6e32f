package memoryforge_test

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/world/forgetest"
	"github.com/liftlock/liftlock/internal/world/memoryforge"
	"github.com/liftlock/liftlock/webhooks"
)

const botLogin, reviewerLogin, strangerLogin = "liftlock-bot", "grace", "mallory"

// steppingClock gives a time a second later at every call.
func steppingClock() func() time.Time {
	var calls atomic.Int64
	return func() time.Time {
		return time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC).Add(time.Duration(calls.Add(1)) * time.Second)
	}
}

// TestContract is what the real drivers pass; a clock that goes on by itself saves
// the waiting for another second.
func TestContract(t *testing.T) {
	f := memoryforge.New(memoryforge.Options{Now: steppingClock(), Bot: botLogin, SlowMergeable: true})
	for i, login := range []string{botLogin, reviewerLogin, strangerLogin} {
		f.AddUser(login, int64(i+1), false)
	}
	sre := forge.Team{Organisation: "acme", Name: "sre"}
	f.SetTeam(sre, reviewerLogin)
	count := 0
	newRepository := func(t *testing.T) *forgetest.Repository {
		count++
		r := forge.Repo{Owner: "acme", Name: fmt.Sprintf("apps-%d", count)}
		s := &userGit{forge: f, repo: r, remote: newRemote(t)}
		f.AddRepo(r, s.remote, "main")
		allow(t, f, r, botLogin, forge.PermissionAdmin)
		allow(t, f, r, reviewerLogin, forge.PermissionWrite)
		return &forgetest.Repository{
			Repo: r, Forge: f.As(botLogin), Reviewer: f.As(reviewerLogin), Stranger: strangerLogin, Nobody: "nobody",
			Team:     sre,
			MakeTeam: func(_ *testing.T, team forge.Team) { f.SetTeam(team) },
			RenameTeam: func(_ *testing.T, team forge.Team, name string) {
				f.RenameTeam(team, forge.Team{Organisation: team.Organisation, Name: name})
			},
			ReviewerEmail: f.Ident(reviewerLogin).Email, Git: s, Fork: s.openFork,
			MoveBranch: func(t *testing.T, branch, commit string) {
				if err := f.Push(r, reviewerLogin, branch, commit, true); err != nil {
					t.Fatal(err)
				}
			},
			Protect: func(t *testing.T, approvals int, contexts ...string) {
				if err := f.Protect(r, "main", memoryforge.Protection{Approvals: approvals, Contexts: contexts}); err != nil {
					t.Fatal(err)
				}
			},
			Requested: func(_ *testing.T, number int) []string { return f.RequestedReviewers(r, number) },
			RemoveRequest: func(t *testing.T, number int, login string) {
				if err := f.RemoveReviewRequest(r, number, botLogin, login); err != nil {
					t.Fatal(err)
				}
			},
			Review: func(t *testing.T, number int, v forgetest.Verdict, commit string) {
				verdict := map[forgetest.Verdict]memoryforge.Verdict{
					forgetest.Approve: memoryforge.Approve, forgetest.Reject: memoryforge.RequestChanges, forgetest.CommentOnly: memoryforge.Remark,
				}[v]
				if err := f.Review(r, number, reviewerLogin, verdict, commit); err != nil {
					t.Fatal(err)
				}
			},
			RunQueue: func(t *testing.T) {
				if err := f.RunMergeQueue(r, botLogin); err != nil {
					t.Fatal(err)
				}
			},
		}
	}
	forgetest.Run(t, forgetest.Backend{
		Type:          webhooks.GitHub,
		Timeout:       5 * time.Second,
		WithBadToken:  func(*testing.T) forge.Forge { return f.As("no-such-account") },
		NewRepository: newRepository,
		NewQueueRepository: func(t *testing.T) *forgetest.Repository {
			r := newRepository(t)
			if err := f.QueueMerges(r.Repo); err != nil {
				t.Fatal(err)
			}
			return r
		},
	})
}

func allow(t testing.TB, f *memoryforge.Forge, r forge.Repo, login string, p forge.Permission) {
	t.Helper()
	if err := f.SetPermission(r, login, p); err != nil {
		t.Fatal(err)
	}
}

// newRemote is a repository with one commit on main.
func newRemote(t testing.TB) *git.MemoryRemote {
	t.Helper()
	remote := git.NewMemoryRemote()
	sha := writeCommit(t, remote, git.Ident{Name: "somebody", Email: "somebody@example.com"}, "", "First commit", "README.md", "the apps\n")
	if err := remote.Update("main", sha, ""); err != nil {
		t.Fatal(err)
	}
	return remote
}

// writeCommit makes a commit that is on no branch; parent may be empty.
func writeCommit(t testing.TB, remote *git.MemoryRemote, author git.Ident, parent, message, file, content string) string {
	t.Helper()
	spec := git.CommitSpec{
		Base: parent, Message: message, Author: &author, Committer: &author, When: time.Date(2026, 5, 1, 11, 0, 0, 0, time.UTC),
		Files: []git.FileWrite{{Path: file, Content: []byte(content)}},
	}
	if parent != "" {
		spec.Parents = []string{parent}
	}
	sha, err := remote.Write(context.Background(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return sha
}

// userGit is what the contract's cases do with git, without git.
type userGit struct {
	forge  *memoryforge.Forge
	repo   forge.Repo
	remote *git.MemoryRemote
}

func (u *userGit) Tip(_ *testing.T, branch string) string {
	sha, _ := u.remote.Head(branch)
	return sha
}

func (u *userGit) Push(t *testing.T, as forge.Forge, branch, from string, commits ...forgetest.NewCommit) (shas []string) {
	t.Helper()
	me, err := as.Me(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range commits {
		from = writeCommit(t, u.remote, git.Ident{Name: "Somebody Else", Email: c.Email}, from, c.Message, c.File, c.Content)
		shas = append(shas, from)
	}
	if err := u.forge.Push(u.repo, me.Login, branch, from, true); err != nil {
		t.Fatal(err)
	}
	return shas
}

func (u *userGit) ReadCommit(t *testing.T, sha string) forgetest.Commit {
	t.Helper()
	c, err := u.remote.Commit(context.Background(), sha)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := fs.ReadDir(u.remote.Tree(sha), ".")
	if err != nil {
		t.Fatal(err)
	}
	read := forgetest.Commit{Parents: len(c.Parents), Message: strings.TrimSpace(c.Message)}
	for _, e := range entries {
		read.Files = append(read.Files, e.Name())
	}
	return read
}

func (u *userGit) openFork(t *testing.T, branch string) int {
	t.Helper()
	allow(t, u.forge, u.repo, strangerLogin, forge.PermissionRead)
	head := writeCommit(t, u.remote, u.forge.Ident(strangerLogin), u.Tip(t, "main"), "from a fork", "fork.txt", "fork\n")
	number, err := u.forge.OpenForkPull(u.repo, strangerLogin, branch, head, "main", "from a fork", "")
	if err != nil {
		t.Fatal(err)
	}
	return number
}
