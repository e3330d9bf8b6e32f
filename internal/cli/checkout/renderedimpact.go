package checkout

import (
	"context"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/appset/evaluate"
	"github.com/liftlock/liftlock/internal/appset/impact"
	"github.com/liftlock/liftlock/internal/appset/isolation"
	"github.com/liftlock/liftlock/internal/manifest/render"
)

// impactLimit bounds what one target's rendered difference is shown with.
var impactLimit = render.TextLimit{Bytes: 256 << 10, Lines: 4000, ObjectLines: 1000}

// renderedSide is one side of a change: its files, and how its targets were resolved.
type renderedSide struct {
	at      isolation.Resolution
	targets map[string]*appset.Target // by ID
	name    string                    // before why it can't be rendered; empty: of the side that is there already
}

// renderImpact renders the targets that a change touches on both of its sides, with what the flags name of other
// repositories and charts. branch is where the change is to be merged.
func (r *Repository) renderImpact(ctx context.Context, report *impact.Report, branch string, before, after *Tree, was,
	is *evaluate.Resolution) error {
	renderer := isolation.New(render.MemoOptions{Bytes: 256 << 20, External: r.openRendered})
	heads, err := r.git.Branches(ctx)
	if err != nil {
		return err
	}
	delete(heads, branch)
	others := isolation.BranchTrees(r.git.Tree, heads)
	sides := [2]renderedSide{1: {name: "after the change: "}}
	for i, side := range []*Tree{before, after} {
		sides[i].at = isolation.Resolution{Tree: side.FS, ID: side.FS.Identity, Branches: others}
	}
	report.Rendered = []impact.Rendered{}
	for i := range report.Pipelines {
		p := &report.Pipelines[i]
		sides[0].targets, sides[1].targets = targetsByID(was, p.Name), targetsByID(is, p.Name)
		for k := range p.Environments {
			for n := range p.Environments[k].Targets {
				t := &p.Environments[k].Targets[n]
				if t.What == impact.Unknown {
					continue
				}
				found, err := r.renderPair(ctx, renderer, &sides, t, branch, after.Commit)
				if err != nil {
					return err
				}
				found.Pipeline, found.Environment = p.Name, p.Environments[k].Name
				report.Rendered = append(report.Rendered, found)
			}
		}
	}
	return nil
}

// renderPair renders a target on both sides of a change, both for the same commit: what only names it is no change.
func (r *Repository) renderPair(ctx context.Context, renderer *isolation.Renderer, sides *[2]renderedSide, t *impact.Target, branch,
	commit string) (impact.Rendered, error) {
	out := impact.Rendered{Target: t.Name}
	id := (&appset.Target{Name: t.Name, Namespace: t.Namespace, ArgoCD: t.ArgoCD}).ID()
	var manifests [2]*render.Manifests
	for i := range sides {
		found := sides[i].targets[id]
		if found == nil {
			continue
		}
		own := *found
		if err := appset.RestoreOptions(&own); err != nil {
			return out, err
		}
		own = appset.ViewFromBranch(own, branch, r.main)
		m, why, err := renderer.RenderTarget(ctx, sides[i].at, &own, commit)
		if err != nil {
			return out, err
		}
		if why != "" {
			out.Why = sides[i].name + why
			return out, nil
		}
		manifests[i] = m
	}
	c := render.Diff(manifests[0], manifests[1])
	out.Summary, out.Diff = c.Summary(), c.Text(impactLimit)
	return out, nil
}

// targetsByID are a pipeline's targets by their IDs.
func targetsByID(of *evaluate.Resolution, pipeline string) map[string]*appset.Target {
	out := map[string]*appset.Target{}
	if p := of.Pipelines[pipeline]; p != nil && p.TargetSet != nil {
		for i := range p.TargetSet.Targets {
			t := &p.TargetSet.Targets[i]
			out[t.ID()] = t
		}
	}
	return out
}
