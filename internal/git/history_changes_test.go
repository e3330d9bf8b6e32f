package git

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPathsChanged(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	m, shas := newHistory(t)
	order := []string{"four", "merge", "three", "two", "one", "root"}
	var commits []CommitInfo
	for _, name := range order {
		c, err := m.Commit(ctx, shas[name])
		if err != nil {
			t.Fatal(err)
		}
		commits = append(commits, *c)
	}
	got, err := m.PathsChanged(ctx, commits)
	if err != nil {
		t.Fatal(err)
	}
	// A merge counts by what it brought to its first parent.
	want := [][]string{{"a"}, {"b/c", "b/d"}, {"b/d"}, {"b/c"}, {"a"}, {"a"}}
	for i := range want {
		if diff := cmp.Diff(want[i], got[i]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", order[i], diff)
		}
	}
	if got, err := m.PathsChanged(ctx, nil); err != nil || len(got) != 0 {
		t.Errorf("nothing asked: %v, %v", got, err)
	}
	if _, err := m.PathsChanged(ctx, []CommitInfo{{SHA: shas["four"], Parents: []string{strings.Repeat("1", 40)}}}); !errors.Is(err, ErrUnknownCommit) {
		t.Errorf("a parent that isn't here: %v", err)
	}
}

func TestPathsChangedWithOddNames(t *testing.T) {
	t.Parallel()
	names := map[string]string{":100644 x": "1", "a b": "1", "ü": "1", "q\"\\": "1", "n\nl": "1", strings.Repeat("a", 40): "1"}
	c := checkout(t, newCheckoutDir(t, names))
	log, err := c.Log(t.Context(), LogQuery{From: git(t, c.Dir(), "rev-parse", "HEAD")})
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.PathsChanged(t.Context(), log)
	if err != nil || len(got) != 1 || len(got[0]) != len(names) {
		t.Fatalf("%q, %v", got, err)
	}
	for _, name := range got[0] {
		if names[name] == "" {
			t.Errorf("%q is none of them", name)
		}
	}
}

func TestShallow(t *testing.T) {
	t.Parallel()
	dir := newCheckoutDir(t, map[string]string{"a": "1"})
	git(t, dir, "commit", "--quiet", "--allow-empty", "--message=Second")
	to := filepath.Join(t.TempDir(), "clone")
	git(t, dir, "clone", "--quiet", "--depth=1", "file://"+dir, to)
	for at, want := range map[string]bool{dir: false, to: true} {
		if got, err := checkout(t, at).Shallow(t.Context()); err != nil || got != want {
			t.Errorf("%s: %v, %v", at, got, err)
		}
	}
}
