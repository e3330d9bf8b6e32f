package overlay

import (
	"fmt"
	"strconv"
	"strings"
)

// Bounds of a path; a longer one is a mistake, not an address.
const (
	maxPathLength   = 1024
	maxPathSegments = 64
)

type segmentKind int

const (
	segKey   segmentKind = iota // a mapping's key
	segIndex                    // a list's item, from 0
	segMatch                    // the list item whose key has a value
	segToken                    // JSON Pointer: a key in a mapping, an index in a list
)

type segment struct {
	kind  segmentKind
	key   string // segKey and segToken: the key; segMatch: the item's key
	value string // segMatch
	index int    // segIndex
}

// Path is the address of one value in a YAML or JSON document. The zero Path
// addresses nothing; make one with ParsePath.
type Path struct {
	segs    []segment
	pointer bool
}

// ParsePath reads a dotted path (image.tag, hosts[0].name,
// containers[name=web].image, annotations["a.b/c"]; a backslash takes the next
// character literally) or, with a leading slash, a JSON Pointer (RFC 6901).
// The error names the segment that can't be read.
func ParsePath(s string) (Path, error) {
	switch {
	case s == "":
		return Path{}, fmt.Errorf("the path is empty: write one like image.tag")
	case len(s) > maxPathLength:
		return Path{}, fmt.Errorf("the path %.40q… is longer than %d bytes", s, maxPathLength)
	}
	var p Path
	var err error
	if s[0] == '/' {
		p, err = parsePointer(s)
	} else {
		p, err = parseDotted(s)
	}
	if err != nil {
		return Path{}, fmt.Errorf("path %q: %w", s, err)
	}
	if len(p.segs) > maxPathSegments {
		return Path{}, fmt.Errorf("path %q: more than %d segments", s, maxPathSegments)
	}
	return p, nil
}

func parsePointer(s string) (Path, error) {
	p := Path{pointer: true}
	for i, tok := range strings.Split(s[1:], "/") {
		for j := 0; j < len(tok); j++ {
			if tok[j] == '~' && (j+1 == len(tok) || tok[j+1] != '0' && tok[j+1] != '1') {
				return Path{}, fmt.Errorf("segment %d (%q): ~ must be followed by 0 or 1", i+1, tok)
			}
		}
		if tok == "-" {
			return Path{}, fmt.Errorf("segment %d: - (the end of a list) addresses no value", i+1)
		}
		tok = strings.ReplaceAll(strings.ReplaceAll(tok, "~1", "/"), "~0", "~")
		p.segs = append(p.segs, segment{kind: segToken, key: tok})
	}
	return p, nil
}

func parseDotted(s string) (Path, error) {
	var p Path
	fail := func(format string, args ...any) (Path, error) {
		return Path{}, fmt.Errorf("segment %d: "+format, append([]any{len(p.segs) + 1}, args...)...)
	}
	for i := 0; i < len(s); {
		if s[i] != '[' {
			key, n, err := dottedKey(s[i:])
			if err != nil {
				return fail("%w", err)
			}
			p.segs = append(p.segs, segment{kind: segKey, key: key})
			i += n
		} else {
			seg, n, err := bracket(s[i:])
			if err != nil {
				return fail("%w", err)
			}
			p.segs = append(p.segs, seg)
			i += n
		}
		if i < len(s) && s[i] != '[' {
			if s[i] != '.' {
				return fail("%q follows a bracket: write a dot between them", s[i:])
			}
			if i++; i == len(s) || s[i] == '[' {
				return fail("it is empty")
			}
		}
	}
	return p, nil
}

