package git

import (
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/proc"
)

// writeTree stores a tree object of many entries that are all the same but for their names, and,
// where it is given, one more.
func writeTree(t testing.TB, repo string, n int, mode, id, more string) string {
	t.Helper()
	raw, err := hex.DecodeString(id)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if more != "" {
		b.WriteString(more)
	}
	for i := range n {
		fmt.Fprintf(&b, "%s n%07d\x00%s", mode, i, raw)
	}
	return gitIn(t, repo, b.Bytes(), "hash-object", "--literally", "-t", "tree", "-w", "--stdin")
}

// treeBomb stores folders of which each repeats the one below so many times, and gives a commit of
// them on top of another.
func treeBomb(t testing.TB, repo, leaf, mode string, levels, times int, parent string) string {
	t.Helper()
	at := writeTree(t, repo, times, mode, leaf, "")
	for range levels - 1 {
		at = writeTree(t, repo, times, "40000", at, "")
	}
	return git(t, repo, "commit-tree", at, "-p", parent, "-m", "Repeat")
}

// TestBoundedChanges holds that the differences are git's, and that repeated content is read only
// once.
func TestBoundedChanges(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	base := o.commit("main", "One", map[string]string{"a/b/c": "1", "d": "1", "e": "1"})
	blob, empty := git(t, o.work, "rev-parse", "HEAD:d"), gitIn(t, o.bare, nil, "hash-object", "-t", "tree", "-w", "--stdin")
	deep := writeTree(t, o.bare, 1, "100644", blob, "")
	for range maxBoundedDepth + 5 {
		deep = writeTree(t, o.bare, 1, "40000", deep, "")
	}
	wide := writeTree(t, o.bare, 130_000, "40000", empty, "")
	for i := range 4 { // each has the one before and as many names besides
		raw, _ := hex.DecodeString(wide)
		wide = writeTree(t, o.bare, 130_000, "40000", empty, fmt.Sprintf("40000 a%d\x00%s", i, raw))
	}
	long := writeTree(t, o.bare, 99_000, "100644", blob, "")
	for range 40 {
		raw, _ := hex.DecodeString(long)
		long = gitIn(t, o.bare, fmt.Appendf(nil, "40000 %s\x00%s", strings.Repeat("x", 200), raw), "hash-object", "--literally", "-t", "tree", "-w", "--stdin")
	}
	huge := writeTree(t, o.bare, 300_000, "100644", blob, "")
	heads := map[string]struct{ sha, says string }{
		"files 40⁸ times":           {treeBomb(t, o.bare, blob, "100644", 8, 40, base), "it changes 6553600000003 files, of at most 100000"},
		"more than can be counted":  {treeBomb(t, o.bare, blob, "100644", 60, 40, base), "it changes more than 18446744073709551615 files, of at most 100000"},
		"empty folders":             {treeBomb(t, o.bare, empty, "40000", 8, 40, base), "folders, of at most 100000"},
		"folders within each other": {git(t, o.bare, "commit-tree", deep, "-p", base, "-m", "Deep"), "more than 512 folders within one another"},
		"many wide folders":         {git(t, o.bare, "commit-tree", wide, "-p", base, "-m", "Wide"), "have more than 500000 entries"},
		"long paths":                {git(t, o.bare, "commit-tree", long, "-p", base, "-m", "Long"), "bytes of paths, of at most 16777216"},
		"one huge folder":           {git(t, o.bare, "commit-tree", huge, "-p", base, "-m", "Huge"), "a folder whose list takes more than 8 MiB"},
	}
	n := 0
	for _, h := range heads {
		n++
		git(t, o.bare, "update-ref", fmt.Sprintf("refs/pull/%d/head", n), h.sha)
	}
	m := open(t, Options{URL: o.url()})
	mustFetch(t, m)
	fetch := func(sha string) {
		t.Helper()
		if err := m.FetchRef(t.Context(), strings.Fields(git(t, o.bare, "for-each-ref", "--points-at="+sha, "--format=%(refname)", "refs/pull/"))[0], sha); err != nil {
			t.Fatal(err)
		}
	}
	for name, h := range heads {
		t.Run(name, func(t *testing.T) {
			fetch(h.sha)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			list, err := m.BoundedChanges(ctx, base, h.sha)
			if !errors.Is(err, ErrTooLarge) || !strings.Contains(HintOf(err), h.says) || list != nil {
				t.Errorf("got %d changes and %v, whose hint is %q", len(list), err, HintOf(err))
			}
		})
	}
	t.Run("as git says", func(t *testing.T) {
		files := map[string]string{"a/b/c": "2", "e": "", "g/h/i": "4"}
		for i := range maxDifferentFolders + 1 {
			files[fmt.Sprintf("many/d%03d/x", i)] = "1"
		}
		head := o.commit("other", "Two", files)
		mustFetch(t, m)
		for _, from := range []string{base, ""} {
			got, err := m.BoundedChanges(t.Context(), from, head)
			if err != nil {
				t.Fatal(err)
			}
			m.caches.forgetAll()
			want, err := m.Changed(t.Context(), from, head)
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("from %q: got %v, want %v (%v)", from, got, want, err)
			}
		}
		if _, err := m.BoundedChanges(t.Context(), base, strings.Repeat("1", 40)); !errors.Is(err, ErrUnknownCommit) {
			t.Errorf("of what isn't there: %v", err)
		}
	})
}

