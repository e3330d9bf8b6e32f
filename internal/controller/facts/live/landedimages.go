package live

import (
	"context"
	"time"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/manifest/render"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// landedImages are the images that the landed release brought to a target, as rendered, where they
// decide about its first verdict. It is nil where they don't, or can't be told: the Applications
// below a target aren't rendered.
func (ga *Gatherer) landedImages(l *targetLook, t *appset.Target, label string, app *verification.App, v *verification.Verdict,
	mem *verification.Memory) []verification.LandedImage {
	if l.env.Spec.Verify.Runs.Images == pipeline.RunsOff || app == nil || len(app.Images) == 0 || !mem.VerifiedAt.IsZero() {
		return nil
	}
	switch v.State {
	case verification.Soaking, verification.Verified, verification.Degraded:
	case verification.Unclear:
		if mem.Fresh || mem.Done.IsZero() {
			return nil
		}
	default:
		if mem.OthersSince.IsZero() {
			return nil
		}
	}
	if FindChild(l.out.Children, label) != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(l.ctx, imagesTimeout)
	defer cancel()
	before, after, err := ga.renderBeforeAndAfter(ctx, l, t, l.env.Landed.Value)
	if err != nil || after == nil {
		return nil
	}
	var out []verification.LandedImage
	for _, i := range render.Diff(before, after).BroughtImages(before, after) {
		out = append(out, verification.LandedImage{Workload: i.Workload.Kind + " " + i.Workload.Name, Image: i.Image, Was: i.Was})
	}
	return out
}

const (
	// imagesTimeout bounds the rendering of what landed for its images.
	imagesTimeout = 30 * time.Second
	// podsSoughtFor is for how long after a target was verified its pods are asked for, where they couldn't be read
	// at once: later they may be others.
	podsSoughtFor = 10 * time.Minute
	// podsPatience is how long a target's pods may take to be read: the look waits for it.
	podsPatience = 5 * time.Second
)

// runningImages are the images of a target's pods once it is verified, for the record alone; nil where they are on
// record already, or can't be told now.
func (ga *Gatherer) runningImages(l *targetLook, t *appset.Target, app *verification.App, v *verification.Verdict,
	mem *verification.Memory, now time.Time) []verification.RunningImage {
	trees := ga.Argocds.ByName[ga.Argocds.ArgoCDOf(t)].Trees
	if app == nil || trees == nil || l.env.Spec.Verify.Runs.Images == pipeline.RunsOff {
		return nil
	}
	if v.State != verification.Verified || v.Lapsed {
		return nil
	}
	if mem.Runs != nil && mem.Runs.OfPods || now.Sub(mem.VerifiedAt) > podsSoughtFor {
		return nil
	}
	ctx, cancel := context.WithTimeout(l.treesContext(), podsPatience)
	defer cancel()
	found, err := trees.RunningImages(ctx, app)
	if err != nil {
		return nil // nothing is decided by it
	}
	return found
}

// renderBeforeAndAfter is a target's manifests before a commit that landed and with it; none where they can't be told.
func (ga *Gatherer) renderBeforeAndAfter(ctx context.Context, l *targetLook, t *appset.Target, landed promotion.Landed) (before,
	after *render.Manifests, err error) {
	if landed.Parent == "" {
		return nil, nil, nil
	}
	own := l.c.Snapshot.Repo
	before, why, err := ga.Renderer.RenderTarget(ctx, l.treeAt(own, landed.Parent), t, landed.Parent)
	if err != nil || why != "" {
		return nil, nil, err
	}
	after, why, err = ga.Renderer.RenderTarget(ctx, l.treeAt(own, landed.Commit), t, landed.Commit)
	if err != nil || why != "" {
		return nil, nil, err
	}
	return before, after, nil
}
