package appset

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argoproj/argo-cd/v2/applicationset/generators"
	argov1alpha1 "github.com/argoproj/argo-cd/v2/pkg/apis/application/v1alpha1"
)

// maxPlainDepth bounds how deep plain JSON is read; deeper nested is encoding/json's.
const maxPlainDepth = 100

// plainReader reads plain JSON (see [isPlainJSON]) to what encoding/json makes of it, in a
// fraction of the time: without escapes, its strings are pieces of the text.
type plainReader struct {
	text string
	at   int
}

// readPlainJSON gives the value of a text of plain JSON; false where it isn't JSON, or
// nested too deep.
func readPlainJSON(data []byte) (any, bool) {
	r := plainReader{text: string(data)}
	v, ok := r.readValue(0)
	if r.skipSpace(); r.at != len(r.text) {
		return nil, false
	}
	return v, ok
}

func (p *plainReader) skipSpace() {
	for p.at < len(p.text) && (p.text[p.at] == ' ' || p.text[p.at] == '\n') {
		p.at++
	}
}

// skipByte skips spaces, and the byte if it comes next.
func (p *plainReader) skipByte(c byte) bool {
	p.skipSpace()
	if p.at == len(p.text) || p.text[p.at] != c {
		return false
	}
	p.at++
	return true
}

func (p *plainReader) readValue(depth int) (any, bool) {
	if p.skipSpace(); p.at == len(p.text) || depth > maxPlainDepth {
		return nil, false
	}
	switch c := p.text[p.at]; c {
	case '{':
		p.at++
		return p.readObject(depth + 1)
	case '[':
		p.at++
		return p.readList(depth + 1)
	case '"':
		return p.readString()
	}
	word := p.text[p.at:]
	if end := strings.IndexAny(word, ",]} \n"); end >= 0 {
		word = word[:end]
	}
	p.at += len(word)
	switch word {
	case "null":
		return nil, true
	case "true":
		return true, true
	case "false":
		return false, true
	}
	if !isPlainNumber(word) {
		return nil, false
	}
	n, err := strconv.ParseFloat(word, 64)
	return n, err == nil
}

func (p *plainReader) readString() (string, bool) {
	if !p.skipByte('"') {
		return "", false
	}
	length := strings.IndexByte(p.text[p.at:], '"')
	if length < 0 {
		return "", false
	}
	s := p.text[p.at : p.at+length]
	p.at += length + 1
	return s, true
}

// readObject reads on after the bracket. Where keys are equal the last one wins.
func (p *plainReader) readObject(depth int) (map[string]any, bool) {
	out := map[string]any{}
	if p.skipByte('}') {
		return out, true
	}
	for {
		key, ok := p.readString()
		if !ok || !p.skipByte(':') {
			return nil, false
		}
		if out[key], ok = p.readValue(depth); !ok {
			return nil, false
		}
		if !p.skipByte(',') {
			return out, p.skipByte('}')
		}
	}
}

func (p *plainReader) readList(depth int) ([]any, bool) {
	out := []any{}
	if p.skipByte(']') {
		return out, true
	}
	for {
		v, ok := p.readValue(depth)
		if !ok {
			return nil, false
		}
		if out = append(out, v); !p.skipByte(',') {
			return out, p.skipByte(']')
		}
	}
}

// isPlainNumber says that a word is one of JSON's numbers, without an exponent.
func isPlainNumber(word string) bool {
	whole, fraction, hasFraction := strings.Cut(strings.TrimPrefix(word, "-"), ".")
	isWhole := areDigits(whole) && (len(whole) == 1 || whole[0] != '0')
	return isWhole && (!hasFraction || areDigits(fraction))
}

func areDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// readObjects reads an object, or a list of objects and nulls, of plain JSON; nil where it
// is none.
func readObjects(data []byte) []map[string]any {
	trimmed := bytes.TrimLeft(data, " \n")
	if len(trimmed) == 0 || (trimmed[0] != '{' && trimmed[0] != '[') || !isPlainJSON(data) {
		return nil
	}
	v, ok := readPlainJSON(data)
	if !ok {
		return nil
	}
	switch v := v.(type) {
	case map[string]any:
		return []map[string]any{v}
	case []any:
		out := make([]map[string]any, 0, len(v))
		for _, e := range v {
			object, ok := e.(map[string]any)
			if !ok && e != nil {
				return nil
			}
			out = append(out, object)
		}
		return out
	}
	return nil
}

// listGenerator is the library's list generator, which reads each element twice.
type listGenerator struct{ generators.Generator }

// GenerateParams gives the elements' parameters; the library's own where an element is
// empty, or, without Go templates, holds anything but strings.
func (l *listGenerator) GenerateParams(spec *argov1alpha1.ApplicationSetGenerator, set *argov1alpha1.ApplicationSet,
	c client.Client) ([]map[string]any, error) {
	if spec == nil || spec.List == nil || spec.List.ElementsYaml != "" {
		return l.Generator.GenerateParams(spec, set, c)
	}
	out := make([]map[string]any, len(spec.List.Elements))
	for i := range out {
		if out[i] = readElement(spec.List.Elements[i].Raw, set.Spec.GoTemplate); out[i] == nil {
			return l.Generator.GenerateParams(spec, set, c)
		}
	}
	return out, nil
}

// readElement reads an element of a list; nil where the library has more to say about it.
func readElement(raw json.RawMessage, goTemplate bool) map[string]any {
	var element map[string]any
	if objects := readObjects(raw); len(objects) == 1 && raw[0] == '{' {
		element = objects[0]
	} else if json.Unmarshal(raw, &element) != nil {
		return nil
	}
	if len(element) == 0 {
		return nil
	}
	if !goTemplate {
		for key, value := range element {
			if _, isString := value.(string); !isString || key == "values" {
				return nil
			}
		}
	}
	return element
}
