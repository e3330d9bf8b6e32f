package emulator

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

const gitlabTestRepo = "acme/ops/apps"

func TestGitLabRefusals(t *testing.T) {
	w := newGitLabHarness(t, RepoOptions{}, nil)
	w.must(w.AddUser("old", "old-token", UserOptions{TokenExpires: w.clock()}))
	w.must(w.AddUser("reading", "reading-token", UserOptions{Scopes: []string{"read_api"}}))
	w.must(w.Grant(gitlabTestRepo, "reading", Admin))
	mr := w.open("topic", nil)
	w.branch("second")
	mrs := gitlabTestProject + "/merge_requests"
	create := func(more ...any) map[string]any {
		body := map[string]any{"source_branch": "second", "target_branch": "main", "title": "T"}
		for i := 0; i < len(more); i += 2 {
			body[more[i].(string)] = more[i+1]
		}
		return body
	}
	for _, c := range []struct {
		name, login, method, path string
		body                      map[string]any
		want                      int
		words                     string
	}{
		{"a token that isn't", "nobody", "GET", "/user", nil, 401, "401 Unauthorized"},
		{"a token that came to its end", "old", "GET", "/user", nil, 401, "Token is expired"},
		{"a token that may only read", "reading", "PUT", mr, map[string]any{"title": "x"}, 403, "insufficient_scope"},
		{"a path that isn't", "ada", "GET", "/projects/acme%2Fops%2Fapps/nothing", nil, 404, "Not Found"},
		{"the API without its prefix of the path", "ada", "GET", "/projects/acme/ops/apps", nil, 404, "Not Found"},
		{"a project that somebody may not see", "mallory", "GET", gitlabTestProject, nil, 404, "404 Project Not Found"},
		{"hooks for a developer", "grace", "GET", gitlabTestProject + "/hooks", nil, 403, "403 Forbidden"},
		{"a merge request that isn't", "ada", "GET", mrs + "/99", nil, 404, "404 Not Found"},
		{"no title", "liftlock", "POST", mrs, map[string]any{"source_branch": "second", "target_branch": "main"}, 400, "title is missing"},
		{"a second one from the same branch", "liftlock", "POST", mrs, create("source_branch", "topic"), 409, "Another open merge request already exists for this source branch: !1"},
		{"from a branch into itself", "liftlock", "POST", mrs, create("target_branch", "second"), 422, "same project/branch"},
		{"from a branch that isn't", "liftlock", "POST", mrs, create("source_branch", "nowhere"), 422, "does not exist"},
		{"opened by who may only read", "linus", "POST", mrs, create(), 403, "403 Forbidden"},
		{"a title that is too long", "liftlock", "POST", mrs, create("title", strings.Repeat("x", 256)), 400, "too long"},
		{"an update of nothing", "liftlock", "PUT", mr, map[string]any{}, 400, "at least one parameter"},
		{"an event of a state that isn't", "liftlock", "PUT", mr, map[string]any{"state_event": "merge"}, 400, "state_event does not have a valid value"},
		{"a state that isn't", "liftlock", "GET", mrs + "?state=open", nil, 400, "state does not have a valid value"},
		{"merged by who may only read", "linus", "PUT", mr + "/merge", nil, 401, "401 Unauthorized"},
		{"merged with another head", "liftlock", "PUT", mr + "/merge", map[string]any{"sha": strings.Repeat("1", 40)}, 409, "SHA does not match HEAD of source branch: "},
		{"merged with a short head", "liftlock", "PUT", mr + "/merge", map[string]any{"sha": w.call("ada", "GET", mr, nil, 200)["sha"].(string)[:8]}, 409, "SHA does not match"},
		{"approved with another head", "grace", "POST", mr + "/approve", map[string]any{"sha": strings.Repeat("1", 40)}, 409, "SHA does not match"},
		{"approved by its author", "liftlock", "POST", mr + "/approve", nil, 401, "401 Unauthorized"},
		{"a blank note", "ada", "POST", mr + "/notes", map[string]any{"body": " "}, 400, "can't be blank"},
		{"a status of a commit that isn't", "liftlock", "POST", gitlabTestProject + "/statuses/" + strings.Repeat("1", 40), map[string]any{"state": "success"}, 404, "404 Commit Not Found"},
		{"a status without a state", "liftlock", "POST", gitlabTestProject + "/statuses/main", map[string]any{"name": "x"}, 400, "state"},
		{"a branch without protection", "ada", "GET", gitlabTestProject + "/protected_branches/main", nil, 404, "404 Not Found"},
		{"the default branch deleted", "ada", "DELETE", gitlabTestProject + "/repository/branches/main", nil, 403, "403 Forbidden"},
		{"merge trains that are off", "ada", "GET", gitlabTestProject + "/merge_trains", nil, 403, "403 Forbidden"},
		{"a hook that isn't", "ada", "GET", gitlabTestProject + "/hooks/1", nil, 404, "404 Not Found"},
	} {
		t.Run(c.name, func(t *testing.T) {
			res, raw := w.send(c.login, c.method, c.path, c.body)
			if res.StatusCode != c.want || !strings.Contains(string(raw), c.words) {
				t.Errorf("answered %d %s, want %d with %q", res.StatusCode, raw, c.want, c.words)
			}
		})
	}
}

