package prtext

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// zeroWidthSpace is put where a forge would make a mention, a reference or a link out of
// plain text. Forges look for those in the rendered text, after backslashes and
// entities are resolved, so that escaping alone doesn't keep them off.
const zeroWidthSpace = "&#8203;"

// ellipsis ends what was cut.
const ellipsis = "…"

// cleanLine makes one line of visible characters out of s, at most limit of them. White space
// collapses. Invisible characters (controls, bidirectional overrides, zero widths, bytes that
// aren't UTF-8) are spelled out, so that a text can't look like another one.
func cleanLine(s string, limit int) string {
	var b strings.Builder
	space, n := false, 0
	for _, r := range s {
		if unicode.IsSpace(r) {
			space = n > 0
			continue
		}
		if n >= limit {
			b.WriteString(ellipsis)
			break
		}
		if space {
			b.WriteByte(' ')
			space = false
			n++
		}
		n++
		writeVisible(&b, r)
	}
	return b.String()
}

func writeVisible(b *strings.Builder, r rune) {
	if unicode.IsPrint(r) {
		b.WriteRune(r)
		return
	}
	fmt.Fprintf(b, "[U+%04X]", r)
}

// exactValue is clean for values: every white space but single spaces inside is shown,
// and a long value keeps its end too, where digests and tags differ.
func exactValue(s string, limit int) string {
	var tail string
	if n := utf8.RuneCountInString(s); n > limit {
		rs := []rune(s)
		s, tail = string(rs[:limit-limit/4]), string(rs[n-limit/4:])
	}
	var b strings.Builder
	part := func(s string) {
		for i, r := range s {
			if r == ' ' && (i == 0 || i == len(s)-1 || s[i-1] == ' ') {
				r = '␣'
			}
			writeVisible(&b, r)
		}
	}
	part(s)
	if tail != "" {
		b.WriteString(ellipsis)
		part(tail)
	}
	return b.String()
}

// escapeText is outside text inside a paragraph, a list item or a table's cell.
func escapeText(s string, limit int) string { return escapeMarkdown(cleanLine(s, limit)) }

