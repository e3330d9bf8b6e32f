package act

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/prtext"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/wording"
)

// slotTTL bounds how long one process may hold the right to count what is open
// and add one.
const slotTTL = 30 * time.Second

// openPromotion commits, pushes and opens a promotion. After an interruption the same
// commit is made again, so the push and the pull request are found, not doubled.
func (a *Actor) openPromotion(ctx context.Context, c *facts.Evaluation, d *promotion.ComponentDecision, x promotion.Open) error {
	free, err := a.takeOpenSlot(ctx, c, x.Environment)
	if err != nil {
		return err
	}
	defer free()
	in := a.newTextInput(ctx, c, d, x.Environment, false)
	in.Release, in.Name = x.Release, x.Name
	edits := c.ComposedEdits[facts.CompositionKey(x.Environment, x.Release)]
	a.describeEdits(ctx, c, &in, x.Tip, edits)
	u := c.Facts.Unit
	head, err := a.pushBranch(ctx, c, promotion.Branch(u.Pipeline, x.Environment, u.Component), x.Tip, edits, prtext.CommitMessage(in))
	if err != nil {
		return err
	}
	pr, err := a.createPullRequest(ctx, c, x.Environment, in, promotion.Branch(u.Pipeline, x.Environment, u.Component), head)
	if err != nil {
		return err
	}
	return a.opts.Store.Tx(ctx, "opened", func(tx *store.Tx) error {
		return eachMember(c, x.Members[0].Release, x.Members[0].CommandID, func(c *facts.Evaluation, release string, commandID int64) error {
			if err := bindCommand(ctx, tx, commandID, release); err != nil {
				return err
			}
			if err := a.putPromotionRow(ctx, tx, c, x.Environment, pr.Number, promotion.KindPromotion, release, promotion.Opened); err != nil {
				return err
			}
			ev := newEvent(c, x.Environment, pr.Number, "opened", fmt.Sprintf("#%d opened: %s to %s", pr.Number, x.Name, x.Environment))
			ev.IdempotencyKey = facts.OpenedEventKey(c.Facts.Unit, pr.Number)
			_, err := tx.AddEvents(ctx, ev)
			return err
		})
	})
}

// eachMember calls f for the case's component, or for each of those that it moves
// together, with its release and the command that this fulfils.
func eachMember(c *facts.Evaluation, release string, commandID int64, do func(c *facts.Evaluation, release string, commandID int64) error) error {
	if len(c.Members) == 0 {
		return do(c, release, commandID)
	}
	for _, m := range c.Members {
		if err := do(m.Evaluation, m.Member.Release, m.Member.CommandID); err != nil {
			return err
		}
	}
	return nil
}

// bindCommand ties a command to the release that it became about; 0 is none.
func bindCommand(ctx context.Context, tx *store.Tx, commandID int64, release string) error {
	if commandID == 0 {
		return nil
	}
	return tx.BindPendingCommand(ctx, commandID, release)
}

// takeSlot takes the right to open one more of something that is counted; ErrStale
// when another component holds it.
func (a *Actor) takeSlot(ctx context.Context, u promotion.Unit, name string) (func(), error) {
	owner := a.opts.Owner + "/" + wake.UnitName(u)
	ok, err := a.opts.Store.TakeSlot(ctx, name, owner, slotTTL)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("%w: another component holds %s", ErrStale, name)
	}
	return func() {
		if err := a.opts.Store.FreeSlot(context.WithoutCancel(ctx), name, owner); err != nil {
			a.opts.Log.Warn("a slot could not be given back; it comes free by itself", zap.String("slot", name), zap.Error(err))
		}
	}, nil
}

// takeRevertSlot takes the right to open one more revert and counts again: what
// degrades at the same moment is judged at the same moment, and none of those
// judgements saw the others' reverts. The limit itself is the judge's.
func (a *Actor) takeRevertSlot(ctx context.Context, c *facts.Evaluation) (func(), error) {
	u := c.Facts.Unit
	free, err := a.takeSlot(ctx, u, "revert|"+u.Repo+"|"+u.Pipeline)
	if err != nil {
		return nil, err
	}
	if len(c.Members) > 0 {
		c = c.Members[0].Evaluation // what is in use is counted alike for each
	}
	now, err := a.opts.Gatherer.CountUsedLimits(ctx, c)
	if err == nil && (!maps.Equal(now.RevertsByEnv, c.Facts.Limits.RevertsByEnv) || !maps.Equal(now.RevertsByCluster, c.Facts.Limits.RevertsByCluster)) {
		err = fmt.Errorf("%w: another revert was opened meanwhile", ErrStale)
	}
	if err != nil {
		free()
		return nil, err
	}
	return free, nil
}

