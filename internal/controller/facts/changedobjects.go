package facts

import (
	"cmp"
	"context"
	"slices"

	"github.com/liftlock/liftlock/internal/appset/isolation"
	"github.com/liftlock/liftlock/internal/controller/facts/effects"
	"github.com/liftlock/liftlock/internal/controller/facts/live"
	"github.com/liftlock/liftlock/internal/promotion"
)

// answerChangedObjects says what the commit that landed may have made unhealthy of each
// target. That this is not known is an answer too.
func (ga *Gatherer) answerChangedObjects(ctx context.Context, c *ComponentEvaluation, env *promotion.Env) error {
	l := env.Landed.Value
	components := []string{c.Facts.Unit.Component}
	if l.Batch {
		components = effects.ComponentNames(l.Members)
	}
	effects, err := ga.Effects.CommitEffects(ctx, c.Basis, components, env.Name, l.Parent, l.Commit)
	if ctx.Err() != nil {
		return err
	}
	at := c.Unit.Envs[env.Name]
	for i := range env.Targets {
		t, judged := &env.Targets[i], live.TargetAt(env, at, c.children[env.Name], i)
		if judged == nil || live.FindChild(c.children[env.Name], t.Name) != nil {
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

// affectedObjects are what an effect may make unhealthy, as Argo CD names it.
func affectedObjects(e *isolation.Effect) []promotion.Object {
	out := make([]promotion.Object, 0, len(e.Affected))
	for _, r := range e.Affected {
		out = append(out, promotion.Object{Group: r.Group, Kind: r.Kind, Namespace: cmp.Or(r.Namespace, e.Target.DestNS), Name: r.Name})
	}
	return out
}
