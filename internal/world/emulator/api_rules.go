package emulator

import (
	"net/http"
	"slices"
	"strings"
)

// rulesRoutes tell what merging into a branch needs.
var rulesRoutes = []route{
	{pattern: "GET " + repoPath + "/rules/branches/{branch}", permission: Read, handle: listActiveRules},
	{pattern: "GET " + repoPath + "/rulesets/{id}", permission: Read, handle: getRuleset},
	{pattern: "GET " + repoPath + "/branches/{branch}/protection", permission: Admin, handle: getProtection},
	{pattern: "GET " + repoPath + "/branches/{branch}", permission: Read, handle: getBranch},
}

// wireRule is one rule of a ruleset, with where it comes from where it is said of a branch.
type wireRule struct {
	Type       string         `json:"type"`
	SourceType string         `json:"ruleset_source_type,omitempty"`
	Source     string         `json:"ruleset_source,omitempty"`
	RulesetID  int64          `json:"ruleset_id,omitempty"`
	Parameters map[string]any `json:"parameters,omitempty"`
}

// rules are the rules that a ruleset has for what a branch asks for.
func (p *Protection) rules() []wireRule {
	var rules []wireRule
	if p.Approvals > 0 || len(p.CodeOwners) > 0 {
		rules = append(rules, wireRule{Type: "pull_request", Parameters: map[string]any{
			"required_approving_review_count": p.Approvals, "dismiss_stale_reviews_on_push": p.DismissStale,
			"require_code_owner_review":  len(p.CodeOwners) > 0,
			"require_last_push_approval": false, "required_review_thread_resolution": false, "allowed_merge_methods": mergeMethods,
		}})
	}
	if len(p.Contexts) > 0 || p.Strict {
		checks := []map[string]any{}
		for _, c := range p.Contexts {
			checks = append(checks, map[string]any{"context": c})
		}
		rules = append(rules, wireRule{Type: "required_status_checks", Parameters: map[string]any{
			"required_status_checks": checks, "strict_required_status_checks_policy": p.Strict, "do_not_enforce_on_create": false,
		}})
	}
	if p.Queue != nil {
		rules = append(rules, wireRule{Type: "merge_queue", Parameters: map[string]any{
			"merge_method": strings.ToUpper(methodOf(p.Queue)), "check_response_timeout_minutes": 60, "grouping_strategy": "ALLGREEN",
			"max_entries_to_build": 5, "max_entries_to_merge": 5, "min_entries_to_merge": 1, "min_entries_to_merge_wait_minutes": 5,
		}})
	}
	if p.Signatures {
		rules = append(rules, wireRule{Type: "required_signatures"})
	}
	return rules
}

// listActiveRules lists the rules of rulesets that are in force; classic protection has none.
func listActiveRules(c *call) (any, error) {
	p := c.repo.protections[c.r.PathValue("branch")]
	found := []wireRule{}
	if p.Ruleset != "" {
		for _, r := range p.rules() {
			r.SourceType, r.Source, r.RulesetID = "Repository", c.repo.fullName(), p.id
			found = append(found, r)
		}
	}
	for _, g := range c.repo.guards {
		if g.matches.MatchString(c.r.PathValue("branch")) {
			for _, kind := range []string{"creation", "update"} {
				found = append(found, wireRule{Type: kind, SourceType: "Repository", Source: c.repo.fullName(), RulesetID: g.id})
			}
		}
	}
	return paginate(c, found), nil
}

func getRuleset(c *call) (any, error) {
	id, err := c.pathNumber("id")
	if err != nil {
		return nil, err
	}
	for _, g := range c.repo.guards {
		if g.id == id {
			return c.wireGuard(g), nil
		}
	}
	for _, branch := range sortedKeys(c.repo.protections) {
		p := c.repo.protections[branch]
		if p.id != id || p.Ruleset == "" {
			continue
		}
		may := "never"
		if p.isBypassedBy(c.repo, c.user) {
			may = "always"
		}
		return c.wireRuleset(c.repo, branch, &p, may), nil
	}
	return nil, notFound()
}

func (f *Forge) wireRuleset(r *repository, branch string, p *Protection, mayBypass string) map[string]any {
	w := map[string]any{
		"id": p.id, "name": p.Ruleset, "target": "branch", "source_type": "Repository", "source": r.fullName(), "enforcement": "active",
		"conditions": map[string]any{"ref_name": map[string]any{"include": []string{"refs/heads/" + branch}, "exclude": []string{}}},
		"rules":      p.rules(), "node_id": nodeID("RRS", p.id), "created_at": r.created, "updated_at": r.created,
	}
	if mayBypass != "" {
		w["current_user_can_bypass"] = mayBypass
	}
	return w
}