// dottedKey reads up to the next dot or bracket.
func dottedKey(s string) (key string, n int, err error) {
	var b strings.Builder
	literal := false
	for n < len(s) && s[n] != '.' && s[n] != '[' {
		switch s[n] {
		case '\\':
			if n++; n == len(s) {
				return "", 0, fmt.Errorf("a backslash ends it")
			}
			literal = true
		case ']':
			return "", 0, fmt.Errorf("%q has a ] without a [", s)
		}
		b.WriteByte(s[n])
		n++
	}
	switch key = b.String(); {
	case key == "":
		return "", 0, fmt.Errorf("it is empty")
	case strings.Contains(key, "*") && !literal:
		return "", 0, fmt.Errorf("%q: wildcards are not supported yet", key)
	}
	return key, n, nil
}

// bracket reads one [...] with its brackets.
func bracket(s string) (segment, int, error) {
	body, n := s[1:], 1
	name, k, err := quotedOrUntil(body, "=]")
	if err != nil {
		return segment{}, 0, err
	}
	quoted := body != "" && (body[0] == '"' || body[0] == '\'')
	n += k
	if n >= len(s) {
		return segment{}, 0, fmt.Errorf("%q has no closing ]", s)
	}
	if s[n] == ']' {
		switch {
		case quoted:
			return segment{kind: segKey, key: name}, n + 1, nil
		case name == "":
			return segment{}, 0, fmt.Errorf("[] is empty")
		case name == "*":
			return segment{}, 0, fmt.Errorf("[*]: wildcards are not supported yet")
		}
		i, err := strconv.Atoi(name)
		if err != nil || i < 0 || name[0] == '+' || name != strconv.Itoa(i) {
			return segment{}, 0, fmt.Errorf("[%s] is neither an index from 0, nor key=value, nor a quoted key", name)
		}
		return segment{kind: segIndex, index: i}, n + 1, nil
	}
	if s[n] != '=' {
		return segment{}, 0, fmt.Errorf("%q: a quoted key is followed by ] or =", s)
	}
	if !quoted {
		name = strings.TrimPrefix(name, "?")
	}
	if name == "" {
		return segment{}, 0, fmt.Errorf("%q has no key before =", s)
	}
	n++
	value, k, err := quotedOrUntil(s[n:], "]")
	if err != nil {
		return segment{}, 0, err
	}
	n += k
	if n >= len(s) || s[n] != ']' {
		return segment{}, 0, fmt.Errorf("%q has no closing ]", s)
	}
	return segment{kind: segMatch, key: name, value: value}, n + 1, nil
}

// quotedOrUntil reads a quoted string (backslash escapes) or everything up to
// one of the stop bytes; n is what it took.
func quotedOrUntil(s, stop string) (text string, n int, err error) {
	if s == "" || s[0] != '"' && s[0] != '\'' {
		if n = strings.IndexAny(s, stop); n < 0 {
			n = len(s)
		}
		return s[:n], n, nil
	}
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

// String is the path in its canonical form; ParsePath reads it back.
func (p Path) String() string {
	var b strings.Builder
	for i, s := range p.segs {
		b.WriteString(p.segmentText(i, s))
	}
	return b.String()
}

// upTo is the path's first n segments, for messages.
func (p Path) upTo(n int) string {
	if n == 0 {
		return "the document"
	}
	return Path{segs: p.segs[:n], pointer: p.pointer}.String()
}

func (p Path) segmentText(i int, s segment) string {
	switch s.kind {
	case segToken:
		return "/" + strings.ReplaceAll(strings.ReplaceAll(s.key, "~", "~0"), "/", "~1")
	case segIndex:
		return fmt.Sprintf("[%d]", s.index)
	case segMatch:
		return "[" + bracketText(s.key, "?'\"=]\\") + "=" + bracketText(s.value, "'\"]\\") + "]"
	}
	if s.key == "" || strings.ContainsAny(s.key, ".[]*\\'\"") || i == 0 && s.key[0] == '/' {
		return "[" + quote(s.key) + "]"
	}
	if i == 0 {
		return s.key
	}
	return "." + s.key
}

// bracketText quotes what would otherwise be read differently.
func bracketText(s, special string) string {
	if s == "" || strings.ContainsAny(s, special) {
		return quote(s)
	}
	return s
}

func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}
