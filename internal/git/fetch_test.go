package git

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
)

func TestFetchFollowsTheRemote(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	o := newOrigin(t)
	m := open(t, Options{URL: o.url()})
	if got := mustFetch(t, m); len(got) != 0 {
		t.Fatalf("an empty repository: %v", got)
	}
	c1 := o.commit("main", "One", map[string]string{"a": "1"})
	c2 := o.commit("topic", "Two", map[string]string{"a": "2"})
	git(t, o.work, "tag", "v1")
	git(t, o.work, "push", "--quiet", "origin", "v1", "HEAD:refs/pull/1/head")
	want := []RefChange{{"main", "", c1}, {"topic", "", c2}}
	if got := mustFetch(t, m); !reflect.DeepEqual(got, want) {
		t.Fatalf("new branches: %v", got)
	}
	if refs := git(t, m.dir, "for-each-ref", "--format=%(refname)"); refs != "refs/heads/main\nrefs/heads/topic" {
		t.Errorf("mirrored: %s", refs)
	}
	if got := mustFetch(t, m); len(got) != 0 {
		t.Fatalf("nothing new: %v", got)
	}
	// A force push, a branch that goes, and one in whose way it was.
	git(t, o.work, "commit", "--quiet", "--amend", "--message=Other")
	c3 := git(t, o.work, "rev-parse", "HEAD")
	git(t, o.work, "push", "--quiet", "--force", "origin", "HEAD:refs/heads/main", ":refs/heads/topic")
	git(t, o.work, "push", "--quiet", "--force", "origin", "HEAD:refs/heads/topic/sub")
	want = []RefChange{{"main", c1, c3}, {"topic", c2, ""}, {"topic/sub", "", c3}}
	if got := mustFetch(t, m); !reflect.DeepEqual(got, want) {
		t.Fatalf("changes: %v", got)
	}
	if ok, err := m.Has(ctx, c2); !ok || err != nil {
		t.Errorf("a commit that left its branch is gone at once: %v %v", ok, err)
	}
	heads, err := m.Heads(ctx, "topic/")
	if err != nil || !reflect.DeepEqual(heads, map[string]string{"topic/sub": c3}) {
		t.Errorf("Heads: %v, %v", heads, err)
	}
	heads["topic/sub"] = "mine to change"
	if sha, _, err := m.Head(ctx, "topic/sub"); sha != c3 || err != nil {
		t.Errorf("the caller's map is ours: %v", sha)
	}
	if _, _, err := m.Head(ctx, "--all"); !errors.Is(err, ErrInvalid) {
		t.Errorf("a branch that is none: %v", err)
	}
}

