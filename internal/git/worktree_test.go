package git

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"pgregory.net/rapid"
)

// namesOf walks a tree and returns its files.
func namesOf(t testing.TB, tree fs.FS) []string {
	t.Helper()
	var out []string
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !d.IsDir() {
			out = append(out, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	err = tree.(interface {
		List(context.Context, func(string, fs.FileMode, string) error) error
	}).List(context.Background(), func(name string, mode fs.FileMode, _ string) error {
		if info := must(fs.Lstat(tree, name)); info.Mode() != mode {
			t.Errorf("%s is listed as %s, and is %s", name, mode, info.Mode())
		}
		listed = append(listed, name)
		return nil
	})
	walked := slices.Clone(out)
	if slices.Sort(walked); err != nil || !slices.Equal(listed, walked) {
		t.Errorf("%v: listed are %q, walked %q", err, listed, walked)
	}
	return out
}

func TestWorkingTree(t *testing.T) {
	t.Parallel()
	dir := newCheckoutDir(t, map[string]string{
		"kept": "1\n", "edited": "1\n", "deleted": "1\n", "gone/deleted": "1\n", "became/file": "1\n", "becomes": "1\n",
		".gitignore": "ignored\n*.log\n", "tracked.log": "1\n", "behind/a": "1\n", "exec": "1\n",
	})
	git(t, dir, "add", "--force", "tracked.log")
	git(t, dir, "commit", "--quiet", "--amend", "--no-edit")
	for _, p := range []string{"deleted", "gone", "became", "becomes", "behind"} {
		if err := os.RemoveAll(filepath.Join(dir, p)); err != nil {
			t.Fatal(err)
		}
	}
	put(t, dir, map[string]string{
		"edited": "2\n", "new folder/new file": "1\n", "ignored/x": "1\n", "y.log": "1\n", "became": "2\n", "becomes/b": "2\n",
		"elsewhere/a": "1\n", "-rf": "1\n", `quo"te`: "1\n", "new\nline": "1\n", "ünï": "1\n",
	})
	if err := os.MkdirAll(filepath.Join(dir, "empty", "folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	git(t, dir, "init", "--quiet", filepath.Join(dir, "nested"))
	put(t, dir, map[string]string{"nested/f": "1\n"})
	for from, to := range map[string]string{"behind": "elsewhere", "out": "/etc", "link": "kept"} {
		if err := os.Symlink(to, filepath.Join(dir, from)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(dir, "exec"), 0o755); err != nil {
		t.Fatal(err)
	}
	c := checkout(t, filepath.Join(dir, "elsewhere"))
	w := workingTree(t, c)
	want := []string{
		"-rf", ".gitignore", "became", "becomes/b", "behind", "edited", "elsewhere/a", "exec", "kept", "link", "new\nline",
		"new folder/new file", "out", `quo"te`, "tracked.log", "ünï",
	}
	if got := namesOf(t, w); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	for name, want := range map[string]string{"edited": "2\n", "new folder/new file": "1\n", "becomes/b": "2\n", "became": "2\n"} {
		if data, err := w.ReadFile(name); err != nil || string(data) != want {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
	for name, kind := range map[string]error{
		"deleted": fs.ErrNotExist, "gone": fs.ErrNotExist, "ignored/x": fs.ErrNotExist, ".git/config": fs.ErrNotExist, "nested/f": fs.ErrNotExist,
		"behind/a": ErrNotFollowed, "link": ErrNotFollowed, "out/passwd": ErrNotFollowed, "../x": fs.ErrInvalid, "/etc/passwd": fs.ErrInvalid,
		"becomes": errNotRegular, "empty": fs.ErrNotExist, "became/file": fs.ErrNotExist,
	} {
		if data, err := w.ReadFile(name); err == nil || kind != errNotRegular && !errors.Is(err, kind) {
			t.Errorf("%s: %q, %v; want %v", name, data, err, kind)
		}
	}
	if to, err := w.ReadLink("link"); err != nil || to != "kept" {
		t.Errorf("link: %q, %v", to, err)
	}
	info, err := w.Stat("exec")
	if err != nil || info.Mode() != 0o555 {
		t.Errorf("exec: %v, %v", info, err)
	}
	var lines []string
	changed, err := w.Changed(t.Context(), git(t, dir, "rev-parse", "HEAD"))
	for _, c := range changed {
		lines = append(lines, fmt.Sprintf("%c %s %s %s", c.Status, c.OldMode, c.NewMode, c.Path))
	}
	wantChanged := []string{
		"A 000000 100644 -rf", "A 000000 100644 became", "D 100644 000000 became/file", "D 100644 000000 becomes", "A 000000 100644 becomes/b",
		"A 000000 120000 behind", "D 100644 000000 behind/a", "D 100644 000000 deleted", "M 100644 100644 edited", "A 000000 100644 elsewhere/a",
		"M 100644 100755 exec", "D 100644 000000 gone/deleted", "A 000000 120000 link", "A 000000 100644 new\nline",
		"A 000000 100644 new folder/new file", "A 000000 120000 out", `A 000000 100644 quo"te`, "A 000000 100644 ünï",
	}
	if err != nil || !slices.Equal(lines, wantChanged) {
		t.Errorf("got  %q\nwant %q\n%v", lines, wantChanged, err)
	}
}

var errNotRegular = errors.New("any error")

func TestWorkingTreeIsAFileSystem(t *testing.T) {
	t.Parallel()
	dir := newCheckoutDir(t, map[string]string{"a/b/c": "1\n", "a/d": "2\n", "e": "3\n"})
	put(t, dir, map[string]string{"a/new": "4\n"})
	if err := fstest.TestFS(workingTree(t, checkout(t, dir)), "a/b/c", "a/d", "e", "a/new"); err != nil {
		t.Error(err)
	}
}

// TestWorkingTreeOfASparseCheckout holds that files that a sparse checkout leaves out are there all
// the same.
func TestWorkingTreeOfASparseCheckout(t *testing.T) {
	t.Parallel()
	for _, index := range []string{"--no-sparse-index", "--sparse-index"} {
		dir := newCheckoutDir(t, map[string]string{"in/a": "1\n", "out/b/c": "2\n", "out/d": "3\n", "top": "4\n"})
		git(t, dir, "sparse-checkout", "set", "--cone", index, "in")
		if _, err := os.Stat(filepath.Join(dir, "out")); err == nil {
			t.Fatal("the checkout is not sparse")
		}
		w := workingTree(t, checkout(t, dir))
		if err := fstest.TestFS(w, "in/a", "out/b/c", "out/d", "top"); err != nil {
			t.Errorf("%s: %v", index, err)
		}
		if data, err := w.ReadFile("out/b/c"); err != nil || string(data) != "2\n" {
			t.Errorf("%s: %q, %v", index, data, err)
		}
		if changed, err := w.Changed(t.Context(), git(t, dir, "rev-parse", "HEAD")); err != nil || len(changed) > 0 {
			t.Errorf("%s: %+v, %v", index, changed, err)
		}
		if names, err := w.Grep(t.Context(), "^[12]$"); err != nil || !slices.Equal(names, []string{"in/a", "out/b/c"}) {
			t.Errorf("%s: %q, %v", index, names, err)
		}
	}
}

func TestGrep(t *testing.T) {
	t.Parallel()
	dir := newCheckoutDir(t, map[string]string{
		"a/set.yaml": "a: b\n  kind: ApplicationSet\n", "b.json": `{"kind":"ApplicationSet"}`, "c.txt": "kind: ApplicationSet\n", "d.yaml": "kind: Application\n",
		"gone.yaml": "kind: ApplicationSet\n", ".gitignore": "ignored.yaml\n", "-x y.yml": "\x00kind: 'ApplicationSet'\n",
	})
	head := git(t, dir, "rev-parse", "HEAD")
	put(t, dir, map[string]string{"new.yaml": "- kind: ApplicationSet\n", "ignored.yaml": "kind: ApplicationSet\n", "d.yaml": "kind: ApplicationSet\n"})
	if err := os.Remove(filepath.Join(dir, "gone.yaml")); err != nil {
		t.Fatal(err)
	}
	c := checkout(t, filepath.Join(dir, "a"))
	const kind = `kind["']?:[[:space:]]*["']?ApplicationSet`
	globs := []string{"*.yaml", "*.yml", "*.json"}
	names, err := c.Tree(head).Grep(t.Context(), kind, globs...)
	if want := []string{"-x y.yml", "a/set.yaml", "b.json", "gone.yaml"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("commit: %q, %v; want %q", names, err, want)
	}
	w := workingTree(t, c)
	names, err = w.Grep(t.Context(), kind, globs...)
	if want := []string{"-x y.yml", "a/set.yaml", "b.json", "d.yaml", "new.yaml"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("working tree: %q, %v; want %q", names, err, want)
	}
	if names, err := w.Grep(t.Context(), "nowhere to be found", globs...); err != nil || len(names) > 0 {
		t.Errorf("nothing: %q, %v", names, err)
	}
	if _, err := c.Tree(strings.Repeat("1", 40)).Grep(t.Context(), kind); !errors.Is(err, ErrUnknownCommit) {
		t.Errorf("unknown: %v", err)
	}
}

func TestWorkingTreeSubmodule(t *testing.T) {
	t.Parallel()
	inner := newCheckoutDir(t, map[string]string{"x": "1\n"})
	dir := newCheckoutDir(t, map[string]string{"a": "1\n"})
	git(t, dir, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", inner, "sub")
	git(t, dir, "commit", "--quiet", "--message=Submodule")
	put(t, dir, map[string]string{"sub/y": "2\n"})
	c := checkout(t, dir)
	w := workingTree(t, c)
	if got := namesOf(t, w); !slices.Equal(got, []string{".gitmodules", "a", "sub"}) {
		t.Errorf("%q", got)
	}
	if _, err := w.ReadFile("sub/x"); !errors.Is(err, ErrNotFollowed) {
		t.Errorf("through it: %v", err)
	}
	if changed, err := w.Changed(t.Context(), git(t, dir, "rev-parse", "HEAD")); err != nil || len(changed) > 0 {
		t.Errorf("%+v, %v", changed, err)
	}
	if got := checkout(t, filepath.Join(dir, "sub")); filepath.Base(got.Dir()) != "sub" {
		t.Errorf("from inside: %s", got.Dir())
	}
}

// TestWorkingTreeOfConvertedFiles holds that a file that a checkout writes otherwise than it is
// stored has not been edited.
func TestWorkingTreeOfConvertedFiles(t *testing.T) {
	t.Parallel()
	const content = "a large file\n"
	pointer := fmt.Sprintf("version https://git-lfs.github.com/spec/v1\noid sha256:%x\nsize %d\n", sha256.Sum256([]byte(content)), len(content))
	dir := newCheckoutDir(t, map[string]string{"text": "a\nb\n", "other": "a\nb\n", "large": pointer, "large2": pointer})
	git(t, dir, "config", "core.autocrlf", "true")
	put(t, dir, map[string]string{"text": "a\r\nb\r\n", "other": "a\r\nc\r\n", "large": content, "large2": "edited\n"})
	changed, err := workingTree(t, checkout(t, dir)).Changed(t.Context(), git(t, dir, "rev-parse", "HEAD"))
	if err != nil || len(changed) != 2 || changed[0].Path != "large2" || changed[1].Path != "other" {
		t.Errorf("%+v, %v", changed, err)
	}
}

// The working tree differs from a commit in what a commit of everything would
// differ in.
func TestWorkingTreeChangesAsGitWould(t *testing.T) {
	t.Parallel()
	dir := newCheckoutDir(t, nil)
	names := []string{"a", "b", "c/d", "c/e", "f/g/h", "f/g", "f", "sp ace", "x.tmp", "c"}
	rapid.Check(t, func(rt *rapid.T) {
		fill := func(label string) {
			for _, e := range must(os.ReadDir(dir)) {
				if e.Name() != ".git" {
					if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
						rt.Fatal(err)
					}
				}
			}
			if rapid.Bool().Draw(rt, label+" ignores") {
				put(t, dir, map[string]string{".gitignore": "*.tmp\n"})
			}
			for _, n := range rapid.SliceOfDistinct(rapid.SampledFrom(names), rapid.ID[string]).Draw(rt, label) {
				p := filepath.Join(dir, filepath.FromSlash(n))
				if os.MkdirAll(filepath.Dir(p), 0o755) != nil {
					continue // a file is in the way
				}
				switch rapid.SampledFrom([]string{"one", "two", "exec", "link"}).Draw(rt, label+" "+n) {
				case "one":
					_ = os.WriteFile(p, []byte("1\n"), 0o644)
				case "two":
					_ = os.WriteFile(p, []byte("2\n"), 0o644)
				case "exec":
					_ = os.WriteFile(p, []byte("1\n"), 0o755)
				case "link":
					_ = os.Symlink("c", p)
				}
			}
		}
		fill("committed")
		git(t, dir, "add", "--all")
		git(t, dir, "commit", "--quiet", "--allow-empty", "--message=x")
		head := git(t, dir, "rev-parse", "HEAD")
		fill("on disk")
		if rapid.Bool().Draw(rt, "some of it is in the index") {
			git(t, dir, "add", "--all")
			fill("on disk later")
		}
		c := checkout(t, dir)
		w := workingTree(t, c)
		got, err := w.Changed(t.Context(), head)
		if err != nil {
			rt.Fatal(err)
		}
		content := map[string]string{}
		for _, n := range namesOf(t, w) {
			info := must(w.Lstat(n))
			content[n] = info.Mode().String()
			if info.Mode().IsRegular() {
				content[n] += string(must(w.ReadFile(n)))
			}
		}
		git(t, dir, "add", "--all")
		git(t, dir, "commit", "--quiet", "--allow-empty", "--message=y")
		all := git(t, dir, "rev-parse", "HEAD")
		want, err := c.Changed(t.Context(), head, all)
		if err != nil {
			rt.Fatal(err)
		}
		byPath := func(a, b FileChange) int { return strings.Compare(a.Path, b.Path) }
		slices.SortFunc(want, byPath)
		if !slices.Equal(got, want) {
			rt.Fatalf("got  %+v\nwant %+v", got, want)
		}
		tree, wantContent := c.Tree(all), map[string]string{}
		for _, n := range namesOf(t, tree) {
			info := must(tree.Lstat(n))
			wantContent[n] = info.Mode().String()
			if info.Mode().IsRegular() {
				wantContent[n] += string(must(tree.ReadFile(n)))
			}
		}
		if !maps.Equal(content, wantContent) {
			rt.Fatalf("got  %q\nwant %q", content, wantContent)
		}
	})
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestWorkingTreeChangedInTheInstantOfTheIndex: a file of the same size whose times
// are those that the index has of it, which is as old, is read all the same.
func TestWorkingTreeChangedInTheInstantOfTheIndex(t *testing.T) {
	t.Parallel()
	dir := newCheckoutDir(t, map[string]string{"a": "1\n"})
	git(t, dir, "config", "core.checkStat", "minimal") // compares size and whole seconds, as a slow clock would
	git(t, dir, "config", "core.trustctime", "false")
	file, index := filepath.Join(dir, "a"), filepath.Join(dir, ".git", "index")
	then := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	if err := os.Chtimes(file, then, then); err != nil {
		t.Fatal(err)
	}
	git(t, dir, "update-index", "--refresh")
	if err := os.WriteFile(file, []byte("2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{file, index} {
		if err := os.Chtimes(name, then, then); err != nil {
			t.Fatal(err)
		}
	}
	if text := string(must(workingTree(t, checkout(t, dir)).ReadFile("a"))); text != "2\n" {
		t.Errorf("a is %q", text)
	}
}
