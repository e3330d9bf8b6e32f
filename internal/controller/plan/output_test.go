package plan

import (
	"strings"
	"testing"
)

func TestPrintableLine(t *testing.T) {
	for line, want := range map[string]string{
		"+a: b\n":              "+a: b\n",
		"-\ttab ü → 漢\n":       "-\ttab ü → 漢\n",
		"+windows\r\n":         "+windows\r\n",
		"+over\rwritten\n":     "+over\\rwritten\n",
		"+\x1b[31mred\x07\n":   "+\\x1b[31mred\\a\n",
		"+not \xff\xfe text\n": "+not \\xff\\xfe text\n",
		"+\u202eright to left": "+\\u202eright to left\n",
		"+kept \ufffd\n":       "+kept \ufffd\n",
		"":                     "\n",
	} {
		if got := printableLine(line); got != want {
			t.Errorf("%q is written as %q, want %q", line, got, want)
		}
	}
}

func TestJoinNames(t *testing.T) {
	for want, list := range map[string][]string{
		"no target":                         nil,
		"a":                                 {"a"},
		"a, b":                              {"a", "b"},
		"a, b, c, d, e, f, g, h and 2 more": strings.Split("a b c d e f g h i j", " "),
	} {
		if got := joinNames(list); got != want {
			t.Errorf("%q: %q", list, got)
		}
	}
}

func TestTruncateDiff(t *testing.T) {
	if got := truncateDiff("a\nb\n"); got != "a\nb\n" {
		t.Errorf("%q", got)
	}
	got := truncateDiff(strings.Repeat("+0123456789\n", maxDiff/10))
	if len(got) > maxDiff+100 || !strings.HasSuffix(got, "0123456789\n… cut off after 1048572 bytes\n") {
		t.Errorf("%d bytes, ending in %q", len(got), got[len(got)-60:])
	}
}
