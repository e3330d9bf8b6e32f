package facts

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
)

// seqRange are arrivals in an environment, between two numbers.
type seqRange struct{ above, below int64 }

// listWithdrawn lists what an environment's newest arrival takes back for good, given its history with
// that, and also where it was there before what every look reads.
func (o *Gatherer) listWithdrawn(ctx context.Context, c *ComponentEvaluation, env *promotion.Env, history []promotion.Arrival, isNew bool) ([]seqRange, error) {
	if !isNew {
		return nil, nil
	}
	after := promotion.Env{Spec: env.Spec, History: history}
	var out []seqRange
	for _, i := range after.ListWithdrawn() {
		out = append(out, seqRange{history[i].Seq - 1, history[i].Seq + 1})
	}
	if len(history) <= store.RecentArrivals {
		return out, nil
	}
	for i := 1; i < len(history); i++ {
		if history[i].Release == history[0].Release {
			return out, nil
		}
	}
	older, err := o.opts.Store.OlderArrivals(ctx, wake.UnitName(c.Facts.Unit), history[0].Release)
	if err != nil {
		return nil, err
	}
	for _, a := range older {
		if a.Environment == env.Name {
			out = append(out, seqRange{a.Seq, math.MaxInt64})
		}
	}
	return out, nil
}

// inspectReset finds out whether what was in an environment before is gone from its branch without a
// commit: somebody reset the branch, or pushed another history over it. What is gone is taken back.
// Where the branch is back at what it had, that is as much a person's word as a commit would be.
// Only when something came, or something newer than what is there is on record, Git has to be asked.
func (o *Gatherer) inspectReset(ctx context.Context, c *ComponentEvaluation, env *promotion.Env, l *promotion.Landed) error {
	at := len(env.History)
	for i := range env.History {
		if a := &env.History[i]; a.Commit == l.Commit && a.Release == env.Release.Value.ID {
			at = i
			break
		}
	}
	isBack := at > 0 && at < len(env.History) && !env.Source()
	if isBack && !env.History[0].WithdrawnAt.IsZero() {
		if a := &env.History[at]; a.By == promotion.ByPerson {
			l.By, l.Author, l.Pull, l.ResetFrom = a.By, "", 0, env.History[0].Name
			return nil
		} else if a.By == promotion.ByHand {
			l.By, l.Pull = a.By, 0
			return nil
		}
	}
	gone, err := o.countGone(ctx, c.Snapshot.Repo, env, at)
	if err != nil || gone == 0 {
		return err
	}
	seqs := seqRange{0, math.MaxInt64}
	if gone < len(env.History) {
		seqs.above = env.History[gone].Seq
	}
	unit := wake.UnitName(c.Facts.Unit)
	err = o.opts.Store.Tx(ctx, "branchReset", func(tx *store.Tx) error {
		return tx.WithdrawArrivals(ctx, unit, env.Name, seqs.above, seqs.below, c.Facts.Now)
	})
	if err != nil {
		return fmt.Errorf("write down that %s was reset: %w", env.Branch, err)
	}
	for i := range gone {
		if a := &env.History[i]; a.WithdrawnAt.IsZero() {
			a.WithdrawnAt = c.Facts.Now
		}
	}
	if isBack {
		l.By, l.Author, l.Pull, l.ResetFrom = promotion.ByPerson, "", 0, env.History[0].Name
	}
	return nil
}

// countGone counts the newest arrivals in an environment that aren't on its branch any more, as far as
// that isn't on record; before is the place of what is there now.
func (o *Gatherer) countGone(ctx context.Context, r *Repository, env *promotion.Env, before int) (int, error) {
	gone, found := 0, false
	for ; gone < before; gone++ {
		a := &env.History[gone]
		if !a.WithdrawnAt.IsZero() {
			continue
		}
		there, err := r.Mirror.IsAncestor(ctx, a.Commit, env.Tip)
		if err != nil && !errors.Is(err, git.ErrUnknownCommit) {
			return 0, err
		}
		if there {
			break
		}
		found = true
	}
	if !found {
		return 0, nil
	}
	// What another replica saw come after this one last fetched isn't gone.
	key := r.ID + "|" + env.Branch + "|" + env.Tip
	if seen, _ := o.resetTips.Get(key); seen {
		return gone, nil
	}
	now, err := r.Mirror.RemoteHeads(ctx, env.Branch)
	if err != nil {
		return 0, fmt.Errorf("ask whether %s was reset: %w", env.Branch, err)
	}
	if now[env.Branch] != env.Tip {
		return 0, nil
	}
	o.resetTips.Put(key, true)
	return gone, nil
}
