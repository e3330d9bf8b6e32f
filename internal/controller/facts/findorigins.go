package facts

import (
	"context"
	"path"
	"runtime"
	"slices"
	"sync"

	"github.com/liftlock/liftlock/internal/appset/history"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
)

// originChunk is how many commits are looked at in one go: what is looked for is
// mostly near the end of the history.
const originChunk = 256

// originSearch is an environment of which the origin is looked for.
type originSearch struct {
	env  *ResolvedEnv
	id   string // of the release
	memo originMemo
}

// FindOrigins finds what landed in all environments of a snapshot, and which
// releases were reverted from them, in one walk over each branch since the
// pipelines came, where every evaluation would walk for itself. What isn't found
// there is taken to be as old as the baseline, whatever brought it. order numbers
// the commits: the newer of two has the larger number, on different branches as
// far as their times tell.
func (g *gitGatherer) FindOrigins(ctx context.Context, s *Snapshot) (order map[string]int64, err error) {
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
func (g *gitGatherer) findOriginsOn(ctx context.Context, s *Snapshot, p *ResolvedPipeline, at BranchHead,
	ours map[promotion.Member][]git.CommitInfo, order map[string]int64) error {
	log, err := s.Repo.Mirror.Log(ctx, git.LogQuery{From: at.Commit, Until: p.Baseline, FirstParent: true})
	if err != nil {
		return err
	}
	numberCommits(log, order)
	if err := s.Repo.Mirror.RememberLine(ctx, p.Baseline, log); err != nil {
		return err
	}
	var all []*originSearch
	for _, u := range p.Units {
		for name, e := range u.Envs {
			loc, now := p.locationOf(e), p.readings[e]
			if s.BranchFor(p.Pipeline, name).Branch == at.Branch && loc.err == nil && now.id != "" {
				all = append(all, &originSearch{env: e, id: now.id, memo: originMemo{tip: at.Commit, scope: loc.scope}})
			}
		}
	}
	if err := g.searchLine(ctx, s.Repo, p, log, all); err != nil {
		return err
	}
	for _, f := range all {
		u := promotion.Unit{Repo: s.Repo.ID, Pipeline: p.Name(), Component: f.env.Component}
		key := wake.UnitName(u) + "|" + f.env.Name
		g.origins.Put(key+"|"+p.locationOf(f.env).key, f.memo)
		g.reverted.Put(key+"|"+f.memo.origin.Commit.SHA, history.RevertedReleases(ours[promotion.Member{Component: u.Component,
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

// searchLine looks for origins among the commits of a line, newest first.
func (g *gitGatherer) searchLine(ctx context.Context, r *Repository, p *ResolvedPipeline, log []git.CommitInfo, all []*originSearch) error {
	below := map[string][]*originSearch{} // by the files and folders that their fields are in
	for _, f := range all {
		paths := f.memo.scope.Paths()
		if paths == nil {
			paths = []string{"."}
		}
		for _, name := range paths {
			below[name] = append(below[name], f)
		}
	}
	for part := range slices.Chunk(log, originChunk) {
		if !slices.ContainsFunc(all, func(f *originSearch) bool { return !f.memo.origin.Found }) {
			return nil
		}
		changed, err := r.Mirror.PathsChanged(ctx, part)
		if err != nil {
			return err
		}
		touching := map[*originSearch][]git.CommitInfo{}
		for i, paths := range changed {
			for _, name := range paths {
				for _, f := range searchesNear(below, name) {
					at := touching[f]
					if !f.memo.origin.Found && (len(at) == 0 || at[len(at)-1].SHA != part[i].SHA) && f.memo.scope.Covers(name) {
						touching[f] = append(at, part[i])
					}
				}
			}
		}
		g.searchCommits(ctx, r, p, touching)
	}
	return ctx.Err()
}

// searchesNear are those whose fields may be in a file.
func searchesNear(below map[string][]*originSearch, name string) []*originSearch {
	out := below["."]
	for at := name; at != "."; at = path.Dir(at) {
		if more := below[at]; len(more) > 0 {
			out = append(out[:len(out):len(out)], more...)
		}
	}
	return out
}

// searchCommits looks for origins among the commits that touched their files.
func (g *gitGatherer) searchCommits(ctx context.Context, r *Repository, p *ResolvedPipeline, touching map[*originSearch][]git.CommitInfo) {
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
					func(commit string) string { return g.releases.releaseIDAt(r, commit, p, f.env) },
					func(commit string) bool { return g.carriesNothing(r, commit, p, f.env) })
				if found.Found {
					f.memo.origin = found
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
func (g *gitGatherer) FindPast(ctx context.Context, c *ComponentEvaluation, env *promotion.Env, most int) ([]PastRelease, error) {
	r, at := c.Snapshot.Repo, c.Unit.Envs[env.Name]
	loc := c.Pipeline.locationOf(at)
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
		was, err := g.releases.readRelease(r, commit.SHA, c.Pipeline, at)
		if err == nil && !was.Empty() && g.releases.releaseIDAt(r, commit.Parents[0], c.Pipeline, at) != was.ID() {
			out = append(out, PastRelease{commit, c.RememberRelease(was)})
		}
	}
	return out, ctx.Err()
}
