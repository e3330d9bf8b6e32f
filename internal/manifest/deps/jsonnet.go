package deps

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// jsonnetImport is a file that Jsonnet names: its imports are always literal.
type jsonnetImport struct {
	path      string
	isJsonnet bool // it is Jsonnet itself, with imports of its own
}

// parseImports lists what a Jsonnet file imports. An error means that the list may
// not be complete.
func parseImports(data []byte) ([]jsonnetImport, error) {
	var out []jsonnetImport
	l := jsonnetLexer{rest: data}
	word := "" // the keyword before
	for len(out) < maxReferences {
		token, text, err := l.next()
		switch {
		case err != nil:
			return out, err
		case token == tokenEnd:
			return out, nil
		case token == tokenString && word != "":
			out = append(out, jsonnetImport{text, word == "import"})
			word = ""
		case token == tokenWord && (text == "import" || text == "importstr" || text == "importbin"):
			word = text
		default:
			word = ""
		}
	}
	return out, errTooMany
}

type tokenKind int

const (
	tokenEnd tokenKind = iota
	tokenWord
	tokenString
	tokenOther
)

// jsonnetLexer cuts Jsonnet into as much as finding imports needs.
type jsonnetLexer struct{ rest []byte }

var errOpenString = errors.New("a string has no end")

// next gives one token; comments and white space are passed over.
func (l *jsonnetLexer) next() (tokenKind, string, error) {
	for len(l.rest) > 0 {
		c := l.rest[0]
		switch {
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			l.rest = l.rest[1:]
		case c == '#', bytes.HasPrefix(l.rest, []byte("//")):
			l.skipPast([]byte("\n"))
		case bytes.HasPrefix(l.rest, []byte("/*")):
			l.rest = l.rest[2:]
			l.skipPast([]byte("*/"))
		case c == '"' || c == '\'':
			text, err := l.readQuoted(c)
			return tokenString, text, err
		case c == '@' && len(l.rest) > 1 && (l.rest[1] == '"' || l.rest[1] == '\''):
			text, err := l.readVerbatim(l.rest[1])
			return tokenString, text, err
		case bytes.HasPrefix(l.rest, []byte("|||")):
			text, err := l.skipTextBlock()
			return tokenString, text, err
		case isWordByte(c):
			n := 1
			for n < len(l.rest) && isWordByte(l.rest[n]) {
				n++
			}
			text := string(l.rest[:n])
			l.rest = l.rest[n:]
			return tokenWord, text, nil
		default:
			l.rest = l.rest[1:]
			return tokenOther, "", nil
		}
	}
	return tokenEnd, "", nil
}

func isWordByte(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// skipPast drops all up to the end of the next mark, or everything.
func (l *jsonnetLexer) skipPast(mark []byte) {
	if _, rest, ok := bytes.Cut(l.rest, mark); ok {
		l.rest = rest
		return
	}
	l.rest = nil
}

// readQuoted reads a string with escapes.
func (l *jsonnetLexer) readQuoted(quote byte) (string, error) {
	var b strings.Builder
	for i := 1; i < len(l.rest); i++ {
		switch c := l.rest[i]; {
		case c == quote:
			l.rest = l.rest[i+1:]
			return b.String(), nil
		case c != '\\':
			b.WriteByte(c)
		case i+1 < len(l.rest) && l.rest[i+1] == 'u' && i+5 < len(l.rest):
			var r rune
			if _, err := fmt.Sscanf(string(l.rest[i+2:i+6]), "%04x", &r); err != nil {
				r = utf8.RuneError
			}
			b.WriteRune(r)
			i += 5
		case i+1 < len(l.rest):
			i++
			b.WriteByte(unescapeByte(l.rest[i]))
		}
	}
	l.rest = nil
	return "", errOpenString
}

func unescapeByte(c byte) byte {
	switch c {
	case 'n':
		return '\n'
	case 't':
		return '\t'
	case 'r':
		return '\r'
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	}
	return c
}

// readVerbatim reads @'…', in which a quote is written twice.
func (l *jsonnetLexer) readVerbatim(quote byte) (string, error) {
	var b strings.Builder
	for i := 2; i < len(l.rest); i++ {
		if l.rest[i] != quote {
			b.WriteByte(l.rest[i])
			continue
		}
		if i+1 < len(l.rest) && l.rest[i+1] == quote {
			b.WriteByte(quote)
			i++
			continue
		}
		l.rest = l.rest[i+1:]
		return b.String(), nil
	}
	l.rest = nil
	return "", errOpenString
}

// skipTextBlock passes over a text block: it ends at the first line with less
// indentation than its first one, which must be |||. Such a path would hold a
// line end, so what the block says is of no interest.
func (l *jsonnetLexer) skipTextBlock() (string, error) {
	l.rest = bytes.TrimPrefix(l.rest[3:], []byte("-"))
	l.skipPast([]byte("\n"))
	for len(l.rest) > 0 && l.rest[0] == '\n' {
		l.rest = l.rest[1:]
	}
	indent := l.rest[:len(l.rest)-len(bytes.TrimLeft(l.rest, " \t"))]
	for len(l.rest) > 0 {
		line := bytes.TrimLeft(l.rest, " \t")
		switch {
		case l.rest[0] == '\n' || len(indent) > 0 && bytes.HasPrefix(l.rest, indent):
			l.skipPast([]byte("\n"))
		case bytes.HasPrefix(line, []byte("|||")):
			l.rest = line[3:]
			return "\n", nil
		default:
			return "", errOpenString
		}
	}
	return "", errOpenString
}
