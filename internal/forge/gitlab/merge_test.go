package gitlab

import (
	"errors"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/rest"
)

func TestMergeability(t *testing.T) {
	for _, c := range []struct {
		state, status string
		want          forge.Mergeable
		reason        string
	}{
		{"opened", "mergeable", forge.MergeableYes, ""},
		{"opened", "preparing", forge.MergeableUnknown, "preparing"},
		{"opened", "unchecked", forge.MergeableUnknown, "unchecked"},
		{"opened", "checking", forge.MergeableUnknown, "checking"},
		{"opened", "approvals_syncing", forge.MergeableUnknown, "approvals_syncing"},
		{"opened", "not_open", forge.MergeableUnknown, "not_open"},
		{"opened", "", forge.MergeableUnknown, untoldMergeability},
		{"opened", "conflict", forge.MergeableDirty, "conflict"},
		{"opened", "broken_status", forge.MergeableDirty, "broken_status"},
		{"opened", "need_rebase", forge.MergeableBehind, "need_rebase"},
		{"opened", "ci_must_pass", forge.MergeableBlocked, "ci_must_pass"},
		{"opened", "ci_still_running", forge.MergeableBlocked, "ci_still_running"},
		{"opened", "commits_status", forge.MergeableBlocked, "commits_status"},
		{"opened", "discussions_not_resolved", forge.MergeableBlocked, "discussions_not_resolved"},
		{"opened", "draft_status", forge.MergeableBlocked, "draft_status"},
		{"opened", "not_approved", forge.MergeableBlocked, "not_approved"},
		{"opened", "requested_changes", forge.MergeableBlocked, "requested_changes"},
		{"opened", "merge_request_blocked", forge.MergeableBlocked, "merge_request_blocked"},
		{"opened", "title_regex", forge.MergeableBlocked, "title_regex"},
		{"opened", "a_word_of_tomorrow", forge.MergeableBlocked, "a_word_of_tomorrow"},
		{"locked", "not_open", forge.MergeableUnknown, "locked"},
		{"closed", "not_open", forge.MergeableUnknown, ""},
		{"merged", "mergeable", forge.MergeableUnknown, ""},
	} {
		t.Run(c.state+" "+c.status, func(t *testing.T) {
			if got, reason := toMergeable(c.state, c.status); got != c.want || reason != c.reason {
				t.Errorf("got %s, %q; want %s, %q", got, reason, c.want, c.reason)
			}
		})
	}
}

func TestLandedCommit(t *testing.T) {
	for _, c := range []struct {
		name                string
		merge, squash, want string
		squashed            string
	}{
		{"a merge commit", land1, "", land1, ""},
		{"squashed, then merged", land1, head2, land1, head2},
		{"squashed, then forward", "", head2, head2, ""},
		{"forward", "", "", head1, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := mergeRequest{State: "merged", SHA: head1, MergeCommitSHA: c.merge, SquashCommitSHA: c.squash}
			if got := m.pullRequest(); got.MergeCommit != c.want || got.SquashCommit != c.squashed {
				t.Errorf("got %s and %s, want %s and %s", got.MergeCommit, got.SquashCommit, c.want, c.squashed)
			}
		})
	}
}

