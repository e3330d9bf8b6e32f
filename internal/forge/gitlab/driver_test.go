package gitlab

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/rest"
)

// TestProjectsByNumber looks a project up once, by its whole path, and anew where its number
// is gone.
func TestProjectsByNumber(t *testing.T) {
	r, d := newReplayServer(t)
	r.on("GET merge_requests/7", okResponse(mergeRequestJSON(nil)))
	for range 2 {
		if _, err := d.PullRequest(ctx, testRepoName, 7); err != nil {
			t.Fatal(err)
		}
	}
	if got := r.calls("GET projects/acme%2Fplatform%2Ffleet?"); len(got) != 1 {
		t.Errorf("looked up %d times", len(got))
	}
	r.on("GET merge_requests/7", errorResponse(404, "404 Project Not Found"))
	r.on("GET projects/acme%2Fplatform%2Ffleet", okResponse(jsonObject{"id": 8}))
	if _, err := d.PullRequest(ctx, testRepoName, 7); !errors.Is(err, forge.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	r.on("GET projects/8/merge_requests/7", okResponse(mergeRequestJSON(nil)))
	if _, err := d.PullRequest(ctx, testRepoName, 7); err != nil {
		t.Errorf("the project that has its path now: %v", err)
	}
}

func TestPages(t *testing.T) {
	r, d := newReplayServer(t)
	page := func(next string, numbers ...int) response {
		var list []jsonObject
		for _, n := range numbers {
			list = append(list, mergeRequestJSON(jsonObject{"iid": n}))
		}
		answer := okResponse(list)
		answer.header = map[string]string{"x-next-page": next}
		return answer
	}
	r.on("GET merge_requests", page("2", 9, 8), page("3", 8, 7), page("", 6))
	list, err := d.PullRequests(ctx, testRepoName, time.Date(2026, 3, 2, 10, 0, 0, 5, time.UTC))
	if err != nil || len(list) != 4 {
		t.Fatalf("got %+v, %v", list, err)
	}
	if first := r.calls("GET merge_requests?")[0]; !strings.Contains(first, "updated_after=2026-03-02T10%3A00%3A00Z") || !strings.Contains(first, "per_page=100") {
		t.Errorf("asked %s", first)
	}
	for i := 1; i <= maxPages+1; i++ {
		r.responses["GET merge_requests/7/commits"] = append(r.responses["GET merge_requests/7/commits"], response{200, map[string]string{"x-next-page": fmt.Sprint(i + 1)}, `[{"id":"` + head1 + `"}]`})
	}
	_, err = d.PullRequestAuthors(ctx, testRepoName, &forge.PullRequest{Number: 7})
	if !errors.Is(err, forge.ErrTooMany) {
		t.Errorf("a list without an end: %v", err)
	}
}

func TestStatusesThatStay(t *testing.T) {
	r, d := newReplayServer(t)
	r.on("POST statuses/"+head1, errorResponse(400, `Cannot transition status via :enqueue from :pending (Reason(s): Status cannot transition via "enqueue")`))
	if err := d.SetStatus(ctx, testRepoName, head1, forge.Status{Context: "liftlock", State: forge.StatusPending}); err != nil {
		t.Errorf("set to what it is: %v", err)
	}
	r.on("POST statuses/"+head1, errorResponse(400, "name is too long"))
	if err := d.SetStatus(ctx, testRepoName, head1, forge.Status{Context: "liftlock", State: forge.StatusPending}); !errors.Is(err, forge.ErrInvalid) {
		t.Errorf("refused: %v", err)
	}
}

// TestStatusInPipeline sets a status in the pipeline that goes for the merge request, once, and sees
// the jobs of merged results, whose commit is another than the head.
func TestStatusInPipeline(t *testing.T) {
	status := forge.Status{Context: "liftlock", State: forge.StatusPending}
	r, d := newReplayServer(t)
	set := func(pipeline int64, commit, body string, answer response) {
		t.Helper()
		r.on("POST statuses/"+commit, answer)
		before := len(r.calls("POST statuses/"))
		status.Pipeline = pipeline
		if err := d.SetStatus(ctx, testRepoName, head1, status); err != nil {
			t.Errorf("in pipeline %d: %v", pipeline, err)
		}
		sent := r.calls("POST statuses/")[before:]
		if body == "" && len(sent) > 0 || body != "" && (len(sent) != 1 || !strings.HasPrefix(sent[0], "POST statuses/"+commit+"?") || !strings.Contains(sent[0], body)) {
			t.Errorf("in pipeline %d: sent %q, want %s", pipeline, sent, body)
		}
	}
	read := func(pipeline int64, sha string) {
		t.Helper()
		r.on("GET merge_requests/7", okResponse(mergeRequestJSON(jsonObject{"head_pipeline": jsonObject{"id": pipeline, "sha": sha}})))
		if pr, err := d.PullRequest(ctx, testRepoName, 7); err != nil || pr.Pipeline != pipeline {
			t.Errorf("read %+v, %v", pr, err)
		}
	}
	set(0, head1, `"description":""}`, response{201, nil, `{"pipeline_id":31}`}) // an external one was made
	read(31, head1)
	set(31, head1, "", response{500, nil, ""})                                   // it is there already
	read(32, head1)                                                              // somebody has started another
	set(32, head1, `"pipeline_id":32`, response{201, nil, `{"pipeline_id":32}`}) //
	set(32, head1, "", response{500, nil, ""})                                   // once
	read(33, land1)                                                              // of merged results
	set(33, land1, `"pipeline_id":33`, response{201, nil, `{"pipeline_id":33}`}) //
	status.State = forge.StatusSuccess
	set(33, land1, `"state":"success"`, response{201, nil, `{"pipeline_id":33}`})
	read(34, head1)
	set(34, head1, `"pipeline_id":34`, errorResponse(400, `Cannot transition status via :enqueue from :pending`))
	set(34, head1, "", response{500, nil, ""})

	read(35, land1)
	job := func(id int, name string) jsonObject { return jsonObject{"id": id, "name": name, "status": "success"} }
	r.on("GET repository/commits/"+head1+"/statuses", okResponse([]jsonObject{job(1, "liftlock")}))
	r.on("GET repository/commits/"+land1+"/statuses", okResponse([]jsonObject{job(2, "test")}))
	if got, err := d.Checks(ctx, testRepoName, head1); err != nil || len(got) != 2 || got[0].Name != "liftlock" || got[1].Name != "test" {
		t.Errorf("checks %+v, %v", got, err)
	}
	if got, err := d.Statuses(ctx, testRepoName, head1); err != nil || len(got) != 2 {
		t.Errorf("statuses %+v, %v", got, err)
	}
}

// TestStatusInDeletedPipeline sets a status anywhere when the pipeline isn't there any more.
func TestStatusInDeletedPipeline(t *testing.T) {
	r, d := newReplayServer(t)
	r.on("POST statuses/"+head1, errorResponse(404, "404 Pipeline Not Found"), response{201, nil, `{"pipeline_id":40}`})
	if err := d.SetStatus(ctx, testRepoName, head1, forge.Status{Context: "liftlock", State: forge.StatusPending, Pipeline: 39}); err != nil {
		t.Error(err)
	}
	if sent := r.calls("POST statuses/"); len(sent) != 2 || !strings.Contains(sent[0], `"pipeline_id":39`) || strings.Contains(sent[1], "pipeline_id") {
		t.Errorf("sent %q", sent)
	}
}

func TestChecks(t *testing.T) {
	r, d := newReplayServer(t)
	ci := jsonObject{"id": 5, "username": "ci"}
	for state, want := range map[string]forge.CheckState{
		"success": forge.CheckPassed, "failed": forge.CheckFailed, "canceled": forge.CheckFailed, "skipped": forge.CheckSkipped,
		"pending": forge.CheckPending, "running": forge.CheckPending, "created": forge.CheckPending, "manual": forge.CheckPending,
		"scheduled": forge.CheckPending, "a_word_of_tomorrow": forge.CheckFailed,
	} {
		r.on("GET repository/commits/"+head1+"/statuses", okResponse([]jsonObject{
			{"id": 1, "name": "test", "status": "success", "author": ci}, {"id": 2, "name": "test", "status": state, "author": ci},
		}))
		got, err := d.Checks(ctx, testRepoName, head1)
		if err != nil || len(got) != 1 || got[0] != (forge.Check{Name: "test", App: "ci", State: want, Word: state}) {
			t.Errorf("%s: %+v, %v", state, got, err)
		}
	}
}

// TestDisabledHook is enabled by a test.
func TestDisabledHook(t *testing.T) {
	h := forge.Hook{URL: "https://liftlock.example.com/webhooks/hub", Secret: "s3cret"}
	shown := jsonObject{"id": 4, "url": h.URL, "description": rest.Fingerprint(h.Secret), "enable_ssl_verification": true, "token_present": true, "alert_status": "executable"}
	for _, e := range DefaultEvents {
		shown[e] = true
	}
	r, d := newReplayServer(t)
	ensure := func(what string, wantChanged bool, kind error) {
		t.Helper()
		r.on("GET hooks", okResponse([]jsonObject{shown}))
		if changed, err := d.EnsureHook(ctx, testRepoName, h); changed != wantChanged || !errors.Is(err, kind) {
			t.Errorf("%s: changed %v, %v", what, changed, err)
		}
	}
	ensure("in order", false, nil)
	r.on("POST hooks/4/test/push_events", response{201, nil, `{"message":"201 Created"}`})
	for _, status := range []string{"temporarily_disabled", "disabled"} {
		shown["alert_status"] = status
		ensure(status, true, nil)
	}
	r.on("POST hooks/4/test/push_events", errorResponse(422, "Hook executed successfully but returned HTTP 502"))
	ensure("disabled, and the receiver is down", false, forge.ErrInvalid)
	shown["alert_status"], shown["token_present"] = "executable", false
	r.on("PUT hooks/4", okResponse(shown))
	ensure("without a token", true, nil)
	if sent := r.calls("PUT hooks/4"); len(sent) != 1 || !strings.Contains(sent[0], `"token":"s3cret"`) {
		t.Errorf("sent %s", sent)
	}
}

// TestDescriptionThatIsNotKept holds that a hook whose secret can't be known again is written at
// every look, without counting as changed. A hook that had another secret has changed.
func TestDescriptionThatIsNotKept(t *testing.T) {
	h := forge.Hook{URL: "https://liftlock.example.com/webhooks/hub", Secret: "s3cret"}
	mark := rest.Fingerprint(h.Secret)
	for _, c := range []struct {
		name          string
		before, after any // the description
		noteEvents    bool
		want          bool
	}{
		{"no description is kept", nil, nil, true, false},
		{"nor is another one changed", "ours", "ours", true, false},
		{"none is kept, and an event was missing", nil, nil, false, true},
		{"another secret", rest.Fingerprint("old"), mark, true, true},
		{"another secret, and an event was missing", rest.Fingerprint("old"), mark, false, true},
	} {
		shown := func(description any) jsonObject {
			o := jsonObject{"id": 4, "url": h.URL, "description": description, "enable_ssl_verification": true}
			for _, e := range DefaultEvents {
				o[e] = true
			}
			return o
		}
		before := shown(c.before)
		before[noteEvents] = c.noteEvents
		r, d := newReplayServer(t)
		r.on("GET hooks", okResponse([]jsonObject{before}))
		r.on("PUT hooks/4", okResponse(shown(c.after)))
		for range 2 {
			if changed, err := d.EnsureHook(ctx, testRepoName, h); err != nil || changed != c.want {
				t.Errorf("%s: changed %t, %v", c.name, changed, err)
			}
		}
		if n := len(r.calls("PUT hooks/4")); n != 2 {
			t.Errorf("%s: it was written %d times at two looks", c.name, n)
		}
	}
}

// TestReviewersThatStay keeps those that a merge request has, and says who was left out.
func TestReviewersThatStay(t *testing.T) {
	r, d := newReplayServer(t)
	ada, grace := jsonObject{"id": 1, "username": "ada"}, jsonObject{"id": 2, "username": "grace"}
	r.on("GET merge_requests/7", okResponse(mergeRequestJSON(jsonObject{"reviewers": []jsonObject{ada}})))
	r.on("GET users", okResponse([]jsonObject{grace}))
	r.on("PUT merge_requests/7", okResponse(mergeRequestJSON(jsonObject{"reviewers": []jsonObject{ada}}))) // the free edition has one
	refused, err := d.RequestReviewers(ctx, testRepoName, 7, forge.Reviewers{Users: []string{"grace"}, Teams: []forge.Team{{Organisation: "acme", Name: "sre"}}})
	if err != nil || len(refused) != 2 || refused[0].Name != "acme/sre" || refused[1].Name != "grace" {
		t.Errorf("refused are %+v, %v", refused, err)
	}
	if sent := r.calls("PUT merge_requests/7"); len(sent) != 1 || !strings.Contains(sent[0], `{"reviewer_ids":[1,2]}`) {
		t.Errorf("sent %s", sent)
	}
}

func TestNotesThatCount(t *testing.T) {
	r, d := newReplayServer(t)
	ada := jsonObject{"id": 1, "username": "ada"}
	noteJSON := func(id int, change jsonObject) jsonObject {
		o := jsonObject{"id": id, "body": "b", "author": ada, "created_at": "2026-03-02T09:00:00.5Z", "updated_at": "2026-03-02T09:00:00.5Z"}
		for k, v := range change {
			o[k] = v
		}
		return o
	}
	r.on("GET merge_requests/7/notes", okResponse([]jsonObject{
		noteJSON(5, jsonObject{"body": `\/close`}), noteJSON(4, jsonObject{"system": true}), noteJSON(3, jsonObject{"internal": true}),
		noteJSON(2, nil), noteJSON(1, jsonObject{"updated_at": "2026-03-02T08:00:00Z"}),
	}))
	list, err := d.Comments(ctx, testRepoName, 7, time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC))
	if err != nil || len(list) != 2 || list[0].ID != 2 || list[1].ID != 5 || list[1].Body != "/close" || !strings.HasSuffix(list[0].URL, "/git/acme/platform/fleet/-/merge_requests/7#note_2") {
		t.Errorf("got %+v, %v", list, err)
	}
	r.on("POST merge_requests/7/notes", response{202, nil, `{"commands_changes":{},"summary":["Closed this merge request."]}`})
	if _, err := d.CreateComment(ctx, testRepoName, 7, "x"); !errors.Is(err, forge.ErrInvalid) {
		t.Errorf("nothing but commands: %v", err)
	}
}

