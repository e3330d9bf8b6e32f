package facts

import (
	"context"

	"github.com/liftlock/liftlock/internal/appset/history"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
)

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
func (o *Gatherer) findOrigin(ctx context.Context, r *Repository, tip, key string, p *ResolvedPipeline, e *ResolvedEnv, now fieldedit.Release) (originMemo, error) {
	at := p.locationOf(e)
	key += "|" + at.key
	o.mu.Lock()
	memo, ok := o.origins[key]
	o.mu.Unlock()
	if ok && memo.tip == tip {
		return memo, nil
	}
	if ok {
		still, err := o.extendOrigin(ctx, r, &memo, tip, p, e, now)
		if err != nil {
			return originMemo{}, err
		}
		if still {
			o.rememberOrigin(key, memo)
			return memo, nil
		}
	}
	if at.err != nil {
		return originMemo{}, at.err
	}
	memo = originMemo{tip: tip, scope: at.scope}
	for depth, all := originDepth, false; ; depth *= 4 {
		var err error
		if memo.origin, all, err = o.searchOrigin(ctx, r, memo, "", depth, p, e, now); err != nil {
			return originMemo{}, err
		}
		if memo.origin.Found || all || depth >= maxWalkDepth(at.scope) {
			break
		}
	}
	o.rememberOrigin(key, memo)
	return memo, nil
}

// searchOrigin looks for the origin of a release among the commits of its files between
// until (empty: the first one) and the memo's tip, at most depth; all says that
// there were no more.
func (o *Gatherer) searchOrigin(ctx context.Context, r *Repository, m originMemo, until string, depth int, p *ResolvedPipeline, e *ResolvedEnv, now fieldedit.Release) (origin history.Origin, all bool, err error) {
	log, err := r.Mirror.Log(ctx, git.LogQuery{From: m.tip, Until: until, FirstParent: true, Paths: m.scope.Paths(), Limit: depth})
	if err != nil {
		return history.Origin{}, false, err
	}
	origin = history.FindOrigin(log, now.ID(),
		func(commit string) string { return o.releaseIDAt(r, commit, p, e) },
		func(commit string) bool { return o.carriesNothing(r, commit, p, e) })
	return origin, len(log) < depth, nil
}

// extendOrigin brings a memo of an earlier tip up to date, where no more than what
// came since has to be looked at: in a file that many share most commits are
// others', and walking it all after each would never end.
func (o *Gatherer) extendOrigin(ctx context.Context, r *Repository, m *originMemo, tip string, p *ResolvedPipeline, e *ResolvedEnv, now fieldedit.Release) (bool, error) {
	before := m.tip
	still, err := o.isUnchanged(ctx, r, before, tip, m.scope.Covers)
	if err != nil {
		return false, err
	}
	m.tip = tip
	if still || !m.scope.Shared() || o.releaseIDAt(r, before, p, e) != now.ID() {
		return still, nil
	}
	if follows, err := r.Mirror.IsAncestor(ctx, before, tip); err != nil || !follows {
		return false, nil //nolint:nilerr // an unknown commit only means to walk again
	}
	since, all, err := o.searchOrigin(ctx, r, *m, before, originDepth, p, e, now)
	if since.Found {
		m.origin = since
	}
	return all || since.Found, err
}

// maxWalkDepth is how many commits of an environment's files are walked at most: in
// files that it shares most of them are others'.
func maxWalkDepth(s fieldedit.Scope) int {
	if s.Shared() {
		return 16 * originDepth
	}
	return originDepth
}

func (o *Gatherer) rememberOrigin(key string, m originMemo) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.origins[key] = m
}

// carriesNothing says that the roots held no carried field at all, rather than some
// that could not be read.
func (o *Gatherer) carriesNothing(r *Repository, commit string, p *ResolvedPipeline, e *ResolvedEnv) bool {
	places, err := fieldedit.Locate(r.Mirror.Tree(commit), e.Overlay(p.Pipeline))
	return err == nil && len(places) == 0
}

// isUnchanged says that no file that counts changed between two commits of which
// the first is an ancestor of the second.
func (o *Gatherer) isUnchanged(ctx context.Context, r *Repository, from, to string, counts func(file string) bool) (bool, error) {
	if ok, err := r.Mirror.IsAncestor(ctx, from, to); err != nil || !ok {
		return false, nil //nolint:nilerr // an unknown commit only means to walk again
	}
	changed, err := r.Mirror.Changed(ctx, from, to)
	if err != nil {
		return false, err
	}
	for _, c := range changed {
		if counts(c.Path) {
			return false, nil
		}
	}
	return true, nil
}

// describeLanded joins what Git knows with our pull requests: who brought it.
func (o *Gatherer) describeLanded(ctx context.Context, r *Repository, p *ResolvedPipeline, m originMemo, ours []cachedPull) (promotion.Landed, error) {
	c := m.origin.Commit
	l := promotion.Landed{Commit: c.SHA, At: c.CommitTime, By: promotion.ByPerson, Author: c.Author.Name}
	if len(c.Parents) > 0 {
		l.Parent = c.Parents[0]
	}
	if !m.origin.Found {
		l.By = promotion.ByBaseline
		return l, nil
	}
	for i := range ours {
		pr := &ours[i].PR
		if pr.MergeCommit == "" || pr.MergeCommit != c.SHA || pr.Author != r.BotLogin {
			continue
		}
		l.By, l.Pull, l.Author = promotion.ByPromotion, pr.Number, ""
		if ref, ok := promotion.ParseBranch(pr.Branch); ok && ref.Revert {
			l.By = promotion.ByRevert
		}
		if !pr.MergedAt.IsZero() {
			l.At = pr.MergedAt
		}
		return l, nil
	}
	if m.origin.First {
		l.By = promotion.ByBaseline
		return l, nil
	}
	old, err := history.PredatesBaseline(ctx, r.Mirror, c, p.Baseline)
	if err != nil {
		return l, err
	}
	if old {
		l.By = promotion.ByBaseline
	}
	return l, nil
}
