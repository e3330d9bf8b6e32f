package git

import (
	"errors"
	"io/fs"
	"os/exec"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion"
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

// TestOwnBranchesAtTheLimits holds that promotions and their reverts fit the limits: every name
// that a pipeline file takes makes branches that are pushed, and read again.
func TestOwnBranchesAtTheLimits(t *testing.T) {
	t.Parallel()
	release := strings.Repeat("0123456789abcdef", 4)
	name := rapid.Custom(func(t *rapid.T) string {
		first := rapid.StringMatching(`[a-z0-9]`).Draw(t, "first")
		return first + rapid.StringMatching(`[a-z0-9-]{60,62}|[a-z0-9-]{0,3}`).Draw(t, "rest")
	})
	rapid.Check(t, func(t *rapid.T) {
		p, e, c := name.Draw(t, "pipeline"), name.Draw(t, "environment"), name.Draw(t, "component")
		if rapid.Bool().Draw(t, "batch") {
			c = promotion.BatchName
		}
		for branch, want := range map[string]promotion.BranchRef{
			promotion.Branch(p, e, c):                {Pipeline: p, Environment: e, Component: c},
			promotion.RevertBranch(p, e, c, release): {Pipeline: p, Environment: e, Component: c, Short: release[:12], Revert: true},
		} {
			for _, name := range []string{p, e, c} {
				if err := pipeline.ValidName(name); err != nil {
					t.Fatal(err)
				}
			}
			if err := checkBranch(branch); err != nil {
				t.Errorf("%v", err)
			}
			if got, ours := promotion.ParseBranch(branch); !ours || got != want {
				t.Errorf("%s is %+v, ours: %t", branch, got, ours)
			}
		}
	})
}

// TestLongestBranchesArePushed pushes what is as long as can be to a Git server, where a
// ref is a file.
func TestLongestBranchesArePushed(t *testing.T) {
	t.Parallel()
	long := func(n int) string { return strings.Repeat("a", n) }
	for name, c := range map[string]struct {
		branch string
		kind   error
	}{
		"a revert of the longest names": {promotion.RevertBranch(long(63), long(63), long(63), long(64)), nil},
		"one part, the longest":         {long(244), nil},
		"one byte more":                 {long(245), ErrInvalid},
		"one byte more in parts":        {long(122) + "/" + long(122), ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOrigin(t)
			base := o.commit("main", "Base", map[string]string{"f": "0"})
			m := open(t, Options{URL: o.url()})
			mustFetch(t, m)
			err := m.Push(t.Context(), PushSpec{Branch: c.branch, New: base})
			if c.kind != nil {
				if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), "1 to 244 bytes, and this one 245") {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil || o.head(c.branch) != base {
				t.Fatalf("not pushed: %v", err)
			}
			if err := m.Push(t.Context(), PushSpec{Branch: c.branch, Old: base}); err != nil {
				t.Errorf("not deleted: %v", err)
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

// FuzzCheckWritePath holds that a path that may be written can be read back through the file
// system, and that git's stream syntax gives back the same path.
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
