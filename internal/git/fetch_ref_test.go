package git

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// forkHead puts a commit with a file of so many random bytes under a pull request's ref.
func forkHead(t *testing.T, o *origin, ref string, size int, parents ...string) string {
	t.Helper()
	content := make([]byte, size)
	r := rand.NewChaCha8(sha256.Sum256(fmt.Append(nil, ref, parents)))
	if _, err := r.Read(content); err != nil {
		t.Fatal(err)
	}
	blob := gitIn(t, o.bare, content, "hash-object", "-w", "--stdin")
	entries := "100644 blob " + blob + "\tbig\n"
	commit := []string{"-m", "Large"}
	for _, parent := range parents {
		entries += "040000 tree " + git(t, o.bare, "rev-parse", parent+"^{tree}") + "\tparent\n"
		commit = append(commit, "-p", parent)
	}
	tree := gitIn(t, o.bare, []byte(entries), "mktree")
	head := git(t, o.bare, append([]string{"commit-tree", tree}, commit...)...)
	git(t, o.bare, "update-ref", ref, head)
	return head
}

// bytesOf is what a mirror takes on the disk.
func bytesOf(t *testing.T, m *Mirror) (size int64) {
	t.Helper()
	err := filepath.WalkDir(m.dir, func(_ string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return size
}

// requireWhole reads all that a commit of forkHead's leads to.
func requireWhole(t *testing.T, m *Mirror, sha string) {
	t.Helper()
	git(t, m.dir, "fsck", "--no-dangling", "--no-progress")
	git(t, m.dir, "rev-list", "--objects", sha)
	if _, err := m.Tree(sha).ReadFile("big"); err != nil {
		t.Errorf("%s: %v", sha, err)
	}
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

// replacing is a mirror with a pull request whose head moves.
type replacing struct {
	*origin
	m   *Mirror
	now time.Time
}

const replacedRef = "refs/pull/1/head"

func newReplacing(t *testing.T) *replacing {
	s := &replacing{origin: newOrigin(t), now: time.Now()}
	s.commit("main", "One", map[string]string{"a": "1"})
	s.m = open(t, Options{URL: s.url(), MaxRefBytes: 1 << 20, Now: func() time.Time { return s.now }})
	mustFetch(t, s.m)
	return s
}

// moveTo points the pull request's ref to a commit, and fetches that.
func (r *replacing) moveTo(head string) {
	r.t.Helper()
	git(r.t, r.bare, "update-ref", replacedRef, head)
	if err := r.m.FetchRef(r.t.Context(), replacedRef, head); err != nil {
		r.t.Fatal(err)
	}
}

func (r *replacing) maintain() {
	r.t.Helper()
	if err := r.m.Maintain(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
}

func (r *replacing) requireHas(sha string, want bool) {
	r.t.Helper()
	if ok, err := r.m.Has(r.t.Context(), sha); ok != want || err != nil {
		r.t.Errorf("%s is there: %t, %v", sha, ok, err)
	}
}

// TestReplacedHeadsAreDropped holds that a pull request which moves again and again takes no more
// room than its head and as much again as one may bring. That holds on one day and over several.
func TestReplacedHeadsAreDropped(t *testing.T) {
	t.Parallel()
	s := newReplacing(t)
	const size = 900_000
	other := forkHead(t, s.origin, "refs/pull/11/head", size)
	if err := s.m.FetchRef(t.Context(), "refs/pull/11/head", other); err != nil {
		t.Fatal(err)
	}
	var heads []string
	for i := range 7 {
		if i < 3 {
			s.now = s.now.Add(24 * time.Hour)
		}
		heads = append(heads, forkHead(t, s.origin, "refs/pull/2"+strconv.Itoa(i)+"/head", size))
		s.moveTo(heads[i])
		if got := bytesOf(t, s.m); got > 4*size+200_000 {
			t.Errorf("after %d heads it takes %d bytes", i+1, got)
		}
		requireWhole(t, s.m, heads[i])
	}
	refs := strings.Fields(git(t, s.m.dir, "for-each-ref", "--format=%(objectname)", fetchedPrefix))
	if slices.Sort(refs); !slices.Equal(refs, slices.Sorted(slices.Values([]string{other, heads[6]}))) {
		t.Errorf("fetched are %v", refs)
	}
	s.maintain()
	if got := bytesOf(t, s.m); got > 2*size+200_000 {
		t.Errorf("maintained it takes %d bytes", got)
	}
	for _, head := range heads[:6] {
		s.requireHas(head, false)
	}
	requireWhole(t, s.m, heads[6])
	requireWhole(t, s.m, other)
	if _, err := s.m.Tree(heads[5]).ReadFile("big"); !errors.Is(err, ErrUnknownCommit) {
		t.Errorf("reading what was replaced: %v", err)
	}
	s.moveTo(heads[5])
	requireWhole(t, s.m, heads[5])
}

// TestReturningHeadStays holds that what a pull request is at again stays, though something else
// had replaced it.
func TestReturningHeadStays(t *testing.T) {
	t.Parallel()
	s := newReplacing(t)
	first, second := forkHead(t, s.origin, "refs/pull/2/head", 1000), forkHead(t, s.origin, "refs/pull/3/head", 1000)
	s.moveTo(first)
	s.moveTo(second)
	s.now = s.now.Add(24 * time.Hour)
	s.moveTo(first)
	s.maintain()
	s.requireHas(second, false)
	requireWhole(t, s.m, first)
}

// TestHeadGrowsWithinItsBound holds that a head is measured with what it is built on, though that
// was fetched as the same pull request's head before.
func TestHeadGrowsWithinItsBound(t *testing.T) {
	t.Parallel()
	s := newReplacing(t)
	const size = 400_000
	first := forkHead(t, s.origin, "refs/pull/2/head", size, s.head("main"))
	second := forkHead(t, s.origin, "refs/pull/2/head", size, first)
	third := forkHead(t, s.origin, "refs/pull/2/head", size, second)
	git(t, s.bare, "update-ref", "-d", "refs/pull/2/head")
	s.moveTo(first)
	s.moveTo(second)
	s.maintain()
	requireWhole(t, s.m, second)
	s.requireHas(first, true) // it is in the second's history
	if got := bytesOf(t, s.m); got > 2*size+200_000 {
		t.Errorf("maintained it takes %d bytes", got)
	}
	git(t, s.bare, "update-ref", replacedRef, third)
	if err := s.m.FetchRef(t.Context(), replacedRef, third); !errors.Is(err, ErrTooLarge) {
		t.Errorf("three in a row: %v", err)
	}
}

// TestReplacedHeadIsOnABranch holds that what a branch needs of a head that was fetched stays: the
// branch was fetched without it, as it was there.
func TestReplacedHeadIsOnABranch(t *testing.T) {
	t.Parallel()
	for _, maintained := range []bool{false, true} {
		s := newReplacing(t)
		first := forkHead(t, s.origin, "refs/pull/2/head", 600_000, s.head("main"))
		s.moveTo(first)
		git(t, s.bare, "update-ref", "refs/heads/main", first)
		mustFetch(t, s.m)
		if maintained {
			s.maintain() // git packs nothing again that is in such a pack
		}
		for i := range 4 {
			s.moveTo(forkHead(t, s.origin, "refs/pull/3"+strconv.Itoa(i)+"/head", 600_000))
			requireWhole(t, s.m, first)
		}
		s.maintain()
		requireWhole(t, s.m, first)
		if keeps := must(filepath.Glob(filepath.Join(s.m.dir, "objects", "pack", "*.keep"))); len(keeps) != 1 {
			t.Errorf("kept as they are are %v", keeps)
		}
	}
}
