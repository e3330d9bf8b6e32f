package render

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/xeipuuv/gojsonreference"
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

// checkRecursion looks at every part of a schema as if validation began there.
func checkRecursion(doc any) error {
	e := &recursionChecker{doc: doc, anchors: map[string]any{}, cost: map[uintptr]int{}, visiting: map[uintptr]bool{}}
	parts := listMappings(doc)
	for _, part := range parts {
		for _, key := range []string{"$id", "id"} {
			if id, ok := part[key].(string); ok {
				if ref, err := gojsonreference.NewJsonReference(id); err == nil {
					e.anchors[ref.String()] = part
				}
			}
		}
		for _, key := range []string{"$anchor", "$dynamicAnchor"} {
			if name, ok := part[key].(string); ok {
				e.anchors["#"+name] = part
			}
		}
	}
	for _, part := range parts {
		if _, err := e.countVisits(part); err != nil {
			return err
		}
	}
	return nil
}

// listMappings lists all mappings of a JSON value in an order, the outer ones first.
func listMappings(v any) []map[string]any {
	var out []map[string]any
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			out = append(out, listMappings(item)...)
		}
	case map[string]any:
		out = append(out, v)
		for _, key := range slices.Sorted(maps.Keys(v)) {
			out = append(out, listMappings(v[key])...)
		}
	}
	return out
}

// countVisits counts the parts that judge one and the same value.
func (r *recursionChecker) countVisits(v map[string]any) (int, error) {
	const most = 100_000
	id := reflect.ValueOf(v).Pointer()
	if n, known := r.cost[id]; known {
		return n, nil
	}
	if r.visiting[id] {
		return 0, fmt.Errorf("%w: it refers to itself without an end", ErrLimit)
	}
	r.visiting[id] = true
	defer delete(r.visiting, id)
	total := 1
	for _, part := range r.inPlaceParts(v) {
		n, err := r.countVisits(part)
		if err != nil {
			return 0, err
		}
		if total += n; total > most {
			return 0, fmt.Errorf("%w: more than %d of its parts judge one value", ErrLimit, most)
		}
	}
	r.cost[id] = total
	return total, nil
}

// inPlaceParts are the parts that judge the same value as v does.
func (r *recursionChecker) inPlaceParts(v map[string]any) []map[string]any {
	parts := []any{v["not"], v["if"], v["then"], v["else"]}
	if ref, ok := v["$ref"].(string); ok {
		parts = append(parts, r.resolveRef(ref))
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := v[key].([]any)
		parts = append(parts, list...)
	}
	for _, key := range []string{"dependencies", "dependentSchemas"} {
		dependencies, _ := v[key].(map[string]any)
		parts = slices.AppendSeq(parts, maps.Values(dependencies))
	}
	var out []map[string]any
	for _, part := range parts {
		if m, ok := part.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

// resolveRef follows a reference within the document as the validator does, which
// takes an anchor that isn't there for the whole document; nil where there is nothing.
func (r *recursionChecker) resolveRef(text string) any {
	ref, err := gojsonreference.NewJsonReference(text)
	if err != nil {
		return nil
	}
	if part, ok := r.anchors[ref.String()]; ok {
		return part
	}
	part, _, err := ref.GetPointer().Get(r.doc)
	if err != nil {
		return nil
	}
	return part
}
