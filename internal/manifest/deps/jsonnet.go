package deps

import (
	"bytes"
	"errors"
	"regexp"
	"strconv"
	"strings"
)

// jsonnetImport is a file that Jsonnet names: its imports are always literal.
type jsonnetImport struct {
	path      string
	isJsonnet bool // it is Jsonnet itself, with imports of its own
}

var (
	errOpenString = errors.New("a string has no end")

	// jsonnetTokenPattern cuts Jsonnet into as much as finding imports needs: a
	// comment, the beginning of a text block, a whole string, a word, or another character.
	jsonnetTokenPattern = regexp.MustCompile(`(?s)((?:#|//)[^\n]*|/\*.*?(?:\*/|$))|(\|\|\|)|` +
		`(@"(?:[^"]|"")*"|@'(?:[^']|'')*'|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(\w+)|[^ \t\r\n]`)
	jsonnetEscapePattern = regexp.MustCompile(`(?s)\\(?:u.{4}|.)`)
)

// parseImports lists what a Jsonnet file imports. An error means that the list may not be complete.
//
// It is not go-jsonnet's FindDependencies. That one names only the first of the files that an
// import may mean. Its parser recurses without a bound, so that half a million brackets end the
// process.
func parseImports(data []byte) ([]jsonnetImport, error) {
	var out []jsonnetImport
	keyword := "" // the one before
	for rest := data; len(out) < maxReferences; {
		at := jsonnetTokenPattern.FindSubmatchIndex(rest)
		if at == nil {
			return out, nil
		}
		text := string(rest[at[0]:at[1]])
		isComment, isBlock, isString, isWord := at[2] >= 0, at[4] >= 0, at[6] >= 0, at[8] >= 0
		rest = rest[at[1]:]
		switch {
		case isComment:
			continue
		case isBlock:
			var ok bool
			if rest, ok = skipTextBlock(rest); !ok {
				return out, errOpenString
			}
		case isString && keyword != "":
			out = append(out, jsonnetImport{unquoteJsonnet(text), keyword == "import"})
		case !isString && strings.ContainsAny(text, `"'`):
			return out, errOpenString
		}
		keyword = ""
		if isWord && (text == "import" || text == "importstr" || text == "importbin") {
			keyword = text
		}
	}
	return out, errTooMany
}

func isWordByte(c byte) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return true
	}
	return c == '_'
}

// unquoteJsonnet is what a string literal says; in @'…' a quote is written twice.
func unquoteJsonnet(literal string) string {
	if literal[0] == '@' {
		quote := literal[1:2]
		return strings.ReplaceAll(literal[2:len(literal)-1], quote+quote, quote)
	}
	return jsonnetEscapePattern.ReplaceAllStringFunc(literal[1:len(literal)-1], func(escape string) string {
		if c, _, _, err := strconv.UnquoteChar(escape, 0); err == nil {
			return string(c)
		}
		if escape[1] == 'u' && len(escape) > 2 {
			return "\uFFFD"
		}
		return escape[1:]
	})
}

// skipTextBlock passes over a text block whose mark was read: it ends at the first
// line with less indentation than its first one, which must be |||. A path in it
// would hold a line end, so what the block says is of no interest.
func skipTextBlock(rest []byte) ([]byte, bool) {
	_, rest, _ = bytes.Cut(rest, []byte("\n"))
	rest = bytes.TrimLeft(rest, "\n")
	indent := rest[:len(rest)-len(bytes.TrimLeft(rest, " \t"))]
	for len(rest) > 0 {
		if rest[0] != '\n' && (len(indent) == 0 || !bytes.HasPrefix(rest, indent)) {
			return bytes.CutPrefix(bytes.TrimLeft(rest, " \t"), []byte("|||"))
		}
		_, rest, _ = bytes.Cut(rest, []byte("\n"))
	}
	return nil, false
}
