package render

import (
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// endless finds schemas that never come to an end: those that, without going
// deeper into the values, refer to themselves. The validator recurses on them
// until the process dies, which nothing can recover from.
type endless struct {
	doc     any
	anchors map[string]any // parts that go by #name
	cost    map[uintptr]int
	open    map[uintptr]bool
}

func newEndless(doc any) *endless {
	e := &endless{doc: doc, anchors: map[string]any{}, cost: map[uintptr]int{}, open: map[uintptr]bool{}}
	e.gather(doc)
	return e
}

func (e *endless) gather(v any) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			e.gather(item)
		}
	case map[string]any:
		for _, key := range []string{"$id", "id"} {
			if id, ok := v[key].(string); ok {
				e.anchors[id] = v
			}
		}
		for _, item := range v {
			e.gather(item)
		}
	}
}

// check looks at every part of the document as if validation began there.
func (e *endless) check(v any) error {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			if err := e.check(item); err != nil {
				return err
			}
		}
	case map[string]any:
		if _, err := e.visits(v); err != nil {
			return err
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if err := e.check(v[key]); err != nil {
				return err
			}
		}
	}
	return nil
}

// visits counts the parts that judge one and the same value.
func (e *endless) visits(v map[string]any) (int, error) {
	const most = 100_000
	id := reflect.ValueOf(v).Pointer()
	if n, known := e.cost[id]; known {
		return n, nil
	}
	if e.open[id] {
		return 0, fmt.Errorf("%w: it refers to itself without an end", ErrLimit)
	}
	e.open[id] = true
	defer delete(e.open, id)
	total := 1
	for _, part := range e.inPlace(v) {
		n, err := e.visits(part)
		if err != nil {
			return 0, err
		}
		if total += n; total > most {
			return 0, fmt.Errorf("%w: more than %d of its parts judge one value", ErrLimit, most)
		}
	}
	e.cost[id] = total
	return total, nil
}

// inPlace are the parts that judge the same value as v does.
func (e *endless) inPlace(v map[string]any) []map[string]any {
	var out []map[string]any
	add := func(part any) {
		if m, ok := part.(map[string]any); ok {
			out = append(out, m)
		}
	}
	if ref, ok := v["$ref"].(string); ok {
		add(e.resolve(ref))
	}
	for _, key := range []string{"not", "if", "then", "else"} {
		add(v[key])
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := v[key].([]any)
		for _, part := range list {
			add(part)
		}
	}
	dependencies, _ := v["dependencies"].(map[string]any)
	for _, part := range dependencies {
		add(part)
	}
	return out
}

// resolve follows a reference within the document; nil where there is nothing.
func (e *endless) resolve(ref string) any {
	if part, ok := e.anchors[ref]; ok {
		return part
	}
	at := e.doc
	if strings.Trim(ref, "#/") == "" {
		return at
	}
	for step := range strings.SplitSeq(strings.TrimPrefix(strings.TrimPrefix(ref, "#"), "/"), "/") {
		if plain, err := url.PathUnescape(step); err == nil {
			step = plain
		}
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		switch v := at.(type) {
		case map[string]any:
			at = v[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(v) {
				return nil
			}
			at = v[i]
		default:
			return nil
		}
	}
	return at
}
