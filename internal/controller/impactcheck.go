package controller

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/controller/act"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/facts/effects"
	"github.com/liftlock/liftlock/internal/controller/prtext"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store/record"
	"github.com/liftlock/liftlock/webhooks"
)

const (
	// checkRetryDelay is when one that found no room asks again.
	checkRetryDelay = 2 * time.Second
)

// checkPull says on a pull request that isn't ours what it does to the targets, and whether the
// pipeline files that it brings are valid. A judged pull request is not judged again while nothing
// that it depends on has changed.
func (co *Controller) checkPull(ctx context.Context, r *Repository, pr *forge.PullRequest) (time.Time, error) {
	if pr.State != forge.Open {
		return time.Time{}, co.forgetChecked(ctx, r, pr.Number)
	}
	s, err := co.opts.Gatherer.Targets.Snapshot(ctx, r.Repository)
	if err != nil {
		return time.Time{}, err
	}
	line, ok := s.BaseOf(pr)
	if !ok {
		return time.Time{}, co.forgetChecked(ctx, r, pr.Number)
	}
	was, err := co.readChecked(ctx, r, pr.Number)
	if err != nil || was.Refused != "" && was.Head == pr.Head {
		return time.Time{}, err
	}
	change, v, again, err := co.evaluatePull(ctx, r, pr, s, line, was)
	var refused *effects.RefusedHeadError
	switch {
	case errors.As(err, &refused):
		return co.reportRefused(ctx, r, pr, s, line, refused)
	case err != nil || !again.IsZero():
		return again, err
	}
	if v != nil {
		again, err := co.reportImpact(ctx, r, pr, s, change, v)
		if err != nil || !again.IsZero() {
			return again, err // it isn't told yet
		}
	}
	return time.Time{}, checkedHeads.Put(ctx, co.opts.Store, record.OfPull(r.ID, pr.Number), checkedState{Key: change.Key, Head: pr.Head})
}

// evaluatePull finds out what a pull request does. It is nil where nothing that its answer depends
// on has changed since the last look, which was so. The time is when to ask again where there is no
// room now. A head that was never evaluated takes a place from the start: its author decides how
// long fetching and comparing it takes.
func (co *Controller) evaluatePull(ctx context.Context, r *Repository, pr *forge.PullRequest, s *branch.Snapshot, into branch.Head,
	was checkedState) (change *effects.ProposedChange, v *effects.ChangeReport, again time.Time, err error) {
	if was.Head == pr.Head {
		if change, err = co.opts.Gatherer.Changes.ReadChange(ctx, s, into, pr); err != nil || change.Key == was.Key {
			return change, nil, time.Time{}, err
		}
	}
	leave, ok := co.checkSlots.enter(r.ID, pr.Author, pr.Number, checkRetryDelay)
	if !ok {
		return nil, nil, co.opts.Clock.Now().Add(checkRetryDelay), nil
	}
	defer leave()
	start := co.opts.Clock.Now()
	err = co.lookAt(ctx, r, pr, func() (err error) {
		if change == nil {
			if change, err = co.opts.Gatherer.Changes.ReadChange(ctx, s, into, pr); err != nil || change.Key == was.Key {
				return err
			}
		}
		v, err = co.opts.Gatherer.Changes.EvaluateChange(ctx, s, change, act.RenderLimit)
		return err
	})
	if err != nil || v == nil {
		return change, nil, time.Time{}, err
	}
	took := co.opts.Clock.Now().Sub(start)
	if co.opts.Metrics != nil {
		co.opts.Metrics.Check(took, v.Failed != "")
	}
	co.opts.Log.Info("a pull request was checked", zap.String("repository", r.ID), zap.Int("pull", pr.Number),
		zap.String("author", pr.Author),
		zap.Duration("took", took), zap.String("failed", v.Failed))
	return change, v, time.Time{}, nil
}

// reportImpact writes a verdict. It sets the commit status where the forge keeps one of that commit
// (GitLab doesn't of a fork's). It writes a comment where there is something to say or there was
// one before. The time is when to look again because the comment's edit was put off; zero: it
// wasn't.
func (co *Controller) reportImpact(ctx context.Context, r *Repository, pr *forge.PullRequest, s *branch.Snapshot, c *effects.ProposedChange,
	v *effects.ChangeReport) (time.Time, error) {
	text := impactText(c, v)
	status := text.Status()
	if s.NoPipelines && v.PipelineErr == "" {
		status = prtext.OtherStatus("", c.TouchesPipeline())
	}
	shared, err := co.sharesStatus(ctx, r, pr, status)
	if err != nil {
		return time.Time{}, err
	}
	if !shared {
		if err := co.opts.Actor.SetStatus(ctx, r.Repository, pr.Number, pr.Head, status); err != nil &&
			!errors.Is(err, forge.ErrUnsupported) {
			return time.Time{}, err
		}
	}
	return co.opts.Actor.UpdateComment(ctx, r.Repository, pr.Number, pr.Head, text.Comment(), text.NeedsComment())
}

// sharesStatus says that a person's pull request has for its head a commit on which our status says
// something else, and has said it. That is a promotion's or a revert's, whose gates the status
// stands for, or a merge group's, which no person's change lets pass. A commit has one status of a
// name, and anybody who reads a repository can propose its commits again.
func (co *Controller) sharesStatus(ctx context.Context, r *Repository, pr *forge.PullRequest, st prtext.Status) (bool, error) {
	rows, err := co.opts.Store.PullsAt(ctx, r.ID, pr.Head)
	if err != nil {
		return false, err
	}
	for _, row := range rows {
		if _, ours := promotion.ParseBranch(row.Branch); ours && row.Number != pr.Number && r.WasOurs(row.Author, 0, row.CreatedAt) {
			co.opts.Log.Warn("a pull request has the head of one of Liftlock's, whose status it doesn't get; a commit of its own gets one",
				zap.String("repository", r.ID), zap.Int("pull", pr.Number), zap.Int("of", row.Number), zap.String("author", pr.Author))
			return true, nil
		}
	}
	if r.ForgeType != webhooks.GitHub || st.State != string(forge.StatusSuccess) {
		return false, nil
	}
	groups, err := r.Mirror.Heads(ctx, groupPrefix)
	if err != nil {
		return false, err
	}
	for branch, head := range groups {
		if _, is := baseOfMergeGroup(branch); is && head == pr.Head {
			co.opts.Log.Warn("a pull request has the head of a merge group, whose status it doesn't get; a commit of its own gets one",
				zap.String("repository", r.ID), zap.Int("pull", pr.Number), zap.String("branch", branch), zap.String("author", pr.Author))
			return true, nil
		}
	}
	return false, nil
}

// impactText is what the texts about a change are made from.
func impactText(c *effects.ProposedChange, v *effects.ChangeReport) prtext.Impact {
	return prtext.Impact{
		Rendered: describeRendered(v), RenderedErr: v.RenderedErr, NotRendered: v.NotRendered,
		Branch: c.Into.Branch, Base: c.Base, Report: v.Report, Failed: v.Failed, PipelineErr: v.PipelineErr, ChangedOnBranch: c.AlsoChanged,
		Unknown: v.Unknown,
	}
}

// describeRendered is what a change does to manifests, as texts show it.
func describeRendered(v *effects.ChangeReport) []prtext.Rendered {
	out := make([]prtext.Rendered, 0, len(v.Rendered))
	for _, r := range v.Rendered {
		out = append(out, prtext.Rendered{Target: r.Target, Spec: r.Spec, Summary: r.Summary, Diff: r.Diff, Why: r.Why})
	}
	return out
}
