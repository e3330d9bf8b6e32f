package appset

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	goyaml "sigs.k8s.io/yaml/goyaml.v2"
)

// yamlToJSON gives what sigs.k8s.io/yaml's YAMLToJSONStrict does, with the keys of objects in
// the same order. That copies everything before it writes it, which is a quarter of what an
// ApplicationSet with a long list takes; a fuzz test holds both against each other.
func yamlToJSON(doc []byte) ([]byte, error) {
	var value any
	if err := goyaml.UnmarshalStrict(doc, &value); err != nil {
		return nil, err
	}
	return appendJSON(make([]byte, 0, len(doc)+len(doc)/4), value)
}

// appendJSON writes what goyaml has read.
func appendJSON(out []byte, value any) ([]byte, error) {
	switch v := value.(type) {
	case nil:
		return append(out, "null"...), nil
	case bool:
		return strconv.AppendBool(out, v), nil
	case int:
		return strconv.AppendInt(out, int64(v), 10), nil
	case string:
		return appendJSONString(out, v), nil
	case []any:
		out = append(out, '[')
		for i, item := range v {
			if i > 0 {
				out = append(out, ',')
			}
			var err error
			if out, err = appendJSON(out, item); err != nil {
				return nil, err
			}
		}
		return append(out, ']'), nil
	case map[any]any:
		return appendJSONObject(out, v)
	}
	raw, err := json.Marshal(value) // long numbers, and those with fractions
	return append(out, raw...), err
}

func appendJSONObject(out []byte, object map[any]any) ([]byte, error) {
	type member struct {
		name  string
		value any
	}
	members := make([]member, 0, len(object))
	for key, value := range object {
		name, err := keyText(key)
		if err != nil {
			return nil, err
		}
		members = append(members, member{name, value})
	}
	slices.SortFunc(members, func(a, b member) int { return strings.Compare(a.name, b.name) })
	// 1 and "1" are two keys of YAML and one of JSON.
	members = slices.CompactFunc(members, func(a, b member) bool { return a.name == b.name })
	out = append(out, '{')
	for i := range members {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(appendJSONString(out, members[i].name), ':')
		var err error
		if out, err = appendJSON(out, members[i].value); err != nil {
			return nil, err
		}
	}
	return append(out, '}'), nil
}

// keyText makes a text of a key, as sigs.k8s.io/yaml does.
func keyText(key any) (string, error) {
	switch k := key.(type) {
	case string:
		return k, nil
	case int:
		return strconv.Itoa(k), nil
	case bool:
		return strconv.FormatBool(k), nil
	case float64:
		switch text := strconv.FormatFloat(k, 'g', -1, 32); text {
		case "+Inf":
			return ".inf", nil
		case "-Inf":
			return "-.inf", nil
		case "NaN":
			return ".nan", nil
		default:
			return text, nil
		}
	}
	return "", fmt.Errorf("unsupported map key of type: %T, key: %+#[1]v", key)
}

// appendJSONString writes a text, plain ones without encoding/json.
func appendJSONString(out []byte, text string) []byte {
	for i := range len(text) {
		if mustEscape(text[i]) {
			raw, _ := json.Marshal(text) // texts always marshal
			return append(out, raw...)
		}
	}
	return append(append(append(out, '"'), text...), '"')
}

// mustEscape says that a byte isn't itself in JSON as encoding/json writes it.
func mustEscape(c byte) bool {
	switch c {
	case '"', '\\', '<', '>', '&':
		return true
	}
	return c < ' ' || c > '~'
}
