package gitea

import (
	"context"
	"fmt"
	"net/http"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/rest"
)

// Rules reads which methods a repository merges by, and the branch's protection. Everybody
// sees of that how many approvals and which checks it demands; administrators see the rest.
func (d *Driver) Rules(ctx context.Context, r forge.Repo, branch string) (*forge.BranchRules, error) {
	op := "read the rules of the branch " + branch + " of " + r.String()
	repo, _, err := d.newClient(ctx).GetRepo(r.Owner, r.Name)
	if err != nil {
		return nil, rest.Wrap(op, err)
	}
	found := &forge.BranchRules{Sets: []forge.RuleSet{repositorySet(repo)}}
	var seen sdk.Branch
	switch err := d.getJSON(ctx, op, nil, &seen, "repos", r.Owner, r.Name, "branches", branch); {
	case rest.StatusOf(err) == http.StatusNotFound, err == nil && !seen.Protected:
		return found, nil
	case err != nil:
		return nil, err
	}
	set := forge.RuleSet{Name: "branch protection", Approvals: int(seen.RequiredApprovals)}
	if seen.EnableStatusCheck {
		set.Checks = seen.StatusCheckContexts
	}
	if !seen.UserCanMerge {
		set.Mergers = []string{"whom the protection names"}
	}
	if err := d.addProtection(ctx, op, r, seen.EffectiveBranchProtectionName, found, &set); err != nil {
		return nil, err
	}
	found.Sets = append(found.Sets, set)
	return found, nil
}

// addProtection adds to a set what only administrators see.
func (d *Driver) addProtection(ctx context.Context, op string, r forge.Repo, name string, found *forge.BranchRules,
	set *forge.RuleSet) error {
	var p sdk.BranchProtection
	switch err := d.getJSON(ctx, op, nil, &p, "repos", r.Owner, r.Name, "branch_protections", name); {
	case rest.StatusOf(err) == http.StatusNotFound, rest.StatusOf(err) == http.StatusForbidden:
		found.Hidden = "what else the branch protection demands, which only administrators of the repository see"
		return nil
	case err != nil:
		return err
	}
	set.Name = fmt.Sprintf("branch protection %q", name)
	// Gitea doesn't look at the commits: it merges where it can sign the merge by itself.
	set.UpToDate, set.SignedMerges, set.DropsApprovals = p.BlockOnOutdatedBranch, p.RequireSignedCommits, p.DismissStaleApprovals
	if p.EnableMergeWhitelist {
		set.Mergers = append([]string{}, p.MergeWhitelistUsernames...)
		for _, team := range p.MergeWhitelistTeams {
			set.Mergers = append(set.Mergers, "team "+team)
		}
	}
	if p.BlockOnOfficialReviewRequests {
		set.Others = append(set.Others, "requested reviews are given")
	}
	if p.ProtectedFilePatterns != "" {
		set.Others = append(set.Others, "files that it protects aren't changed")
	}
	return nil
}

// repositorySet is how a repository merges.
func repositorySet(r *sdk.Repository) forge.RuleSet {
	set := forge.RuleSet{Name: "the repository's settings"}
	for _, m := range []struct {
		name    string
		allowed bool
	}{{"merge", r.AllowMerge}, {"squash", r.AllowSquash}, {"rebase", r.AllowRebase}} {
		if m.allowed {
			set.Methods = append(set.Methods, m.name)
		}
	}
	return set
}