// TestGitLabMerges merges in each way that a project can have, with and without squashing.
func TestGitLabMerges(t *testing.T) {
	for _, c := range []struct {
		method, option        string
		squash                bool
		mergeCommit, squashed bool
		parents               int
	}{
		{"merge", "default_off", false, true, false, 2},
		{"merge", "default_on", true, true, true, 2},
		{"merge", "never", true, true, false, 2},
		{"merge", "always", false, true, true, 2},
		{"rebase_merge", "default_off", false, true, false, 2},
		{"rebase_merge", "default_off", true, true, true, 2},
		{"ff", "default_off", false, false, false, 1},
		{"ff", "always", false, false, true, 1},
	} {
		t.Run(fmt.Sprintf("%s, squash %s, wished %v", c.method, c.option, c.squash), func(t *testing.T) {
			w := newGitLabHarness(t, RepoOptions{GitLab: GitLabProject{MergeMethod: c.method, Squash: c.option}}, nil)
			mr := w.open("topic", nil)
			done := w.call("liftlock", "PUT", mr+"/merge", map[string]any{"squash": c.squash, "merge_commit_message": "M\n\nLiftlock-Kind: x", "squash_commit_message": "S"}, 200)
			tip, err := w.Head(gitlabTestRepo, "main")
			w.must(err)
			if done["state"] != "merged" || (done["merge_commit_sha"] != nil) != c.mergeCommit || (done["squash_commit_sha"] != nil) != c.squashed {
				t.Fatalf("answered %v", done)
			}
			landed := done["sha"]
			if c.squashed {
				landed = done["squash_commit_sha"]
			}
			if c.mergeCommit {
				landed = done["merge_commit_sha"]
			}
			commit := w.call("ada", "GET", gitlabTestProject+"/repository/commits/"+tip, nil, 200)
			if landed != tip || len(commit["parent_ids"].([]any)) != c.parents {
				t.Errorf("landed %v with %v, main is at %s", landed, commit["parent_ids"], tip)
			}
			if c.mergeCommit && !strings.HasPrefix(commit["message"].(string), "M\n\nLiftlock-Kind: x") {
				t.Errorf("its message is %q", commit["message"])
			}
			of := listOf(w.call("ada", "GET", gitlabTestProject+"/repository/commits/"+tip+"/merge_requests", nil, 200))
			if len(of) != 1 || of[0]["merge_user"].(map[string]any)["username"] != "liftlock" {
				t.Errorf("the commit is of %v", of)
			}
			w.call("liftlock", "PUT", mr+"/merge", nil, 405) // a second time
		})
	}
}

