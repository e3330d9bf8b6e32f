package facts

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/wording"
)

// maxPastPulls bounds how many closed pull requests of an environment are judged by.
const maxPastPulls = 50

// pullDetail is an open pull request as it was last read from the forge.
type pullDetail struct {
	pr         forge.PullRequest
	reviews    []forge.Review
	reviewsErr string
	hasReviews bool
	at         time.Time
}

func detailKey(r *Repository, number int) string { return fmt.Sprintf("%s#%d", r.ID, number) }

// readDetail reads an open pull request again unless nothing was heard of it since
// the last time; fresh always reads.
func (o *pullGatherer) readDetail(ctx context.Context, r *Repository, e *cachedPull, reviews, fresh bool) (*pullDetail, error) {
	key := detailKey(r, e.PR.Number)
	d, _ := o.details.Get(key)
	if d == nil || fresh || d.at.Before(e.NotifiedAt) || o.now().Sub(d.at) >= o.maxAge || d.pr.Head != e.PR.Head ||
		d.pr.State != e.PR.State || d.pr.Mergeable == forge.MergeableUnknown {
		if _, err := o.RefreshPullRequest(ctx, r, e.PR.Number); err != nil {
			return nil, err
		}
		if d, _ = o.details.Get(key); d == nil {
			return nil, fmt.Errorf("read #%d of %s: %w", e.PR.Number, r.ID, forge.ErrConflict) // forgotten meanwhile: look again
		}
	}
	if !reviews || d.hasReviews || d.pr.State != forge.Open {
		return d, nil
	}
	full := *d
	full.hasReviews = true
	var err error
	if full.reviews, err = r.Forge.Reviews(ctx, r.Name, e.PR.Number); err != nil {
		if forge.IsRetryable(err) {
			return nil, fmt.Errorf("read the reviews of #%d: %w", e.PR.Number, err)
		}
		full.reviewsErr = err.Error()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if now, _ := o.details.Get(key); now == d {
		o.details.Put(key, &full)
	}
	return &full, nil
}

// fillPulls fills in what an environment has of pull requests.
func (o *Gatherer) fillPulls(ctx context.Context, c *Evaluation, env *promotion.Env, at *ResolvedEnv, entries []cachedPull, fresh bool) error {
	r := c.Snapshot.Repo
	for i := range entries {
		e := &entries[i]
		ref, _ := promotion.ParseBranch(e.PR.Branch)
		var d *pullDetail
		if e.PR.State == forge.Open && e.PR.Author == r.BotLogin {
			// Also without a gate that counts them: an approved promotion keeps its place.
			var err error
			if d, err = o.readDetail(ctx, r, e, !ref.Revert, fresh); err != nil {
				return err
			}
			e.PR = d.pr
		}
		wrongKind := c.Pipeline.Spec.BatchesByEnvironment() && !ref.Revert // the branch isn't used any more
		switch {
		case e.PR.Author != r.BotLogin:
			if e.PR.State != forge.Open || wrongKind {
				break
			}
			why := fmt.Sprintf("#%d by %s uses the branch %s, which Liftlock would use; close it and delete the branch", e.PR.Number, e.PR.Author, e.PR.Branch)
			switch {
			case !ref.Revert:
				env.MarkUnmanaged(why)
			case env.Release.OK && ref.Short == wording.Short(env.Release.Value.ID):
				env.MarkRevertUnmanaged(why)
			}
		case e.PR.State == forge.Open:
			p, err := o.describeOpenPull(ctx, c, env, at, e, d, entries, ref)
			if err != nil {
				return err
			}
			if p == nil {
				continue
			}
			switch {
			case ref.Revert:
				env.Revert = p
			case wrongKind:
				env.WrongKind = p
			default:
				env.Open = p
			}
		case len(env.PastPulls) < maxPastPulls:
			env.PastPulls = append(env.PastPulls, o.describePastPull(ctx, c, at, e, ref))
		}
	}
	slices.SortStableFunc(env.PastPulls, func(a, b promotion.PastPull) int { return b.At.Compare(a.At) })
	if env.Open == nil && env.BranchState != promotion.BranchUnmanaged && !env.Source() && !c.Pipeline.Spec.BatchesByEnvironment() {
		return o.inspectUnitLeftover(ctx, c, env, at, entries)
	}
	return nil
}

// describePastPull describes a pull request of ours that is no longer open.
func (o *Gatherer) describePastPull(ctx context.Context, c *Evaluation, at *ResolvedEnv, e *cachedPull, ref promotion.BranchRef) promotion.PastPull {
	p := promotion.PastPull{Number: e.PR.Number, Revert: ref.Revert, Merged: e.PR.State == forge.Merged,
		Superseded: e.PR.HasLabel(promotion.LabelSuperseded), At: e.PR.ClosedAt, Commit: e.PR.MergeCommit, By: e.PR.MergedBy}
	if p.Merged {
		p.At = e.PR.MergedAt
	}
	marked, _ := readMarker(e.PR.Body)
	if ref.Revert {
		p.Release = ref.Short
		if strings.HasPrefix(marked, ref.Short) {
			p.Release = marked
		}
		return p
	}
	p.Release = marked
	for _, commit := range []string{e.PR.Head, e.PR.MergeCommit} {
		if at == nil || commit == "" {
			continue
		}
		if ok, err := c.Snapshot.Repo.Mirror.Has(ctx, commit); err == nil && ok {
			if id := o.releaseIDAt(c.Snapshot.Repo, commit, c.Pipeline, at); id != "" {
				p.Release = id
				break
			}
		}
	}
	return p
}

// describeOpenPull describes an open pull request of ours and whether its head is still
// what we would compose. Nil when its head can't be fetched yet.
func (o *Gatherer) describeOpenPull(ctx context.Context, c *Evaluation, env *promotion.Env, at *ResolvedEnv, e *cachedPull, d *pullDetail, entries []cachedPull, ref promotion.BranchRef) (*promotion.Pull, error) {
	r := c.Snapshot.Repo
	pr := &e.PR
	p := &promotion.Pull{Number: pr.Number, URL: pr.URL, Head: pr.Head, CreatedAt: pr.CreatedAt, UpdatedAt: pr.UpdatedAt,
		Held: pr.HasLabel(promotion.LabelHold), Mergeable: promotion.MergeState(pr.Mergeable), MergeNote: pr.MergeReason}
	if pr.Base != env.Branch {
		p.MarkModified(fmt.Sprintf("somebody changed its base to %s; change it back, or close the pull request", pr.Base))
	}
	if ref.Revert {
		p.Release = ref.Short // a restraint that holds whatever somebody pushes there
	}
	if err := o.ensureCommit(ctx, r, pr.Head); err != nil {
		return nil, fmt.Errorf("look at the head of #%d: %w", pr.Number, err)
	}
	base, why, err := o.findBase(ctx, c, env, pr.Head)
	if err != nil {
		return nil, err
	}
	if why == "" {
		if ref.Revert {
			why, err = o.inspectRevert(ctx, c, env, at, p, base, ref, entries)
		} else {
			why, err = o.inspectPromotion(ctx, c, env, at, p, base)
		}
		if err != nil {
			return nil, err
		}
	}
	if !ref.Revert {
		p.DeclaredRelease = declaredRelease(readMarker(pr.Body))
		if why == "" && p.DeclaredRelease.Value != p.Release && !promotion.VerifiedInAll(c.Facts.Envs, env.Spec.After, p.Release) {
			// Well made, but not by us: that we opened it is the proof that its
			// release was verified upstream, and that is not this release.
			why = "it carries another release than the one that Liftlock put there"
		}
	}
	if why != "" && p.HeadState != promotion.HeadModified {
		p.MarkModified(fmt.Sprintf("#%d is not what Liftlock composed: %s; nothing is done with it until /liftlock retry", pr.Number, why))
	}
	if pr.Mergeable == forge.MergeableDirty {
		p.Stale = true
	}
	edits := c.HeadEdits[pr.Number]
	o.recordHead(r, p, base, len(edits) > 0)
	if p.HeadState != promotion.HeadModified && !p.Stale && len(edits) > 0 {
		// The branch may have got other readers since: what counts is what the
		// edits do to it as it is now.
		why, err := o.WhyNotIsolated(ctx, c, env.Name, env.Tip, edits)
		switch {
		case err == nil:
			p.MarkReach(promotion.ReachCrossEnvironment, why)
		case ctx.Err() != nil:
			return nil, err
		default:
			p.MarkReach(promotion.ReachUnknown, "which targets it would change can't be told: "+err.Error())
		}
	}
	if why := o.refusedMergeReason(r, e); why != "" {
		p.Mergeable, p.MergeNote = promotion.MergeState(forge.MergeableBlocked), why
	}
	if !ref.Revert {
		if p.Release == "" {
			p.Release, _ = readMarker(pr.Body)
		}
		if p.Review, err = o.reviewFacts(ctx, c, env, p, d, base); err != nil {
			return nil, fmt.Errorf("look at the approvals of #%d: %w", pr.Number, err)
		}
	}
	c.OpenPulls[pr.Number] = pr
	c.HeadBases[pr.Number] = base
	return p, nil
}

// refusal is a merge that the forge refused for a reason of its own.
type refusal struct {
	head, why string
	at        time.Time
}

// RecordRefusedMerge remembers that the forge refused to merge a head, until something
// is heard of the pull request or MaxAge has passed: asking again at once would
// only be refused again.
func (o *pullGatherer) RecordRefusedMerge(r *Repository, number int, head string, err error) {
	o.refused.Put(detailKey(r, number), refusal{head: head, why: err.Error(), at: o.now()})
}

func (o *pullGatherer) refusedMergeReason(r *Repository, e *cachedPull) string {
	f, ok := o.refused.Get(detailKey(r, e.PR.Number))
	if !ok || f.head != e.PR.Head || e.NotifiedAt.After(f.at) || o.now().Sub(f.at) > o.maxAge {
		return ""
	}
	return f.why
}
