package facts

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/facts/effects"
	"github.com/liftlock/liftlock/internal/controller/facts/live"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
)

// answerComposition says what moving a release into an environment changes, or why it
// can't be done.
func (ga *Gatherer) answerComposition(ctx context.Context, c *ComponentEvaluation, env *promotion.Env, l promotion.FactRequest) error {
	component := c.Facts.Unit.Component
	out := promotion.Composition{Tip: env.Tip}
	edits, refused := ga.Effects.ComposeMembers(ctx, c.Basis, env.Name, env.Tip,
		[]promotion.Member{{Component: component, Release: l.Release}})
	switch {
	case refused[component] != "":
		out.Refuse(refused[component])
	case len(edits) == 0:
		out.State = promotion.EditEmpty
	default:
		out.Files = effects.EditedFiles(edits)
		// A component that moves with others may share files with them: the check for those that
		// come along follows when they are known.
		may := []string{component}
		if c.IsBatch() {
			may = slices.Sorted(maps.Keys(c.Pipeline.Units))
		}
		why, err := ga.Effects.WhyNotIsolated(ctx, c.Basis, may, env.Name, out.Tip, edits)
		if err != nil {
			return err
		}
		out.Refuse(why)
		if out.Incomplete, err = ga.Authors.WhyIncomplete(ctx, &c.ComponentBasis, env, l.Release); err != nil {
			return err
		}
	}
	c.Evaluation.edits[editKey{env.Name, component, l.Release}] = edits
	env.Compositions[l.Release] = out
	return nil
}

// answerBatchRequest says what moving several releases at once changes.
func (ga *Gatherer) answerBatchRequest(ctx context.Context, ev *Evaluation, l promotion.FactRequest) error {
	env := ev.Environment(l.Environment)
	if env == nil {
		return fmt.Errorf("look at %s: %w", l.Environment, branch.ErrNoUnit)
	}
	id := promotion.BatchID(l.Members)
	out := promotion.Composition{Tip: env.Tip}
	edits, refused := ga.Effects.ComposeMembers(ctx, &ev.Basis, env.Name, env.Tip, l.Members)
	out.RefusedByMember = refused
	if len(refused) == 0 {
		why, err := ga.Effects.WhyNotIsolated(ctx, &ev.Basis, effects.ComponentNames(l.Members), env.Name, env.Tip, edits)
		if err != nil {
			return err
		}
		if out.Refuse(why); out.State == promotion.EditRefused {
			if out.RefusedByMember, err = ga.blameMembers(ctx, ev, env, l.Members); err != nil {
				return err
			}
		}
	}
	ev.edits[editKey{env.Name, ev.Unit.Component, id}] = edits
	if ev.compositions[env.Name] == nil {
		ev.compositions[env.Name] = map[string]promotion.Composition{}
	}
	ev.compositions[env.Name][id] = out
	return nil
}

// blameMembers finds the components whose own part reaches a target that
// doesn't come along.
func (ga *Gatherer) blameMembers(ctx context.Context, ev *Evaluation, env *promotion.Env,
	members []promotion.Member) (map[string]string, error) {
	out := map[string]string{}
	for _, m := range members {
		part, refused := ga.Effects.ComposeMembers(ctx, &ev.Basis, env.Name, env.Tip, []promotion.Member{m})
		why := refused[m.Component]
		if why == "" && len(part) > 0 {
			var err error
			if why, err = ga.Effects.WhyNotIsolated(ctx, &ev.Basis, effects.ComponentNames(members), env.Name, env.Tip, part); err != nil {
				return nil, err
			}
		}
		if why != "" {
			out[m.Component] = why
		}
	}
	return out, nil
}

// ComposedEdits are the edits of what was composed for an environment of the unit.
func (ev *Evaluation) ComposedEdits(env, release string) []fieldedit.Edit {
	return ev.edits[editKey{env, ev.Unit.Component, release}]
}

// RestoredEdits are the edits that revert a landed promotion, composed for any of those
// that it brought.
func (ev *Evaluation) RestoredEdits(env string, pull int, members []promotion.Member) []fieldedit.Edit {
	for _, m := range members {
		if c, _ := ev.Component(m.Component); c != nil && c.restored[env] != nil {
			if l := c.Env(env).Landed; l.OK && l.Value.Pull == pull {
				return c.restored[env]
			}
		}
	}
	return nil
}

