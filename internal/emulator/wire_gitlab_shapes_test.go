package emulator

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// gitlabOperation is a call as GitLab describes it.
type gitlabOperation struct {
	Method, Path string
	Query, Body  map[string]any
	Responses    map[string]struct{ Schema any }
	Labels       any `json:"with_labels_details_label"`
}

// readOperations reads GitLab's description, and adds what it lacks of what the emulator
// answers: each is made of what the description has.
func readOperations(t *testing.T) map[string]gitlabOperation {
	t.Helper()
	raw, err := os.ReadFile("testdata/gitlab/operations.json")
	if err != nil {
		t.Fatal(err)
	}
	var list []gitlabOperation
	if err := json.Unmarshal(raw, &list); err != nil {
		t.Fatal(err)
	}
	all := map[string]gitlabOperation{}
	for _, o := range list {
		all[o.Method+" "+o.Path] = o
	}
	add := func(name, code string, schema any, body ...string) {
		o := gitlabOperation{Body: map[string]any{}, Query: map[string]any{"username": "", "search": "", "from": "", "to": ""}, Responses: map[string]struct{ Schema any }{code: {Schema: schema}}}
		for _, b := range body {
			o.Body[b] = ""
		}
		all[name] = o
	}
	of := func(name string) any { return all[name].Responses["200"].Schema }
	note := of("GET /projects/{id}/merge_requests/{noteable_id}/notes/{note_id}")
	discussion := map[string]any{"id": "string", "individual_note": "boolean", "notes": []any{note}}
	const discussions = "/projects/{id}/merge_requests/{merge_request_iid}/discussions"
	add("GET /users", "200", []any{of("GET /users/{id}")})
	add("GET "+discussions, "200", []any{discussion})
	add("POST "+discussions, "201", discussion, "body")
	add("PUT "+discussions+"/{discussion_id}", "200", discussion, "resolved")
	listed := of("GET /projects/{id}/merge_requests/{merge_request_iid}/commits").([]any)
	add("GET /projects/{id}/repository/compare", "200", map[string]any{"commit": listed[0], "commits": listed, "diffs": []any{"object"},
		"compare_timeout": "boolean", "compare_same_ref": "boolean", "web_url": "string"})
	for _, name := range []string{"approve", "unapprove"} {
		add("POST /projects/{id}/merge_requests/{merge_request_iid}/"+name, "201", of("GET /projects/{id}/merge_requests/{merge_request_iid}/approvals"), "sha")
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
	return all
}

// checkShape says what in a value isn't as a schema has it.
func checkShape(at string, schema, value any) []string {
	wrong := []string{fmt.Sprintf("%s is %v, want %v", at, value, schema)}
	switch s := schema.(type) {
	case nil:
		return []string{at + " has no schema"}
	case []any:
		list, ok := value.([]any)
		if value == nil {
			return nil
		}
		if !ok {
			return wrong
		}
		var all []string
		for i, v := range list {
			all = append(all, checkShape(fmt.Sprintf("%s[%d]", at, i), s[0], v)...)
		}
		return all
	case map[string]any:
		object, ok := value.(map[string]any)
		if value == nil {
			return nil
		}
		if !ok {
			return wrong
		}
		var all []string
		for _, name := range sortedKeys(object) {
			if _, known := s[name]; !known {
				all = append(all, at+"."+name+" isn't GitLab's")
				continue
			}
			all = append(all, checkShape(at+"."+name, s[name], object[name])...)
		}
		return all
	}
	ok := false
	switch v := value.(type) {
	case nil:
		ok = true
	case string:
		_, instant := time.Parse(time.RFC3339, v)
		_, hookInstant := time.Parse(hookTime, v)
		_, day := time.Parse(time.DateOnly, v)
		ok = schema == "string" || schema == "any" || schema == "datetime" && (instant == nil || hookInstant == nil || day == nil) || schema == "date" && day == nil
	case bool:
		ok = schema == "boolean" || schema == "any"
	case float64:
		ok = schema == "number" || schema == "any" || schema == "integer" && v == float64(int64(v))
	case map[string]any:
		ok = schema == "object" || schema == "any"
	}
	if !ok {
		return wrong
	}
	return nil
}

// checkExchange says what in a call or its answer isn't as GitLab describes it.
func checkExchange(all map[string]gitlabOperation, x Exchange) []string {
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
	return append(wrong, checkShape(name, schema, answer)...)
}

// TestGitLabShapes makes every call there is and holds what is answered, and what is sent to a
// hook, against GitLab's own description.
func TestGitLabShapes(t *testing.T) {
	w := newGitLabHarness(t, RepoOptions{GitLab: GitLabProject{QueueMerges: true}}, nil)
	w.must(w.SetTeam("acme/sre", "", "grace"))
	w.must(w.Protect("acme/ops/apps", "main", Protection{Approvals: 1, DismissStale: true, MergeRole: Write}))
	p := gitlabTestProject
	ada, bot := "ada", "liftlock"

	me := w.call(bot, "GET", "/user", nil, 200)
	id := fmt.Sprint(int64(me["id"].(float64)))
	w.call(bot, "GET", "/users/"+id, nil, 200)
	w.call(bot, "GET", "/users/999999", nil, 404)
	grace := listOf(w.call(bot, "GET", "/users?username=grace", nil, 200))[0]["id"]
	w.call(bot, "GET", "/personal_access_tokens/self", nil, 200)
	w.call(bot, "GET", "/version", nil, 200)
	w.call(bot, "GET", "/metadata", nil, 200)
	w.call(bot, "GET", "/groups/acme%2Fsre", nil, 200)
	w.call(bot, "GET", fmt.Sprintf("/groups/acme%%2Fsre/members/all/%v", grace), nil, 200)
	w.call(bot, "GET", p, nil, 200)
	w.call(bot, "GET", p+"/members/all/"+id, nil, 200)
	w.call(ada, "GET", p+"/protected_branches/main", nil, 200)

	flags := map[string]any{"url": w.receiver.URL, "token": "s3cret", "signing_token": "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=", "push_events": true, "tag_push_events": true,
		"merge_requests_events": true, "note_events": true, "confidential_note_events": true, "pipeline_events": true, "emoji_events": true, "enable_ssl_verification": false}
	hook := fmt.Sprintf("%s/hooks/%v", p, w.call(ada, "POST", p+"/hooks", flags, 201)["id"])
	w.call(ada, "GET", p+"/hooks", nil, 200)
	w.call(ada, "GET", hook, nil, 200)
	w.call(ada, "PUT", hook, map[string]any{"push_events_branch_filter": "*"}, 200)

	mr := w.open("topic", map[string]any{"labels": "liftlock,env/qa", "description": "B", "reviewer_ids": []any{grace}, "remove_source_branch": true, "squash": true})
	head := fmt.Sprint(w.call(bot, "GET", mr, nil, 200)["sha"])
	w.call(bot, "GET", p+"/merge_requests?state=opened&source_branch=topic&order_by=updated_at&sort=asc&scope=all&updated_after=2020-01-01T00:00:00Z", nil, 200)
	w.call(bot, "GET", p+"/merge_requests?with_labels_details=true&with_merge_status_recheck=true", nil, 200)
	w.call(bot, "PUT", mr, map[string]any{"title": "Draft: T", "description": "C", "add_labels": "two words", "remove_labels": "env/qa"}, 200)
	w.call(bot, "PUT", mr, map[string]any{"title": "T", "reviewer_ids": []any{}}, 200)
	for _, sub := range []string{"/versions", "/commits", "/reviewers", "/approvals", "/approval_state"} {
		w.call(bot, "GET", mr+sub, nil, 200)
	}
	w.call("grace", "POST", mr+"/approve", map[string]any{"sha": head}, 201)
	w.call("grace", "POST", mr+"/unapprove", nil, 201)
	w.call("grace", "POST", mr+"/approve", nil, 201)
	w.call(bot, "GET", mr+"/approvals", nil, 200)
	w.call(bot, "GET", mr+"/approval_state", nil, 200)

	note := fmt.Sprintf("%s/notes/%v", mr, w.call("grace", "POST", mr+"/notes", map[string]any{"body": "/liftlock status"}, 201)["id"])
	w.call(bot, "POST", mr+"/notes", map[string]any{"body": "/label ~hold"}, 202)
	w.call(ada, "POST", mr+"/notes", map[string]any{"body": "between us", "internal": true}, 201)
	w.call(bot, "GET", mr+"/notes?order_by=updated_at&sort=desc&activity_filter=only_comments", nil, 200)
	w.call(bot, "GET", mr+"/notes", nil, 200)
	w.call(bot, "GET", note, nil, 200)
	w.call("grace", "PUT", note, map[string]any{"body": "changed"}, 200)
	award := fmt.Sprintf("%s/award_emoji/%v", note, w.call(bot, "POST", note+"/award_emoji", map[string]any{"name": "eyes"}, 201)["id"])
	w.call(bot, "GET", note+"/award_emoji", nil, 200)
	w.call(bot, "DELETE", award, nil, 204)
	w.call("grace", "DELETE", note, nil, 204)
	thread := w.call("grace", "POST", mr+"/discussions", map[string]any{"body": "why?"}, 201)["id"]
	w.call(bot, "GET", mr+"/discussions", nil, 200)
	w.call("grace", "PUT", fmt.Sprintf("%s/discussions/%v", mr, thread), map[string]any{"resolved": true}, 200)

	w.call(bot, "POST", p+"/statuses/"+head, map[string]any{"state": "pending", "name": "liftlock", "ref": "topic", "description": "D", "target_url": "https://x.example"}, 201)
	w.call(bot, "PUT", mr+"/merge", map[string]any{"sha": head, "auto_merge": true}, 200)
	w.call(bot, "POST", mr+"/cancel_merge_when_pipeline_succeeds", nil, 201)
	w.call(bot, "POST", p+"/statuses/"+head, map[string]any{"state": "success", "name": "liftlock", "ref": "topic"}, 201)
	w.call(bot, "GET", p+"/repository/commits/"+head+"/statuses?all=true&ref=topic", nil, 200)
	w.call(bot, "GET", p+"/repository/commits/"+head, nil, 200)
	w.call(bot, "GET", p+"/repository/compare?from=main&to="+head, nil, 200)
	w.call(bot, "GET", p+"/repository/branches/topic", nil, 200)

	w.call(bot, "PUT", mr+"/merge", map[string]any{"sha": head, "merge_commit_message": "M", "squash": true, "squash_commit_message": "S", "should_remove_source_branch": true}, 200)
	w.call(bot, "GET", p+"/repository/commits/"+head+"/merge_requests", nil, 200)
	w.call(bot, "GET", mr, nil, 200)

	second := w.open("second", nil)
	_, err := w.CommitAs("acme/ops/apps", "ada", "main", "move on", map[string]string{"moved.yaml": "1\n"})
	w.must(err)
	w.call(bot, "PUT", second+"/rebase", nil, 202)
	w.call("grace", "POST", second+"/approve", nil, 201)
	car := p + "/merge_trains/merge_requests/" + second[strings.LastIndex(second, "/")+1:]
	w.call(bot, "POST", car, map[string]any{"squash": false}, 201)
	w.call(bot, "GET", car, nil, 200)
	w.call(bot, "GET", p+"/merge_trains?scope=active&sort=asc", nil, 200)
	w.call(bot, "GET", p+"/merge_trains/main", nil, 200)
	w.must(w.RunMergeQueue("acme/ops/apps", "ada"))
	w.call(bot, "DELETE", p+"/repository/branches/second", nil, 204)

	w.call(ada, "POST", hook+"/test/push_events", nil, 201)
	hooked := w.hooksSoFar()
	events := listOf(w.call(ada, "GET", hook+"/events?status=successful&per_page=5", nil, 200))
	w.call(ada, "POST", fmt.Sprintf("%s/events/%v/resend", hook, events[0]["id"]), nil, 201)
	w.call(ada, "DELETE", hook, nil, 204)

	all := readOperations(t)
	seen := map[string]bool{}
	for _, x := range w.exchanges {
		seen[x.Method+" "+x.Route] = true
		for _, wrong := range checkExchange(all, x) {
			t.Error(wrong)
		}
	}
	for _, r := range gitlabRoutes {
		if !seen[r.pattern] {
			t.Errorf("%s was never called", r.pattern)
		}
	}
	checkHookShapes(t, hooked)
}

func checkHookShapes(t *testing.T, hooked []receivedHook) {
	t.Helper()
	raw, err := os.ReadFile("testdata/gitlab/webhooks.json")
	if err != nil {
		t.Fatal(err)
	}
	var events map[string]struct {
		Name   string `json:"x_gitlab_event"`
		Fields any
	}
	if err := json.Unmarshal(raw, &events); err != nil {
		t.Fatal(err)
	}
	// The payloads that the description is of changed neither; GitLab names whatever changed.
	changes := events["merge_request"].Fields.(map[string]any)["changes"].(map[string]any)
	for _, name := range []string{"title", "description"} {
		changes[name] = map[string]any{"previous": "string", "current": "string"}
	}
	seen := map[string]bool{}
	for _, h := range hooked {
		name := strings.Replace(h.header.Get("X-Gitlab-Event"), confidentialNoteHook, noteHook, 1)
		for _, e := range events {
			if e.Name != name {
				continue
			}
			seen[name] = true
			var payload any
			if err := json.Unmarshal(h.body, &payload); err != nil {
				t.Fatal(err)
			}
			for _, wrong := range checkShape(name, e.Fields, payload) {
				t.Error(wrong)
			}
		}
	}
	for _, name := range []string{pushHook, mergeRequestHook, noteHook, pipelineHook, emojiHook} {
		if !seen[name] {
			t.Errorf("no %s was sent", name)
		}
	}
}
