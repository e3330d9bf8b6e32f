package fieldedit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// MaxFileSize bounds a file that is read or edited.
const MaxFileSize = 20 << 20

// maxStructuralChars bounds the characters in a file that can each make a node. A node costs some
// 300 bytes with all its parts, so that a few megabytes of "- - - -" would otherwise take
// gigabytes.
const maxStructuralChars = 1 << 19

type fileFormat int

const (
	formatYAML fileFormat = iota
	formatJSON
)

var bom = []byte("\xef\xbb\xbf")

// document is a parsed file: its bytes, and a tree whose nodes know their
// line and column. JSON has the same tree, with double-quoted flow nodes.
type document struct {
	format fileFormat
	data   []byte
	roots  []*yaml.Node // one a YAML document that isn't empty
	starts []int        // byte offset of every line; made by lines
}

func parseDocument(data []byte, f fileFormat) (*document, error) {
	if err := checkReadable(data); err != nil {
		return nil, err
	}
	d := &document{format: f, data: data}
	var err error
	if f == formatJSON {
		d.roots, err = parseJSON(data)
	} else {
		d.roots, err = parseYAML(data)
	}
	if err != nil {
		return nil, err
	}
	return d, nil
}

func checkReadable(data []byte) error {
	switch {
	case len(data) > MaxFileSize:
		return newRefusal(0, "the file has %d bytes; at most %d are read", len(data), MaxFileSize)
	case bytes.HasPrefix(data, []byte("version https://git-lfs.github.com/spec/")):
		return newRefusal(0, "the file is a Git LFS pointer: its content isn't in Git; take it out of LFS")
	case !utf8.Valid(data):
		return newRefusal(lineOfInvalid(data), "the file isn't UTF-8")
	}
	marks := 0
	for i, c := range data {
		switch c {
		case ':', ',', '[', '{', '?':
			marks++
		case '-': // in a UUID it is none
			if i+1 < len(data) && strings.IndexByte(" \t\r\n", data[i+1]) >= 0 {
				marks++
			}
		}
	}
	if marks > maxStructuralChars {
		return newRefusal(0, "the file has too many nodes to be read (over %d structural characters)", maxStructuralChars)
	}
	return nil
}

func lineOfInvalid(data []byte) int {
	line := 1
	for len(data) > 0 {
		r, n := utf8.DecodeRune(data)
		if r == utf8.RuneError && n == 1 {
			break
		}
		if r == '\n' {
			line++
		}
		data = data[n:]
	}
	return line
}

var yamlErrorLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)`)

func parseYAML(data []byte) (roots []*yaml.Node, err error) {
	// The parser reports its own errors by panicking inside; a panic that gets
	// out is a bug of its on some input, and must cost that file only.
	defer func() {
		if r := recover(); r != nil {
			roots, err = nil, newRefusal(0, "the YAML parser failed on this file: %v", r)
		}
	}()
	dec := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var n yaml.Node
		err := dec.Decode(&n)
		if errors.Is(err, io.EOF) {
			return roots, nil
		}
		if err != nil {
			m := yamlErrorLine.FindStringSubmatch(err.Error())
			line, reason := 0, err.Error()
			if m != nil {
				line, _ = strconv.Atoi(m[1])
				reason = m[2]
			}
			if bytes.Contains(data, []byte("{{")) {
				return nil, newRefusal(line, "not YAML: %s; it has {{, so it may be a template: edit it by hand", reason)
			}
			return nil, newRefusal(line, "not YAML: %s", reason)
		}
		if n.Kind != yaml.DocumentNode || len(n.Content) != 1 {
			continue
		}
		root := n.Content[0]
		if line := templateLine(root); line > 0 {
			return nil, newRefusal(line, "the file is a template: {{ isn't quoted here")
		}
		if !isEmptyDocument(root) {
			roots = append(roots, root)
		}
	}
}

// isEmptyDocument says that a document holds nothing ("---" and comments).
func isEmptyDocument(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Value == "" && n.Style == 0
}

// templateLine finds an unquoted {{ that YAML reads as a mapping whose key is
// a mapping; 0 when there is none.
func templateLine(n *yaml.Node) int {
	if n.Kind == yaml.MappingNode && n.Style&yaml.FlowStyle != 0 &&
		len(n.Content) > 0 && n.Content[0].Kind == yaml.MappingNode {
		return n.Line
	}
	for _, c := range n.Content {
		if line := templateLine(c); line > 0 {
			return line
		}
	}
	return 0
}

// breakAt is the length of the line break at i, 0 if there is none. YAML's
// scanner breaks lines where editors may not; positions follow the scanner.
func (d *document) breakAt(i int) int {
	switch c := d.data[i]; {
	case c == '\n':
		return 1
	case d.format == formatJSON:
		return 0
	case c == '\r' && i+1 < len(d.data) && d.data[i+1] == '\n':
		return 2
	case c == '\r':
		return 1
	case c == 0xC2 && bytes.HasPrefix(d.data[i:], []byte("\u0085")):
		return 2
	case c == 0xE2 && (bytes.HasPrefix(d.data[i:], []byte("\u2028")) || bytes.HasPrefix(d.data[i:], []byte("\u2029"))):
		return 3
	}
	return 0
}

func (d *document) lineStarts() []int {
	if d.starts != nil {
		return d.starts
	}
	first := 0
	if bytes.HasPrefix(d.data, bom) {
		first = len(bom)
	}
	d.starts = append(d.starts, first)
	for i := first; i < len(d.data); {
		if n := d.breakAt(i); n > 0 {
			i += n
			d.starts = append(d.starts, i)
			continue
		}
		i++
	}
	return d.starts
}

// nodeOffset is the byte offset of a node's position; columns count runes.
func (d *document) nodeOffset(n *yaml.Node) (int, error) {
	starts := d.lineStarts()
	if n.Line < 1 || n.Line > len(starts) {
		return 0, fmt.Errorf("line %d is outside the file", n.Line)
	}
	i := starts[n.Line-1]
	for c := 1; c < n.Column; c++ {
		if i >= len(d.data) {
			return 0, fmt.Errorf("line %d has no column %d", n.Line, n.Column)
		}
		_, w := utf8.DecodeRune(d.data[i:])
		i += w
	}
	return i, nil
}

// lineBounds are the offsets of the start and end (before its break) of the
// line that holds offset i.
func (d *document) lineBounds(i int) (start, end int) {
	starts := d.lineStarts()
	n, found := slices.BinarySearch(starts, i)
	if !found {
		n = max(n-1, 0) // the line that begins before it
	}
	start = starts[n]
	for end = max(i, start); end < len(d.data) && d.breakAt(end) == 0; end++ {
	}
	return start, end
}

// lineBreak is the line break that the file uses.
func (d *document) lineBreak() string {
	if i := bytes.IndexByte(d.data, '\n'); i > 0 && d.data[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}
