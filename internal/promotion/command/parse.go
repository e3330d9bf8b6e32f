package command

import (
	"fmt"
	"slices"
	"strings"
)

// These bound how much of a comment is read.
const (
	maxComment  = 256 << 10 // bytes; GitHub's 65,536 characters have at most so many
	maxLine     = 2000      // bytes of a line with a command
	maxCommands = 10        // in one comment
	// maxParagraphs is how many bytes the paragraphs with commands have together: what reads their Markdown
	// may take time that grows by the square.
	maxParagraphs = 8 << 10
)

// Prefix is what commands start with.
const Prefix = "/liftlock"

// Parse reads the commands in a person's comment: lines that begin, in the first column, with
// /liftlock, or, with bare, with a verb like /promote. They are lines of a plain paragraph, as a
// reader sees the comment. Lines in code, quotes (and what Markdown adds to them up to the next
// blank line), links, tables, headings and formulas don't count. Neither does text that is struck
// out, folded or hidden by HTML. An unknown bare word is another bot's and is left alone.
//
// The errors tell the author, one for each line that was not understood; such a line has no
// command. Both results may be non-empty.
func Parse(comment string, bare bool) ([]Command, []error) {
	p := parser{isLong: len(comment) > maxComment}
	if p.isLong {
		comment = comment[:maxComment]
	}
	comment = strings.ReplaceAll(strings.ReplaceAll(comment, "\r\n", "\n"), "\r", "\n")
	var s scanner
	begin, end := 0, 0 // of the paragraph so far
	for line := range strings.Lines(comment) {
		shown, isParagraph := s.visiblePart(strings.TrimSuffix(line, "\n"))
		if !isParagraph {
			p.takeParagraph(comment[begin:end])
			begin = end + len(line)
		} else if words, ok := commandWords(shown, bare); ok {
			p.waiting = append(p.waiting, commandLine{end - begin, len(strings.TrimSuffix(line, "\n")), words})
		}
		end += len(line)
	}
	p.takeParagraph(comment[begin:end])
	return p.cmds, p.errs
}

// parser takes the commands of one paragraph after the other.
type parser struct {
	isLong  bool
	waiting []commandLine // of the paragraph that isn't taken yet
	read    int           // bytes of paragraphs whose Markdown was read
	over    bool          // nothing more is taken
	cmds    []Command
	errs    []error
}

// commandLine is a line that may be a command.
type commandLine struct {
	start  int // in its paragraph
	length int
	words  []string
}

// takeParagraph takes the commands in a paragraph, with whose text it is: on a line of its own, which is
// nothing but text.
func (p *parser) takeParagraph(paragraph string) {
	waiting := p.waiting
	p.waiting = nil
	if len(waiting) == 0 || p.over {
		return
	}
	if p.isLong {
		p.cmds, p.errs, p.over = nil, []error{fmt.Errorf("the comment is too long for commands; put them into one of their own, of at "+
			"most %d bytes", maxComment)}, true
		return
	}
	if p.read += len(paragraph); p.read > maxParagraphs {
		p.errs = append(p.errs, fmt.Errorf("a command stands in a paragraph of at most %d bytes, and so do all of a comment together; "+
			"put a blank line before it, or it into a comment of its own", maxParagraphs))
		p.over = true
		return
	}
	plain := plainLines(paragraph)
	for _, line := range waiting {
		if plain[line.start] && !p.over {
			p.takeLine(line)
		}
	}
}

func (p *parser) takeLine(line commandLine) {
	switch {
	case len(p.cmds)+len(p.errs) == maxCommands:
		p.errs, p.over = append(p.errs, fmt.Errorf("a comment takes %d commands; the rest was not taken", maxCommands)), true
		return
	case line.length > maxLine:
		p.errs = append(p.errs, fmt.Errorf("a line with a command takes %d bytes; this one has %d", maxLine, line.length))
		return
	}
	c, err := ParseArgs(line.words)
	if err != nil {
		p.errs = append(p.errs, err)
		return
	}
	p.cmds = append(p.cmds, c)
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
	if bare && slices.Contains(Verbs(), Verb(words[0])) {
		return words, true
	}
	return nil, false
}