func TestFetchFailsByKind(t *testing.T) {
	t.Parallel()
	gone := newOrigin(t)
	for name, tc := range map[string]struct {
		url  string
		kind error
	}{
		"no such folder":      {url: gone.url() + "-not", kind: ErrNoRepository},
		"nobody listens":      {url: "http://127.0.0.1:1/x.git", kind: ErrRemote},
		"no such host":        {url: "http://liftlock.invalid/x.git", kind: ErrRemote},
		"a name like options": {url: "file:///-x --upload-pack=id", kind: ErrNoRepository},
	} {
		t.Run(name, func(t *testing.T) {
			m := open(t, Options{URL: tc.url})
			_, err := m.Fetch(t.Context())
			if !errors.Is(err, tc.kind) {
				t.Fatalf("got %v, want %v", err, tc.kind)
			}
			if !strings.Contains(err.Error(), "fetch "+tc.url) {
				t.Errorf("it does not say what was being done: %v", err)
			}
		})
	}
	t.Run("canceled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		m := open(t, Options{URL: gone.url()})
		if _, err := m.Fetch(ctx); !errors.Is(err, context.Canceled) || errors.Is(err, ErrRemote) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("too slow", func(t *testing.T) {
		m := open(t, Options{URL: gone.url(), Timeout: 1})
		if _, err := m.Fetch(t.Context()); !errors.Is(err, ErrRemote) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

// Objects that git's checks refuse never become part of the mirror.
func TestFetchRefusesHostileTrees(t *testing.T) {
	t.Parallel()
	for _, name := range []string{".git", "..", ".", ".GIT", "git~1"} {
		t.Run(name, func(t *testing.T) {
			o := newOrigin(t)
			o.commit("main", "One", map[string]string{"a": "1"})
			blob := git(t, o.work, "rev-parse", "HEAD:a")
			raw := "100644 " + name + "\x00" + string(unhex(t, blob))
			tree := gitIn(t, o.bare, []byte(raw), "hash-object", "--literally", "-t", "tree", "-w", "--stdin")
			evil := git(t, o.bare, "commit-tree", tree, "-m", "Evil")
			git(t, o.bare, "update-ref", "refs/heads/evil", evil)
			m := open(t, Options{URL: o.url()})
			if _, err := m.Fetch(t.Context()); !errors.Is(err, ErrRejected) {
				t.Fatalf("got %v", err)
			}
			if ok, err := m.Has(t.Context(), evil); ok || err != nil {
				t.Errorf("the mirror has it: %v %v", ok, err)
			}
		})
	}
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	var out []byte
	for i := 0; i < len(s); i += 2 {
		var b byte
		if _, err := fmt.Sscanf(s[i:i+2], "%02x", &b); err != nil {
			t.Fatal(err)
		}
		out = append(out, b)
	}
	return out
}

func TestManyFetchesStayFewPacks(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	m := open(t, Options{URL: o.url()})
	shas := []string{o.commit("main", "0", map[string]string{"a": "0"})}
	mustFetch(t, m)
	for i := 1; i < maxPacks+5; i++ {
		blob := gitIn(t, o.bare, []byte(fmt.Sprint(i)), "hash-object", "-w", "--stdin")
		tree := gitIn(t, o.bare, []byte("100644 blob "+blob+"\ta\n"), "mktree")
		shas = append(shas, git(t, o.bare, "commit-tree", tree, "-p", shas[i-1], "-m", "x"))
		git(t, o.bare, "update-ref", "refs/heads/main", shas[i])
		mustFetch(t, m)
	}
	packs, err := filepath.Glob(filepath.Join(m.dir, "objects/pack/*.pack"))
	if err != nil || len(packs) > maxPacks {
		t.Errorf("%d packs, %v", len(packs), err)
	}
	for i, sha := range shas {
		if data, err := m.Tree(sha).ReadFile("a"); err != nil || string(data) != fmt.Sprint(i) {
			t.Fatalf("commit %d: %q, %v", i, data, err)
		}
	}
}

// Reads, fetches, writes and pushes at once: nothing fails, nothing is lost.
func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	o := newOrigin(t)
	base := o.commit("main", "One", map[string]string{"a": "1", "d/e": "2"})
	m := open(t, Options{URL: o.url()})
	mustFetch(t, m)
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			branch := fmt.Sprintf("b%d", i)
			sha, err := m.Write(ctx, CommitSpec{Parents: []string{base}, Base: base, When: when, Message: branch, Files: []FileWrite{{Path: "d/" + branch, Content: []byte(branch)}}})
			if err != nil {
				t.Error(err)
				return
			}
			if err := m.Push(ctx, PushSpec{Branch: branch, New: sha}); err != nil {
				t.Error(err)
			}
			if data, err := m.Tree(sha).ReadFile("d/" + branch); err != nil || string(data) != branch {
				t.Errorf("%q, %v", data, err)
			}
		})
		wg.Go(func() {
			if _, err := m.Fetch(ctx); err != nil {
				t.Error(err)
			}
			if i == 3 {
				if err := m.Maintain(ctx); err != nil {
					t.Error(err)
				}
			}
			for range 20 {
				if _, err := m.Tree(base).ReadFile("d/e"); err != nil {
					t.Error(err)
				}
				if _, err := m.Files(ctx, base, ""); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if heads, err := m.Heads(ctx, "b"); err != nil || len(heads) != 6 {
		t.Errorf("%v, %v", heads, err)
	}
}
