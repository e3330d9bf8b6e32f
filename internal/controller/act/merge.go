package act

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/prtext"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/pipeline/event"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/wording"
)

// mergePull merges exactly the head that was judged, and nothing when what it was judged on has
// moved since. Where the forge merges by a queue the head has joined that then. A later look finds
// the landed commit and puts it on record.
func (a *Actor) mergePull(ctx context.Context, s *subject, x promotion.Merge) error {
	if x.Behind {
		return a.updateHead(ctx, s, x)
	}
	r, env := s.ev.Snapshot.Repo, s.ev.Environment(s.env)
	in, err := a.openInput(ctx, s)
	if err != nil {
		return err
	}
	judged, err := a.putMerging(ctx, s, x)
	if err != nil {
		return err
	}
	title, message := prtext.MergeMessage(in)
	title, message = r.Words(title), r.Words(message)
	landed, err := a.sendMerge(ctx, s, x, title, message)
	// where a person has it join the forge's queue that isn't our doing
	if errors.Is(err, ErrStale) || errors.Is(err, forge.ErrNotMergeable) {
		if forget := a.opts.Store.Tx(ctx, "unmerged", func(tx *store.Tx) error { return s.forgetMerging(ctx, tx) }); forget != nil {
			return errors.Join(err, forget)
		}
	}
	if err != nil {
		return err
	}
	if landed == "" {
		return a.joinedQueue(ctx, s, x.Head)
	}
	commit, err := a.findLanded(ctx, s, env.Branch, landed)
	if err != nil {
		return err
	}
	a.DeleteOver(ctx, r, s.pull.PR)
	if err := a.recordLanded(ctx, s, commit, title+"\n\n"+message); err != nil {
		return err
	}
	unjudged := whyUnjudged(s.number, commit, x.Tip)
	if unjudged != "" {
		a.opts.Log.Warn(unjudged, unitFields(s.unit())...)
	}
	return a.recordMerged(ctx, s, mergeDone{branch: env.Branch, landed: landed, unjudged: unjudged, judged: judged})
}

// findLanded finds the commit as which a pull request landed on its environment's branch. A person
// may have given it another base and merged it there, in the moment in which it was merged here.
// The forge answers the same as to a second merge. Nothing landed here then, and the branch may be
// another pull request's already.
func (a *Actor) findLanded(ctx context.Context, s *subject, branch, landed string) (*git.CommitInfo, error) {
	r := s.ev.Snapshot.Repo
	if _, err := r.Mirror.Fetch(ctx); err != nil {
		return nil, err
	}
	commit, err := r.Mirror.Commit(ctx, landed)
	if err != nil {
		return nil, fmt.Errorf("look at what #%d landed as: %w", s.number, err)
	}
	tip, ok, err := r.Mirror.Head(ctx, branch)
	if err != nil {
		return nil, err
	}
	if ok {
		if ok, err = r.Mirror.IsAncestor(ctx, landed, tip); err != nil || ok {
			return commit, err
		}
	}
	if err := a.opts.Store.Tx(ctx, "unmerged", func(tx *store.Tx) error { return s.forgetMerging(ctx, tx) }); err != nil {
		return nil, err
	}
	if _, err := a.opts.Gatherer.PullCache.RefreshPullRequest(ctx, r, s.number); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("%w: #%d was merged as %s, which isn't on %s", ErrStale, s.number, wording.Short(landed), branch)
}

// sendMerge has the forge merge, unless the branches that it was judged on have moved since, and
// gives the commit as which it landed. That is empty where it joined the forge's merge queue.
func (a *Actor) sendMerge(ctx context.Context, s *subject, x promotion.Merge, title, message string) (landed string, err error) {
	r := s.ev.Snapshot.Repo
	moved, err := a.opts.Gatherer.MovedBranches(ctx, s.ev, s.env)
	if err != nil {
		return "", err
	}
	if len(moved) > 0 {
		return "", fmt.Errorf("%w: somebody pushed to %s while #%d was judged", ErrStale, strings.Join(moved, ", "), x.Pull)
	}
	// To judge takes a while: what was open when that began may have closed.
	if now := a.opts.Now(); !x.Until.IsZero() && !now.Before(x.Until) {
		return "", fmt.Errorf("%w: a gate of #%d passed until %s only, which came while it was judged", ErrStale, x.Pull,
			x.Until.UTC().Format(time.RFC3339))
	}
	if x.Attempt {
		switch changed, err := a.opts.Gatherer.Rules.RulesChanged(ctx, r, s.pull); {
		case err != nil:
			return "", fmt.Errorf("read what the forge demands of merges into %s before #%d is tried: %w", s.pull.PR.Base, x.Pull, err)
		case changed:
			return "", fmt.Errorf("%w: what the forge demands of merges into %s changed since #%d was judged", ErrStale,
				s.pull.PR.Base, x.Pull)
		}
	}
	return r.Forge.Merge(ctx, r.Name, forge.MergeRequest{Number: x.Pull, Head: x.Head, Method: s.ev.Pipeline.Spec.Merge.Method,
		Title: title, Message: message})
}

