package facts

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/liftlock/liftlock/internal/appset/history"
	"github.com/liftlock/liftlock/internal/cache"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
)

// gitGatherer says what Git's history tells of environments.
type gitGatherer struct {
	releases *releaseReader

	origins        *cache.Cache[string, originMemo]      // by environment and overlay
	releaseChanges *cache.Cache[string, []releaseChange] // of components, by environment and commits
	reverted       *cache.Cache[string, []string]        // releases that revert commits name, by environment and what landed
	merges         *cache.Cache[string, mergeState]      // of ours, by repository, branch and commit
}

func newGitGatherer(releases *releaseReader, group *cache.Group) *gitGatherer {
	return &gitGatherer{releases: releases,
		origins:        newCache[string, originMemo](group, "origins", maxEnvironments),
		releaseChanges: newCache[string, []releaseChange](group, "release_changes", 10_000),
		reverted:       newCache[string, []string](group, "reverted_releases", maxEnvironments),
		merges:         newCache[string, mergeState](group, "merges", 10_000)}
}

// originDepth bounds how many commits of an overlay's files are walked to find
// the one that brought its carried fields to where they are.
const originDepth = 200

// originMemo is where an environment's release came from, as far as Git knows.
type originMemo struct {
	tip    string
	scope  fieldedit.Scope // where the environment's carried fields may be
	origin history.Origin
}

// maxParsed bounds the text of the parsed files that are remembered, in bytes:
// with what becomes of it, some 80 MB.
const maxParsed = 2 << 20

// findOrigin walks back to the commit that brought an environment's carried fields
// to what they are at the tip.
func (g *gitGatherer) findOrigin(ctx context.Context, r *Repository, tip, key string, p *ResolvedPipeline, e *ResolvedEnv,
	now fieldedit.Release) (originMemo, error) {
	at := p.locationOf(e)
	key += "|" + at.key
	memo, ok := g.origins.Get(key)
	if ok && memo.tip == tip {
		return memo, nil
	}
	if ok {
		still, err := g.extendOrigin(ctx, r, &memo, tip, p, e, now)
		if err != nil {
			return originMemo{}, err
		}
		if still {
			g.origins.Put(key, memo)
			return memo, nil
		}
	}
	if at.err != nil {
		return originMemo{}, at.err
	}
	memo = originMemo{tip: tip, scope: at.scope}
	for depth, all := originDepth, false; ; depth *= 4 {
		var err error
		if memo.origin, all, err = g.searchOrigin(ctx, r, memo, "", depth, p, e, now); err != nil {
			return originMemo{}, err
		}
		if memo.origin.Found || all || depth >= maxWalkDepth(at.scope) {
			break
		}
	}
	g.origins.Put(key, memo)
	return memo, nil
}

// searchOrigin looks for the origin of a release among the commits of its files between
// until (empty: the first one) and the memo's tip, at most depth; all says that
// there were no more.
func (g *gitGatherer) searchOrigin(ctx context.Context, r *Repository, m originMemo, until string, depth int, p *ResolvedPipeline,
	e *ResolvedEnv, now fieldedit.Release) (origin history.Origin, all bool, err error) {
	log, err := r.Mirror.Log(ctx, git.LogQuery{From: m.tip, Until: until, FirstParent: true, Paths: m.scope.Paths(), Limit: depth})
	if err != nil {
		return history.Origin{}, false, err
	}
	origin = history.FindOrigin(log, now.ID(),
		func(commit string) string { return g.releases.releaseIDAt(r, commit, p, e) },
		func(commit string) bool { return g.carriesNothing(r, commit, p, e) })
	return origin, len(log) < depth, nil
}

// extendOrigin brings a memo of an earlier tip up to date, where no more than what
// came since has to be looked at: in a file that many share most commits are
// others', and walking it all after each would never end. What it finds is what a
// walk from the start finds: replicas look at different tips and have to agree.
func (g *gitGatherer) extendOrigin(ctx context.Context, r *Repository, m *originMemo, tip string, p *ResolvedPipeline, e *ResolvedEnv,
	now fieldedit.Release) (bool, error) {
	before := m.tip
	line, follows, err := lineSince(ctx, r, before, tip)
	if err != nil || !follows {
		return false, err
	}
	still, err := g.isLineUnrelated(ctx, r, line, m.scope.Covers)
	if err != nil {
		return false, err
	}
	m.tip = tip
	if still || !m.scope.Shared() || g.releases.releaseIDAt(r, before, p, e) != now.ID() {
		return still, nil
	}
	since, all, err := g.searchOrigin(ctx, r, *m, before, originDepth, p, e, now)
	if since.Found {
		m.origin = since
	}
	return all || since.Found, err
}

