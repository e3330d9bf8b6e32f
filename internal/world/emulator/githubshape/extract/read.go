package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

type object = map[string]any

// document is one release's description, in OpenAPI 3.0.
type document struct {
	Paths      map[string]map[string]any
	Components struct {
		Schemas    map[string]object
		Responses  map[string]object
		Parameters map[string]object
	}
}

// announcement is something that GitHub says it is going to take away, or advises against.
type announcement struct {
	Version   string `json:"version,omitempty"`   // of the API, from which it isn't there; empty: it is only deprecated
	Changeset string `json:"changeset,omitempty"` // GitHub's name for the change
}

// reader reads the calls of one release.
type reader struct {
	schemas, responses, parameters map[string]object
	needed                         map[string]any // by name; nil: to be read
	announced                      map[string]announcement
}

// operation reads what a call takes and answers; nil: this release doesn't have it.
func (r *reader) operation(d document, name string) (any, error) {
	method, path, ok := strings.Cut(name, " ")
	if !ok {
		return nil, fmt.Errorf("write METHOD /path")
	}
	o, _ := d.Paths[path][strings.ToLower(method)].(object)
	if o == nil {
		return nil, nil
	}
	r.announce(name, o)
	query, responses := object{}, object{}
	for _, p := range list(o["parameters"]) {
		parameter := p.(object)
		if ref, _ := parameter["$ref"].(string); ref != "" {
			parameter = r.parameters[base(ref)]
		}
		if parameter["in"] == "query" {
			query[parameter["name"].(string)] = r.convert(name, parameter["schema"])
		}
	}
	shape := object{"query": query, "responses": responses}
	if content := jsonSchema(o["requestBody"]); content != nil {
		shape["body"] = r.convert(name+" body", content)
	}
	for status, v := range o["responses"].(object) {
		response := v.(object)
		if ref, _ := response["$ref"].(string); ref != "" {
			response = r.responses[base(ref)]
		}
		if content := jsonSchema(response); content != nil && status < "400" {
			responses[status] = r.convert(name+" "+status, content)
		} else {
			responses[status] = nil
		}
	}
	return shape, nil
}

// resolve reads the schemas that are referred to, and those that they refer to.
func (r *reader) resolve() error {
	for {
		i := slices.IndexFunc(slices.Sorted(maps.Keys(r.needed)), func(name string) bool { return r.needed[name] == nil })
		if i < 0 {
			return nil
		}
		name := slices.Sorted(maps.Keys(r.needed))[i]
		s := r.schemas[name]
		if s == nil {
			return fmt.Errorf("there is no schema %s", name)
		}
		r.needed[name] = r.convert(name, s)
	}
}

// convert writes a schema as apishape has it. At says whose it is.
func (r *reader) convert(at string, schema any) any {
	s, _ := schema.(object)
	if len(s) == 0 {
		return "any"
	}
	if ref, _ := s["$ref"].(string); ref != "" {
		name := base(ref)
		if _, known := r.needed[name]; !known {
			r.needed[name] = nil
		}
		return object{"$ref": name}
	}
	r.announce(at, s)
	nullable := s["nullable"] == true
	alternatives := append(list(s["oneOf"]), list(s["anyOf"])...)
	// Alternatives that only say which fields go together say no type.
	alternatives = slices.DeleteFunc(alternatives, func(a any) bool {
		_, required := a.(object)["required"]
		return required && a.(object)["properties"] == nil
	})
	switch {
	case len(list(s["allOf"])) > 0:
		return orNull(r.merge(at, list(s["allOf"])), nullable)
	case len(alternatives) > 0:
		var shapes []any
		for _, a := range alternatives {
			shapes = append(shapes, r.convert(at, a))
		}
		return orNull(object{"$any": shapes}, nullable)
	case s["type"] == "array":
		return orNull([]any{r.convert(at+"[]", s["items"])}, nullable)
	case s["properties"] != nil:
		return orNull(r.fields(at, s), nullable)
	}
	name, _ := s["type"].(string)
	switch {
	case name == "":
		return "any"
	case s["format"] == "date-time":
		name = "datetime"
	}
	if nullable {
		name += "?"
	}
	return name
}

// fields are an object's; those that are required end in an exclamation mark.
func (r *reader) fields(at string, s object) object {
	fields := object{}
	for name, each := range s["properties"].(object) {
		shape := r.convert(at+"."+name, each)
		if slices.Contains(list(s["required"]), any(name)) {
			name += "!"
		}
		fields[name] = shape
	}
	if others, ok := s["additionalProperties"].(object); ok {
		fields["*"] = r.convert(at+".*", others)
	}
	return fields
}

// merge is one object of all the fields of several.
func (r *reader) merge(at string, all []any) any {
	if len(all) == 1 {
		return r.convert(at, all[0])
	}
	fields := object{}
	for _, each := range all {
		s := each.(object)
		if ref, _ := s["$ref"].(string); ref != "" {
			s = r.schemas[base(ref)]
		}
		if merged, ok := r.convert(at, s).(object); ok {
			maps.Copy(fields, merged)
		}
	}
	return fields
}

func orNull(shape any, nullable bool) any {
	if !nullable {
		return shape
	}
	return object{"$any": []any{shape, "null"}}
}

// announce notes what of a schema or a call is said to go away.
func (r *reader) announce(at string, s object) {
	if _, known := r.announced[at]; s["deprecated"] == true && !known {
		r.announced[at] = announcement{}
	}
	for _, c := range list(s["x-github-breaking-changes"]) {
		change := c.(object)
		a := announcement{}
		a.Version, _ = change["version"].(string)
		a.Changeset, _ = change["changeset"].(string)
		for _, path := range removedBy(change["patch"]) {
			r.announced[strings.Trim(at+"."+path, ".")] = a
		}
	}
}

// removedBy are the fields that a patch removes, of either kind: JSON Patch, or JSON Merge Patch.
func removedBy(patch any) []string {
	var removed []string
	for _, each := range list(patch) {
		step := each.(object)
		if path, _ := step["path"].(string); step["op"] == "remove" && strings.Contains(path, "/properties/") {
			removed = append(removed, fieldPath(strings.Split(path, "/")))
		}
	}
	var walk func(path []string, value any)
	walk = func(path []string, value any) {
		if value == nil && len(path) > 1 && path[len(path)-2] == "properties" {
			removed = append(removed, fieldPath(path))
		}
		fields, _ := value.(object)
		for name, v := range fields {
			walk(append(slices.Clip(path), name), v)
		}
	}
	walk(nil, patch)
	return removed
}

// fieldPath is the way through fields that a way through a schema is.
func fieldPath(path []string) string {
	var names []string
	for i, name := range path {
		if i > 0 && path[i-1] == "properties" {
			names = append(names, name)
		}
	}
	return strings.Join(names, ".")
}

// jsonSchema is the schema of a body or an answer in JSON; nil: it has none.
func jsonSchema(value any) any {
	o, _ := value.(object)
	content, _ := o["content"].(object)
	media, _ := content["application/json"].(object)
	if media == nil {
		return nil
	}
	return media["schema"]
}

func list(value any) []any {
	l, _ := value.([]any)
	return l
}

func base(ref string) string { return ref[strings.LastIndex(ref, "/")+1:] }
