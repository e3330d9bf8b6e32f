package facts

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/pipeline/event"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/promotion/stored"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/wording"
)

// gatherRelease reads what an environment carries, and where that came from.
func (ga *Gatherer) gatherRelease(ctx context.Context, c *ComponentEvaluation, env *promotion.Env,
	at *branch.ResolvedEnv) (branch.OriginMemo, error) {
	r := c.Snapshot.Repo
	if env.Tip == "" {
		env.Release = promotion.Unsure[promotion.Release](branch.MissingBranchText(r, env.Branch))
		return branch.OriginMemo{}, nil
	}
	rel, err := ga.Releases.ReadCurrent(r, env.Tip, c.Pipeline, at)
	var mixed *fieldedit.MixedError
	switch {
	case errors.As(err, &mixed):
		env.Fields, env.FieldsReason = promotion.FieldsMixed, err.Error()
		env.Release = promotion.Unsure[promotion.Release](err.Error())
	case err != nil:
		env.Release = promotion.Unsure[promotion.Release](err.Error())
	case rel.Empty():
		text := at.NothingCarried()
		if hint := fieldedit.ExplainEmpty(r.Mirror.Tree(env.Tip), at.Overlay(c.Pipeline.Pipeline)); hint != "" {
			text += "; " + hint
		}
		env.Release = promotion.Unsure[promotion.Release](text)
	default:
		env.Release = promotion.Sure(c.RememberRelease(rel))
		return ga.History.FindOrigin(ctx, r, env.Tip, wake.UnitName(c.Facts.Unit)+"|"+env.Name, c.Pipeline, at, rel)
	}
	return branch.OriginMemo{}, nil
}

// gatherComponentEnv fills in what hangs on the release and on the pull requests.
func (ga *Gatherer) gatherComponentEnv(ctx context.Context, c *ComponentEvaluation, env *promotion.Env, at *branch.ResolvedEnv,
	origin branch.OriginMemo,
	observations []store.Observation) error {
	if env.Tip == "" {
		c.addJudged(env, ga.Live.JudgeTargets(ctx, &c.ComponentBasis, env, at, observations))
		return nil
	}
	if err := ga.assignPulls(ctx, c, env, at); err != nil {
		return err
	}
	env.SyncWindows = ga.Live.GatherSyncWindows(env.Gates, at)
	pulls := c.Evaluation.pulls.of(c, env.Name)
	newest := findNewestMerge(c.Snapshot.Repo, env, pulls)
	if err := ga.History.EnsureMergeFetched(ctx, c.Snapshot.Repo, env, newest, c.Facts.Now); err != nil {
		return err
	}
	if !env.Release.OK {
		c.addJudged(env, ga.Live.JudgeTargets(ctx, &c.ComponentBasis, env, at, observations))
		return ga.advanceSoaks(c, env)
	}
	landed, err := ga.describeLanded(ctx, c, env, origin, pulls)
	if err != nil {
		return err
	}
	if landed.Members, err = ga.landedMembers(ctx, c, env.Name, landed.Pull); err != nil {
		return err
	}
	landed.Batch = len(landed.Members) > 0
	if err := ga.inspectReset(ctx, c, env, &landed); err != nil {
		return err
	}
	env.Landed = promotion.Sure(landed)
	c.markUnmanagedReverts(env)
	if err := ga.History.FillRevertedReleases(ctx, &c.ComponentBasis, env, at); err != nil {
		return err
	}
	if err := ga.recordArrival(ctx, c, env); err != nil {
		return err
	}
	c.addJudged(env, ga.Live.JudgeTargets(ctx, &c.ComponentBasis, env, at, observations))
	if err := ga.advanceSoaks(c, env); err != nil {
		return err
	}
	return ga.Live.FillHealthBefore(ctx, &c.ComponentBasis, env, c.children[env.Name])
}

// advanceSoaks counts for how long what the environment has, or had, was verified.
func (ga *Gatherer) advanceSoaks(c *ComponentEvaluation, env *promotion.Env) error {
	for _, a := range env.AdvanceSoaks(c.Facts.Now, ga.soakGap()) {
		row, err := c.ArrivalRow(env.Name, a)
		if err != nil {
			return err
		}
		c.Soaks = append(c.Soaks, row)
	}
	return nil
}

// defaultSoakGap is the longest time between two looks that counts for a soak where the
// gatherer isn't told how often it looks.
const defaultSoakGap = 10 * time.Minute

func (ga *Gatherer) soakGap() time.Duration { return cmp.Or(ga.opts.MaxAge, defaultSoakGap) }

// isUnexplained says, once for each commit, that none of our merges that the cache knows brought
// the landed release, while one of ours was open. The branch's news may have come before the pull
// request's, so that is read again first.
func (ga *Gatherer) isUnexplained(key string, m branch.OriginMemo, pulls []*pullRecord) bool {
	open := false
	for _, p := range pulls {
		if p.PR.MergeCommit == m.Origin.Commit.SHA && p.PR.State == forge.Merged {
			return false
		}
		open = open || p.PR.State == forge.Open
	}
	if last, _ := ga.explained.Get(key); !open || last == m.Origin.Commit.SHA {
		return false
	}
	ga.explained.Put(key, m.Origin.Commit.SHA)
	return true
}

// arrivalData is what a store.Arrival keeps for us.
type arrivalData struct {
	stored.Arrival
	release promotion.Release // of Content
}

