package git

import (
	"errors"
	"io/fs"
	"os/exec"
	"strings"
	"testing"
)

func TestBranchNamesAsGitTakesThem(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"main", "liftlock/shop/qa/web", "a.b", "a-b", "-a", "--force", "a..b", "a b", "a~1", "a^", "a:b", "a?", "a*", "a[b",
		`a\b`, ".a", "a/.b", "a.lock", "a.lock/b", "a/", "/a", "a//b", "@", "a@{b", "a@b", "HEAD", "ä", "a\nb", "a\tb", "a\x7fb", "a.", "", "refs/heads/a", "a.keep", "tmp_a",
	} {
		t.Run(name, func(t *testing.T) {
			wants := exec.Command("git", "check-ref-format", "--branch", name).Run() == nil
			if strings.HasPrefix(name, "@{") {
				wants = false
			}
			// "@" is a ref name to git, but no branch of ours.
			if name == "@" {
				wants = false
			}
			if err := checkBranch(name); (err == nil) != wants {
				t.Errorf("got %v, git takes it: %v", err, wants)
			} else if err != nil && !errors.Is(err, ErrInvalid) {
				t.Errorf("%v is not ErrInvalid", err)
			}
		})
	}
}

func TestPathsThatAreNotWritten(t *testing.T) {
	t.Parallel()
	for _, p := range []string{
		"", ".", "..", "../a", "a/../b", "a/..", "/a", "a/", "a//b", "./a", "a/./b",
		".git", ".git/config", "a/.git/hooks/x", ".GIT/config", ".Git", ".git.", ".git ", ".git /x", "git~1", "GIT~2/x", ".g\u200cit/x", "\ufeff.git", ".git::$INDEX_ALLOCATION/x", ".git:stream",
		"-rf", "a/-rf", "--output=x", "a\nb", "a\x00b", "a\tb", "a\x7fb", "a\u0085b", `a"b`, "a'b", `a\b`, `..\a`, "a\xffb",
		strings.Repeat("a", 256), strings.Repeat("a/", 2100) + "b",
	} {
		t.Run(shortenForLog(p), func(t *testing.T) {
			if err := checkWritePath(p); !errors.Is(err, ErrInvalid) {
				t.Errorf("got %v", err)
			}
		})
	}
	for _, p := range []string{"a", "a/b.yaml", "with space/b", "ä/ö", ".gitignore", ".github/x", "a.git", "...", "a-b", "$HOME/`id`", "a;b", "*", "[x]", ":(top)", "!x", "#x"} {
		if err := checkWritePath(p); err != nil {
			t.Errorf("%q is refused: %v", p, err)
		}
	}
}

// What may be written can be read back through the file system, and git's
// stream syntax gives back the same path.
func FuzzCheckWritePath(f *testing.F) {
	for _, p := range []string{"a/b", "..", ".git/x", "-x", "a\nb", "ä", `"`} {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, p string) {
		if checkWritePath(p) != nil {
			return
		}
		if !fs.ValidPath(p) || !validName(p) {
			t.Errorf("%q may be written but not read", p)
		}
		q := quotePath(p)
		if q != `"`+p+`"` || strings.ContainsAny(p, "\n\x00") {
			t.Errorf("%q is quoted as %s", p, q)
		}
		for part := range strings.SplitSeq(p, "/") {
			if strings.EqualFold(part, ".git") {
				t.Errorf("%q leads into git's folder", p)
			}
		}
	})
}

func TestObjectIDs(t *testing.T) {
	t.Parallel()
	for _, sha := range []string{"", "HEAD", "main", "--all", strings.Repeat("a", 39), strings.Repeat("a", 41), strings.Repeat("A", 40), strings.Repeat("a", 40) + "\n", strings.Repeat("a", 39) + "^"} {
		if err := checkSHA(sha); !errors.Is(err, ErrInvalid) {
			t.Errorf("%q: %v", sha, err)
		}
	}
	if err := checkSHA(emptyTree); err != nil {
		t.Error(err)
	}
}

func TestModes(t *testing.T) {
	t.Parallel()
	for m, want := range map[Mode]string{
		Regular: "100644 -r--r--r--", Executable: "100755 -r-xr-xr-x", Directory: "040000 dr-xr-xr-x",
		Symlink: "120000 Lrwxrwxrwx", Submodule: "160000 ?---------",
	} {
		if got := m.String() + " " + m.FS().String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := normalMode(0o100664); got != Regular {
		t.Errorf("100664 is %s", got)
	}
}
