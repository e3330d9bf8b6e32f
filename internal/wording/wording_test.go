package wording

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestClip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, n := string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))+rapid.String().Draw(t, "more"), rapid.IntRange(3, 40).Draw(t, "n")
		got := Clip(s, n)
		if len(got) > n || !utf8.ValidString(got) || utf8.ValidString(s) && len(s) <= n && got != s {
			t.Fatalf("Clip(%q, %d) is %q", s, n, got)
		}
		if utf8.ValidString(s) && len(s) > n && !(strings.HasSuffix(got, "…") && strings.HasPrefix(s, strings.TrimSuffix(got, "…"))) {
			t.Fatalf("Clip(%q, %d) is %q: no beginning that shows that there is more", s, n, got)
		}
		if runes := ClipRunes(s, n); utf8.RuneCountInString(runes) > n || utf8.RuneCountInString(s) <= n && runes != s {
			t.Fatalf("ClipRunes(%q, %d) is %q", s, n, runes)
		}
		if line := ClipLine(s, n); len(line) > n || strings.ContainsAny(line, "\r\n\t") || !utf8.ValidString(line) {
			t.Fatalf("ClipLine(%q, %d) is %q", s, n, line)
		}
	})
}

func TestWords(t *testing.T) {
	for got, want := range map[string]string{
		Clip("ääää", 7):                   "ää…",
		Clip("a word", 5):                 "a…",
		ClipRunes("ääää", 4):              "ääää",
		ClipRunes("äää ä", 4):             "äää…",
		ClipLine(" two\n lines ", 20):     "two lines",
		Short("0123456789abcdef"):         "0123456789ab",
		Short("1.2.3"):                    "1.2.3",
		Count(1, "component"):             "1 component",
		Count(0, "component"):             "0 components",
		Plural(1, "file is", "files are"): "1 file is",
		Plural(1234, "reply", "replies"):  "1234 replies",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
