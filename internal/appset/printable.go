package appset

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Printable is text as a terminal may show it. Text from files must not drive the terminal, so
// everything but letters, marks, numbers, punctuation and spaces is written as in a Go string.
func Printable(s string) string {
	if utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		if strconv.IsPrint(r) && (r != utf8.RuneError || size > 1) {
			b.WriteString(s[:size])
		} else {
			quoted := strconv.Quote(s[:size])
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		s = s[size:]
	}
	return b.String()
}

// PrintableLine is a message as Printable has it, on one line: errors of libraries have several.
func PrintableLine(s string) string {
	if strings.ContainsAny(s, "\r\n\t") {
		s = strings.Join(strings.Fields(s), " ")
	}
	return Printable(s)
}
