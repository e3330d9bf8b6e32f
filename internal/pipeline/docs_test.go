package pipeline

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/invopop/jsonschema"
	validator "github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"

	"github.com/liftlock/liftlock/internal/pipeline/event"
	"github.com/liftlock/liftlock/internal/pipeline/strictyaml"
	"github.com/liftlock/liftlock/policies"
)

var update = flag.Bool("update", false, "write the generated files in docs/ anew")

const (
	module        = "github.com/liftlock/liftlock"
	schemaFile    = "../../docs/pipeline.schema.json"
	referenceFile = "../../docs/pipeline-reference.md"
)

// schema is the JSON schema of a pipeline, from the types, their tags and comments.
func schema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	r := &jsonschema.Reflector{
		FieldNameTag:               "yaml",
		RequiredFromJSONSchemaTags: true,
		Mapper: func(of reflect.Type) *jsonschema.Schema {
			if of == reflect.TypeFor[Duration]() || of == reflect.TypeFor[time.Duration]() {
				return &jsonschema.Schema{Type: "string", Pattern: `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`}
			}
			if of == reflect.TypeFor[Quorum]() {
				return &jsonschema.Schema{OneOf: []*jsonschema.Schema{{Type: "integer", Minimum: "1", Maximum: json.Number(fmt.Sprint(maxQuorumTargets))}, {Type: "string", Pattern: `^([1-9][0-9]?|100)%$|^([1-9][0-9]{0,5}|1000000)$`}}}
			}
			return nil
		},
	}
	for _, folder := range []string{".", "../discover", "../../policies"} {
		if err := r.AddGoComments(module+"/internal/pipeline", folder, jsonschema.WithFullComment()); err != nil {
			t.Fatal(err)
		}
	}
	for name, comment := range r.CommentMap {
		r.CommentMap[name] = strings.Join(strings.Fields(comment), " ")
	}
	s := r.Reflect(&Pipeline{})
	s.ID = SchemaURL
	s.Title = "Liftlock pipeline"
	exactlyOne(s.Definitions["Carry"], "kustomizeImages", "kustomizeRefs", "yaml", "json", "files")
	exactlyOne(s.Definitions["Gate"], policies.Kinds()...)
	exactlyOne(s.Definitions["Discovery"], "image", "chart")
	exactlyOne(s.Definitions["Choose"], "semver", "newest", "digest")
	exactlyOne(s.Definitions["ApplicationSetSource"], "path", "kustomize", "helm", "live")
	orItsShorthand(s, "Environment", "onDegraded", &OnDegraded{})
	on, _ := s.Definitions["Notification"].Properties.Get("on")
	on.Description = "The events."
	for _, w := range event.Words() {
		on.Items.Enum = append(on.Items.Enum, w.Word)
		if w.Means != "" {
			on.Description += " " + w.Word + ": " + w.Means + "."
		}
	}
	s.Definitions["Window"].OneOf = []*jsonschema.Schema{{Required: []string{"cron", "duration", "timezone"}}, {Required: []string{"argocd"}}}
	for _, k := range []string{"applicationSets", "applications"} {
		someOf := &jsonschema.Schema{Properties: jsonschema.NewProperties(), Required: []string{k}}
		someOf.Properties.Set(k, &jsonschema.Schema{MinItems: new(uint64(1))})
		s.Definitions["Spec"].AnyOf = append(s.Definitions["Spec"].AnyOf, someOf)
	}
	return s
}

// exactlyOne asks for one of some keys, which tags can't say.
func exactlyOne[S ~string](s *jsonschema.Schema, keys ...S) {
	for _, k := range keys {
		s.OneOf = append(s.OneOf, &jsonschema.Schema{Required: []string{string(k)}})
	}
}

