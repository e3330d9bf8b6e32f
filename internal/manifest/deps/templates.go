package deps

import (
	"bytes"
	"regexp"
	"strings"
)

// traits are what a Helm release's other files have to know of one of them.
type traits uint8

const (
	// usesFiles: a template reads files of the chart, by names that may be computed.
	usesFiles traits = 1 << iota
	// lendsFiles: those may be another chart's, as a named template reads those
	// of the chart that calls it.
	lendsFiles
	// usesTpl: a template renders strings from the values as templates.
	usesTpl
	// namesFiles: the text would read files if it were rendered as a template.
	namesFiles

	doubt = usesFiles | lendsFiles | usesTpl
)

var (
	filesWord = regexp.MustCompile(`\bFiles\b`)
	tplWord   = regexp.MustCompile(`\btpl\b`)
	elsewhere = regexp.MustCompile(`\b(define|Subcharts)\b`) // files of other charts may be meant

	action = regexp.MustCompile(`(?s)\{\{-?\s*(\w*).*?\}\}`)
)

// traitsOf reads a template, or a values file, for the words that matter.
func traitsOf(data []byte) traits {
	var t traits
	// Looking for plain text first saves most of the time.
	if bytes.Contains(data, []byte("Files")) && filesWord.Match(data) {
		t |= usesFiles | namesFiles
		if elsewhere.Match(data) {
			t |= lendsFiles
		}
	}
	if dumped(data) {
		t |= usesFiles | namesFiles | lendsFiles // what the subcharts have is written out too
	}
	if bytes.Contains(data, []byte("tpl")) && tplWord.Match(data) {
		t |= usesTpl
	}
	return t
}

// NamesFiles says that a text, rendered as a template, may read files of the
// chart that renders it.
func NamesFiles(text []byte) bool { return traitsOf(text)&namesFiles != 0 }

// dumped says that a template writes out all that it knows, .Files included:
// $ as a whole, or the dot where it is surely everything, outside of all that
// gives it another meaning.
func dumped(data []byte) bool {
	if bytes.IndexByte(data, '$') < 0 && !bytes.Contains(data, []byte(" .")) && !bytes.Contains(data, []byte("(.")) && !bytes.Contains(data, []byte("{.")) {
		return false
	}
	var open []bool // by block: the dot may be something else in it
	other := 0
	for _, at := range action.FindAllSubmatchIndex(data, -1) {
		if dumps(data[at[0]+2:at[1]-2], other == 0) {
			return true
		}
		switch word := string(data[at[2]:at[3]]); word {
		case "if", "with", "range", "define", "block":
			open = append(open, word != "if")
			if word != "if" {
				other++
			}
		case "end":
			if len(open) == 0 {
				continue
			}
			if open[len(open)-1] {
				other--
			}
			open = open[:len(open)-1]
		}
	}
	return false
}

// dumps says that one action hands $, or with dot the dot, to a function that
// writes out what it is given.
func dumps(text []byte, dot bool) bool {
	// The functions that are being called, the innermost last; a whole symbol
	// that waits for a pipe counts as one.
	calls := []string{""}
	for i := 0; i < len(text); i++ {
		last := &calls[len(calls)-1]
		switch c := text[i]; {
		case c == '"' || c == '`':
			i = endOfString(text, i)
		case c == '(':
			calls = append(calls, "")
		case c == ')' && len(calls) > 1:
			calls = calls[:len(calls)-1]
		case c == '|' && *last == whole:
			return true
		case c == '|' || c == '=':
			*last = ""
		case c == '$' || c == '.':
			end := i + 1
			for end < len(text) && (isWord(text[end]) || text[end] == '.') {
				end++
			}
			bare := end == i+1 && (c == '$' || dot)
			i = end - 1
			if bare && isDumped(calls) {
				return true
			}
			if *last == "" {
				*last = "."
				if bare {
					*last = whole
				}
			}
		case isWord(c):
			end := i
			for end < len(text) && (isWord(text[end]) || text[end] == '.') {
				end++
			}
			if *last == "" {
				*last = string(text[i:end])
			}
			i = end - 1
		}
	}
	return false
}

// whole stands for $ or the dot at the start of a pipeline.
const whole = "$"

// endOfString is where the string that begins at i ends.
func endOfString(text []byte, i int) int {
	quote := text[i]
	for i++; i < len(text) && text[i] != quote; i++ {
		if text[i] == '\\' && quote == '"' {
			i++
		}
	}
	return i
}

// isDumped says that what the innermost of these calls is given is written
// out by it, or by one around it through lists and the like.
func isDumped(calls []string) bool {
	for i := len(calls) - 1; i >= 0; i-- {
		switch f := calls[i]; {
		case f == "include", f == "template", f == "tpl", f == "index", f == "get", f == "hasKey", f == "kindOf", f == "typeOf":
			return false
		case f == "quote", f == "squote", f == "cat", strings.HasPrefix(f, "print"),
			len(f) > 2 && strings.HasPrefix(f, "to") && f[2] >= 'A' && f[2] <= 'Z':
			return true
		}
	}
	return false
}
