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

// recursionChecker finds schemas that never come to an end: those that, without going
// deeper into the values, refer to themselves. The validator recurses on them
// until the process dies, which nothing can recover from.
type recursionChecker struct {
	doc      any
	anchors  map[string]any // parts that go by #name
	cost     map[uintptr]int
	visiting map[uintptr]bool
}

func newRecursionChecker(doc any) *recursionChecker {
	e := &recursionChecker{doc: doc, anchors: map[string]any{}, cost: map[uintptr]int{}, visiting: map[uintptr]bool{}}
	e.gatherAnchors(doc)
	return e
}

func (e *recursionChecker) gatherAnchors(v any) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			e.gatherAnchors(item)
		}
	case map[string]any:
		for _, key := range []string{"$id", "id"} {
			if id, ok := v[key].(string); ok {
				e.anchors[id] = v
			}
		}
		for _, item := range v {
			e.gatherAnchors(item)
		}
	}
}

// checkRecursion looks at every part of the document as if validation began there.
func (e *recursionChecker) checkRecursion(v any) error {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			if err := e.checkRecursion(item); err != nil {
				return err
			}
		}
	case map[string]any:
		if _, err := e.countVisits(v); err != nil {
			return err
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if err := e.checkRecursion(v[key]); err != nil {
				return err
			}
		}
	}
	return nil
}

// countVisits counts the parts that judge one and the same value.
func (e *recursionChecker) countVisits(v map[string]any) (int, error) {
	const most = 100_000
	id := reflect.ValueOf(v).Pointer()
	if n, known := e.cost[id]; known {
		return n, nil
	}
	if e.visiting[id] {
		return 0, fmt.Errorf("%w: it refers to itself without an end", ErrLimit)
	}
	e.visiting[id] = true
	defer delete(e.visiting, id)
	total := 1
	for _, part := range e.inPlaceParts(v) {
		n, err := e.countVisits(part)
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

// inPlaceParts are the parts that judge the same value as v does.
func (e *recursionChecker) inPlaceParts(v map[string]any) []map[string]any {
	var out []map[string]any
	add := func(part any) {
		if m, ok := part.(map[string]any); ok {
			out = append(out, m)
		}
	}
	if ref, ok := v["$ref"].(string); ok {
		add(e.resolveRef(ref))
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

// resolveRef follows a reference within the document; nil where there is nothing.
func (e *recursionChecker) resolveRef(ref string) any {
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
