package people

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
)

// findBringingCommits finds the commits that brought a release to a source environment, each time
// that it came. It also finds those that brought some of its values before, as far as the next
// environment has other values. There are none when no history knows any.
func (ag *AuthorGatherer) findBringingCommits(ctx context.Context, c *branch.ComponentBasis, source, env, release string) ([]string,
	error) {
	at := c.Unit.Envs[source]
	if at == nil {
		return nil, nil
	}
	commits, err := ag.findArrivals(ctx, c, source, at, release)
	if err != nil || len(commits) == 0 {
		return nil, err
	}
	parts, err := ag.findEarlierParts(ctx, c, at, env, commits[0])
	if err != nil {
		return nil, err
	}
	commits = append(commits, parts...)
	slices.Sort(commits)
	if commits = slices.Compact(commits); len(commits) > maxLandings {
		return nil, fmt.Errorf("it is made of more than %d pushes and pull requests", maxLandings)
	}
	return commits, nil
}

// findArrivals finds the commits with which a release came to a source environment, newest first:
// from the history that was recorded, else by walking Git. An arrival that is on record as
// Liftlock's revert doesn't count, as it made no release. A commit's own text leaves no author out.
// Anybody can write Liftlock's trailers and its address, and Liftlock reverts nothing in a source
// environment.
func (ag *AuthorGatherer) findArrivals(ctx context.Context, c *branch.ComponentBasis, source string, at *branch.ResolvedEnv,
	release string) ([]string, error) {
	var found []string
	if env := c.Env(source); env != nil {
		for _, a := range env.History {
			if a.Release == release && a.By != promotion.ByRevert && !slices.Contains(found, a.Commit) {
				if ok, err := ag.brings(ctx, c, at, a.Commit, release); err != nil {
					return nil, err
				} else if ok {
					found = append(found, a.Commit)
				}
			}
		}
	}
	if len(found) > 0 {
		return found, nil
	}
	log, _, err := ag.sourceLog(ctx, c, source, at, "")
	if err != nil {
		return nil, err
	}
	for _, ci := range log {
		if ok, err := ag.brings(ctx, c, at, ci.SHA, release); err != nil {
			return nil, err
		} else if ok {
			found = append(found, ci.SHA)
		}
	}
	return found, nil
}

// brings says whether a commit holds a release that its parent doesn't. A commit that
// isn't known any more does not.
func (ag *AuthorGatherer) brings(ctx context.Context, c *branch.ComponentBasis, at *branch.ResolvedEnv, commit, release string) (bool,
	error) {
	r := c.Snapshot.Repo
	info, err := r.Mirror.Commit(ctx, commit)
	if errors.Is(err, git.ErrUnknownCommit) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return ag.releases.ReleaseIDAt(r, commit, c.Pipeline, at) == release &&
		(len(info.Parents) == 0 || ag.releases.ReleaseIDAt(r, info.Parents[0], c.Pipeline, at) != release), nil
}

// sourceLog lists the commits of a source environment's branch that touched its files,
// newest first, from a commit or the branch's head on; all says that there are no more.
func (ag *AuthorGatherer) sourceLog(ctx context.Context, c *branch.ComponentBasis, source string, at *branch.ResolvedEnv,
	from string) (log []git.CommitInfo, all bool, err error) {
	scope, err := fieldedit.NewScope(at.Overlay(c.Pipeline.Pipeline))
	if err != nil {
		return nil, false, err
	}
	tip := c.Snapshot.BranchFor(c.Pipeline.Pipeline, source).Commit
	return ag.git.LogTouching(ctx, c.Snapshot.Repo, tip, c.Pipeline.Baseline, from, scope, branch.MaxWalkDepth(scope))
}

// findEarlierParts finds the commits before the newest that brought a release which brought some of
// its values. Two fields may have been changed one after the other, and a file again and again.
// Values that the release's next environment has already were judged when they came there.
func (ag *AuthorGatherer) findEarlierParts(ctx context.Context, c *branch.ComponentBasis, at *branch.ResolvedEnv, env,
	newest string) ([]string, error) {
	r := c.Snapshot.Repo
	now, err := ag.releases.ReadRelease(r, newest, c.Pipeline, at)
	if err != nil {
		return nil, err
	}
	there := map[string]string{} // what can't be read there is taken for missing
	if to := c.Env(env); to != nil && c.Unit.Envs[env] != nil && to.Tip != "" {
		if rel, err := ag.releases.ReadCurrent(r, to.Tip, c.Pipeline, c.Unit.Envs[env]); err == nil {
			there = ValuesOf(rel)
		}
	}
	open := map[string]fieldedit.Field{} // those that it takes away have no value
	for key := range there {
		open[key] = fieldedit.Field{}
	}
	for _, f := range now.Fields {
		if v, has := there[f.Key()]; has && v == f.Value {
			delete(open, f.Key())
		} else {
			open[f.Key()] = f
		}
	}
	if _, err := ag.closeFields(ctx, c, at, newest, open, there); err != nil || len(open) == 0 {
		return nil, err // mostly one commit brings all
	}
	log, all, err := ag.sourceLog(ctx, c, at.Name, at, newest)
	if err != nil {
		return nil, err
	}
	var parts []string
	for _, ci := range log {
		if ci.SHA == newest {
			continue
		}
		changed, err := ag.closeFields(ctx, c, at, ci.SHA, open, there)
		if err != nil {
			return nil, err
		}
		if changed {
			parts = append(parts, ci.SHA)
		}
		if len(open) == 0 {
			return parts, nil
		}
	}
	for _, f := range open {
		if !all && f.Kind != "" {
			return nil, fmt.Errorf("what brought all of its values is further back than %d commits", len(log))
		}
	}
	return parts, nil
}

// closeFields takes out of the open fields those that have their value since a commit,
// and says whether there are any. A whole file stays open until it is as it is there.
func (ag *AuthorGatherer) closeFields(ctx context.Context, c *branch.ComponentBasis, at *branch.ResolvedEnv, commit string,
	open map[string]fieldedit.Field, there map[string]string) (changed bool, err error) {
	r := c.Snapshot.Repo
	info, err := r.Mirror.Commit(ctx, commit)
	if err != nil {
		return false, err
	}
	here, before := ag.valuesAt(c, at, commit), map[string]string{}
	if len(info.Parents) > 0 {
		before = ag.valuesAt(c, at, info.Parents[0])
	}
	for key, f := range open {
		v, had := before[key]
		if now, has := here[key]; had == has && v == now {
			continue
		}
		changed = true
		if f.Kind != fieldedit.KindFile || !had || v == there[key] {
			delete(open, key)
		}
	}
	return changed, nil
}

// valuesAt are the values of an environment's carried fields at a commit, by their names;
// none where they can't be read.
func (ag *AuthorGatherer) valuesAt(c *branch.ComponentBasis, at *branch.ResolvedEnv, commit string) map[string]string {
	rel, err := ag.releases.ReadRelease(c.Snapshot.Repo, commit, c.Pipeline, at)
	if err != nil {
		return nil
	}
	return ValuesOf(rel)
}

// ValuesOf are the values of a release's fields, by their keys.
func ValuesOf(rel fieldedit.Release) map[string]string {
	out := make(map[string]string, len(rel.Fields))
	for _, f := range rel.Fields {
		out[f.Key()] = f.Value
	}
	return out
}
