package git

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

var when = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// git runs the installed git in a directory, without anybody's configuration.
func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	return gitIn(t, dir, nil, args...)
}

func gitIn(t testing.TB, dir string, stdin []byte, args ...string) string {
	t.Helper()
	return gitWith(t, dir, stdin, nil, args...)
}

// gitWith is gitIn with more in its environment.
func gitWith(t testing.TB, dir string, stdin []byte, env []string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), env...),
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "HOME="+dir,
		"GIT_AUTHOR_NAME=ada", "GIT_AUTHOR_EMAIL=ada@example.com", "GIT_AUTHOR_DATE=2026-01-02T03:04:05+0100",
		"GIT_COMMITTER_NAME=grace", "GIT_COMMITTER_EMAIL=grace@example.com", "GIT_COMMITTER_DATE=2026-01-02T03:04:06+0000",
	)
	cmd.Stdin = bytes.NewReader(stdin)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return strings.TrimSuffix(string(out), "\n")
}

// origin is a bare repository with a work tree beside it that feeds it.
type origin struct {
	t    testing.TB
	bare string
	work string
}

func newOrigin(t testing.TB) *origin {
	t.Helper()
	dir := t.TempDir()
	o := &origin{t: t, bare: filepath.Join(dir, "origin.git"), work: filepath.Join(dir, "work")}
	git(t, dir, "init", "--quiet", "--bare", "--initial-branch=main", o.bare)
	git(t, dir, "init", "--quiet", "--initial-branch=main", o.work)
	git(t, o.work, "remote", "add", "origin", o.bare)
	return o
}

func (o *origin) url() string { return "file://" + o.bare }

// commit writes files ("" deletes), commits and pushes HEAD to the branch.
func (o *origin) commit(branch, message string, files map[string]string) string {
	o.t.Helper()
	for name, content := range files {
		p := filepath.Join(o.work, filepath.FromSlash(name))
		if content == "" {
			if err := os.Remove(p); err != nil {
				o.t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			o.t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(content), 0o644); err != nil {
			o.t.Fatal(err)
		}
	}
	git(o.t, o.work, "add", "--all")
	git(o.t, o.work, "commit", "--quiet", "--allow-empty", "--message="+message)
	git(o.t, o.work, "push", "--quiet", "--force", "origin", "HEAD:refs/heads/"+branch)
	return git(o.t, o.work, "rev-parse", "HEAD")
}

func (o *origin) head(branch string) string {
	o.t.Helper()
	return git(o.t, o.bare, "rev-parse", "--verify", "--quiet", "refs/heads/"+branch)
}

func open(t testing.TB, o Options) *Mirror {
	t.Helper()
	m, err := tryOpen(t, o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func tryOpen(t testing.TB, o Options) (*Mirror, error) {
	t.Helper()
	if o.Dir == "" {
		o.Dir = filepath.Join(t.TempDir(), "mirror")
	}
	if o.Author == (Ident{}) {
		o.Author = Ident{Name: "liftlock", Email: "liftlock@example.com"}
	}
	m, err := Open(t.Context(), o)
	if err == nil {
		t.Cleanup(func() {
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return m, err
}

// programsOf is the engine of a mirror over git's programs.
func programsOf(m *Mirror) *mirrorPrograms { return m.engine.(*mirrorPrograms) }

func mustFetch(t testing.TB, m *Mirror) []RefChange {
	t.Helper()
	c, err := m.Fetch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func newObservedLogger() (*zap.Logger, *observer.ObservedLogs) {
	core, logs := observer.New(zap.DebugLevel)
	return zap.New(core), logs
}

func TestPromotionEndToEnd(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	o := newOrigin(t)
	first := o.commit("main", "First", map[string]string{"overlays/qa/kustomization.yaml": "newTag: v1\n", "README": "hi\n"})
	m := open(t, Options{URL: o.url()})
	if got := mustFetch(t, m); len(got) != 1 || got[0] != (RefChange{Branch: "main", New: first}) {
		t.Fatalf("first fetch: %+v", got)
	}
	data, err := m.Tree(first).ReadFile("overlays/qa/kustomization.yaml")
	if err != nil || string(data) != "newTag: v1\n" {
		t.Fatalf("%q, %v", data, err)
	}
	sha, err := m.Write(ctx, CommitSpec{
		Parents: []string{first}, Base: first, When: when,
		Message: "Promote web to qa\n\nLiftlock-Kind: promotion\nliftlock-release: abc",
		Files:   []FileWrite{{Path: "overlays/qa/kustomization.yaml", Content: []byte("newTag: v2\n")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	const branch = "liftlock/shop/qa/web"
	if err := m.Push(ctx, PushSpec{Branch: branch, New: sha}); err != nil {
		t.Fatal(err)
	}
	if got := o.head(branch); got != sha {
		t.Fatalf("origin has %s, pushed %s", got, sha)
	}
	if got, ok, err := m.Head(ctx, branch); got != sha || !ok || err != nil {
		t.Fatalf("Head: %s %v %v", got, ok, err)
	}
	c, err := m.Commit(ctx, sha)
	if err != nil {
		t.Fatal(err)
	}
	if c.Subject != "Promote web to qa" || c.Trailers["Liftlock-Kind"] != "promotion" || c.Trailers["Liftlock-Release"] != "abc" || !c.CommitTime.Equal(when) {
		t.Fatalf("%+v", c)
	}
	diff, err := m.Diff(ctx, first, sha)
	if err != nil || !strings.Contains(diff, "-newTag: v1\n+newTag: v2\n") {
		t.Fatalf("%s, %v", diff, err)
	}
	changed, err := m.Changed(ctx, first, sha)
	if err != nil || len(changed) != 1 || changed[0] != (FileChange{Path: "overlays/qa/kustomization.yaml", Status: 'M', OldMode: Regular, NewMode: Regular}) {
		t.Fatalf("%+v, %v", changed, err)
	}
	if got := mustFetch(t, m); len(got) != 0 {
		t.Fatalf("a fetch after a push: %+v", got)
	}
	if err := m.Push(ctx, PushSpec{Branch: branch, Old: sha}); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := m.Head(ctx, branch); ok || err != nil {
		t.Fatalf("after deleting: %v %v", ok, err)
	}
	if err := m.Maintain(ctx); err != nil {
		t.Fatal(err)
	}
	if ok, err := m.Has(ctx, sha); !ok || err != nil {
		t.Fatalf("the commit is gone after maintenance: %v", err)
	}
	if _, err := m.Tree(sha).ReadFile("nope"); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
}