// TestGitLabMergeStatus tells detailed_merge_status of what blocks, one thing at a time.
func TestGitLabMergeStatus(t *testing.T) {
	type change func(w *gitlabHarness, mr string)
	moveMain := func(w *gitlabHarness, _ string) {
		_, err := w.CommitAs(gitlabTestRepo, "ada", "main", "move on", map[string]string{"moved.yaml": "1\n"})
		w.must(err)
	}
	conflict := func(w *gitlabHarness, _ string) {
		_, err := w.CommitAs(gitlabTestRepo, "ada", "main", "clash", map[string]string{"topic.yaml": "another\n"})
		w.must(err)
	}
	setStatus := func(state string) change {
		return func(w *gitlabHarness, mr string) {
			w.call("liftlock", "POST", fmt.Sprintf("%s/statuses/%v", gitlabTestProject, w.call("ada", "GET", mr, nil, 200)["sha"]), map[string]any{"state": state, "ref": "topic", "name": "ci"}, 201)
		}
	}
	for _, c := range []struct {
		name    string
		project GitLabProject
		need    Protection
		do      []change
		want    string
		merge   int // the answer to merging
	}{
		{"nothing", GitLabProject{}, Protection{}, nil, "mergeable", 200},
		{"behind, with merge commits", GitLabProject{}, Protection{}, []change{moveMain}, "mergeable", 200},
		{"behind, fast-forward", GitLabProject{MergeMethod: "ff"}, Protection{}, []change{moveMain}, "need_rebase", 405},
		{"behind, semi-linear", GitLabProject{MergeMethod: "rebase_merge"}, Protection{}, []change{moveMain}, "need_rebase", 405},
		{"a conflict", GitLabProject{}, Protection{}, []change{conflict}, "conflict", 405},
		{"a conflict, fast-forward", GitLabProject{MergeMethod: "ff"}, Protection{}, []change{conflict}, "need_rebase", 405},
		{"a draft", GitLabProject{}, Protection{}, []change{func(w *gitlabHarness, mr string) {
			w.call("liftlock", "PUT", mr, map[string]any{"title": "Draft: T"}, 200)
		}}, "draft_status", 405},
		{"no commits", GitLabProject{}, Protection{}, []change{func(w *gitlabHarness, _ string) {
			tip, err := w.Head(gitlabTestRepo, "main")
			w.must(err)
			w.must(w.SetBranch(gitlabTestRepo, "liftlock", "topic", tip))
		}}, "commits_status", 405},
		{"no approval, which hides a conflict", GitLabProject{}, Protection{Approvals: 1}, []change{conflict}, "not_approved", 405},
		{"no approval, in the free edition", GitLabProject{Free: true}, Protection{Approvals: 1}, nil, "mergeable", 200},
		{"changes requested", GitLabProject{}, Protection{}, []change{func(w *gitlabHarness, _ string) {
			w.must(w.RequestChanges(gitlabTestRepo, 1, "grace", "no"))
		}}, "requested_changes", 405},
		{"an open thread", GitLabProject{DiscussionsMustBeResolved: true}, Protection{}, []change{func(w *gitlabHarness, mr string) {
			w.call("grace", "POST", mr+"/discussions", map[string]any{"body": "why?"}, 201)
		}}, "discussions_not_resolved", 405},
		{"no pipeline", GitLabProject{PipelineMustSucceed: true}, Protection{}, nil, "ci_must_pass", 405},
		{"a pipeline that runs", GitLabProject{PipelineMustSucceed: true}, Protection{}, []change{setStatus("pending")}, "ci_still_running", 405},
		{"a pipeline that failed", GitLabProject{PipelineMustSucceed: true}, Protection{}, []change{setStatus("failed")}, "ci_must_pass", 405},
		{"a pipeline that succeeded", GitLabProject{PipelineMustSucceed: true}, Protection{}, []change{setStatus("success")}, "mergeable", 200},
		{"a pipeline that runs and isn't needed", GitLabProject{}, Protection{}, []change{setStatus("running")}, "mergeable", 200},
		{"a merge under way", GitLabProject{}, Protection{}, []change{func(w *gitlabHarness, mr string) {
			w.must(w.HoldMerge(gitlabTestRepo, 1, "ada", true))
			if s := w.call("ada", "GET", mr, nil, 200)["state"]; s != "locked" {
				w.t.Errorf("its state is %v", s)
			}
		}}, "not_open", 405},
		{"closed", GitLabProject{}, Protection{}, []change{func(w *gitlabHarness, mr string) {
			w.call("liftlock", "PUT", mr, map[string]any{"state_event": "close"}, 200)
		}}, "not_open", 405},
		{"its branch is gone", GitLabProject{}, Protection{}, []change{func(w *gitlabHarness, _ string) {
			w.must(w.SetBranch(gitlabTestRepo, "liftlock", "topic", ""))
		}}, "not_open", 405},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newGitLabHarness(t, RepoOptions{GitLab: c.project}, nil)
			w.must(w.Protect(gitlabTestRepo, "main", c.need))
			mr := w.open("topic", nil)
			for _, do := range c.do {
				do(w, mr)
			}
			if got := w.status(mr); got != c.want {
				t.Errorf("it reads %s, want %s", got, c.want)
			}
			w.call("liftlock", "PUT", mr+"/merge", nil, c.merge)
		})
	}
}

