package deps

import (
	"strings"

	"gopkg.in/yaml.v3"
)

// maxPlainLine is less than what a key may have.
const maxPlainLine = 1000

// printable says that there is nothing but lines of printable ASCII.
func printable(data []byte) bool {
	for _, c := range data {
		if (c < ' ' || c > '~') && c != '\n' {
			return false
		}
	}
	return true
}

type plainLine struct {
	indent int
	text   string // without indent and trailing space
	number int
}

// plainParser goes through a text's lines once; strange ends it. It keeps its
// memory for the next text, and is for one goroutine.
type plainParser struct {
	lines   []plainLine
	at      int
	strange bool
	nodes   []yaml.Node // made in one piece
}

// parse reads the YAML that most kustomizations are written in: block
// mappings and lists of scalars that stand on one line, and short lists in
// brackets. It takes a tenth of the general parser's time, which is most of
// what an index costs. false: there is something else in it (or it is no
// YAML), and the general parser has to look. Only Kind, Value, Content and
// Line are set, and the tag of what is null. The nodes are good until the
// next text is parsed.
func (p *plainParser) parse(data []byte) (*yaml.Node, bool) {
	if !printable(data) {
		return nil, false
	}
	text := string(data)
	*p = plainParser{lines: p.lines[:0], nodes: p.nodes[:0]}
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimRight(line, " \n")
		rest := strings.TrimLeft(line, " ")
		switch {
		case rest == "" || rest[0] == '#' || number == 1 && line == "---":
			continue
		case len(line) > maxPlainLine || strings.HasPrefix(line, "---") || strings.HasPrefix(line, "..."):
			return nil, false
		}
		p.lines = append(p.lines, plainLine{indent: len(line) - len(rest), text: rest, number: number})
	}
	if len(p.lines) == 0 || p.lines[0].indent != 0 || isItem(p.lines[0].text) {
		return nil, false
	}
	if want := 2*len(p.lines) + 1; cap(p.nodes) < want {
		p.nodes = make([]yaml.Node, 0, 2*want)
	}
	doc := p.mapping(0)
	if p.strange || p.at < len(p.lines) {
		return nil, false
	}
	return doc, true
}

func (p *plainParser) node(kind yaml.Kind, value string, line int) *yaml.Node {
	if len(p.nodes) == cap(p.nodes) { // those made before stay where they are
		p.nodes = make([]yaml.Node, 0, cap(p.nodes))
	}
	p.nodes = append(p.nodes, yaml.Node{Kind: kind, Value: value, Line: line})
	return &p.nodes[len(p.nodes)-1]
}

// line is the current line when it has at least this indent.
func (p *plainParser) line(indent int) *plainLine {
	if p.strange || p.at >= len(p.lines) || p.lines[p.at].indent < indent {
		return nil
	}
	return &p.lines[p.at]
}

func isItem(text string) bool { return text == "-" || strings.HasPrefix(text, "- ") }

// mapping reads keys at one indent.
func (p *plainParser) mapping(indent int) *yaml.Node {
	out := p.node(yaml.MappingNode, "", p.lines[p.at].number)
	for l := p.line(indent); l != nil; l = p.line(indent) {
		if l.indent > indent {
			p.strange = true
			break
		}
		if isItem(l.text) {
			break // of the list that this mapping is an item of
		}
		key, rest, ok := keyOfLine(l.text)
		if !ok {
			p.strange = true
			break
		}
		out.Content = append(out.Content, p.node(yaml.ScalarNode, key, l.number), p.value(rest, l, indent))
	}
	return out
}

// keyOfLine cuts "key: rest" and "key:".
func keyOfLine(text string) (key, rest string, ok bool) {
	n := 0
	for n < len(text) && (isWord(text[n]) || n > 0 && (text[n] == '-' || text[n] == '.' || text[n] == '/')) {
		n++
	}
	if n == 0 || n == len(text) || text[n] != ':' || n+1 < len(text) && text[n+1] != ' ' {
		return "", "", false
	}
	return text[:n], strings.TrimLeft(text[n+1:], " "), true
}

// value reads what stands behind a key, or below it.
func (p *plainParser) value(rest string, l *plainLine, indent int) *yaml.Node {
	p.at++
	if rest != "" && rest[0] != '#' {
		return p.scalar(rest, l.number, indent)
	}
	next := p.line(indent)
	switch {
	case next != nil && isItem(next.text):
		return p.list(next.indent)
	case next != nil && next.indent > indent:
		return p.mapping(next.indent)
	}
	null := p.node(yaml.ScalarNode, "", l.number)
	null.Tag = "!!null"
	return null
}

// list reads items at one indent.
func (p *plainParser) list(indent int) *yaml.Node {
	out := p.node(yaml.SequenceNode, "", p.lines[p.at].number)
	for l := p.line(indent); l != nil; l = p.line(indent) {
		if l.indent > indent {
			p.strange = true
			break
		}
		if !isItem(l.text) {
			break // of the mapping that this list is in
		}
		rest := strings.TrimLeft(l.text[1:], " ")
		if _, _, ok := keyOfLine(rest); ok {
			// The first key stands where the others will.
			l.indent, l.text = indent+len(l.text)-len(rest), rest
			out.Content = append(out.Content, p.mapping(l.indent))
			continue
		}
		p.at++
		if rest == "" || isItem(rest) {
			p.strange = true
			break
		}
		out.Content = append(out.Content, p.scalar(rest, l.number, indent))
	}
	return out
}

// scalar reads a value of one line; the line behind it must not go on with it.
func (p *plainParser) scalar(text string, line, indent int) *yaml.Node {
	if next := p.line(0); next != nil && next.indent > indent {
		p.strange = true
	}
	switch text[0] {
	case '"', '\'':
		inner := text[1:]
		end := strings.IndexByte(inner, text[0])
		if end < 0 || end != len(inner)-1 || strings.Contains(inner, `\`) {
			p.strange = true
			return p.node(yaml.ScalarNode, "", line)
		}
		return p.node(yaml.ScalarNode, inner[:end], line)
	case '[':
		return p.brackets(text, line)
	}
	if i := strings.Index(text, " #"); i >= 0 {
		text = strings.TrimRight(text[:i], " ")
	}
	if !isPlain(text) {
		p.strange = true
	}
	n := p.node(yaml.ScalarNode, text, line)
	switch text {
	case "null", "Null", "NULL":
		n.Tag = "!!null"
	}
	return n
}

// brackets reads a list of plain scalars in brackets.
func (p *plainParser) brackets(text string, line int) *yaml.Node {
	out := p.node(yaml.SequenceNode, "", line)
	inner, ok := strings.CutSuffix(text[1:], "]")
	if !ok || strings.ContainsAny(inner, `[]{}"'#?`) {
		p.strange = true
		return out
	}
	if strings.Trim(inner, " ") == "" {
		return out
	}
	for item := range strings.SplitSeq(inner, ",") {
		item = strings.Trim(item, " ")
		if !isPlain(item) || strings.HasSuffix(item, "null") || strings.HasSuffix(item, "Null") || strings.HasSuffix(item, "NULL") {
			p.strange = true
			return out
		}
		out.Content = append(out.Content, p.node(yaml.ScalarNode, item, line))
	}
	return out
}

// isPlain says that a text is surely one scalar without quotes.
func isPlain(text string) bool {
	if text == "" || !isWord(text[0]) && text[0] != '.' && text[0] != '/' && text[0] != '$' {
		return false
	}
	return !strings.Contains(text, ": ") && !strings.HasSuffix(text, ":")
}
