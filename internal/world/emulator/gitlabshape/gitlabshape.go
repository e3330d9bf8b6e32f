// Package gitlabshape holds calls and webhooks against GitLab's own description of its API, of
// which operations.json and webhooks.json are an extract. It is for tests: of the emulator, which
// must answer nothing that GitLab doesn't, and of the driver, which must ask nothing that GitLab
// doesn't take.
package gitlabshape

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/world/emulator/apishape"
)

//go:embed operations.json
var operationsJSON []byte

//go:embed webhooks.json
var webhooksJSON []byte

// The releases of GitLab by which a call can be judged. The extract is of the newest; the oldest
// lacks the fields that came since.
const (
	Newest = "19.4"
	Oldest = "17.0"
)

// newFields are the fields that Oldest doesn't have: auto_merge came with 17.11, merge_after with
// 17.8, signing tokens with 19.0.
var newFields = []string{"auto_merge", "merge_after", "signing_token", "signing_token_present"}

// hookTime is how webhooks write some of their times.
const hookTime = "2006-01-02 15:04:05 UTC"

// Operation is a call as GitLab describes it.
type Operation struct {
	Method, Path string
	Query, Body  map[string]any
	Responses    map[string]struct{ Schema any }
	Labels       any `json:"with_labels_details_label"`
}

// Describe gives the calls that a release has, by method and route. They are those of the extract,
// and the called ones that it lacks, each made from the extract's parts.
func Describe(release string) (map[string]Operation, error) {
	var list []Operation
	if err := json.Unmarshal(operationsJSON, &list); err != nil {
		return nil, fmt.Errorf("read GitLab's description: %w", err)
	}
	all := map[string]Operation{}
	for _, o := range list {
		if release == Oldest {
			o = o.withoutNewFields()
		}
		all[o.Method+" "+o.Path] = o
	}
	addMissing(all)
	return all, nil
}

func (o Operation) withoutNewFields() Operation {
	for _, field := range newFields {
		delete(o.Query, field)
		delete(o.Body, field)
	}
	for code, r := range o.Responses {
		dropNewFields(r.Schema)
		o.Responses[code] = r
	}
	return o
}

func dropNewFields(schema any) {
	switch s := schema.(type) {
	case []any:
		for _, each := range s {
			dropNewFields(each)
		}
	case map[string]any:
		for _, field := range newFields {
			delete(s, field)
		}
		for _, each := range s {
			dropNewFields(each)
		}
	}
}

func addMissing(all map[string]Operation) {
	add := func(name, code string, schema any, body ...string) {
		o := Operation{Body: map[string]any{}, Query: map[string]any{"username": "", "search": "", "from": "", "to": "", "action": "",
			"before": "", "sort": ""}, Responses: map[string]struct{ Schema any }{code: {Schema: schema}}}
		for _, b := range body {
			o.Body[b] = ""
		}
		all[name] = o
	}
	of := func(name string) any { return all[name].Responses["200"].Schema }
	note := of("GET /projects/{id}/merge_requests/{noteable_id}/notes/{note_id}")
	discussion := map[string]any{"id": "string", "individual_note": "boolean", "notes": []any{note}}
	add("GET /groups/{id}/members/all", "200", []any{of("GET /groups/{id}/members/all/{user_id}")})
	add("GET /projects/{id}/protected_branches", "200", []any{of("GET /projects/{id}/protected_branches/{name}")})
	const discussions = "/projects/{id}/merge_requests/{merge_request_iid}/discussions"
	add("GET /users", "200", []any{of("GET /users/{id}")})
	add("GET "+discussions, "200", []any{discussion})
	add("POST "+discussions, "201", discussion, "body")
	add("PUT "+discussions+"/{discussion_id}", "200", discussion, "resolved")
	listed := of("GET /projects/{id}/merge_requests/{merge_request_iid}/commits").([]any)
	add("GET /projects/{id}/repository/compare", "200", map[string]any{"commit": listed[0], "commits": listed, "diffs": []any{"object"},
		"compare_timeout": "boolean", "compare_same_ref": "boolean", "web_url": "string"})
	// As go-gitlab's ProjectApprovals has it.
	add("GET /projects/{id}/approvals", "200", map[string]any{"approvals_before_merge": "integer", "reset_approvals_on_push": "boolean",
		"selective_code_owner_removals":                  "boolean",
		"disable_overriding_approvers_per_merge_request": "boolean", "merge_requests_author_approval": "boolean",
		"merge_requests_disable_committers_approval": "boolean",
		"require_password_to_approve":                "boolean"})
	author := of("GET /projects/{id}/merge_requests/{merge_request_iid}").(map[string]any)["author"]
	add("GET /projects/{id}/events", "200", []any{map[string]any{
		"id": "integer", "project_id": "integer", "action_name": "string", "target_id": "integer", "target_iid": "integer",
		"target_type":  "string",
		"target_title": "string", "created_at": "datetime", "author_id": "integer", "author": author, "author_username": "string",
		"push_data": map[string]any{"commit_count": "integer", "action": "string", "ref_type": "string", "commit_from": "string",
			"commit_to": "string",
			"ref":       "string", "commit_title": "string", "ref_count": "integer"},
	}})
	for _, name := range []string{"approve", "unapprove"} {
		add("POST /projects/{id}/merge_requests/{merge_request_iid}/"+name, "201",
			of("GET /projects/{id}/merge_requests/{merge_request_iid}/approvals"), "sha")
	}
	notes := all["POST /projects/{id}/merge_requests/{noteable_id}/notes"]
	notes.Responses["202"] = struct{ Schema any }{map[string]any{"commands_changes": "object", "summary": []any{"string"}}}
	// The description has one car, GitLab's documentation and payloads a list of them.
	const car = "POST /projects/{id}/merge_trains/merge_requests/{merge_request_iid}"
	for code, r := range all[car].Responses {
		if r.Schema != nil {
			all[car].Responses[code] = struct{ Schema any }{[]any{r.Schema}}
		}
	}
}

