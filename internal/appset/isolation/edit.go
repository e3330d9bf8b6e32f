package isolation

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"slices"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/appset/evaluate"
	"github.com/liftlock/liftlock/internal/manifest/render"
)

// Resolution is a tree with the targets that it stands for.
type Resolution struct {
	Tree fs.FS
	ID   render.ContentID
	// Branches are other branches of the repository, for sources that are At one.
	Branches map[string]render.Tree
	// Targets are those of every pipeline; where several pipelines know one it
	// may be here several times.
	Targets []appset.Target
	// Problems are what couldn't be resolved of them.
	Problems []string
}

// ContentTree is a commit's files, told from others by what they say.
type ContentTree interface {
	fs.FS
	Identity(name string) (string, error)
}

// ResolutionAt is a repository at a commit, without targets yet. branches are the commits of others of its branches; one
// whose commit is empty isn't there.
func ResolutionAt[T ContentTree](read func(commit string) T, commit string, branches map[string]string) Resolution {
	tree := read(commit)
	return Resolution{Tree: tree, ID: tree.Identity, Branches: BranchTrees(read, branches)}
}

// BranchTrees are the trees of a repository's branches, which have these commits; one whose commit is empty isn't there.
func BranchTrees[T ContentTree](read func(commit string) T, branches map[string]string) map[string]render.Tree {
	out := map[string]render.Tree{}
	for name, commit := range branches {
		if commit != "" {
			tree := read(commit)
			out[name] = render.Tree{FS: tree, ID: tree.Identity}
		}
	}
	return out
}

// Edit is a change to a tree, with who it is for.
type Edit struct {
	Before, After Resolution
	Files         []string // that it creates, changes or deletes
	// FilesByTarget are the targets, by their ID, that read one of Files before, or
	// would if it were there, with those files.
	FilesByTarget map[string][]string
	// MayChange says that an edit may change a target. It is asked of the target
	// as it is before, or, where it is new, as it is after.
	MayChange func(*appset.Target) bool
	// Revision is the commit's name for manifests that ask for it. It is the
	// same for both trees: a new commit alone is no change.
	Revision string
}

// ChangesGenerated says that an edit may change more of Applications than a
// [appset.Target] tells, so that the sides must be resolved with whole manifests.
// created: among the files are such that come or go.
func ChangesGenerated(targets []appset.Target, files []string, created bool) bool {
	return created || slices.ContainsFunc(targets, func(t appset.Target) bool {
		return slices.ContainsFunc(files, t.IsGeneratedFrom)
	})
}

// targetPair is one target on both sides; nil where it isn't.
type targetPair struct {
	id            string
	before, after *appset.Target
	mayChange     bool
}

// pairTargets lists all targets of both sides, by ID.
func (e *Edit) pairTargets() []targetPair {
	at := map[string]int{}
	var out []targetPair
	pair := func(t *appset.Target) *targetPair {
		k, known := at[t.ID()]
		if !known {
			k = len(out)
			at[t.ID()] = k
			out = append(out, targetPair{id: t.ID()})
		}
		return &out[k]
	}
	for i := range e.Before.Targets {
		t := &e.Before.Targets[i]
		p := pair(t)
		p.before = cmp.Or(p.before, t)
		p.mayChange = p.mayChange || e.MayChange(t)
	}
	for i := range e.After.Targets {
		t := &e.After.Targets[i]
		p := pair(t)
		p.after = cmp.Or(p.after, t)
		p.mayChange = p.mayChange || p.before == nil && e.MayChange(t)
	}
	slices.SortStableFunc(out, func(a, b targetPair) int { return cmp.Compare(a.targetName(), b.targetName()) })
	return out
}

func (t *targetPair) latestTarget() *appset.Target { return cmp.Or(t.after, t.before) }

func (t *targetPair) targetName() string { return t.latestTarget().Name }

// sameSpec says that both sides ask for the same Application. Without the
// whole manifests it compares what is known of it.
func (t *targetPair) sameSpec() bool {
	a, b := t.before, t.after
	if a == nil || b == nil {
		return a == b
	}
	isSameApplication := a.Name == b.Name && a.Namespace == b.Namespace && a.Project == b.Project && a.AutoSync == b.AutoSync
	isSameDestination := a.Server == b.Server && a.Cluster == b.Cluster && a.DestNS == b.DestNS
	if !isSameApplication || !isSameDestination || !bytes.Equal(a.Application, b.Application) {
		return false
	}
	return slices.EqualFunc(a.Sources, b.Sources, sameSource) && reflect.DeepEqual(a.Hydration, b.Hydration)
}

// Regenerated is a target whose Application an edit changes.
type Regenerated struct {
	Target appset.Target // as it is after the edit; one that is gone, as it was
	// Fields are those of the Application that change, as far as they are listed; none where it comes or goes.
	Fields []appset.FieldDifference
}

