package gitlab

import (
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
)

// at is a time of a day, in milliseconds.
func at(ms int) *time.Time {
	t := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC).Add(time.Duration(ms) * time.Millisecond)
	return &t
}

func TestHeadAt(t *testing.T) {
	both := []version{{Head: head2, At: at(200)}, {Head: head1, At: at(100)}}
	for _, c := range []struct {
		name     string
		versions []version
		when     time.Time
		want     string
	}{
		{"after the newest", both, *at(201), head2},
		{"with the newest", both, *at(200), head1},
		{"between them", both, *at(150), head1},
		{"with the first", both, *at(100), ""},
		{"before the first", both, *at(50), ""},
		{"in the other order", []version{both[1], both[0]}, *at(201), head2},
		{"no time", both, time.Time{}, ""},
		{"no versions", nil, *at(201), ""},
		{"a version without a time", []version{{Head: head2}, both[1]}, *at(201), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := headAt(c.versions, c.when); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestReviews(t *testing.T) {
	ada, bot := account{ID: 1, Username: "ada"}, account{ID: 9, Username: "project_7_bot_0a1b"}
	both := []version{{Head: head2, At: at(200)}, {Head: head1, At: at(100)}}
	for _, c := range []struct {
		name      string
		approvals []approval
		reviewers []reviewer
		noted     map[reviewNote]time.Time
		want      forge.Review // the zero one: none
	}{
		{"nobody", nil, nil, nil, forge.Review{}},
		{"requested only", nil, []reviewer{{User: ada, State: "unreviewed"}}, nil, forge.Review{}},
		{"approved of the newest head", []approval{{ada, at(300)}}, nil, nil, forge.Review{Approved: true, Commit: head2, At: *at(300)}},
		{"approved before a push", []approval{{ada, at(150)}}, nil, nil, forge.Review{Approved: true, Commit: head1, At: *at(150)}},
		{"approved, known by a note", []approval{{ada, nil}}, nil, map[reviewNote]time.Time{{1, approvedNote}: *at(150)}, forge.Review{Approved: true, Commit: head1, At: *at(150)}},
		{"approved, nobody knows when", []approval{{ada, nil}}, nil, nil, forge.Review{Approved: true}},
		{"approved, a reviewer too", []approval{{ada, at(300)}}, []reviewer{{User: ada, State: "reviewed"}}, nil, forge.Review{Approved: true, Commit: head2, At: *at(300)}},
		{"asked for changes", nil, []reviewer{{User: ada, State: "requested_changes"}}, map[reviewNote]time.Time{{1, requestedChangesNote}: *at(150)},
			forge.Review{Rejected: true, Commit: head1, At: *at(150)}},
		{"asked for changes, nobody knows when", nil, []reviewer{{User: ada, State: "requested_changes"}}, nil, forge.Review{Rejected: true, Commit: head2}},
		{"asked for changes and approved", []approval{{ada, at(300)}}, []reviewer{{User: ada, State: "requested_changes"}}, nil, forge.Review{Rejected: true, Commit: head2}},
		{"only commented", nil, []reviewer{{User: ada, State: "reviewed", At: at(110)}}, nil, forge.Review{At: *at(110)}},
		{"a program", []approval{{bot, at(300)}}, nil, nil, forge.Review{Approved: true, Commit: head2, At: *at(300), Bot: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := toReviews(c.approvals, c.reviewers, c.noted, both)
			if c.want == (forge.Review{}) {
				if len(got) != 0 {
					t.Errorf("got %+v", got)
				}
				return
			}
			c.want.ID, c.want.UserID, c.want.User = 1, 1, "ada"
			if c.want.Bot {
				c.want.ID, c.want.UserID, c.want.User = 9, 9, bot.Username
			}
			if len(got) != 1 || got[0] != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

// TestOldApprovals are of a GitLab that doesn't say when they were given: its own notes do.
func TestOldApprovals(t *testing.T) {
	r, d := newReplayServer(t)
	ada := jsonObject{"id": 1, "username": "ada"}
	r.on("GET merge_requests/7/approvals", okResponse(jsonObject{"approved": true, "approved_by": []jsonObject{{"user": ada}}}))
	r.on("GET merge_requests/7/reviewers", okResponse([]jsonObject{}))
	r.on("GET merge_requests/7/versions", okResponse([]jsonObject{
		{"head_commit_sha": head2, "created_at": "2026-03-02T10:00:00.000Z"}, {"head_commit_sha": head1, "created_at": "2026-03-02T09:00:00.000Z"},
	}))
	r.on("GET merge_requests/7/notes", okResponse([]jsonObject{
		{"id": 12, "body": approvedNote, "system": false, "author": ada, "created_at": "2026-03-02T11:00:00.000Z"}, // somebody's words
		{"id": 11, "body": approvedNote, "system": true, "author": jsonObject{"id": 2, "username": "grace"}, "created_at": "2026-03-02T10:30:00.000Z"},
		{"id": 10, "body": approvedNote, "system": true, "author": ada, "created_at": "2026-03-02T09:30:00.000Z"},
	}))
	list, err := d.Reviews(ctx, testRepoName, 7)
	if err != nil || len(list) != 1 || !list[0].Approved || list[0].Commit != head1 || list[0].User != "ada" {
		t.Errorf("got %+v, %v", list, err)
	}
}
