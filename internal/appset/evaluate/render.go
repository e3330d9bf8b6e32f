package evaluate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/manifest/render"
	"github.com/liftlock/liftlock/internal/proc/sandbox"
	"github.com/liftlock/liftlock/internal/wording"
)

// RenderTask is the name of the worker's handler that renders.
const RenderTask = "render"

// MaxRenderPairs is how many targets are rendered of one change.
const MaxRenderPairs = 60

// RenderPair is a target before and after a change, each with its Application; nil where
// there is none.
type RenderPair struct{ Before, After *appset.Target }

// RenderRequest is a change whose targets are rendered on both sides.
type RenderRequest struct {
	Pairs    []RenderPair // at most MaxRenderPairs
	Revision string       // the commit's name for manifests that ask for it: the same for both sides
	Branch   string       // that the change is made on
	Tracked  string       // that has the ApplicationSets
	Limit    render.TextLimit

	Before fs.FS `json:"-"` // Branch before the change
	After  fs.FS `json:"-"` // and after it
	// Others are the other branches of the repository that targets may be on.
	Others map[string]fs.FS `json:"-"`
	// Externals are what sources elsewhere may be read of, and nothing else: what the tracked
	// branch's own targets name.
	Externals []ExternalTree
}

// ExternalTree is an external with its files.
type ExternalTree struct {
	render.External
	At string // its commit, or a chart's version
	FS fs.FS  `json:"-"`
}

// RenderedPair is what a change does to the manifests of one target.
type RenderedPair struct {
	Summary string // "1 added, 2 changed"; empty: they stay as they are
	Diff    string // within the limit, without secrets
	Why     string // why the manifests can't be told; then there is neither of the two
}

// The names of trees that a worker which renders may read.
const (
	servedBefore   = "before"
	servedBranch   = "branch "
	servedExternal = "external " // and its place in RenderRequest.Externals
)

// maxRenderedWhy bounds the words of a RenderedPair.
const maxRenderedWhy = 500

// RenderInWorker renders the targets of a change in a worker process, because a stranger wrote
// their files. It gives one RenderedPair for each of the pairs, in their order. The error is the
// runner's, as InWorker's is.
func RenderInWorker(ctx context.Context, runner *sandbox.Runner, in RenderRequest) ([]RenderedPair, error) {
	if len(in.Pairs) > MaxRenderPairs {
		return nil, fmt.Errorf("rendering a change: %d targets are too many; at most %d", len(in.Pairs), MaxRenderPairs)
	}
	trees := sandbox.Trees{Main: in.After, Named: func(_ context.Context, name string) (fs.FS, error) {
		if name == servedBefore {
			return in.Before, nil
		}
		if branch, is := strings.CutPrefix(name, servedBranch); is && in.Others[branch] != nil {
			return in.Others[branch], nil
		}
		if place, is := strings.CutPrefix(name, servedExternal); is {
			if i, err := strconv.Atoi(place); err == nil && i >= 0 && i < len(in.Externals) {
				return in.Externals[i].FS, nil
			}
		}
		return nil, errNotServed
	}}
	request := renderTask{RenderRequest: in}
	for branch := range in.Others {
		request.Others = append(request.Others, branch)
	}
	slices.Sort(request.Others)
	var out []RenderedPair
	if err := runner.Run(ctx, RenderTask, trees, request, &out); err != nil {
		return nil, err
	}
	if len(out) != len(in.Pairs) {
		return nil, &sandbox.Error{Task: RenderTask, Kind: sandbox.ErrAnswer,
			Text: fmt.Sprintf("its answer is about %d targets, and %d were asked for", len(out), len(in.Pairs))}
	}
	for i := range out {
		if len(out[i].Diff) > in.Limit.Bytes {
			return nil, &sandbox.Error{Task: RenderTask, Kind: sandbox.ErrAnswer,
				Text: fmt.Sprintf("its answer has a difference of %d bytes, of at most %d", len(out[i].Diff), in.Limit.Bytes)}
		}
		out[i].Summary, out[i].Why = wording.ClipLine(out[i].Summary, maxRenderedWhy), wording.ClipLine(out[i].Why, maxRenderedWhy)
	}
	return out, nil
}

// renderTask is a RenderRequest on its way to a worker.
type renderTask struct {
	RenderRequest
	Others []string
}

