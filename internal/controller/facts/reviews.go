package facts

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/cache"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/wording"
	"github.com/liftlock/liftlock/policies"
)

// reviewGatherer says who approved a pull request and who made what it promotes.
type reviewGatherer struct {
	releases *releaseReader
	now      func() time.Time

	permissions *cache.Cache[string, permission] // by repository and login
	authors     *cache.Cache[string, []string]   // by repository and commit
}

func newReviewGatherer(releases *releaseReader, now func() time.Time, group *cache.Group) *reviewGatherer {
	return &reviewGatherer{releases: releases, now: now,
		permissions: newCache[string, permission](group, "permissions", 10_000), authors: newCache[string, []string](group, "commit_authors", 10_000)}
}

type permission struct {
	level forge.Permission
	at    time.Time
}

// permissionAge is how long a user's permission may be remembered for counting
// approvals. Commands are always authorised anew.
const permissionAge = time.Minute

// approvalFacts are the facts about a pull request's reviews. What can't be read is
// said in them, so that a gate waits with the reason; what is worth another try is an
// error, because nothing else would bring one soon.
func (o *reviewGatherer) approvalFacts(ctx context.Context, r *Repository, head string, d *pullDetail, base string) (policies.Facts, error) {
	f := policies.Facts{Bot: r.BotLogin, ApprovalsErr: d.reviewsErr}
	for _, rv := range d.reviews {
		if !rv.Approved || rv.Bot {
			continue
		}
		level, err := o.userPermission(ctx, r, rv.User)
		if forge.IsRetryable(err) {
			return f, fmt.Errorf("read the permission of %s: %w", rv.User, err)
		}
		if err != nil {
			f.ApprovalsErr = fmt.Sprintf("the permission of %s can't be read: %v", rv.User, err)
			continue
		}
		f.Approvals = append(f.Approvals, policies.Approval{User: rv.User, MayWrite: level >= forge.PermissionWrite, Current: o.showsSameDiff(ctx, r, rv.Commit, head, base)})
	}
	return f, nil
}

// authorFacts fills in who made a release.
func (o *reviewGatherer) authorFacts(ctx context.Context, c *ComponentEvaluation, env *promotion.Env, release string, f *policies.Facts) error {
	authors, err := o.findAuthors(ctx, c, env, release)
	if forge.IsRetryable(err) {
		return err
	}
	if err != nil {
		f.AuthorsErr = err.Error()
	}
	f.Authors = authors
	return nil
}

// showsSameDiff says whether a review's commit shows the reader the same change as
// the head: then a recompose on a newer base keeps the approval.
func (o *reviewGatherer) showsSameDiff(ctx context.Context, r *Repository, reviewed, head, base string) bool {
	if reviewed == head {
		return true
	}
	if reviewed == "" || base == "" {
		return false
	}
	if ok, err := r.Mirror.Has(ctx, reviewed); err != nil || !ok {
		return false
	}
	info, err := r.Mirror.Commit(ctx, reviewed)
	if err != nil || len(info.Parents) != 1 {
		return false
	}
	then, err := r.Mirror.PatchID(ctx, info.Parents[0], reviewed)
	if err != nil {
		return false
	}
	now, err := r.Mirror.PatchID(ctx, base, head)
	return err == nil && then == now && now != ""
}

func (o *reviewGatherer) userPermission(ctx context.Context, r *Repository, login string) (forge.Permission, error) {
	key := r.ID + "/" + login
	if p, ok := o.permissions.Get(key); ok && o.now().Sub(p.at) < permissionAge {
		return p.level, nil
	}
	level, err := r.Forge.Permission(ctx, r.Name, login)
	if err != nil {
		return forge.PermissionNone, err
	}
	o.permissions.Put(key, permission{level: level, at: o.now()})
	return level, nil
}

// findAuthors are the logins that made a release: whoever the forge connects to
// the commits that brought it to the source environments upstream.
func (o *reviewGatherer) findAuthors(ctx context.Context, c *ComponentEvaluation, env *promotion.Env, release string) ([]string, error) {
	r := c.Snapshot.Repo
	var out []string
	for _, name := range findUpstreamSources(c.Pipeline, env.Name) {
		commit, err := o.findBringingCommit(ctx, c, name, release)
		if err != nil {
			return nil, fmt.Errorf("who brought the release to %s can't be told: %w", name, err)
		}
		if commit == "" {
			continue
		}
		logins, err := o.authors.GetOrLoad(r.ID+"@"+commit, func() ([]string, error) { return r.Forge.CommitAuthors(ctx, r.Name, commit) })
		if err != nil {
			return nil, fmt.Errorf("the authors of %s can't be read: %w", wording.Short(commit), err)
		}
		out = append(out, logins...)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

func findUpstreamSources(p *ResolvedPipeline, env string) []string {
	var out []string
	seen := map[string]bool{}
	var walk func(string)
	walk = func(name string) {
		e := p.Spec.EnvironmentByName(name)
		if e == nil || seen[name] {
			return
		}
		seen[name] = true
		if e.IsSource() {
			out = append(out, name)
		}
		for _, a := range e.After {
			walk(a)
		}
	}
	walk(env)
	return out
}

// findBringingCommit finds the commit that brought a release to a source environment:
// from the history that was recorded, else by walking Git. "" when neither knows.
func (o *reviewGatherer) findBringingCommit(ctx context.Context, c *ComponentEvaluation, env, release string) (string, error) {
	for i := range c.Facts.Envs {
		if c.Facts.Envs[i].Name != env {
			continue
		}
		for _, a := range c.Facts.Envs[i].History {
			if a.Release == release {
				return a.Commit, nil
			}
		}
	}
	at := c.Unit.Envs[env]
	if at == nil {
		return "", nil
	}
	r := c.Snapshot.Repo
	tip := c.Snapshot.BranchFor(c.Pipeline.Pipeline, env).Commit
	places, err := fieldedit.Locate(r.Mirror.Tree(tip), at.Overlay(c.Pipeline.Pipeline))
	if err != nil {
		return "", err
	}
	var files []string
	for _, pl := range places {
		files = append(files, pl.File)
	}
	log, err := r.Mirror.Log(ctx, git.LogQuery{From: tip, FirstParent: true, Paths: files, Limit: originDepth})
	if err != nil {
		return "", err
	}
	for i, ci := range log {
		if o.releases.releaseIDAt(r, ci.SHA, c.Pipeline, at) == release && (i+1 == len(log) || o.releases.releaseIDAt(r, log[i+1].SHA, c.Pipeline, at) != release) {
			return ci.SHA, nil
		}
	}
	return "", nil
}

// ReleaseAuthors are the logins that made a release, as far as the forge knows.
func (o *reviewGatherer) ReleaseAuthors(ctx context.Context, c *ComponentEvaluation, env, release string) ([]string, error) {
	for i := range c.Facts.Envs {
		if c.Facts.Envs[i].Name == env {
			return o.findAuthors(ctx, c, &c.Facts.Envs[i], release)
		}
	}
	return nil, nil
}

// Gates are an environment's gates, raised to the server's floor.
func (o *Gatherer) Gates(spec *pipeline.Environment) []policies.Gate {
	return o.opts.Floor(spec.Name, spec.Gates)
}
