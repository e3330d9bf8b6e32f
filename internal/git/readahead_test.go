package git

import (
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"strings"
	"testing"
)

// TestReadAhead holds that a tree that was read ahead says the same as the tree, for links,
// submodules and large files too. It asks git no more for the files that it holds.
func TestReadAhead(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	sha := newSpecialTree(t, o)
	m := open(t, Options{URL: o.url()})
	mustFetch(t, m)
	plain := m.Tree(sha)
	var names, folders []string
	err := fs.WalkDir(plain, ".", func(name string, d fs.DirEntry, err error) error {
		if names = append(names, name); d.IsDir() {
			folders = append(folders, name)
		}
		return err
	})
	if err != nil || len(folders) < 2 {
		t.Fatal(folders, err)
	}
	m.caches.forgetAll()
	picked := 0
	ahead, err := plain.ReadAhead(t.Context(), append(folders, "nothing", "dir/file", "loop/x"), func(string) bool { picked++; return true })
	if err != nil || picked == 0 || len(ahead.prefetched) == 0 {
		t.Fatal(picked, len(ahead.prefetched), err)
	}
	for _, name := range append(names, "nothing", "loop/x", "sub/x") {
		want, wantErr := plain.ReadFile(name)
		got, err := ahead.ReadFile(name)
		if string(got) != string(want) || fmt.Sprint(err) != fmt.Sprint(wantErr) {
			t.Errorf("%s: read ahead %d bytes, %v; otherwise %d bytes, %v", name, len(got), err, len(want), wantErr)
		}
		wantInfo, wantErr := plain.Stat(name)
		info, err := ahead.Stat(name)
		if fmt.Sprint(err) != fmt.Sprint(wantErr) || err == nil && (info.Size() != wantInfo.Size() || info.Mode() != wantInfo.Mode()) {
			t.Errorf("%s: %v, %v; otherwise %v, %v", name, info, err, wantInfo, wantErr)
		}
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := ahead.ReadFile("dir/file")
	if err != nil || programsOf(m).objects.contents.process != nil || programsOf(m).objects.lookups.process != nil {
		t.Errorf("git was asked for a file that is held: %v", err)
	}
	data[0]++
	if again, err := ahead.ReadFile("dir/file"); err != nil || again[0] == data[0] {
		t.Errorf("the bytes are not the caller's: %v", err)
	}
	some, err := plain.ReadAhead(t.Context(), folders, func(file string) bool { return file == "dir/file" })
	if err != nil || len(some.prefetched) != 1 {
		t.Errorf("%d files are held, %v", len(some.prefetched), err)
	}
	if _, err := m.Tree(strings.Repeat("1", 40)).ReadAhead(t.Context(), folders, func(string) bool { return true }); err != nil {
		t.Errorf("of an unknown commit: %v", err)
	}
}

// TestIdentities compares with what is asked for one by one.
func TestIdentities(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	sha := newSpecialTree(t, o)
	many := map[string]string{}
	for i := range 2 * fewObjects { // so that they are read in one go
		many[fmt.Sprintf("many/d%d/e/x", i)] = fmt.Sprint(i)
	}
	sha2 := o.commit("main", "Many", many)
	m := open(t, Options{URL: o.url()})
	mustFetch(t, m)
	names := []string{".", "dir", "dir/file", "dir/file/x", "dir/nothing", "nothing", "nothing/x", "loop", "loop/x", "sub", "sub/x/y"}
	for name := range many {
		names = append(names, name, strings.TrimSuffix(name, "/x"))
	}
	for _, sha := range []string{sha, sha2} {
		m.caches.forgetAll()
		for range 2 { // the second time from memory
			got, err := m.Tree(sha).Identities(t.Context(), names)
			if err != nil {
				t.Fatal(err)
			}
			for i, name := range names {
				want, err := m.Tree(sha).Identity(name)
				switch {
				case name == "loop/x", name == "sub/x/y" && sha != sha2: // then it is gone
					want = BelowLink
				case name == "dir/file/x":
					want = BelowFile
				}
				if err != nil || got[i] != want {
					t.Errorf("%s: %q, one by one %q, %v", name, got[i], want, err)
				}
			}
		}
	}
	if _, err := m.Tree(strings.Repeat("1", 40)).Identities(t.Context(), names); !errors.Is(err, ErrUnknownCommit) {
		t.Errorf("of an unknown commit: %v", err)
	}
	if _, err := m.Tree(sha).Identities(t.Context(), []string{"../x"}); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("of a name that leads out: %v", err)
	}
}

// TestPairsAreCached asks near and far, twice each, and after the mirror
// was made anew.
func TestPairsAreCached(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	o := newOrigin(t)
	var line []string
	for i := range nearCommits + 3 {
		line = append(line, o.commit("main", fmt.Sprint(i), map[string]string{"x": fmt.Sprint(i)}))
	}
	git(t, o.work, "checkout", "--quiet", line[1])
	side := o.commit("side", "Side", map[string]string{"y": "1"})
	m := open(t, Options{URL: o.url()})
	mustFetch(t, m)
	tip := line[len(line)-1]
	check := func() {
		t.Helper()
		for _, c := range []struct {
			a, b string
			want bool
		}{{line[0], tip, true}, {line[len(line)-2], tip, true}, {tip, line[0], false}, {side, tip, false}, {line[1], side, true}, {line[2], side, false}, {tip, tip, true}} {
			if is, err := m.IsAncestor(ctx, c.a, c.b); err != nil || is != c.want {
				t.Errorf("%s is an ancestor of %s: %t, %v", c.a, c.b, is, err)
			}
		}
		if list, err := m.Changed(ctx, line[0], side); err != nil || !reflect.DeepEqual(list, []FileChange{{"x", 'M', Regular, Regular}, {"y", 'A', 0, Regular}}) {
			t.Errorf("%v, %v", list, err)
		}
	}
	check()
	if !programsOf(m).isNearAncestor(line[len(line)-2], tip) || programsOf(m).isNearAncestor(line[0], tip) {
		t.Error("what is near and what is not is told wrongly")
	}
	if n := m.caches.ancestries.Stats().Entries; n < 5 {
		t.Errorf("%d answers are remembered", n)
	}
	check()
	if err := programsOf(m).createEmpty(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := m.IsAncestor(ctx, line[0], tip); !errors.Is(err, ErrUnknownCommit) {
		t.Errorf("an empty mirror still knows: %v", err)
	}
}

// TestDifferencesAreTheCallers holds that callers can't change what is kept, and that a large
// difference isn't kept.
func TestDifferencesAreTheCallers(t *testing.T) {
	r := repository{caches: newCaches(nil)}
	list := []FileChange{{Path: "x"}}
	r.keepDifference(commitPair{"a", "b"}, list)
	list[0].Path = "changed"
	for range 2 {
		got, err := r.Changed(t.Context(), "a", "b")
		if err != nil || len(got) != 1 || got[0].Path != "x" {
			t.Fatalf("%v, %v", got, err)
		}
		got[0].Path = "changed"
	}
	r.keepDifference(commitPair{"large", "b"}, make([]FileChange, maxDifference+1))
	if _, known := r.caches.differences.Get(commitPair{"large", "b"}); known {
		t.Error("a large difference is kept")
	}
}
