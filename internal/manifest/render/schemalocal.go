package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
)

// makeSchemasLocal sees to it that validating values asks nobody: the validator
// fetches documents that a schema refers to, or reads them from the machine's
// disk. A schema that refers to others is refused; of the rest, the addresses
// that they go by are dropped.
func makeSchemasLocal(c *chart.Chart) error {
	if c.Schema != nil {
		local, err := makeSchemaLocal(c.Schema)
		var u *Unrenderable
		if errors.As(err, &u) {
			return newUnrenderable(fmt.Sprintf("the values.schema.json of the chart %s %s", c.Name(), u.Reason), u.Remote...)
		}
		if err != nil {
			return fmt.Errorf("the values.schema.json of the chart %s: %w", c.Name(), err)
		}
		c.Schema = local
	}
	for _, d := range c.Dependencies() {
		if err := makeSchemasLocal(d); err != nil {
			return err
		}
	}
	return nil
}

func makeSchemaLocal(data []byte) ([]byte, error) {
	var doc any
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, fmt.Errorf("it is not valid JSON: %w", err)
	}
	s := schemaScan{}
	if err := s.walk(doc, 0); err != nil {
		return nil, err
	}
	if s.hasInnerIDs && s.hasRefs {
		return nil, newUnrenderable("has parts with addresses of their own, so that what its references mean can't be told")
	}
	if err := checkRecursion(doc); err != nil {
		return nil, err
	}
	return json.Marshal(doc)
}

// schemaScan is what a walk through a JSON schema found.
type schemaScan struct {
	hasRefs     bool // it refers to parts of itself
	hasInnerIDs bool // a part has an address of its own
}

func (s *schemaScan) walk(v any, depth int) error {
	if depth > maxSchemaDepth {
		return fmt.Errorf("%w: nested more than %d deep", ErrLimit, maxSchemaDepth)
	}
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			if err := s.walk(item, depth+1); err != nil {
				return err
			}
		}
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok {
			if !strings.HasPrefix(ref, "#") {
				return newUnrenderable("refers to another document", ref)
			}
			s.hasRefs = true
		}
		for _, key := range []string{"$dynamicRef", "$recursiveRef"} {
			if _, ok := v[key].(string); ok {
				return newUnrenderable("has a " + key + ", of which it can't be told what it leads to")
			}
		}
		// The validator fetches what the words of a schema mean from the address of its dialect,
		// where it doesn't know it; without one it takes the newest.
		if dialect, ok := v["$schema"].(string); ok && (depth > 0 || !isKnownDialect(dialect)) {
			delete(v, "$schema")
		}
		for _, key := range []string{"$id", "id"} {
			if id, ok := v[key].(string); ok && !strings.HasPrefix(id, "#") {
				s.hasInnerIDs = s.hasInnerIDs || depth > 0
				delete(v, key)
			}
		}
		for key, item := range v {
			if key == "const" || key == "enum" {
				continue // values, whatever they look like
			}
			if err := s.walk(item, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// isKnownDialect says whether the validator has a dialect built in (draftFromURL in
// github.com/santhosh-tekuri/jsonschema).
func isKnownDialect(address string) bool {
	scheme, path, _ := strings.Cut(strings.TrimSuffix(address, "#"), "://json-schema.org/")
	return (scheme == "http" || scheme == "https") && slices.Contains([]string{"schema", "draft-04/schema", "draft-06/schema",
		"draft-07/schema", "draft/2019-09/schema", "draft/2020-12/schema"}, path)
}
