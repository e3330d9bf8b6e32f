package facts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
	"github.com/liftlock/liftlock/internal/wording"
)

// Anybody who may write can give a pull request of ours another base, and merge it there. A merged
// pull request counts where it landed. A promotion that landed on another branch brought nothing to
// its environment, and a revert undid nothing there.

// landing is whether a merged pull request landed on its environment's branch.
type landing int

const (
	landingUnread landing = iota
	landedHere
	landedOnOtherBranch
)

// hasLanded says that a pull request was merged into its environment's branch. The forge is
// believed in that: no forge lets anybody change the base of a merged one. The base may have
// another name than the branch has now, as after a change of the layout, or of the default branch's
// name. Then its commit must be on the branch.
func hasLanded(ctx context.Context, ev *Evaluation, p *pullRecord) (bool, error) {
	if p.PR.State != forge.Merged {
		return false, nil
	}
	if p.landing == landingUnread {
		landed, err := landedOn(ctx, ev, p)
		if err != nil {
			return false, err
		}
		p.landing = landedOnOtherBranch
		if landed {
			p.landing = landedHere
		}
	}
	return p.landing == landedHere, nil
}

func landedOn(ctx context.Context, ev *Evaluation, p *pullRecord) (bool, error) {
	env := ev.Environment(p.ref.Environment)
	if env == nil || p.PR.Base == env.Branch {
		return true, nil
	}
	if env.Tip == "" || p.PR.MergeCommit == "" {
		return false, nil
	}
	landed, err := ev.Snapshot.Repo.Mirror.IsAncestor(ctx, p.PR.MergeCommit, env.Tip)
	if errors.Is(err, git.ErrUnknownCommit) {
		return false, nil
	}
	return landed, err
}

// findSuperseded says for which components a pull request that is no longer open is no veto: Liftlock
// closed it itself, or a command took the veto back. The label that shows that is anybody's to set, so
// it is believed only with the store's record, or with the mark that the server signed when it closed it.
func (ga *Gatherer) findSuperseded(ctx context.Context, r *branch.Repository, pr *forge.PullRequest) (components map[string]bool, all bool,
	err error) {
	if !pr.HasLabel(promotion.LabelSuperseded) {
		return nil, false, nil
	}
	rows, err := ga.opts.Store.Promotions(ctx, store.PromotionFilter{Repo: r.ID, Pull: pr.Number})
	if err != nil {
		return nil, false, err
	}
	closing, begun, err := Closing.Get(ctx, ga.opts.Store, record.OfPull(r.ID, pr.Number))
	if err != nil {
		return nil, false, err
	}
	if begun && pr.ClosedAt.Sub(closing).Abs() <= branch.ClosingTolerance {
		return nil, true, nil
	}
	for _, row := range rows {
		if row.State == recordSuperseded {
			if components == nil {
				components = map[string]bool{}
			}
			components[row.Component] = true
		}
	}
	return components, r.Marks.IsClosingMarked(r.ID, pr), nil
}

// Closing is when Liftlock began to close a pull request, until that is on record.
var Closing = record.Declare[record.Pull, time.Time](record.Declaration{
	Name: "closing", Owner: "controller/act", Lifetime: record.UntilDropped,
	Doc: "When Liftlock began to close the pull request, until that is on record.",
})

// PutClosing notes that Liftlock is about to close a pull request: the process may die before it is on record.
func PutClosing(ctx context.Context, tx *store.Tx, repo string, pull int, at time.Time) error {
	return Closing.Put(ctx, tx, record.OfPull(repo, pull), at)
}

// requestedReleases are those that a pull request moves at the word of somebody who may, against
// what keeps them out.
var requestedReleases = record.Declare[record.Pull, map[string]string](record.Declaration{
	Name: "requested-releases", Owner: "controller/act", Lifetime: record.UntilDropped,
	Doc: "The releases that somebody with the right requested against what keeps them out, by component.",
})

// PutRequested notes that somebody who may asked for a release of a component that a pull request moves.
func PutRequested(ctx context.Context, tx *store.Tx, repo string, pull int, component, release string) error {
	known, _, err := requestedReleases.Get(ctx, tx, record.OfPull(repo, pull))
	if err != nil || known[component] == release {
		return err
	}
	if known == nil {
		known = map[string]string{}
	}
	known[component] = release
	return requestedReleases.Put(ctx, tx, record.OfPull(repo, pull), known)
}

// markUnrequested marks merged promotions that would lift a quarantine or a veto and that a person
// merged without a request for the release by anybody who may. A person who merges past the gates
// brings a release to its environment, and that is all.
func (ga *Gatherer) markUnrequested(ctx context.Context, ev *Evaluation, env *promotion.Env, component string) error {
	for i := range env.PastPulls {
		p := &env.PastPulls[i]
		if p.Revert || !p.Merged || !hasLiftable(env.PastPulls, p) {
			continue
		}
		requested, err := ga.isRequested(ctx, ev.Snapshot.Repo, p, component)
		if err != nil {
			return fmt.Errorf("look at who had #%d merged: %w", p.Number, err)
		}
		p.Unrequested = !requested
	}
	return nil
}

// hasLiftable says that a merged promotion's release was kept out by something before.
func hasLiftable(past []promotion.PastPull, merged *promotion.PastPull) bool {
	return slices.ContainsFunc(past, func(p promotion.PastPull) bool {
		isVeto, isRevert := !p.Merged && !p.Superseded, p.Merged && p.Revert
		if !isVeto && !isRevert || p.At.Truncate(time.Second).After(merged.At) {
			return false
		}
		return promotion.SameRelease(merged.Release, wording.Short(p.Release))
	})
}

// isRequested says that Liftlock merged a promotion, or that somebody who may asked for its release.
func (ga *Gatherer) isRequested(ctx context.Context, r *branch.Repository, p *promotion.PastPull, component string) (bool, error) {
	requested, _, err := requestedReleases.Get(ctx, ga.opts.Store, record.OfPull(r.ID, p.Number))
	if err != nil || requested[component] == p.Release {
		return err == nil, err
	}
	pr, err := ga.PullCache.KnownPull(ctx, r.ID, p.Number)
	if err != nil || pr == nil {
		return false, err
	}
	return ga.isMergedByUs(ctx, r, pr)
}
