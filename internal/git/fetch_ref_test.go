package git

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// forkHead puts a commit with a file of so many random bytes under a pull request's ref.
func forkHead(t *testing.T, o *origin, ref string, size int) string {
	t.Helper()
	content := make([]byte, size)
	r := rand.NewChaCha8([32]byte{1})
	if _, err := r.Read(content); err != nil {
		t.Fatal(err)
	}
	blob := gitIn(t, o.bare, content, "hash-object", "-w", "--stdin")
	tree := gitIn(t, o.bare, []byte("100644 blob "+blob+"\tbig\n"), "mktree")
	head := git(t, o.bare, "commit-tree", tree, "-m", "Large")
	git(t, o.bare, "update-ref", ref, head)
	return head
}

// TestFetchRefIsBounded holds that a head which brings more than may come leaves nothing on
// the disk, and that the next one that is small enough comes.
func TestFetchRefIsBounded(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.commit("main", "One", map[string]string{"a": "1"})
	m := open(t, Options{URL: o.url(), MaxRefBytes: 1 << 20})
	mustFetch(t, m)
	large, small := forkHead(t, o, "refs/pull/1/head", 3<<20), forkHead(t, o, "refs/pull/2/head", 1000)
	if err := m.FetchRef(t.Context(), "refs/pull/1/head", large); !errors.Is(err, ErrTooLarge) {
		t.Fatalf("got %v", err)
	}
	err := filepath.WalkDir(m.dir, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if info, err := d.Info(); err != nil || info.Size() > 1<<20 {
			t.Errorf("%s is there: %v", name, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if refs := git(t, m.dir, "for-each-ref", fetchedPrefix); refs != "" {
		t.Errorf("kept are %s", refs)
	}
	if err := m.FetchRef(t.Context(), "refs/pull/2/head", small); err != nil {
		t.Error(err)
	}
	if ok, err := m.Has(t.Context(), small); !ok || err != nil {
		t.Errorf("the small one is there: %t, %v", ok, err)
	}
}

// TestFetchedRefsExpire holds that what a pull request brought goes when its time is over,
// from the disk too, and that neither a restart nor other packs keep it.
func TestFetchedRefsExpire(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.commit("main", "One", map[string]string{"a": "1"})
	now := time.Now()
	options := Options{URL: o.url(), Dir: filepath.Join(t.TempDir(), "mirror"), Now: func() time.Time { return now }}
	m := open(t, options)
	mustFetch(t, m)
	head := forkHead(t, o, "refs/pull/1/head", 100_000)
	if err := m.FetchRef(t.Context(), "refs/pull/1/head", head); err != nil {
		t.Fatal(err)
	}
	has := func(want bool) {
		t.Helper()
		if ok, err := m.Has(t.Context(), head); ok != want || err != nil {
			t.Errorf("it is there: %t, %v", ok, err)
		}
	}
	for range 3 {
		now = now.Add(24 * time.Hour)
		o.commit("main", "More", map[string]string{"a": now.String()})
		mustFetch(t, m)
		if err := m.Maintain(t.Context()); err != nil {
			t.Fatal(err)
		}
		has(true)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	m = open(t, options)
	now = now.Add(keepUnpushedFor)
	// git ages packs by their files' times.
	packs, err := filepath.Glob(filepath.Join(m.dir, "objects", "pack", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range packs {
		if old := now.Add(-3 * keepUnpushedFor); os.Chtimes(name, old, old) != nil {
			t.Fatal(name)
		}
	}
	if err := m.Maintain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if refs := git(t, m.dir, "for-each-ref", fetchedPrefix); refs != "" {
		t.Errorf("kept are %s", refs)
	}
	has(false)
	if keeps, err := filepath.Glob(filepath.Join(m.dir, "objects", "pack", "*.keep")); err != nil || len(keeps) != 0 {
		t.Errorf("packs are kept: %v, %v", keeps, err)
	}
}