func TestGitLabChecksLater(t *testing.T) {
	w := newGitLabHarness(t, RepoOptions{}, nil)
	w.must(w.Protect(gitlabTestRepo, "main", Protection{DismissStale: true}))
	w.branch("topic")
	made := w.call("liftlock", "POST", gitlabTestProject+"/merge_requests", map[string]any{"source_branch": "topic", "target_branch": "main", "title": "T"}, 201)
	mr := fmt.Sprintf("%s/merge_requests/%v", gitlabTestProject, made["iid"])
	read := func() any { return w.call("liftlock", "GET", mr, nil, 200)["detailed_merge_status"] }
	approvals := func() int {
		return len(w.call("liftlock", "GET", mr+"/approvals", nil, 200)["approved_by"].([]any))
	}
	check := func(what string, got, want any) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	check("created", made["detailed_merge_status"], "checking")
	check("read", read(), "mergeable")
	w.must(w.Approve(gitlabTestRepo, 1, "grace"))
	_, err := w.CommitAs(gitlabTestRepo, "liftlock", "topic", "more", map[string]string{"more.yaml": "1\n"})
	w.must(err)
	check("in a list after a push", listOf(w.call("liftlock", "GET", gitlabTestProject+"/merge_requests", nil, 200))[0]["detailed_merge_status"], "unchecked")
	check("read after a push", read(), "checking")
	check("approvals of the head before", approvals(), 1)
	check("read again", read(), "approvals_syncing")
	check("and again", read(), "mergeable")
	check("approvals", approvals(), 0)
	versions := listOf(w.call("liftlock", "GET", mr+"/versions", nil, 200))
	if len(versions) != 2 || versions[1]["head_commit_sha"] != made["sha"] {
		t.Errorf("its versions are %v", versions)
	}
}

func TestGitLabAutoMerge(t *testing.T) {
	w := newGitLabHarness(t, RepoOptions{GitLab: GitLabProject{PipelineMustSucceed: true}}, nil)
	status := func(branch, state string, want int) {
		t.Helper()
		sha, err := w.Head(gitlabTestRepo, branch)
		w.must(err)
		w.call("grace", "POST", gitlabTestProject+"/statuses/"+sha, map[string]any{"state": state, "ref": branch, "name": "ci"}, want)
	}
	first, second := w.open("first", nil), w.open("second", nil)
	for _, branch := range []string{"first", "second"} {
		status(branch, "pending", 201)
		status(branch, "pending", 400) // the state it is in
		status(branch, "running", 201)
		status(branch, "pending", 400) // backwards
	}
	for _, mr := range []string{first, second} {
		if set := w.call("liftlock", "PUT", mr+"/merge", map[string]any{"auto_merge": true}, 200); set["state"] != "opened" || set["merge_when_pipeline_succeeds"] != true {
			t.Errorf("answered %v", set)
		}
	}
	w.call("liftlock", "POST", second+"/cancel_merge_when_pipeline_succeeds", nil, 201)
	status("first", "success", 201)
	status("second", "success", 201)
	for mr, want := range map[string]string{first: "merged", second: "opened"} {
		if got := w.call("liftlock", "GET", mr, nil, 200)["state"]; got != want {
			t.Errorf("%s is %v, want %s", mr, got, want)
		}
	}
	status("second", "pending", 201) // again, after it had ended
	head, err := w.Head(gitlabTestRepo, "second")
	w.must(err)
	w.call("grace", "POST", gitlabTestProject+"/statuses/"+head, map[string]any{"state": "pending", "ref": "second", "name": "ci", "description": "almost"}, 400)
	if all, err := w.Statuses(gitlabTestRepo, head); err != nil || len(all) != 1 || all[0].Description != "almost" {
		t.Errorf("a step that was refused leaves %+v, %v", all, err)
	}
	w.call("liftlock", "POST", first+"/cancel_merge_when_pipeline_succeeds", nil, 201)
	w.call("liftlock", "PUT", second, map[string]any{"state_event": "close"}, 200)
	w.call("liftlock", "POST", second+"/cancel_merge_when_pipeline_succeeds", nil, 406)
	if again := w.call("liftlock", "PUT", first, map[string]any{"state_event": "reopen"}, 200); again["state"] != "merged" {
		t.Errorf("what was merged is %v", again["state"])
	}
}

