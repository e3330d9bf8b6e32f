package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/appset/history"
	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/prtext"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
)

// repo fetches, resolves what the branch says now and wakes the units. It asks to
// run again after the poll interval: with every webhook lost, things only happen later.
func (e *Engine) repo(ctx context.Context, r *Repository) (time.Time, error) {
	if _, err := r.Mirror.Fetch(ctx); err != nil {
		return time.Time{}, err
	}
	s, err := e.o.Observer.Snapshot(ctx, r.Repository)
	if err != nil {
		return time.Time{}, err
	}
	next := e.o.Clock.Now().Add(r.PollInterval)
	if until := s.Until(); !until.IsZero() && until.Before(next) {
		next = until
	}
	heads, err := r.Mirror.Heads(ctx, "")
	if err != nil {
		return time.Time{}, err
	}
	seen, ok, err := e.o.Store.State(ctx, headsKey(r))
	if err != nil {
		return time.Time{}, err
	}
	now := fingerprint(heads, s.Lines())
	e.setWakers(s)
	e.mu.Lock()
	if s.Broken != "" {
		e.broken[r.ID] = s.Broken
	} else {
		delete(e.broken, r.ID)
	}
	e.mu.Unlock()
	if err := e.branchStatus(ctx, r, s); err != nil {
		return time.Time{}, err
	}
	if keys := e.fetchedFor(r.ID); len(keys) > 0 {
		if err := e.o.Store.Wake(ctx, keys...); err != nil {
			return time.Time{}, err
		}
	}
	if news := e.newTargets(r.ID, s.Turn); ok && string(seen) == now && !news {
		return next, nil
	}
	var keys []string
	for _, u := range s.AllUnits() {
		keys = append(keys, facts.Key(s.Runner(u)))
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	known, err := e.o.Store.Units(ctx, store.UnitFilter{Repo: r.ID})
	if err != nil {
		return time.Time{}, err
	}
	for _, row := range known {
		u, _ := parseUnit(row.Key)
		if _, at := s.Unit(u); at == nil || s.Runner(u) == u {
			keys = append(keys, "unit:"+row.Key) // one that is gone is forgotten by its run
		}
	}
	for _, other := range e.o.Observer.Dependents(r.ID) {
		keys = append(keys, RepoKey(other))
	}
	return next, e.o.Store.Tx(ctx, "fetched", func(tx *store.Tx) error {
		if err := tx.PutState(ctx, headsKey(r), []byte(now)); err != nil {
			return err
		}
		return tx.Wake(ctx, keys...)
	})
}

func headsKey(r *Repository) string { return "heads|" + r.ID }

// newTargets says that this process has not looked at a repository's units yet,
// or not since its targets changed without a commit: what was known of them
// before may be out of date.
func (e *Engine) newTargets(repo string, turn uint64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	last, looked := e.looked[repo]
	e.looked[repo] = turn
	return !looked || last != turn
}

// fetchedFor takes the units that waited for a fetch of a repository.
func (e *Engine) fetchedFor(repo string) []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var keys []string
	for key, of := range e.awaits {
		if of == repo {
			keys = append(keys, key)
			delete(e.awaits, key)
		}
	}
	return sorted(keys)
}

// fingerprint says which of the branches that matter are where.
func fingerprint(heads map[string]string, lines []facts.Line) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(heads[l.Branch] + " ")
	}
	b.WriteString(heads[history.StateBranch])
	names := make([]string, 0, len(heads))
	for name := range heads {
		if strings.HasPrefix(name, promotion.BranchPrefix) || strings.HasPrefix(name, promotion.RevertPrefix) {
			names = append(names, name)
		}
	}
	for _, name := range sorted(names) {
		b.WriteString(" " + name + "=" + heads[name])
	}
	return b.String()
}

// branchStatus shows a broken pipeline file on the tracked branch's commit, and,
// once it is mended, that it is.
func (e *Engine) branchStatus(ctx context.Context, r *Repository, s *facts.Snapshot) error {
	const key = "broken|"
	_, was, err := e.o.Store.State(ctx, key+r.ID)
	if err != nil {
		return err
	}
	switch {
	case s.Broken != "":
		if err := e.o.Actor.Status(ctx, r.Repository, 0, s.Commit, prtext.OtherStatus(s.Broken, true)); err != nil {
			return err
		}
		if err := e.o.Store.PutState(ctx, key+r.ID, []byte(s.Broken)); err != nil {
			return err
		}
		_, err := e.o.Store.AddEvents(ctx, store.Event{At: e.o.Clock.Now(), Repo: r.ID, Kind: "broken", Message: "the pipeline file is broken: " + s.Broken, IdempotencyKey: "broken|" + r.ID + "|" + s.Commit})
		return err
	case was:
		if err := e.o.Actor.Status(ctx, r.Repository, 0, s.Commit, prtext.OtherStatus("", true)); err != nil {
			return err
		}
		return e.o.Store.DeleteState(ctx, key+r.ID)
	}
	return nil
}

