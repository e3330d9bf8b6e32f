package deps

import (
	"bytes"
	"regexp"
	"strings"
)

// traits are what a Helm release's other files have to know of one of them.
type traits uint8

const (
	// readsFiles: a template reads files of the chart, by names that may be computed.
	readsFiles traits = 1 << iota
	// readsOtherCharts: those may be another chart's, as a named template reads those
	// of the chart that calls it.
	readsOtherCharts
	// usesTpl: a template renders strings from the values as templates.
	usesTpl
	// mentionsFiles: the text would read files if it were rendered as a template.
	mentionsFiles

	unknownTraits = readsFiles | readsOtherCharts | usesTpl
)

var (
	filesPattern       = regexp.MustCompile(`\bFiles\b`)
	tplPattern         = regexp.MustCompile(`\btpl\b`)
	otherChartsPattern = regexp.MustCompile(`\b(define|Subcharts)\b`) // files of other charts may be meant

	actionPattern = regexp.MustCompile(`(?s)\{\{-?\s*(\w*).*?\}\}`)
)

// traitsOf reads a template, or a values file, for the words that matter.
func traitsOf(data []byte) traits {
	var t traits
	// Looking for plain text first saves most of the time.
	if bytes.Contains(data, []byte("Files")) && filesPattern.Match(data) {
		t |= readsFiles | mentionsFiles
		if otherChartsPattern.Match(data) {
			t |= readsOtherCharts
		}
	}
	if dumpsContext(data) {
		t |= readsFiles | mentionsFiles | readsOtherCharts // what the subcharts have is written out too
	}
	if bytes.Contains(data, []byte("tpl")) && tplPattern.Match(data) {
		t |= usesTpl
	}
	return t
}

// MentionsChartFiles says that a text, rendered as a template, may read files of the
// chart that renders it.
func MentionsChartFiles(text []byte) bool { return traitsOf(text)&mentionsFiles != 0 }

// dumpsContext says that a template writes out its whole context, .Files included. It writes $ as a
// whole, or the dot where it is surely everything, outside of all that gives it another meaning.
func dumpsContext(data []byte) bool {
	if bytes.IndexByte(data, '$') < 0 && !bytes.Contains(data, []byte(" .")) && !bytes.Contains(data, []byte("(.")) &&
		!bytes.Contains(data, []byte("{.")) {
		return false
	}
	var blocks []bool // by block: the dot may be something else in it
	rebindings := 0
	for _, at := range actionPattern.FindAllSubmatchIndex(data, -1) {
		if actionDumpsContext(data[at[0]+2:at[1]-2], rebindings == 0) {
			return true
		}
		switch word := string(data[at[2]:at[3]]); word {
		case "if", "with", "range", "define", "block":
			blocks = append(blocks, word != "if")
			if word != "if" {
				rebindings++
			}
		case "end":
			if len(blocks) == 0 {
				continue
			}
			if blocks[len(blocks)-1] {
				rebindings--
			}
			blocks = blocks[:len(blocks)-1]
		}
	}
	return false
}

// actionDumpsContext says that one action hands $, or with dot the dot, to a function that
// writes out what it is given.
func actionDumpsContext(text []byte, dot bool) bool {
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
		case c == '|' && *last == wholeContext:
			return true
		case c == '|' || c == '=':
			*last = ""
		case c == '$' || c == '.':
			end := i + 1
			for end < len(text) && (isWordByte(text[end]) || text[end] == '.') {
				end++
			}
			bare := end == i+1 && (c == '$' || dot)
			i = end - 1
			if bare && isDumpCall(calls) {
				return true
			}
			if *last == "" {
				*last = "."
				if bare {
					*last = wholeContext
				}
			}
		case isWordByte(c):
			end := i
			for end < len(text) && (isWordByte(text[end]) || text[end] == '.') {
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

// wholeContext stands for $ or the dot at the start of a pipeline.
const wholeContext = "$"

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

// isDumpCall says that what the innermost of these calls is given is written
// out by it, or by one around it through lists and the like.
func isDumpCall(calls []string) bool {
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
