package emulator

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/world/emulator/apishape"
	"github.com/liftlock/liftlock/internal/world/emulator/gitlabshape"
)

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
	w.call(bot, "GET", "/groups/acme%2Fsre/members/all", nil, 200)
	w.call(bot, "GET", p, nil, 200)
	w.call(bot, "GET", p+"/members/all/"+id, nil, 200)
	w.call(ada, "GET", p+"/protected_branches/main", nil, 200)
	w.must(w.GuardBranches("acme/ops/apps", "liftlock/**/*", "liftlock"))
	w.call(ada, "GET", p+"/protected_branches", nil, 200)

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
	w.call(bot, "GET", p+"/approvals", nil, 200)
	w.call(bot, "GET", p+"/events?action=pushed&sort=desc&per_page=5", nil, 200)

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

	all, err := gitlabshape.Describe(gitlabshape.Newest)
	w.must(err)
	seen := map[string]bool{}
	for _, x := range w.exchanges {
		seen[x.Method+" "+x.Route] = true
		for _, wrong := range gitlabshape.Check(all, apishape.Call(x)) {
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
	events, err := gitlabshape.Hooks()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, h := range hooked {
		name := strings.Replace(h.header.Get("X-Gitlab-Event"), confidentialNoteHook, noteHook, 1)
		for _, e := range events {
			if e.Event != name {
				continue
			}
			seen[name] = true
			var payload any
			if err := json.Unmarshal(h.body, &payload); err != nil {
				t.Fatal(err)
			}
			for _, wrong := range e.Check(payload) {
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
