package github

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	gh "github.com/google/go-github/v60/github"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/rest"
)

// activeRule is one rule that is in force for a branch ("Get rules for a branch"). go-github
// refuses the whole list for one type that it doesn't know, so it is read here.
type activeRule struct {
	Type       string          `json:"type"`
	RulesetID  int64           `json:"ruleset_id"`
	Parameters json.RawMessage `json:"parameters"`
}

// ruleParameters is the union of what is read of the parameters of rules.
type ruleParameters struct {
	Approvals        int               `json:"required_approving_review_count"`
	CodeOwners       bool              `json:"require_code_owner_review"`
	DropsApprovals   bool              `json:"dismiss_stale_reviews_on_push"`
	LastPushApproval bool              `json:"require_last_push_approval"`
	Threads          bool              `json:"required_review_thread_resolution"`
	Methods          []string          `json:"allowed_merge_methods"`
	Reviewers        []json.RawMessage `json:"required_reviewers"`

	Checks []struct {
		Context string `json:"context"`
	} `json:"required_status_checks"`
	Strict bool `json:"strict_required_status_checks_policy"`

	Deployments []string `json:"required_deployment_environments"`

	QueueMethod  string `json:"merge_method"`
	QueueTimeout int    `json:"check_response_timeout_minutes"`
}

// Rules reads the rules of all rulesets that are in force for a branch, also those of its
// organisation, and the branch's classic protection, which isn't among them.
func (d *Driver) Rules(ctx context.Context, r forge.Repo, branch string) (*forge.BranchRules, error) {
	found, err := d.readRulesets(ctx, r, branch)
	if err != nil {
		return nil, err
	}
	ctx, owner, name := inRepo(ctx, r)
	repo, _, err := d.api.Repositories.Get(ctx, owner, name)
	if err != nil {
		return nil, wrapError("read the settings of "+r.String(), err)
	}
	if err := d.addProtection(ctx, r, branch, repo.GetPermissions()["admin"], found); err != nil {
		return nil, err
	}
	addMethods(repo, found)
	return found, nil
}

// addMethods adds how the repository's settings let it merge. They are shown to those who may
// write.
func addMethods(repo *gh.Repository, found *forge.BranchRules) {
	set := forge.RuleSet{Name: "the repository's settings"}
	for _, m := range []struct {
		name    string
		allowed bool
	}{{"merge", repo.GetAllowMergeCommit()}, {"squash", repo.GetAllowSquashMerge()}, {"rebase", repo.GetAllowRebaseMerge()}} {
		if m.allowed {
			set.Methods = append(set.Methods, m.name)
		}
	}
	if len(set.Methods) > 0 {
		found.Sets = append(found.Sets, set)
	}
}

// readRulesets reads the rulesets. A server that is too old to have any answers 404.
func (d *Driver) readRulesets(ctx context.Context, r forge.Repo, branch string) (*forge.BranchRules, error) {
	found := &forge.BranchRules{}
	sets := map[int64]*forge.RuleSet{}
	var order []int64
	var wrong error // with a rule
	op, err := d.forEachRule(ctx, r, branch, func(rule activeRule) bool {
		if sets[rule.RulesetID] == nil {
			sets[rule.RulesetID] = &forge.RuleSet{Name: fmt.Sprintf("ruleset %d", rule.RulesetID)}
			order = append(order, rule.RulesetID)
		}
		wrong = addRule(sets[rule.RulesetID], rule)
		return wrong != nil
	})
	if wrong != nil {
		return nil, wrapError(op, wrong)
	}
	if err != nil && rest.StatusOf(err) != http.StatusNotFound {
		return nil, err
	}
	for _, id := range order {
		if err := d.nameRuleset(ctx, r, id, sets[id]); err != nil {
			return nil, err
		}
		found.Sets = append(found.Sets, *sets[id])
	}
	return found, nil
}

// forEachRule reads the rules that are in force for a branch, until each has enough.
func (d *Driver) forEachRule(ctx context.Context, r forge.Repo, branch string, each func(activeRule) (enough bool)) (op string, err error) {
	ctx, owner, name := inRepo(ctx, r)
	op = "read the rules of the branch " + branch + " of " + r.String()
	return op, forEach(op, bounds, func(page gh.ListOptions) (rules []activeRule, resp *gh.Response, err error) {
		resp, err = d.getJSON(ctx, fmt.Sprintf("repos/%s/%s/rules/branches/%s?per_page=%d&page=%d", owner, name, rest.Segment(branch),
			page.PerPage, max(page.Page, 1)), &rules)
		return rules, resp, err
	}, each)
}

