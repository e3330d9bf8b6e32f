package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/invopop/jsonschema"
	validator "github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion/command"
)

const openAPIFile = "api/openapi.json"

// apiOperation is what the document says of a route.
type apiOperation struct {
	summary string
	query   []string
	answer  any
	other   string // another media type in which it can answer
	body    any    // of a command
	bare    bool   // a command that takes no body, too
}

const (
	jsonType       = "application/json"
	repositoryName = "repository"
	componentsRefs = "#/components/schemas/"
)

// apiOperations are the routes of the API, the server's own callback of gates included.
func apiOperations() map[Route]apiOperation {
	question := func(path string) Route { return Route{http.MethodGet, "/api/v1/" + path, ForReaders} }
	named := []string{"repository", "pipeline", "component", "environment"}
	out := map[Route]apiOperation{
		question("pipelines"):                                {summary: "All pipelines", query: []string{repositoryName}, answer: api.Pipelines{}},
		question("pipelines/{pipeline}"):                     {summary: "A pipeline with its components", query: []string{repositoryName}, answer: api.Pipeline{}},
		question("pipelines/{pipeline}/differences"):         {summary: "Its resolved Applications compared with the live ones", query: []string{repositoryName}, answer: api.Differences{}},
		question("pipelines/{pipeline}/compare"):             {summary: "A component in two environments", query: []string{repositoryName, "component", "from", "to"}, answer: api.Comparison{}},
		question("pipelines/{pipeline}/apart"):               {summary: "All components in two environments", query: []string{repositoryName, "from", "to"}, answer: api.EnvironmentComparison{}},
		question("promotions"):                               {summary: "Promotions and reverts, the newest first", query: append(slices.Clone(named), "kind", "state", "pull", "before", "limit"), answer: api.Promotions{}},
		question("promotions/{id}"):                          {summary: "A promotion or revert", answer: api.Promotion{}},
		question("promotions/{id}/diff"):                     {summary: "What the rendered manifests gain and lose", query: []string{"format"}, answer: api.RenderedDiff{}, other: "text/plain"},
		question("overview"):                                 {summary: "All pipelines in numbers", answer: api.Overview{}},
		question("why"):                                      {summary: "Why a component is as it is", query: named, answer: api.Why{}},
		question("audit"):                                    {summary: "Commands, merges and logins, the newest first", query: []string{"pipeline", "component", "environment", "actor", "via", "verb", "since", "until", "limit", "before", "format", repositoryName}, answer: api.AuditTrail{}, other: "application/x-ndjson"},
		question("events"):                                   {summary: "A stream of events; those called happened have this as their data", query: append(slices.Clone(named), "after"), answer: api.Event{}, other: "text/event-stream"},
		{http.MethodGet, "/api/v1/openapi.json", ForAnybody}: {summary: "This document", answer: map[string]any{}},
		{http.MethodPost, "/api/v1/promotions/{id}/gates/{gate}", "endpoints"}: {summary: "An endpoint's later answer to a gate; signed, and id is the request's",
			answer: api.Error{}, body: gateAnswer{}},
	}
	for _, verb := range command.OnPipeline() {
		out[Route{http.MethodPost, "/api/v1/pipelines/{pipeline}/" + string(verb), ForCommands}] = apiOperation{summary: verb.Title(), answer: api.CommandReply{}, body: api.PipelineCommand{}}
	}
	for _, verb := range command.OnPromotion() {
		out[Route{http.MethodPost, "/api/v1/promotions/{id}/" + string(verb), ForCommands}] = apiOperation{summary: verb.Title(), answer: api.CommandReply{}, body: api.PromotionCommand{}, bare: true}
	}
	return out
}

// gateAnswer is what policies.ParseEndpointAnswer reads.
type gateAnswer struct {
	ID      string `json:"id"`
	Outcome string `json:"outcome" jsonschema:"enum=pass,enum=wait,enum=fail"`
	Reason  string `json:"reason"`
	Until   string `json:"until,omitempty" jsonschema:"format=date-time"`
}

