package textdiff

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestUnified(t *testing.T) {
	file := func(text string) File { return File{Data: []byte(text), Mode: 0o100644} }
	ten := "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n"
	for name, c := range map[string]struct {
		was, is File
		file    string
		want    string
	}{
		"the same":   {file("a\n"), file("a\n"), "x", ""},
		"one line":   {file("a\nb\n"), file("a\nc\n"), "x", "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n"},
		"with space": {file("a\n"), file("b\n"), "x y", "diff --git a/x y b/x y\n--- a/x y\t\n+++ b/x y\t\n@@ -1 +1 @@\n-a\n+b\n"},
		"three lines around": {file(ten), file(strings.Replace(ten, "5", "five", 1)), "x",
			"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"},
		"far apart": {file(ten), file("one\n" + ten[2:18] + "ten\n"), "x",
			"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,4 +1,4 @@\n-1\n+one\n 2\n 3\n 4\n@@ -7,4 +7,4 @@\n 7\n 8\n 9\n-10\n+ten\n"},
		"no newline at the end": {file("a"), file("b\n"), "x",
			"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n"},
		"created":       {File{}, file("a\n"), "x", "diff --git a/x b/x\nnew file mode 100644\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+a\n"},
		"created empty": {File{}, file(""), "x", "diff --git a/x b/x\nnew file mode 100644\n"},
		"deleted":       {file("a\n"), File{}, "x", "diff --git a/x b/x\ndeleted file mode 100644\n--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"},
		"the mode":      {file("a\n"), File{Data: []byte("a\n"), Mode: 0o100755}, "x", "diff --git a/x b/x\nold mode 100644\nnew mode 100755\n"},
		"binary":        {file("a\x00"), file("b\x00"), "x", "diff --git a/x b/x\nBinary files a/x and b/x differ\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Unified(c.file, c.was, c.is); got != c.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, c.want)
			}
		})
	}
}

// TestGitApplies holds that git makes one state of the other by the diff.
func TestGitApplies(t *testing.T) {
	if testing.Short() {
		t.Skip("starts git for every case")
	}
	draw := rapid.SliceOfN(rapid.SampledFrom([]string{"a\n", "b\n", "c\r\n", "\n", "ä\n", "  - x: 1\n"}), 0, 40)
	rapid.Check(t, func(t *rapid.T) {
		was, is := strings.Join(draw.Draw(t, "was"), ""), ""
		lines := slices.Clone(strings.SplitAfter(was, "\n"))
		for range rapid.IntRange(1, 4).Draw(t, "edits") {
			i := rapid.IntRange(0, len(lines)-1).Draw(t, "at")
			lines[i] = rapid.SampledFrom([]string{"", "new\n", lines[i] + "more\n"}).Draw(t, "edit")
		}
		if is = strings.Join(lines, ""); rapid.Bool().Draw(t, "without an end") {
			is = strings.TrimSuffix(is, "\n")
		}
		dir, err := os.MkdirTemp("", "unified")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		name := rapid.SampledFrom([]string{"x.yaml", "a b.yaml", "ü.yaml", "d/x"}).Draw(t, "name")
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(was), 0o600); err != nil {
			t.Fatal(err)
		}
		diff := Unified(name, File{Data: []byte(was), Mode: 0o100644}, File{Data: []byte(is), Mode: 0o100644})
		if diff == "" {
			if was != is {
				t.Fatal("no diff")
			}
			return
		}
		cmd := exec.Command("git", "apply", "--whitespace=nowarn")
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(diff)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git apply: %v\n%s\n%s", err, out, diff)
		}
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || string(got) != is {
			t.Fatalf("%v: git made %q, want %q, of\n%s", err, got, is, diff)
		}
	})
}
