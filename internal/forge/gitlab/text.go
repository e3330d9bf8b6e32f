package gitlab

import (
	"regexp"
	"strings"
)

// GitLab acts upon lines that begin with a slash and a word, and takes them out of a text
// (user/project/quick_actions). A backslash keeps it from that, and isn't shown.
var (
	actionLine  = regexp.MustCompile(`^([ \t]*)(\\*/[A-Za-z])`)
	escapedLine = regexp.MustCompile(`^([ \t]*)\\(\\*/[A-Za-z])`)
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

const fence = "```"

// mapLines changes the lines of a text outside of its blocks of code, where GitLab doesn't act
// and a backslash would be shown. A block that isn't closed is none.
func mapLines(s string, change func(string) string) string {
	lines := strings.Split(s, "\n")
	for i := 0; i < len(lines); i++ {
		if strings.HasPrefix(lines[i], fence) {
			if end := closingFence(lines[i+1:]); end >= 0 {
				i += 1 + end
				continue
			}
		}
		lines[i] = change(lines[i])
	}
	return strings.Join(lines, "\n")
}

// closingFence is the line that closes a block of code; -1: none does.
func closingFence(lines []string) int {
	for i, line := range lines {
		if strings.TrimRight(line, "\r") == fence {
			return i
		}
	}
	return -1
}