// takeOpenSlot takes the right to open one more pull request in an environment and
// counts again: two components may have been judged at the same moment.
func (a *Actor) takeOpenSlot(ctx context.Context, c *facts.Evaluation, env string) (func(), error) {
	u := c.Facts.Unit
	free, err := a.takeSlot(ctx, u, "open|"+u.Repo+"|"+u.Pipeline+"|"+env)
	if err != nil || len(c.Members) > 0 {
		return free, err // those that travel together have one pull request, whatever the limit
	}
	open, err := a.opts.Gatherer.OpenPulls(ctx, c.Snapshot.Repo)
	if err != nil {
		free()
		return nil, err
	}
	n := 0
	for _, pr := range open {
		ref, ok := promotion.ParseBranch(pr.Branch)
		if ok && !ref.Revert && ref.Pipeline == u.Pipeline && ref.Environment == env && ref.Component != u.Component && pr.Author == c.Snapshot.Repo.BotLogin {
			n++
		}
	}
	if limit := c.Facts.Pipeline.Spec.Limits.OpenPerEnvironment; limit > 0 && n >= limit {
		free()
		return nil, fmt.Errorf("%w: %d pull requests are open in %s by now", ErrStale, n, env)
	}
	return free, nil
}

// pushBranch writes the commit and moves our branch to it, with a lease on what was
// there. The commit is a function of its content and its parent: done again, it
// is the same.
func (a *Actor) pushBranch(ctx context.Context, c *facts.Evaluation, branch, base string, edits []fieldedit.Edit, message string) (string, error) {
	m := c.Snapshot.Repo.Mirror
	if len(edits) == 0 {
		return "", errors.New("there is nothing to commit")
	}
	head, err := facts.CommitEdits(ctx, m, base, edits, message)
	if err != nil {
		return "", err
	}
	old, _, err := m.Head(ctx, branch)
	if err != nil {
		return "", err
	}
	if old == head {
		// What the mirror believes may be older than the remote: push anyway,
		// an unmoved branch costs nothing.
		a.opts.Log.Debug("the branch is there already", zap.String("branch", branch))
	}
	return head, m.Push(ctx, git.PushSpec{Branch: branch, New: head, Old: old})
}

// createPullRequest opens the pull request of a pushed branch, or finds the one that an
// interrupted run opened.
func (a *Actor) createPullRequest(ctx context.Context, c *facts.Evaluation, env string, in prtext.Input, branch, head string) (*forge.PullRequest, error) {
	r := c.Snapshot.Repo
	page := prtext.Render(in)
	pr, created, err := r.Forge.CreatePullRequest(ctx, r.Name, forge.NewPullRequest{Title: page.Title, Body: page.Body, Branch: branch, Base: findEnv(c, env).Branch, Labels: page.Labels})
	if err != nil {
		return nil, err
	}
	if !created && pr.Author != r.BotLogin {
		return nil, fmt.Errorf("%w: #%d by %s already uses %s", ErrStale, pr.Number, pr.Author, branch)
	}
	if missing := slices.DeleteFunc(slices.Clone(page.Labels), pr.HasLabel); len(missing) > 0 {
		if err := r.Forge.AddLabels(ctx, r.Name, pr.Number, missing...); err != nil {
			return nil, err
		}
	}
	if pr.Head != head {
		a.opts.Log.Debug("the forge has not seen the push yet", zap.Int("pull", pr.Number))
	}
	return a.opts.Gatherer.RefreshPullRequest(ctx, r, pr.Number)
}

