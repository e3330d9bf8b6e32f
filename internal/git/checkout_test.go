package git

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// newCheckoutDir is a working tree with one commit on main.
func newCheckoutDir(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "check out")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	git(t, dir, "init", "--quiet", "--initial-branch=main")
	put(t, dir, files)
	git(t, dir, "add", "--all")
	git(t, dir, "commit", "--quiet", "--allow-empty", "--message=First")
	return dir
}

func put(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		p := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func checkout(t testing.TB, dir string) *Checkout {
	t.Helper()
	c, err := OpenCheckout(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// working is a checkout's working tree as a commit.
type working struct {
	*Tree
	s   *Scratch
	sha string
}

func (w working) Changed(ctx context.Context, from string) ([]FileChange, error) {
	return w.s.Changed(ctx, from, w.sha)
}

func workingTree(t testing.TB, c *Checkout) working {
	t.Helper()
	s := scratch(t, c)
	sha, err := s.CommitWorkingTree(t.Context(), time.Unix(1767323045, 0))
	if err != nil {
		t.Fatal(err)
	}
	return working{s.Tree(sha), s, sha}
}

func scratch(t testing.TB, c *Checkout) *Scratch {
	t.Helper()
	s, err := c.Scratch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(filepath.Dir(s.dir)); err == nil {
			t.Errorf("%s is left", s.dir)
		}
	})
	return s
}

func TestOpenCheckout(t *testing.T) {
	t.Parallel()
	dir := newCheckoutDir(t, map[string]string{"a/b/c": "x\n"})
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	head := git(t, dir, "rev-parse", "HEAD")
	beside := filepath.Join(filepath.Dir(dir), "linked")
	git(t, dir, "worktree", "add", "--quiet", "-b", "other", beside)
	bare := filepath.Join(t.TempDir(), "bare.git")
	git(t, dir, "clone", "--quiet", "--bare", dir, bare)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(filepath.Join(dir, "a"), link); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, dir, top, branch string
		bare                   bool
	}{
		{name: "the root", dir: dir, top: real, branch: "main"},
		{name: "a subfolder", dir: filepath.Join(dir, "a", "b"), top: real, branch: "main"},
		{name: "a symbolic link into it", dir: link, top: real, branch: "main"},
		{name: "git's own folder", dir: filepath.Join(dir, ".git", "refs"), top: filepath.Join(real, ".git"), branch: "main", bare: true},
		{name: "a linked work tree", dir: beside, top: beside, branch: "other"},
		{name: "a bare repository", dir: bare, top: bare, branch: "main", bare: true},
	} {
		c := checkout(t, tc.dir)
		if c.Dir() != tc.top || c.Bare() != tc.bare {
			t.Errorf("%s: %s, bare %v", tc.name, c.Dir(), c.Bare())
		}
		if branch, err := c.Branch(t.Context()); err != nil || branch != tc.branch {
			t.Errorf("%s: branch %q, %v", tc.name, branch, err)
		}
		if sha, err := c.Resolve(t.Context(), "HEAD"); err != nil || sha != head {
			t.Errorf("%s: HEAD is %s, %v", tc.name, sha, err)
		}
		if data, err := c.Tree(head).ReadFile("a/b/c"); err != nil || string(data) != "x\n" {
			t.Errorf("%s: %q, %v", tc.name, data, err)
		}
		if _, err := scratch(t, c).CommitWorkingTree(t.Context(), time.Unix(1, 0)); tc.bare != errors.Is(err, ErrInvalid) {
			t.Errorf("%s: working tree: %v", tc.name, err)
		}
	}
}

func TestOpenCheckoutWhereThereIsNone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, dir, map[string]string{"odd/.git": "gitdir: ../gone\n", "odder/.git": "nothing\n", "file": ""})
	for _, at := range []string{dir, filepath.Join(dir, "missing"), filepath.Join(dir, "odd"), filepath.Join(dir, "odder"), filepath.Join(dir, "file")} {
		_, err := OpenCheckout(t.Context(), at)
		if !errors.Is(err, ErrNoRepository) || !strings.Contains(err.Error(), shortenForLog(at)) {
			t.Errorf("%s: %v", at, err)
		}
	}
}

