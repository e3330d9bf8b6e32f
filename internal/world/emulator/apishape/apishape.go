// Package apishape holds values against the types that a forge's description of its API gives them.
// It is for tests, as are the two that use it: githubshape and gitlabshape, which have the
// descriptions.
//
// A schema is a name of a type (string, integer, number, boolean, datetime, date, null, object: one
// of any fields, any), with a question mark where it may be null. Or it is a list of one schema, or
// an object of schemas by field. In an object a required field ends in an exclamation mark, and *
// is every other field. An object of the one field $ref is the schema of that name, one of $any is
// one of a list.
package apishape

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Call is a call that was made, and its answer.
type Call struct {
	Method, Route string // Route is the pattern of the path, such as /projects/{id}
	Query         url.Values
	Body          []byte
	Status        int
	Answer        []byte // JSON; empty: no body
}

// Shapes are a forge's schemas.
type Shapes struct {
	Forge       string         // its name, for messages
	Named       map[string]any // schemas that others refer to
	NullAnyhow  bool           // every field may be null
	Partial     bool           // what is required may be missing
	TimeFormats []string       // of datetime, besides RFC 3339's
}

// Check says what in a value isn't as a schema has it; nothing where all is. At is the value's
// place, for messages.
func (s *Shapes) Check(at string, schema, value any) []string {
	if value == nil && s.NullAnyhow && schema != nil {
		return nil
	}
	switch shape := schema.(type) {
	case nil:
		return []string{at + " has no schema"}
	case []any:
		items, ok := value.([]any)
		if !ok {
			return mismatch(at, schema, value)
		}
		var wrong []string
		for i, v := range items {
			wrong = append(wrong, s.Check(fmt.Sprintf("%s[%d]", at, i), shape[0], v)...)
		}
		return wrong
	case map[string]any:
		if name, is := shape["$ref"].(string); is {
			return s.Check(at, s.Named[name], value)
		}
		if alternatives, is := shape["$any"].([]any); is {
			return s.checkAny(at, alternatives, value)
		}
		fields, ok := value.(map[string]any)
		if !ok {
			return mismatch(at, schema, value)
		}
		return s.checkFields(at, shape, fields)
	case string:
		if !s.isOf(shape, value) {
			return mismatch(at, schema, value)
		}
	}
	return nil
}

func mismatch(at string, schema, value any) []string {
	return []string{fmt.Sprintf("%s is %v, want %v", at, value, schema)}
}

func (s *Shapes) checkFields(at string, shape, fields map[string]any) []string {
	var wrong []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		schema, known := fieldOf(shape, name)
		if !known {
			wrong = append(wrong, at+"."+name+" isn't "+s.Forge+"'s")
			continue
		}
		wrong = append(wrong, s.Check(at+"."+name, schema, fields[name])...)
	}
	for _, name := range slices.Sorted(maps.Keys(shape)) {
		required, is := strings.CutSuffix(name, "!")
		if _, has := fields[required]; is && !has && !s.Partial {
			wrong = append(wrong, at+"."+required+" is missing")
		}
	}
	return wrong
}

func fieldOf(shape map[string]any, name string) (schema any, known bool) {
	for _, spelled := range []string{name, name + "!", "*"} {
		if schema, known = shape[spelled]; known {
			break
		}
	}
	return schema, known
}

// checkAny is what is wrong by the alternative that fits best.
func (s *Shapes) checkAny(at string, alternatives []any, value any) []string {
	var least []string
	for i, a := range alternatives {
		wrong := s.Check(at, a, value)
		if len(wrong) == 0 {
			return nil
		}
		if i == 0 || len(wrong) < len(least) {
			least = wrong
		}
	}
	return least
}

// isOf says whether a value is of a type.
func (s *Shapes) isOf(name string, value any) bool {
	name, optional := strings.CutSuffix(name, "?")
	if name == "any" {
		return true
	}
	switch v := value.(type) {
	case nil:
		return optional || name == "null"
	case string:
		switch name {
		case "string":
			return true
		case "datetime":
			return s.isTime(v)
		case "date":
			return hasFormat(v, time.DateOnly)
		}
	case bool:
		return name == "boolean"
	case float64:
		return name == "number" || name == "integer" && v == float64(int64(v))
	case map[string]any:
		return name == "object"
	}
	return false
}

func (s *Shapes) isTime(text string) bool {
	return hasFormat(text, time.RFC3339) || slices.ContainsFunc(s.TimeFormats, func(f string) bool { return hasFormat(text, f) })
}

func hasFormat(text, format string) bool {
	_, err := time.Parse(format, text)
	return err == nil
}

// Prune is a value without the fields that its schema doesn't know and those that drop names. drop
// gets the name of the schema that a field is in, or at where that has none, and the way from
// there.
func (s *Shapes) Prune(at string, schema, value any, drop func(field string) bool) any {
	switch shape := schema.(type) {
	case []any:
		if items, ok := value.([]any); ok {
			kept := make([]any, len(items))
			for i, v := range items {
				kept[i] = s.Prune(at+"[]", shape[0], v, drop)
			}
			return kept
		}
	case map[string]any:
		if name, is := shape["$ref"].(string); is {
			return s.Prune(name, s.Named[name], value, drop)
		}
		if alternatives, is := shape["$any"].([]any); is {
			return s.pruneAny(at, alternatives, value, drop)
		}
		if fields, ok := value.(map[string]any); ok {
			kept := map[string]any{}
			for name, v := range fields {
				if schema, known := fieldOf(shape, name); known && !drop(at+"."+name) {
					kept[name] = s.Prune(at+"."+name, schema, v, drop)
				}
			}
			return kept
		}
	}
	return value
}

// pruneAny prunes by the alternative that fits best.
func (s *Shapes) pruneAny(at string, alternatives []any, value any, drop func(field string) bool) any {
	best, least := any(nil), -1
	for _, a := range alternatives {
		if wrong := len(s.Check(at, a, value)); least < 0 || wrong < least {
			best, least = a, wrong
		}
	}
	return s.Prune(at, best, value, drop)
}