// orItsShorthand lets a key have what may stand for its mapping.
func orItsShorthand(s *jsonschema.Schema, of, key string, short strictyaml.Shorthand) {
	p, _ := s.Definitions[of].Properties.Get(key)
	alone, _ := s.Definitions[strings.TrimPrefix(p.Ref, "#/$defs/")].Properties.Get(short.ShorthandKey())
	s.Definitions[of].Properties.Set(key, &jsonschema.Schema{OneOf: []*jsonschema.Schema{{Type: alone.Type, Enum: alone.Enum}, {Ref: p.Ref}}, Default: alone.Default, Description: p.Description})
}

// golden compares a generated file with the one in docs/, or writes it.
func golden(t *testing.T, file string, want []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s is stale; run go test ./internal/pipeline -update (-generated +file):\n%s", file, diff)
	}
}

func TestSchemaIsCurrent(t *testing.T) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(schema(t)); err != nil {
		t.Fatal(err)
	}
	golden(t, schemaFile, b.Bytes())
}

func TestReferenceIsCurrent(t *testing.T) {
	golden(t, referenceFile, reference(t, schema(t)))
}

// TestSchemaAgrees holds the schema against Parse: what Parse takes, the schema
// takes, and what is wrong by shape alone, both refuse.
func TestSchemaAgrees(t *testing.T) {
	compiled, err := validator.NewCompiler().Compile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	valid, err := os.ReadFile("testdata/shop.yaml")
	if err != nil {
		t.Fatal(err)
	}
	examples := map[string]string{"the sample": string(valid)}
	for name, change := range map[string][2]string{
		"an unknown key":        {"  mode: act", "  moed: act"},
		"a mode":                {"mode: act", "mode: watch"},
		"two kinds of a carry":  {`kustomizeImages: ["registry.example/*"]`, `{kustomizeImages: [a], yaml: {files: [a], paths: [b]}}`},
		"no kind of a carry":    {`kustomizeImages: ["registry.example/*"]`, `whenAbsent: add`},
		"a duration":            {"arriveWithin: 15m", "arriveWithin: 15"},
		"a limit":               {"mergesPerHour: 20", "mergesPerHour: 0"},
		"a name":                {"name: dev", "name: Dev"},
		"a quorum":              {"onDegraded: revert", "onDegraded: {quorum: 0%}"},
		"a quorum of too many":  {"onDegraded: revert", "onDegraded: {quorum: 101%}"},
		"a quorum of nothing":   {"onDegraded: revert", "onDegraded: {quorum: 0}"},
		"a quorum by name":      {"onDegraded: revert", "onDegraded: {action: revert, qourum: 2}"},
		"what else degrades":    {"onDegraded: revert", "onDegraded: rollback"},
		"no gate":               {"approvals: {count: 2, from: {users: [ada, grace]}}", "{}"},
		"a gate's count":        {"count: 2", "count: none"},
		"a gate to come":        {"approvals: {count: 2, from: {users: [ada, grace]}}", "metrics: {}"},
		"another kind":          {"kind: Pipeline", "kind: Pipe"},
		"what drifted":          {"approvals: {count: 2, from: {users: [ada, grace]}}", "settled: {drift: wait}"},
		"a window's zone":       {"approvals: {count: 2, from: {users: [ada, grace]}}", `window: {cron: "0 9 * * *", duration: 8h}`},
		"nothing to discover":   {`- image: registry.example/*`, `- platforms: [linux/amd64]`},
		"a rule of two":         {`choose: {semver: ">=1.0.0 <2.0.0"}`, `choose: {semver: "*", digest: {tag: main}}`},
		"no order of tags":      {`choose: {semver: ">=1.0.0 <2.0.0"}`, `choose: {newest: {tags: "^main-"}}`},
		"another delivery":      {"      verify: {arriveWithin", "      deliver: mail\n      verify: {arriveWithin"},
		"no ApplicationSet":     {"    - path: argocd/*.yaml\n", "    - environment: prod\n"},
		"two places of sets":    {"    - path: argocd/*.yaml\n", "    - {path: a, live: {name: shop}}\n"},
		"Applications at will":  {"  component:", "  applications: [{live: {argocd: hub}}]\n  component:"},
		"environments by name":  {"    - name: dev\n", "    - title: dev\n"},
		"a list for a template": {"component: '{{ index .path.segments 1 }}'", "component: []"},
	} {
		changed := strings.Replace(string(valid), change[0], change[1], 1)
		if changed == string(valid) {
			t.Fatalf("%s: the sample has no %q", name, change[0])
		}
		examples[name] = changed
	}
	accepted := map[string]bool{"the sample": true}
	for _, text := range []string{"hold", "{}", "{action: revert-and-merge}", "{quorum: 50%}", "{action: revert, quorum: 2}", "{quorum: \"2\"}", "{quorum: 100%}", "{quorum: 1000000}"} {
		examples[text], accepted[text] = strings.Replace(string(valid), "onDegraded: revert", "onDegraded: "+text, 1), true
	}
	for name, text := range examples {
		var document any
		if err := yaml.Unmarshal([]byte(text), &document); err != nil {
			t.Fatal(err)
		}
		_, parseErr := Parse("p.yaml", []byte(text))
		schemaErr := compiled.Validate(asText(document))
		if wantOK := accepted[name]; (parseErr == nil) != wantOK || (schemaErr == nil) != wantOK {
			t.Errorf("%s: Parse says %v, the schema %v", name, parseErr, schemaErr)
		}
	}
}

