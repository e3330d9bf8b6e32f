package gitlab

import (
	"regexp"
	"testing"
)

func TestEscapeActions(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "a *body*\nof lines", "a *body*\nof lines"},
		{"an action", "/close", `\/close`},
		{"one of our commands", "Say:\n/liftlock approve\nor don't.", "Say:\n\\/liftlock approve\nor don't."},
		{"after spaces", " \t/close", " \t\\/close"},
		{"within a line", "say /close", "say /close"},
		{"a path", "/ is the root, //host too", "/ is the root, //host too"},
		{"escaped by hand", `\/close`, `\\/close`},
		{"in a block of code", "```\n/close\n```\n/merge", "```\n/close\n```\n\\/merge"},
		{"in a block of code that isn't closed", "```\n/close", "```\n\\/close"},
		{"between blocks", "```sh\nls\n```\n/close\n```\n/tmp\n```", "```sh\nls\n```\n\\/close\n```\n/tmp\n```"},
		{"with Windows' line ends", "```\r\n/close\r\n```\r\n/merge\r\n", "```\r\n/close\r\n```\r\n\\/merge\r\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := escapeActions(c.text); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// FuzzEscapeActions holds that every text comes back as it was written, and that no line that
// isn't inside of a block of code begins an action.
func FuzzEscapeActions(f *testing.F) {
	for _, s := range []string{"", "/close", "```\n/close\n```", "```\n/a\n```\n```\n/b", "\\/a\n\\\\/b", "```x\n\n```\r\n/a"} {
		f.Add(s)
	}
	action := regexp.MustCompile("(?m)^/[A-Za-z]")
	block := regexp.MustCompile("(?ms)^```.*?^```\r*$")
	f.Fuzz(func(t *testing.T, s string) {
		escaped := escapeActions(s)
		if got := unescapeActions(escaped); got != s {
			t.Errorf("%q comes back as %q", s, got)
		}
		if rest := block.ReplaceAllString(escaped, "x"); action.MatchString(rest) {
			t.Errorf("%q is written as %q", s, escaped)
		}
	})
}