func TestGitLabMovedAndArchived(t *testing.T) {
	w := newGitLabHarness(t, RepoOptions{}, func(o *ForgeOptions) { o.Path = "/git" })
	id := w.call("ada", "GET", gitlabTestProject, nil, 200)["id"]
	w.must(w.MoveRepository(gitlabTestRepo, "acme/platform/deploy"))
	res, _ := w.send("ada", "GET", gitlabTestProject+"/merge_requests?state=opened", nil)
	if want := fmt.Sprintf("%s/api/v4/projects/%v/merge_requests?state=opened", w.URL(), id); res.StatusCode != http.StatusMovedPermanently || res.Header.Get("Location") != want {
		t.Errorf("the old path leads with %d to %q, want %q", res.StatusCode, res.Header.Get("Location"), want)
	}
	w.call("ada", "POST", gitlabTestProject+"/hooks", map[string]any{"url": w.receiver.URL}, 405)
	moved := w.call("ada", "GET", fmt.Sprintf("/projects/%v", id), nil, 200)
	if want := w.URL() + "/acme/platform/deploy.git"; moved["http_url_to_repo"] != want || !strings.Contains(want, "/git/acme/") {
		t.Errorf("it is cloned from %v, want %s", moved["http_url_to_repo"], want)
	}
	w.must(w.ArchiveRepository("acme/platform/deploy", true))
	w.call("ada", "POST", fmt.Sprintf("/projects/%v/hooks", id), map[string]any{"url": w.receiver.URL}, 403)
	if archived := w.call("ada", "GET", fmt.Sprintf("/projects/%v", id), nil, 200)["archived"]; archived != true {
		t.Errorf("archived is %v", archived)
	}
}

func TestGitLabPages(t *testing.T) {
	w := newGitLabHarness(t, RepoOptions{}, nil)
	mr := w.open("topic", nil)
	w.Forge.mu.Lock()
	p := w.Forge.repos[gitlabTestRepo].pulls[1]
	for range 10001 {
		w.Forge.addSystemNote(p, p.author, "a note")
	}
	w.Forge.mu.Unlock()
	for _, c := range []struct {
		query                      string
		rows                       int
		next, prev, total, perPage string
		last                       bool
	}{
		{"", 20, "2", "", "", "20", false},
		{"?per_page=1000&page=2", 100, "3", "1", "", "100", false},
		{"?per_page=100&page=101", 1, "", "100", "", "100", false},
		{"?activity_filter=only_comments", 0, "", "", "0", "20", true},
	} {
		t.Run(c.query, func(t *testing.T) {
			res, raw := w.send("ada", "GET", mr+"/notes"+c.query, nil)
			rows := strings.Count(string(raw), `"noteable_iid"`)
			h, link := res.Header, res.Header.Get("Link")
			if rows != c.rows || h.Get("x-next-page") != c.next || h.Get("x-prev-page") != c.prev || h.Get("x-total") != c.total || h.Get("x-per-page") != c.perPage {
				t.Errorf("%d rows, %v", rows, h)
			}
			if strings.Contains(link, `rel="next"`) != (c.next != "") || strings.Contains(link, `rel="last"`) != c.last || !strings.Contains(link, `/api/v4/projects/acme%2Fops%2Fapps/merge_requests/1/notes?`) {
				t.Errorf("links are %s", link)
			}
		})
	}
}

func TestGitLabLimits(t *testing.T) {
	w := newGitLabHarness(t, RepoOptions{}, func(o *ForgeOptions) { o.RateLimit, o.PublicLimits = 100, true })
	mr := w.open("topic", nil)
	for range 60 {
		w.call("liftlock", "POST", mr+"/notes", map[string]any{"body": "hello"}, 201)
	}
	res, _ := w.send("liftlock", "POST", mr+"/notes", map[string]any{"body": "hello"})
	if res.StatusCode != http.StatusTooManyRequests || res.Header.Get("Retry-After") != "" {
		t.Errorf("the limit of one call: %d, %v", res.StatusCode, res.Header)
	}
	w.call("grace", "POST", mr+"/notes", map[string]any{"body": "hello"}, 201) // each has their own
	for range 37 {
		w.call("liftlock", "GET", mr, nil, 200)
	}
	res, _ = w.send("liftlock", "GET", "/user", nil)
	if res.Header.Get("RateLimit-Remaining") != "0" || res.StatusCode != 200 {
		t.Errorf("the last call: %d, %v", res.StatusCode, res.Header)
	}
	res, _ = w.send("liftlock", "GET", "/user", nil)
	reset := fmt.Sprint(w.clock().Add(time.Minute).Unix())
	if res.StatusCode != http.StatusTooManyRequests || res.Header.Get("Retry-After") != "61" || res.Header.Get("RateLimit-Reset") != reset || res.Header.Get("RateLimit-Limit") != "100" {
		t.Errorf("past the limit: %d, %v", res.StatusCode, res.Header)
	}
	w.pass(time.Minute)
	w.call("liftlock", "POST", mr+"/notes", map[string]any{"body": "hello"}, 201)
}