func TestMergeAnswers(t *testing.T) {
	merged := jsonObject{"state": "merged", "merge_commit_sha": land1, "merged_at": "2026-03-02T11:00:00Z"}
	for _, c := range []struct {
		name   string
		answer response
		after  jsonObject // how the merge request is then
		kind   error      // nil: it landed
		words  string
		hint   string
	}{
		{"merged", okResponse(mergeRequestJSON(merged)), merged, nil, "", ""},
		{"under way", okResponse(mergeRequestJSON(jsonObject{"state": "locked"})), nil, forge.ErrRetryable, "it is locked still", ""},
		{"no right", errorResponse(401, "401 Unauthorized"), nil, forge.ErrForbidden, "may not merge into main", "allowed to merge"},
		{"conflicting", errorResponse(405, "405 Method Not Allowed"), jsonObject{"detailed_merge_status": "conflict"}, forge.ErrNotMergeable, "conflict", ""},
		{"behind", errorResponse(405, "405 Method Not Allowed"), jsonObject{"detailed_merge_status": "need_rebase"}, forge.ErrNotMergeable, "need_rebase", ""},
		{"not approved", errorResponse(405, "405 Method Not Allowed"), jsonObject{"detailed_merge_status": "not_approved"}, forge.ErrNotMergeable, "not_approved", ""},
		{"still being checked", errorResponse(405, "405 Method Not Allowed"), jsonObject{"detailed_merge_status": "checking"}, forge.ErrConflict, "405", ""},
		{"closed meanwhile", errorResponse(405, "405 Method Not Allowed"), jsonObject{"state": "closed"}, forge.ErrNotMergeable, "it is closed", ""},
		{"merged before, its answer lost", errorResponse(405, "405 Method Not Allowed"), merged, nil, "", ""},
		{"merged before, without a right", errorResponse(401, "401 Unauthorized"), merged, nil, "", ""},
		{"merged before with another head", errorResponse(405, "405 Method Not Allowed"),
			jsonObject{"state": "merged", "merge_commit_sha": land1, "sha": head2}, forge.ErrConflict, "its head is " + head2, ""},
		{"another head", errorResponse(409, "SHA does not match HEAD of source branch: "+head2), jsonObject{"sha": head2}, forge.ErrConflict, "its head is " + head2, ""},
		{"the merge failed", errorResponse(422, "Branch cannot be merged"), jsonObject{"detailed_merge_status": "mergeable"}, forge.ErrConflict, "cannot be merged", ""},
		{"the merge failed by a conflict", errorResponse(422, "Branch cannot be merged"), jsonObject{"detailed_merge_status": "conflict"}, forge.ErrNotMergeable, "conflict", ""},
		{"the merge failed, in old words", errorResponse(406, "Branch cannot be merged"), jsonObject{"detailed_merge_status": "checking"}, forge.ErrConflict, "cannot be merged", ""},
		{"it isn't there", errorResponse(404, "404 Not Found"), nil, forge.ErrNotFound, "", ""},
		{"forbidden", errorResponse(403, "403 Forbidden"), nil, forge.ErrForbidden, "403", ""},
		{"a bad gateway", response{502, nil, "<html>Bad Gateway</html>"}, nil, forge.ErrRetryable, "Bad Gateway", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, d := newReplayServer(t)
			r.on("PUT merge_requests/7/merge", c.answer)
			r.on("GET merge_requests/7", okResponse(mergeRequestJSON(c.after)))
			landed, err := d.Merge(ctx, testRepoName, forge.MergeRequest{Number: 7, Head: head1, Method: "merge", Title: "T", Message: "M"})
			if c.kind == nil {
				if err != nil || landed != land1 {
					t.Errorf("landed %q, %v", landed, err)
				}
				return
			}
			if !errors.Is(err, c.kind) || landed != "" {
				t.Fatalf("got %q, %v; want %v", landed, err, c.kind)
			}
			if e := rest.ErrorOf(err); !strings.Contains(e.Message, c.words) || !strings.Contains(e.Hint, c.hint) || (c.hint == "") != (e.Hint == "") {
				t.Errorf("message %q, hint %q; want %q and %q", e.Message, e.Hint, c.words, c.hint)
			}
		})
	}
}

// TestMergeByProject merges only as the project does.
func TestMergeByProject(t *testing.T) {
	for _, c := range []struct {
		name    string
		project jsonObject
		method  string
		words   string // of the refusal; empty: it is merged
		body    string // of the call
	}{
		{"merge", jsonObject{"merge_method": "merge"}, "merge", "", `{"sha":"` + head1 + `","squash":false,"merge_commit_message":"T\n\nM","squash_commit_message":"T\n\nM"}`},
		{"squash", jsonObject{"merge_method": "merge", "squash_option": "default_off"}, "squash", "", `"squash":true`},
		{"semi-linear", jsonObject{"merge_method": "rebase_merge"}, "merge", "", `"squash":false`},
		{"rebase by fast-forward", jsonObject{"merge_method": "ff"}, "rebase", "", `"squash":false`},
		{"squash by fast-forward", jsonObject{"merge_method": "ff"}, "squash", "", `"squash":true`},
		{"rebase where merge commits are made", jsonObject{"merge_method": "merge"}, "rebase", "nothing is merged by rebase", ""},
		{"rebase where it is semi-linear", jsonObject{"merge_method": "rebase_merge"}, "rebase", "nothing is merged by rebase", ""},
		{"merge by fast-forward", jsonObject{"merge_method": "ff"}, "merge", "makes no merge commits", ""},
		{"squash where nothing is", jsonObject{"squash_option": "never"}, "squash", "doesn't allow squashing", ""},
		{"merge where everything is squashed", jsonObject{"squash_option": "always"}, "merge", "always squashes", ""},
		{"squash where everything is", jsonObject{"squash_option": "always"}, "squash", "", `"squash":true`},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, d := newReplayServer(t)
			c.project["id"] = 7
			r.on("GET projects/7", okResponse(c.project))
			r.on("PUT merge_requests/7/merge", okResponse(mergeRequestJSON(jsonObject{"state": "merged", "merge_commit_sha": land1})))
			r.on("GET merge_requests/7", okResponse(mergeRequestJSON(nil)))
			_, err := d.Merge(ctx, testRepoName, forge.MergeRequest{Number: 7, Head: head1, Method: c.method, Title: "T", Message: "M"})
			sent := strings.Join(r.calls("PUT merge_requests/7/merge"), "\n")
			if c.words == "" {
				if err != nil || !strings.Contains(sent, c.body) {
					t.Errorf("sent %s, %v", sent, err)
				}
				return
			}
			if !errors.Is(err, forge.ErrNotMergeable) || !strings.Contains(err.Error(), c.words) || rest.ErrorOf(err).Hint == "" || sent != "" {
				t.Errorf("got %v after %s", err, sent)
			}
		})
	}
}

