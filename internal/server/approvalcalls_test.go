package server_test

import (
	"testing"
)

// approvedProd takes releases from dev after two approvals.
const approvedProd = "name: prod\nafter: [dev]\nmerge: auto\ngates:\n  - approvals: {count: 2, from: {users: [ada, grace]}}\nverify: " + verifyFast

// A promotion with two approvals makes these calls besides, from the release to its verification.
var approvedCalls = []forgeCall{
	{"POST /repos/{owner}/{repo}/pulls", 1, "it is opened"},
	{"POST /repos/{owner}/{repo}/issues/{number}/labels", 1, "GitHub takes none when it is opened"},
	{"POST /repos/{owner}/{repo}/pulls/{number}/requested_reviewers", 1, "whom the gate names"},
	{"GET /repos/{owner}/{repo}/commits/{sha}/pulls", 1, "who made the release, whose approval doesn't count: by the pull request that brought it"},
	{"GET /repos/{owner}/{repo}/compare/{basehead}", 1, "by its commits"},
	{"GET /repos/{owner}/{repo}/activity", 1, "by who pushed them"},
	{"POST /repos/{owner}/{repo}/issues/{number}/comments", 1, "what it waits for"},
	{"PATCH /repos/{owner}/{repo}/issues/comments/{id}", 2, "that one is missing; that it is verified"},
	{"POST /repos/{owner}/{repo}/statuses/{sha}", 3, "who is waited for, before and after the first approval, and that every gate passes"},
	{"POST /graphql", 3, "at each approval, and again right before the merge: its head, whether it can be merged, its reviews, what the reviewers may do, and how many comments there are"},
	{"PUT /repos/{owner}/{repo}/pulls/{number}/merge", 1, "the merge"},
}

// TestForgeCallsWithApprovals counts the calls of a promotion that two people approve, one after
// the other, and says what each is good for.
func TestForgeCallsWithApprovals(t *testing.T) {
	s := startHarness(t, harnessOptions{face: githubFace(), pipeline: pipelineYAML(nil, dev, approvedProd)})
	s.awaitJudged()
	// An environment's first release came by no pull request. Then the open ones are read again,
	// once, as one of them may have been merged meanwhile.
	another := map[string]int{"GET /repos/{owner}/{repo}/pulls/{number}": 1, "GET /repos/{owner}/{repo}/pulls/{number}/reviews": 1}
	for _, tag := range []string{"1.1.0", "1.2.0"} {
		s.awaitIdle()
		s.Forge.ResetCalls()
		s.commitRelease("web", tag)
		p := s.awaitPromotion("web", "prod", tag)
		for _, login := range []string{"ada", "grace"} {
			s.awaitIdle()
			s.approve(p.Number, login)
		}
		s.awaitVerified("web", "prod", tag)
		s.awaitIdle()
		if n := s.checkForgeCalls(approvedCalls, another); n > 16 {
			t.Errorf("a promotion with two approvals is worth %d calls, and 16 must do", n)
		}
		another = nil
	}
}