func TestCheckoutResolve(t *testing.T) {
	t.Parallel()
	dir := newCheckoutDir(t, map[string]string{"a": "1\n"})
	first := git(t, dir, "rev-parse", "HEAD")
	git(t, dir, "tag", "--annotate", "--message=x", "v1")
	put(t, dir, map[string]string{"a": "2\n"})
	git(t, dir, "commit", "--quiet", "--all", "--message=Second")
	second := git(t, dir, "rev-parse", "HEAD")
	git(t, dir, "update-ref", "refs/heads/--output=x", second)
	c := checkout(t, dir)
	for rev, want := range map[string]string{
		"HEAD": second, "main": second, "refs/heads/main": second, "v1": first, "HEAD~1": first, "@^": first,
		first: first, second[:8]: second, "--output=x": second, "main@{0}": second,
	} {
		if got, err := c.Resolve(t.Context(), rev); err != nil || got != want {
			t.Errorf("%q is %s, %v; want %s", rev, got, err, want)
		}
	}
	for _, rev := range []string{"", "nope", "HEAD~7", "HEAD:a", "main..v1", "--help", "a\nb", "-"} {
		if got, err := c.Resolve(t.Context(), rev); !errors.Is(err, ErrUnknownCommit) {
			t.Errorf("%q is %q, %v", rev, got, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "x")); err == nil {
		t.Error("a revision was taken for an option")
	}
}

// TestBranchBeforeTag takes the branch where a tag has its name, as Argo CD and forges do.
func TestBranchBeforeTag(t *testing.T) {
	t.Parallel()
	dir := newCheckoutDir(t, map[string]string{"apps/a": "1\n"})
	zeroth := git(t, dir, "rev-parse", "HEAD")
	git(t, dir, "commit", "--quiet", "--allow-empty", "--message=First")
	first := git(t, dir, "rev-parse", "HEAD")
	for _, name := range []string{"main", "apps", "2026", "ci", "v1", first[:8]} {
		git(t, dir, "tag", "--annotate", "--message=x", name, zeroth)
	}
	put(t, dir, map[string]string{"apps/a": "2\n"})
	git(t, dir, "commit", "--quiet", "--all", "--message=Second")
	second := git(t, dir, "rev-parse", "HEAD")
	for _, name := range []string{"refs/heads/apps", "refs/heads/2026", "refs/heads/feature/main", "refs/remotes/origin/ci", "refs/remotes/origin/only-there"} {
		git(t, dir, "update-ref", name, second)
	}
	c := checkout(t, dir)
	for rev, want := range map[string]string{
		"main": second, "main~1": first, "main^": first, "main@{0}": second, "apps": second, "2026": second, "feature/main": second,
		"ci": second, "ci~1": first, "only-there": second, "origin/ci": second, // a build's checkout has no branches of its own
		"tags/main": zeroth, "refs/tags/main": zeroth, "tags/ci": zeroth, "heads/main": second, "refs/heads/main": second,
		"v1": zeroth, first[:8]: zeroth, first: first, "HEAD": second, "HEAD~1": first, "@": second,
	} {
		if got, err := c.Resolve(t.Context(), rev); err != nil || got != want {
			t.Errorf("%q is %s, %v; want %s", rev, got, err, want)
		}
	}
}

func TestCheckoutWithoutCommits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	git(t, dir, "init", "--quiet", "--initial-branch=trunk")
	put(t, dir, map[string]string{"new": "x"})
	c := checkout(t, dir)
	if _, err := c.Resolve(t.Context(), "HEAD"); !errors.Is(err, ErrUnknownCommit) || !strings.Contains(err.Error(), "nothing has been committed yet") {
		t.Errorf("HEAD: %v", err)
	}
	if branch, err := c.Branch(t.Context()); err != nil || branch != "trunk" {
		t.Errorf("branch %q, %v", branch, err)
	}
	if branch, err := c.DefaultBranch(t.Context()); err != nil || branch != "" {
		t.Errorf("default branch %q, %v", branch, err)
	}
	changed, err := workingTree(t, c).Changed(t.Context(), "")
	if err != nil || len(changed) != 1 || changed[0].Status != 'A' {
		t.Errorf("%+v, %v", changed, err)
	}
}