func TestGitLabHookHealth(t *testing.T) {
	w := newGitLabHarness(t, RepoOptions{}, nil)
	hook := fmt.Sprintf("%s/hooks/%v", gitlabTestProject, w.call("ada", "POST", gitlabTestProject+"/hooks", map[string]any{"url": w.receiver.URL, "token": "s3cret"}, 201)["id"])
	n := 0
	push := func() int {
		before := len(w.hooksSoFar())
		n++
		w.branch(fmt.Sprintf("b%d", n))
		return len(w.hooksSoFar()) - before
	}
	health := func() (string, any) {
		h := w.call("ada", "GET", hook, nil, 200)
		return h["alert_status"].(string), h["disabled_until"]
	}
	w.answer = 503
	for i := range 4 {
		if status, _ := health(); status != "executable" || push() != 1 {
			t.Fatalf("before failure %d it is %s", i+1, status)
		}
	}
	for _, d := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute} {
		if status, until := health(); status != "temporarily_disabled" || until != formatGitLabTime(w.clock().Add(d)) || push() != 0 {
			t.Errorf("it is %s until %v at %s", status, until, w.clock())
		}
		w.pass(d)
		if push() != 1 {
			t.Error("it isn't tried again")
		}
	}
	w.call("ada", "POST", hook+"/test/push_events", nil, 422)
	w.mu.Lock()
	w.answer = 0
	w.mu.Unlock()
	w.pass(time.Hour)
	w.call("ada", "POST", hook+"/test/push_events", nil, 201)
	if status, _ := health(); status != "executable" || push() != 1 {
		t.Errorf("after a test it is %s", status)
	}
	for status, want := range map[string]int{"server_failure": 8, "successful": 2, "503": 8, "client_failure": 0} {
		if got := len(listOf(w.call("ada", "GET", hook+"/events?status="+status, nil, 200))); got != want {
			t.Errorf("%d events of %s, want %d", got, status, want)
		}
	}
	w.call("ada", "GET", hook+"/events?per_page=21", nil, 400)
	changed := w.call("ada", "PUT", hook, map[string]any{"url": w.receiver.URL + "/other"}, 200)
	if changed["token_present"] != false {
		t.Error("another address keeps the token")
	}
	w.mu.Lock()
	w.answer = 401
	w.mu.Unlock()
	for range 40 {
		push()
		w.pass(24 * time.Hour)
	}
	if status, _ := health(); status != "disabled" || push() != 0 {
		t.Errorf("after forty failures it is %s", status)
	}
}

func TestGitLabHookIdentity(t *testing.T) {
	w := newGitLabHarness(t, RepoOptions{DeleteMergedBranches: true}, nil)
	key := []byte("0123456789abcdef0123456789abcdef")
	w.call("ada", "POST", gitlabTestProject+"/hooks", map[string]any{"url": w.receiver.URL, "token": "s3cret", "signing_token": "whsec_" + base64.StdEncoding.EncodeToString(key),
		"push_events": true, "merge_requests_events": true, "note_events": true}, 201)
	mr := w.open("topic", nil)
	before := len(w.hooksSoFar())
	w.call("liftlock", "PUT", mr+"/merge", nil, 200)
	merged := w.hooksSoFar()[before:]
	if len(merged) != 3 { // the merge, the push to main, the branch that is gone
		t.Fatalf("%d events of a merge", len(merged))
	}
	keys := map[string]bool{}
	for _, h := range merged {
		keys[h.header.Get("Idempotency-Key")] = true
		if h.header.Get("X-Gitlab-Event-UUID") != merged[0].header.Get("X-Gitlab-Event-UUID") || h.header.Get("X-Gitlab-Token") != "s3cret" {
			t.Errorf("sent %v", h.header)
		}
		mac := hmac.New(sha256.New, key)
		fmt.Fprintf(mac, "%s.%s.%s", h.header.Get("webhook-id"), h.header.Get("webhook-timestamp"), h.body)
		if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); h.header.Get("webhook-signature") != want {
			t.Errorf("signed %s, want %s", h.header.Get("webhook-signature"), want)
		}
	}
	if len(keys) != 3 {
		t.Errorf("%d identities of three events", len(keys))
	}
	// A receiver that calls GitLab within the event says so, and its events share the UUID.
	const uuid = "2b5f6e0e-6d1c-4b1e-9d0f-0f4f4a3f8a11"
	before = len(w.hooksSoFar())
	w.send("liftlock", "POST", mr+"/notes", map[string]any{"body": "done"}, "X-Gitlab-Event-UUID", uuid)
	w.call("liftlock", "POST", mr+"/notes", map[string]any{"body": "done"}, 201)
	noted := w.hooksSoFar()[before:]
	if len(noted) != 2 || noted[0].header.Get("X-Gitlab-Event-UUID") != uuid || noted[1].header.Get("X-Gitlab-Event-UUID") == uuid {
		t.Errorf("sent %v", noted)
	}
}

