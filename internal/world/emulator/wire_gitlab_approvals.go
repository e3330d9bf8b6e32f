package emulator

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// reviewsMissing says how many approvals a merge request lacks, and whether somebody who may
// write asks for changes. In the free edition nothing is required.
func (f *Forge) reviewsMissing(p *pull) (missing int, rejected bool) {
	if p.repo.gitlab.Free {
		return 0, false
	}
	given := 0
	for who, state := range p.reviewStates() {
		if p.repo.permissionOf(who) < Write {
			continue
		}
		switch state {
		case "APPROVED":
			given++
		case "CHANGES_REQUESTED":
			rejected = true
		}
	}
	return max(0, p.repo.protections[p.base].Approvals-given), rejected
}

// approval is one that counts.
type approval struct {
	by *account
	at time.Time
}

// approvals are those that are there, by time.
func (p *pull) approvals() []approval {
	var all []approval
	states := p.reviewStates()
	for _, v := range slices.Backward(p.reviews) {
		if v.state == "APPROVED" && states[v.user] == "APPROVED" &&
			!slices.ContainsFunc(all, func(a approval) bool { return a.by == v.user }) {
			all = append(all, approval{by: v.user, at: v.at})
		}
	}
	slices.Reverse(all)
	return all
}

// mayApprove says whether an account may approve: an author may not, and nobody twice.
func mayApprove(p *pull, a *account) bool {
	return a != p.author && p.repo.permissionOf(a) >= Write && p.reviewStates()[a] != "APPROVED"
}

func getApprovals(c *call, p *pull) (any, error) {
	shown, has := []restObject{}, false
	for _, a := range p.approvals() {
		shown = append(shown, restObject{"user": c.gitlabUser(a.by), "approved_at": formatGitLabTime(a.at)})
		has = has || a.by == c.user
	}
	w := restObject{"approved": len(shown) > 0, "approved_by": shown, "user_can_approve": mayApprove(p, c.user), "user_has_approved": has}
	if p.repo.gitlab.Free {
		return w, nil
	}
	missing, _ := c.reviewsMissing(p)
	need := p.repo.protections[p.base].Approvals
	for k, v := range (restObject{"id": p.id, "iid": p.number, "project_id": p.repo.id, "title": p.title, "description": p.body,
		"state":      p.gitlabMRState(),
		"created_at": formatGitLabTime(p.created), "updated_at": formatGitLabTime(p.updated), "approvals_required": need,
		"approvals_left":     missing,
		"has_approval_rules": need > 0, "approved": missing == 0}) {
		w[k] = v
	}
	left := []restObject{}
	if missing > 0 {
		left = append(left, restObject{"id": p.repo.id, "name": "All Members", "rule_type": "any_approver"})
	}
	w["approval_rules_left"] = left
	return w, nil
}

// getApprovalSettings are the project's own, of its default branch (api/merge_request_approvals.md).
func getApprovalSettings(c *call) (any, error) {
	if c.repo.gitlab.Free {
		return nil, gitlabNotFound("")
	}
	need := c.repo.protections[c.repo.branch]
	return restObject{"approvals_before_merge": need.Approvals, "reset_approvals_on_push": need.DismissStale,
		"selective_code_owner_removals":                  false,
		"disable_overriding_approvers_per_merge_request": false, "merge_requests_author_approval": false,
		"merge_requests_disable_committers_approval": false, "require_password_to_approve": false}, nil
}

// getApprovalState shows the rules: one, that anybody who may write can meet.
func getApprovalState(c *call, p *pull) (any, error) {
	if p.repo.gitlab.Free {
		return nil, gitlabNotFound("")
	}
	rules := []restObject{}
	if need := p.repo.protections[p.base].Approvals; need > 0 {
		missing, _ := c.reviewsMissing(p)
		var by []*account
		for _, a := range p.approvals() {
			by = append(by, a.by)
		}
		rules = append(rules, restObject{"id": p.repo.id, "name": "All Members", "rule_type": "any_approver", "report_type": nil,
			"section":            nil,
			"approvals_required": need, "approved": missing == 0, "approved_by": c.gitlabUsers(by), "code_owner": false,
			"contains_hidden_groups": false,
			"eligible_approvers":     []any{}, "groups": []any{}, "overridden": false, "source_rule": nil, "users": []any{}})
	}
	return restObject{"approval_rules_overwritten": false, "rules": rules}, nil
}