func TestTokenExpiry(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer response
		want   time.Time
		kind   error
	}{
		{"a day", okResponse(jsonObject{"expires_at": "2026-12-01", "scopes": []string{"api"}}), time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC), nil},
		{"a time", okResponse(jsonObject{"expires_at": "2026-12-01T10:00:00Z"}), time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC), nil},
		{"for ever", okResponse(jsonObject{"expires_at": nil}), time.Time{}, nil},
		{"an old GitLab", errorResponse(404, "404 Not Found"), time.Time{}, nil},
		{"another kind of token", errorResponse(403, "403 Forbidden"), time.Time{}, nil},
		{"it has ended", errorResponse(401, "401 Unauthorized"), time.Time{}, forge.ErrUnauthorized},
		{"nobody knows when", okResponse(jsonObject{"expires_at": "soon"}), time.Time{}, forge.ErrInvalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, d := newReplayServer(t)
			r.on("GET personal_access_tokens/self", c.answer)
			if got, err := d.TokenExpiry(ctx); !got.Equal(c.want) || !errors.Is(err, c.kind) {
				t.Errorf("got %v, %v; want %v, %v", got, err, c.want, c.kind)
			}
		})
	}
}

// TestSigningToken writes a secret that signs where it signs: sent as a token it would be no
// secret any more, and is refused by the receiver.
func TestSigningToken(t *testing.T) {
	h := forge.Hook{URL: "https://liftlock.example.com/webhooks/hub", Secret: "whsec_MDEyMzQ1Njc4OWFiY2RlZg=="}
	r, d := newReplayServer(t)
	r.on("GET hooks", okResponse([]jsonObject{}))
	r.on("POST hooks", response{201, nil, `{"id":4}`})
	if changed, err := d.EnsureHook(ctx, testRepoName, h); !errors.Is(err, forge.ErrInvalid) || changed || !strings.Contains(err.Error(), "19.0") {
		t.Fatalf("a GitLab that doesn't sign: changed %v, %v", changed, err)
	}
	r, d = newReplayServer(t)
	r.on("GET hooks", okResponse([]jsonObject{}))
	r.on("POST hooks", response{201, nil, `{"id":4,"signing_token_present":true}`})
	if changed, err := d.EnsureHook(ctx, testRepoName, h); err != nil || !changed {
		t.Fatalf("changed %v, %v", changed, err)
	}
	if sent := r.calls("POST hooks"); len(sent) != 1 || !strings.Contains(sent[0], `"signing_token":"whsec_`) || strings.Contains(sent[0], `"token"`) {
		t.Errorf("sent %s", sent)
	}
	shown := jsonObject{"id": 4, "url": h.URL, "description": rest.Fingerprint(h.Secret), "enable_ssl_verification": true, "token_present": false, "signing_token_present": true}
	for _, e := range DefaultEvents {
		shown[e] = true
	}
	r.on("GET hooks", okResponse([]jsonObject{shown}))
	if changed, err := d.EnsureHook(ctx, testRepoName, h); err != nil || changed {
		t.Errorf("in order: changed %v, %v", changed, err)
	}
}