// TestQueueAnswers has a head join a merge train, and says what GitLab's answers mean.
func TestQueueAnswers(t *testing.T) {
	queued := jsonObject{"merge_when_pipeline_succeeds": true}
	for _, c := range []struct {
		name   string
		answer response
		after  jsonObject // how the merge request is then
		landed string
		kind   error // nil: it has joined, or landed
		words  string
	}{
		{"joined", response{201, nil, "[]"}, queued, "", nil, ""},
		{"joins when its pipeline is through", response{202, nil, "[]"}, queued, "", nil, ""},
		{"on it already", errorResponse(409, "The merge request is already on a merge train."), queued, "", nil, ""},
		{"on it with another head", errorResponse(409, "SHA does not match"), jsonObject{"merge_when_pipeline_succeeds": true, "sha": head2}, "", forge.ErrConflict, head2},
		{"landed meanwhile", errorResponse(400, "not open"), jsonObject{"state": "merged", "merge_commit_sha": land1}, land1, nil, ""},
		{"not approved", errorResponse(400, "not mergeable"), jsonObject{"detailed_merge_status": "not_approved"}, "", forge.ErrNotMergeable, "not_approved"},
		{"still being checked", errorResponse(400, "not mergeable"), jsonObject{"detailed_merge_status": "checking"}, "", forge.ErrConflict, ""},
		{"for a reason of the train's", errorResponse(400, "no pipeline"), jsonObject{"detailed_merge_status": "mergeable"}, "", forge.ErrNotMergeable, "no pipeline"},
		{"no trains in this edition", errorResponse(403, "403 Forbidden"), nil, "", forge.ErrForbidden, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, d := newReplayServer(t)
			r.on("GET projects/7", okResponse(jsonObject{"id": 7, "merge_trains_enabled": true}))
			r.on("POST merge_trains/merge_requests/7", c.answer)
			r.on("GET merge_requests/7", okResponse(mergeRequestJSON(c.after)))
			landed, err := d.Merge(ctx, testRepoName, forge.MergeRequest{Number: 7, Head: head1, Method: "squash", Title: "T"})
			if sent := strings.Join(r.calls("POST merge_trains/merge_requests/7"), "\n"); !strings.HasSuffix(sent, ` {"sha":"`+head1+`","squash":true}`) {
				t.Errorf("sent %s", sent)
			}
			if landed != c.landed || !errors.Is(err, c.kind) {
				t.Fatalf("got %q, %v; want %q, %v", landed, err, c.landed, c.kind)
			}
			if err != nil && !strings.Contains(err.Error(), c.words) {
				t.Errorf("it says %v, want %q", err, c.words)
			}
		})
	}
}

// TestLeaveQueue believes what the merge request is then, and not the answer.
func TestLeaveQueue(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer response
		after  jsonObject
		kind   error // nil: it isn't in the queue
	}{
		{"off it", response{201, nil, "{}"}, nil, nil},
		{"closed", errorResponse(406, "406 Not Acceptable"), jsonObject{"state": "closed"}, nil},
		{"on it still, whatever the answer", response{201, nil, "{}"}, jsonObject{"merge_when_pipeline_succeeds": true}, forge.ErrRetryable},
		{"it can't be canceled", errorResponse(405, "405 Method Not Allowed"), jsonObject{"merge_when_pipeline_succeeds": true}, forge.ErrRetryable},
		{"no right", errorResponse(401, "401 Unauthorized"), jsonObject{"merge_when_pipeline_succeeds": true}, forge.ErrForbidden},
		{"merged", response{201, nil, "{}"}, jsonObject{"state": "merged"}, forge.ErrConflict},
		{"being merged", errorResponse(405, "405 Method Not Allowed"), jsonObject{"state": "locked", "merge_when_pipeline_succeeds": true}, forge.ErrConflict},
		{"GitLab is down", response{502, nil, ""}, nil, forge.ErrRetryable},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, d := newReplayServer(t)
			r.on("POST merge_requests/7/cancel_merge_when_pipeline_succeeds", c.answer)
			r.on("GET merge_requests/7", okResponse(mergeRequestJSON(c.after)))
			if err := d.LeaveQueue(ctx, testRepoName, 7); !errors.Is(err, c.kind) {
				t.Errorf("got %v, want %v", err, c.kind)
			}
		})
	}
}
