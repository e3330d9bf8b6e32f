package github

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/rest"
)

// protection is the classic protection of a branch ("Get branch protection").
type protection struct {
	Checks *struct {
		Strict   bool     `json:"strict"`
		Contexts []string `json:"contexts"`
	} `json:"required_status_checks"`
	Reviews *struct {
		Approvals        int  `json:"required_approving_review_count"`
		CodeOwners       bool `json:"require_code_owner_reviews"`
		DropsApprovals   bool `json:"dismiss_stale_reviews"`
		LastPushApproval bool `json:"require_last_push_approval"`
		// Bypass is who merges without the reviews.
		Bypass accounts `json:"bypass_pull_request_allowances"`
	} `json:"required_pull_request_reviews"`
	Signatures    enabled `json:"required_signatures"`
	LinearHistory enabled `json:"required_linear_history"`
	Threads       enabled `json:"required_conversation_resolution"`
	Locked        enabled `json:"lock_branch"`
	// Admins says that it binds administrators too. Else administrators, and roles that may bypass
	// it, merge whatever it demands.
	Admins       enabled   `json:"enforce_admins"`
	Restrictions *accounts `json:"restrictions"`
}

// accounts are those that a protection names.
type accounts struct {
	Users []struct {
		Login string `json:"login"`
	} `json:"users"`
	Teams []struct {
		Slug string `json:"slug"`
	} `json:"teams"`
	Apps []struct {
		Slug string `json:"slug"`
	} `json:"apps"`
}

// names are their logins, and what the teams are called.
func (a *accounts) names() []string {
	names := []string{}
	for _, u := range a.Users {
		names = append(names, u.Login)
	}
	for _, t := range a.Teams {
		names = append(names, "team "+t.Slug)
	}
	for _, app := range a.Apps {
		names = append(names, app.Slug+"[bot]")
	}
	return names
}

type enabled struct {
	Enabled bool `json:"enabled"`
}

// addProtection adds the branch's classic protection. Only an administrator may read it; what
// everybody sees of it are the required checks. admin says that the credentials are one's.
func (d *Driver) addProtection(ctx context.Context, r forge.Repo, branch string, admin bool, found *forge.BranchRules) error {
	ctx, owner, name := inRepo(ctx, r)
	path := fmt.Sprintf("repos/%s/%s/branches/%s", owner, name, rest.Segment(branch))
	var p protection
	_, err := d.getJSON(ctx, path+"/protection", &p)
	switch {
	case err == nil:
		set := p.ruleSet()
		if err := d.addBypass(ctx, &p, admin, &set); err != nil {
			return err
		}
		found.Sets = append(found.Sets, set)
		return nil
	case rest.StatusOf(err) == http.StatusNotFound && rest.Says(err, "branch not protected"):
		return nil
	case rest.StatusOf(err) != http.StatusNotFound && rest.StatusOf(err) != http.StatusForbidden || forge.IsRetryable(err):
		return wrapError("read the protection of the branch "+branch+" of "+r.String(), err)
	}
	var seen struct {
		Protected  bool `json:"protected"`
		Protection struct {
			Enabled bool `json:"enabled"`
			Checks  struct {
				Level    string   `json:"enforcement_level"` // off, non_admins or everyone
				Contexts []string `json:"contexts"`
			} `json:"required_status_checks"`
		} `json:"protection"`
	}
	if _, err = d.getJSON(ctx, path, &seen); err != nil {
		return wrapError("read the branch "+branch+" of "+r.String(), err)
	}
	if !seen.Protection.Enabled {
		return nil // also where rulesets protect it, which is all of seen.Protected then
	}
	set := forge.RuleSet{Name: "branch protection"}
	if seen.Protection.Checks.Level != "off" {
		set.Checks = seen.Protection.Checks.Contexts
	}
	if seen.Protection.Checks.Level == "non_admins" {
		set.Bypassed, set.MaybeBypassed = admin, !admin
	}
	found.Sets = append(found.Sets, set)
	found.Hidden = "what else the branch protection of " + branch +
		" demands, which only credentials that may read the repository's administration see"
	return nil
}

// addBypass adds whether the credentials may merge past a protection. The members of the teams that
// it names, and the rights of an organisation's own roles, aren't shown.
func (d *Driver) addBypass(ctx context.Context, p *protection, admin bool, set *forge.RuleSet) error {
	set.Bypassed, set.MaybeBypassed = admin && !p.Admins.Enabled, !admin && !p.Admins.Enabled
	if p.Reviews == nil || set.Bypassed || set.MaybeBypassed {
		return nil
	}
	named := p.Reviews.Bypass.names()
	if len(named) == 0 {
		return nil
	}
	me, err := d.Me(ctx)
	if err != nil {
		return err
	}
	// Only the reviews, and not the checks.
	set.MaybeBypassed = len(p.Reviews.Bypass.Teams) > 0 || slices.ContainsFunc(named,
		func(who string) bool { return strings.EqualFold(who, me.Login) })
	return nil
}

func (p *protection) ruleSet() forge.RuleSet {
	set := forge.RuleSet{Name: "branch protection", Signatures: p.Signatures.Enabled, LinearHistory: p.LinearHistory.Enabled,
		Threads: p.Threads.Enabled}
	if c := p.Checks; c != nil {
		set.UpToDate, set.Checks = c.Strict, c.Contexts
	}
	if v := p.Reviews; v != nil {
		set.Approvals, set.CodeOwners, set.DropsApprovals, set.LastPushApproval = v.Approvals, v.CodeOwners, v.DropsApprovals,
			v.LastPushApproval
	}
	if p.Locked.Enabled {
		set.Others = append(set.Others, "the branch is locked")
	}
	if a := p.Restrictions; a != nil {
		set.Mergers = a.names()
	}
	return set
}