// recordLanded records that the pull request is merged. The landed commit's message may differ from
// ours. Then a person may have merged the same head just before, or it was rebased, and only the
// forge tells who did it and when.
func (a *Actor) recordLanded(ctx context.Context, s *subject, landed *git.CommitInfo, message string) error {
	r := s.ev.Snapshot.Repo
	if strings.TrimSpace(landed.Message) != strings.TrimSpace(message) {
		_, err := a.opts.Gatherer.PullCache.RefreshPullRequest(ctx, r, s.number)
		return err
	}
	return a.opts.Gatherer.PullCache.RecordMerged(ctx, r, s.pull.PR, landed)
}

// putMerging records the judgement of a merge that is about to be made. Where the process dies
// right after it, the process that finds the merge puts it on record.
func (a *Actor) putMerging(ctx context.Context, s *subject, x promotion.Merge) (map[string]promotion.MergeRecord, error) {
	judged := make(map[string]promotion.MergeRecord, len(s.members))
	return judged, a.opts.Store.Tx(ctx, "merging", func(tx *store.Tx) error {
		// It isn't in the forge's merge queue, so that it was taken out of it says nothing any more.
		if err := facts.DropJoinedQueue(ctx, tx, s.ev.Snapshot.Repo.ID, x.Pull); err != nil {
			return err
		}
		return s.eachMember(func(c *facts.ComponentEvaluation, m promotion.Member) error {
			_, i := s.ev.Component(m.Component)
			by, err := promotion.NewMergeRecord(&c.Facts, &s.d.Components[i], x, m.Release)
			if err != nil {
				return err
			}
			by.SentAt = a.opts.Now()
			judged[m.Component] = by
			return facts.Merging.Put(ctx, tx, facts.OfMerge(c.Facts.Unit, x.Pull), by)
		})
	})
}

// mergeDone is a merge that was made.
type mergeDone struct {
	branch, landed string
	unjudged       string                           // what is wrong with it; empty: nothing
	judged         map[string]promotion.MergeRecord // by component
}

// whyUnjudged says that a merge didn't land on the commit that it was judged on: a forge pins a
// merge's head and not its base. So a push in the very same moment can come between. "" when it
// did.
func whyUnjudged(number int, landed *git.CommitInfo, tip string) string {
	if len(landed.Parents) == 0 || landed.Parents[0] == tip {
		return ""
	}
	return fmt.Sprintf("#%d landed on %s and was judged on %s: somebody pushed in the same moment; look at what came between", number,
		wording.Short(landed.Parents[0]), wording.Short(tip))
}

// recordMerged writes down that it was merged, by what it was judged, and what is wrong with
// that, if anything.
func (a *Actor) recordMerged(ctx context.Context, s *subject, x mergeDone) error {
	kind := promotion.KindPromotion
	if s.pull.Revert {
		kind = promotion.KindRevert
	}
	return a.opts.Store.Tx(ctx, "merged", func(tx *store.Tx) error {
		staged := false
		return s.eachMember(func(c *facts.ComponentEvaluation, m promotion.Member) error {
			u := c.Facts.Unit
			p, ok, err := tx.PromotionByPull(ctx, wake.UnitName(u), u.Repo, s.number)
			if err != nil {
				return err
			}
			if ok && !staged && a.opts.Metrics != nil {
				a.opts.Metrics.Stage(s.env, "merged", c.Facts.Now.Sub(p.CreatedAt))
				staged = true
			}
			if of := s.pull.Reverts; s.pull.Revert && of != nil {
				if err := a.updatePromotion(ctx, tx, c, s.env, of.Number, m.Release, promotion.Reverted); err != nil {
					return err
				}
			}
			if err := a.putPromotionRow(ctx, tx, c, s.env, s.number, kind, m.Release, "merged"); err != nil {
				return err
			}
			ev := newEvent(c, s.env, s.number, event.Merged, fmt.Sprintf("#%d merged into %s as %s", s.number, x.branch,
				wording.Short(x.landed)))
			ev.IdempotencyKey = facts.MergedEventKey(u, s.number)
			events := []store.Event{ev}
			if x.unjudged != "" {
				ev = newEvent(c, s.env, s.number, event.Unjudged, x.unjudged)
				ev.IdempotencyKey = fmt.Sprintf("unjudged|%s|%d|%s", wake.UnitName(u), s.number, x.landed)
				events = append(events, ev)
			}
			if err := a.auditMerge(ctx, tx, c, s, x); err != nil {
				return err
			}
			_, err = tx.AddEvents(ctx, events...)
			return err
		})
	})
}

// auditMerge puts a component's part of a merge on record in the audit trail.
func (a *Actor) auditMerge(ctx context.Context, tx *store.Tx, c *facts.ComponentEvaluation, s *subject, x mergeDone) error {
	record := x.judged[c.Facts.Unit.Component]
	record.Commit = x.landed
	entry, err := facts.MergeAudit(c, s.env, s.number, cmp.Or(s.ev.Snapshot.Repo.BotLogin, "liftlock"), promotion.AuditViaServer, &record)
	if err != nil {
		return err
	}
	entry.At = a.opts.Now()
	if err := tx.AddAudit(ctx, entry); err != nil {
		return err
	}
	return facts.Merging.Drop(ctx, tx, facts.OfMerge(c.Facts.Unit, s.number))
}