// scanner follows a comment line by line, to tell an author's own text from text that is shown as
// code, quoted or hidden. It knows what Markdown alone doesn't say: HTML and forges' extensions. A
// doubtful line is not the author's.
type scanner struct {
	fence  string // the open fence's characters
	quoted bool   // in a quote, until a blank line
	until  string // the HTML that ends what is hidden, lower-case
	open   string // the HTML that begins it once more, where it nests, lower-case
	depth  int    // how often it has begun once more
	mark   string // the line that ends what it began: see markLines
}

// hiddenTags are the elements of HTML whose content isn't shown as the author's own word: as code, quoted,
// struck out, folded, in another language, or not at all.
var hiddenTags = []string{
	"pre", "code", "kbd", "samp", "tt", "var", "xmp", "plaintext", "listing",
	"blockquote", "q", "cite", "del", "s", "strike", "details", "summary",
	"script", "style", "textarea", "template", "title", "svg", "math", "object", "iframe", "noscript", "noembed", "noframes",
	"select", "option", "a", "table", "audio", "video", "picture", "dialog", "head",
}

// markLines begin and end text that isn't the author's own, each alone on its line: GitLab's quotes
// of several paragraphs, formulas, and struck-out text.
var markLines = []string{">>>", "$$", "~~"}

// visiblePart is the part of a line that its author says, where it is of a paragraph: of what ends with a
// blank line, or where something else begins.
func (s *scanner) visiblePart(line string) (shown string, isParagraph bool) {
	if s.until != "" {
		if rest, ok := s.skipHidden(line); ok {
			s.stripHidden(rest)
		}
		return "", false
	}
	trimmed := strings.TrimLeft(line, " ")
	indent := len(line) - len(trimmed)
	if s.fence != "" {
		if indent < 4 && closesFence(s.fence, trimmed) {
			s.fence = ""
		}
		return "", false
	}
	if s.mark != "" || slices.Contains(markLines, strings.TrimSpace(line)) {
		s.skipMarked(strings.TrimSpace(line))
		return "", false
	}
	if strings.TrimSpace(line) == "" {
		s.quoted = false
		return "", false
	}
	if indent < 4 && strings.HasPrefix(trimmed, ">") {
		s.quoted = true
		return "", false
	}
	if indent < 4 {
		if f := openingFence(trimmed); f != "" {
			s.fence, s.quoted = f, false
			return "", false
		}
	}
	shown = s.stripHidden(line)
	if s.quoted {
		return "", false
	}
	return shown, true
}

// skipMarked takes a line between two marks, or one of them.
func (s *scanner) skipMarked(line string) {
	switch s.mark {
	case "":
		s.mark = line
	case line:
		s.mark, s.quoted = "", false
	}
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
			n := s.hide(line[i:])
			if n == 0 {
				i++
				continue
			}
			if whole {
				shown, whole = line[:i], false
			}
			rest, ok := s.skipHidden(line[i+n:])
			if !ok {
				return shown
			}
			i = len(line) - len(rest)
		default:
			i++
		}
	}
	return shown
}

// hide notes what a text begins to hide, and says how long that beginning is; 0: it hides nothing.
func (s *scanner) hide(text string) int {
	if strings.HasPrefix(text, "<!--") {
		s.until, s.open = "-->", ""
		return len("<!--")
	}
	for _, name := range hiddenTags {
		if n := tagLength(text, "<"+name); n > 0 {
			s.until, s.open = "</"+name, "<"+name
			return n
		}
	}
	return 0
}

// skipHidden is what stands behind the end of what is hidden; false: it doesn't end on the line.
func (s *scanner) skipHidden(line string) (rest string, ended bool) {
	for i := 0; i < len(line); i++ {
		n := tagLength(line[i:], s.until)
		switch {
		case n == 0 && s.open != "" && tagLength(line[i:], s.open) > 0:
			s.depth++
		case n > 0 && s.depth > 0:
			s.depth--
		case n > 0:
			s.until = ""
			return line[i+n:], true
		}
	}
	return "", false
}

// tagLength is the length of a tag's beginning where a text begins with it, without regard to case; 0:
// it doesn't, or with a longer name.
func tagLength(text, tag string) int {
	n := len(tag)
	if n == 0 || len(text) < n || !strings.EqualFold(text[:n], tag) {
		return 0
	}
	if strings.HasPrefix(tag, "<") && n < len(text) && isNameByte(text[n]) {
		return 0
	}
	return n
}

func isNameByte(c byte) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return true
	}
	return c == '-' || c == ':'
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
