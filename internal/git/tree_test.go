package git

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
)

func TestTreeIsAFileSystem(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	sha := o.commit("main", "One", map[string]string{
		"README": "hello", "a/b/c.yaml": "c: 1\n", "a/b-c": "x", "a/b.d/e": "y", "overlays/qa/kustomization.yaml": "images: []\n", "ä ö/ü": "z",
	})
	m := open(t, Options{URL: o.url()})
	mustFetch(t, m)
	if err := fstest.TestFS(m.Tree(sha), "README", "a/b/c.yaml", "a/b-c", "a/b.d/e", "overlays/qa/kustomization.yaml", "ä ö/ü"); err != nil {
		t.Error(err)
	}
	info, err := fs.Stat(m.Tree(sha), "a/b/c.yaml")
	if err != nil || info.Size() != 5 || info.Mode() != 0o444 || info.Name() != "c.yaml" {
		t.Errorf("%v, %v", info, err)
	}
	if id, err := m.Tree(sha).ObjectID("README"); err != nil || id != "b6fc4c620b67d95f953a5c1c1230aaab5db5a1b0" {
		t.Errorf("the content's id is %s, %v", id, err)
	}
	if id, err := m.Tree(sha).ObjectID("a"); err == nil {
		t.Errorf("a folder's id is %s", id)
	}
	f, err := m.Tree(sha).Open("README")
	if err != nil {
		t.Fatal(err)
	}
	if info, err := f.Stat(); err != nil || info.Size() != 5 {
		t.Errorf("the open file's size: %v, %v", info, err)
	}
	sub, err := fs.Sub(m.Tree(sha), "a")
	if err != nil {
		t.Fatal(err)
	}
	if found, err := fs.Glob(sub, "*/e"); err != nil || !reflect.DeepEqual(found, []string{"b.d/e"}) {
		t.Errorf("%v, %v", found, err)
	}
	data, err := m.Tree(sha).ReadFile("README")
	if err != nil {
		t.Fatal(err)
	}
	data[0] = 'X' // the caller's
	if again, err := m.Tree(sha).ReadFile("README"); err != nil || string(again) != "hello" {
		t.Errorf("%q, %v", again, err)
	}
}

