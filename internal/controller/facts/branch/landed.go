package branch

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/liftlock/liftlock/internal/appset/history"
	"github.com/liftlock/liftlock/internal/cache"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store/record"
)

// GitGatherer says what Git's history tells of environments.
type GitGatherer struct {
	Releases *ReleaseReader
	store    GitStore

	Origins        *cache.Cache[string, OriginMemo]      // by environment and overlay
	ReleaseChanges *cache.Cache[string, []releaseChange] // of components, by environment and commits
	Reverted       *cache.Cache[string, []string]        // releases that revert commits name, by environment and what landed
	merges         *cache.Cache[string, mergeState]      // of ours, by repository, branch and commit
	lines          *cache.Cache[string, *lineIndex]      // by repository, tip and baseline
	indexing       sync.Mutex                            // is held while a line is indexed
}

// GitStore is what is read of the store about branches.
type GitStore interface {
	record.Reader
	record.Lister
}

// NewGitGatherer makes a gatherer that keeps what it found out in the group's caches.
func NewGitGatherer(releases *ReleaseReader, store GitStore, group *cache.Group) *GitGatherer {
	return &GitGatherer{Releases: releases, store: store,
		Origins:        NewCache[string, OriginMemo](group, "origins", MaxEnvironments),
		ReleaseChanges: NewCache[string, []releaseChange](group, "release_changes", 10_000),
		Reverted:       NewCache[string, []string](group, "reverted_releases", MaxEnvironments),
		merges:         NewCache[string, mergeState](group, "merges", 10_000),
		lines:          NewCache[string, *lineIndex](group, "branch_lines", maxLines)}
}

// OriginDepth bounds how many commits of an overlay's files are walked to find
// the one that brought its carried fields to where they are.
const OriginDepth = 200

// OriginMemo is where an environment's release came from, as far as Git knows.
type OriginMemo struct {
	Tip    string
	scope  fieldedit.Scope // where the environment's carried fields may be
	Origin history.Origin
}

// maxParsed bounds the text of the parsed files that are remembered, in bytes:
// with what becomes of it, some 80 MB.
const maxParsed = 2 << 20

// FindOrigin walks back to the commit that brought an environment's carried fields
// to what they are at the tip.
func (g *GitGatherer) FindOrigin(ctx context.Context, r *Repository, tip, key string, p *ResolvedPipeline, e *ResolvedEnv,
	now fieldedit.Release) (OriginMemo, error) {
	at := p.LocationOf(e)
	key += "|" + at.Key
	memo, ok := g.Origins.Get(key)
	if ok && memo.Tip == tip {
		return memo, nil
	}
	if ok {
		still, err := g.extendOrigin(ctx, r, &memo, tip, p, e, now)
		if err != nil {
			return OriginMemo{}, err
		}
		if still {
			g.Origins.Put(key, memo)
			return memo, nil
		}
	}
	if at.err != nil {
		return OriginMemo{}, at.err
	}
	memo = OriginMemo{Tip: tip, scope: at.scope}
	for depth, all := OriginDepth, false; ; depth *= 4 {
		var err error
		if memo.Origin, all, err = g.searchOrigin(ctx, r, memo, "", depth, p, e, now); err != nil {
			return OriginMemo{}, err
		}
		if memo.Origin.Found || all || depth >= MaxWalkDepth(at.scope) {
			break
		}
	}
	g.Origins.Put(key, memo)
	return memo, nil
}

// searchOrigin looks for the origin of a release among the commits of its files between until
// (empty: the first one) and the memo's tip, at most depth. all says that there were no more.
func (g *GitGatherer) searchOrigin(ctx context.Context, r *Repository, m OriginMemo, until string, depth int, p *ResolvedPipeline,
	e *ResolvedEnv, now fieldedit.Release) (origin history.Origin, all bool, err error) {
	log, err := r.Mirror.Log(ctx, git.LogQuery{From: m.Tip, Until: until, FirstParent: true, Paths: m.scope.Paths(), Limit: depth})
	if err != nil {
		return history.Origin{}, false, err
	}
	origin = history.FindOrigin(log, now.ID(),
		func(commit string) string { return g.Releases.ReleaseIDAt(r, commit, p, e) },
		func(commit string) bool { return g.carriesNothing(r, commit, p, e) })
	return origin, len(log) < depth, nil
}

// extendOrigin brings a memo of an earlier tip up to date, where only later commits have to be
// searched. In a file that many share most commits are others', and walking it all after each would
// never end. It finds the same as a walk from the start: replicas look at different tips and have
// to agree.
func (g *GitGatherer) extendOrigin(ctx context.Context, r *Repository, m *OriginMemo, tip string, p *ResolvedPipeline, e *ResolvedEnv,
	now fieldedit.Release) (bool, error) {
	before := m.Tip
	line, follows, err := LineSince(ctx, r, before, tip)
	if err != nil || !follows {
		return false, err
	}
	still, err := g.isLineUnrelated(ctx, r, line, m.scope.Covers)
	if err != nil {
		return false, err
	}
	m.Tip = tip
	if still || !m.scope.Shared() || g.Releases.ReleaseIDAt(r, before, p, e) != now.ID() {
		return still, nil
	}
	since, all, err := g.searchOrigin(ctx, r, *m, before, OriginDepth, p, e, now)
	if since.Found {
		m.Origin = since
	}
	return all || since.Found, err
}