// shapes check values: GitLab's description doesn't say which fields may be null.
var shapes = apishape.Shapes{Forge: "GitLab", NullAnyhow: true, TimeFormats: []string{hookTime, time.DateOnly}}

// Check says what in a call or its answer isn't as the calls that there are have it; nothing where
// all is.
func Check(all map[string]Operation, x apishape.Call) []string {
	name := x.Method + " " + x.Route
	o, ok := all[name]
	if !ok {
		return []string{name + " isn't GitLab's"}
	}
	var wrong []string
	for q := range x.Query {
		if _, ok := o.Query[strings.TrimSuffix(q, "[]")]; !ok && q != "page" && q != "per_page" {
			wrong = append(wrong, name+": it has no parameter "+q)
		}
	}
	var body map[string]any
	if len(x.Body) > 0 {
		if err := json.Unmarshal(x.Body, &body); err != nil {
			wrong = append(wrong, name+": the body is no JSON")
		}
	}
	for b := range body {
		if _, ok := o.Body[b]; !ok {
			wrong = append(wrong, name+": its body has no field "+b)
		}
	}
	r, ok := o.Responses[strconv.Itoa(x.Status)]
	if x.Status >= 400 {
		if everywhere := []int{401, 403, 404, 405, 429}; !ok && !slices.Contains(everywhere, x.Status) {
			wrong = append(wrong, fmt.Sprintf("%s: it never answers %d", name, x.Status))
		}
		return wrong
	}
	if !ok {
		return append(wrong, fmt.Sprintf("%s: it never answers %d", name, x.Status))
	}
	if len(x.Answer) == 0 {
		return wrong
	}
	var answer any
	if err := json.Unmarshal(x.Answer, &answer); err != nil {
		return append(wrong, name+": "+err.Error())
	}
	schema := r.Schema
	if x.Query.Get("with_labels_details") == "true" {
		entity := maps.Clone(schema.([]any)[0].(map[string]any))
		entity["labels"] = []any{o.Labels}
		schema = []any{entity}
	}
	return append(wrong, shapes.Check(name, schema, answer)...)
}

// Hook is what a webhook's payload is.
type Hook struct {
	Event  string `json:"x_gitlab_event"` // as the header says
	Fields any
}

// Hooks gives the webhooks that GitLab describes, by kind.
func Hooks() (map[string]Hook, error) {
	var all map[string]Hook
	if err := json.Unmarshal(webhooksJSON, &all); err != nil {
		return nil, fmt.Errorf("read GitLab's description of webhooks: %w", err)
	}
	// The payloads that the description is of changed neither; GitLab names whatever changed.
	changes, ok := all["merge_request"].Fields.(map[string]any)["changes"].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("read GitLab's description of webhooks: merge_request has no changes")
	}
	for _, name := range []string{"title", "description"} {
		changes[name] = map[string]any{"previous": "string", "current": "string"}
	}
	return all, nil
}

// Check says what in a payload isn't as GitLab describes the webhook.
func (h Hook) Check(payload any) []string { return shapes.Check(h.Event, h.Fields, payload) }
