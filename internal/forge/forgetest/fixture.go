package forgetest

import (
	"context"
	"encoding/base64"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
)

// fixture is a place with a clone of its repository, for one case.
type fixture struct {
	*Repository
	ctx      context.Context
	timeout  time.Duration
	cloneDir string // the clone
	remote   string
	auth     string // an HTTP header
}

func newFixture(t *testing.T, w Backend) *fixture {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	s := &fixture{Repository: w.NewRepository(t), ctx: ctx, timeout: w.Timeout, cloneDir: filepath.Join(t.TempDir(), "clone")}
	var err error
	if s.remote, err = s.Forge.CloneURL(ctx, s.Repo); err != nil {
		t.Fatal(err)
	}
	user, password, err := s.Forge.GitAuth(ctx)
	if err != nil {
		t.Fatal(err)
	}
	s.auth = "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
	s.runGit(t, "", "clone", "--quiet", s.remote, s.cloneDir)
	return s
}

// runGit runs git in the clone, or in another folder.
func (s *fixture) runGit(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(s.ctx, "git", append([]string{"-c", "http.extraHeader=" + s.auth}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(),
		"GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=somebody", "GIT_AUTHOR_EMAIL=somebody@example.com",
		"GIT_COMMITTER_NAME=somebody", "GIT_COMMITTER_EMAIL=somebody@example.com")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// pushCommit makes a commit on a branch and pushes it. The branch starts at from (a
// branch or commit of the remote); when from is empty it goes on from where it is.
func (s *fixture) pushCommit(t *testing.T, branch, from, file, content string) string {
	t.Helper()
	if from == "" {
		from = branch
	}
	s.runGit(t, s.cloneDir, "fetch", "--quiet", "--prune", "origin", "+refs/heads/*:refs/remotes/origin/*")
	if len(from) != 40 {
		from = "origin/" + from
	}
	s.runGit(t, s.cloneDir, "checkout", "--quiet", "--detach", from)
	if err := os.WriteFile(filepath.Join(s.cloneDir, file), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	s.runGit(t, s.cloneDir, "add", file)
	s.runGit(t, s.cloneDir, "commit", "--quiet", "--message", "change "+file)
	s.runGit(t, s.cloneDir, "push", "--quiet", "--force", "origin", "HEAD:refs/heads/"+branch)
	return s.runGit(t, s.cloneDir, "rev-parse", "HEAD")
}

// branchTip is a branch's commit on the forge; empty when there is no such branch.
func (s *fixture) branchTip(t *testing.T, branch string) string {
	t.Helper()
	out := s.runGit(t, "", "ls-remote", s.remote, "refs/heads/"+branch)
	commit, _, _ := strings.Cut(out, "\t")
	return commit
}

// openPull opens a pull request for a branch with one change in it.
func (s *fixture) openPull(t *testing.T, branch string) *forge.PullRequest {
	t.Helper()
	s.pushCommit(t, branch, "main", strings.ReplaceAll(branch, "/", "-")+".txt", "from "+branch+"\n")
	pr, created, err := s.Forge.CreatePullRequest(s.ctx, s.Repo, forge.NewPullRequest{Title: "T " + branch, Body: "B", Branch: branch, Base: "main"})
	if err != nil || !created {
		t.Fatalf("opening a pull request: created %v, %v", created, err)
	}
	return pr
}

// readPull reads a pull request.
func (s *fixture) readPull(t *testing.T, number int) *forge.PullRequest {
	t.Helper()
	pr, err := s.Forge.PullRequest(s.ctx, s.Repo, number)
	if err != nil {
		t.Fatal(err)
	}
	return pr
}

// awaitPull reads a pull request until it is as wanted.
func (s *fixture) awaitPull(t *testing.T, number int, what string, wanted func(*forge.PullRequest) bool) *forge.PullRequest {
	t.Helper()
	var pr *forge.PullRequest
	s.eventually(t, what, func() bool {
		pr = s.readPull(t, number)
		return wanted(pr)
	})
	return pr
}

// eventually tries until something holds or patience is over.
func (s *fixture) eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	if holds() {
		return
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	end := time.NewTimer(s.timeout)
	defer end.Stop()
	for {
		select {
		case <-tick.C:
			if holds() {
				return
			}
		case <-end.C:
			t.Fatalf("%s: not within %v", what, s.timeout)
		}
	}
}

// ownLogin is the login of the driver under test.
func (s *fixture) ownLogin(t *testing.T) string {
	t.Helper()
	u, err := s.Forge.Me(s.ctx)
	if err != nil {
		t.Fatal(err)
	}
	return u.Login
}

// mergePull merges when the forge has finished its check for conflicts.
func (s *fixture) mergePull(t *testing.T, pr *forge.PullRequest, method string) string {
	t.Helper()
	s.awaitPull(t, pr.Number, "mergeable", func(p *forge.PullRequest) bool { return p.Mergeable == forge.MergeableYes })
	var commit string
	s.eventually(t, "merged", func() bool {
		var err error
		commit, err = s.Forge.Merge(s.ctx, s.Repo, forge.MergeRequest{
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
