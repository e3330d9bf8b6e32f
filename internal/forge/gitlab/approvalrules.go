package gitlab

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/wording"
)

// notApproved is GitLab's word for a merge request that lacks approvals.
const notApproved = "not_approved"

const (
	maxRuleNames = 5  // that are named of a merge request's rules
	maxRuleName  = 80 // of each, in bytes: it is somebody's text
)

// approvalRule is a rule of a merge request's approvals, as it stands.
type approvalRule struct {
	Name     string    `json:"name"`
	Type     string    `json:"rule_type"` // any_approver, regular, code_owner or report_approver
	Section  string    `json:"section"`   // of CODEOWNERS
	Required int       `json:"approvals_required"`
	Approved bool      `json:"approved"`
	By       []account `json:"approved_by"`
}

// addApprovalRules names the rules that a merge request doesn't meet, where GitLab says that it
// lacks approvals. It only explains: where they can't be read, as in the free edition, which has
// none (404), GitLab's word says it alone.
func (d *Driver) addApprovalRules(ctx context.Context, r forge.Repo, pr *forge.PullRequest) {
	if pr.MergeReason != notApproved {
		return
	}
	var state struct {
		Rules []approvalRule `json:"rules"`
	}
	if _, err := d.callMergeRequest(ctx, "read the approval rules of "+number(r, pr.Number), r, pr.Number, http.MethodGet, nil, &state,
		"approval_state"); err != nil {
		return
	}
	var unmet []string
	for _, rule := range state.Rules {
		if !rule.Approved && rule.Required > 0 {
			unmet = append(unmet, rule.lacks())
		}
	}
	if len(unmet) > 0 {
		pr.MergeReason += ": " + wording.JoinFew(unmet, maxRuleNames)
	}
}

// lacks says what a rule waits for.
func (a *approvalRule) lacks() string {
	what := fmt.Sprintf("rule %q", wording.ClipLine(a.Name, maxRuleName))
	switch {
	case a.Type == "any_approver":
		what = "anybody's"
	case a.Type == "code_owner":
		what = fmt.Sprintf("code owners of %q", wording.ClipLine(strings.TrimSpace(a.Section+" "+a.Name), maxRuleName))
	}
	return fmt.Sprintf("%s: %d of %s", what, len(a.By), wording.Count(a.Required, "approval"))
}