// wireGuard shows the ruleset that guards branches.
func (c *call) wireGuard(g *branchGuard) map[string]any {
	may := "never"
	if g.admits(c.user) {
		may = "always"
	}
	return map[string]any{
		"id": g.id, "name": "branches of " + g.pattern, "target": "branch", "source_type": "Repository", "source": c.repo.fullName(),
		"enforcement": "active",
		"conditions":  map[string]any{"ref_name": map[string]any{"include": []string{"refs/heads/" + g.pattern}, "exclude": []string{}}},
		"rules":       []wireRule{{Type: "creation"}, {Type: "update"}}, "node_id": nodeID("RRS", g.id), "created_at": c.repo.created,
		"updated_at":              c.repo.created,
		"current_user_can_bypass": may,
	}
}

// isBypassedBy says whether an account merges whatever the branch asks for.
func (p *Protection) isBypassedBy(r *repository, a *account) bool {
	if p.Ruleset == "" {
		return p.AdminsExempt && r.permissionOf(a) >= Admin
	}
	return slices.Contains(p.Bypass, a.login)
}

// classicProtection is a branch's classic protection; false where it has none.
func (r *repository) classicProtection(branch string) (Protection, bool) {
	p, ok := r.protections[branch]
	return p, ok && p.Ruleset == ""
}

func getProtection(c *call) (any, error) {
	branch := c.r.PathValue("branch")
	if c.repo.branchHead(branch) == "" {
		return nil, newAPIError(http.StatusNotFound, "Branch not found")
	}
	p, ok := c.repo.classicProtection(branch)
	if !ok {
		return nil, newAPIError(http.StatusNotFound, "Branch not protected")
	}
	url := c.repoURL(c.repo) + "/branches/" + branch + "/protection"
	enabled := func(on bool) map[string]any { return map[string]any{"enabled": on} }
	w := map[string]any{
		"url": url, "required_signatures": map[string]any{"url": url + "/required_signatures", "enabled": p.Signatures},
		"enforce_admins":          map[string]any{"url": url + "/enforce_admins", "enabled": !p.AdminsExempt},
		"required_linear_history": enabled(false), "allow_force_pushes": enabled(false), "allow_deletions": enabled(false),
		"required_conversation_resolution": enabled(false), "lock_branch": enabled(false),
	}
	if len(p.Contexts) > 0 || p.Strict {
		checks := []map[string]any{}
		for _, context := range p.Contexts {
			checks = append(checks, map[string]any{"context": context, "app_id": nil})
		}
		w["required_status_checks"] = map[string]any{"url": url + "/required_status_checks", "strict": p.Strict,
			"contexts": append([]string{}, p.Contexts...), "checks": checks}
	}
	if p.Approvals > 0 || len(p.CodeOwners) > 0 {
		reviews := map[string]any{"url": url + "/required_pull_request_reviews", "required_approving_review_count": p.Approvals,
			"dismiss_stale_reviews": p.DismissStale, "require_code_owner_reviews": len(p.CodeOwners) > 0,
			"require_last_push_approval": false}
		if len(p.Bypass) > 0 {
			users := []map[string]any{}
			for _, login := range p.Bypass {
				users = append(users, map[string]any{"login": login})
			}
			reviews["bypass_pull_request_allowances"] = map[string]any{"users": users, "teams": []any{}, "apps": []any{}}
		}
		w["required_pull_request_reviews"] = reviews
	}
	return w, nil
}

// getBranch shows everybody which checks a branch requires, and no more of its protection.
func getBranch(c *call) (any, error) {
	branch := c.r.PathValue("branch")
	sha := c.repo.branchHead(branch)
	if sha == "" {
		return nil, newAPIError(http.StatusNotFound, "Branch not found")
	}
	_, protected := c.repo.protections[branch]
	p, classic := c.repo.classicProtection(branch)
	level := "off"
	if classic && len(p.Contexts) > 0 {
		level = "everyone"
		if p.AdminsExempt {
			level = "non_admins"
		}
	}
	return map[string]any{
		"name": branch, "commit": map[string]any{"sha": sha, "url": c.repoURL(c.repo) + "/commits/" + sha}, "protected": protected,
		"protection": map[string]any{"enabled": classic, "required_status_checks": map[string]any{"enforcement_level": level,
			"contexts": append([]string{}, p.Contexts...)}},
		"protection_url": c.repoURL(c.repo) + "/branches/" + branch + "/protection",
	}, nil
}

// emitRules says that what a branch asks for has changed.
func (f *Forge) emitRules(r *repository, branch string, p *Protection, existed bool) {
	action := "created"
	if existed {
		action = "edited"
	}
	if p.Ruleset != "" {
		f.emitEvent(r, r.owner, "repository_ruleset", map[string]any{"action": action,
			"repository_ruleset": f.wireRuleset(r, branch, p, "")})
		return
	}
	f.emitEvent(r, r.owner, "branch_protection_rule", map[string]any{"action": action, "rule": map[string]any{
		"id": p.id, "repository_id": r.id, "name": branch, "created_at": r.created, "updated_at": r.created,
		"required_status_checks": p.Contexts, "required_approving_review_count": p.Approvals,
	}})
}
