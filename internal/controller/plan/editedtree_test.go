package plan

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/git"
)

// git runs git in a folder.
func runGit(t interface{ Fatalf(string, ...any) }, dir string, args ...string) string {
	cmd := exec.Command("git", append([]string{"-c", "user.name=ada", "-c", "user.email=ada@example.com"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// dumpTree is all that can be seen of a tree: what List says, every file and folder by
// itself, and the contents by their ids.
func dumpTree(t interface{ Fatalf(string, ...any) }, tree interface {
	readable
	List(context.Context, func(string, fs.FileMode, string) error) error
	ReadBlobs(context.Context, []string, int64, func(int, []byte, error) error) error
}) []string {
	var out, ids []string
	folders := map[string]bool{}
	ctx := context.Background()
	err := tree.List(ctx, func(name string, mode fs.FileMode, id string) error {
		data, err := tree.ReadFile(name)
		if err != nil {
			return err
		}
		info, err := tree.Stat(name)
		if err != nil {
			return err
		}
		out = append(out, fmt.Sprintf("%s %v %v %s %d %q", name, mode, info.Mode()&0o100, id, info.Size(), data))
		ids = append(ids, id)
		for dir := path.Dir(name); ; dir = path.Dir(dir) {
			folders[dir] = true
			if dir == "." {
				return nil
			}
		}
	})
	if err == nil {
		err = tree.ReadBlobs(ctx, ids, 1<<20, func(i int, data []byte, err error) error {
			out = append(out, fmt.Sprintf("blob %d %q", i, data))
			return err
		})
	}
	for dir := range folders {
		entries, err := tree.ReadDir(dir)
		if err != nil {
			t.Fatalf("%v", err)
		}
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		out = append(out, fmt.Sprintf("folder %s %q", dir, names))
	}
	if err != nil {
		t.Fatalf("%v", err)
	}
	slices.Sort(out)
	return out
}

// TestEditedTree holds that a commit with edits is in every way what git makes of
// them, so that what is proven of it is proven of the commit that would be pushed.
func TestEditedTree(t *testing.T) {
	names := []string{"a/x.yaml", "a/b/y.yaml", "a-b/z", "a.yaml", "c/d/e/f", "ü ö.yaml"}
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "edited")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		there := map[string]string{"keep": "1"}
		for _, n := range names {
			if rapid.Bool().Draw(t, n) {
				there[n] = rapid.SampledFrom([]string{"", "one\n", "two\n"}).Draw(t, "content")
			}
		}
		for n, text := range there {
			writeFile(t, dir, n, text, 0o644)
		}
		runGit(t, dir, "init", "--quiet")
		runGit(t, dir, "add", "--all")
		runGit(t, dir, "commit", "--quiet", "--message=base")
		base := runGit(t, dir, "rev-parse", "HEAD")
		var edits []fieldedit.Edit
		for _, n := range names {
			e := fieldedit.Edit{File: n, Mode: fieldedit.ModeRegular, After: []byte(rapid.SampledFrom([]string{"", "two\n", "three\n"}).Draw(t, "after"))}
			text, was := there[n]
			switch rapid.SampledFrom([]string{"leave", "write", "run", "delete"}).Draw(t, "do "+n) {
			case "leave":
				continue
			case "run":
				e.Mode = fieldedit.ModeExecutable
			case "delete":
				if !was {
					continue
				}
				e.Deleted, e.Mode, e.After = true, 0, nil
			}
			if e.Created = !was; was {
				e.Before = []byte(text)
			}
			edits = append(edits, e)
			if e.Deleted {
				runGit(t, dir, "rm", "--quiet", n)
				continue
			}
			writeFile(t, dir, n, string(e.After), map[fieldedit.Mode]os.FileMode{fieldedit.ModeRegular: 0o644, fieldedit.ModeExecutable: 0o755}[e.Mode])
		}
		if len(edits) == 0 {
			return
		}
		runGit(t, dir, "add", "--all")
		runGit(t, dir, "commit", "--quiet", "--allow-empty", "--message=edits")
		c, err := git.OpenCheckout(context.Background(), dir)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		before, after := &commitTree{Tree: c.Tree(base)}, &commitTree{Tree: c.Tree(runGit(t, dir, "rev-parse", "HEAD"))}
		got, err := newEditedTree(context.Background(), before, edits)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(dumpTree(t, after), dumpTree(t, got)); diff != "" {
			t.Fatalf("(-git +edited):\n%s", diff)
		}
		for _, n := range append(names, "keep", ".", "a", "a/b", "a-b", "c/d/e", "c/d", "nowhere") {
			was, err1 := before.Identity(n)
			is, err2 := after.Identity(n)
			mine, err3 := got.Identity(n)
			if err1 != nil || err2 != nil || err3 != nil {
				t.Fatal(err1, err2, err3)
			}
			if (was == is) != (was == mine) && !editedBelow(edits, n) || (is == "") != (mine == "") {
				t.Fatalf("%s was %q, is %q in git and %q here", n, was, is, mine)
			}
		}
	})
}

// editedBelow: an edit that changes nothing, or back, may count as a change of
// the folders above it.
func editedBelow(edits []fieldedit.Edit, name string) bool {
	return slices.ContainsFunc(edits, func(e fieldedit.Edit) bool { return name == "." || strings.HasPrefix(e.File, name+"/") })
}

func writeFile(t *rapid.T, dir, name, text string, mode os.FileMode) {
	at := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(at, mode); err != nil {
		t.Fatal(err)
	}
}

// TestBaselineAncestry holds that what is answered without asking git is what git says, of
// the commits that a line has and the baseline's history doesn't.
func TestBaselineAncestry(t *testing.T) {
	dir := t.TempDir()
	runGit(t, dir, "init", "--quiet", "--initial-branch=main")
	commit := func(name string) string {
		runGit(t, dir, "commit", "--quiet", "--allow-empty", "--message="+name)
		return runGit(t, dir, "rev-parse", "HEAD")
	}
	commit("root")
	runGit(t, dir, "branch", "early")
	baseline := commit("baseline")
	runGit(t, dir, "branch", "late")
	tip := commit("tip")
	runGit(t, dir, "switch", "--quiet", "early")
	early := commit("early")
	runGit(t, dir, "switch", "--quiet", "late")
	late := commit("late")
	c, err := git.OpenCheckout(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	m := &planner{input: Input{Git: c, Commit: tip}, tracked: &branchHead{branch: "main", commit: tip}}
	for name, l := range map[string]*branchHead{"main": m.tracked, "early": {branch: "early", commit: early}, "late": {branch: "late", commit: late}} {
		s, err := m.newAncestry(t.Context(), l, baseline)
		if err != nil {
			t.Fatal(err)
		}
		for _, pair := range [][2]string{{l.commit, baseline}, {baseline, l.commit}} {
			want, err1 := c.IsAncestor(t.Context(), pair[0], pair[1])
			got, err2 := s.IsAncestor(t.Context(), pair[0], pair[1])
			if err1 != nil || err2 != nil || got != want {
				t.Errorf("%s: %v, %v; want %v, %v", name, got, err2, want, err1)
			}
		}
		if info, err := s.Commit(t.Context(), baseline); err != nil || info.Subject != "baseline" {
			t.Errorf("%+v, %v", info, err)
		}
	}
}
