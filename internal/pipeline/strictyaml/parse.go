package strictyaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// The bounds on what is read. Files written by people are a few kilobytes and a
// few levels deep; these leave a wide margin and still cost milliseconds.
const (
	MaxBytes     = 1 << 20
	MaxDepth     = 64
	MaxNodes     = 100_000 // after aliases are expanded
	MaxDocuments = 100
)

// Document is one YAML document with the positions of all its values. It is not
// changed by decoding and may be used concurrently.
type Document struct {
	file string
	root *yaml.Node
}

// Parse reads the documents of a file; documents without content are left out.
// file is only used in errors. The error is an [Errors].
func Parse(file string, data []byte) ([]*Document, error) {
	fail := func(line int, format string, args ...any) ([]*Document, error) {
		return nil, Errors{{File: file, Line: line, Message: fmt.Sprintf(format, args...)}}
	}
	if len(data) > MaxBytes {
		return fail(0, "%d bytes are too many; at most %d are read", len(data), MaxBytes)
	}
	if at := invalidUTF8(data); at >= 0 {
		return fail(1+bytes.Count(data[:at], []byte("\n")), "not UTF-8 (byte %d); save the file as UTF-8", at)
	}
	var docs []*Document
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var node yaml.Node
		err := readDocument(decoder, &node)
		if errors.Is(err, io.EOF) {
			return docs, nil
		}
		if err != nil {
			line, message := syntaxError(err)
			if strings.Contains(message, "cannot start any token") && startsWithTab(data, line) {
				message = "the line begins with a tab; YAML is indented with spaces"
			}
			return fail(line, "not valid YAML: %s%s", message, hintAtBareTemplate(data))
		}
		if node.Kind != yaml.DocumentNode || len(node.Content) != 1 {
			continue
		}
		root := node.Content[0]
		if isNull(root) {
			continue
		}
		if len(docs) == MaxDocuments {
			return fail(root.Line, "more than %d documents in one file", MaxDocuments)
		}
		d := &Document{file: file, root: root}
		if err := d.checkBounds(); err != nil {
			return nil, Errors{*err}
		}
		docs = append(docs, d)
	}
}

// Line is where the document's content begins.
func (d *Document) Line() int { return d.root.Line }

// File is the name that the document was parsed under.
func (d *Document) File() string { return d.file }

// readDocument reads a document. yaml.v3 panics with a plain string on some malformed
// input ("internal error: attempted to parse unknown event"), which must not
// take a server down.
func readDocument(decoder *yaml.Decoder, node *yaml.Node) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errors.New("the parser can't make sense of it")
		}
	}()
	return decoder.Decode(node)
}

func invalidUTF8(data []byte) int {
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size <= 1 {
			return i
		}
		i += size
	}
	return -1
}

var linePattern = regexp.MustCompile(`^line (\d+): `)

// syntaxError takes yaml.v3's "yaml: line 3: message" apart.
func syntaxError(err error) (line int, message string) {
	message = strings.TrimPrefix(err.Error(), "yaml: ")
	if m := linePattern.FindStringSubmatch(message); m != nil {
		line, _ = strconv.Atoi(m[1]) // digits by the expression; 0 if absurdly long
		message = message[len(m[0]):]
	}
	if strings.HasPrefix(message, "unknown anchor") {
		// It quotes what may be a secret that begins with a star.
		message = "an alias (*name) of an anchor that isn't there; put text that begins with * in quotes"
	}
	return max(line, 1), message
}

// expandedSize is what a node counts after the expansion of aliases.
type expandedSize struct{ nodes, depth int }

// checkBounds refuses documents that nest too deeply, that grow too large when their
// aliases are expanded, and aliases that contain themselves. Every anchor is
// measured once, so that measuring a bomb is cheap.
func (d *Document) checkBounds() *Error {
	measured := map[*yaml.Node]expandedSize{}
	active := map[*yaml.Node]bool{}
	var problem *Error
	fail := func(n *yaml.Node, format string, args ...any) expandedSize {
		if problem == nil {
			problem = &Error{File: d.file, Line: n.Line, Column: n.Column, Message: fmt.Sprintf(format, args...)}
		}
		return expandedSize{}
	}
	var measure func(n *yaml.Node, depth int) expandedSize
	measure = func(n *yaml.Node, depth int) expandedSize {
		if problem != nil {
			return expandedSize{}
		}
		if depth > MaxDepth {
			return fail(n, "nested more than %d levels deep", MaxDepth)
		}
		if n.Kind == yaml.AliasNode {
			if active[n.Alias] {
				return fail(n, "the alias *%s contains itself", n.Value)
			}
			s := measure(n.Alias, depth)
			if depth+s.depth > MaxDepth {
				return fail(n, "nested more than %d levels deep by aliases", MaxDepth)
			}
			return s
		}
		if s, ok := measured[n]; ok {
			return s
		}
		active[n] = true
		s := expandedSize{nodes: 1}
		for _, c := range n.Content {
			inner := measure(c, depth+1)
			s.nodes += inner.nodes
			s.depth = max(s.depth, inner.depth+1)
			if s.nodes > MaxNodes {
				return fail(n, "more than %d values once aliases are expanded", MaxNodes)
			}
		}
		active[n] = false
		measured[n] = s
		return s
	}
	measure(d.root, 1)
	return problem
}

// followAlias follows an alias to what it stands for. Cycles were refused by checkBounds.
func followAlias(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

func isNull(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null"
}

// startsWithTab says that a line, counted from 1, has a tab in its indentation.
func startsWithTab(data []byte, line int) bool {
	lines := bytes.Split(data, []byte("\n"))
	if line < 1 || line > len(lines) {
		return false
	}
	text := lines[line-1]
	return bytes.IndexByte(text[:len(text)-len(bytes.TrimLeft(text, " \t"))], '\t') >= 0
}
