package plan

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/appset/isolation"
	"github.com/liftlock/liftlock/internal/fieldedit"
)

// editTimeout bounds the rendering for one edit.
const editTimeout = 30 * time.Second

// whyNotIsolated says why edits for an environment of some components must not be made:
// which other targets they change. "" is the proof that there are none.
func (m *planner) whyNotIsolated(ctx context.Context, r *resolvedPipeline, components []string, env string, edits []fieldedit.Edit) (why string, err error) {
	short, cancel := context.WithTimeout(ctx, editTimeout)
	defer cancel()
	edit, err := m.buildEdit(short, r, components, env, edits)
	if err == nil {
		if why, err = m.renderer.WhyNotIsolated(short, edit); why != "" {
			why += "; a promotion may only edit what no target outside " + env + " depends on"
		}
	}
	if err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return fmt.Sprintf("that no target outside %s depends on it could not be shown within %s", env, editTimeout), nil
	}
	return why, err
}

// buildEdit gathers what edits are judged by: the tree and the targets without them
// and with them.
func (m *planner) buildEdit(ctx context.Context, of *resolvedPipeline, components []string, env string, edits []fieldedit.Edit) (*isolation.Edit, error) {
	l := m.branchOf(of.pipeline, env)
	after, err := newEditedTree(ctx, l.tree, edits)
	if err != nil {
		return nil, err
	}
	out := &isolation.Edit{Revision: l.commit, FilesByTarget: map[string][]string{},
		Before: isolation.Resolution{Tree: l.tree, ID: l.tree.Identity}, After: isolation.Resolution{Tree: after, ID: after.Identity}}
	created, whole := false, false
	for _, e := range edits {
		out.Files = append(out.Files, e.File)
		created = created || e.Created || e.Deleted
	}
	for _, r := range m.pipelines {
		whole = whole || isolation.ChangesGenerated(m.targetsOn(l, r.targetSet.Targets), out.Files, created)
		readers, err := m.findReaders(ctx, r, l, out.Files)
		if err != nil {
			return nil, err
		}
		maps.Copy(out.FilesByTarget, readers)
	}
	was, came := map[string]bool{}, map[string]bool{} // by ID: whether the edit may change the target
	own := func(in map[string]bool, r *resolvedPipeline, fl *appset.TargetSet) {
		for i := range fl.Targets {
			t := &fl.Targets[i]
			in[t.ID()] = in[t.ID()] || r == of && t.Environment == env && slices.Contains(components, t.Component)
		}
	}
	for _, r := range m.pipelines {
		before, err := m.targetsBefore(ctx, r, whole)
		if err != nil {
			return nil, err
		}
		then, err := m.targetsAfter(ctx, r, l, after, whole)
		if err != nil {
			return nil, err
		}
		m.addTargets(&out.Before, l, before)
		m.addTargets(&out.After, l, then)
		own(was, r, before)
		own(came, r, then)
	}
	out.MayChange = func(t *appset.Target) bool {
		if mine, known := was[t.ID()]; known { // what was another's doesn't become ours by the edit
			return mine
		}
		return came[t.ID()]
	}
	return out, nil
}

// targetsBefore is a pipeline's fleet without an edit; whole: with its Applications.
func (m *planner) targetsBefore(ctx context.Context, r *resolvedPipeline, whole bool) (*appset.TargetSet, error) {
	if !whole {
		return r.targetSet, nil
	}
	var err error
	if r.fullTargetSet == nil {
		r.fullTargetSet, err = m.input.Resolve(ctx, r.pipeline, appset.ExternalRef{Tree: m.tracked.tree, Commit: m.input.Commit}, nil, true)
	}
	return r.fullTargetSet, err
}

// targetsAfter is a pipeline's fleet with an edit on a line.
func (m *planner) targetsAfter(ctx context.Context, r *resolvedPipeline, l *branchHead, after *editedTree, whole bool) (*appset.TargetSet, error) {
	main := appset.ExternalRef{Tree: m.tracked.tree, Commit: m.input.Commit}
	edited := appset.ExternalRef{Tree: after, Commit: after.syntheticRevision(l.commit)}
	var branches map[string]appset.ExternalRef
	if l == m.tracked {
		main = edited
	} else {
		branches = map[string]appset.ExternalRef{l.branch: edited}
	}
	if whole {
		main.Commit = "" // so that the resolver keeps none of the Applications
	}
	return m.input.Resolve(ctx, r.pipeline, main, branches, whole)
}

func (m *planner) addTargets(w *isolation.Resolution, l *branchHead, fl *appset.TargetSet) {
	w.Targets = append(w.Targets, m.targetsOn(l, fl.Targets)...)
	for _, p := range fl.Problems {
		w.Problems = append(w.Problems, p.Text())
	}
}

// splitReaders says which targets of an environment read files, and which others do.
func (m *planner) splitReaders(ctx context.Context, of *resolvedPipeline, components []string, env string, files []string) (reached, others []string, err error) {
	reached, others = []string{}, []string{}
	for _, r := range m.pipelines {
		readers, err := m.findReaders(ctx, r, m.branchOf(of.pipeline, env), files)
		if err != nil {
			return nil, nil, err
		}
		for i := range r.targetSet.Targets {
			t := &r.targetSet.Targets[i]
			switch {
			case readers[t.ID()] == nil:
			case r == of && t.Environment == env && slices.Contains(components, t.Component):
				reached = append(reached, t.Name)
			default:
				others = append(others, t.Name)
			}
		}
	}
	for _, list := range []*[]string{&reached, &others} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return reached, slices.DeleteFunc(others, func(name string) bool { _, both := slices.BinarySearch(reached, name); return both }), nil
}

// renderEffects says what edits do to the manifests of the targets that they are for.
func (m *planner) renderEffects(ctx context.Context, r *resolvedPipeline, o *opening) ([]Rendered, error) {
	short, cancel := context.WithTimeout(ctx, editTimeout)
	defer cancel()
	edit, err := m.buildEdit(short, r, o.componentNames(), o.env, o.edits)
	var list []isolation.Effect
	if err == nil {
		list, err = m.renderer.Effects(short, edit)
	}
	if err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		var names []string
		for _, p := range o.parts {
			for _, t := range p.unit.envs[o.env].Targets {
				names = append(names, t.Name)
			}
		}
		return []Rendered{{Target: strings.Join(names, ", "), Why: fmt.Sprintf("rendering took longer than %s", editTimeout)}}, nil
	}
	if err != nil {
		return nil, err
	}
	out := []Rendered{}
	for _, e := range list {
		out = append(out, Rendered{Target: e.Target.Name, Spec: e.Spec, Why: e.Why, Summary: e.Changes.Summary(), Diff: e.Changes.Text(renderLimit)})
	}
	return out, nil
}