// lineSince lists the commits after from on the line of first parents that ends at tip,
// newest first. follows is false where from isn't on that line, or more than
// originDepth commits down it: that only means to walk again.
func lineSince(ctx context.Context, r *Repository, from, tip string) (line []git.CommitInfo, follows bool, err error) {
	for at := tip; at != from; {
		if len(line) == originDepth {
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
func (g *gitGatherer) isLineUnrelated(ctx context.Context, r *Repository, line []git.CommitInfo,
	counts func(file string) bool) (bool, error) {
	for _, c := range line {
		if unchanged, err := g.isAlike(ctx, r, c.Parents[0], c.SHA, counts); err != nil || !unchanged {
			return false, err
		}
	}
	return true, nil
}

// maxWalkDepth is how many commits of an environment's files are walked at most: in
// files that it shares most of them are others'.
func maxWalkDepth(s fieldedit.Scope) int {
	if s.Shared() {
		return 16 * originDepth
	}
	return originDepth
}

// carriesNothing says that the roots held no carried field at all, rather than some
// that could not be read.
func (g *gitGatherer) carriesNothing(r *Repository, commit string, p *ResolvedPipeline, e *ResolvedEnv) bool {
	places, err := fieldedit.Locate(r.Mirror.Tree(commit), e.Overlay(p.Pipeline))
	return err == nil && len(places) == 0
}

// isUnchanged says that no file that counts differs between two commits of which
// the first is an ancestor of the second.
func (g *gitGatherer) isUnchanged(ctx context.Context, r *Repository, from, to string, counts func(file string) bool) (bool, error) {
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
func (g *gitGatherer) isAlike(ctx context.Context, r *Repository, from, to string, counts func(file string) bool) (bool, error) {
	changed, err := r.Mirror.Changed(ctx, from, to)
	return err == nil && !slices.ContainsFunc(changed, func(c git.FileChange) bool { return counts(c.Path) }), err
}

// describeLanded joins what Git knows with our pull requests: who brought it.
func (ga *Gatherer) describeLanded(ctx context.Context, c *ComponentEvaluation, env *promotion.Env, m originMemo,
	ours []*pullRecord) (promotion.Landed, error) {
	r, commit := c.Snapshot.Repo, m.origin.Commit
	l := promotion.Landed{Commit: commit.SHA, At: commit.CommitTime, By: promotion.ByPerson, Author: commit.Author.Name}
	if len(commit.Parents) > 0 {
		l.Parent = commit.Parents[0]
	}
	if !m.origin.Found {
		l.By = promotion.ByBaseline
		return l, nil
	}
	var err error
	own := findMergedAs(r, ours, commit.SHA)
	if own != nil {
		if !own.PR.MergedAt.IsZero() {
			l.At = own.PR.MergedAt
		}
		composed, err := ga.isComposedLanding(ctx, c, env, own)
		if err != nil {
			return l, fmt.Errorf("look at whether #%d landed as Liftlock composed it: %w", own.PR.Number, err)
		}
		if composed {
			l.By, l.Pull, l.Author = promotion.ByPromotion, own.PR.Number, ""
			if own.ref.Revert {
				l.By = promotion.ByRevert
			}
			return l, nil
		}
	}
	if m.origin.First {
		l.By, err = ga.whoMoved(ctx, c, env, m)
		return l, err
	}
	old, err := history.PredatesBaseline(ctx, r.Mirror, commit, c.Pipeline.Baseline)
	switch {
	case err != nil:
		return l, err
	case old:
		l.By = promotion.ByBaseline
	case isAdopted(env, commit.SHA):
		l.By = promotion.ByHand
	case own != nil: // the commit may name us: a squash's author is who opened the pull request
		l.ModifiedPull, l.Author = own.PR.Number, own.PR.MergedBy
	}
	return l, nil
}

// isAdopted says that what a person's commit put into an environment is on record as what would have
// been promoted there: that was decided while it was so, and holds as long as it is there.
func isAdopted(env *promotion.Env, commit string) bool {
	return slices.ContainsFunc(env.History, func(a promotion.Arrival) bool {
		return a.By == promotion.ByHand && a.Commit == commit && a.Release == env.Release.Value.ID && a.WithdrawnAt.IsZero()
	})
}

// findMergedAs finds the pull request of ours that was merged as a commit; nil when there is none.
func findMergedAs(r *Repository, pulls []*pullRecord, commit string) *pullRecord {
	i := slices.IndexFunc(pulls, func(p *pullRecord) bool {
		return p.PR.MergeCommit != "" && p.PR.MergeCommit == commit && p.isOurs(r)
	})
	if i < 0 {
		return nil
	}
	return pulls[i]
}

// fillRevertedReleases lists the releases that revert commits on the branch name and
// that nothing has brought back since: a restraint that outlives the store and
// the pull requests. A revert changes what landed, so the answer is remembered by that.
func (g *gitGatherer) fillRevertedReleases(ctx context.Context, c *ComponentEvaluation, env *promotion.Env, at *ResolvedEnv) error {
	if env.Source() {
		return nil
	}
	u := c.Facts.Unit
	key := wake.UnitName(u) + "|" + env.Name + "|" + env.Landed.Value.Commit
	if known, ok := g.reverted.Get(key); ok {
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
		Limit: maxWalkDepth(scope)})
	if err != nil {
		return err
	}
	env.RevertedReleases = history.RevertedReleases(log, u, env.Name)
	g.reverted.Put(key, env.RevertedReleases)
	return nil
}

// readHolds reads the holds that concern a unit as they are at a commit of the branch
// that keeps them; none when there is no such branch.
func (g *gitGatherer) readHolds(r *Repository, commit string, u promotion.Unit) ([]promotion.Hold, error) {
	if commit == "" {
		return nil, nil
	}
	return history.Holds(r.Mirror.Tree(commit), u.Pipeline, u.Component)
}
