package forgetest

import (
	"context"
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/forge"
)

// Git reads and writes a repository beside the driver, as people do.
type Git interface {
	// Tip is a branch's commit; empty when there is no such branch.
	Tip(t *testing.T, branch string) string
	// Push makes commits one upon the other, the first upon from, and moves the branch
	// to the last, forced, in one push with a driver's credentials.
	Push(t *testing.T, as forge.Forge, branch, from string, commits ...NewCommit) (shas []string)
	// ReadCommit reads a commit.
	ReadCommit(t *testing.T, sha string) Commit
}

// NewCommit is a commit that writes one file.
type NewCommit struct {
	Email         string // its author's
	Message       string
	File, Content string
}

// Commit is a commit as it was read.
type Commit struct {
	Parents int
	Files   []string // in the root
	Message string
}

// clone is Git by the git program, over the forge's clone address.
type clone struct {
	ctx    context.Context
	owner  forge.Forge // whose credentials read
	repo   forge.Repo
	dir    string
	remote string
}

func newClone(ctx context.Context, t *testing.T, owner forge.Forge, repo forge.Repo, remote string) *clone {
	t.Helper()
	s := &clone{ctx: ctx, owner: owner, repo: repo, dir: filepath.Join(t.TempDir(), "clone"), remote: remote}
	s.runGit(t, owner, "", "clone", "--quiet", remote, s.dir)
	return s
}

// Tip asks the forge.
func (cl *clone) Tip(t *testing.T, branch string) string {
	t.Helper()
	out := cl.runGit(t, cl.owner, "", "ls-remote", cl.remote, "refs/heads/"+branch)
	commit, _, _ := strings.Cut(out, "\t")
	return commit
}

// Push pushes over HTTP.
func (cl *clone) Push(t *testing.T, as forge.Forge, branch, from string, commits ...NewCommit) (shas []string) {
	t.Helper()
	cl.fetchBranches(t)
	cl.runGit(t, cl.owner, cl.dir, "checkout", "--quiet", "--detach", from)
	for _, c := range commits {
		if err := os.WriteFile(filepath.Join(cl.dir, c.File), []byte(c.Content), 0o644); err != nil {
			t.Fatal(err)
		}
		cl.runGit(t, cl.owner, cl.dir, "add", c.File)
		cl.runGit(t, cl.owner, cl.dir, "commit", "--quiet", "--author=Somebody Else <"+c.Email+">", "--message", c.Message)
		shas = append(shas, cl.runGit(t, cl.owner, cl.dir, "rev-parse", "HEAD"))
	}
	cl.runGit(t, as, cl.dir, "push", "--quiet", "--force", "origin", "HEAD:refs/heads/"+branch)
	return shas
}

// ReadCommit fetches first.
func (cl *clone) ReadCommit(t *testing.T, sha string) Commit {
	t.Helper()
	cl.fetchBranches(t)
	return Commit{
		Parents: len(strings.Fields(cl.runGit(t, cl.owner, cl.dir, "rev-list", "--parents", "-n1", sha))) - 1,
		Files:   strings.Fields(cl.runGit(t, cl.owner, cl.dir, "ls-tree", "--name-only", sha)),
		Message: cl.runGit(t, cl.owner, cl.dir, "log", "-1", "--format=%B", sha),
	}
}

func (cl *clone) fetchBranches(t *testing.T) {
	t.Helper()
	cl.runGit(t, cl.owner, cl.dir, "fetch", "--quiet", "--prune", "origin", "+refs/heads/*:refs/remotes/origin/*")
}

// runGit runs git in a folder, with a driver's credentials.
func (cl *clone) runGit(t *testing.T, as forge.Forge, dir string, args ...string) string {
	t.Helper()
	user, password, err := as.GitAuth(cl.ctx, cl.repo)
	if err != nil {
		t.Fatal(err)
	}
	auth := "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
	cmd := exec.CommandContext(cl.ctx, "git", append([]string{"-c", "http.extraHeader=" + auth}, args...)...)
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