// nameRuleset reads what a ruleset is called, and whether it binds the credentials.
func (d *Driver) nameRuleset(ctx context.Context, r forge.Repo, id int64, set *forge.RuleSet) error {
	ruleset, err := d.readRuleset(ctx, r, id)
	if err != nil {
		return err
	}
	if ruleset == nil { // an organisation's, which not everybody sees: its number will do
		set.MaybeBypassed = true
		return nil
	}
	set.Name = fmt.Sprintf("ruleset %q", rest.ClipMessage(ruleset.Name))
	set.Bypassed = ruleset.Bypass == bypassPulls || ruleset.bypassesPush()
	set.MaybeBypassed = !set.Bypassed && ruleset.Bypass != "never"
	return nil
}

// bypassPulls is the bypass that lets merges past, and no push.
const bypassPulls = "pull_requests_only"

type rulesetSummary struct {
	Name   string `json:"name"`
	Bypass string `json:"current_user_can_bypass"` // always, pull_requests_only, exempt or never
}

// bypassesPush says whether what the credentials push passes by the ruleset.
func (r *rulesetSummary) bypassesPush() bool { return r.Bypass == "always" || r.Bypass == "exempt" }

// readRuleset reads a ruleset; nil: the credentials don't see it.
func (d *Driver) readRuleset(ctx context.Context, r forge.Repo, id int64) (*rulesetSummary, error) {
	ctx, owner, name := inRepo(ctx, r)
	var ruleset rulesetSummary
	_, err := d.getJSON(ctx, fmt.Sprintf("repos/%s/%s/rulesets/%d", owner, name, id), &ruleset)
	switch {
	case rest.StatusOf(err) == http.StatusNotFound, rest.StatusOf(err) == http.StatusForbidden && !forge.IsRetryable(err):
		return nil, nil
	case err != nil:
		return nil, wrapError(fmt.Sprintf("read the ruleset %d of %s", id, r), err)
	}
	return &ruleset, nil
}

// addRule adds what a rule demands of a merge. Rules about creating, deleting and pushing
// branches demand nothing of one.
func addRule(set *forge.RuleSet, rule activeRule) error {
	var p ruleParameters
	if len(rule.Parameters) > 0 {
		if err := json.Unmarshal(rule.Parameters, &p); err != nil {
			return fmt.Errorf("read the parameters of the rule %s of the ruleset %d: %w", rest.ClipMessage(rule.Type), rule.RulesetID, err)
		}
	}
	switch rule.Type {
	case "pull_request":
		set.Approvals, set.CodeOwners, set.DropsApprovals = p.Approvals, p.CodeOwners, p.DropsApprovals
		set.LastPushApproval, set.Threads, set.Methods, set.TeamReviews = p.LastPushApproval, p.Threads, p.Methods, len(p.Reviewers) > 0
	case "required_status_checks":
		set.UpToDate = p.Strict
		for _, c := range p.Checks {
			set.Checks = append(set.Checks, c.Context)
		}
	case "required_signatures":
		set.Signatures = true
	case "required_linear_history":
		set.LinearHistory = true
	case "required_deployments":
		set.Deployments = p.Deployments
	case "merge_queue":
		set.Queue = &forge.QueueRule{Method: strings.ToLower(p.QueueMethod), Timeout: time.Duration(p.QueueTimeout) * time.Minute}
	case "update":
		set.Others = append(set.Others, "only who may bypass it moves the branch")
	case "workflows", "code_scanning", "code_quality", "commit_message_pattern", "commit_author_email_pattern", "committer_email_pattern",
		"file_path_restriction", "max_file_path_length", "file_extension_restriction", "max_file_size":
		set.Others = append(set.Others, strings.ReplaceAll(rule.Type, "_", " "))
	}
	return nil
}

// getJSON reads what go-github has no call for, or can't decode. The path is escaped.
func (d *Driver) getJSON(ctx context.Context, path string, out any) (*gh.Response, error) {
	req, err := d.api.NewRequest(http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	return d.api.Do(ctx, req, out)
}