// handleRender is the worker's side of RenderInWorker.
func handleRender(ctx context.Context, trees sandbox.Trees, raw json.RawMessage) (any, error) {
	var in renderTask
	if err := json.Unmarshal(raw, &in); err != nil {
		return nil, fmt.Errorf("rendering a change: reading the input: %w", err)
	}
	before, err := trees.Named(ctx, servedBefore)
	if err != nil {
		return nil, err
	}
	others := map[string]render.Tree{}
	for _, branch := range in.Others {
		tree, err := trees.Named(ctx, servedBranch+branch)
		if err != nil {
			return nil, err
		}
		others[branch] = render.Tree{FS: tree}
	}
	// Targets that there is no time for are reported, instead of nothing at all when the time is
	// up.
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)*2/3)
		defer cancel()
	}
	for i := range in.Externals {
		if in.Externals[i].FS, err = trees.Named(ctx, servedExternal+strconv.Itoa(i)); err != nil {
			return nil, err
		}
	}
	out := make([]RenderedPair, len(in.Pairs))
	for i := range in.Pairs {
		out[i] = in.renderPair(ctx, &in.Pairs[i], before, trees.Main, others)
	}
	return out, nil
}

// renderPair renders a target on both sides and compares them.
func (r *RenderRequest) renderPair(ctx context.Context, p *RenderPair, before, after fs.FS, others map[string]render.Tree) RenderedPair {
	old, why := r.renderTarget(ctx, p.Before, before, others)
	if why != "" {
		return RenderedPair{Why: why}
	}
	recent, why := r.renderTarget(ctx, p.After, after, others)
	if why != "" {
		return RenderedPair{Why: "after the change: " + why}
	}
	c := render.Diff(old, recent)
	if c.Empty() {
		return RenderedPair{}
	}
	return RenderedPair{Summary: c.Summary(), Diff: c.Text(r.Limit)}
}

// renderTarget renders a target; why says why it can't be. One that isn't there has no
// manifests.
func (r *RenderRequest) renderTarget(ctx context.Context, target *appset.Target, tree fs.FS,
	others map[string]render.Tree) (m *render.Manifests, why string) {
	if target == nil {
		return nil, ""
	}
	t := *target
	if err := appset.RestoreOptions(&t); err != nil {
		return nil, err.Error()
	}
	t = appset.ViewFromBranch(t, r.Branch, r.Tracked)
	input := RenderInput(&t, r.Revision, others)
	for _, e := range input.Externals() {
		if i := slices.IndexFunc(r.Externals, func(x ExternalTree) bool { return x.External == e }); i >= 0 {
			input.AddExternal(e, render.Tree{FS: r.Externals[i].FS, Revision: r.Externals[i].At})
		}
	}
	m, err := render.Render(ctx, tree, input)
	var cannot *render.Unrenderable
	switch {
	case err == nil:
		return m, ""
	case ctx.Err() != nil:
		return nil, "there was no time left to render it"
	case errors.As(err, &cannot):
		return nil, DescribeUnrenderable(cannot)
	}
	return nil, err.Error()
}

// RenderInput is what a target asks to be rendered; branches are other branches of the
// repository, for sources that are At one.
func RenderInput(t *appset.Target, revision string, branches map[string]render.Tree) render.Input {
	in := render.Input{Application: t.Name, Namespace: t.DestNS, Revision: revision, ValueFilesAs: string(t.ValueFiles),
		Branches: map[string]render.Tree{}}
	for _, s := range t.Sources {
		out := render.Source{RepoURL: s.RepoURL, Path: s.Path, Chart: s.Chart, TargetRevision: s.TargetRevision,
			Ref: s.Ref, InTree: s.Here, Options: s.Options}
		if other, known := branches[s.At]; known {
			out.InTree, out.Branch, in.Branches[s.At] = true, s.At, other
		}
		in.Sources = append(in.Sources, out)
	}
	return in
}

// DescribeUnrenderable says for people why a target can't be rendered here.
func DescribeUnrenderable(u *render.Unrenderable) string {
	if len(u.Remote) == 0 {
		return u.Reason
	}
	return u.Reason + " (" + wording.JoinFew(u.Remote, maxRemotes) + ")"
}

// maxRemotes bounds the addresses that a reason names.
const maxRemotes = 3