// LineSince lists the commits after from on the line of first parents that ends at tip,
// newest first. follows is false where from isn't on that line, or more than
// OriginDepth commits down it: that only means to walk again.
func LineSince(ctx context.Context, r *Repository, from, tip string) (line []git.CommitInfo, follows bool, err error) {
	for at := tip; at != from; {
		if len(line) == OriginDepth {
			return nil, false, nil
		}
		c, err := r.Mirror.Commit(ctx, at)
		if err != nil {
			return nil, false, err
		}
		if len(c.Parents) == 0 {
			return nil, false, nil
		}
		line = append(line, *c)
		at = c.Parents[0]
	}
	return line, true, nil
}

// isLineUnrelated says that no commit of a line changed a file that counts: one that is
// alike at both ends may have been changed and put back.
func (g *GitGatherer) isLineUnrelated(ctx context.Context, r *Repository, line []git.CommitInfo,
	counts func(file string) bool) (bool, error) {
	for _, c := range line {
		if unchanged, err := g.isAlike(ctx, r, c.Parents[0], c.SHA, counts); err != nil || !unchanged {
			return false, err
		}
	}
	return true, nil
}

// MaxWalkDepth is how many commits of an environment's files are walked at most: in
// files that it shares most of them are others'.
func MaxWalkDepth(s fieldedit.Scope) int {
	if s.Shared() {
		return 16 * OriginDepth
	}
	return OriginDepth
}

// carriesNothing says that the roots held no carried field at all, rather than some
// that could not be read.
func (g *GitGatherer) carriesNothing(r *Repository, commit string, p *ResolvedPipeline, e *ResolvedEnv) bool {
	places, err := fieldedit.Locate(r.Mirror.Tree(commit), e.Overlay(p.Pipeline))
	return err == nil && len(places) == 0
}

// IsUnchanged says that no file that counts differs between two commits of which
// the first is an ancestor of the second.
func (g *GitGatherer) IsUnchanged(ctx context.Context, r *Repository, from, to string, counts func(file string) bool) (bool, error) {
	ok, err := r.Mirror.IsAncestor(ctx, from, to)
	if errors.Is(err, git.ErrUnknownCommit) { // that only means to look again
		return false, nil
	}
	if err != nil || !ok {
		return false, err
	}
	return g.isAlike(ctx, r, from, to, counts)
}

// isAlike says that no file that counts differs between two commits.
func (g *GitGatherer) isAlike(ctx context.Context, r *Repository, from, to string, counts func(file string) bool) (bool, error) {
	changed, err := r.Mirror.Changed(ctx, from, to)
	return err == nil && !slices.ContainsFunc(changed, func(c git.FileChange) bool { return counts(c.Path) }), err
}

// FillRevertedReleases lists the releases that revert commits on the branch name and
// that nothing has brought back since: a restraint that outlives the store and
// the pull requests. A revert changes what landed, so the answer is remembered by that.
func (g *GitGatherer) FillRevertedReleases(ctx context.Context, c *ComponentBasis, env *promotion.Env, at *ResolvedEnv) error {
	if env.Source() {
		return nil
	}
	u := c.Facts.Unit
	key := wake.UnitName(u) + "|" + env.Name + "|" + env.Landed.Value.Commit
	if known, ok := g.Reverted.Get(key); ok {
		env.RevertedReleases = known
		return nil
	}
	scope, err := fieldedit.NewScope(at.Overlay(c.Pipeline.Pipeline))
	if err != nil {
		return err
	}
	paths := scope.Paths()
	if paths != nil {
		paths = slices.Concat(at.Roots, at.Bases, paths) // what was carried when it was reverted may not be carried any more
	}
	log, err := c.Snapshot.Repo.Mirror.Log(ctx, git.LogQuery{From: env.Tip, Paths: paths, Grep: promotion.TrailerKind + ": ",
		Limit: MaxWalkDepth(scope)})
	if err != nil {
		return err
	}
	env.RevertedReleases = history.RevertedReleases(log, u, env.Name)
	g.Reverted.Put(key, env.RevertedReleases)
	return nil
}

// readHolds reads the holds that concern a unit as they are at a commit of the branch
// that keeps them; none when there is no such branch.
func (g *GitGatherer) readHolds(r *Repository, commit string, u promotion.Unit) ([]promotion.Hold, error) {
	if commit == "" {
		return nil, nil
	}
	return history.Holds(r.Mirror.Tree(commit), u.Pipeline, u.Component)
}