// asText is a document as editors read it, by YAML 1.2: there a date is text.
func asText(v any) any {
	switch v := v.(type) {
	case time.Time:
		return v.Format(time.DateOnly)
	case map[string]any:
		for k := range v {
			v[k] = asText(v[k])
		}
	case []any:
		for i := range v {
			v[i] = asText(v[i])
		}
	}
	return v
}

const introduction = `# The pipeline file

<!-- Generated from the types in internal/pipeline: go test ./internal/pipeline -update -->

A repository's pipelines are in ` + "`.liftlock.yaml`" + ` or in ` + "`.liftlock/*.yaml`" + ` on its default branch, one in each YAML document.
Unknown and duplicate keys, keys without a value, and values of a wrong type are errors with file and line. Check the file with
` + "`liftlock validate`" + `; editors can use [pipeline.schema.json](pipeline.schema.json).

- A key without a type takes text. Durations: ` + "`90s`, `15m`, `1h30m`" + `. File globs: ` + "`*`, `**`, `?`, `[…]`, `{a,b}`" + `.
- Templates are Go templates with the deterministic ones of [sprig's functions](https://masterminds.github.io/sprig/). A missing
  parameter is an error.
- Details: [carried fields](edits.md), [sets and Applications](resolution.md), [gates](gates.md),
  [promotion and verification](promotion.md).

`

