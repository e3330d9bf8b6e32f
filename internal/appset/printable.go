package appset

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Printable is text as it may be shown on a terminal: what comes from files must
// not drive it, so everything else than letters, marks, numbers, punctuation
// and spaces is written as in a Go string.
func Printable(s string) string {
	if utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return s
	}
	quoted := strconv.Quote(s)
	return quoted[1 : len(quoted)-1]
}