func (a *arrivalData) nameRelease() {
	a.release = promotion.Release{ID: a.Content.ID(), Name: a.Content.String()}
}

// recordArrival writes down what is in the environment now, where that is new.
func (ga *Gatherer) recordArrival(ctx context.Context, c *ComponentEvaluation, env *promotion.Env) error {
	l, id := env.Landed.Value, env.Release.Value.ID
	i := slices.IndexFunc(env.History, func(a promotion.Arrival) bool { return a.Release == id && a.Commit == l.Commit })
	if i >= 0 && env.History[i].By == l.By && env.History[i].WithdrawnAt.IsZero() {
		return nil
	}
	a := promotion.Arrival{Release: id, Name: env.Release.Value.Name, Commit: l.Commit, By: l.By, Author: l.Author, Pull: l.Pull,
		At: c.Facts.Now}
	if i >= 0 {
		a = env.History[i]
		a.By, a.Author, a.Pull = l.By, l.Author, l.Pull
		a.WithdrawnAt = time.Time{} // it is there
	} else if len(env.History) > 0 && env.History[0].Release == id {
		a.Soak = env.History[0].Soak // another commit with the same release breaks nothing
	}
	row, err := c.ArrivalRow(env.Name, &a)
	if err != nil {
		return err
	}
	history := slices.Clone(env.History)
	if i >= 0 {
		history[i] = a
	} else {
		history = append([]promotion.Arrival{a}, history...)
	}
	var back []seqRange
	var unseen []promotion.Arrival
	if i < 0 {
		if back, unseen, err = ga.listWithdrawnAndUnseen(ctx, c, env, history); err != nil {
			return err
		}
	}
	err = ga.opts.Store.Tx(ctx, "arrived", func(tx *store.Tx) error {
		var err error
		if err := putArrivals(ctx, tx, c, env.Name, unseen); err != nil {
			return err
		}
		if a.Seq, err = tx.PutArrival(ctx, row); err != nil {
			return err
		}
		for _, seqs := range back {
			if err := tx.WithdrawArrivals(ctx, row.Unit, env.Name, seqs.above, min(seqs.below, a.Seq), c.Facts.Now); err != nil {
				return err
			}
		}
		_, err = tx.AddEvents(ctx, landedEvent(c, env))
		return err
	})
	if err != nil {
		return err
	}
	history[max(i, 0)] = a
	for k := range history {
		if h := &history[k]; h.WithdrawnAt.IsZero() &&
			slices.ContainsFunc(back, func(s seqRange) bool { return h.Seq > s.above && h.Seq < min(s.below, a.Seq) }) {
			h.WithdrawnAt = c.Facts.Now
		}
	}
	slices.Reverse(unseen)
	env.History = slices.Insert(history, 1, unseen...)
	return nil
}

// ArrivalRow is the store's row of an arrival.
func (c *ComponentEvaluation) ArrivalRow(env string, a *promotion.Arrival) (store.Arrival, error) {
	data, err := json.Marshal(arrivalData{Arrival: stored.Arrival{Content: c.Contents[a.Release], By: a.By, Author: a.Author, Pull: a.Pull,
		Soak: a.Soak}})
	if err != nil {
		return store.Arrival{}, fmt.Errorf("write down what arrived in %s: %w", env, err)
	}
	return store.Arrival{Unit: wake.UnitName(c.Facts.Unit), Environment: env, Release: a.Release, Commit: a.Commit,
		At: a.At, VerifiedAt: a.VerifiedAt, DegradedAt: a.DegradedAt, WithdrawnAt: a.WithdrawnAt, Data: data}, nil
}

// landedEvent tells that a release is in an environment now, however it came.
func landedEvent(c *ComponentEvaluation, env *promotion.Env) store.Event {
	u, l := c.Facts.Unit, env.Landed.Value
	ev := store.Event{At: c.Facts.Now, Repo: u.Repo, Pipeline: u.Pipeline, Component: u.Component, Environment: env.Name, Pull: l.Pull,
		Kind:           event.Landed,
		Message:        fmt.Sprintf("%s is in %s (%s, %s)", env.Release.Value, env.Name, l.By, wording.Short(l.Commit)),
		IdempotencyKey: fmt.Sprintf("landed|%s|%s|%s|%s", wake.UnitName(u), env.Name, l.Commit, l.By)}
	if l.Pull != 0 {
		ev.Kind = event.Merged
		ev.Message = fmt.Sprintf("#%d merged into %s as %s", l.Pull, env.Branch, wording.Short(l.Commit))
		ev.IdempotencyKey = MergedEventKey(u, l.Pull)
	}
	return ev
}

// readPendingCommands reads the commands that wait to take effect.
func (ga *Gatherer) readPendingCommands(ctx context.Context, u promotion.Unit) ([]promotion.PendingCommand, error) {
	rows, err := ga.opts.Store.PendingCommands(ctx, wake.UnitName(u))
	if err != nil {
		return nil, err
	}
	out := make([]promotion.PendingCommand, 0, len(rows))
	for _, a := range rows {
		out = append(out, promotion.PendingCommand{ID: a.ID, Verb: command.Verb(a.Verb), Environment: a.Environment, Release: a.Release,
			By:   a.By,
			ByID: a.ByID, Reason: a.Reason, At: a.At})
	}
	return out, nil
}