// replaceHead composes an open promotion anew, in place.
func (a *Actor) replaceHead(ctx context.Context, c *facts.Evaluation, d *promotion.ComponentDecision, x promotion.Replace) error {
	r := c.Snapshot.Repo
	u := c.Facts.Unit
	if _, err := a.ensureOpen(ctx, r, x.Pull, x.Head); err != nil {
		return err
	}
	branch := promotion.Branch(u.Pipeline, x.Environment, u.Component)
	if head, ok, err := r.Mirror.Head(ctx, branch); err != nil {
		return err
	} else if !ok || head != x.Head {
		return fmt.Errorf("%w: %s is at %s", ErrStale, branch, wording.Short(head))
	}
	in := a.newTextInput(ctx, c, d, x.Environment, false)
	in.Release, in.Name, in.Number = x.Release, x.Name, x.Pull
	edits := c.ComposedEdits[facts.CompositionKey(x.Environment, x.Release)]
	a.describeEdits(ctx, c, &in, x.Tip, edits)
	if _, err := a.pushBranch(ctx, c, branch, x.Tip, edits, prtext.CommitMessage(in)); err != nil {
		return err
	}
	page := prtext.Render(in)
	change := forge.PullRequestUpdate{Title: &page.Title, Body: &page.Body}
	if err := r.Forge.UpdatePullRequest(ctx, r.Name, x.Pull, change); err != nil {
		return err
	}
	if _, err := a.opts.Gatherer.RefreshPullRequest(ctx, r, x.Pull); err != nil {
		return err
	}
	return a.opts.Store.Tx(ctx, "replaced", func(tx *store.Tx) error {
		return eachMember(c, x.Members[0].Release, x.Members[0].CommandID, func(c *facts.Evaluation, release string, commandID int64) error {
			if err := bindCommand(ctx, tx, commandID, release); err != nil {
				return err
			}
			if err := a.putPromotionRow(ctx, tx, c, x.Environment, x.Pull, promotion.KindPromotion, release, promotion.Opened); err != nil {
				return err
			}
			_, err := tx.AddEvents(ctx, newEvent(c, x.Environment, x.Pull, "replaced", fmt.Sprintf("#%d composed anew: %s", x.Pull, x.Why)))
			return err
		})
	})
}

// ensureOpen reads a pull request again before it is changed: people merge and
// close at any moment, and what was judged must still be so.
func (a *Actor) ensureOpen(ctx context.Context, r *facts.Repository, number int, head string) (*forge.PullRequest, error) {
	pr, err := a.opts.Gatherer.RefreshPullRequest(ctx, r, number)
	if err != nil {
		return nil, err
	}
	if pr.State != forge.Open || pr.Head != head {
		return nil, fmt.Errorf("%w: #%d is %s at %s", ErrStale, number, pr.State, wording.Short(pr.Head))
	}
	return pr, nil
}

// judgedHead is the head with which a pull request of an environment was judged.
func judgedHead(c *facts.Evaluation, environment string, number int) string {
	if pr := c.OpenPulls[number]; pr != nil {
		return pr.Head
	}
	if env := findEnv(c, environment); env != nil {
		for _, p := range []*promotion.Pull{env.Open, env.Revert, env.WrongKind} {
			if p != nil && p.Number == number {
				return p.Head
			}
		}
	}
	return ""
}

// closePull closes one of ours: first the mark that it is no veto, then the word to
// its readers, then the state.
func (a *Actor) closePull(ctx context.Context, c *facts.Evaluation, d *promotion.ComponentDecision, x promotion.Close) error {
	r := c.Snapshot.Repo
	if _, err := a.ensureOpen(ctx, r, x.Pull, judgedHead(c, x.Environment, x.Pull)); err != nil {
		return err
	}
	if err := r.Forge.AddLabels(ctx, r.Name, x.Pull, promotion.LabelSuperseded); err != nil {
		return err
	}
	in := a.newTextInput(ctx, c, d, x.Environment, x.Revert)
	in.Number = x.Pull
	if err := a.putComment(ctx, r, x.Pull, prtext.ClosedComment(in, x.Why)); err != nil {
		return err
	}
	closed := forge.Closed
	if err := r.Forge.UpdatePullRequest(ctx, r.Name, x.Pull, forge.PullRequestUpdate{State: &closed}); err != nil {
		return err
	}
	pr, err := a.opts.Gatherer.RefreshPullRequest(ctx, r, x.Pull)
	if err != nil {
		return err
	}
	if err := r.Forge.DeleteBranch(ctx, r.Name, pr.Branch); err != nil {
		a.opts.Log.Warn("a branch of ours could not be deleted; the next promotion takes it over", zap.String("branch", pr.Branch), zap.Error(err))
	}
	return a.opts.Store.Tx(ctx, "closed", func(tx *store.Tx) error {
		return eachMember(c, "", 0, func(c *facts.Evaluation, release string, _ int64) error {
			if err := a.updatePromotion(ctx, tx, c, x.Environment, x.Pull, release, "superseded"); err != nil {
				return err
			}
			ev := newEvent(c, x.Environment, x.Pull, "closed", fmt.Sprintf("#%d closed: %s", x.Pull, x.Why))
			ev.IdempotencyKey = facts.ClosedEventKey(c.Facts.Unit, x.Pull, pr.Head)
			_, err := tx.AddEvents(ctx, ev)
			return err
		})
	})
}