func TestGitLabReactionTwice(t *testing.T) {
	w := newGitLabHarness(t, RepoOptions{}, nil)
	mr := w.open("topic", nil)
	note := fmt.Sprintf("%s/notes/%v", mr, w.call("grace", "POST", mr+"/notes", map[string]any{"body": "/liftlock status"}, 201)["id"])
	w.call("liftlock", "POST", note+"/award_emoji", map[string]any{"name": "thumbsup"}, 201)
	for name, want := range map[string]string{"thumbsup": "already been taken", "no_such_emoji": "not a valid emoji"} {
		if res, raw := w.send("liftlock", "POST", note+"/award_emoji", map[string]any{"name": name}); res.StatusCode != 404 || !strings.Contains(string(raw), want) {
			t.Errorf("%s: %d %s", name, res.StatusCode, raw)
		}
	}
	w.call("grace", "POST", note+"/award_emoji", map[string]any{"name": "thumbsup"}, 201)
	seen, err := w.Pull(gitlabTestRepo, 1)
	w.must(err)
	if got := strings.Join(seen.Comments[0].Reactions, ", "); got != "liftlock +1, grace +1" {
		t.Errorf("reactions are %s", got)
	}
}

func TestCutQuickActions(t *testing.T) {
	for _, c := range []struct{ name, text, rest, found string }{
		{"none", "hello\nworld", "hello\nworld", ""},
		{"one of ours", "/liftlock promote", "/liftlock promote", ""},
		{"one of GitLab's", "/close", "", "close"},
		{"among text", "one\n/label ~a ~\"b c\"\ntwo", "one\ntwo", "label"},
		{"in code", "```\n/close\n```", "```\n/close\n```", ""},
		{"in a quotation", "> /close", "> /close", ""},
		{"in a line", "please /close", "please /close", ""},
		{"indented", "    /close", "    /close", ""},
		{"one of GitLab's for issues", "one\n/promote qa", "one", "promote"},
		{"in capitals", "/CLOSE", "", "close"},
		{"behind a carriage return", "one\r\n\r/clo\rse\r\ntwo", "one\ntwo", "close"},
		{"a word that only begins so", "/closed\n/close-it", "/closed\n/close-it", ""},
		{"behind a backslash", "\\/close", "\\/close", ""},
		{"in code of a paragraph", "`one\n/close\n`", "`one\n/close\n`", ""},
		{"after code that ends", "~~~\n```\n~~~\n/close\n```", "~~~\n```\n~~~\n```", "close"},
		{"in HTML", "<details>\n/close\n</details>", "<details>\n/close\n</details>", ""},
		{"white space at the end", "one \n\n", "one", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			rest, found := cutQuickActions(c.text)
			var names []string
			for _, a := range found {
				names = append(names, a.name)
			}
			if rest != c.rest || strings.Join(names, " ") != c.found {
				t.Errorf("got %q and %v", rest, names)
			}
		})
	}
}