func TestCheckoutRemotesAndBranches(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.commit("trunk", "First", map[string]string{"a": "1\n"})
	git(t, o.bare, "symbolic-ref", "HEAD", "refs/heads/trunk")
	dir := filepath.Join(t.TempDir(), "clone")
	git(t, filepath.Dir(dir), "clone", "--quiet", o.bare, dir)
	git(t, dir, "switch", "--quiet", "--create", "feature/x")
	git(t, dir, "remote", "add", "upstream", "gh:acme/fleet")
	git(t, dir, "config", "remote.origin.pushurl", "git@git.example:acme/fleet.git")
	git(t, dir, "config", "url.https://github.example/.insteadOf", "gh:")
	git(t, dir, "config", "--add", "url.https://github.example/.insteadOf", "hub:")
	c := checkout(t, dir)
	urls, err := c.RemoteURLs(t.Context())
	want := []string{"gh:acme/fleet", "git@git.example:acme/fleet.git", "https://github.example/acme/fleet", o.bare}
	slices.Sort(want)
	if err != nil || !slices.Equal(urls, want) {
		t.Errorf("%q, %v; want %q", urls, err, want)
	}
	if branch, err := c.DefaultBranch(t.Context()); err != nil || branch != "trunk" {
		t.Errorf("default branch %q, %v", branch, err)
	}
	git(t, dir, "symbolic-ref", "--delete", "refs/remotes/origin/HEAD")
	git(t, dir, "branch", "--quiet", "master")
	if branch, err := c.DefaultBranch(t.Context()); err != nil || branch != "master" {
		t.Errorf("default branch without origin/HEAD: %q, %v", branch, err)
	}
	git(t, dir, "checkout", "--quiet", "--detach")
	if branch, err := c.Branch(t.Context()); err != nil || branch != "" {
		t.Errorf("detached: %q, %v", branch, err)
	}
	if urls, err := checkout(t, o.bare).RemoteURLs(t.Context()); err != nil || len(urls) > 0 {
		t.Errorf("without remotes: %q, %v", urls, err)
	}
}

func TestMergeBase(t *testing.T) {
	t.Parallel()
	dir := newCheckoutDir(t, map[string]string{"a": "1\n"})
	base := git(t, dir, "rev-parse", "HEAD")
	git(t, dir, "switch", "--quiet", "--create", "side")
	git(t, dir, "commit", "--quiet", "--allow-empty", "--message=Side")
	side := git(t, dir, "rev-parse", "HEAD")
	git(t, dir, "switch", "--quiet", "main")
	git(t, dir, "commit", "--quiet", "--allow-empty", "--message=Main")
	tip := git(t, dir, "rev-parse", "HEAD")
	git(t, dir, "switch", "--quiet", "--orphan", "alone")
	git(t, dir, "commit", "--quiet", "--allow-empty", "--message=Alone")
	alone := git(t, dir, "rev-parse", "HEAD")
	c := checkout(t, dir)
	for _, tc := range []struct {
		name, a, b, want string
	}{
		{"forked", tip, side, base}, {"ancestor", base, side, base}, {"same", tip, tip, tip}, {"nothing in common", tip, alone, ""},
	} {
		got, ok, err := c.MergeBase(t.Context(), tc.a, tc.b)
		if err != nil || got != tc.want || ok != (tc.want != "") {
			t.Errorf("%s: %s, %v, %v", tc.name, got, ok, err)
		}
	}
	if _, _, err := c.MergeBase(t.Context(), tip, strings.Repeat("1", 40)); !errors.Is(err, ErrUnknownCommit) {
		t.Errorf("unknown: %v", err)
	}
	m := open(t, Options{URL: "file://" + dir})
	mustFetch(t, m)
	if got, ok, err := m.MergeBase(t.Context(), side, tip); err != nil || !ok || got != base {
		t.Errorf("mirror: %s, %v, %v", got, ok, err)
	}
}

