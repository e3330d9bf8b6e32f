package facts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/hmarr/codeowners"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/wording"
	"github.com/liftlock/liftlock/policies"
)

// codeownersFiles are where forges look for the file; the first that is there counts.
var codeownersFiles = []string{".github/CODEOWNERS", ".gitea/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS"}

// Bounds on what is read of the file, and of what it says.
const (
	maxCodeowners  = 1 << 20 // bytes; GitHub's own bound is 3 MB
	maxOwnedFiles  = 1000    // changed files that are looked up
	maxFileOwners  = 50      // of one file
	maxOwnersError = 300
)

// errNoCodeowners says that a branch has no CODEOWNERS.
var errNoCodeowners = fmt.Errorf("the branch has no CODEOWNERS (%s)", strings.Join(codeownersFiles, ", "))

// readCodeowners reads a tree's CODEOWNERS.
func readCodeowners(tree fs.FS) (codeowners.Ruleset, error) {
	for _, name := range codeownersFiles {
		info, err := fs.Stat(tree, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look at %s: %w", name, err)
		}
		if info.IsDir() {
			continue
		}
		if info.Size() > maxCodeowners {
			return nil, fmt.Errorf("%s is larger than %d bytes", name, maxCodeowners)
		}
		raw, err := fs.ReadFile(tree, name)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		rules, err := parseCodeowners(raw)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		return rules, nil
	}
	return nil, errNoCodeowners
}

// parseCodeowners reads the rules; a line that isn't understood is an error, because it
// may be the one that counts.
func parseCodeowners(raw []byte) (codeowners.Ruleset, error) {
	rules, err := codeowners.ParseFile(bytes.NewReader(raw))
	if err != nil {
		return nil, errors.New(wording.ClipLine(err.Error(), maxOwnersError))
	}
	return rules, nil
}

// findOwners says who owns files, by the last rule that matches each: logins and teams as
// policies have them. Owners by address belong to no account and are left as they are, so
// that they match nobody.
func findOwners(rules codeowners.Ruleset, paths []string) ([]policies.OwnedFile, error) {
	if len(paths) > maxOwnedFiles {
		return nil, fmt.Errorf("%d files are changed, more than are looked up", len(paths))
	}
	out := make([]policies.OwnedFile, 0, len(paths))
	for _, path := range paths {
		rule, err := rules.Match(path)
		if err != nil {
			return nil, fmt.Errorf("find the owners of %s: %s", wording.ClipLine(path, maxOwnersError), wording.ClipLine(err.Error(), maxOwnersError))
		}
		file := policies.OwnedFile{Path: path}
		if rule != nil {
			for _, owner := range rule.Owners[:min(len(rule.Owners), maxFileOwners)] {
				file.Owners = append(file.Owners, strings.TrimPrefix(owner.String(), "@"))
			}
		}
		out = append(out, file)
	}
	return out, nil
}

// requiresOwners says that a gate hangs on who owns the changed files.
func requiresOwners(gates []policies.Gate) bool {
	return slices.ContainsFunc(gates, func(g policies.Gate) bool { return g.Approvals != nil && g.Approvals.From.Codeowners })
}

// addOwners fills in who owns what an open promotion changes, by the CODEOWNERS of the
// branch that it is merged into, where a gate asks. What can't be told is said.
func (o *Gatherer) addOwners(ctx context.Context, ev *Evaluation, env *promotion.Env, p *OpenPull) {
	f := &p.Review
	if !requiresOwners(env.Gates) {
		return
	}
	m := ev.Snapshot.Repo.Mirror
	rules, err := readCodeowners(m.Tree(env.Tip))
	if err == nil {
		var paths []string
		if paths, err = changedPaths(ctx, m, p.Base, p.Head); err == nil {
			f.Files, err = findOwners(rules, paths)
		}
	}
	if f.FilesRead = err == nil; err != nil {
		f.Files, f.FilesErr = nil, err.Error()
	}
}

// addTeams fills in, for each who reviewed, which of the teams that the gates ask for they
// are in. A team that can't be read is said; what is worth another try is an error.
func (o *Gatherer) addTeams(ctx context.Context, ev *Evaluation, env *promotion.Env, p *OpenPull) error {
	f := &p.Review
	for _, team := range policies.ListTeams(env.Gates, f.Files) {
		for _, reviews := range [][]policies.Approval{f.Approvals, f.Rejections} {
			for i := range reviews {
				is, err := o.IsInTeam(ctx, ev.Snapshot.Repo, team, reviews[i].User, ev.fresh)
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

// MayApprove says whether an approvals gate would count the review of an account that may
// write and is no author: it is named, in a team that is, or an owner of any file that the
// branch's CODEOWNERS names.
func (o *Gatherer) MayApprove(ctx context.Context, r *Repository, from *policies.From, commit, login string) (bool, error) {
	if from.IsEmpty() || slices.ContainsFunc(from.Users, func(u string) bool { return strings.EqualFold(u, login) }) {
		return true, nil
	}
	teams := slices.Clone(from.Teams)
	if from.Codeowners {
		rules, err := readCodeowners(r.Mirror.Tree(commit))
		if err != nil {
			return false, err
		}
		for _, rule := range rules {
			for _, owner := range rule.Owners {
				name := strings.TrimPrefix(owner.String(), "@")
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
		is, err := o.IsInTeam(ctx, r, team, login, true)
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
