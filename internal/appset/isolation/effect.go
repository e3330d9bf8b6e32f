package isolation

import (
	"context"
	"slices"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/manifest/render"
)

// Effect is what an edit does to one target.
type Effect struct {
	Target appset.Target // as it is after the edit; one that is gone, as it was
	// Before is as it was before the edit, where Spec says that this differs; nil: there was none.
	Before *appset.Target
	// Spec says that the Application itself changes: it is created, deleted, or
	// what its ApplicationSet generates differs.
	Spec bool
	// Files are those of the edit that it read before, or would if they were there.
	Files []string
	// Changes are those of its manifests; nil where Why says why they can't be told.
	Changes *render.Changes
	// Nothing says that it has no manifests at all, neither before the edit nor after it.
	Nothing bool
	// Affected are the objects that the changes may make unhealthy: those that
	// differ, and those that use one of them.
	Affected []render.ObjectRef
	Why      string
	// Run is its effect on the target as the live Application has it, where that has other options
	// than the one in Git. It is nil where the options are the same, or unknown.
	Run *Effect
	// Ignored is what of Changes Argo CD ignores; nil: nothing, or nobody knows.
	Ignored *Ignored
	// Disagreement is how the rendering of its Argo CD parts from the one that was made here; empty: not, or nobody asked.
	Disagreement string
	// NeedsMore says that Why is that the files alone don't make them: Argo CD may well.
	NeedsMore bool
}

// Effects says what an edit does to the targets that it is for: to each that
// reads an edited file or whose Application changes, sorted by name. A target
// whose manifests stay as they are has empty Changes. The error is that of a
// context that ended.
func (r *Renderer) Effects(ctx context.Context, e *Edit) ([]Effect, error) {
	var pairs []targetPair
	for _, p := range e.pairTargets() {
		if p.mayChange && (!p.sameSpec() || len(e.FilesByTarget[p.id]) > 0) {
			pairs = append(pairs, p)
		}
	}
	return r.pairEffects(ctx, e, pairs)
}

// RunningTarget is a target as its live Application has it before an edit, and will have it after.
type RunningTarget struct{ Before, After *appset.Target }

// EffectsAsRun says what an edit does to some targets, by their ID, as their live Applications have them.
func (r *Renderer) EffectsAsRun(ctx context.Context, e *Edit, run map[string]RunningTarget) ([]Effect, error) {
	var pairs []targetPair
	for _, p := range e.pairTargets() {
		if live, known := run[p.id]; known {
			pairs = append(pairs, targetPair{id: p.id, before: live.Before, after: live.After, mayChange: true})
		}
	}
	return r.pairEffects(ctx, e, pairs)
}

func (r *Renderer) pairEffects(ctx context.Context, e *Edit, pairs []targetPair) ([]Effect, error) {
	var out []Effect
	for some := range slices.Chunk(pairs, maxRenderedAtOnce) {
		rendered, err := r.renderPairs(ctx, e, some)
		if err != nil {
			return nil, err
		}
		for i := range some {
			out = append(out, newEffect(&some[i], e.FilesByTarget[some[i].id], rendered[i]))
		}
	}
	return out, nil
}

func newEffect(p *targetPair, files []string, rendered renderedPair) Effect {
	f := Effect{Target: *p.latestTarget(), Spec: !p.sameSpec(), Files: files}
	if f.Spec {
		f.Before = p.before
	}
	switch failed := rendered.failed; {
	case failed.why != "":
		f.NeedsMore = failed.needsMore
		if f.Why = failed.why; failed.after {
			f.Why = "after the change: " + f.Why
		}
	default:
		f.Changes = render.Diff(rendered.before, rendered.after)
		f.Nothing = f.Changes.Empty() && (rendered.after == nil || len(rendered.after.Objects) == 0)
		f.Affected = f.Changes.Affected(rendered.after)
	}
	return f
}
