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
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/facts/effects"
	"github.com/liftlock/liftlock/internal/controller/facts/people"
	"github.com/liftlock/liftlock/internal/controller/prtext"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/pipeline/event"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
	"github.com/liftlock/liftlock/internal/wording"
)

// openPromotion commits, pushes and opens a promotion. After an interruption the same
// commit is made again, so the push and the pull request are found, not doubled.
func (a *Actor) openPromotion(ctx context.Context, s *subject, x promotion.Open) error {
	free, err := a.takeOpenSlot(ctx, s)
	if err != nil {
		return err
	}
	defer free()
	in := a.newTextInput(s, false)
	in.Release, in.Name = x.Release, x.Name
	pr, head, err := a.openPull(ctx, s, &in, s.promotionBranch(), x.Tip, s.ev.ComposedEdits(s.env, x.Release))
	if err != nil {
		return err
	}
	return a.opts.Store.Tx(ctx, "opened", func(tx *store.Tx) error {
		if err := openings.Drop(ctx, tx, s.opening()); err != nil {
			return err
		}
		if err := putOnlyPushed(ctx, tx, s, pr, head); err != nil {
			return err
		}
		return s.eachMember(func(c *facts.ComponentEvaluation, m promotion.Member) error {
			if err := a.recordOpened(ctx, tx, c, s.env, pr.Number, promotion.KindPromotion, m); err != nil {
				return err
			}
			ev := newEvent(c, s.env, pr.Number, event.Opened, fmt.Sprintf("#%d opened: %s to %s", pr.Number, x.Name, s.env))
			ev.IdempotencyKey = facts.OpenedEventKey(c.Facts.Unit, pr.Number)
			_, err := tx.AddEvents(ctx, ev)
			return err
		})
	})
}

func (s *subject) promotionBranch() string {
	return promotion.Branch(s.ev.Unit.Pipeline, s.env, s.unit().Component)
}

// openings are there from before a pull request is opened until it is recorded.
var openings = record.Declare[record.InUnit, string](record.Declaration{
	Name: "opening", Owner: "controller/act", Lifetime: record.UntilDropped,
	Doc: "A pull request is being opened for an environment, with which head and by which process. Where it stays, the forge's list is " +
		"read.",
})

// opening is that of the subject's pull request.
func (s *subject) opening() record.InUnit {
	return record.InUnit{Unit: record.Unit(s.unit()), Name: s.env}
}

// checkInterrupted reads the list of the forge where a pull request may have been opened
// of which nothing was recorded, and says whether that is so. forge.ErrConflict: a person has
// closed it by now, and what is decided without knowing that would open it again.
func (a *Actor) checkInterrupted(ctx context.Context, s *subject) (interrupted bool, err error) {
	interrupted, err = openings.Has(ctx, a.opts.Store, s.opening())
	if err != nil || !interrupted {
		return false, err
	}
	return true, a.opts.Gatherer.CheckClosedPulls(ctx, s.ev)
}

// forgetOpening takes back that a pull request may be opened, unless another process says so by now.
func (a *Actor) forgetOpening(ctx context.Context, s *subject, opening string) error {
	return a.opts.Store.Tx(ctx, "notOpened", func(tx *store.Tx) error {
		now, _, err := openings.Get(ctx, tx, s.opening())
		if err != nil || now != opening {
			return err
		}
		return openings.Drop(ctx, tx, s.opening())
	})
}

// openPull describes edits, pushes them as head and opens their pull request.
func (a *Actor) openPull(ctx context.Context, s *subject, in *prtext.Input, branch, tip string,
	edits []fieldedit.Edit) (pr *forge.PullRequest, head string, err error) {
	if err := s.ev.Snapshot.Repo.Forge.MayOpen(forge.WithPriority(ctx, priorityOf(in)), s.ev.Snapshot.Repo.Name); err != nil {
		return nil, "", err // hundreds that wait for the forge's limits needn't each compose what they would open
	}
	interrupted, err := a.checkInterrupted(ctx, s)
	if err != nil {
		return nil, "", err
	}
	a.describeEdits(ctx, s, in, effects.Commits{Base: tip}, edits)
	a.renderEffects(ctx, s, in, effects.Commits{Base: tip}, edits, 0)
	if head, err = a.pushBranch(ctx, s, in, branch, tip, edits); err != nil {
		return nil, "", err
	}
	opening := head + " by " + a.opts.Owner
	if err := openings.Put(ctx, a.opts.Store, s.opening(), opening); err != nil {
		return nil, "", err
	}
	pr, opened, err := a.createPullRequest(ctx, s, *in, branch, head)
	if errors.Is(err, forge.ErrRateLimited) && !opened && !interrupted {
		// The next try needn't look for it: where hundreds wait for the forge's limits, the lists
		// that they read would use these up.
		err = errors.Join(err, a.forgetOpening(ctx, s, opening))
	}
	return pr, head, err
}

