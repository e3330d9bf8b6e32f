package fieldpath

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

func parsePointer(s string) (Path, error) {
	if err := checkLength(s); err != nil {
		return Path{}, err
	}
	p := Path{pointer: true}
	for i, tok := range strings.Split(s[1:], "/") {
		for j := 0; j < len(tok); j++ {
			if tok[j] == '~' && (j+1 == len(tok) || tok[j+1] != '0' && tok[j+1] != '1') {
				return Path{}, fmt.Errorf("path %q: segment %d (%q): ~ must be followed by 0 or 1", s, i+1, tok)
			}
		}
		if tok == "-" {
			return Path{}, fmt.Errorf("path %q: segment %d: - (the end of a list) addresses no value", s, i+1)
		}
		tok = strings.ReplaceAll(strings.ReplaceAll(tok, "~1", "/"), "~0", "~")
		p.segs = append(p.segs, Segment{Kind: Token, Key: tok})
	}
	return p, checkSegmentCount(s, len(p.segs))
}

func checkLength(s string) error {
	switch {
	case s == "":
		return errors.New("the path is empty: write one like image.tag")
	case len(s) > maxLength:
		return fmt.Errorf("the path %.40q… is longer than %d bytes", s, maxLength)
	}
	return nil
}

// checkCanonicalLength refuses a path that could not be read again from how it is written
// down: with quotes and escapes it may be longer than it was given.
func checkCanonicalLength(p Path, given string) error {
	const most = 6 // times as long at most
	if len(given) <= maxLength/most {
		return nil
	}
	if n := len(Pattern{p}.String()); n > maxLength {
		return fmt.Errorf("the path %.40q… is longer than %d bytes when it is written with its quotes and escapes (%d)", given,
			maxLength, n)
	}
	return nil
}

func checkSegmentCount(s string, n int) error {
	if n > maxSegments {
		return fmt.Errorf("path %q: more than %d segments", s, maxSegments)
	}
	return nil
}

// parseDotted reads a dotted path or JSONPath; n is how much of s it took: with
// assignment, up to the first equals sign outside of brackets.
func parseDotted(s string, assignment bool) (p Path, n int, err error) {
	end := len(s)
	if assignment && end > maxLength {
		end = maxLength // the value may be longer than any path
	}
	if err := checkLength(s[:end]); err != nil {
		return Path{}, 0, err
	}
	fail := func(err error) (Path, int, error) {
		return Path{}, 0, fmt.Errorf("path %.120q: segment %d: %w", s, len(p.segs)+1, err)
	}
	i := 0
	if s == "$" || strings.HasPrefix(s, "$.") || strings.HasPrefix(s, "$[") {
		i = 1 // JSONPath's root
		if i == len(s) {
			return fail(errors.New("$ is the whole document, not one value in it"))
		}
		if s[i] == '.' {
			i++
		}
		if i == len(s) {
			return fail(errors.New("it is empty"))
		}
	}
	for i < len(s) && (!assignment || s[i] != '=') {
		var seg Segment
		var k int
		if s[i] == '[' {
			seg, k, err = parseBracket(s[i:])
		} else {
			seg, k, err = parseDottedKey(s[i:], assignment)
		}
		if err != nil {
			return fail(err)
		}
		p.segs = append(p.segs, seg)
		if i += k; i == len(s) || s[i] == '[' || assignment && s[i] == '=' {
			continue
		}
		if s[i] != '.' {
			return fail(fmt.Errorf("%q follows a bracket: write a dot between them", s[i:]))
		}
		if i++; i == len(s) || s[i] == '[' {
			return fail(errors.New("it is empty"))
		}
	}
	if len(p.segs) == 0 {
		return fail(errors.New("it is empty"))
	}
	return p, i, checkSegmentCount(s, len(p.segs))
}

// parseDottedKey reads a key up to the next dot or bracket, or a wildcard.
func parseDottedKey(s string, assignment bool) (Segment, int, error) {
	stop := ".["
	if assignment {
		stop += "="
	}
	key, literal, n, err := parseBareKey(s, stop)
	switch {
	case err != nil:
		return Segment{}, 0, err
	case key == "" && strings.HasPrefix(s, "."):
		return Segment{}, 0, errors.New("it is empty (there is no .. that searches at every depth: write a * for each level)")
	case key == "":
		return Segment{}, 0, errors.New("it is empty")
	case key == "*" && !literal:
		return Segment{Kind: Any}, n, nil
	case strings.Contains(key, "*") && !literal:
		return Segment{}, 0, fmt.Errorf("%q: a * stands for a whole key; write %s for the character", key,
			strings.ReplaceAll(key, "*", `\*`))
	}
	return Segment{Kind: Key, Key: key}, n, nil
}

// parseBareKey reads up to one of the stop bytes; a backslash takes the next
// character literally, and literal says that there was one.
func parseBareKey(s, stop string) (key string, literal bool, n int, err error) {
	var b strings.Builder
	for n < len(s) && strings.IndexByte(stop, s[n]) < 0 {
		switch s[n] {
		case '\\':
			if n++; n == len(s) {
				return "", false, 0, errors.New("a backslash ends it")
			}
			literal = true
		case ']':
			return "", false, 0, fmt.Errorf("%q has a ] without a [", s)
		}
		b.WriteByte(s[n])
		n++
	}
	return b.String(), literal, n, nil
}

// parseBracketElement reads what stands alone in a bracket, and the bracket: a quoted key,
// a wildcard or an index. ok is false where it is something else.
func parseBracketElement(s string) (seg Segment, n int, ok bool, err error) {
	if s != "" && (s[0] == '"' || s[0] == '\'') {
		key, n, err := parseQuotedText(s)
		if err != nil {
			return Segment{}, 0, false, err
		}
		if n += countSpaces(s[n:]); n < len(s) && s[n] == ']' {
			return Segment{Kind: Key, Key: key}, n + 1, true, nil
		}
		return Segment{}, 0, false, nil
	}
	n = strings.IndexAny(s, `]="'.\`)
	if n < 0 || s[n] != ']' {
		return Segment{}, 0, false, nil
	}
	switch text := strings.TrimRight(s[:n], " \t"); {
	case text == "":
		return Segment{}, 0, false, errors.New("[] is empty")
	case text == "*":
		return Segment{Kind: Any}, n + 1, true, nil
	default:
		i, err := strconv.Atoi(text)
		if err != nil || i < 0 || text != strconv.Itoa(i) {
			return Segment{}, 0, false, fmt.Errorf("[%s] is neither an index from 0, nor key=value, nor a quoted key", text)
		}
		return Segment{Kind: Index, Index: i}, n + 1, true, nil
	}
}

// parseQuotedText reads the quoted string that s starts with; in it, a backslash
// takes the next character literally. n is what it took.
func parseQuotedText(s string) (text string, n int, err error) {
	var b strings.Builder
	for n = 1; n < len(s) && s[n] != s[0]; n++ {
		if s[n] == '\\' && n+1 < len(s) {
			n++
		}
		b.WriteByte(s[n])
	}
	if n >= len(s) {
		return "", 0, fmt.Errorf("%q has no closing quote", s)
	}
	return b.String(), n + 1, nil
}

// countSpaces is how many blanks s starts with.
func countSpaces(s string) int { return len(s) - len(strings.TrimLeft(s, " \t")) }
