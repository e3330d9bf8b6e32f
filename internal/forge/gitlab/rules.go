package gitlab

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/rest"
)

// protectedBranch is what is read of a branch's protection.
type protectedBranch struct {
	Name         string `json:"name"`
	CodeOwners   bool   `json:"code_owner_approval_required"`
	AccessLevels []struct {
		Level       int    `json:"access_level"`
		Description string `json:"access_level_description"`
	} `json:"merge_access_levels"`
}

// Rules reads the project's settings of merges and the branch's protection. Approval rules are
// a merge request's own to GitLab, so of those only the project's number is among them.
func (d *Driver) Rules(ctx context.Context, r forge.Repo, branch string) (*forge.BranchRules, error) {
	p, err := d.readProject(ctx, r)
	if err != nil {
		return nil, err
	}
	set := p.ruleSet()
	if p.Approvals != nil {
		if set.DropsApprovals, err = d.dropsApprovals(ctx, r); err != nil {
			return nil, err
		}
	}
	found := &forge.BranchRules{Sets: []forge.RuleSet{set}}
	return found, d.addProtection(ctx, r, branch, found)
}

// dropsApprovals says whether the project removes all approvals of a merge request when commits are
// added to it. Where the account isn't shown that, it isn't known to.
func (d *Driver) dropsApprovals(ctx context.Context, r forge.Repo) (bool, error) {
	var settings struct {
		Reset bool `json:"reset_approvals_on_push"`
	}
	_, err := d.callProject(ctx, "read the approval settings of "+r.String(), r, http.MethodGet, nil, &settings, "approvals")
	switch rest.StatusOf(err) {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound:
		if !isMissingProject(err) {
			return false, nil
		}
	}
	return settings.Reset, err
}

// externalChecks is what a project demands that has checks of GitLab's answered by other services:
// Liftlock answers none, as GitLab fails one that isn't answered within two minutes.
const externalChecks = "external status checks succeed, which Liftlock doesn't answer"

func (p *project) ruleSet() forge.RuleSet {
	set := forge.RuleSet{
		Name: "the project's settings", AnyChecks: p.ChecksSucceed, Threads: p.ThreadsResolved,
		UpToDate: p.MergeMethod == "ff" || p.MergeMethod == "rebase_merge", LinearHistory: p.MergeMethod == "ff",
	}
	for _, method := range []string{"merge", "squash", "rebase"} {
		if why, _ := refuseMethod(*p, method); why == "" {
			set.Methods = append(set.Methods, method)
		}
	}
	if p.Approvals != nil {
		set.Approvals = *p.Approvals
	}
	if p.StatusChecks {
		set.Others = []string{externalChecks}
	}
	if p.QueueMerges {
		set.Queue = &forge.QueueRule{}
	}
	return set
}

// addProtection adds the protection of a branch. Everybody sees that there is one; what it is,
// Maintainers do, and only of one that names the branch itself.
func (d *Driver) addProtection(ctx context.Context, r forge.Repo, branch string, found *forge.BranchRules) error {
	var seen struct {
		Protected          bool `json:"protected"`
		DevelopersCanMerge bool `json:"developers_can_merge"`
	}
	if _, err := d.callProject(ctx, "read the branch "+branch+" of "+r.String(), r, http.MethodGet, nil, &seen, "repository", "branches",
		branch); err != nil || !seen.Protected {
		return err
	}
	var p protectedBranch
	_, err := d.callProject(ctx, "read the protection of the branch "+branch+" of "+r.String(), r, http.MethodGet, nil, &p,
		"protected_branches", branch)
	set := forge.RuleSet{Name: fmt.Sprintf("protected branch %q", branch), CodeOwners: p.CodeOwners}
	switch rest.StatusOf(err) {
	case http.StatusForbidden, http.StatusNotFound, http.StatusUnauthorized:
		if !seen.DevelopersCanMerge {
			set.Mergers = []string{"Maintainers, or whom the protection names"}
		}
		found.Hidden = "what else the protection of the branch " + branch +
			" demands: only Maintainers see it, and only where it names the branch itself"
	default:
		if err != nil {
			return err
		}
		for _, l := range p.AccessLevels {
			set.Mergers = append(set.Mergers, l.Description)
		}
		if slices.Contains(set.Mergers, developersMerge) {
			set.Mergers = nil
		}
	}
	found.Sets = append(found.Sets, set)
	return nil
}

// developersMerge is how GitLab describes that everybody who may write may merge.
const developersMerge = "Developers + Maintainers"