// ListRegenerated lists the targets that an edit is for and whose Applications it changes, sorted by
// name. Without whole manifests no fields are known.
func (e *Edit) ListRegenerated() []Regenerated {
	var out []Regenerated
	for _, p := range e.pairTargets() {
		if !p.mayChange || p.sameSpec() {
			continue
		}
		r := Regenerated{Target: *p.latestTarget()}
		if p.before != nil && p.after != nil && p.before.Application != nil && p.after.Application != nil {
			if fields, _, err := appset.ChangedFields(p.before.Application, p.after.Application); err == nil {
				r.Fields = fields
			}
		}
		out = append(out, r)
	}
	return out
}

func sameSource(a, b appset.Source) bool {
	isSamePlace := a.RepoURL == b.RepoURL && a.Path == b.Path && a.Chart == b.Chart && a.Here == b.Here
	return isSamePlace && a.TargetRevision == b.TargetRevision && a.Ref == b.Ref && bytes.Equal(a.Options, b.Options)
}

// Renderer renders targets, and remembers what it rendered. It is safe for
// concurrent use.
type Renderer struct{ cache *render.Memo }

// New makes a Renderer.
func New(o render.MemoOptions) *Renderer { return &Renderer{cache: render.NewMemo(o)} }

// RenderTarget renders a target at a resolution, of which only the tree and the branches are
// read. why says for people why it can't be rendered; the error is that of a context that
// ended.
func (r *Renderer) RenderTarget(ctx context.Context, at Resolution, t *appset.Target, revision string) (m *render.Manifests, why string,
	err error) {
	m, failed, err := r.renderTarget(ctx, &at, t, revision)
	return m, failed.why, err
}

// failedRendering is why a target has no manifests here. The zero value is that it has.
type failedRendering struct {
	why   string // for people
	after bool   // it is about the side after the edit
	// needsMore says that the files alone don't make them: Argo CD may well.
	needsMore bool
}

// renderTarget renders a target of a resolution; a target that isn't there has no
// manifests. err is the context's.
func (r *Renderer) renderTarget(ctx context.Context, w *Resolution, t *appset.Target, revision string) (*render.Manifests,
	failedRendering, error) {
	if t == nil {
		return nil, failedRendering{}, nil
	}
	out, err := r.renderTargets(ctx, w, []*appset.Target{t}, revision)
	if err != nil {
		return nil, failedRendering{}, err
	}
	return out[0].manifests, out[0].failed, nil
}

// renderedTarget is what came of one target.
type renderedTarget struct {
	manifests *render.Manifests
	failed    failedRendering
}

// renderTargets renders targets of a resolution, each of which is there.
func (r *Renderer) renderTargets(ctx context.Context, w *Resolution, targets []*appset.Target, revision string) ([]renderedTarget, error) {
	jobs := make([]render.Job, len(targets))
	for i, t := range targets {
		jobs[i] = render.Job{Tree: render.Tree{FS: w.Tree, ID: w.ID}, Input: evaluate.RenderInput(t, revision, w.Branches)}
	}
	outcomes, err := r.cache.RenderAll(ctx, jobs)
	if err != nil {
		return nil, fmt.Errorf("render targets: %w", err)
	}
	out := make([]renderedTarget, len(targets))
	for i, o := range outcomes {
		var cannot *render.Unrenderable
		switch {
		case o.Err == nil:
			out[i].manifests = o.Manifests
		case ctx.Err() != nil:
			return nil, fmt.Errorf("render %s: %w", targets[i].Name, ctx.Err())
		case errors.As(o.Err, &cannot):
			out[i].failed = failedRendering{why: evaluate.DescribeUnrenderable(cannot), needsMore: true}
		default:
			out[i].failed = failedRendering{why: o.Err.Error()}
		}
	}
	return out, nil
}

// renderedPair is a target's manifests on both sides, where it has any.
type renderedPair struct {
	before, after *render.Manifests
	failed        failedRendering
}

// maxRenderedAtOnce is how many pairs are rendered before the first is compared.
const maxRenderedAtOnce = 64

// renderPairs renders targets on both sides: what can't be rendered before the edit isn't
// rendered after it.
func (r *Renderer) renderPairs(ctx context.Context, e *Edit, pairs []targetPair) ([]renderedPair, error) {
	out := make([]renderedPair, len(pairs))
	renderSide := func(w *Resolution, target func(*targetPair) *appset.Target, put func(*renderedPair, renderedTarget)) error {
		var targets []*appset.Target
		var at []int
		for i := range pairs {
			if t := target(&pairs[i]); t != nil && out[i].failed.why == "" {
				targets, at = append(targets, t), append(at, i)
			}
		}
		if len(targets) == 0 {
			return nil
		}
		rendered, err := r.renderTargets(ctx, w, targets, e.Revision)
		for k := range rendered {
			put(&out[at[k]], rendered[k])
		}
		return err
	}
	err := renderSide(&e.Before, func(p *targetPair) *appset.Target { return p.before }, func(p *renderedPair, t renderedTarget) {
		p.before, p.failed = t.manifests, t.failed
	})
	if err != nil {
		return nil, err
	}
	err = renderSide(&e.After, func(p *targetPair) *appset.Target { return p.after }, func(p *renderedPair, t renderedTarget) {
		p.after, p.failed = t.manifests, t.failed
		p.failed.after = t.failed.why != ""
	})
	return out, err
}