func TestGitLabQuickActions(t *testing.T) {
	for _, c := range []struct{ login, action, field, want string }{
		{"grace", "/close", "state", "closed"},
		{"linus", "/close", "state", "opened"}, // may not
		{"grace", "/draft", "draft", "true"},
		{"grace", "/title Another", "title", "Another"},
		{"grace", `/label ~a ~"b c"`, "labels", "[a b c]"},
		{"grace", "/merge", "state", "merged"},
	} {
		t.Run(c.login+" "+c.action, func(t *testing.T) {
			w := newGitLabHarness(t, RepoOptions{}, nil)
			mr := w.open("topic", nil)
			w.call(c.login, "POST", mr+"/notes", map[string]any{"body": c.action}, 202)
			if got := fmt.Sprint(w.call("ada", "GET", mr, nil, 200)[c.field]); got != c.want {
				t.Errorf("%s is %s, want %s", c.field, got, c.want)
			}
			if notes := listOf(w.call("ada", "GET", mr+"/notes?activity_filter=only_comments", nil, 200)); len(notes) != 0 {
				t.Errorf("there are notes: %v", notes)
			}
		})
	}
}

func TestGitLabMergeQueue(t *testing.T) {
	w := newGitLabHarness(t, RepoOptions{GitLab: GitLabProject{QueueMerges: true}}, nil)
	good, bad := w.open("good", nil), w.open("bad", nil)
	cars := gitlabTestProject + "/merge_trains/merge_requests/"
	w.call("liftlock", "POST", cars+"1", map[string]any{"sha": strings.Repeat("1", 40)}, 409)
	w.call("liftlock", "POST", cars+"1", nil, 201)
	w.call("liftlock", "POST", cars+"1", nil, 409) // it is there
	w.call("liftlock", "POST", cars+"2", nil, 201)
	if car := w.call("liftlock", "GET", cars+"1", nil, 200); car["status"] != "fresh" {
		t.Errorf("it is %v", car["status"])
	}
	w.call("liftlock", "PUT", bad, map[string]any{"title": "Draft: bad"}, 200)
	w.must(w.RunMergeQueue(gitlabTestRepo, "ada"))
	for mr, want := range map[string]string{good: "merged", bad: "opened"} {
		if got := w.call("liftlock", "GET", mr, nil, 200)["state"]; got != want {
			t.Errorf("%s is %v, want %s", mr, got, want)
		}
	}
	if car := w.call("liftlock", "GET", cars+"1", nil, 200); car["status"] != "merged" || car["merged_at"] == nil {
		t.Errorf("the first is %v", car)
	}
	w.call("liftlock", "GET", cars+"2", nil, 404)
}

// TestGitLabLeavesTheMergeQueue takes merge requests off a merge train in every way.
func TestGitLabLeavesTheMergeQueue(t *testing.T) {
	for name, leave := range map[string]func(w *gitlabHarness, mr string){
		"a person": func(w *gitlabHarness, mr string) {
			w.call("liftlock", "POST", mr+"/cancel_merge_when_pipeline_succeeds", nil, 201)
		},
		"a push":       func(w *gitlabHarness, _ string) { w.branch("good") },
		"what it runs": func(w *gitlabHarness, _ string) { w.must(w.FailMergeQueue(gitlabTestRepo, 1, "ada")) },
		"its end": func(w *gitlabHarness, mr string) {
			w.call("ada", "PUT", mr, map[string]any{"state_event": "close"}, 200)
		},
		"a merge": func(w *gitlabHarness, mr string) { w.call("ada", "PUT", mr+"/merge", nil, 200) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newGitLabHarness(t, RepoOptions{GitLab: GitLabProject{QueueMerges: true}}, nil)
			mr := w.open("good", nil)
			car := gitlabTestProject + "/merge_trains/merge_requests/1"
			w.call("liftlock", "POST", car, nil, 201)
			if on := w.call("liftlock", "GET", mr, nil, 200); on["merge_when_pipeline_succeeds"] != true {
				t.Errorf("on it: %v", on)
			}
			leave(w, mr)
			off := w.call("liftlock", "GET", mr, nil, 200)
			if off["merge_when_pipeline_succeeds"] != false {
				t.Errorf("off it: %v", off)
			}
			if name == "a merge" {
				if o := w.call("liftlock", "GET", car, nil, 200); o["status"] != "skip_merged" {
					t.Errorf("its car is %v", o["status"])
				}
				return
			}
			w.call("liftlock", "GET", car, nil, 404)
			w.must(w.RunMergeQueue(gitlabTestRepo, "ada"))
			if now := w.call("liftlock", "GET", mr, nil, 200); now["state"] != off["state"] {
				t.Errorf("it is %v", now["state"])
			}
		})
	}
}
