package facts

import (
	"context"

	"github.com/liftlock/liftlock/internal/appset/history"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
)

// landedDepth bounds how many commits of an overlay's files are walked to find
// the one that brought its carried fields to where they are.
const landedDepth = 200

// landedMemo is where an environment's release came from, as far as Git knows.
type landedMemo struct {
	tip    string
	scope  fieldedit.Scope // where the environment's carried fields may be
	origin history.Origin
}

// maxParsed bounds the text of the parsed files that are remembered, in bytes:
// with what becomes of it, some 80 MB.
const maxParsed = 2 << 20

// whence walks back to the commit that brought an environment's carried fields
// to what they are at the tip.
func (o *Observer) whence(ctx context.Context, r *Repository, tip, key string, p *PipelineAt, e *EnvAt, now fieldedit.Release) (landedMemo, error) {
	at := p.place(e)
	key += "|" + at.key
	o.mu.Lock()
	memo, ok := o.landed[key]
	o.mu.Unlock()
	if ok && memo.tip == tip {
		return memo, nil
	}
	if ok {
		still, err := o.goesOn(ctx, r, &memo, tip, p, e, now)
		if err != nil {
			return landedMemo{}, err
		}
		if still {
			o.rememberLanded(key, memo)
			return memo, nil
		}
	}
	if at.err != nil {
		return landedMemo{}, at.err
	}
	memo = landedMemo{tip: tip, scope: at.scope}
	for depth, all := landedDepth, false; ; depth *= 4 {
		var err error
		if memo.origin, all, err = o.walk(ctx, r, memo, "", depth, p, e, now); err != nil {
			return landedMemo{}, err
		}
		if memo.origin.Found || all || depth >= deepest(at.scope) {
			break
		}
	}
	o.rememberLanded(key, memo)
	return memo, nil
}

// walk looks for the origin of a release among the commits of its files between
// until (empty: the first one) and the memo's tip, at most depth; all says that
// there were no more.
func (o *Observer) walk(ctx context.Context, r *Repository, m landedMemo, until string, depth int, p *PipelineAt, e *EnvAt, now fieldedit.Release) (origin history.Origin, all bool, err error) {
	log, err := r.Mirror.Log(ctx, git.LogQuery{From: m.tip, Until: until, FirstParent: true, Paths: m.scope.Paths(), Limit: depth})
	if err != nil {
		return history.Origin{}, false, err
	}
	origin = history.Whence(log, now.ID(),
		func(commit string) string { return o.idAt(r, commit, p, e) },
		func(commit string) bool { return o.absent(r, commit, p, e) })
	return origin, len(log) < depth, nil
}

// goesOn brings a memo of an earlier tip up to date, where no more than what
// came since has to be looked at: in a file that many share most commits are
// others', and walking it all after each would never end.
func (o *Observer) goesOn(ctx context.Context, r *Repository, m *landedMemo, tip string, p *PipelineAt, e *EnvAt, now fieldedit.Release) (bool, error) {
	before := m.tip
	still, err := o.untouched(ctx, r, before, tip, m.scope.Covers)
	if err != nil {
		return false, err
	}
	m.tip = tip
	if still || !m.scope.Shared() || o.idAt(r, before, p, e) != now.ID() {
		return still, nil
	}
	if follows, err := r.Mirror.IsAncestor(ctx, before, tip); err != nil || !follows {
		return false, nil //nolint:nilerr // an unknown commit only means to walk again
	}
	since, all, err := o.walk(ctx, r, *m, before, landedDepth, p, e, now)
	if since.Found {
		m.origin = since
	}
	return all || since.Found, err
}

// deepest is how many commits of an environment's files are walked at most: in
// files that it shares most of them are others'.
func deepest(s fieldedit.Scope) int {
	if s.Shared() {
		return 16 * landedDepth
	}
	return landedDepth
}

func (o *Observer) rememberLanded(key string, m landedMemo) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.landed[key] = m
}

// absent says that the roots held no carried field at all, rather than some
// that could not be read.
func (o *Observer) absent(r *Repository, commit string, p *PipelineAt, e *EnvAt) bool {
	places, err := fieldedit.Locate(r.Mirror.Tree(commit), e.Overlay(p.Pipeline))
	return err == nil && len(places) == 0
}

// untouched says that no file that counts changed between two commits of which
// the first is an ancestor of the second.
func (o *Observer) untouched(ctx context.Context, r *Repository, from, to string, counts func(file string) bool) (bool, error) {
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

// landedOf joins what Git knows with our pull requests: who brought it.
func (o *Observer) landedOf(ctx context.Context, r *Repository, p *PipelineAt, m landedMemo, ours []entry) (promotion.Landed, error) {
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
		if pr.MergeCommit == "" || pr.MergeCommit != c.SHA || pr.Author != r.Me {
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
	old, err := history.Old(ctx, r.Mirror, c, p.Baseline)
	if err != nil {
		return l, err
	}
	if old {
		l.By = promotion.ByBaseline
	}
	return l, nil
}
