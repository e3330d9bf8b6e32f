package textdiff

import (
	"strings"
	"testing"
)

func TestMerge(t *testing.T) {
	for name, tc := range map[string]struct{ base, ours, theirs, want string }{
		"nothing":                   {"abc", "abc", "abc", "abc"},
		"one side":                  {"abc", "abc", "aXc", "aXc"},
		"apart":                     {"abcde", "Xbcde", "abcdY", "XbcdY"},
		"a line apart":              {"abc", "Xbc", "abY", "XbY"},
		"beside each other":         {"abcd", "aXcd", "abYd", "-"},
		"the same line":             {"abc", "aXc", "aYc", "-"},
		"the same change":           {"abc", "aXc", "aXc", "aXc"},
		"the same and another":      {"abcde", "aXcde", "aXcdY", "aXcdY"},
		"inserted at one place":     {"ab", "aXb", "aYb", "-"},
		"inserted and deleted":      {"abcd", "aXbcd", "abc", "aXbc"},
		"both at the end":           {"ab", "abX", "abY", "-"},
		"deleted by both":           {"abc", "ac", "ac", "ac"},
		"deleted, and changed":      {"abc", "ac", "aXc", "-"},
		"several, one side by side": {"abcdef", "XbcdeY", "abZdef", "XbZdeY"},
	} {
		split := func(s string) []string { return strings.Split(s, "") }
		for _, flip := range []bool{false, true} {
			ours, theirs := split(tc.ours), split(tc.theirs)
			if flip {
				ours, theirs = theirs, ours
			}
			merged, ok := Merge(split(tc.base), ours, theirs)
			got := strings.Join(merged, "")
			if !ok {
				got = "-"
			}
			if got != tc.want {
				t.Errorf("%s: %s, want %s", name, got, tc.want)
			}
		}
	}
}
