package controller

import (
	"context"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/prtext"
	"github.com/liftlock/liftlock/internal/forge"
)

const (
	// checksAtOnce bounds how many strangers' pull requests are evaluated at the
	// same time: most workers stay free for what Liftlock is there for.
	checksAtOnce = 2
	// checkAgain is when one that found no room asks again.
	checkAgain = 2 * time.Second
)

// check says on a pull request that isn't ours what it does to the targets, and
// whether the pipeline files that it brings are valid. What was judged once is
// not judged again while nothing that it depends on has changed.
func (e *Engine) check(ctx context.Context, r *Repository, pr *forge.PullRequest) (time.Time, error) {
	key := checkedKey(r, pr.Number)
	if pr.State != forge.Open {
		return time.Time{}, e.o.Store.DeleteState(ctx, key)
	}
	s, err := e.o.Observer.Snapshot(ctx, r.Repository)
	if err != nil {
		return time.Time{}, err
	}
	line, ok := s.LineOf(pr)
	if !ok {
		return time.Time{}, e.o.Store.DeleteState(ctx, key)
	}
	change, err := e.o.Observer.LookAtChange(ctx, s, line, pr)
	if err != nil {
		return time.Time{}, err
	}
	if done, ok, err := e.o.Store.State(ctx, key); err != nil || ok && string(done) == change.Key {
		return time.Time{}, err
	}
	select {
	case e.checks <- struct{}{}:
		defer func() { <-e.checks }()
	default:
		return e.o.Clock.Now().Add(checkAgain), nil
	}
	start := e.o.Clock.Now()
	v, err := e.o.Observer.Judge(ctx, s, change)
	if err != nil {
		return time.Time{}, err
	}
	took := e.o.Clock.Now().Sub(start)
	if e.o.Metrics != nil {
		e.o.Metrics.Check(took, v.Failed != "")
	}
	e.o.Log.Info("a pull request was checked", zap.String("repository", r.ID), zap.Int("pull", pr.Number), zap.String("author", pr.Author),
		zap.Duration("took", took), zap.String("failed", v.Failed))
	if err := e.sayImpact(ctx, r, pr, s, change, v); err != nil {
		return time.Time{}, err
	}
	return time.Time{}, e.o.Store.PutState(ctx, key, []byte(change.Key))
}

func checkedKey(r *Repository, number int) string {
	return "checked|" + r.ID + "|" + strconv.Itoa(number)
}

// sayImpact writes a verdict: the commit status always, a comment where there is
// something to say or something was said before.
func (e *Engine) sayImpact(ctx context.Context, r *Repository, pr *forge.PullRequest, s *facts.Snapshot, c *facts.Change, v *facts.Verdict) error {
	text := prtext.Impact{
		Branch: c.Line.Branch, Base: c.Base, Report: v.Report, Failed: v.Failed, PipelineErr: v.PipelineErr, ChangedOnBranch: c.Moved, Unknown: v.Unknown,
	}
	status := text.Status()
	if s.None && v.PipelineErr == "" {
		status = prtext.OtherStatus("", false)
	}
	if err := e.o.Actor.Status(ctx, r.Repository, pr.Number, pr.Head, status); err != nil {
		return err
	}
	return e.o.Actor.Comment(ctx, r.Repository, pr.Number, text.Comment(), text.NeedsComment())
}
