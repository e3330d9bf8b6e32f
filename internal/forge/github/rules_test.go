package github

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/forge"
)

const (
	rulesCall      = "GET repos/acme/fleet/rules/branches/main"
	branchCall     = "GET repos/acme/fleet/branches/main"
	protectionCall = branchCall + "/protection"
)

// messageResponse is a refusal in GitHub's words.
func messageResponse(status int, words string) response {
	return response{status, nil, `{"message":"` + words + `"}`}
}

func TestRules(t *testing.T) {
	mergesOnly := okResponse(jsonObject{"allow_merge_commit": true})
	settings := forge.RuleSet{Name: "the repository's settings", Methods: []string{"merge"}}
	rule := func(id int, kind string, parameters jsonObject) jsonObject {
		return jsonObject{"type": kind, "ruleset_id": id, "ruleset_source_type": "Organization", "parameters": parameters}
	}
	for _, c := range []struct {
		name    string
		answers map[string]response
		want    forge.BranchRules
	}{
		{"none", map[string]response{rulesCall: okResponse([]jsonObject{}), protectionCall: messageResponse(404, "Branch not protected")},
			forge.BranchRules{Sets: []forge.RuleSet{settings}}},
		{"a server without rulesets", map[string]response{protectionCall: messageResponse(404, "Branch not protected")},
			forge.BranchRules{Sets: []forge.RuleSet{settings}}},
		{"two rulesets, one of them out of sight, and rules that demand nothing of a merge", map[string]response{
			rulesCall: okResponse([]jsonObject{
				rule(7, "deletion", nil), rule(7, "something_new", jsonObject{"x": 1}), rule(7, "required_linear_history", nil),
				rule(7, "pull_request", jsonObject{"required_approving_review_count": 2, "require_code_owner_review": true, "dismiss_stale_reviews_on_push": true,
					"require_last_push_approval": true, "required_review_thread_resolution": true, "allowed_merge_methods": []string{"squash"}, "required_reviewers": []jsonObject{{"minimum_approvals": 1}}}),
				rule(9, "required_status_checks", jsonObject{"strict_required_status_checks_policy": true, "required_status_checks": []jsonObject{{"context": "ci/build", "integration_id": 3}}}),
				rule(9, "required_signatures", nil), rule(9, "required_deployments", jsonObject{"required_deployment_environments": []string{"staging"}}),
				rule(9, "merge_queue", jsonObject{"merge_method": "SQUASH", "check_response_timeout_minutes": 60}), rule(9, "code_scanning", nil), rule(9, "update", nil),
			}),
			"GET repos/acme/fleet/rulesets/7": okResponse(jsonObject{"name": "main", "current_user_can_bypass": "pull_requests_only"}),
			"GET repos/acme/fleet/rulesets/9": messageResponse(404, "Not Found"), protectionCall: messageResponse(404, "Branch not protected"),
		}, forge.BranchRules{Sets: []forge.RuleSet{
			{Name: `ruleset "main"`, Bypassed: true, Approvals: 2, CodeOwners: true, DropsApprovals: true, LastPushApproval: true, Threads: true, TeamReviews: true, LinearHistory: true, Methods: []string{"squash"}},
			{Name: "ruleset 9", MaybeBypassed: true, Checks: []string{"ci/build"}, UpToDate: true, Signatures: true, Deployments: []string{"staging"},
				Others: []string{"code scanning", "only who may bypass it moves the branch"}, Queue: &forge.QueueRule{Method: "squash", Timeout: time.Hour}},
			settings,
		}}},
		{"classic protection", map[string]response{rulesCall: okResponse([]jsonObject{}), protectionCall: okResponse(jsonObject{
			"required_status_checks":        jsonObject{"strict": true, "contexts": []string{"ci/build"}},
			"required_pull_request_reviews": jsonObject{"required_approving_review_count": 1, "require_code_owner_reviews": true, "dismiss_stale_reviews": true, "require_last_push_approval": true},
			"required_signatures":           jsonObject{"enabled": true}, "required_linear_history": jsonObject{"enabled": true}, "required_conversation_resolution": jsonObject{"enabled": true},
			"enforce_admins": jsonObject{"enabled": true},
			"lock_branch":    jsonObject{"enabled": true}, "restrictions": jsonObject{"users": []jsonObject{{"login": "ada"}}, "teams": []jsonObject{{"slug": "sre"}}, "apps": []jsonObject{{"slug": "ci"}}},
		})}, forge.BranchRules{Sets: []forge.RuleSet{{Name: "branch protection", Approvals: 1, CodeOwners: true, DropsApprovals: true, LastPushApproval: true, Threads: true,
			Checks: []string{"ci/build"}, UpToDate: true, Signatures: true, LinearHistory: true, Others: []string{"the branch is locked"}, Mergers: []string{"ada", "team sre", "ci[bot]"}}, settings}}},
		{"classic protection, which the App may not read", map[string]response{rulesCall: okResponse([]jsonObject{}), protectionCall: messageResponse(403, "Resource not accessible by integration"),
			branchCall: okResponse(jsonObject{"protected": true, "protection": jsonObject{"enabled": true, "required_status_checks": jsonObject{"enforcement_level": "everyone", "contexts": []string{"ci/build"}}}})},
			forge.BranchRules{Sets: []forge.RuleSet{{Name: "branch protection", Checks: []string{"ci/build"}}, settings},
				Hidden: "what else the branch protection of main demands, which only credentials that may read the repository's administration see"}},
		{"rulesets alone, for who may not read classic protection", map[string]response{rulesCall: okResponse([]jsonObject{}),
			branchCall: okResponse(jsonObject{"protected": true, "protection": jsonObject{"enabled": false}})}, forge.BranchRules{Sets: []forge.RuleSet{settings}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, d := newReplayServer(t)
			r.on("GET repos/acme/fleet", mergesOnly)
			for call, answer := range c.answers {
				r.on(call, answer)
			}
			got, err := d.Rules(ctx, testRepoName, "main")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&c.want, got); diff != "" {
				t.Errorf("want (-), got (+):\n%s", diff)
			}
		})
	}
}

