package emulator_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-github/v60/github"

	"github.com/liftlock/liftlock/internal/world/emulator"
)

// runGit runs the real client, without the machine's configuration.
func (f *forgeHarness) runGit(dir string, args ...string) (string, error) {
	f.t.Helper()
	cmd := exec.CommandContext(f.ctx, "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=grace", "GIT_AUTHOR_EMAIL=grace@users.example", "GIT_COMMITTER_NAME=grace", "GIT_COMMITTER_EMAIL=grace@users.example")
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func (f *forgeHarness) mustGit(dir string, args ...string) string {
	f.t.Helper()
	out, err := f.runGit(dir, args...)
	if err != nil {
		f.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return out
}

func (f *forgeHarness) remoteURL(login string) string {
	return strings.Replace(f.URL(), "http://", "http://"+login+":"+login+"-token@", 1) + "/acme/fleet.git"
}

func TestGit_cloneAndPush(t *testing.T) {
	w := newForgeHarness(t, emulator.RepoOptions{})
	dir := filepath.Join(t.TempDir(), "fleet")
	w.mustGit("", "clone", "--quiet", w.remoteURL("grace"), dir)
	w.mustGit(dir, "checkout", "--quiet", "-b", "topic")
	// Larger than http.postBuffer, so that the client sends it in chunks.
	if err := os.WriteFile(filepath.Join(dir, "big"), []byte(incompressible(3<<20)), 0o644); err != nil {
		t.Fatal(err)
	}
	w.mustGit(dir, "add", "big")
	w.mustGit(dir, "commit", "--quiet", "-m", "Big")
	w.mustGit(dir, "push", "--quiet", "origin", "topic")
	if got, want := branchHead(t, w, "topic"), w.mustGit(dir, "rev-parse", "HEAD"); got != want {
		t.Fatalf("topic is %q, want %q", got, want)
	}
	n, err := w.OpenPull(repo, "liftlock", "topic", "main", "Promote", "")
	w.must(err)
	w.mustGit(dir, "commit", "--quiet", "--allow-empty", "-m", "More")
	w.mustGit(dir, "push", "--quiet", "origin", "topic")
	if p, err := w.Pull(repo, n); err != nil || p.Head != w.mustGit(dir, "rev-parse", "HEAD") {
		t.Errorf("the pull request didn't follow the push: %+v %v", p, err)
	}
	out, err := w.runGit(dir, "push", "--force-with-lease=topic:"+strings.Repeat("1", 40), "origin", "HEAD~1:topic")
	if err == nil {
		t.Errorf("a push with a wrong lease went through: %s", out)
	}
	if got := w.mustGit(dir, "ls-remote", "origin", "refs/pull/1/head"); !strings.HasPrefix(got, w.mustGit(dir, "rev-parse", "HEAD")) {
		t.Errorf("refs/pull/1/head: %q", got)
	}
	w.mustGit(dir, "fetch", "--quiet", "--filter=blob:none", "--depth=1", "origin", "main")
	w.mustGit(dir, "push", "--quiet", "origin", ":topic")
	if p, err := w.Pull(repo, n); err != nil || p.Open {
		t.Errorf("the pull request is still open: %+v %v", p, err)
	}
	if calls := w.Calls()["POST /{owner}/{repo}.git/git-receive-pack"]; calls < 3 {
		t.Errorf("%d pushes were counted: %v", calls, w.Calls())
	}
}

// incompressible is text that Git can't make smaller, without chance.
func incompressible(n int) string {
	b, x := make([]byte, n), uint32(1)
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return string(b)
}

func TestGit_permissions(t *testing.T) {
	w := newForgeHarness(t, emulator.RepoOptions{})
	w.must(w.Grant(repo, "linus", emulator.Read))
	dir := filepath.Join(t.TempDir(), "fleet")
	w.mustGit("", "clone", "--quiet", w.remoteURL("linus"), dir)
	w.mustGit(dir, "commit", "--quiet", "--allow-empty", "-m", "Mine")
	for _, c := range []struct{ who, words string }{
		{"linus", "403"},
		{"mallory", "not found"},
		{"stranger", "Authentication failed"},
	} {
		out, err := w.runGit(dir, "push", w.remoteURL(c.who), "HEAD:main")
		if err == nil || !strings.Contains(out, c.words) {
			t.Errorf("a push by %s: %v %q, want %q", c.who, err, out, c.words)
		}
	}
	if out, err := w.runGit(dir, "ls-remote", w.URL()+"/acme/fleet.git"); err == nil {
		t.Errorf("listing without credentials worked: %s", out)
	}
}

func TestGit_faults(t *testing.T) {
	w := newForgeHarness(t, emulator.RepoOptions{})
	dir := filepath.Join(t.TempDir(), "fleet")
	w.mustGit("", "clone", "--quiet", w.remoteURL("grace"), dir)
	w.mustGit(dir, "commit", "--quiet", "--allow-empty", "-m", "Mine")
	before, mine := branchHead(t, w, "main"), w.mustGit(dir, "rev-parse", "HEAD")
	w.must(w.InjectFault(emulator.Fault{Method: "POST", Path: "git-receive-pack$", Cut: true}))
	if _, err := w.runGit(dir, "push", "origin", "HEAD:main"); err == nil || branchHead(t, w, "main") != before {
		t.Errorf("cut before its effect: %v, main is %s", err, branchHead(t, w, "main"))
	}
	w.must(w.InjectFault(emulator.Fault{Method: "POST", Path: "git-receive-pack$", Cut: true, After: true}))
	if _, err := w.runGit(dir, "push", "origin", "HEAD:main"); err == nil || branchHead(t, w, "main") != mine {
		t.Errorf("cut after its effect: %v, main is %s", err, branchHead(t, w, "main"))
	}
	w.mustGit(dir, "push", "origin", "HEAD:main")
}

func TestRest_commitsAndReferences(t *testing.T) {
	w := newForgeHarness(t, emulator.RepoOptions{})
	sha := w.commitFiles("deep/topic", map[string]string{"web/qa.yaml": "tag: 2\n", "with \"quotes\" and\nlines": "x"})
	c := w.clientOf("liftlock")
	got, _, err := c.Repositories.GetCommit(w.ctx, "acme", "fleet", sha, nil)
	w.must(err)
	if got.GetAuthor().GetLogin() != "grace" || len(got.Parents) != 1 || got.GetCommit().GetMessage() != "Change deep/topic" || len(got.Files) != 2 {
		t.Errorf("commit: %v", got)
	}
	_, _, err = c.Repositories.GetCommit(w.ctx, "acme", "fleet", strings.Repeat("1", 40), nil)
	wantRefused(t, err, 422, "No commit found")
	ref, _, err := c.Git.GetRef(w.ctx, "acme", "fleet", "heads/deep/topic")
	w.must(err)
	if ref.GetObject().GetSHA() != sha {
		t.Errorf("reference: %v", ref)
	}
	_, err = c.Git.DeleteRef(w.ctx, "acme", "fleet", "heads/deep/topic")
	w.must(err)
	_, err = c.Git.DeleteRef(w.ctx, "acme", "fleet", "heads/deep/topic")
	wantRefused(t, err, 422, "Reference does not exist")
	_, _, err = c.Git.GetRef(w.ctx, "acme", "fleet", "heads/deep/topic")
	wantRefused(t, err, 404, "Not Found")
}

func TestRest_commentsAndReactions(t *testing.T) {
	w := newForgeHarness(t, emulator.RepoOptions{})
	n := w.openPullRequest("topic")
	c := w.clientOf("liftlock")
	labels, _, err := c.Issues.AddLabelsToIssue(w.ctx, "acme", "fleet", n, []string{"liftlock", "env/qa"})
	w.must(err)
	if len(labels) != 2 {
		t.Errorf("labels: %v", labels)
	}
	_, err = c.Issues.RemoveLabelForIssue(w.ctx, "acme", "fleet", n, "env/qa")
	w.must(err)
	_, err = c.Issues.RemoveLabelForIssue(w.ctx, "acme", "fleet", n, "env/qa")
	wantRefused(t, err, 404, "Label does not exist")

	first, _, err := c.Issues.CreateComment(w.ctx, "acme", "fleet", n, &github.IssueComment{Body: github.String("one")})
	w.must(err)
	w.clock.Add(3600e9)
	since := w.clock.Now()
	id, err := w.Comment(repo, n, "ada", "/liftlock status")
	w.must(err)
	list := func() []*github.IssueComment {
		all, _, err := c.Issues.ListComments(w.ctx, "acme", "fleet", n, &github.IssueListCommentsOptions{Since: &since})
		w.must(err)
		return all
	}
	if all := list(); len(all) != 1 || all[0].GetID() != id || all[0].GetUser().GetLogin() != "ada" {
		t.Errorf("comments since: %v", all)
	}
	edited, _, err := c.Issues.EditComment(w.ctx, "acme", "fleet", first.GetID(), &github.IssueComment{Body: github.String("two")})
	w.must(err)
	if edited.GetBody() != "two" || len(list()) != 2 {
		t.Errorf("edited: %v; since: %v", edited, list())
	}
	for range 2 {
		r, _, err := c.Reactions.CreateIssueCommentReaction(w.ctx, "acme", "fleet", id, "eyes")
		w.must(err)
		if r.GetUser().GetLogin() != "liftlock" {
			t.Errorf("reaction: %v", r)
		}
	}
	rs, _, err := c.Reactions.ListIssueCommentReactions(w.ctx, "acme", "fleet", id, nil)
	w.must(err)
	if len(rs) != 1 || rs[0].GetContent() != "eyes" {
		t.Errorf("reactions: %v", rs)
	}
	_, err = c.Reactions.DeleteIssueCommentReaction(w.ctx, "acme", "fleet", id, rs[0].GetID())
	w.must(err)
	_, err = c.Issues.DeleteComment(w.ctx, "acme", "fleet", first.GetID())
	w.must(err)
	_, _, err = c.Issues.GetComment(w.ctx, "acme", "fleet", first.GetID())
	wantRefused(t, err, 404, "Not Found")
}

func TestRest_statuses(t *testing.T) {
	w := newForgeHarness(t, emulator.RepoOptions{})
	sha := branchHead(t, w, "main")
	c := w.clientOf("liftlock")
	set := func(context, state, description string) error {
		_, _, err := c.Repositories.CreateStatus(w.ctx, "acme", "fleet", sha, &github.RepoStatus{Context: &context, State: &state, Description: &description})
		return err
	}
	w.must(set("liftlock", "pending", "waits"))
	w.must(set("liftlock", "success", "done"))
	w.must(set("ci", "failure", "no"))
	wantRefused(t, set("ci", "great", ""), 422, "state")
	wantRefused(t, set("ci", "success", strings.Repeat("x", 141)), 422, "description is too long")
	combined, _, err := c.Repositories.GetCombinedStatus(w.ctx, "acme", "fleet", sha, nil)
	w.must(err)
	if combined.GetState() != "failure" || combined.GetTotalCount() != 2 || combined.Statuses[0].GetDescription() != "done" {
		t.Errorf("combined: %v", combined)
	}
	all, _, err := c.Repositories.ListStatuses(w.ctx, "acme", "fleet", sha, nil)
	w.must(err)
	if len(all) != 3 || all[0].GetContext() != "ci" || all[0].GetCreator().GetLogin() != "liftlock" {
		t.Errorf("all: %v", all)
	}
	runs, _, err := c.Checks.ListCheckRunsForRef(w.ctx, "acme", "fleet", sha, nil)
	w.must(err)
	if runs.GetTotal() != 0 {
		t.Errorf("check runs: %v", runs)
	}
}
