// Package wording has what several rooms do to a text before a person reads it: bounding it,
// shortening an id, counting things. Work of a single room, such as escaping for a pull request,
// stays in that room.
package wording

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const ellipsis = "…"

// Clip cuts a text between characters to at most n bytes, the ellipsis that shows
// it among them. The result is valid UTF-8: a question mark is where s isn't.
func Clip(s string, n int) string {
	if len(s) > n {
		end := max(n-len(ellipsis), 0)
		for end > 0 && !utf8.RuneStart(s[end]) {
			end--
		}
		s = strings.TrimRightFunc(s[:end], unicode.IsSpace) + ellipsis
	}
	return strings.ToValidUTF8(s, "?")
}

// ClipRunes cuts a text to at most n characters, the ellipsis that shows it among them.
func ClipRunes(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return strings.TrimRightFunc(string([]rune(s)[:n-1]), unicode.IsSpace) + ellipsis
}

// ClipLine makes one line of at most n bytes of a text from outside.
func ClipLine(s string, n int) string {
	return Clip(strings.Join(strings.Fields(s[:min(len(s), 4*n)]), " "), n)
}

// Short is a commit or a release for people and for names: its first twelve digits.
func Short(id string) string { return id[:min(len(id), 12)] }

// Count is a number of things whose plural ends in s.
func Count(n int, thing string) string { return Plural(n, thing, thing+"s") }

// Plural is a number of things.
func Plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// JoinFew lists names, at most so many of them.
func JoinFew(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:most], ", ") + " and " + strconv.Itoa(len(names)-most) + " more"
}