// TestProtectionBypass holds that classic protection which the credentials may merge past,
// or maybe, is known as such.
func TestProtectionBypass(t *testing.T) {
	enforced, exempt := jsonObject{"enabled": true}, jsonObject{"enabled": false}
	reviewsWithout := func(who jsonObject) jsonObject {
		return jsonObject{"required_approving_review_count": 1, "bypass_pull_request_allowances": who}
	}
	branch := func(level string) map[string]response {
		return map[string]response{protectionCall: messageResponse(404, "Not Found"), branchCall: okResponse(jsonObject{"protected": true, "protection": jsonObject{"enabled": true,
			"required_status_checks": jsonObject{"enforcement_level": level, "contexts": []string{"ci"}}}})}
	}
	protected := func(p jsonObject) map[string]response {
		return map[string]response{protectionCall: okResponse(p)}
	}
	for name, c := range map[string]struct {
		answers           map[string]response
		admin             bool
		bypassed, unknown bool
	}{
		"administrators are bound":               {protected(jsonObject{"enforce_admins": enforced}), true, false, false},
		"administrators aren't":                  {protected(jsonObject{"enforce_admins": exempt}), true, true, false},
		"administrators aren't, and we read":     {protected(jsonObject{"enforce_admins": exempt}), false, false, true},
		"nothing says whom it binds":             {protected(jsonObject{}), false, false, true},
		"we need no reviews":                     {protected(jsonObject{"enforce_admins": enforced, "required_pull_request_reviews": reviewsWithout(jsonObject{"users": []jsonObject{{"login": "Liftlock-Bot"}}})}), false, false, true},
		"somebody else needs no reviews":         {protected(jsonObject{"enforce_admins": enforced, "required_pull_request_reviews": reviewsWithout(jsonObject{"apps": []jsonObject{{"slug": "ci"}}})}), false, false, false},
		"a team needs no reviews":                {protected(jsonObject{"enforce_admins": enforced, "required_pull_request_reviews": reviewsWithout(jsonObject{"teams": []jsonObject{{"slug": "sre"}}})}), false, false, true},
		"the branch says administrators aren't":  {branch("non_admins"), false, false, true},
		"the branch says that we, as one, don't": {branch("non_admins"), true, true, false},
		"the branch says that all are":           {branch("everyone"), false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			r, d := newReplayServer(t)
			r.on("GET repos/acme/fleet", okResponse(jsonObject{"permissions": jsonObject{"admin": c.admin}}))
			r.on("GET user", okResponse(jsonObject{"login": "liftlock-bot", "id": 1}))
			r.on(rulesCall, okResponse([]jsonObject{}))
			for call, answer := range c.answers {
				r.on(call, answer)
			}
			got, err := d.Rules(ctx, testRepoName, "main")
			if err != nil {
				t.Fatal(err)
			}
			if got.IsBypassed() != c.bypassed || got.IsMaybeBypassed() != c.unknown {
				t.Errorf("bypassed %t, unknown %t", got.IsBypassed(), got.IsMaybeBypassed())
			}
		})
	}
}

func TestRulesThatCannotBeRead(t *testing.T) {
	ruleset := okResponse([]jsonObject{{"type": "required_signatures", "ruleset_id": 7}})
	for _, c := range []struct {
		name    string
		answers map[string]response
		kind    error
		words   string
	}{
		{"the rules", map[string]response{rulesCall: {status: 502}}, forge.ErrRetryable, "read the rules of the branch main of acme/fleet"},
		{"the ruleset", map[string]response{rulesCall: ruleset, "GET repos/acme/fleet/rulesets/7": {status: 502}}, forge.ErrRetryable, "read the ruleset 7 of acme/fleet"},
		{"the ruleset, limited", map[string]response{rulesCall: ruleset, "GET repos/acme/fleet/rulesets/7": {403, map[string]string{"Retry-After": "9"}, `{"message":"slow down"}`}}, forge.ErrRateLimited, "slow down"},
		{"the protection", map[string]response{rulesCall: okResponse([]jsonObject{}), protectionCall: {status: 502}}, forge.ErrRetryable, "read the protection of the branch main"},
		{"the branch", map[string]response{rulesCall: okResponse([]jsonObject{}), branchCall: {status: 502}}, forge.ErrRetryable, "read the branch main"},
		{"parameters of another shape", map[string]response{rulesCall: okResponse([]jsonObject{{"type": "pull_request", "ruleset_id": 7, "parameters": []int{1}}})}, forge.ErrRetryable, "the rule pull_request of the ruleset 7"},
	} {
		r, d := newReplayServer(t)
		r.on("GET repos/acme/fleet", okResponse(jsonObject{}))
		for call, answer := range c.answers {
			r.on(call, answer)
		}
		if got, err := d.Rules(ctx, testRepoName, "main"); !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
	}
}