// escapeMarkdown makes a line literal in GitHub's, GitLab's and Gitea's Markdown.
func escapeMarkdown(s string) string {
	var b strings.Builder
	start := lineStart(s)
	for i, r := range s {
		next := s[i+runeLen(s[i:]):]
		if i == start {
			b.WriteByte('\\')
		}
		switch r {
		case '\\', '`', '*', '_', '[', ']', '{', '}':
			b.WriteByte('\\')
			b.WriteRune(r)
			if gitlabReference.MatchString(s[i:]) {
				b.WriteString(zeroWidthSpace)
			}
		case '<':
			b.WriteString("&lt;")
		case '>':
			b.WriteString("&gt;")
		case '|': // a backslash before a pipe isn't read alike by all table parsers
			b.WriteString("&#124;")
		case '&', '~', '$', '@', '#', '!', '%', '^':
			switch r {
			case '&':
				b.WriteString("&amp;")
			case '~', '$':
				b.WriteByte('\\')
				fallthrough
			default:
				b.WriteRune(r)
			}
			if startsWord(next) || strings.HasPrefix(next, `"`) { // GitLab: ~"two words"
				b.WriteString(zeroWidthSpace)
			}
		case ':':
			b.WriteByte(':')
			if strings.HasPrefix(next, "/") {
				b.WriteString(zeroWidthSpace)
			}
		case '.':
			if hasSuffixIgnoreCase(s[:i], "www") {
				b.WriteString(zeroWidthSpace)
			}
			b.WriteByte('.')
		case '-':
			b.WriteByte('-')
			if (hasSuffixIgnoreCase(s[:i], "gh") || hasSuffixIgnoreCase(s[:i], "gl")) && startsWord(next) {
				b.WriteString(zeroWidthSpace)
			}
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// gitlabReference begins a reference in one of GitLab's longer forms, such as [vulnerability:7] (GitLab, "GitLab
// Flavored Markdown", "GitLab-specific references").
var gitlabReference = regexp.MustCompile(`^(?:\[[a-z_]+:|\*iteration:)`)

// lineStart is where a backslash keeps the beginning of s from being a heading,
// a list item or an underline; -1 when nothing needs it.
func lineStart(s string) int {
	if s == "" {
		return -1
	}
	if strings.ContainsRune("#+-=", rune(s[0])) {
		return 0
	}
	digits := len(s) - len(strings.TrimLeft(s, "0123456789"))
	if digits > 0 && digits < len(s) && (s[digits] == '.' || s[digits] == ')') {
		return digits
	}
	return -1
}

func runeLen(s string) int {
	_, n := utf8.DecodeRuneInString(s)
	return n
}

func startsWord(s string) bool {
	r, n := utf8.DecodeRuneInString(s)
	return n > 0 && (r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r))
}

func hasSuffixIgnoreCase(s, suffix string) bool {
	return len(s) >= len(suffix) && strings.EqualFold(s[len(s)-len(suffix):], suffix)
}

// codeSpan is an outside value as a code span, in which forges make no mentions,
// references or links.
func codeSpan(s string, limit int) string {
	if s == "" {
		return "*nothing*"
	}
	v := exactValue(s, limit)
	if !strings.ContainsAny(v, "`|\\<") {
		return "`" + v + "`"
	}
	// Text that would end the span, split a table's cell or look like our own hidden marks is
	// written as entities; those have no meaning but their character.
	var b strings.Builder
	b.WriteString("<code>")
	for _, r := range v {
		isPlain := r == ' ' || r == '/' || unicode.IsLetter(r) || unicode.IsDigit(r)
		if isPlain || r >= utf8.RuneSelf {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, "&#%d;", r)
		}
	}
	b.WriteString("</code>")
	return b.String()
}

// The lines between which a text for renderProse has a difference.
const (
	proseDiff = "```diff"
	proseEnd  = "```"
)

// maxDiffIndent bounds the spaces at the beginning of a difference's line.
const maxDiffIndent = 40

// diffFence is what a block with a text in it begins and ends with, so that nothing in the
// text can end it.
func diffFence(text string) string {
	longest, run := 0, 0
	for _, r := range text {
		if r != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return strings.Repeat("`", max(3, longest+1))
}

// renderProse is a text of several lines in the one markup of answers: blank lines, "- " items,
// `code`, and a difference between lines of proseDiff and proseEnd. All else in it is literal.
func renderProse(s string) string {
	var out, diff []string
	blank, inDiff := true, false
	endDiff := func() {
		if inDiff = false; len(diff) > 0 {
			fence := diffFence(strings.Join(diff, "\n"))
			out = slices.Concat(out, []string{fence + "diff"}, diff, []string{fence})
		}
		diff = nil
	}
	for line := range strings.Lines(s) {
		if len(out)+len(diff) >= maxLines {
			endDiff()
			out = append(out, "", ellipsis)
			break
		}
		switch line = strings.TrimRight(line, "\r\n"); {
		case inDiff && line == proseEnd:
			endDiff()
			continue
		case inDiff:
			text := strings.TrimLeft(line, " ")
			diff = append(diff, line[:min(len(line)-len(text), maxDiffIndent)]+cleanLine(text, maxLine))
			continue
		case line == proseDiff:
			inDiff, blank = true, false
			continue
		}
		line = strings.TrimSpace(line)
		if line == "" {
			if !blank {
				out = append(out, "")
			}
			blank = true
			continue
		}
		blank = false
		item, isItem := strings.CutPrefix(line, "- ")
		if isItem {
			out = append(out, "- "+escapeSpans(cleanLine(item, maxLine)))
		} else {
			out = append(out, escapeSpans(cleanLine(line, maxLine)))
		}
	}
	endDiff()
	return strings.TrimSpace(strings.Join(out, "\n"))
}

// escapeSpans escapes a line but for its `code`.
func escapeSpans(line string) string {
	parts := strings.Split(line, "`")
	if len(parts)%2 == 0 {
		return escapeMarkdown(line)
	}
	for i := 1; i < len(parts); i += 2 {
		if parts[i] == "" {
			return escapeMarkdown(line)
		}
	}
	for i, p := range parts {
		switch {
		case i%2 == 1:
			parts[i] = codeSpan(p, maxLine)
		case i == 0:
			parts[i] = escapeMarkdown(p)
		default: // not at the beginning of the line
			parts[i] = strings.TrimPrefix(escapeMarkdown("x"+p), "x")
		}
	}
	return strings.Join(parts, "")
}

// Forges act on words in commit messages and titles, which have no escapes. A space is the only
// thing that keeps a value from being a mention, a closing reference or a word that switches CI
// off.
var (
	bareReference = regexp.MustCompile(`([@#!])([\pL\pN_])`)
	ghReference   = regexp.MustCompile(`(?i)\b(g[hl]-)(\d)`) // and GitLab's
	bareURL       = regexp.MustCompile(`://`)
	ciWord        = regexp.MustCompile(`(?i)\[(skip|no|ci|actions)\b`)
	azureWord     = regexp.MustCompile(`(?i)\*(no_ci)\*`)
)

// plainLine is outside text in a title, a commit message or a commit status.
func plainLine(s string, limit int) string {
	s = cleanLine(s, limit)
	s = bareReference.ReplaceAllString(s, "$1 $2")
	s = ghReference.ReplaceAllString(s, "$1 $2")
	s = bareURL.ReplaceAllString(s, ": //")
	s = ciWord.ReplaceAllString(s, "($1")
	return azureWord.ReplaceAllString(s, "* $1 *")
}
