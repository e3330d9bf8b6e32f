package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/git"
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

// TestSequenceCommits holds that newer commits of a line have larger numbers, also when
// clocks went back, and that lines are told apart by time.
func TestSequenceCommits(t *testing.T) {
	at := func(minutes ...int) []git.CommitInfo {
		var out []git.CommitInfo
		for _, m := range minutes {
			out = append(out, git.CommitInfo{CommitTime: time.Unix(int64(1_700_000_000+60*m), 0)})
		}
		return out
	}
	one, other := sequenceCommits(at(9, 2, 5, 1)), sequenceCommits(at(7, 7, 3))
	for _, s := range [][]int64{one, other} {
		for i := 1; i < len(s); i++ {
			if s[i] >= s[i-1] {
				t.Errorf("%v", s)
			}
		}
	}
	if diff := cmp.Diff(true, one[0] > other[0] && other[1] > one[1] && one[2] > other[2] && other[2] > one[3]); diff != "" {
		t.Errorf("%v and %v", one, other)
	}
}
