package facts

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/store/record"

	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
)

// isComposedLanding says that a merged pull request of ours brought exactly Liftlock's own content
// to a component's environment, which still carries it. Anybody who may push can put another
// release onto its branch and merge that: then it is a person's change, like one without a pull
// request. So the landed release is compared with the ones that Liftlock is known to have put
// there, however it was merged (squashed, rebased, brought up to date before).
//
// Several things are proof. It was proven when it was first seen, or the store's record of pushes
// has it. Where the store knows nothing of the branch, a mark that the server signed for its head
// is proof. So is that all environments before this one have verified the release. Or Liftlock
// merged it, which it does with the head that it judged. All members of a batch must be proven, as
// it moves, and is reverted, as a whole.
//
// A release without any proof counts as a person's. That stops too much where the store was lost,
// the secrets were replaced, or the body was edited, and a person merged it. Then nothing moves on
// from there, and nothing reverts or replaces it, until a person says promote or the release is
// verified upstream again. The other way round a release that no environment before has seen would
// move on. Releases that were merged before there were such records stay as they were found then,
// as long as the store has that.
func (ga *Gatherer) isComposedLanding(ctx context.Context, c *ComponentEvaluation, env *promotion.Env, own *pullRecord) (bool, error) {
	if slices.ContainsFunc(env.History, func(a promotion.Arrival) bool {
		return a.Commit == own.PR.MergeCommit && a.Release == env.Release.Value.ID &&
			(a.By == promotion.ByPromotion || a.By == promotion.ByRevert)
	}) {
		return true, nil
	}
	var proven bool
	var err error
	if own.ref.Revert {
		proven, err = ga.isRestoredLanding(ctx, c, env, own)
	} else {
		proven, err = ga.isPromotedLanding(ctx, c, env, own)
	}
	if err != nil || proven {
		return proven, err
	}
	return ga.isMergedByUs(ctx, c.Snapshot.Repo, &own.PR)
}

// isPromotedLanding says that a promotion brought releases that are known to be ours, as in
// isComposedLanding.
func (ga *Gatherer) isPromotedLanding(ctx context.Context, c *ComponentEvaluation, env *promotion.Env, own *pullRecord) (bool, error) {
	landed := []promotion.Member{{Component: c.Facts.Unit.Component, Release: env.Release.Value.ID}}
	if own.batch {
		members, err := ga.findMembers(ctx, c.Evaluation, own)
		if err != nil {
			return false, err
		}
		for _, m := range members {
			if m.Component != c.Facts.Unit.Component {
				landed = append(landed, m)
			}
		}
	}
	put, known, err := ga.releasesPut(ctx, c.Snapshot.Repo, own)
	if err != nil {
		return false, err
	}
	for _, releases := range put {
		if !slices.ContainsFunc(landed, func(m promotion.Member) bool { return releases[m.Component] != m.Release }) {
			return true, nil
		}
	}
	return !known && !slices.ContainsFunc(landed, func(m promotion.Member) bool {
		member, _ := c.Evaluation.Component(m.Component)
		return member == nil || !promotion.VerifiedInAll(member.Facts.Envs, env.Spec.After, m.Release)
	}), nil
}

// releasesPut are the releases, by component, that we put onto the branch of a merged promotion:
// each entry has the releases that one of our heads moves. known says that the store has them, so
// that no other was ours; else a signed mark may say so, and none means that it isn't known.
func (ga *Gatherer) releasesPut(ctx context.Context, r *branch.Repository, p *pullRecord) (put []map[string]string, known bool, err error) {
	pushed, _, err := branch.PushedHeads.Get(ctx, ga.opts.Store, record.OfBranch(r.ID, p.PR.Branch))
	if err != nil {
		return nil, false, err
	}
	for i := range pushed {
		put = append(put, pushed[i].Releases)
	}
	if len(put) > 0 {
		return put, true, nil
	}
	heads, err := headsUpdated(ctx, r.Mirror, p.PR.Head)
	if err != nil {
		return nil, false, err
	}
	if k, ok := r.Marks.Signed(r.ID, p.PR.Branch, heads, p.PR.Body); ok && k.Kind == promotion.KindPromotion {
		put = append(put, k.Releases(p.ref.Component))
	}
	return put, false, nil
}

// headsUpdated are a head, its parents, and below them those from which it may have been brought up
// to date by the forge's button, as far as Git knows them. The button merges the base into the
// branch.
func headsUpdated(ctx context.Context, m *git.Mirror, head string) ([]string, error) {
	heads := []string{head}
	for range branch.MaxBroughtCommits {
		info, err := m.Commit(ctx, head)
		if errors.Is(err, git.ErrUnknownCommit) {
			return heads, nil
		}
		if err != nil {
			return nil, err
		}
		heads = append(heads, info.Parents...)
		if len(info.Parents) != 2 {
			return heads, nil
		}
		head = info.Parents[0]
	}
	return heads, nil
}

// isRestoredLanding says that a revert restored the release before its promotion. Where that isn't
// known, it is taken for one. From there nothing moves on without a command, and it is never
// reverted by itself, so a stop would gain little.
func (ga *Gatherer) isRestoredLanding(ctx context.Context, c *ComponentEvaluation, env *promotion.Env, own *pullRecord) (bool, error) {
	r := c.Snapshot.Repo
	of, err := ga.findReverted(ctx, c.Evaluation, own)
	if err != nil || of == nil {
		return err == nil, err
	}
	promoted, err := r.Mirror.Commit(ctx, of.PR.MergeCommit)
	if errors.Is(err, git.ErrUnknownCommit) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	if len(promoted.Parents) > 0 && ga.Releases.ReleaseIDAt(r, promoted.Parents[0], c.Pipeline,
		c.Unit.Envs[env.Name]) == env.Release.Value.ID {
		return true, nil
	}
	landed, err := r.Mirror.Commit(ctx, own.PR.MergeCommit)
	if err != nil || len(landed.Parents) == 0 {
		return false, err
	}
	edits, err := ga.Effects.ComposeRevert(ctx, c.Basis, env.Name, of.members, of.PR.MergeCommit, landed.Parents[0])
	if err != nil {
		return false, ctx.Err() // it couldn't be composed there
	}
	paths, err := branch.ChangedPaths(ctx, r.Mirror, landed.Parents[0], landed.SHA)
	if err != nil {
		return false, err
	}
	return fieldedit.VerifyCommit(r.Mirror.Tree(landed.SHA), paths, edits) == nil, nil
}

// isMergedByUs says that it was Liftlock that merged a pull request. The forge is asked once where
// its list didn't say.
func (ga *Gatherer) isMergedByUs(ctx context.Context, r *branch.Repository, pr *forge.PullRequest) (bool, error) {
	if pr.MergedBy != "" {
		return r.HasMerged(pr), nil
	}
	key := fmt.Sprintf("%s#%d %s", r.ID, pr.Number, pr.MergeCommit)
	if ours, known := ga.mergedByUs.Get(key); known {
		return ours, nil
	}
	now, err := ga.PullCache.RefreshPullRequest(ctx, r, pr.Number)
	if err != nil && !errors.Is(err, forge.ErrNotFound) {
		return false, err
	}
	ours := err == nil && now.MergeCommit == pr.MergeCommit && r.HasMerged(now)
	ga.mergedByUs.Put(key, ours)
	return ours, nil
}