// newSpecialTree makes a commit with what ordinary checkouts rarely have.
func newSpecialTree(t *testing.T, o *origin) (sha string) {
	t.Helper()
	o.commit("main", "One", map[string]string{"dir/file": "content", "big": strings.Repeat("0123456789abcdef", MaxFileSize/16) + "x", "just": strings.Repeat("0123456789abcdef", MaxFileSize/16)})
	for link, target := range map[string]string{"in": "dir/file", "folder": "dir", "out": "../../etc/passwd", "abs": "/etc/passwd", "loop": "loop", "dir/up": "../big"} {
		if err := os.Symlink(target, filepath.Join(o.work, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(o.work, "run"), []byte("#!"), 0o755); err != nil {
		t.Fatal(err)
	}
	git(t, o.work, "add", "--all")
	git(t, o.work, "update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("5", 40)+",sub")
	git(t, o.work, "commit", "--quiet", "--message=Special")
	git(t, o.work, "push", "--quiet", "origin", "HEAD:refs/heads/main")
	return git(t, o.work, "rev-parse", "HEAD")
}

func TestTreeSpecialEntries(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	sha := newSpecialTree(t, o)
	m := open(t, Options{URL: o.url()})
	mustFetch(t, m)
	tree := m.Tree(sha)

	for name, tc := range map[string]struct {
		mode fs.FileMode
		open error
		link string
	}{
		"in":       {mode: fs.ModeSymlink, open: ErrNotFollowed, link: "dir/file"},
		"folder":   {mode: fs.ModeSymlink, open: ErrNotFollowed, link: "dir"},
		"out":      {mode: fs.ModeSymlink, open: ErrNotFollowed, link: "../../etc/passwd"},
		"abs":      {mode: fs.ModeSymlink, open: ErrNotFollowed, link: "/etc/passwd"},
		"loop":     {mode: fs.ModeSymlink, open: ErrNotFollowed, link: "loop"},
		"dir/up":   {mode: fs.ModeSymlink, open: ErrNotFollowed, link: "../big"},
		"sub":      {mode: fs.ModeIrregular, open: ErrNotFollowed},
		"run":      {},
		"dir":      {mode: fs.ModeDir},
		"big":      {open: ErrTooLarge},
		"just":     {},
		"dir/file": {},
	} {
		t.Run(name, func(t *testing.T) {
			info, err := tree.Stat(name)
			if err != nil || info.Mode().Type() != tc.mode {
				t.Fatalf("%v, %v", info, err)
			}
			if info, err = tree.Lstat(name); err != nil || info.Mode().Type() != tc.mode {
				t.Fatalf("Lstat: %v, %v", info, err)
			}
			f, err := tree.Open(name)
			if !errors.Is(err, tc.open) {
				t.Fatalf("Open: %v, want %v", err, tc.open)
			}
			if err == nil {
				if err := f.Close(); err != nil {
					t.Error(err)
				}
			}
			target, err := tree.ReadLink(name)
			if tc.link == "" {
				if !errors.Is(err, fs.ErrInvalid) {
					t.Errorf("ReadLink: %q, %v", target, err)
				}
			} else if target != tc.link || err != nil {
				t.Errorf("ReadLink: %q, %v", target, err)
			}
		})
	}
	for name, want := range map[string]error{
		"folder/file": ErrNotFollowed, "sub/x": ErrNotFollowed, "dir/file/x": fs.ErrNotExist, "dir/nope": fs.ErrNotExist, "nope/x": fs.ErrNotExist,
		"../etc/passwd": fs.ErrInvalid, "/dir": fs.ErrInvalid, "dir/": fs.ErrInvalid, "": fs.ErrInvalid, "dir/../big": fs.ErrInvalid, "./dir": fs.ErrInvalid,
	} {
		var pe *fs.PathError
		if _, err := tree.ReadFile(name); !errors.Is(err, want) || !errors.As(err, &pe) || pe.Path != name {
			t.Errorf("ReadFile(%q): %v", name, err)
		}
		if _, err := tree.ReadDir(name); !errors.Is(err, want) {
			t.Errorf("ReadDir(%q): %v", name, err)
		}
		if _, err := tree.Stat(name); !errors.Is(err, want) {
			t.Errorf("Stat(%q): %v", name, err)
		}
	}
	if _, err := tree.ReadFile("dir"); err == nil {
		t.Error("a folder was read as a file")
	}
	if _, err := tree.ReadDir("run"); err == nil {
		t.Error("a file was listed as a folder")
	}
	if info, err := tree.Stat("run"); err != nil || info.Mode() != 0o555 {
		t.Errorf("%v, %v", info, err)
	}
	// A file that is too large doesn't spoil what is read after it.
	if data, err := tree.ReadFile("dir/file"); err != nil || string(data) != "content" {
		t.Errorf("%q, %v", data, err)
	}
	hash, err := m.TreeHash(t.Context(), sha, "dir")
	if want := git(t, o.work, "rev-parse", "HEAD:dir"); hash != want || err != nil {
		t.Errorf("TreeHash: %q, %v; want %q", hash, err, want)
	}
	for _, root := range []string{"", "."} {
		if hash, err := m.TreeHash(t.Context(), sha, root); hash != git(t, o.work, "rev-parse", "HEAD^{tree}") || err != nil {
			t.Errorf("TreeHash(%q): %q, %v", root, hash, err)
		}
	}
	if _, err := m.TreeHash(t.Context(), sha, "nope"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("TreeHash of nothing: %v", err)
	}
}

func TestTreeOfAnUnknownCommit(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.commit("main", "One", map[string]string{"a": "1"})
	m := open(t, Options{URL: o.url()})
	mustFetch(t, m)
	blob := git(t, o.work, "rev-parse", "HEAD:a")
	for sha, want := range map[string]error{strings.Repeat("1", 40): ErrUnknownCommit, blob: ErrUnknownCommit, "HEAD": ErrInvalid, "main:a": ErrInvalid, "": ErrInvalid, "--batch": ErrInvalid} {
		if _, err := m.Tree(sha).ReadFile("a"); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", sha, err, want)
		}
	}
	// Asking for it in vain doesn't stop it from being found later.
	sha := o.commit("main", "Two", map[string]string{"a": "2"})
	if _, err := m.Tree(sha).ReadFile("a"); !errors.Is(err, ErrUnknownCommit) {
		t.Fatal(err)
	}
	mustFetch(t, m)
	if data, err := m.Tree(sha).ReadFile("a"); err != nil || string(data) != "2" {
		t.Errorf("%q, %v", data, err)
	}
}

// hostileNames are file names that git stores without complaint.
var hostileNames = []string{"-rf", "--output=x", "new\nline", "tab\there", `quo"te`, "it's", `back\slash`, "$(id)", "`id`", ":(top)x", "*", " lead", "trail ", "umlaut-ä", "latin-\xe4", "a;b", "#x", "%s", "\x01"}

func TestHostileNames(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	o := newOrigin(t)
	var index strings.Builder
	blob := gitIn(t, o.bare, []byte("content"), "hash-object", "-w", "--stdin")
	for _, name := range hostileNames {
		fmt.Fprintf(&index, "100644 blob %s\t%s\x00", blob, name)
	}
	sub := gitIn(t, o.bare, []byte(index.String()), "mktree", "-z")
	for _, name := range hostileNames {
		fmt.Fprintf(&index, "040000 tree %s\tdir %s\x00", sub, name)
	}
	tree := gitIn(t, o.bare, []byte(index.String()), "mktree", "-z")
	sha := git(t, o.bare, "commit-tree", tree, "-m", "Hostile")
	git(t, o.bare, "update-ref", "refs/heads/main", sha)
	m := open(t, Options{URL: o.url()})
	mustFetch(t, m)

	want := map[string]bool{}
	for _, name := range hostileNames {
		want[name] = true
		for _, in := range hostileNames {
			want["dir "+name+"/"+in] = true
		}
	}
	walked := map[string]bool{}
	err := fs.WalkDir(m.Tree(sha), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			walked[name] = true
			var data []byte
			if data, err = m.Tree(sha).ReadFile(name); err == nil && string(data) != "content" {
				err = fmt.Errorf("%q holds %q", name, data)
			}
		}
		return err
	})
	if err != nil || !reflect.DeepEqual(walked, want) {
		t.Errorf("walked %v, %v", walked, err)
	}
	files, err := m.Files(ctx, sha, "")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, f := range files {
		listed[f.Path] = true
		if f.Blob != blob || f.Mode != Regular {
			t.Errorf("%+v", f)
		}
	}
	if !reflect.DeepEqual(listed, want) {
		t.Errorf("listed %v", listed)
	}
	for _, name := range hostileNames {
		in, err := m.Files(ctx, sha, "dir "+name)
		if err != nil || len(in) != len(hostileNames) {
			t.Errorf("Files of %q: %d, %v", "dir "+name, len(in), err)
		}
		if one, err := m.Files(ctx, sha, name); err != nil || len(one) != 1 || one[0].Path != name {
			t.Errorf("Files of %q: %v, %v", name, one, err)
		}
		diff, err := m.Diff(ctx, "", sha, name)
		if err != nil || strings.Count(diff, "+content") != 1 {
			t.Errorf("Diff of %q: %v\n%s", name, err, diff)
		}
	}
	changed, err := m.Changed(ctx, "", sha)
	if err != nil || len(changed) != len(want) {
		t.Fatalf("%d changes, %v", len(changed), err)
	}
	for _, c := range changed {
		if !want[c.Path] || c.Status != 'A' || c.NewMode != Regular || c.OldMode != 0 {
			t.Errorf("%+v", c)
		}
	}
}

func FuzzParseTree(f *testing.F) {
	f.Add([]byte("100644 a\x0001234567890123456789"))
	f.Add([]byte("40000 a\x000123456789012345678940000 b\x0001234567890123456789"))
	f.Add([]byte("100644 ../x\x0001234567890123456789"))
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, err := parseTree(data)
		if err != nil {
			return
		}
		for i, e := range entries {
			if !validName(e.name) || strings.Contains(e.name, "/") || len(e.sha) != 40 {
				t.Errorf("%+v", e)
			}
			if i > 0 && entries[i-1].name >= e.name {
				t.Errorf("%q before %q", entries[i-1].name, e.name)
			}
		}
	})
}

func TestFoldersAreBounded(t *testing.T) {
	c := newCaches(nil).folders
	list := make([]treeEntry, 999)
	for i := range 1000 {
		c.Put(fmt.Sprint(i), list)
		if _, ok := c.Get("0"); !ok {
			t.Fatalf("what is used is dropped, at %d", i)
		}
	}
	if s := c.Stats(); s.Bytes > maxFolderBytes || s.Entries < 200 {
		t.Errorf("%+v", s)
	}
	if _, ok := c.Get("500"); ok {
		t.Error("what was not used for long is kept")
	}
}