// sweep looks at everything that is open and everything that moved, through the
// same keys as an event would.
func (e *Engine) sweep(ctx context.Context, r *Repository) (time.Time, error) {
	next := e.o.Clock.Now().Add(r.SweepInterval)
	if r.Hook != nil {
		changed, err := r.Forge.EnsureHook(ctx, r.Name, *r.Hook)
		if err != nil {
			e.o.Log.Warn("the webhook can't be managed; polling finds what it would have told", zap.String("repository", r.ID), zap.Error(err))
		} else if changed {
			e.o.Log.Info("the webhook was created or repaired", zap.String("repository", r.ID))
		}
	}
	if err := e.o.Observer.RefreshBook(ctx, r.Repository); err != nil {
		return time.Time{}, err
	}
	open, err := e.o.Observer.OpenPulls(ctx, r.Repository)
	if err != nil {
		return time.Time{}, err
	}
	var keys []string
	for _, pr := range open {
		keys = append(keys, PullKey(r.ID, pr.Number))
	}
	if err := e.maintain(ctx, r); err != nil {
		return time.Time{}, err
	}
	if _, err := e.o.Store.Prune(ctx, e.o.Clock.Now().Add(-e.o.Keep)); err != nil {
		return time.Time{}, err
	}
	return next, e.o.Store.Wake(ctx, keys...)
}

// maintainEvery is how often a mirror is packed anew.
const maintainEvery = 24 * time.Hour

// maintain keeps the mirror fast: once a day, by whichever process is first.
func (e *Engine) maintain(ctx context.Context, r *Repository) error {
	key := "maintained|" + r.ID
	raw, ok, err := e.o.Store.State(ctx, key)
	if err != nil {
		return err
	}
	now := e.o.Clock.Now()
	if last, perr := time.Parse(time.RFC3339, string(raw)); ok && perr == nil && now.Sub(last) < maintainEvery {
		return nil
	}
	if err := r.Mirror.Maintain(ctx); err != nil {
		return err
	}
	return e.o.Store.PutState(ctx, key, []byte(now.UTC().Format(time.RFC3339)))
}

// pull reads one pull request again, takes the commands in it and wakes its unit.
func (e *Engine) pull(ctx context.Context, r *Repository, number int) (time.Time, error) {
	pr, err := e.o.Observer.Touch(ctx, r.Repository, number)
	if gone(err) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, err
	}
	ref, ours := promotion.ParseBranch(pr.Branch)
	if !ours || pr.Fork || pr.Author != r.Me {
		if ours && !pr.Fork {
			// A stranger's pull request on a branch named like ours keeps us from opening one.
			u := promotion.Unit{Repo: r.ID, Pipeline: ref.Pipeline, Component: ref.Component}
			if err := e.o.Store.Wake(ctx, facts.Key(u)); err != nil {
				return time.Time{}, err
			}
		}
		return e.check(ctx, r, pr)
	}
	if err := e.commands(ctx, r, pr, ref); err != nil {
		return time.Time{}, err
	}
	u := promotion.Unit{Repo: r.ID, Pipeline: ref.Pipeline, Component: ref.Component}
	if err := e.o.Store.Wake(ctx, facts.Key(u)); err != nil {
		return time.Time{}, err
	}
	return time.Time{}, e.orphan(ctx, r, pr, u, ref.Environment)
}

// orphan says on an open pull request of ours that nothing looks after it any
// more: its component, environment or pipeline is gone. It is left to people.
func (e *Engine) orphan(ctx context.Context, r *Repository, pr *forge.PullRequest, u promotion.Unit, env string) error {
	if pr.State != forge.Open {
		return nil
	}
	s, err := e.o.Observer.Snapshot(ctx, r.Repository)
	if err != nil {
		return err
	}
	p, unit := s.Unit(u)
	if s.Broken != "" || p != nil && (len(p.Problems) > 0 || unit != nil && unit.Envs[env] != nil) {
		return nil
	}
	if p != nil && u.Component == promotion.BatchName && p.Spec.EnvironmentByName(env) != nil {
		return nil // of several components, which look after it, or close it
	}
	return e.o.Actor.Status(ctx, r.Repository, pr.Number, pr.Head, prtext.Status{State: string(forge.StatusFailure),
		Description: fmt.Sprintf("%s has no %s in %s any more: nothing looks after this pull request; close it", r.Branch, u.Component, env)})
}