// TestCheckoutRunsNothing holds that nothing that a repository's configuration names is run,
// whoever wrote it.
func TestCheckoutRunsNothing(t *testing.T) {
	t.Parallel()
	dir := newCheckoutDir(t, map[string]string{"a": "1\n", ".gitattributes": "* filter=evil diff=evil\n"})
	ran := filepath.Join(t.TempDir(), "ran")
	script := filepath.Join(t.TempDir(), "evil")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho \"$0 $*\" >> '"+ran+"'\ncat\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	head := git(t, dir, "rev-parse", "HEAD")
	for _, key := range []string{
		"core.fsmonitor", "core.pager", "core.editor", "core.sshCommand", "core.gitProxy", "core.askPass", "diff.external", "diff.evil.command",
		"diff.evil.textconv", "filter.evil.clean", "filter.evil.smudge", "filter.evil.process", "uploadpack.packObjectsHook", "alias.ls-files",
		"gpg.program", "credential.helper", "remote.origin.uploadpack", "interactive.diffFilter", "pager.config", "pager.diff-tree",
	} {
		git(t, dir, "config", key, script)
	}
	git(t, dir, "config", "remote.origin.url", "ext::"+script)
	git(t, dir, "config", "remote.origin.promisor", "true")
	git(t, dir, "config", "extensions.partialClone", "origin")
	git(t, dir, "config", "core.hooksPath", filepath.Dir(script))
	git(t, dir, "config", "core.worktree", "/etc")
	put(t, dir, map[string]string{"a": "2\n", "b": "new\n"})
	c := checkout(t, dir)
	w := workingTree(t, c)
	changed, err := w.Changed(t.Context(), head)
	if err != nil || len(changed) != 2 || changed[0].Path != "a" || changed[1].Path != "b" {
		t.Errorf("%+v, %v", changed, err)
	}
	if _, err := w.Grep(t.Context(), "2"); err != nil {
		t.Error(err)
	}
	if _, err := c.Tree(head).Grep(t.Context(), "1"); err != nil {
		t.Error(err)
	}
	if _, err := c.Diff(t.Context(), "", head); err != nil {
		t.Error(err)
	}
	if _, err := c.RemoteURLs(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := c.DefaultBranch(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := c.Log(t.Context(), LogQuery{From: head}); err != nil {
		t.Error(err)
	}
	// A partial clone's missing file is not fetched.
	object := git(t, dir, "rev-parse", "HEAD:a")
	if err := os.Remove(filepath.Join(dir, ".git", "objects", object[:2], object[2:])); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Tree(head).ReadFile("a"); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "partial clone") {
		t.Errorf("a missing object: %v", err)
	}
	if out, err := os.ReadFile(ran); err == nil {
		t.Errorf("these ran:\n%s", out)
	}
}

// Nothing in git's folder changes, the index included.
func TestCheckoutWritesNothing(t *testing.T) {
	t.Parallel()
	dir := newCheckoutDir(t, map[string]string{"a": "1\n", "b/c": "2\n"})
	put(t, dir, map[string]string{"a": "1\n"}) // the same, at another time: git status would refresh the index
	before := snapshotDir(t, dir)
	c := checkout(t, dir)
	if changed, err := workingTree(t, c).Changed(t.Context(), git(t, dir, "rev-parse", "HEAD")); err != nil || len(changed) > 0 {
		t.Errorf("%+v, %v", changed, err)
	}
	if after := snapshotDir(t, dir); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

func snapshotDir(t testing.TB, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		data, err := os.ReadFile(name)
		b.WriteString(name + " " + info.ModTime().String() + " " + blobID(data) + "\n")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// blobID is the id that git gives a file of this content.
func blobID(data []byte) string {
	h := sha1.New()
	fmt.Fprintf(h, "blob %d\x00", len(data))
	h.Write(data)
	return hex.EncodeToString(h.Sum(nil))
}
