package fieldedit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
	yaml2 "sigs.k8s.io/yaml/goyaml.v2"
)

// oneLeaf holds that a reader sees one scalar changed: the same text as value,
// or, where no string was, the same type with that text.
func oneLeaf(read func([]byte) ([]any, error), before, after []byte, value string) error {
	old, err := read(before)
	if err != nil {
		return fmt.Errorf("the file can't be read: %w", err)
	}
	now, err := read(after)
	if err != nil {
		return fmt.Errorf("the edited file can't be read: %w", err)
	}
	if len(old) != len(now) {
		return fmt.Errorf("%d scalars became %d", len(old), len(now))
	}
	changed := -1
	for i := range old {
		if equalScalars(old[i], now[i]) {
			continue
		}
		if changed >= 0 {
			return fmt.Errorf("two scalars changed: %v and %v", now[changed], now[i])
		}
		changed = i
	}
	if changed < 0 { // the same number in other words, such as 16 for 0x10
		if v, err := read([]byte(value)); err != nil || len(v) != 1 || !slices.ContainsFunc(now, func(o any) bool { return equalScalars(o, v[0]) }) {
			return fmt.Errorf("nothing changed for %q", value)
		}
		return nil
	}
	is := now[changed]
	if is == any(value) {
		return nil
	}
	if _, text := old[changed].(string); text {
		return fmt.Errorf("%q was text and reads as %v (%T), not %q", old[changed], is, is, value)
	}
	if plain, err := read([]byte(value)); err != nil || len(plain) != 1 || !equalScalars(is, plain[0]) {
		return fmt.Errorf("reads as %v (%T), not %q", is, is, value)
	}
	return nil
}

// equalScalars compares two scalars; .nan is itself.
func equalScalars(a, b any) bool {
	return reflect.DeepEqual(a, b) || fmt.Sprintf("%T %v", a, a) == "float64 NaN" && fmt.Sprint(b) == "NaN"
}

// leavesYAML11 lists the scalars that go-yaml 2 sees, keys among them: it is the
// reader of Kubernetes and Argo CD, of YAML 1.1.
func leavesYAML11(data []byte) ([]any, error) {
	var out []any
	dec := yaml2.NewDecoder(bytes.NewReader(data))
	for {
		var v any
		if err := dec.Decode(&v); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, err
		}
		out = flattenScalars(out, v)
	}
}

// flattenScalars lists the scalars of a decoded document, mappings by their keys' order.
func flattenScalars(out []any, v any) []any {
	switch v := v.(type) {
	case map[any]any:
		keys := slices.SortedFunc(maps.Keys(v), func(a, b any) int { return strings.Compare(fmt.Sprintf("%T %v", a, a), fmt.Sprintf("%T %v", b, b)) })
		for _, k := range keys {
			out = flattenScalars(flattenScalars(out, k), v[k])
		}
	case []any:
		for _, item := range v {
			out = flattenScalars(out, item)
		}
	default:
		out = append(out, v)
	}
	return out
}

// leavesYAML12 lists the scalars that go-yaml 3 sees, keys among them.
func leavesYAML12(data []byte) ([]any, error) {
	var out []any
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var visit func(n *yaml.Node) error
	visit = func(n *yaml.Node) error {
		if n.Kind != yaml.ScalarNode {
			for _, c := range n.Content {
				if err := visit(c); err != nil {
					return err
				}
			}
			return nil
		}
		var v any
		err := n.Decode(&v)
		out = append(out, v)
		return err
	}
	for {
		var n yaml.Node
		if err := dec.Decode(&n); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, err
		}
		if err := visit(&n); err != nil {
			return nil, err
		}
	}
}

func leavesJSON(data []byte) ([]any, error) {
	var out []any
	dec := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(data, bom)))
	dec.UseNumber()
	for {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		if _, bracket := tok.(json.Delim); !bracket {
			out = append(out, tok)
		}
	}
}
