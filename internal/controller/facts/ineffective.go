package facts

import (
	"context"
	"slices"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/appset/isolation"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/promotion"
)

// findIneffective says what of an open promotion doesn't show in the rendered manifests of a component's
// targets. Of what can't be rendered nothing is said: the pull request says why, and the verification finds out.
func (o *Gatherer) findIneffective(ctx context.Context, c *ComponentEvaluation, env *promotion.Env, open *OpenPull) ([]promotion.IneffectiveField, error) {
	if !env.Spec.RequiresEffect() || open.HeadState == promotion.HeadModified || open.Stale || len(open.Edits) == 0 {
		return nil, nil
	}
	effects, err := o.Effects(ctx, c.Evaluation, componentNames(open.Members), env.Name, env.Tip, open.Edits)
	if err != nil {
		return nil, ctx.Err()
	}
	return c.ListIneffective(env.Name, env.Tip, open.Members, effects, open.Edits, c.Facts.Unit.Component), nil
}

// ListIneffective lists what of edits on a commit doesn't show in the manifests of a component's targets
// although it must, by the effects of the edits. members are all that move by them.
func (ev *Evaluation) ListIneffective(env, base string, members []promotion.Member, effects []isolation.Effect, edits []fieldedit.Edit, component string) []promotion.IneffectiveField {
	own := slices.DeleteFunc(slices.Clone(effects), func(e isolation.Effect) bool { return e.Target.Component != component })
	var out []promotion.IneffectiveField
	for _, f := range isolation.ListIneffective(ev.overrideTrees(env, base), own, ev.changesOf(env, members, edits, component)) {
		out = append(out, promotion.IneffectiveField{Target: f.Target, Field: f.Change.Path, File: f.Change.File, Line: f.Change.Line, OverriddenBy: f.Override.String()})
	}
	return out
}

// MayBeOverridden says that something is known to override what edits on a commit change for a component of
// members in a target that reads some files.
func (ev *Evaluation) MayBeOverridden(env, base string, members []promotion.Member, edits []fieldedit.Edit, t *appset.Target, files []string) bool {
	return isolation.MayBeOverridden(ev.overrideTrees(env, base), t, files, ev.changesOf(env, members, edits, t.Component))
}

// changesOf are the changes of edits that belong to a component, or of which that can't be told.
func (ev *Evaluation) changesOf(env string, members []promotion.Member, edits []fieldedit.Edit, component string) []fieldedit.Change {
	var out []fieldedit.Change
	for i := range edits {
		for _, ch := range edits[i].Changes {
			owner := component
			if len(members) > 1 {
				owner = ev.FieldOwner(env, members, edits[i].File, ch.Path)
			}
			if owner == component || owner == "" {
				ch.File = edits[i].File
				out = append(out, ch)
			}
		}
	}
	return out
}

// overrideTrees are where it is looked for what overrides fields on a commit of an environment's branch.
func (ev *Evaluation) overrideTrees(env, base string) isolation.Trees {
	m := ev.Snapshot.Repo.Mirror
	at := isolation.Trees{Files: m.Tree(base)}
	if at.Sets = at.Files; ev.Pipeline.BranchOf(env) != "" {
		at.Sets = m.Tree(ev.Snapshot.Commit)
	}
	return at
}
