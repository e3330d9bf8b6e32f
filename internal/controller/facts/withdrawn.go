package facts

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
)

// seqRange are arrivals in an environment, between two numbers.
type seqRange struct{ above, below int64 }

// listWithdrawnAndUnseen lists the releases that the newest arrival of an environment's history
// withdraws, and those that unseen arrivals before it withdraw. unseen, oldest first, are those of
// them on no record.
func (ga *Gatherer) listWithdrawnAndUnseen(ctx context.Context, c *ComponentEvaluation, env *promotion.Env,
	history []promotion.Arrival) (back []seqRange, unseen []promotion.Arrival, err error) {
	back, lost, err := ga.listWithdrawn(ctx, c, env, history)
	if err != nil {
		return nil, nil, err
	}
	unseen, seen, err := ga.findWithdrawn(ctx, c, env, &history[0])
	lost = slices.DeleteFunc(lost, func(a promotion.Arrival) bool { return holdsRelease(unseen, a.Release) })
	return append(back, seen...), append(lost, unseen...), err
}

// listWithdrawn lists what an environment's newest arrival takes back for good, given its history with
// that, and also where it was there before what every look reads. lost, oldest first, is what it takes back
// of what is on no record any more.
func (ga *Gatherer) listWithdrawn(ctx context.Context, c *ComponentEvaluation, env *promotion.Env,
	history []promotion.Arrival) (out []seqRange, lost []promotion.Arrival, err error) {
	after := promotion.Env{Spec: env.Spec, History: history}
	for _, i := range after.ListWithdrawn() {
		out = append(out, seqRange{history[i].Seq - 1, history[i].Seq + 1})
	}
	if len(history) < 2 || holdsRelease(history[1:], history[0].Release) {
		return out, nil, nil
	}
	long, lost, err := ga.listWithdrawnLongAgo(ctx, c, env, &history[0])
	return append(out, long...), lost, err
}

func holdsRelease(arrivals []promotion.Arrival, release string) bool {
	return slices.ContainsFunc(arrivals, func(a promotion.Arrival) bool { return a.Release == release })
}

// listWithdrawnLongAgo lists the releases that came to an environment after an arrival's release
// was there before, where that is older than the arrivals that every look reads. It lists nothing
// where the release was never there. lost, oldest first, are those of them that are on no record
// any more.
func (ga *Gatherer) listWithdrawnLongAgo(ctx context.Context, c *ComponentEvaluation, env *promotion.Env,
	by *promotion.Arrival) (out []seqRange, lost []promotion.Arrival, err error) {
	if len(env.History) < store.RecentArrivals {
		there, lost, err := ga.wasThereBefore(ctx, c, env, by)
		if err != nil {
			return nil, nil, fmt.Errorf("look for what was in %s before it is on record: %w", env.Name, err)
		}
		if there {
			out = append(out, seqRange{0, math.MaxInt64})
		}
		return out, lost, nil
	}
	older, err := ga.opts.Store.OlderArrivals(ctx, wake.UnitName(c.Facts.Unit), by.Release)
	if err != nil {
		return nil, nil, err
	}
	for _, a := range older {
		if a.Environment == env.Name {
			out = append(out, seqRange{a.Seq, math.MaxInt64})
		}
	}
	return out, nil, nil
}

// wasThereBefore says that the release of an arrival was in an environment before the record
// begins. It looks where that doesn't begin with the release of the time when the pipeline came in:
// the database was lost since. since, oldest first, are the releases between the two that are on no
// record.
func (ga *Gatherer) wasThereBefore(ctx context.Context, c *ComponentEvaluation, env *promotion.Env, by *promotion.Arrival) (there bool,
	since []promotion.Arrival, err error) {
	if env.History[len(env.History)-1].By == promotion.ByBaseline {
		return false, nil, nil
	}
	earlier, err := ga.History.ReadEarlier(ctx, &c.ComponentBasis, env, branch.EarlierQuery{From: by.Commit, Release: by.Release,
		Since: c.Pipeline.Baseline})
	if errors.Is(err, git.ErrUnknownCommit) {
		return false, nil, nil // a reset took it away
	}
	at := slices.IndexFunc(earlier, func(a promotion.Arrival) bool { return a.Release == by.Release })
	if err != nil || at < 0 {
		return false, nil, err
	}
	for _, a := range slices.Backward(earlier[:at]) {
		if !holdsRelease(env.History, a.Release) && !holdsRelease(since, a.Release) {
			a.By, a.WithdrawnAt = promotion.ByPerson, c.Facts.Now // nothing moves on by it, should it be there again
			since = append(since, a)
		}
	}
	return true, since, nil
}