// answerRestore says what takes back what landed in an environment, with all that came
// by the same pull request.
func (ga *Gatherer) answerRestore(ctx context.Context, c *ComponentEvaluation, env *promotion.Env) error {
	if !env.Landed.OK {
		env.Restore = promotion.Unsure[promotion.Composition](env.Landed.Err)
		return nil
	}
	out := promotion.Composition{Tip: env.Tip}
	members := env.Landed.Value.Members
	if !env.Landed.Value.Batch {
		members = []promotion.Member{{Component: c.Facts.Unit.Component}}
	}
	edits, err := ga.Effects.ComposeRevert(ctx, c.Basis, env.Name, members, env.Landed.Value.Commit, env.Tip)
	switch {
	case err != nil && ctx.Err() != nil: // a run that is over refuses nothing
		return err
	case err != nil:
		out.Refuse(err.Error())
	case len(edits) == 0:
		out.Refuse("the bytes are already as they were before")
	default:
		out.Files = effects.EditedFiles(edits)
		why, err := ga.Effects.WhyNotIsolated(ctx, c.Basis, effects.ComponentNames(members), env.Name, out.Tip, edits)
		if err != nil {
			return err
		}
		out.Refuse(why)
	}
	c.restored[env.Name] = edits
	env.Restore = promotion.Sure(out)
	return nil
}

// ComposeRevertOnto composes an open revert anew onto a tip.
func (ga *Gatherer) ComposeRevertOnto(ctx context.Context, ev *Evaluation, p *OpenPull, tip string) ([]fieldedit.Edit, error) {
	return ga.Effects.ComposeRevert(ctx, &ev.Basis, p.Environment, p.Members, p.Reverts.MergeCommit, tip)
}

// answerBlame answers Look blame: which other commits changed what the environment's
// targets read since the release landed, on any branch that they follow.
func (ga *Gatherer) answerBlame(ctx context.Context, c *ComponentEvaluation, env *promotion.Env) error {
	changed := map[string][]string{}
	for _, l := range c.Snapshot.BranchHeads() {
		if l.Commit == "" {
			continue
		}
		ix := c.Pipeline.ReaderIndexes[l.Branch]
		if err := ga.addChangesOn(ctx, c, env, l, ix, changed); err != nil {
			var indexErr *indexError
			if !errors.As(err, &indexErr) {
				return err
			}
			for i := range env.Targets {
				env.Targets[i].ChangedSince = promotion.Unsure[[]string](err.Error())
			}
			return nil
		}
	}
	for i := range env.Targets { // parents come before what is below them
		name := env.Targets[i].Name
		if k := live.FindChild(c.children[env.Name], name); k != nil && changed[name] == nil {
			changed[name] = changed[k.Parent]
		}
		env.Targets[i].ChangedSince = promotion.Sure(changed[name])
	}
	return nil
}

// addChangesOn adds the commits of one branch. On the environment's own they are
// those after what landed; on another, which what landed isn't on, those that
// are no older.
func (ga *Gatherer) addChangesOn(ctx context.Context, c *ComponentEvaluation, env *promotion.Env, l branch.Head, ix *branch.LazyIndex,
	changed map[string][]string) error {
	m, landed, at := c.Snapshot.Repo.Mirror, env.Landed.Value, c.Unit.Envs[env.Name]
	own := l.Branch == env.Branch
	q := git.LogQuery{From: l.Commit, FirstParent: true, Limit: branch.OriginDepth}
	if own {
		q.Until = landed.Commit
	}
	log, err := m.Log(ctx, q)
	if err != nil {
		return err
	}
	for _, ci := range log {
		if !own && ci.CommitTime.Before(landed.At) {
			break
		}
		if len(ci.Parents) == 0 {
			continue
		}
		paths, err := branch.ChangedPaths(ctx, m, ci.Parents[0], ci.SHA)
		if err != nil {
			return err
		}
		index, err := ix.Get(ctx)
		if err != nil {
			return &indexError{err}
		}
		readers := index.AffectedReaders(paths)
		for i := range env.Targets {
			name := env.Targets[i].Name
			t := live.TargetAt(env, at, c.children[env.Name], i)
			switch {
			case t == nil:
				continue
			case live.FindChild(c.children[env.Name], name) != nil: // which files one below a target reads is not known
				if !own || live.HasNoLocalSource(t) {
					continue
				}
			case readers[t.ID()] == nil:
				continue
			}
			changed[name] = append(changed[name], ci.SHA)
		}
	}
	return nil
}

// indexError says that which targets read what can't be told.
type indexError struct{ error }
