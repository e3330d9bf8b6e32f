package effects

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/appset/evaluate"
	"github.com/liftlock/liftlock/internal/appset/impact"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/manifest/render"
	"github.com/liftlock/liftlock/internal/proc/sandbox"
)

// RenderedChange is what somebody's pull request does to the manifests of a target.
type RenderedChange struct {
	Target string
	Spec   bool // the Application itself changes
	evaluate.RenderedPair
}

// renderChange works out what a change does to the manifests of the targets that it touches. It
// does so in a child process with limits, as a stranger wrote the rendered files. The report says
// where that can't be told; the error is for a failure that may pass.
func (cg *ChangeGatherer) renderChange(ctx context.Context, s *branch.Snapshot, c *ProposedChange, before, after *evaluate.Resolution,
	limit render.TextLimit, v *ChangeReport) error {
	request := evaluate.RenderRequest{Revision: c.Base, Branch: c.Into.Branch, Tracked: s.Repo.Branch, Limit: limit,
		Before: s.Repo.Mirror.Tree(c.Base), After: s.Repo.Mirror.Tree(c.Head), Others: map[string]fs.FS{}}
	for _, l := range s.OtherBranches(c.Into) {
		if l.Commit != "" {
			request.Others[l.Branch] = s.Repo.Mirror.Tree(l.Commit)
		}
	}
	var changes []RenderedChange
	seen := map[string]bool{} // one that moves, or that several pipelines know, is here several times
	for i := range v.Report.Pipelines {
		p := &v.Report.Pipelines[i]
		old, recent := targetsByID(before, p.Name), targetsByID(after, p.Name)
		for j := range p.Environments {
			for k := range p.Environments[j].Targets {
				t := &p.Environments[j].Targets[k]
				id := (&appset.Target{Name: t.Name, Namespace: t.Namespace, ArgoCD: t.ArgoCD}).ID()
				if t.What == impact.Unknown || seen[id] || old[id] == nil && recent[id] == nil {
					continue
				}
				if seen[id] = true; len(changes) == evaluate.MaxRenderPairs {
					v.NotRendered++
					continue
				}
				request.Pairs = append(request.Pairs, evaluate.RenderPair{Before: old[id], After: recent[id]})
				changes = append(changes, RenderedChange{Target: t.Name, Spec: t.What == impact.Changed && len(t.Fields) > 0})
			}
		}
	}
	if len(request.Pairs) == 0 {
		return nil
	}
	newVersions := maxNewVersions
	if c.fromFork {
		newVersions = 0
	}
	request.Externals = cg.openAllowed(ctx, s, request.Pairs, newVersions)
	rendered, err := evaluate.RenderInWorker(ctx, cg.sandbox, request)
	var limited *sandbox.Error
	var refused *sandbox.HandlerError
	switch {
	case errors.As(err, &limited), errors.As(err, &refused):
		v.RenderedErr = err.Error()
		return nil
	case err != nil:
		return err
	}
	for i := range changes {
		changes[i].RenderedPair = rendered[i]
	}
	v.Rendered = changes
	return nil
}

// maxNewVersions bounds the versions that are looked for because a change alone names them.
const maxNewVersions = 10

// openAllowed opens the other sources of a change's targets, as far as targets of the tracked
// branch have the very same ones. It also opens another version of one, up to a given number: the
// same chart, or the same repository at a tag that is a version. An author without write access may
// name none: another version may have content that the deployed one no longer shows. No change
// makes the server read anything else, no branch and no commit of those either. A source that can't
// be had is left out.
func (cg *ChangeGatherer) openAllowed(ctx context.Context, s *branch.Snapshot, pairs []evaluate.RenderPair,
	newVersions int) []evaluate.ExternalTree {
	if cg.externals == nil {
		return nil
	}
	allowed, known := map[render.External]bool{}, map[render.External]bool{} // known ones are without their versions
	for _, p := range s.Pipelines {
		if p.TargetSet == nil {
			continue
		}
		for i := range p.TargetSet.Targets {
			for _, e := range externalsOf(&p.TargetSet.Targets[i]) {
				allowed[e], known[withoutRevision(e)] = true, true
			}
		}
	}
	var out []evaluate.ExternalTree
	seen, versions := map[render.External]bool{}, 0
	for _, p := range pairs {
		for _, t := range []*appset.Target{p.Before, p.After} {
			if t == nil {
				continue
			}
			for _, e := range externalsOf(t) {
				isVersion := !allowed[e] && known[withoutRevision(e)] && isExactVersion(e.Revision)
				if seen[e] || !allowed[e] && (!isVersion || versions == newVersions) {
					continue
				}
				if seen[e] = true; isVersion {
					versions++
				}
				if tree, err := cg.externals.Open(ctx, e); err == nil {
					out = append(out, evaluate.ExternalTree{External: e, At: tree.Revision, FS: tree.FS})
				}
			}
		}
	}
	return out
}

func withoutRevision(e render.External) render.External {
	e.Revision = ""
	return e
}

// isExactVersion says that a revision is a version in full, as published ones are called: 1.4.2, v1.4.2-rc.1.
func isExactVersion(revision string) bool {
	_, err := semver.StrictNewVersion(strings.TrimPrefix(branch.TrimTag(revision), "v"))
	return err == nil
}

// externalsOf are what a target's sources name that isn't in its repository.
func externalsOf(t *appset.Target) []render.External {
	in := evaluate.RenderInput(t, "", nil)
	return in.Externals()
}

// targetsByID are a pipeline's targets by their IDs.
func targetsByID(w *evaluate.Resolution, pipeline string) map[string]*appset.Target {
	out := map[string]*appset.Target{}
	if p := w.Pipelines[pipeline]; p != nil {
		for i := range p.TargetSet.Targets {
			t := &p.TargetSet.Targets[i]
			out[t.ID()] = t
		}
	}
	return out
}
