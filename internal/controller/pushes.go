package controller

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/appset/history"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/store"
)

// repositoryLook is a repository as this process saw it last, and woke the units for.
type repositoryLook struct {
	snapshot *branch.Snapshot
	heads    map[string]string // of the branches that matter
}

// relevantHeads are the heads of the branches that matter: those that are judged, as
// they are judged, the one with holds, and our own.
func relevantHeads(heads map[string]string, judged []branch.Head) map[string]string {
	out := map[string]string{}
	for name, head := range heads {
		if name == history.StateBranch || strings.HasPrefix(name, promotion.BranchPrefix) ||
			strings.HasPrefix(name, promotion.RevertPrefix) {
			out[name] = head
		}
	}
	for _, b := range judged {
		out[b.Branch] = b.Commit
	}
	return out
}

// missed says that a judged branch is where this process saw it, and was elsewhere when
// another process looked: what happened between can't be told from here.
func (r repositoryLook) missed(seen map[string]string, now repositoryLook) bool {
	return slices.ContainsFunc(now.snapshot.BranchHeads(), func(b branch.Head) bool {
		return seen[b.Branch] != b.Commit && r.heads[b.Branch] == b.Commit
	})
}

// keysOfChanges are the keys that the changes since the last look concern. They are changed units,
// units with a branch of ours that moved, and units that a hold is about. Units that wait for a
// place that may be free now are among them, too.
func (co *Controller) keysOfChanges(ctx context.Context, r *Repository, seen map[string]string, last,
	now repositoryLook) (urgentKeys, error) {
	keys := urgentKeys{}
	s := now.snapshot
	if !slices.Equal(last.snapshot.BranchHeads(), s.BranchHeads()) {
		units, all, err := co.opts.Gatherer.Targets.ChangedUnits(ctx, last.snapshot, s)
		if err != nil {
			return keys, err
		}
		if all {
			every, err := co.keysOfAll(ctx, r, s)
			keys.add(store.Normal, every...)
			return keys, err
		}
		for u := range units {
			keys.add(store.Normal, wake.ForUnit(s.RunsAs(u)))
		}
		for _, other := range co.opts.Gatherer.Targets.Dependents(r.ID) {
			keys.add(store.Normal, wake.ForRepository(other))
		}
		readers, err := co.keysOfReaders(ctx, r)
		if err != nil {
			return keys, err
		}
		keys.add(store.Normal, readers...)
	}
	for _, heads := range []map[string]string{last.heads, seen, now.heads} {
		for name := range heads {
			if ref, ours := promotion.ParseBranch(name); ours && (last.heads[name] != now.heads[name] || seen[name] != now.heads[name]) {
				keys.add(store.Normal, wake.ForUnit(promotion.Unit{Repo: r.ID, Pipeline: ref.Pipeline, Component: ref.Component}))
			}
		}
	}
	held, err := co.heldUnits(ctx, r, seen, last, now)
	if err != nil {
		return keys, err
	}
	for _, u := range held {
		keys.add(store.Urgent, wake.ForUnit(s.RunsAs(u)))
	}
	queued, err := co.opts.Gatherer.Records.NextQueued(ctx, s)
	for _, u := range queued {
		keys.add(store.Normal, wake.ForUnit(s.RunsAs(u)))
	}
	return keys, err
}

// heldUnits are the units that the holds are about that were set or lifted.
func (co *Controller) heldUnits(ctx context.Context, r *Repository, seen map[string]string, last,
	now repositoryLook) ([]promotion.Unit, error) {
	was, is := last.heads[history.StateBranch], now.heads[history.StateBranch]
	if was == is && seen[history.StateBranch] == is {
		return nil, nil
	}
	all := now.snapshot.AllUnits()
	if was == is || was == "" || is == "" {
		return all, nil
	}
	changes, err := r.Mirror.Changed(ctx, was, is)
	if err != nil {
		return all, nil // the commit before may be gone
	}
	out := map[promotion.Unit]bool{}
	for _, c := range changes {
		for _, u := range all {
			if c.Path == history.HoldPath(u.Pipeline, command.ScopeComponent, u.Component) || strings.HasPrefix(c.Path,
				"holds/"+u.Pipeline+"/") && !strings.HasPrefix(c.Path, "holds/"+u.Pipeline+"/"+command.ScopeComponent+"/") {
				out[u] = true
			}
		}
	}
	return slices.Collect(maps.Keys(out)), nil
}

// wakeQueued wakes those that wait for a place, of which one may be free now.
func (co *Controller) wakeQueued(ctx context.Context, r *Repository) error {
	s, err := co.opts.Gatherer.Targets.Snapshot(ctx, r.Repository)
	if err != nil {
		return err
	}
	queued, err := co.opts.Gatherer.Records.NextQueued(ctx, s)
	if err != nil {
		return err
	}
	var keys []wake.Key
	for _, u := range queued {
		keys = append(keys, wake.ForUnit(s.RunsAs(u)))
	}
	return co.opts.Store.Wake(ctx, wake.Strings(keys...)...)
}