// packOf writes a pack of a blob of so many zeros and one that is a delta of it of one byte. A tree
// and a commit have both. GitHub takes such a pack from anybody.
func packOf(t testing.TB, size int) (pack []byte, commit string) {
	t.Helper()
	id := func(kind string, data []byte) (sha [20]byte) {
		h := sha1.New()
		fmt.Fprintf(h, "%s %d\x00", kind, len(data))
		h.Write(data)
		return [20]byte(h.Sum(nil))
	}
	zeros := make([]byte, size)
	big, small := id("blob", zeros), id("blob", zeros[:1])
	tree := fmt.Appendf(nil, "100644 big\x00%s100644 small\x00%s", big[:], small[:])
	treeID := id("tree", tree)
	text := fmt.Appendf(nil, "tree %x\nauthor M <m@example.com> 1 +0000\ncommitter M <m@example.com> 1 +0000\n\nBig\n", treeID)
	commitID := id("commit", text)
	var b bytes.Buffer
	b.WriteString("PACK")
	_ = binary.Write(&b, binary.BigEndian, []uint32{2, 4})
	put := func(kind byte, size int, prefix, data []byte) {
		head := kind<<4 | byte(size&15)
		for size >>= 4; size > 0; size >>= 7 {
			b.WriteByte(head | 0x80)
			head = byte(size & 0x7f)
		}
		b.WriteByte(head)
		b.Write(prefix)
		z := zlib.NewWriter(&b)
		_, _ = z.Write(data)
		_ = z.Close()
	}
	put(1, len(text), nil, text)
	put(2, len(tree), nil, tree)
	put(3, size, nil, zeros)
	delta := append(binary.AppendUvarint(nil, uint64(size)), 1, 0x90, 1) // copy one byte from 0
	put(7, len(delta), big[:], delta)
	sum := sha1.Sum(b.Bytes())
	return append(b.Bytes(), sum[:]...), hex.EncodeToString(commitID[:])
}

// TestFetchRefWithinLimits holds that a head that takes too much memory to be read counts as too
// large, however little it takes on the wire. It leaves nothing.
func TestFetchRefWithinLimits(t *testing.T) {
	t.Parallel()
	if !proc.CanLimit() {
		t.Skip("there are no limits here")
	}
	o := newOrigin(t)
	o.commit("main", "One", map[string]string{"a": "1"})
	pack, sha := packOf(t, 600<<20)
	if len(pack) > 1<<20 {
		t.Fatalf("the pack has %d bytes", len(pack))
	}
	gitIn(t, o.bare, pack, "index-pack", "--stdin")
	git(t, o.bare, "update-ref", "refs/pull/1/head", sha)
	m := open(t, Options{URL: o.url()})
	mustFetch(t, m)
	err := m.FetchRef(t.Context(), "refs/pull/1/head", sha)
	if !errors.Is(err, ErrTooLarge) || HintOf(err) != "fetching it takes more than 512 MiB of memory" {
		t.Fatalf("got %v", err)
	}
	requireNothingLeft(t, m, sha)
}

// TestFetchRefRefused holds that a head which git's checks refuse is named by the object and the
// check, in none of the stranger's words, and leaves nothing.
func TestFetchRefRefused(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.commit("main", "One", map[string]string{"a": "1"})
	tree := writeTree(t, o.bare, 1, "40000", git(t, o.bare, "rev-parse", "main^{tree}"), "40000 .git\x00"+string(unhex(t, git(t, o.bare, "rev-parse", "main^{tree}"))))
	sha := git(t, o.bare, "commit-tree", tree, "-m", "Evil")
	git(t, o.bare, "update-ref", "refs/pull/1/head", sha)
	m := open(t, Options{URL: o.url()})
	mustFetch(t, m)
	err := m.FetchRef(t.Context(), "refs/pull/1/head", sha)
	if want := "git refuses its object " + tree + " (hasDotgit)"; !errors.Is(err, ErrRejected) || HintOf(err) != want {
		t.Fatalf("got %v, whose hint is %q; want %q", err, HintOf(err), want)
	}
	requireNothingLeft(t, m, sha)
}

// requireNothingLeft holds that a head isn't there, nor what its fetch began to write.
func requireNothingLeft(t *testing.T, m *Mirror, sha string) {
	t.Helper()
	if ok, err := m.Has(t.Context(), sha); ok || err != nil {
		t.Errorf("the head is there: %t, %v", ok, err)
	}
	if refs := git(t, m.dir, "for-each-ref", fetchedPrefix); refs != "" {
		t.Errorf("kept are %s", refs)
	}
	left, err := filepath.Glob(filepath.Join(m.dir, "objects", "pack", "tmp_*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}