// recordOpened writes down that a pull request moves a component, and which command
// that fulfils.
func (a *Actor) recordOpened(ctx context.Context, tx *store.Tx, c *facts.ComponentEvaluation, env string, number int, kind string,
	m promotion.Member) error {
	if m.CommandID != 0 {
		if err := tx.BindPendingCommand(ctx, m.CommandID, m.Release); err != nil {
			return err
		}
		if err := putRequested(ctx, tx, c, m.CommandID, number, m.Release); err != nil {
			return err
		}
	}
	return a.putPromotionRow(ctx, tx, c, env, number, kind, m.Release, promotion.Opened)
}

// createPullRequest opens the pull request of a pushed branch, or finds the one that an
// interrupted run opened. opened is that it is there, also with an error.
func (a *Actor) createPullRequest(ctx context.Context, s *subject, in prtext.Input, branch, head string) (pr *forge.PullRequest,
	opened bool, err error) {
	ctx = forge.WithPriority(ctx, priorityOf(&in))
	r := s.ev.Snapshot.Repo
	page := renderPage(r, in)
	pr, created, err := r.Forge.CreatePullRequest(ctx, r.Name, forge.NewPullRequest{Title: page.Title, Body: page.Body, Branch: branch,
		Base: s.ev.Environment(s.env).Branch, Labels: page.Labels})
	if err != nil {
		return nil, false, err
	}
	if !created && !r.HasOpened(pr) {
		return nil, true, fmt.Errorf("%w: #%d by %s already uses %s", ErrStale, pr.Number, pr.Author, branch)
	}
	if missing := slices.DeleteFunc(slices.Clone(page.Labels), pr.HasLabel); len(missing) > 0 {
		if err := r.Forge.AddLabels(ctx, r.Name, pr.Number, missing...); err != nil {
			return nil, true, err
		}
		pr.Labels = append(slices.Clone(pr.Labels), missing...)
		slices.Sort(pr.Labels)
	}
	if pr.Head != head {
		a.opts.Log.Debug("the forge has not seen the push yet", zap.Int("pull", pr.Number))
	}
	if !created || pr.Head != head {
		pr, err = a.opts.Gatherer.PullCache.RefreshPullRequest(ctx, r, pr.Number)
		return pr, true, err
	}
	if err := a.putShown(ctx, r, pr.Number, facts.ShownState{Page: hashParts(page.Title, page.Body), Bare: true}); err != nil {
		return nil, true, err
	}
	pr, err = a.opts.Gatherer.PullCache.RecordCreated(ctx, r, pr)
	return pr, true, err
}

// replaceHead composes an open promotion anew, in place.
func (a *Actor) replaceHead(ctx context.Context, s *subject, x promotion.Replace) error {
	r := s.ev.Snapshot.Repo
	if _, err := a.ensureOpen(ctx, r, x.Pull, x.Head); err != nil {
		return err
	}
	branch := s.promotionBranch()
	if head, ok, err := r.Mirror.Head(ctx, branch); err != nil {
		return err
	} else if !ok || head != x.Head {
		return fmt.Errorf("%w: %s is at %s", ErrStale, branch, wording.Short(head))
	}
	in := a.newTextInput(s, false)
	in.Release, in.Name = x.Release, x.Name
	edits := s.ev.ComposedEdits(s.env, x.Release)
	head, err := a.pushPromotion(ctx, s, in, x.Tip, edits)
	if err != nil {
		return err
	}
	pr, err := a.refreshPushed(ctx, s)
	if err != nil {
		return err
	}
	return a.opts.Store.Tx(ctx, "replaced", func(tx *store.Tx) error {
		if err := putReplaced(ctx, tx, s, pr); err != nil {
			return err
		}
		if err := putOnlyPushed(ctx, tx, s, pr, head); err != nil {
			return err
		}
		return s.eachMember(func(c *facts.ComponentEvaluation, m promotion.Member) error {
			if err := a.recordOpened(ctx, tx, c, s.env, x.Pull, promotion.KindPromotion, m); err != nil {
				return err
			}
			_, err := tx.AddEvents(ctx, newEvent(c, s.env, x.Pull, event.Replaced, fmt.Sprintf("#%d composed anew: %s", x.Pull, x.Why)))
			return err
		})
	})
}

// putReplaced notes where an open promotion moves other releases than those that Liftlock had put there: what
// was approved before was something else. pr is as the forge has it since.
func putReplaced(ctx context.Context, tx *store.Tx, s *subject, pr *forge.PullRequest) error {
	was := s.pull.Proven
	if was == nil {
		was = (&subject{members: s.pull.Members}).releases()
	}
	if maps.Equal(was, s.releases()) {
		return nil
	}
	r := s.ev.Snapshot.Repo
	pushed, _, err := branch.PushedHeads.Get(ctx, tx, record.OfBranch(r.ID, pr.Branch))
	if err != nil {
		return err
	}
	heads := []string{s.pull.Head}
	for _, p := range pushed {
		if !maps.Equal(p.Releases, s.releases()) {
			heads = append(heads, p.Head)
		}
	}
	return people.PutReplaced(ctx, tx, r.ID, s.number, pr.UpdatedAt, heads...)
}