// approveMergeRequest is 401 to who may not approve or has approved.
func approveMergeRequest(c *call, p *pull) (any, error) {
	q, err := c.params()
	if err != nil {
		return nil, err
	}
	if sha := q.text("sha"); sha != "" && sha != p.head {
		return nil, gitlabRefusal(http.StatusConflict, "SHA does not match HEAD of source branch: "+p.head)
	}
	if !mayApprove(p, c.user) || !p.open {
		return nil, gitlabUnauthorized()
	}
	if _, err := c.addReview(p, c.user, "APPROVE", "", ""); err != nil {
		return nil, err
	}
	c.status = http.StatusCreated
	return getApprovals(c, p)
}

func unapproveMergeRequest(c *call, p *pull) (any, error) {
	if p.reviewStates()[c.user] != "APPROVED" {
		return nil, gitlabNotFound("")
	}
	for _, v := range p.reviews {
		if v.user == c.user && v.state == "APPROVED" {
			v.state = "DISMISSED"
			c.markUpdated(p)
			c.addSystemNote(p, c.user, "unapproved this merge request")
			c.emitReview(p, c.user, v, "dismissed")
		}
	}
	c.status = http.StatusCreated
	return getApprovals(c, p)
}

// reviewerState is how a reviewer's review stands, in GitLab's words.
func (p *pull) reviewerState(a *account) string {
	switch p.reviewStates()[a] {
	case "APPROVED":
		return "approved"
	case "CHANGES_REQUESTED":
		return "requested_changes"
	case "DISMISSED":
		return "unapproved"
	}
	if slices.ContainsFunc(p.reviews, func(v *review) bool { return v.user == a }) {
		return "reviewed"
	}
	return "unreviewed"
}

func listReviewers(c *call, p *pull) (any, error) {
	shown := []restObject{}
	for _, a := range p.reviewers {
		shown = append(shown, restObject{"user": c.gitlabUser(a), "state": p.reviewerState(a), "created_at": formatGitLabTime(p.created)})
	}
	return shown, nil
}

// followReview leaves behind what GitLab does of a review: a note of its own, the reviewer's
// words as a note, and who asks for changes among the reviewers.
func (f *Forge) followReview(p *pull, v *review) error {
	switch v.state {
	case "APPROVED":
		f.addSystemNote(p, v.user, "approved this merge request")
	case "CHANGES_REQUESTED":
		f.addSystemNote(p, v.user, "requested changes")
		if !slices.Contains(p.reviewers, v.user) {
			p.reviewers = append(p.reviewers, v.user)
		}
	}
	if strings.TrimSpace(v.body) == "" {
		return nil
	}
	_, err := f.addComment(p, v.user, v.body)
	return err
}

// followPushedHead follows a push to a merge request's branch, which ends what would have
// merged it by itself. Approvals that it takes back
// are still shown for a while.
func (f *Forge) followPushedHead(p *pull, by *account, before string) {
	p.gitlab.autoMerge = nil
	f.dropCar(p, by)
	need := p.repo.protections[p.base]
	p.gitlab.resetDue = p.gitlab.resetDue || need.DismissStale && len(p.approvals()) > 0
	p.gitlab.resetShown = false
	f.markUpdated(p)
	f.addSystemNote(p, by, "added commits")
	f.emitMergeRequest(p, by, "update", nil, restObject{"oldrev": before})
}

// resetApprovals takes back the approvals of a head that is no longer.
func (f *Forge) resetApprovals(p *pull) error {
	p.gitlab.resetDue = false
	for _, v := range p.reviews {
		if v.state == "APPROVED" {
			v.state = "DISMISSED"
		}
	}
	f.markUpdated(p)
	f.emitMergeRequest(p, p.author, "unapproved", nil, restObject{"system": true, "system_action": "approvals_reset_on_push"})
	return nil
}
