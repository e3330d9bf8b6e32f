package config

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/invopop/jsonschema"
	validator "github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"

	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/pipeline/strictyaml"
	"github.com/liftlock/liftlock/policies"
)

var update = flag.Bool("update", false, "write the server's schema in docs/ anew")

const (
	serverSchema = "../../../docs/server.schema.json"
	catalogFile  = "../../../deploy/schemastore.json"
)

// variable is a value that has one, which may stand for anything.
const variable = `\$\{`

// reflectSchema is the JSON schema of the server's file, from the types and their comments.
func reflectSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	orVariable := func(s *jsonschema.Schema) *jsonschema.Schema {
		return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{s, {Type: "string", Pattern: variable}}}
	}
	r := &jsonschema.Reflector{
		FieldNameTag:               "yaml",
		RequiredFromJSONSchemaTags: true, // no key is required: a variable may stand for the whole, and Load says it better
		Mapper: func(of reflect.Type) *jsonschema.Schema {
			switch {
			case of == reflect.TypeFor[time.Duration]():
				return &jsonschema.Schema{Type: "string", Pattern: `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$|` + variable}
			case of == reflect.TypeFor[Secret](), of == reflect.TypeFor[policies.Moment]():
				return &jsonschema.Schema{Type: "string"}
			case of.Kind() == reflect.Bool:
				return orVariable(&jsonschema.Schema{Type: "boolean"})
			case of.Kind() == reflect.Int, of.Kind() == reflect.Int64:
				return orVariable(&jsonschema.Schema{Type: "integer"})
			}
			return nil
		},
	}
	for _, folder := range []string{".", "../../../policies"} {
		if err := r.AddGoComments("github.com/liftlock/liftlock/internal/server/config", folder, jsonschema.WithFullComment()); err != nil {
			t.Fatal(err)
		}
	}
	for name, comment := range r.CommentMap {
		r.CommentMap[name] = strings.Join(strings.Fields(comment), " ")
	}
	s := r.Reflect(&Config{})
	s.ID = jsonschema.ID(strings.Replace(pipeline.SchemaURL, "pipeline.", "server.", 1))
	s.Title = "Liftlock server"
	signing, _ := s.Definitions["Config"].Properties.Get("signing")
	signing.OneOf, signing.Ref = []*jsonschema.Schema{{Enum: []any{SigningByForge}}, {Ref: signing.Ref}}, ""
	for of, values := range map[[2]string][]any{
		{"Config", "readAccess"}: {ReadOpen, ReadToken},
		{"Forge", "type"}:        {GitHub, GitLab, Gitea},
		{"Channel", "type"}:      {ChannelWebhook, ChannelSlack, ChannelTeams},
		{"ArgoCD", "refresh"}:    {RefreshAnnotation, RefreshAPI, RefreshOff},
		{"ArgoCD", "render"}:     {RenderLocal, RenderArgoCD},
		{"ArgoCD", "globbing"}:   {GlobbingGit, GlobbingDoublestar},
		{"Token", "role"}:        {Viewer, Operator, BreakGlass},
	} {
		key, ok := s.Definitions[of[0]].Properties.Get(of[1])
		if !ok {
			t.Fatalf("there is no %v", of)
		}
		key.AnyOf = []*jsonschema.Schema{{Enum: values}, {Pattern: variable}}
	}
	return s
}

// TestServerSchema holds docs/server.schema.json against the types, and against what Load takes.
func TestServerSchema(t *testing.T) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(reflectSchema(t)); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(serverSchema, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(serverSchema)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(b.String(), string(got)); diff != "" {
		t.Fatalf("the schema is stale; run go test ./internal/server/config -update (-generated +file):\n%s", diff)
	}
	compiled, err := validator.NewCompiler().Compile(serverSchema)
	if err != nil {
		t.Fatal(err)
	}
	check := func(text string) error {
		var document any
		if err := yaml.Unmarshal([]byte(text), &document); err != nil {
			t.Fatal(err)
		}
		return compiled.Validate(asText(document))
	}
	sample, err := os.ReadFile("testdata/liftlock.yaml")
	if err != nil {
		t.Fatal(err)
	}
	examples := []string{string(sample)}
	for _, page := range keyPages {
		text, err := os.ReadFile("../../../docs/" + page + ".md")
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
			if !strings.HasPrefix(m[1], "apiVersion:") && !strings.HasPrefix(m[1], "# the pipeline file") && !strings.HasPrefix(m[1], "api:\n  url:") {
				examples = append(examples, m[1])
			}
		}
	}
	if len(examples) < 10 {
		t.Errorf("only %d examples are found", len(examples))
	}
	for _, text := range examples {
		if err := check(text); err != nil {
			t.Errorf("%v in\n%s", err, text)
		}
	}
	for name, text := range map[string]string{
		"an unknown key":  "externalUrl: https://example.com",
		"a key within":    "forges: [{name: hub, tpye: github}]",
		"a type of forge": "forges: [{name: hub, type: bitbucket}]",
		"a role":          "api: {tokens: [{name: ci, role: admin, token: '${CI}'}]}",
		"a duration":      "sweepInterval: 5",
		"a number":        "forges: [{auth: {app: {id: one}}}]",
		"a truth":         "generators: {plugin: sometimes}",
		"a list":          "hosts: liftlock.example.com",
	} {
		if err := check(text); err == nil {
			t.Errorf("%s is accepted: %s", name, text)
		}
		if err := strictyaml.Decode("example", []byte(text), &Config{}); err == nil && name != "a type of forge" && name != "a role" {
			t.Errorf("%s is accepted by Load: %s", name, text)
		}
	}
	if err := check("generators: {plugin: '${PLUGIN}'}\nforges: [{type: '${TYPE}', auth: {app: {id: '${ID}'}}}]"); err != nil {
		t.Errorf("variables are refused: %v", err)
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

// TestSchemaStore holds the entries for SchemaStore's catalog, by whose names editors find the
// schemas: each leads to one of ours, and is found by the names that the files have.
func TestSchemaStore(t *testing.T) {
	content, err := os.ReadFile(catalogFile)
	if err != nil {
		t.Fatal(err)
	}
	var entries []struct {
		Name, Description, URL string
		FileMatch              []string
	}
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&entries); err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, e := range entries {
		// The catalog's own rules: no word "schema", and a description of at least some words.
		if e.Name == "" || strings.Contains(strings.ToLower(e.Name+e.Description), "schema") || len(e.Description) < 20 {
			t.Errorf("SchemaStore doesn't take %+v", e)
		}
		schema, err := os.ReadFile("../../../docs/" + filepath.Base(e.URL))
		if err != nil || !strings.Contains(string(schema), `"$id": "`+e.URL+`"`) {
			t.Errorf("%s isn't the address of a schema: %v", e.URL, err)
		}
		for _, name := range e.FileMatch {
			found[name] = filepath.Base(e.URL)
		}
	}
	want := map[string]string{pipeline.FileName: "pipeline.schema.json", "**/" + pipeline.FolderName + "/*.yaml": "pipeline.schema.json",
		"liftlock.yaml": "server.schema.json"}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
