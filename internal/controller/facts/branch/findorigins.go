package branch

import (
	"context"
	"runtime"
	"sync"

	"github.com/liftlock/liftlock/internal/appset/history"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
)

// originSearch is an environment of which the origin is looked for.
type originSearch struct {
	env  *ResolvedEnv
	id   string // of the release
	memo OriginMemo
}

// FindOrigins finds the landed releases in all environments of a snapshot, and which releases were
// reverted from them. It takes one walk over each branch since the pipelines came, where every
// evaluation would walk for itself. A release that isn't found there is taken to be as old as the
// baseline, whoever brought it. order numbers the commits: the newer of two has the larger number,
// on different branches as far as their times tell.
func (g *GitGatherer) FindOrigins(ctx context.Context, s *Snapshot) (order map[string]int64, err error) {
	order = map[string]int64{}
	for _, at := range s.BranchHeads() {
		if at.Commit == "" {
			continue
		}
		ours, err := s.Repo.Mirror.Log(ctx, git.LogQuery{From: at.Commit, Grep: promotion.TrailerKind + ": "})
		if err != nil {
			return nil, err
		}
		for _, p := range s.Pipelines {
			if err := g.findOriginsOn(ctx, s, p, at, groupByTrailers(ours), order); err != nil {
				return nil, err
			}
		}
	}
	return order, nil
}

// findOriginsOn finds those of one pipeline's environments that live on a branch.
func (g *GitGatherer) findOriginsOn(ctx context.Context, s *Snapshot, p *ResolvedPipeline, at Head,
	ours map[promotion.Member][]git.CommitInfo, order map[string]int64) error {
	line, err := g.indexedLine(ctx, s.Repo, at.Commit, p.Baseline)
	if err != nil {
		return err
	}
	numberCommits(line.commits, order)
	if err := s.Repo.Mirror.RememberLine(ctx, p.Baseline, line.commits); err != nil {
		return err
	}
	var all []*originSearch
	for _, u := range p.Units {
		for name, e := range u.Envs {
			loc, now := p.LocationOf(e), p.Readings[e]
			if s.BranchFor(p.Pipeline, name).Branch == at.Branch && loc.err == nil && now.Id != "" {
				all = append(all, &originSearch{env: e, id: now.Id, memo: OriginMemo{Tip: at.Commit, scope: loc.scope}})
			}
		}
	}
	touching := make(map[*originSearch][]git.CommitInfo, len(all))
	for _, f := range all {
		touching[f] = line.touching(f.memo.scope)
	}
	g.searchCommits(ctx, s.Repo, p, touching)
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, f := range all {
		u := promotion.Unit{Repo: s.Repo.ID, Pipeline: p.Name(), Component: f.env.Component}
		key := wake.UnitName(u) + "|" + f.env.Name
		g.Origins.Put(key+"|"+p.LocationOf(f.env).Key, f.memo)
		g.Reverted.Put(key+"|"+f.memo.Origin.Commit.SHA, history.RevertedReleases(ours[promotion.Member{Component: u.Component,
			Name: f.env.Name}], u, f.env.Name))
	}
	return nil
}

// groupByTrailers sorts commits of ours by the components and the environment that
// their trailers name. A squash or a rebase has them on the branch's own line, a
// merge on the merged one.
func groupByTrailers(log []git.CommitInfo) map[promotion.Member][]git.CommitInfo {
	out := map[promotion.Member][]git.CommitInfo{}
	for _, c := range log {
		components := []string{c.Trailers[promotion.TrailerComponent]}
		for _, m := range promotion.ParseMembers(c.Trailers[promotion.TrailerMembers]) {
			components = append(components, m.Component)
		}
		for _, component := range components {
			key := promotion.Member{Component: component, Name: c.Trailers[promotion.TrailerEnvironment]}
			out[key] = append(out[key], c)
		}
	}
	return out
}

// numberCommits numbers the commits of a line, newest first.
func numberCommits(log []git.CommitInfo, order map[string]int64) {
	const most = 1 << 14 // more than Log lists
	var latest int64
	for i := len(log) - 1; i >= 0; i-- {
		latest = max(latest, log[i].CommitTime.Unix())
		order[log[i].SHA] = latest*most + int64(len(log)-i)
	}
}

// searchCommits looks for origins among the commits that touched their files.
func (g *GitGatherer) searchCommits(ctx context.Context, r *Repository, p *ResolvedPipeline,
	touching map[*originSearch][]git.CommitInfo) {
	work := make(chan *originSearch, len(touching))
	for f := range touching {
		work <- f
	}
	close(work)
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(touching)) {
		wg.Go(func() {
			for f := range work {
				if ctx.Err() != nil {
					return
				}
				found := history.FindOrigin(touching[f], f.id,
					func(commit string) string { return g.Releases.ReleaseIDAt(r, commit, p, f.env) },
					func(commit string) bool { return g.carriesNothing(r, commit, p, f.env) })
				if found.Found {
					f.memo.Origin = found
				}
			}
		})
	}
	wg.Wait()
}

// PastRelease is a release that an environment had, and the commit that brought it.
type PastRelease struct {
	Commit  git.CommitInfo
	Release promotion.Release
}

// FindPast finds the releases that an environment had since the pipeline came, but
// the one that is there now, newest first and at most so many.
func (g *GitGatherer) FindPast(ctx context.Context, c *ComponentBasis, env *promotion.Env, most int) ([]PastRelease, error) {
	r, at := c.Snapshot.Repo, c.Unit.Envs[env.Name]
	loc := c.Pipeline.LocationOf(at)
	if loc.err != nil {
		return nil, loc.err
	}
	log, err := r.Mirror.Log(ctx, git.LogQuery{From: env.Tip, Until: c.Pipeline.Baseline, FirstParent: true, Paths: loc.scope.Paths()})
	if err != nil {
		return nil, err
	}
	var out []PastRelease
	for _, commit := range log {
		if len(out) == most || len(commit.Parents) == 0 || commit.SHA == env.Landed.Value.Commit {
			continue
		}
		was, err := g.Releases.ReadRelease(r, commit.SHA, c.Pipeline, at)
		if err == nil && !was.Empty() && g.Releases.ReleaseIDAt(r, commit.Parents[0], c.Pipeline, at) != was.ID() {
			out = append(out, PastRelease{commit, c.RememberRelease(was)})
		}
	}
	return out, ctx.Err()
}