// pushPromotion moves an open promotion's branch to edits of a newer commit, and says so in its
// title and body.
func (a *Actor) pushPromotion(ctx context.Context, s *subject, in prtext.Input, tip string, edits []fieldedit.Edit) (head string,
	err error) {
	r := s.ev.Snapshot.Repo
	a.describeEdits(ctx, s, &in, effects.Commits{Base: tip}, edits)
	a.renderEffects(ctx, s, &in, effects.Commits{Base: tip}, edits, 0)
	if head, err = a.pushBranch(ctx, s, &in, s.promotionBranch(), tip, edits); err != nil {
		return "", err
	}
	page := renderPage(r, in)
	update := forge.PullRequestUpdate{Title: &page.Title, Body: &page.Body}
	if base := s.ev.Environment(s.env).Branch; s.pull.PR.Base != base {
		update.Base = &base // somebody changed it; a person has it composed anew
	}
	return head, r.Forge.UpdatePullRequest(ctx, r.Name, s.number, update)
}

// ensureOpen reads a pull request again before it is changed: people merge and
// close at any moment, and what was judged must still be so.
func (a *Actor) ensureOpen(ctx context.Context, r *branch.Repository, number int, head string) (*forge.PullRequest, error) {
	pr, err := a.opts.Gatherer.PullCache.RefreshPullRequest(ctx, r, number)
	if err != nil {
		return nil, err
	}
	if pr.State != forge.Open || pr.Head != head {
		return nil, fmt.Errorf("%w: #%d is %s at %s", ErrStale, number, pr.State, wording.Short(pr.Head))
	}
	return pr, nil
}

// lastWordsDelay is when the comments of a pull request that is about to be closed are read once more: by
// then it is.
const lastWordsDelay = time.Minute

// closePull closes one of ours. It first sets the label that it is no veto, then tells its readers.
// Then it records that we close it, and closes it with the signed mark of that.
func (a *Actor) closePull(ctx context.Context, s *subject, x promotion.Close) error {
	r := s.ev.Snapshot.Repo
	open, err := a.ensureOpen(ctx, r, x.Pull, s.pull.Head)
	if err != nil {
		return err
	}
	if err := r.Forge.AddLabels(ctx, r.Name, x.Pull, promotion.LabelSuperseded); err != nil {
		return err
	}
	if _, err := a.putComment(ctx, r, x.Pull, commentText{body: prtext.ClosedComment(a.newTextInput(s, x.Revert), x.Why),
		last: true}); err != nil {
		return err
	}
	// A command in it may be about more than the pull request, and its webhook lost: when it is closed,
	// its comments are read once more.
	if err := a.opts.Store.Tx(ctx, "lastWords", func(tx *store.Tx) error {
		if err := facts.PutClosing(ctx, tx, r.ID, x.Pull, a.opts.Now()); err != nil {
			return err
		}
		return tx.WakeAt(ctx, a.opts.Now().Add(lastWordsDelay), wake.ForPull(r.ID, x.Pull).String())
	}); err != nil {
		return err
	}
	closed, body := forge.Closed, r.Marks.MarkClosed(r.ID, open, a.opts.Now(), open.Body)
	if err := r.Forge.UpdatePullRequest(ctx, r.Name, x.Pull, forge.PullRequestUpdate{State: &closed, Body: &body}); err != nil {
		return err
	}
	pr, err := a.opts.Gatherer.PullCache.RefreshPullRequest(ctx, r, x.Pull)
	if err != nil {
		return err
	}
	a.DeleteOver(ctx, r, pr)
	return a.opts.Store.Tx(ctx, "closed", func(tx *store.Tx) error {
		if err := a.putSuperseded(ctx, tx, s, x.Pull); err != nil {
			return err
		}
		if err := facts.Closing.Drop(ctx, tx, record.OfPull(r.ID, x.Pull)); err != nil {
			return err
		}
		return s.eachMember(func(c *facts.ComponentEvaluation, _ promotion.Member) error {
			ev := newEvent(c, s.env, x.Pull, event.Closed, fmt.Sprintf("#%d closed: %s", x.Pull, x.Why))
			ev.IdempotencyKey = facts.ClosedEventKey(c.Facts.Unit, x.Pull, pr.Head)
			_, err := tx.AddEvents(ctx, ev)
			return err
		})
	})
}

// putSuperseded writes down that Liftlock closed a pull request.
func (a *Actor) putSuperseded(ctx context.Context, tx *store.Tx, s *subject, number int) error {
	return s.eachMember(func(c *facts.ComponentEvaluation, m promotion.Member) error {
		release := ""
		if s.batch {
			release = m.Release
		}
		return a.updatePromotion(ctx, tx, c, s.env, number, release, "superseded")
	})
}

// putRequested notes that a promotion moves a release at a person's word: merged by hand too it lifts what
// kept the release out.
func putRequested(ctx context.Context, tx *store.Tx, c *facts.ComponentEvaluation, id int64, number int, release string) error {
	isPromote := func(k promotion.PendingCommand) bool { return k.ID == id && k.Verb == command.Promote }
	if !slices.ContainsFunc(c.Facts.PendingCommands, isPromote) {
		return nil
	}
	return facts.PutRequested(ctx, tx, c.Facts.Unit.Repo, number, c.Facts.Unit.Component, release)
}
