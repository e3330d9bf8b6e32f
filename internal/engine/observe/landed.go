package observe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/liftlock/liftlock/internal/gitrepo"
	"github.com/liftlock/liftlock/internal/overlay"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/tracked"
)

// landedDepth bounds how many commits of an overlay's files are walked to find
// the one that brought its carried fields to where they are.
const landedDepth = 200

// landedMemo is where an environment's release came from, as far as Git knows.
type landedMemo struct {
	tip    string
	scope  overlay.Scope // where the environment's carried fields may be
	origin tracked.Origin
}

// read reads a release at a commit, remembering its identity.
func (o *Observer) read(r *Repository, commit string, p *PipelineAt, e *EnvAt) (overlay.Release, error) {
	return overlay.Read(r.Mirror.Tree(commit), e.Overlay(p.Pipeline))
}

// idAt is the identity of the release that an environment's roots hold at a
// commit; "" when they hold none or can't be read.
func (o *Observer) idAt(r *Repository, commit string, p *PipelineAt, e *EnvAt) string {
	key := fmt.Sprintf("%s|%s|%s", r.ID, commit, overlayKey(p, e))
	o.mu.Lock()
	id, ok := o.releases[key]
	o.mu.Unlock()
	if ok {
		return id
	}
	rel, err := o.read(r, commit, p, e)
	switch {
	case err == nil:
		id = rel.ID()
	case errors.Is(err, gitrepo.ErrUnknownCommit):
		return "" // a fetch may bring it
	}
	o.mu.Lock()
	if len(o.releases) > maxReleases {
		clear(o.releases)
	}
	o.releases[key] = id
	o.mu.Unlock()
	return id
}

// maxReleases bounds the memory of releases by commit; past it, it starts anew.
const maxReleases = 100_000

// overlayKey is where an environment's carried fields are, as a part of a key.
func overlayKey(p *PipelineAt, e *EnvAt) string {
	text, _ := json.Marshal(e.Overlay(p.Pipeline)) // strings and lists of them: there is no error
	return string(text)
}

// whence walks back to the commit that brought an environment's carried fields
// to what they are at the tip.
func (o *Observer) whence(ctx context.Context, r *Repository, tip, key string, p *PipelineAt, e *EnvAt, now overlay.Release) (landedMemo, error) {
	key += "|" + overlayKey(p, e)
	o.mu.Lock()
	memo, ok := o.landed[key]
	o.mu.Unlock()
	if ok && memo.tip == tip {
		return memo, nil
	}
	if ok {
		same, err := o.untouched(ctx, r, memo.tip, tip, memo.scope.Covers)
		if err != nil {
			return landedMemo{}, err
		}
		if same {
			memo.tip = tip
			o.rememberLanded(key, memo)
			return memo, nil
		}
	}
	scope, err := overlay.ScopeOf(e.Overlay(p.Pipeline))
	if err != nil {
		return landedMemo{}, err
	}
	memo = landedMemo{tip: tip, scope: scope}
	log, err := r.Mirror.Log(ctx, gitrepo.LogQuery{From: tip, FirstParent: true, Paths: scope.Paths(), Limit: landedDepth})
	if err != nil {
		return landedMemo{}, err
	}
	memo.origin = tracked.Whence(log, now.ID(),
		func(commit string) string { return o.idAt(r, commit, p, e) },
		func(commit string) bool { return o.absent(r, commit, p, e) })
	o.rememberLanded(key, memo)
	return memo, nil
}

func (o *Observer) rememberLanded(key string, m landedMemo) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.landed[key] = m
}

// absent says that the roots held no carried field at all, rather than some
// that could not be read.
func (o *Observer) absent(r *Repository, commit string, p *PipelineAt, e *EnvAt) bool {
	places, err := overlay.Locate(r.Mirror.Tree(commit), e.Overlay(p.Pipeline))
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
	l := promotion.Landed{Commit: c.SHA, At: c.CommitTime, By: promotion.ByPerson, Who: c.Author.Name}
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
		l.By, l.Pull, l.Who = promotion.ByPromotion, pr.Number, ""
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
	old, err := tracked.Old(ctx, r.Mirror, c, p.Baseline)
	if err != nil {
		return l, err
	}
	if old {
		l.By = promotion.ByBaseline
	}
	return l, nil
}
