package command

import (
	"fmt"
	"slices"
	"strings"
)

// What is read of a comment is bounded.
const (
	maxComment  = 256 << 10 // bytes; GitHub's 65,536 characters have at most so many
	maxLine     = 2000      // bytes of a line with a command
	maxCommands = 10        // in one comment
)

// Prefix is what commands start with.
const Prefix = "/liftlock"

// Parse reads the commands in a person's comment: lines that begin, in the first
// column, with /liftlock, or, with bare, with a verb like /promote. Lines in
// fenced and indented code, quotes (and what Markdown adds to them up to the next
// blank line), HTML comments and HTML's own code and quotes are none. An unknown
// bare word is another bot's and is left alone.
//
// The errors tell the author, one for each line that was not understood; such a
// line has no command. Both results may be non-empty.
func Parse(comment string, bare bool) ([]Command, []error) {
	var cmds []Command
	var errs []error
	long := len(comment) > maxComment
	if long {
		comment = comment[:maxComment]
	}
	comment = strings.ReplaceAll(strings.ReplaceAll(comment, "\r\n", "\n"), "\r", "\n")
	var s scanner
	for line := range strings.Lines(comment) {
		line = strings.TrimSuffix(line, "\n")
		words, ok := commandWords(s.visiblePart(line), bare)
		if !ok {
			continue
		}
		switch {
		case long:
			return nil, []error{fmt.Errorf("the comment is too long for commands; put them into one of their own, of at most %d bytes", maxComment)}
		case len(cmds)+len(errs) == maxCommands:
			return cmds, append(errs, fmt.Errorf("a comment takes %d commands; the rest was not taken", maxCommands))
		case len(line) > maxLine:
			errs = append(errs, fmt.Errorf("a line with a command takes %d bytes; this one has %d", maxLine, len(line)))
			continue
		}
		c, err := ParseArgs(words)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		cmds = append(cmds, c)
	}
	return cmds, errs
}

// commandWords are the words behind the prefix; false when the line is no command. One
// that is indented at all is none: it may be code, or code inside a list.
func commandWords(line string, bare bool) ([]string, bool) {
	if !strings.HasPrefix(line, "/") {
		return nil, false
	}
	words := strings.Fields(line)
	if strings.EqualFold(words[0], Prefix) {
		return words[1:], true
	}
	words[0] = strings.ToLower(words[0][1:])
	if bare && slices.Contains(verbs, words[0]) {
		return words, true
	}
	return nil, false
}

// scanner follows Markdown as far as is needed to tell what an author wrote from
// what is shown as code, quoted or hidden. On doubt a line is not the author's.
type scanner struct {
	fence  string // the open fence's characters
	quoted bool   // in a quote, until a blank line
	until  string // the HTML that ends what is hidden, lower-case
}

// hiddenTags are the HTML beginnings of what isn't the author's own word.
var hiddenTags = []struct{ open, end string }{
	{"<!--", "-->"},
	{"<pre", "</pre"},
	{"<code", "</code"},
	{"<blockquote", "</blockquote"},
	{"<script", "</script"},
	{"<style", "</style"},
	{"<textarea", "</textarea"},
}

// visiblePart is the part of a line that its author says; empty when nothing of it is.
func (s *scanner) visiblePart(line string) string {
	if s.until != "" {
		if _, rest, ok := cutIgnoreCase(line, s.until); ok {
			s.until = ""
			s.stripHidden(rest)
		}
		return ""
	}
	trimmed := strings.TrimLeft(line, " ")
	indent := len(line) - len(trimmed)
	if s.fence != "" {
		if indent < 4 && closesFence(s.fence, trimmed) {
			s.fence = ""
		}
		return ""
	}
	if strings.TrimSpace(line) == "" {
		s.quoted = false
		return ""
	}
	if indent < 4 && strings.HasPrefix(trimmed, ">") {
		s.quoted = true
		return ""
	}
	if indent < 4 {
		if f := openingFence(trimmed); f != "" {
			s.fence, s.quoted = f, false
			return ""
		}
	}
	shown := s.stripHidden(line)
	if s.quoted {
		return ""
	}
	return shown
}

// stripHidden notes what a line begins to hide, and is what stands before that. Code
// inside the line hides nothing.
func (s *scanner) stripHidden(line string) string {
	shown, whole := line, true
	for i := 0; i < len(line); {
		switch line[i] {
		case '`':
			run := len(line[i:]) - len(strings.TrimLeft(line[i:], "`"))
			i += run
			i += closingRun(line[i:], run)
		case '<':
			end := closingTag(line[i:])
			if end == "" {
				i++
				continue
			}
			if whole {
				shown, whole = line[:i], false
			}
			before, _, ok := cutIgnoreCase(line[i:], end)
			if !ok {
				s.until = end
				return shown
			}
			i += len(before) + len(end)
		default:
			i++
		}
	}
	return shown
}

// closingTag is the end of what a line begins to hide; empty when it hides nothing.
func closingTag(line string) string {
	for _, h := range hiddenTags {
		if len(line) >= len(h.open) && strings.EqualFold(line[:len(h.open)], h.open) {
			return h.end
		}
	}
	return ""
}

// closingRun is where the code span that run backticks opened ends; 0 when the
// line doesn't close it.
func closingRun(s string, run int) int {
	for i := 0; i < len(s); {
		if s[i] != '`' {
			i++
			continue
		}
		n := len(s[i:]) - len(strings.TrimLeft(s[i:], "`"))
		i += n
		if n == run {
			return i
		}
	}
	return 0
}

// cutIgnoreCase is strings.Cut without regard to the case of ASCII letters, and nothing
// where sep isn't there.
func cutIgnoreCase(s, sep string) (before, after string, found bool) {
	for i := 0; i+len(sep) <= len(s); i++ {
		if strings.EqualFold(s[i:i+len(sep)], sep) {
			return s[:i], s[i+len(sep):], true
		}
	}
	return "", "", false
}

// openingFence is the fence that a line opens; empty when it opens none.
func openingFence(line string) string {
	for _, c := range []string{"`", "~"} {
		f := line[:len(line)-len(strings.TrimLeft(line, c))]
		if len(f) >= 3 && (c == "~" || !strings.Contains(line[len(f):], "`")) {
			return f
		}
	}
	return ""
}

// closesFence says whether a line closes a fence: the same character, at least as
// often, and nothing behind.
func closesFence(fence, line string) bool {
	f := line[:len(line)-len(strings.TrimLeft(line, fence[:1]))]
	return len(f) >= len(fence) && strings.TrimSpace(line[len(f):]) == ""
}
