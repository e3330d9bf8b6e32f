package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/fieldedit"
)

const kustomization = "resources: [../../base]\nimages:\n  - name: registry.example/web\n    newTag: 1.4.1\n"

// hostile is a checkout with what people, and attackers, put into one.
func hostile(t *testing.T) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("there are no such files on Windows")
	}
	top := t.TempDir()
	for _, dir := range []string{"repo/.git", "repo/base", "repo/overlays/dev", "repo/overlays/ a 'b' ; $(c)"} {
		if err := os.MkdirAll(filepath.Join(top, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"base", "overlays/dev", "overlays/ a 'b' ; $(c)"} {
		if err := os.WriteFile(filepath.Join(top, "repo", file, "kustomization.yaml"), []byte(kustomization), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for to, from := range map[string]string{"overlays/linked": "../base", "overlays/link.yaml": "dev/kustomization.yaml", "overlays/out": top, "overlays/nowhere": "none", "../through": "repo"} {
		if err := os.Symlink(from, filepath.Join(top, "repo", to)); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(top, "repo")
}

func image(t *testing.T, tag string) []fieldedit.Op {
	t.Helper()
	op, err := fieldedit.ParseImageOp("registry.example/web=" + tag)
	if err != nil {
		t.Fatal(err)
	}
	return []fieldedit.Op{op}
}

// TestSetFollowsNoSymlink edits the file that is named and no other.
func TestSetFollowsNoSymlink(t *testing.T) {
	top := hostile(t)
	t.Chdir(top)
	for _, c := range []struct{ dir, file, refused string }{
		{".", "overlays/dev/kustomization.yaml", ""},
		{".", "overlays/linked/../dev/kustomization.yaml", "there is no file"}, // the system follows the link first
		{".", "overlays/dev/../dev/./kustomization.yaml", ""},
		{".", "overlays/ a 'b' ; $(c)/kustomization.yaml", ""},
		{"overlays", "dev/kustomization.yaml", ""},
		{".", filepath.Join(top, "overlays/dev/kustomization.yaml"), ""},
		{"../through", "overlays/dev/kustomization.yaml", ""}, // where the checkout is is its owner's to choose
		{".", "../through/overlays/dev/kustomization.yaml", ""},
		{".", "overlays/link.yaml", "overlays/link.yaml is not a regular file; name the file itself"},
		{".", "overlays/linked/kustomization.yaml", "leads through the symlink " + filepath.Join(top, "overlays/linked")},
		{"overlays", "linked/kustomization.yaml", "leads through the symlink"},
		{"overlays", "./linked/kustomization.yaml", "leads through the symlink"},
		{".", filepath.Join(top, "overlays/linked/kustomization.yaml"), "leads through the symlink"},
		{".", "overlays/out/repo/base/kustomization.yaml", "leads through the symlink"},
		{".", "overlays/linked/../overlays/dev/kustomization.yaml", "goes through a symlink and back"},
		{".", "overlays/nowhere/kustomization.yaml", "there is no file"},
		{".", "overlays", "is not a regular file"},
		{".", "/dev/null", "is not a regular file"},
	} {
		t.Run(c.file+" in "+c.dir, func(t *testing.T) {
			t.Chdir(filepath.Join(top, c.dir))
			before := contents(t, top)
			changes, _, err := setFile(c.file, image(t, "2.0."+fmt.Sprint(time.Now().UnixNano())), false)
			changed := 0
			for name, text := range contents(t, top) {
				if text != before[name] {
					changed++
				}
			}
			switch {
			case c.refused == "" && (err != nil || len(changes) != 1 || changed != 1):
				t.Errorf("%d changes, %d files changed, %v", len(changes), changed, err)
			case c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused) || changed != 0):
				t.Errorf("%d files changed, %v; want %q", changed, err, c.refused)
			}
		})
	}
}

// contents are all files of a checkout.
func contents(t *testing.T, top string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(top, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		out[path] = string(raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestSetReplacesTheFile keeps mode and owner, breaks a hard link rather than
// writing through it, writes no file that it may not, and leaves nothing behind.
func TestSetReplacesTheFile(t *testing.T) {
	top := hostile(t)
	file, twin := filepath.Join(top, "overlays/dev/kustomization.yaml"), filepath.Join(top, "twin.yaml")
	if err := os.Link(file, twin); err != nil {
		t.Fatal(err)
	}
	root := os.Getuid() == 0
	if root {
		if err := os.Chown(file, 1234, 5678); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(file, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, _, err := setFile(file, image(t, "2.0"), false); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode() != 0o640 {
		t.Fatalf("%v, mode %v", err, info.Mode())
	}
	if owner := fmt.Sprint(ownerOf(info)); root && owner != "[1234 5678]" {
		t.Errorf("it belongs to %s", owner)
	}
	if raw, err := os.ReadFile(twin); err != nil || string(raw) != kustomization {
		t.Errorf("its other name has %q (%v)", raw, err)
	}
	for _, c := range []struct {
		name        string
		file, dir   os.FileMode
		nothingToDo bool
	}{{"file", 0o444, 0o755, false}, {"folder", 0o644, 0o555, false}, {"neither is written", 0o444, 0o555, true}} {
		t.Run("read-only "+c.name, func(t *testing.T) {
			if root {
				t.Skip("root may write everything")
			}
			for name, mode := range map[string]os.FileMode{file: c.file, filepath.Dir(file): c.dir} {
				if err := os.Chmod(name, mode); err != nil {
					t.Fatal(err)
				}
			}
			defer os.Chmod(filepath.Dir(file), 0o755) // the folder goes anyway
			tag := "3.0"
			if c.nothingToDo {
				tag = "2.0"
			}
			changes, _, err := setFile(file, image(t, tag), false)
			if c.nothingToDo && (err != nil || len(changes) != 0) || !c.nothingToDo && (err == nil || !strings.Contains(err.Error(), "permission denied")) {
				t.Errorf("%v, %v", changes, err)
			}
		})
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(file), ".*")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
}

// TestSetOddFiles edits or refuses files that are not what their names promise.
func TestSetOddFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	pointer := "version https://git-lfs.github.com/spec/v1\noid sha256:" + strings.Repeat("4d", 32) + "\nsize 12345\n"
	large := func(size int) string {
		const head = "a: 1\n#"
		return head + strings.Repeat("x", size-len(head))
	}
	for _, c := range []struct{ name, before, after, refused string }{
		{"crlf.yaml", "a: 1\r\nb: 2\r\n", "a: 2\r\nb: 2\r\n", ""},
		{"bom.yaml", "\ufeffa: 1\n", "\ufeffa: 2\n", ""},
		{"utf16le.yaml", "\xff\xfea\x00:\x00 \x001\x00", "", "UTF-8"},
		{"utf16be.json", "\xfe\xff\x00{\x00}", "", "UTF-8"},
		{"latin1.yaml", "a: 1\nb: caf\xe9\n", "", "UTF-8"},
		{"zero.yaml", "a: 1\x00\n", "", "control characters"},
		{"lfs.yaml", pointer, "", "Git LFS pointer"},
		{"lfs.json", pointer, "", "Git LFS pointer"},
		{"empty.yaml", "", "", "empty"},
		{"-o.yaml", "a: 1\n", "a: 2\n", ""},
		{"--image=x.yaml", "a: 1\n", "a: 2\n", ""},
		{"a b.yaml", "a: 1\n", "a: 2\n", ""},
		{"new\nline.yaml", "a: 1\n", "a: 2\n", ""},
		{"esc\x1b[31m.yaml", "a: [\n", "", `"esc\x1b[31m.yaml"`},
		{"--image", "a: 1\n", "", "its name says neither"},
		{"large.yaml", large(fieldedit.MaxFileSize), "a: 2" + large(fieldedit.MaxFileSize)[4:], ""},
		{"larger.yaml", large(fieldedit.MaxFileSize + 1), "", "at most 20971520 are edited"},
		{"nodes.yaml", "a: 1\nb: [" + strings.Repeat("1,", 600_000) + "]\n", "", "too many nodes"},
		{"deep.yaml", "a: 1\nb: " + strings.Repeat("[", 200_000) + strings.Repeat("]", 200_000) + "\n", "", "deep"},
		{"deep.json", strings.Repeat(`{"a":`, 100_000) + "1" + strings.Repeat("}", 100_000), "", "deep"},
	} {
		t.Run(strings.ToValidUTF8(c.name, "?"), func(t *testing.T) {
			if err := os.WriteFile(c.name, []byte(c.before), 0o644); err != nil {
				t.Skipf("there can't be such a file here: %v", err)
			}
			op, err := fieldedit.ParseOp("a=2")
			if err != nil {
				t.Fatal(err)
			}
			changes, _, err := setFile(c.name, []fieldedit.Op{op}, false)
			raw, _ := os.ReadFile(c.name)
			if c.refused != "" {
				if err == nil || !strings.Contains(err.Error(), c.refused) || strings.ContainsRune(err.Error(), '\x1b') || string(raw) != c.before {
					t.Errorf("%v; want %q and the file as it was", err, c.refused)
				}
				return
			}
			if err != nil || string(raw) != c.after {
				t.Errorf("%v; the file is %.60q", err, raw)
			}
			for _, l := range fieldedit.ChangeLines(changes) {
				if strings.ContainsAny(l, "\x1b\n") {
					t.Errorf("it says %q", l)
				}
			}
		})
	}
}
