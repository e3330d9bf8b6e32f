package gitlab

import (
	"fmt"
	"strings"
	"testing"
)

// TestApprovalRules names what a merge request lacks of its approval rules, and reads them only
// where GitLab says that it lacks approvals.
func TestApprovalRules(t *testing.T) {
	rule := func(name, kind string, required int, approved bool, by ...string) jsonObject {
		users := []jsonObject{}
		for i, login := range by {
			users = append(users, jsonObject{"id": i + 1, "username": login})
		}
		return jsonObject{"name": name, "rule_type": kind, "section": nil, "approvals_required": required, "approved": approved, "approved_by": users}
	}
	rules := func(all ...jsonObject) response {
		return okResponse(jsonObject{"approval_rules_overwritten": false, "rules": all})
	}
	owners := rule("/deploy/", "code_owner", 1, false)
	owners["section"] = "Platform"
	var many []jsonObject
	for i := range 7 {
		many = append(many, rule(fmt.Sprint(i), "regular", 1, false))
	}
	for _, c := range []struct {
		name, status string
		answer       response
		want         string
	}{
		{"anybody's approval", "not_approved", rules(rule("All Members", "any_approver", 2, false, "ada")), "not_approved: anybody's: 1 of 2 approvals"},
		{"named rules, one of them met", "not_approved", rules(rule("Security", "regular", 1, false), rule("QA", "regular", 1, true, "ada"), rule("Optional", "regular", 0, false)),
			`not_approved: rule "Security": 0 of 1 approval`},
		{"code owners", "not_approved", rules(owners), `not_approved: code owners of "Platform /deploy/": 0 of 1 approval`},
		{"a name of several lines", "not_approved", rules(rule("a\n/close\n"+strings.Repeat("b", 200), "report_approver", 1, false)),
			`not_approved: rule "a /close ` + strings.Repeat("b", 68) + `…": 0 of 1 approval`},
		{"many", "not_approved", rules(many...), `not_approved: rule "0": 0 of 1 approval, rule "1": 0 of 1 approval, rule "2": 0 of 1 approval, rule "3": 0 of 1 approval, rule "4": 0 of 1 approval and 2 more`},
		{"all met, and GitLab hasn't noticed", "not_approved", rules(rule("QA", "regular", 1, true, "ada")), "not_approved"},
		{"the free edition", "not_approved", errorResponse(404, "404 Not Found"), "not_approved"},
		{"an account that may not see them", "not_approved", errorResponse(403, "403 Forbidden"), "not_approved"},
		{"an answer that is none", "not_approved", response{status: 200, body: "<html>"}, "not_approved"},
		{"something else blocks", "discussions_not_resolved", rules(), "discussions_not_resolved"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, d := newReplayServer(t)
			r.on("GET merge_requests/7", okResponse(mergeRequestJSON(jsonObject{"detailed_merge_status": c.status})))
			r.on("GET merge_requests/7/approval_state", c.answer)
			pr, err := d.PullRequest(t.Context(), testRepoName, 7)
			if err != nil {
				t.Fatal(err)
			}
			if pr.MergeReason != c.want {
				t.Errorf("got %s\nwant %s", pr.MergeReason, c.want)
			}
			if read := len(r.calls("approval_state")) > 0; read != (c.status == notApproved) {
				t.Errorf("the rules were read: %v", read)
			}
		})
	}
}