// document builds the document from the operations and the types of the api.
func document(t *testing.T) []byte {
	t.Helper()
	// Fields are only added: an answer may have more than is known here.
	r := &jsonschema.Reflector{AllowAdditionalProperties: true}
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(r.AddGoComments("github.com/liftlock/liftlock/internal/console", "./api", jsonschema.WithFullComment()))
	for name, comment := range r.CommentMap {
		r.CommentMap[name] = strings.Join(strings.Fields(comment), " ")
	}
	schemas := map[string]*jsonschema.Schema{}
	refer := func(v any) map[string]any {
		of := reflect.TypeOf(v)
		if of.Kind() == reflect.Map {
			return map[string]any{"type": "object"}
		}
		for name, s := range r.ReflectFromType(of).Definitions {
			schemas[name] = s
		}
		allowNull(of, schemas, map[reflect.Type]bool{})
		return map[string]any{"$ref": componentsRefs + of.Name()}
	}
	content := func(mediaType string, schema map[string]any) map[string]any {
		return map[string]any{mediaType: map[string]any{"schema": schema}}
	}
	paths := map[string]map[string]any{}
	operations := apiOperations()
	for route, o := range operations {
		answers := content(jsonType, refer(o.answer))
		if o.other == "text/event-stream" {
			answers = content(o.other, map[string]any{"type": "string"})
			refer(o.answer)
		} else if o.other != "" {
			maps.Copy(answers, content(o.other, map[string]any{"type": "string"}))
		}
		op := map[string]any{"summary": o.summary, "responses": map[string]any{
			"200":     map[string]any{"description": "The answer.", "content": answers},
			"default": map[string]any{"description": "What was wrong, and what to do.", "content": content(jsonType, refer(api.Error{}))},
		}}
		var parameters []any
		for _, m := range regexp.MustCompile(`\{(\w+)\}`).FindAllStringSubmatch(route.Path, -1) {
			parameters = append(parameters, map[string]any{"name": m[1], "in": "path", "required": true, "schema": map[string]any{"type": "string"}})
		}
		for _, name := range o.query {
			parameters = append(parameters, map[string]any{"name": name, "in": "query", "schema": map[string]any{"type": "string"}})
		}
		if parameters != nil {
			op["parameters"] = parameters
		}
		if o.body != nil {
			op["requestBody"] = map[string]any{"required": !o.bare, "content": content(jsonType, refer(o.body))}
		}
		switch route.Access {
		case ForReaders:
			op["security"] = []any{map[string]any{}, map[string]any{"token": []any{}}} // readAccess says which
		case ForCommands:
			op["security"] = []any{map[string]any{"token": []any{}}}
		}
		if paths[route.Path] == nil {
			paths[route.Path] = map[string]any{}
		}
		paths[route.Path][strings.ToLower(route.Method)] = op
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	must(encoder.Encode(map[string]any{
		"openapi": "3.1.0",
		"info":    map[string]any{"title": "Liftlock", "version": "v1", "description": "Unknown fields are to be ignored: fields are only added."},
		"paths":   paths,
		"components": map[string]any{"schemas": schemas,
			"securitySchemes": map[string]any{"token": map[string]any{"type": "http", "scheme": "bearer"}}},
	}))
	return bytes.ReplaceAll(b.Bytes(), []byte("#/$defs/"), []byte(componentsRefs))
}

// allowNull lets pointers that are never left out be null.
func allowNull(of reflect.Type, schemas map[string]*jsonschema.Schema, seen map[reflect.Type]bool) {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice || of.Kind() == reflect.Map {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || seen[of] || schemas[of.Name()] == nil {
		return
	}
	seen[of] = true
	s := schemas[of.Name()]
	for f := range of.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if key, ok := s.Properties.Get(name); ok && f.Type.Kind() == reflect.Pointer && options == "" && key.AnyOf == nil {
			described := key.Description
			key.Description = ""
			was := *key
			*key = jsonschema.Schema{AnyOf: []*jsonschema.Schema{&was, {Type: "null"}}, Description: described}
		}
		allowNull(f.Type, schemas, seen)
	}
}

// TestOpenAPI holds the document against the routes, in both directions, and the types.
func TestOpenAPI(t *testing.T) {
	want := document(t)
	if *update {
		if err := os.WriteFile(openAPIFile, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return // it is compiled in: the next run checks it
	}
	got, err := os.ReadFile(openAPIFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Fatalf("the document is stale; run go test ./internal/console -run OpenAPI -update (-generated +file):\n%s", diff)
	}
	w := newTestConsole(t, nil)
	w.seed()
	c, err := New(w.options)
	w.must(err)
	described := apiOperations()
	delete(described, Route{http.MethodPost, "/api/v1/promotions/{id}/gates/{gate}", "endpoints"}) // not the console's: the server holds it
	for _, r := range c.Routes() {
		if !strings.HasPrefix(r.Path, "/api/") {
			continue
		}
		o, ok := described[r]
		if !ok {
			t.Errorf("%s %s for %s isn't described", r.Method, r.Path, r.Access)
		}
		delete(described, r)
		if r.Method != http.MethodGet || r.Access != ForReaders {
			continue
		}
		_, _, body := w.request(http.MethodGet, fill(r.Path)+"?nosuch=x", "", nil)
		_, listed, _ := strings.Cut(body, "there are ")
		listed = strings.TrimSuffix(strings.TrimSpace(listed), `"}`)
		known := strings.FieldsFunc(listed, func(r rune) bool { return r == ',' || r == ' ' })
		slices.Sort(known)
		if described := slices.Sorted(slices.Values(o.query)); !slices.Equal(known, described) {
			t.Errorf("%s takes %q, and %q are described: %s", r.Path, known, described, body)
		}
	}
	for r := range described {
		t.Errorf("%s %s for %s is described, and not answered", r.Method, r.Path, r.Access)
	}
	if status, header, body := w.get("/api/v1/openapi.json"); status != http.StatusOK || body != string(got) || !strings.HasPrefix(header.Get("Content-Type"), jsonType) {
		t.Errorf("it is answered with %d %s and %d bytes", status, header.Get("Content-Type"), len(body))
	}
}

// answerSchemas are those of answers with a status of 200 by the patterns of their routes, in
// which nothing may be that isn't described; and that of errors.
var answerSchemas = sync.OnceValues(func() (*http.ServeMux, map[string]*validator.Schema) {
	var doc map[string]any
	if err := json.Unmarshal(api.OpenAPI, &doc); err != nil {
		panic(err)
	}
	components, _ := doc["components"].(map[string]any)
	schemas, _ := components["schemas"].(map[string]any)
	for _, s := range schemas {
		s.(map[string]any)["additionalProperties"] = false
	}
	compiler := validator.NewCompiler()
	if err := compiler.AddResource("openapi.json", doc); err != nil {
		panic(err)
	}
	mux, out := http.NewServeMux(), map[string]*validator.Schema{}
	compile := func(v any) *validator.Schema {
		return compiler.MustCompile("openapi.json" + componentsRefs + reflect.TypeOf(v).Name())
	}
	for route, o := range apiOperations() {
		pattern := route.Method + " " + route.Path
		if _, structured := o.answer.(map[string]any); !structured && o.other != "text/event-stream" {
			mux.HandleFunc(pattern, func(http.ResponseWriter, *http.Request) {})
			out[pattern] = compile(o.answer)
		}
	}
	out[""] = compile(api.Error{})
	return mux, out
})

// checkAnswer holds an answer of the API against the document.
func checkAnswer(t testing.TB, method, path string, status int, contentType string, body []byte) {
	t.Helper()
	if !strings.HasPrefix(path, "/api/v1/") || !strings.HasPrefix(contentType, jsonType) || method == http.MethodHead {
		return
	}
	req, err := http.NewRequestWithContext(t.Context(), method, path, nil)
	if err != nil {
		return // an address that no client sends
	}
	mux, schemas := answerSchemas()
	pattern := ""
	if status == http.StatusOK {
		if _, pattern = mux.Handler(req); pattern == "" {
			return
		}
	}
	answer, err := validator.UnmarshalJSON(bytes.NewReader(body))
	if err == nil {
		err = schemas[pattern].Validate(answer)
	}
	if err != nil {
		t.Errorf("%s %s answers with %d what the document doesn't describe: %v\n%s", method, path, status, err, fmt.Sprintf("%.2000s", body))
	}
}
