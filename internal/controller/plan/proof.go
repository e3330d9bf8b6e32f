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
	"github.com/liftlock/liftlock/internal/appset/history"
	"github.com/liftlock/liftlock/internal/appset/isolation"
	"github.com/liftlock/liftlock/internal/fieldedit"
)

// judgeTime bounds the rendering for one edit.
const judgeTime = 30 * time.Second

// outside says why edits for an environment of some components must not be made:
// which other targets they change. "" is the proof that there are none.
func (m *maker) outside(ctx context.Context, r *rules, components []string, env string, edits []fieldedit.Edit) (why string, err error) {
	short, cancel := context.WithTimeout(ctx, judgeTime)
	defer cancel()
	edit, err := m.edit(short, r, components, env, edits)
	if err == nil {
		if why, err = m.renderer.Outside(short, edit); why != "" {
			why += "; a promotion may only edit what no target outside " + env + " depends on"
		}
	}
	if err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return fmt.Sprintf("that no target outside %s depends on it could not be shown within %s", env, judgeTime), nil
	}
	return why, err
}

// edit gathers what edits are judged by: the tree and the targets without them
// and with them.
func (m *maker) edit(ctx context.Context, of *rules, components []string, env string, edits []fieldedit.Edit) (*isolation.Edit, error) {
	l := m.line(of.p, env)
	after, err := edited(ctx, l.tree, edits)
	if err != nil {
		return nil, err
	}
	out := &isolation.Edit{Revision: l.commit, Touched: map[string][]string{},
		Before: isolation.World{Tree: l.tree, ID: l.tree.Identity}, After: isolation.World{Tree: after, ID: after.Identity}}
	created, whole := false, false
	for _, e := range edits {
		out.Files = append(out.Files, e.File)
		created = created || e.Created || e.Deleted
	}
	for _, r := range m.rules {
		whole = whole || isolation.Generates(m.on(l, r.fleet.Targets), out.Files, created)
		touched, err := m.touched(ctx, r, l, out.Files)
		if err != nil {
			return nil, err
		}
		maps.Copy(out.Touched, touched)
	}
	was, came := map[string]bool{}, map[string]bool{} // by ID: whether the edit may change the target
	own := func(in map[string]bool, r *rules, fl *appset.Fleet) {
		for i := range fl.Targets {
			t := &fl.Targets[i]
			in[t.ID()] = in[t.ID()] || r == of && t.Environment == env && slices.Contains(components, t.Component)
		}
	}
	for _, r := range m.rules {
		before, err := m.before(ctx, r, whole)
		if err != nil {
			return nil, err
		}
		then, err := m.then(ctx, r, l, after, whole)
		if err != nil {
			return nil, err
		}
		m.add(&out.Before, l, before)
		m.add(&out.After, l, then)
		own(was, r, before)
		own(came, r, then)
	}
	out.Inside = func(t *appset.Target) bool {
		if mine, known := was[t.ID()]; known { // what was another's doesn't become ours by the edit
			return mine
		}
		return came[t.ID()]
	}
	return out, nil
}

// before is a pipeline's fleet without an edit; whole: with its Applications.
func (m *maker) before(ctx context.Context, r *rules, whole bool) (*appset.Fleet, error) {
	if !whole {
		return r.fleet, nil
	}
	var err error
	if r.whole == nil {
		r.whole, err = m.in.Resolve(ctx, r.p, appset.Elsewhere{Tree: m.main.tree, Commit: m.in.Commit}, nil, true)
	}
	return r.whole, err
}

// then is a pipeline's fleet with an edit on a line.
func (m *maker) then(ctx context.Context, r *rules, l *line, after *editedTree, whole bool) (*appset.Fleet, error) {
	main := appset.Elsewhere{Tree: m.main.tree, Commit: m.in.Commit}
	edited := appset.Elsewhere{Tree: after, Commit: after.revision(l.commit)}
	var branches map[string]appset.Elsewhere
	if l == m.main {
		main = edited
	} else {
		branches = map[string]appset.Elsewhere{l.branch: edited}
	}
	if whole {
		main.Commit = "" // so that the resolver keeps none of the Applications
	}
	return m.in.Resolve(ctx, r.p, main, branches, whole)
}

func (m *maker) add(w *isolation.World, l *line, fl *appset.Fleet) {
	w.Targets = append(w.Targets, m.on(l, fl.Targets)...)
	for _, p := range fl.Problems {
		w.Problems = append(w.Problems, history.ProblemText(p))
	}
}

// reach says which targets of an environment read files, and which others do.
func (m *maker) reach(ctx context.Context, of *rules, components []string, env string, files []string) (reached, others []string, err error) {
	reached, others = []string{}, []string{}
	for _, r := range m.rules {
		touched, err := m.touched(ctx, r, m.line(of.p, env), files)
		if err != nil {
			return nil, nil, err
		}
		for i := range r.fleet.Targets {
			t := &r.fleet.Targets[i]
			switch {
			case touched[t.ID()] == nil:
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

// effects says what edits do to the manifests of the targets that they are for.
func (m *maker) effects(ctx context.Context, r *rules, o *opening) ([]Rendered, error) {
	short, cancel := context.WithTimeout(ctx, judgeTime)
	defer cancel()
	edit, err := m.edit(short, r, o.components(), o.env, o.edits)
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
		return []Rendered{{Target: strings.Join(names, ", "), Why: fmt.Sprintf("rendering took longer than %s", judgeTime)}}, nil
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
