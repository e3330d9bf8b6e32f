package gitlab

import (
	"regexp"
	"strings"
)

// GitLab acts upon lines that begin with a slash and the name of a quick action, and takes them
// out of a text. A backslash keeps it from that, and isn't shown. Carriage returns it takes out of
// the text before it looks, wherever they are (lib/gitlab/quick_actions/extractor.rb).
var (
	actionLine  = regexp.MustCompile("^([ \t\r]*)(\\\\*/\r*[A-Za-z])")
	escapedLine = regexp.MustCompile("^([ \t\r]*)\\\\(\\\\*/\r*[A-Za-z])")
)

// escapeActions writes a text so that GitLab acts upon no line of it.
func escapeActions(s string) string {
	return mapLines(s, func(line string) string {
		return actionLine.ReplaceAllString(line, `${1}\${2}`)
	})
}

// unescapeActions is the text that escapeActions was given.
func unescapeActions(s string) string {
	return mapLines(s, func(line string) string {
		return escapedLine.ReplaceAllString(line, `${1}${2}`)
	})
}

// mapLines changes the lines of a text outside of its blocks of code, where GitLab doesn't act and
// a backslash would be shown. Versions find blocks of code differently: up to 16 by searching the
// text, later by parsing its Markdown. A block that only one of them finds is none.
func mapLines(s string, change func(string) string) string {
	lines := strings.Split(s, "\n")
	var hidden hiding
	for i := 0; i < len(lines); i++ {
		shown := strings.ReplaceAll(lines[i], "\r", "")
		if fence := openingFence(shown); fence != "" && !hidden.now() {
			if end := closingFence(lines[i+1:], fence); end >= 0 {
				i += 1 + end
				continue
			}
		}
		hidden.read(shown)
		lines[i] = change(lines[i])
	}
	return strings.Join(lines, "\n")
}

// hiding says whether a line may be within something in which blocks of code are none.
type hiding struct{ toBlank, toEnd bool }

var (
	// hidesToBlank begins HTML that a blank line ends.
	hidesToBlank = regexp.MustCompile(`^\s*</?[A-Za-z]`)
	// hidesToEnd begins what a blank line doesn't end: other blocks of code, quotations of several
	// lines, and HTML of some kinds.
	hidesToEnd = regexp.MustCompile("(?i)^\\s*(?:~~~|```|>>>|<[?!]|<(?:pre|script|style|textarea)\\b)")
)

func (h *hiding) now() bool { return h.toBlank || h.toEnd }

func (h *hiding) read(line string) {
	comment := strings.HasPrefix(line, "<!--") && strings.Contains(line, "-->") // as those of ours: it ends where it begins
	h.toEnd = h.toEnd || hidesToEnd.MatchString(line) && !comment
	h.toBlank = (h.toBlank || hidesToBlank.MatchString(line)) && strings.TrimSpace(line) != ""
}

// openingFence is what a line opens a block of code with; empty: it opens none.
func openingFence(line string) string {
	rest := strings.TrimLeft(line, "`")
	fence := line[:len(line)-len(rest)]
	if len(fence) < 3 || strings.Contains(rest, "`") {
		return ""
	}
	return fence
}

// closingFence is the line that closes a block of code; -1: none does, or not to all versions.
func closingFence(lines []string, fence string) int {
	for i, line := range lines {
		line = strings.ReplaceAll(line, "\r", "")
		if text := strings.Trim(line, " \t"); len(text) >= len(fence) && strings.Trim(text, "`") == "" {
			if line != text {
				return -1
			}
			return i
		}
	}
	return -1
}