// reference is the reference of the file format, for people.
func reference(t *testing.T, s *jsonschema.Schema) []byte {
	t.Helper()
	sample, err := os.ReadFile("testdata/shop.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	b.WriteString(introduction)
	fmt.Fprintf(&b, "## Example\n\n```yaml\n%s```\n", sample)
	paths := map[string][]string{} // of the keys that hold a type
	queue := []typeReference{{of: "Pipeline"}}
	var order []string
	inlineTypesWithoutKeys(s)
	for len(queue) > 0 {
		next := queue[0]
		queue = queue[1:]
		if paths[next.of] == nil {
			order = append(order, next.of)
			queue = append(queue, findTypeReferences(s.Definitions[next.of], next.path)...)
		}
		paths[next.of] = append(paths[next.of], "`"+next.path+"`")
	}
	for _, name := range order {
		section(t, &b, name, paths[name], s.Definitions[name])
	}
	return b.Bytes()
}

// typeReference is a type and the path of a key that holds it.
type typeReference struct{ of, path string }

// findTypeReferences are the places of the types that a type at a path refers to.
func findTypeReferences(s *jsonschema.Schema, path string) []typeReference {
	var places []typeReference
	for pair := s.Properties.Oldest(); pair != nil; pair = pair.Next() {
		if _, of := valueOf(pair.Value); of != "" {
			at := strings.TrimPrefix(path+"."+pair.Key, ".")
			if pair.Value.Type == "array" {
				at += "[]"
			}
			places = append(places, typeReference{of: of, path: at})
		}
	}
	return places
}

// inlineTypesWithoutKeys puts lists and mappings of any keys where they are referred to.
func inlineTypesWithoutKeys(s *jsonschema.Schema) {
	for _, of := range s.Definitions {
		if of.Properties == nil {
			continue
		}
		for pair := of.Properties.Oldest(); pair != nil; pair = pair.Next() {
			named := s.Definitions[strings.TrimPrefix(pair.Value.Ref, "#/$defs/")]
			if named != nil && named.Properties.Len() == 0 {
				inlined := *named
				inlined.Description = pair.Value.Description
				pair.Value = &inlined
			}
		}
	}
}

// section writes one type.
func section(t *testing.T, b *bytes.Buffer, name string, paths []string, s *jsonschema.Schema) {
	t.Helper()
	fmt.Fprintf(b, "\n## %s\n\n", name)
	// The key that holds the type says what it is, as the type's first sentence does.
	_, more, _ := strings.Cut(s.Description+" ", ". ")
	if paths[0] == "``" {
		more = s.Description
	} else {
		more = "At " + strings.Join(paths, " and ") + ". " + more
	}
	fmt.Fprintf(b, "%s\n", strings.TrimSpace(more))
	b.WriteString("\n")
	for pair := s.Properties.Oldest(); pair != nil; pair = pair.Next() {
		key, p := pair.Key, pair.Value
		if p.Description == "" {
			t.Errorf("%s.%s has no comment", name, key)
		}
		required := ""
		if slices.Contains(s.Required, key) {
			required = ", required"
		}
		value := valueWithDefault(p) + ". "
		if value == "text. " {
			value = "" // the introduction says so
		}
		fmt.Fprintf(b, "- `%s`%s: %s%s\n", key, required, value, p.Description)
	}
}

// valueWithDefault says what a key takes, and which of it where it isn't set.
func valueWithDefault(p *jsonschema.Schema) string {
	value, _ := valueOf(p)
	if p.Default == nil {
		return value
	}
	fallback := fmt.Sprintf("`%v`", p.Default)
	if strings.Contains(value, fallback) {
		return strings.Replace(value, fallback, fallback+" (default)", 1)
	}
	return value + ", default " + fallback
}

// valueOf says what a key takes, and the type it refers to, if any.
func valueOf(p *jsonschema.Schema) (text, refersTo string) {
	if ref := strings.TrimPrefix(p.Ref, "#/$defs/"); ref != "" {
		return fmt.Sprintf("[%s](#%s)", ref, strings.ToLower(ref)), ref
	}
	switch {
	case len(p.OneOf) > 0:
		var choices []string
		for _, one := range p.OneOf {
			choice, of := valueOf(one)
			if choices = append(choices, choice); of != "" {
				refersTo = of
			}
		}
		return strings.Join(choices, ", or "), refersTo
	case len(p.Enum) > 0:
		var choices []string
		for _, e := range p.Enum {
			choices = append(choices, fmt.Sprintf("`%v`", e))
		}
		return strings.Join(choices, ", "), ""
	case p.Type == "array":
		text, refersTo = valueOf(p.Items)
		return "list of " + text, refersTo
	case p.Type == "integer" && p.Minimum != "":
		return "whole number, at least " + p.Minimum.String(), ""
	case p.Type == "integer":
		return "whole number", ""
	case p.Type == "string" && strings.Contains(p.Pattern, "%"):
		return "share like `50%`", ""
	case p.Type == "string" && strings.Contains(p.Pattern, "µs"):
		return "duration", ""
	case p.Pattern == namePattern.String():
		return fmt.Sprintf("`[a-z0-9][a-z0-9-]*`, at most %d characters", maxNameLength), ""
	case p.Type == "string":
		return "text", ""
	case p.Type == "object":
		return "mapping", ""
	}
	return p.Type, ""
}
