package git

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestChanged(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	o := newOrigin(t)
	a := o.commit("main", "One", map[string]string{"same": "1", "edited": "1", "gone": "1", "moved": "a long enough line to be seen as moved\n", "exec": "1", "link": "x"})
	if err := os.Chmod(filepath.Join(o.work, "exec"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(o.work, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("same", filepath.Join(o.work, "link")); err != nil {
		t.Fatal(err)
	}
	b := o.commit("main", "Two", map[string]string{"edited": "2", "gone": "", "moved": "", "to/moved": "a long enough line to be seen as moved\n"})
	m := open(t, Options{URL: o.url()})
	mustFetch(t, m)
	got, err := m.Changed(ctx, a, b)
	want := []FileChange{
		{"edited", 'M', Regular, Regular}, {"exec", 'M', Regular, Executable}, {"gone", 'D', Regular, 0},
		{"link", 'T', Regular, Symlink}, {"moved", 'D', Regular, 0}, {"to/moved", 'A', 0, Regular},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := m.Changed(ctx, a, a); err != nil || len(got) != 0 {
		t.Errorf("of nothing: %v, %v", got, err)
	}
	if got, err := m.Changed(ctx, "", a); err != nil || len(got) != 6 {
		t.Errorf("of all: %v, %v", got, err)
	}
	unknown := strings.Repeat("1", 40)
	for _, pair := range [][2]string{{unknown, b}, {a, unknown}, {"", unknown}} {
		if _, err := m.Changed(ctx, pair[0], pair[1]); !errors.Is(err, ErrUnknownCommit) {
			t.Errorf("%v: %v", pair, err)
		}
	}
	if _, err := m.Changed(ctx, "--output=x", b); !errors.Is(err, ErrInvalid) {
		t.Errorf("an option: %v", err)
	}
}

// TestChangedAsGitSays compares what is found in this process with what git says,
// over random trees: files, links and folders that take each other's places.
func TestChangedAsGitSays(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	o := newOrigin(t)
	o.commit("main", "First", map[string]string{"x": "1"})
	m := open(t, Options{URL: o.url()})
	mustFetch(t, m)
	rapid.Check(t, func(rt *rapid.T) {
		tree := func(label string) string {
			paths := rapid.SliceOfNDistinct(rapid.StringMatching(`[ab](/[ab.-]{1,2}){0,3}`), 0, 12, rapid.ID).Draw(rt, label)
			var s strings.Builder
			for _, p := range paths {
				if strings.Contains(p, "/.") || slices.ContainsFunc(paths, func(o string) bool { return strings.HasPrefix(o, p+"/") }) {
					continue
				}
				kind := rapid.SampledFrom([]string{"100644 blob", "100755 blob", "120000 blob"}).Draw(rt, p)
				text := rapid.SampledFrom([]string{"1", "2"}).Draw(rt, p+" text")
				fmt.Fprintf(&s, "M %s inline %s\ndata 1\n%s\n", strings.Fields(kind)[0], p, text)
			}
			gitIn(t, m.dir, []byte("commit refs/heads/random\ncommitter a <a@example.com> 1700000000 +0000\ndata 0\n"+s.String()), "fast-import", "--quiet", "--force")
			return git(t, m.dir, "rev-parse", "refs/heads/random")
		}
		a, b := tree("a"), tree("b")
		got, err := m.compareTrees(a, b)
		if err != nil {
			rt.Fatal(err)
		}
		want, err := m.engine.listChanges(ctx, a, b)
		if err != nil {
			rt.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			rt.Fatalf("found %v\ngit says %v", got, want)
		}
		again, err := m.Changed(ctx, a, b)
		if err != nil || !reflect.DeepEqual(again, want) {
			rt.Fatalf("asked %v, %v", again, err)
		}
	})
}

// TestManyFoldersDiffer leaves a large difference to git.
func TestManyFoldersDiffer(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	one, two := map[string]string{}, map[string]string{}
	for i := range maxDifferentFolders + 1 {
		one[fmt.Sprintf("d%03d/x", i)], two[fmt.Sprintf("d%03d/x", i)] = "1", "2"
	}
	a, b := o.commit("main", "One", one), o.commit("main", "Two", two)
	m := open(t, Options{URL: o.url()})
	mustFetch(t, m)
	if _, err := m.compareTrees(a, b); !errors.Is(err, errLargeDiff) {
		t.Errorf("compared here: %v", err)
	}
	for range 2 { // the second time from memory
		got, err := m.Changed(t.Context(), a, b)
		if err != nil || len(got) != maxDifferentFolders+1 || got[0] != (FileChange{"d000/x", 'M', Regular, Regular}) {
			t.Fatalf("%d changes, %v", len(got), err)
		}
		got[0].Path = "mine to change"
	}
}

func TestDiffIsBounded(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	o := newOrigin(t)
	a := o.commit("main", "One", map[string]string{"a/x": "1\n", "b/x": "1\n"})
	b := o.commit("main", "Two", map[string]string{"a/x": "2\n", "b/x": strings.Repeat("a line\n", MaxDiff/4)})
	m := open(t, Options{URL: o.url()})
	mustFetch(t, m)
	diff, err := m.Diff(ctx, a, b, "a")
	if err != nil || !strings.Contains(diff, "-1\n+2\n") || strings.Contains(diff, "b/x") {
		t.Errorf("%v\n%s", err, diff)
	}
	diff, err = m.Diff(ctx, a, b)
	if err != nil || len(diff) > MaxDiff+100 || !strings.HasSuffix(diff, " bytes\n") || !strings.Contains(diff, "+a line\n… cut off after ") {
		t.Errorf("%d bytes, %v: … %q", len(diff), err, diff[len(diff)-60:])
	}
	if id, err := m.PatchID(ctx, a, b); err != nil || len(id) != 64 {
		t.Errorf("the id of a long diff: %q, %v", id, err)
	}
}

func TestPatchID(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	o := newOrigin(t)
	m := open(t, Options{URL: o.url()})
	lines := func(head int, tag string) string {
		var b strings.Builder
		for i := range head {
			fmt.Fprintf(&b, "# comment %d\n", i)
		}
		b.WriteString("a: 1\nb: 2\nc: 3\nnewTag: " + tag + "\nd: 4\ne: 5\nf: 6\n")
		return b.String()
	}
	o.commit("main", "Root", map[string]string{"other": "0"})
	// pair makes a base and a change on it, on a line of history of its own.
	pair := func(before, after map[string]string) [2]string {
		git(t, o.work, "rm", "-r", "--quiet", "--ignore-unmatch", ".")
		a := o.commit("main", "A", before)
		return [2]string{a, o.commit("main", "B", after)}
	}
	base := pair(map[string]string{"k": lines(10, "v1")}, map[string]string{"k": lines(10, "v2")})
	for name, tc := range map[string]struct {
		pair [2]string
		same bool
	}{
		"the same again":                {pair(map[string]string{"k": lines(10, "v1")}, map[string]string{"k": lines(10, "v2")}), true},
		"further down":                  {pair(map[string]string{"k": lines(30, "v1")}, map[string]string{"k": lines(30, "v2")}), true},
		"other files are different":     {pair(map[string]string{"k": lines(10, "v1"), "z": "1"}, map[string]string{"k": lines(10, "v2")}), true},
		"another value":                 {pair(map[string]string{"k": lines(10, "v1")}, map[string]string{"k": lines(10, "v3")}), false},
		"only white space is different": {pair(map[string]string{"k": lines(10, "v1")}, map[string]string{"k": lines(10, " v2")}), false},
		"another file":                  {pair(map[string]string{"l": lines(10, "v1")}, map[string]string{"l": lines(10, "v2")}), false},
		"one more file":                 {pair(map[string]string{"k": lines(10, "v1")}, map[string]string{"k": lines(10, "v2"), "z": "1"}), false},
		"the neighbourhood changed":     {pair(map[string]string{"k": strings.Replace(lines(10, "v1"), "c: 3", "c: 4", 1)}, map[string]string{"k": strings.Replace(lines(10, "v2"), "c: 3", "c: 4", 1)}), false},
		"the way back":                  {pair(map[string]string{"k": lines(10, "v2")}, map[string]string{"k": lines(10, "v1")}), false},
	} {
		t.Run(name, func(t *testing.T) {
			mustFetch(t, m)
			want, err := m.PatchID(ctx, base[0], base[1])
			if err != nil {
				t.Fatal(err)
			}
			got, err := m.PatchID(ctx, tc.pair[0], tc.pair[1])
			if err != nil || (got == want) != tc.same || len(got) != 64 {
				t.Errorf("%q and %q, %v", got, want, err)
			}
		})
	}
	if id, err := m.PatchID(ctx, base[0], base[0]); id != "" || err != nil {
		t.Errorf("of nothing: %q, %v", id, err)
	}
	bin1 := pair(map[string]string{"x": "\x00one"}, map[string]string{"x": "\x00two"})
	bin2 := pair(map[string]string{"x": "\x00one"}, map[string]string{"x": "\x00six"})
	mustFetch(t, m)
	id1, err1 := m.PatchID(ctx, bin1[0], bin1[1])
	id2, err2 := m.PatchID(ctx, bin2[0], bin2[1])
	if id1 == id2 || err1 != nil || err2 != nil {
		t.Errorf("two binary files have one id: %v, %v", err1, err2)
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	o := newOrigin(t)
	sha := o.commit("main", "One", map[string]string{"a": "1", "ab/c": "2", "a-b/c": "3", "d/e/f": "4"})
	m := open(t, Options{URL: o.url()})
	mustFetch(t, m)
	for prefix, want := range map[string][]string{
		"": {"a", "a-b/c", "ab/c", "d/e/f"}, ".": {"a", "a-b/c", "ab/c", "d/e/f"}, "a": {"a"}, "ab": {"ab/c"}, "d": {"d/e/f"}, "d/e": {"d/e/f"}, "nope": nil, "d/e/f/g": nil,
	} {
		files, err := m.Files(ctx, sha, prefix)
		var got []string
		for _, f := range files {
			got = append(got, f.Path)
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("Files(%q): %q, %v", prefix, got, err)
		}
	}
	for _, prefix := range []string{"..", "a/../b", "/a", "a/"} {
		if _, err := m.Files(ctx, sha, prefix); err == nil {
			t.Errorf("Files(%q) works", prefix)
		}
	}
	if _, err := m.Files(ctx, strings.Repeat("1", 40), ""); !errors.Is(err, ErrUnknownCommit) {
		t.Error(err)
	}
}