// openRevert opens the way back.
func (a *Actor) openRevert(ctx context.Context, c *facts.Evaluation, d *promotion.ComponentDecision, x promotion.OpenRevert) error {
	free, err := a.takeRevertSlot(ctx, c)
	if err != nil {
		return err
	}
	defer free()
	u := c.Facts.Unit
	in := a.newTextInput(ctx, c, d, x.Environment, true)
	in.Release, in.RevertedPull, in.Evidence, in.By, in.Reason = x.Release, x.Pull, x.Evidence, x.By, x.Reason
	if in.Name = c.ReleaseContents[x.Release].String(); len(c.Members) > 0 {
		in.Name = memberNames(c)
	}
	edits := c.RestoredEdits[x.Environment]
	a.describeEdits(ctx, c, &in, x.Tip, edits)
	branch := promotion.RevertBranch(u.Pipeline, x.Environment, u.Component, x.Release)
	head, err := a.pushBranch(ctx, c, branch, x.Tip, edits, prtext.CommitMessage(in))
	if err != nil {
		return err
	}
	pr, err := a.createPullRequest(ctx, c, x.Environment, in, branch, head)
	if err != nil {
		return err
	}
	if a.opts.Metrics != nil {
		a.opts.Metrics.Reverted(x.Environment)
	}
	return a.opts.Store.Tx(ctx, "revert-opened", func(tx *store.Tx) error {
		if err := a.putEvidence(ctx, tx, u.Repo, pr.Number, x); err != nil {
			return err
		}
		return eachMember(c, x.Members[0].Release, x.Members[0].CommandID, func(c *facts.Evaluation, release string, commandID int64) error {
			if err := bindCommand(ctx, tx, commandID, release); err != nil {
				return err
			}
			if err := a.putPromotionRow(ctx, tx, c, x.Environment, pr.Number, promotion.KindRevert, release, promotion.Opened); err != nil {
				return err
			}
			if err := a.updatePromotion(ctx, tx, c, x.Environment, x.Pull, release, promotion.Reverting); err != nil {
				return err
			}
			ev := newEvent(c, x.Environment, pr.Number, "revert-opened", fmt.Sprintf("#%d opened: takes #%d back from %s", pr.Number, x.Pull, x.Environment))
			ev.IdempotencyKey = facts.OpenedEventKey(c.Facts.Unit, pr.Number)
			_, err := tx.AddEvents(ctx, ev)
			return err
		})
	})
}

// recomposeRevert composes an open revert anew on the newest commit.
func (a *Actor) recomposeRevert(ctx context.Context, c *facts.Evaluation, d *promotion.ComponentDecision, x promotion.RecomposeRevert) error {
	r := c.Snapshot.Repo
	pr, of := c.OpenPulls[x.Pull], c.RevertedPulls[x.Pull]
	if pr == nil || of == nil || pr.Head != x.Head {
		return fmt.Errorf("%w: the revert #%d", ErrStale, x.Pull)
	}
	if _, err := a.ensureOpen(ctx, r, x.Pull, x.Head); err != nil {
		return err
	}
	edits, err := a.opts.Gatherer.ComposeRevertOnto(ctx, c, x.Environment, of.MergeCommit, x.Tip)
	if err != nil {
		return err
	}
	in := a.newTextInput(ctx, c, d, x.Environment, true)
	in.Number, in.RevertedPull = x.Pull, of.Number
	if env := findEnv(c, x.Environment); env != nil && env.Revert != nil {
		in.Release, in.Name = env.Revert.Release, env.Revert.Name
	}
	if err := a.readEvidence(ctx, c, x.Pull, &in); err != nil {
		return err
	}
	a.describeEdits(ctx, c, &in, x.Tip, edits)
	if _, err := a.pushBranch(ctx, c, pr.Branch, x.Tip, edits, prtext.CommitMessage(in)); err != nil {
		return err
	}
	_, err = a.opts.Gatherer.RefreshPullRequest(ctx, r, x.Pull)
	return err
}
