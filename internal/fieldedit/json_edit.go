package fieldedit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// parseJSON reads one strict JSON value (RFC 8259; a BOM before it is kept and ignored) into the
// tree that YAML files have too. Strings are double-quoted scalars, numbers and the rest plain ones
// with their text.
//
// sjson was tried for the edits. It replaces values byte by byte as this does, but lays out an
// added key in its own way. It also takes what is refused here: a key that is there twice, a
// comment, a comma too many, two values, an empty file.
func parseJSON(data []byte) ([]*yaml.Node, error) {
	body := bytes.TrimPrefix(data, bom)
	var raw json.RawMessage
	if err := json.Unmarshal(body, &raw); err != nil {
		line := 0
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			line = 1 + bytes.Count(body[:min(int(syntax.Offset), len(body))], []byte("\n"))
		}
		if bytes.Contains(body, []byte("{{")) {
			return nil, newRefusal(line, "not JSON: %v; it has {{, so it may be a template: edit it by hand", err)
		}
		return nil, newRefusal(line, "not JSON: %v", err)
	}
	p := jsonParser{data: body, dec: json.NewDecoder(bytes.NewReader(body)), line: 1, column: 1}
	p.dec.UseNumber()
	root, err := p.readValue()
	if err != nil {
		return nil, newRefusal(p.line, "not JSON: %v", err)
	}
	return []*yaml.Node{root}, nil
}

// jsonParser walks the tokens and keeps count of line and column, both from 1.
type jsonParser struct {
	data         []byte
	dec          *json.Decoder
	at           int // the offset that line and column are of
	line, column int
}

// readToken reads the next token into a node at its position.
func (j *jsonParser) readToken() (json.Token, *yaml.Node, error) {
	start := int(j.dec.InputOffset())
	tok, err := j.dec.Token()
	if err != nil {
		return nil, nil, err
	}
	for start < len(j.data) && strings.IndexByte(" \t\r\n,:", j.data[start]) >= 0 {
		start++
	}
	skipped := j.data[j.at:start]
	if n := bytes.Count(skipped, []byte("\n")); n > 0 {
		j.line += n
		j.column = 1
		skipped = skipped[bytes.LastIndexByte(skipped, '\n')+1:]
	}
	j.column += utf8.RuneCount(skipped)
	j.at = start
	return tok, &yaml.Node{Line: j.line, Column: j.column}, nil
}

func (j *jsonParser) readValue() (*yaml.Node, error) {
	tok, n, err := j.readToken()
	if err != nil {
		return nil, err
	}
	n.Kind = yaml.ScalarNode
	switch t := tok.(type) {
	case string:
		n.Tag, n.Value, n.Style = "!!str", t, yaml.DoubleQuotedStyle
	case json.Number:
		n.Tag, n.Value = "!!float", t.String()
	case bool:
		n.Tag, n.Value = "!!bool", fmt.Sprint(t)
	case nil:
		n.Tag, n.Value = "!!null", "null"
	case json.Delim:
		return n, j.readCollection(n, t)
	}
	return n, nil
}

func (j *jsonParser) readCollection(n *yaml.Node, open json.Delim) error {
	n.Style = yaml.FlowStyle
	n.Kind, n.Tag = yaml.SequenceNode, "!!seq"
	if open == '{' {
		n.Kind, n.Tag = yaml.MappingNode, "!!map"
	}
	for j.dec.More() {
		c, err := j.readValue()
		if err != nil {
			return err
		}
		n.Content = append(n.Content, c)
	}
	if _, _, err := j.readToken(); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)

// renderJSON is how value is written where old stands; it is of old's type, or the error says that
// it can't be. A null becomes a string.
func renderJSON(old *yaml.Node, value string) (string, error) {
	switch old.Tag {
	case "!!float":
		if !jsonNumber.MatchString(value) {
			return "", fmt.Errorf("it is a number, and %q isn't one: change its type by hand", value)
		}
		return value, nil
	case "!!bool":
		if value != "true" && value != "false" {
			return "", fmt.Errorf("it is true or false, and %q is neither: change its type by hand", value)
		}
		return value, nil
	}
	return jsonString(value)
}

func jsonString(value string) (string, error) {
	if !utf8.ValidString(value) {
		return "", fmt.Errorf("the value %q isn't UTF-8", value)
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return "", fmt.Errorf("writing %q as JSON: %w", value, err)
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

// renderNewJSON is how the value of a key that isn't there yet is written.
func renderNewJSON(value, typ string) (string, error) {
	switch {
	case typ == TypeNull && value == "":
		return "null", nil
	case typ == TypeNumber && jsonNumber.MatchString(value), typ == TypeBool && (value == "true" || value == "false"):
		return value, nil
	}
	return jsonString(value)
}
