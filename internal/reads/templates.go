package reads

import (
	"bytes"
	"regexp"
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

	// A dump writes all that a template knows, .Files included.
	dollarDump = regexp.MustCompile(`\b(to[A-Z]\w*|print\w*|quote|squote|cat)\s+\$(\s|\||\)|-?\}\})|(\{\{-?|\()\s*\$\s*\|`)
	dotDump    = regexp.MustCompile(`\b(to[A-Z]\w*|print\w*|quote|squote|cat)\s+\.(\s|\||\)|-?\}\})|(\{\{-?|\()\s*\.\s*\|`)
	action     = regexp.MustCompile(`(?s)\{\{-?\s*(\w*).*?\}\}`)
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
	if bytes.IndexByte(data, '$') >= 0 && dollarDump.Match(data) || dotDumped(data) {
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

// dotDumped says that a template writes the dot out where it is surely
// everything: outside of all that gives it another meaning.
func dotDumped(data []byte) bool {
	if !bareDot(data) || !dotDump.Match(data) {
		return false
	}
	var open []bool // by block: the dot may be something else in it
	other := 0
	for _, at := range action.FindAllSubmatchIndex(data, -1) {
		word := string(data[at[2]:at[3]])
		if other == 0 && dotDump.Match(data[at[0]:at[1]]) {
			return true
		}
		switch word {
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

// bareDot says that there is a dot between what may surround the whole dot.
func bareDot(data []byte) bool {
	for i := 1; i+1 < len(data); i++ {
		if data[i] == '.' && bytes.IndexByte([]byte(" \t\r\n({-"), data[i-1]) >= 0 && bytes.IndexByte([]byte(" \t\r\n|)}-"), data[i+1]) >= 0 {
			return true
		}
	}
	return false
}
