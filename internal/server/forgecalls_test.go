package server_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/world/emulator"
)

// forgeCall is a call of the forge's API that a promotion is worth.
type forgeCall struct {
	route string
	most  int
	why   string
}

// A promotion without gates makes these calls, from the release to its verification.
var (
	githubCalls = []forgeCall{
		{"POST /repos/{owner}/{repo}/pulls", 1, "it is opened"},
		{"POST /repos/{owner}/{repo}/issues/{number}/labels", 1, "GitHub takes none when it is opened"},
		{"POST /repos/{owner}/{repo}/issues/{number}/comments", 1, "what it waits for"},
		{"POST /repos/{owner}/{repo}/statuses/{sha}", 1, "the same for who looks at the commit"},
		{"GET /repos/{owner}/{repo}/pulls/{number}", 2, "whether it can be merged; again right before the merge"},
		{"PUT /repos/{owner}/{repo}/pulls/{number}/merge", 1, "the merge"},
		{"PATCH /repos/{owner}/{repo}/issues/comments/{id}", 1, "that it is verified"},
	}
	gitlabCalls = []forgeCall{
		{"POST /projects/{id}/merge_requests", 1, "it is opened, with its labels"},
		{"POST /projects/{id}/merge_requests/{noteable_id}/notes", 1, "what it waits for"},
		{"POST /projects/{id}/statuses/{sha}", 1, "the same for who looks at the commit"},
		{"GET /projects/{id}/merge_requests/{merge_request_iid}", 2, "whether it can be merged; again right before the merge"},
		{"GET /projects/{id}", 1, "how the project merges, which is its own choice and can change at any time"},
		{"PUT /projects/{id}/merge_requests/{merge_request_iid}/merge", 1, "the merge"},
		{"PUT /projects/{id}/merge_requests/{noteable_id}/notes/{note_id}", 1, "that it is verified"},
	}
)

// TestForgeCallsOfAPromotion counts the calls that a promotion makes by itself, and says what
// each is good for.
func TestForgeCallsOfAPromotion(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		face  emulator.Face
		calls []forgeCall
		// another is what is read of the merge request by which a person brings the release: where
		// nobody may push, every release has one.
		another map[string]int
	}{
		{githubFace(), githubCalls, nil},
		{emulator.GitLab, gitlabCalls, map[string]int{"GET /projects/{id}/merge_requests/{merge_request_iid}": 2}},
	} {
		t.Run(string(c.face), func(t *testing.T) {
			s := startHarness(t, harnessOptions{face: c.face, pipeline: pipelineYAML(nil, dev, qa)})
			s.awaitJudged()
			for _, tag := range []string{"1.1.0", "1.2.0"} {
				s.awaitIdle()
				s.Forge.ResetCalls()
				s.commitRelease("web", tag)
				s.awaitVerified("web", "qa", tag)
				s.awaitIdle()
				if n := s.checkForgeCalls(c.calls, c.another); n > 9 {
					t.Errorf("a promotion is worth %d calls, and 9 must do", n)
				}
			}
		})
	}
}

// checkForgeCalls compares the calls that were made of the forge's API with those that there
// is a reason for, and gives how many of these there are.
func (ha *harness) checkForgeCalls(calls []forgeCall, another map[string]int) int {
	ha.t.Helper()
	most, sum := maps.Clone(another), 0
	if most == nil {
		most = map[string]int{}
	}
	for _, c := range calls {
		most[c.route] += c.most
		sum += c.most
	}
	got := ha.Forge.Calls()
	if n := got["POST /{owner}/{repo}.git/git-receive-pack"]; n == 0 || n > 2 { // its branch; and that it is deleted
		ha.t.Errorf("%d pushes", n)
	}
	for _, route := range slices.Sorted(maps.Keys(got)) {
		if n := got[route]; !strings.Contains(route, ".git/") && n > most[route] {
			ha.t.Errorf("%d times %s, of which %d have a reason", n, route, most[route])
		}
	}
	return sum
}
