package facts

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/liftlock/liftlock/internal/appset/isolation"
	"github.com/liftlock/liftlock/internal/promotion"
)

// answerChangedObjects says what the commit that landed may have made unhealthy of each
// target. That this is not known is an answer too.
func (eg *effectGatherer) answerChangedObjects(ctx context.Context, c *ComponentEvaluation, env *promotion.Env) error {
	l := env.Landed.Value
	components := []string{c.Facts.Unit.Component}
	if l.Batch {
		components = componentNames(l.Members)
	}
	effects, err := eg.commitEffects(ctx, c.Evaluation, components, env.Name, l.Parent, l.Commit)
	if ctx.Err() != nil {
		return err
	}
	at := c.Unit.Envs[env.Name]
	for i := range env.Targets {
		t, judged := &env.Targets[i], c.targetAt(env, at, i)
		if judged == nil || c.findChild(env.Name, t.Name) != nil {
			t.ChangedObjects = promotion.Unsure[[]promotion.Object](
				"it is an Application of an app of apps, whose manifests aren't compared")
			continue
		}
		if err != nil {
			t.ChangedObjects = promotion.Unsure[[]promotion.Object](err.Error())
			continue
		}
		t.ChangedObjects = promotion.Sure[[]promotion.Object](nil) // it reads nothing that was changed
		for k := range effects {
			e := &effects[k]
			switch {
			case e.Target.ID() != judged.ID():
			case e.Why != "":
				t.ChangedObjects = promotion.Unsure[[]promotion.Object](e.Why)
			default:
				t.ChangedObjects, t.BroughtImages = promotion.Sure(affectedObjects(e)), broughtImages(e, t)
			}
		}
	}
	return nil
}

// broughtImages are those of the images that a target's pods can't pull which an effect may
// explain.
func broughtImages(e *isolation.Effect, t *promotion.Target) []string {
	return slices.DeleteFunc(t.UnpulledImages(), func(image string) bool { return !e.Changes.MayExplainPull(image) })
}

// commitEffects says what a commit did to the targets of an environment, by the
// rules of today: nobody has changed what they read since, or it isn't requested.
func (eg *effectGatherer) commitEffects(ctx context.Context, c *Evaluation, components []string, env, parent,
	commit string) ([]isolation.Effect, error) {
	if parent == "" {
		return nil, errors.New("there is no commit before it")
	}
	edits, err := eg.editsBetween(ctx, c.Snapshot.Repo, parent, commit)
	if err != nil {
		return nil, err
	}
	return eg.Effects(ctx, c, components, env, parent, edits)
}

// affectedObjects are what an effect may make unhealthy, as Argo CD names it.
func affectedObjects(e *isolation.Effect) []promotion.Object {
	out := make([]promotion.Object, 0, len(e.Affected))
	for _, r := range e.Affected {
		out = append(out, promotion.Object{Group: r.Group, Kind: r.Kind, Namespace: cmp.Or(r.Namespace, e.Target.DestNS), Name: r.Name})
	}
	return out
}
