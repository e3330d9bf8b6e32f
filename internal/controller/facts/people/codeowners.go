package people

import (
	"context"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/policies"
)

// requiresOwners says that a gate hangs on who owns the changed files.
func requiresOwners(gates []policies.Gate) bool {
	return slices.ContainsFunc(gates, func(g policies.Gate) bool { return g.Approvals != nil && g.Approvals.From.Codeowners })
}

// AddOwners fills in who owns what an open promotion changes, by the CODEOWNERS of the branch that
// it is merged into, where a gate asks. Files whose owners can't be told are named.
func AddOwners(ctx context.Context, r *branch.Repository, env *promotion.Env, p *promotion.Pull, base string) {
	f := &p.Review
	if !requiresOwners(env.Gates) {
		return
	}
	rules, err := readCodeowners(r.Mirror.Tree(env.Tip), r.ForgeType)
	if err == nil {
		var paths []string
		if paths, err = branch.ChangedPaths(ctx, r.Mirror, base, p.Head); err == nil {
			f.Files, err = rules.findOwners(paths)
		}
	}
	if f.FilesRead = err == nil; err != nil {
		f.Files, f.FilesErr = nil, err.Error()
	}
}

// AddTeams fills in, for each who reviewed, which of the teams that the gates ask for they
// are in. A team that can't be read is said; what is worth another try is an error.
func (tg *TeamGatherer) AddTeams(ctx context.Context, r *branch.Repository, env *promotion.Env, f *policies.Facts, fresh bool) error {
	// Where the pipeline's own gate is skipped, the server's stands by itself.
	for _, team := range policies.ListTeams(slices.Concat(env.Gates, env.Floor), f.Files) {
		for _, reviews := range [][]policies.Approval{f.Approvals, f.Rejections} {
			for i := range reviews {
				is, err := tg.IsInTeam(ctx, r, team, reviews[i].User, fresh)
				switch {
				case err == nil && is:
					reviews[i].Teams = append(reviews[i].Teams, team)
				case err == nil:
				case forge.IsRetryable(err) || ctx.Err() != nil:
					return err
				default:
					if f.TeamsErr == nil {
						f.TeamsErr = map[string]string{}
					}
					f.TeamsErr[strings.ToLower(team)] = err.Error()
				}
			}
		}
	}
	return nil
}

// MayApprove says whether an approvals gate would count the review of an account that may write and
// is no author. The account is named, in a named team, or an owner of any file that the branch's
// CODEOWNERS names.
func (tg *TeamGatherer) MayApprove(ctx context.Context, r *branch.Repository, from *policies.From, commit, login string) (bool, error) {
	if from.IsEmpty() || slices.ContainsFunc(from.Users, func(u string) bool { return strings.EqualFold(u, login) }) {
		return true, nil
	}
	teams := slices.Clone(from.Teams)
	if from.Codeowners {
		rules, err := readCodeowners(r.Mirror.Tree(commit), r.ForgeType)
		if err != nil {
			return false, err
		}
		for _, rule := range rules.rules {
			for _, name := range rule.owners {
				if strings.EqualFold(name, login) {
					return true, nil
				}
				if _, _, err := policies.ParseTeam(name); err == nil && !slices.Contains(teams, name) && len(teams) < maxOwnerTeams {
					teams = append(teams, name)
				}
			}
		}
	}
	var failed error
	for _, team := range teams {
		is, err := tg.IsInTeam(ctx, r, team, login, true)
		if is {
			return true, nil
		}
		if err != nil && failed == nil {
			failed = err
		}
	}
	return false, failed
}

// maxOwnerTeams bounds the teams that a command's author is looked for in.
const maxOwnerTeams = 200