// inspectReset finds out whether releases that were in an environment before are gone from its
// branch without a commit: the branch was reset, or another history was pushed over it. Such
// releases are withdrawn. Where the branch is back at an earlier release, that is as much a
// person's word as a commit would be. Only when something came, or something newer than what is
// there is on record, Git has to be asked.
func (ga *Gatherer) inspectReset(ctx context.Context, c *ComponentEvaluation, env *promotion.Env, l *promotion.Landed) error {
	at := len(env.History)
	for i := range env.History {
		if a := &env.History[i]; a.Commit == l.Commit && a.Release == env.Release.Value.ID {
			at = i
			break
		}
	}
	changed := func(a promotion.Arrival) bool { return a.Release != env.Release.Value.ID }
	isBack := at > 0 && at < len(env.History) && !env.Source() && changed(env.History[0])
	if isBack && !env.History[0].WithdrawnAt.IsZero() {
		if a := &env.History[at]; a.By == promotion.ByPerson {
			l.By, l.Author, l.Pull, l.ResetFrom = a.By, "", 0, env.History[0].Name
			return nil
		} else if a.By == promotion.ByHand {
			l.By, l.Pull = a.By, 0
			return nil
		}
	}
	if at > 0 && !env.Source() {
		env.KeepPersonsWord(at, l)
	}
	gone, err := ga.countGone(ctx, c.Snapshot.Repo, env, at)
	if err != nil || !slices.ContainsFunc(env.History[:gone], changed) {
		return err // the same releases by another history, as where a repository was put back, are as they were
	}
	seqs := seqRange{0, math.MaxInt64}
	if gone < len(env.History) {
		seqs.above = env.History[gone].Seq
	}
	unit := wake.UnitName(c.Facts.Unit)
	err = ga.opts.Store.Tx(ctx, "branchReset", func(tx *store.Tx) error {
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

// countGone counts the newest arrivals in an environment that aren't on its branch any more, as far
// as that isn't on record. before is the place of the present release.
func (ga *Gatherer) countGone(ctx context.Context, r *branch.Repository, env *promotion.Env, before int) (int, error) {
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
	// A release that another replica saw come after this one last fetched isn't gone.
	key := r.ID + "|" + env.Branch + "|" + env.Tip + "|" + env.History[0].Commit
	if seen, _ := ga.resetTips.Get(key); seen {
		return gone, nil
	}
	now, err := r.Mirror.RemoteHeads(ctx, env.Branch)
	if err != nil {
		return 0, fmt.Errorf("ask whether %s was reset: %w", env.Branch, err)
	}
	if now[env.Branch] != env.Tip {
		// This process's mirror isn't up to date: a judgement on it would undo the other replica's
		// records.
		if _, err := r.Mirror.Fetch(ctx); err != nil {
			return 0, err
		}
		return 0, fmt.Errorf("%w: %s moved since it was fetched", forge.ErrConflict, env.Branch)
	}
	ga.resetTips.Put(key, true)
	return gone, nil
}

// findWithdrawn finds in Git the releases that were withdrawn from an environment while no process
// looked, between the last seen release and the present one. Where the database was lost with its
// record, it searches all history, as restraints must not be lost with it. It finds releases whose
// place an earlier one took, by anybody, and that didn't come again. unseen, oldest first, are on
// no record yet.
func (ga *Gatherer) findWithdrawn(ctx context.Context, c *ComponentEvaluation, env *promotion.Env,
	newest *promotion.Arrival) (unseen []promotion.Arrival, seen []seqRange, err error) {
	earlier, err := ga.readUnseen(ctx, c, env, newest)
	if err != nil {
		return nil, nil, fmt.Errorf("look for what was taken back from %s: %w", env.Name, err)
	}
	if len(earlier) == 0 {
		return nil, nil, nil
	}
	all := slices.Concat([]promotion.Arrival{*newest}, earlier, env.History)
	for i := range len(earlier) + 1 {
		after := promotion.Env{Spec: env.Spec, History: all[i:]}
		for _, k := range after.ListWithdrawn() {
			all[i+k].WithdrawnAt = all[i].At
		}
		if i == 0 || len(env.History) == 0 || holdsRelease(all[i+1:], all[i].Release) {
			continue
		}
		long, before, err := ga.listWithdrawnLongAgo(ctx, c, env, &all[i])
		if err != nil {
			return nil, nil, err
		}
		for k := i + 1; k < len(all); k++ {
			isIn := func(s seqRange) bool { return k <= len(earlier) || all[k].Seq > s.above && all[k].Seq < s.below }
			if slices.ContainsFunc(long, isIn) && all[k].WithdrawnAt.IsZero() {
				all[k].WithdrawnAt = all[i].At
			}
		}
		for _, a := range before {
			if !holdsRelease(all, a.Release) && !holdsRelease(unseen, a.Release) {
				unseen = append(unseen, a)
			}
		}
	}
	for i := len(all) - 1; i > 0; i-- {
		a := all[i]
		last := slices.IndexFunc(all, func(other promotion.Arrival) bool { return other.Release == a.Release })
		switch {
		case a.WithdrawnAt.IsZero() || all[last].WithdrawnAt.IsZero():
		case i > len(earlier):
			seen = append(seen, seqRange{a.Seq - 1, a.Seq + 1})
		default:
			a.By = promotion.ByPerson // nothing moves on by it, should it be there again
			unseen = append(unseen, a)
		}
	}
	return unseen, seen, nil
}

// readUnseen reads the releases that were in an environment, newest first, between the last seen
// one and the present one. Releases that a reset removed aren't among them.
func (ga *Gatherer) readUnseen(ctx context.Context, c *ComponentEvaluation, env *promotion.Env,
	newest *promotion.Arrival) ([]promotion.Arrival, error) {
	if newest.By == promotion.ByBaseline {
		return nil, nil
	}
	if len(env.History) == 0 {
		return ga.History.ReadEarlier(ctx, &c.ComponentBasis, env, branch.EarlierQuery{From: env.Tip, Release: env.Release.Value.ID,
			Since: c.Pipeline.Baseline})
	}
	r, last := c.Snapshot.Repo, &env.History[0]
	if parent := env.Landed.Value.Parent; parent == "" {
		return nil, nil
	} else if was, err := ga.History.Releases.ReadRelease(r, parent, c.Pipeline, c.Unit.Envs[env.Name]); err == nil &&
		was.ID() == last.Release {
		return nil, nil // it came right after
	}
	if there, err := r.Mirror.IsAncestor(ctx, last.Commit, env.Tip); errors.Is(err, git.ErrUnknownCommit) || err == nil && !there {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	earlier, err := ga.History.ReadEarlier(ctx, &c.ComponentBasis, env, branch.EarlierQuery{From: env.Tip, Release: env.Release.Value.ID,
		Since: last.Commit})
	if n := len(earlier); n > 0 && earlier[n-1].Release == last.Release {
		earlier = earlier[:n-1]
	}
	return earlier, err
}

// putArrivals writes arrivals down, in their order.
func putArrivals(ctx context.Context, tx *store.Tx, c *ComponentEvaluation, env string, arrivals []promotion.Arrival) error {
	for i := range arrivals {
		row, err := c.ArrivalRow(env, &arrivals[i])
		if err != nil {
			return err
		}
		if arrivals[i].Seq, err = tx.PutArrival(ctx, row); err != nil {
			return err
		}
	}
	return nil
}
