package isolation

import (
	"context"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/manifest/render"
)

// Effect is what an edit does to one target.
type Effect struct {
	Target appset.Target // as it is after the edit; one that is gone, as it was
	// Spec says that the Application itself changes: it is created, deleted, or
	// what its ApplicationSet generates differs.
	Spec bool
	// Changes are those of its manifests; nil where Why says why they can't be told.
	Changes *render.Changes
	// Affected are the objects that the changes may make unhealthy: those that
	// differ, and those that use one of them.
	Affected []render.ObjectRef
	Why      string
	// NeedsMore says that Why is that the files alone don't make them: Argo CD may well.
	NeedsMore bool
}

// Effects says what an edit does to the targets that it is for: to each that
// reads an edited file or whose Application changes, sorted by name. A target
// whose manifests stay as they are has empty Changes. The error is that of a
// context that ended.
func (r *Renderer) Effects(ctx context.Context, e *Edit) ([]Effect, error) {
	var out []Effect
	for _, p := range e.pairTargets() {
		spec := !p.sameSpec()
		if !p.mayChange || !spec && len(e.FilesByTarget[p.id]) == 0 {
			continue
		}
		f := Effect{Target: *p.latestTarget(), Spec: spec}
		before, after, failed, err := r.renderBoth(ctx, e, p)
		switch {
		case err != nil:
			return nil, err
		case failed.why != "":
			f.NeedsMore = failed.needsMore
			if f.Why = failed.why; failed.after {
				f.Why = "after the change: " + f.Why
			}
		default:
			f.Changes = render.Diff(before, after)
			f.Affected = f.Changes.Affected(after)
		}
		out = append(out, f)
	}
	return out, nil
}
