package plan

import (
	"context"
	"fmt"
	"slices"

	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/promotion"
)

// evaluateBatch has the components of a pipeline judged that travel together.
func (m *planner) evaluateBatch(ctx context.Context, r *resolvedPipeline) ([]promotion.ComponentDecision, []opening, error) {
	answers := map[string]map[string]promotion.Composition{}
	edits := map[string][]fieldedit.Edit{} // by environment and what moves
	for range maxRounds {
		f := promotion.Facts{Compositions: answers}
		for _, u := range r.units {
			f.Components = append(f.Components, u.facts)
		}
		d := promotion.Decide(f)
		own, requested := false, false
		for i, u := range r.units {
			looked, err := m.answerRequests(ctx, u, d.Components[i].Actions)
			if err != nil {
				return nil, nil, err
			}
			own = own || looked
		}
		var opens []opening
		for _, a := range d.Actions {
			switch a := a.(type) {
			case promotion.FactRequest:
				if requested = true; own {
					continue // what moves together hangs on each one's own
				}
				id := promotion.BatchID(a.Members)
				if answers[a.Environment] == nil {
					answers[a.Environment] = map[string]promotion.Composition{}
				}
				var err error
				if answers[a.Environment][id], edits[compositionKey(a.Environment, id)], err = m.composeBatch(ctx, r, a); err != nil {
					return nil, nil, err
				}
			case promotion.Open:
				o := opening{env: a.Environment, edits: edits[compositionKey(a.Environment, a.Release)]}
				for _, p := range a.Members {
					o.parts = append(o.parts, part{r.findUnit(p.Component), promotion.Release{ID: p.Release, Name: p.Name}})
				}
				opens = append(opens, o)
			}
		}
		if !own && !requested {
			return d.Components, opens, nil
		}
	}
	return nil, nil, fmt.Errorf("judging %s asked for facts %d times without coming to an end", r.pipeline.Name(), maxRounds)
}

// findUnit finds a component; it has one of that name.
func (r *resolvedPipeline) findUnit(component string) *unit {
	return r.units[slices.IndexFunc(r.units, func(u *unit) bool { return u.component == component })]
}

func (r *resolvedPipeline) componentNames() []string {
	out := make([]string, len(r.units))
	for i, u := range r.units {
		out[i] = u.component
	}
	return out
}

// composeBatch answers a look: what moving several releases at once changes, or whose
// part can't be made.
func (m *planner) composeBatch(ctx context.Context, r *resolvedPipeline, l promotion.FactRequest) (promotion.Composition, []fieldedit.Edit, error) {
	out := promotion.Composition{Tip: m.branchOf(r.pipeline, l.Environment).commit}
	inside := make([]string, len(l.Members))
	for i, p := range l.Members {
		inside[i] = p.Component
	}
	edits, refused := m.composeMembers(ctx, r, l.Environment, l.Members)
	if out.RefusedByMember = refused; len(refused) > 0 {
		return out, edits, ctx.Err()
	}
	why, err := m.whyNotIsolated(ctx, r, inside, l.Environment, edits)
	if out.Refuse(why); err != nil || out.State != promotion.EditRefused {
		return out, edits, err
	}
	for _, p := range l.Members { // whose part is it?
		own, _ := m.composeMembers(ctx, r, l.Environment, []promotion.Member{p})
		why, err := m.whyNotIsolated(ctx, r, inside, l.Environment, own)
		if err != nil {
			return out, edits, err
		}
		if why != "" {
			out.RefusedByMember[p.Component] = why
		}
	}
	return out, edits, nil
}

// composeMembers composes several releases, those that share files one upon the other.
func (m *planner) composeMembers(ctx context.Context, r *resolvedPipeline, env string, members []promotion.Member) (edits []fieldedit.Edit, refused map[string]string) {
	tree := m.branchOf(r.pipeline, env).tree
	refused = map[string]string{}
	for _, p := range members {
		u := r.findUnit(p.Component)
		over := u.envs[env].Overlay(r.pipeline)
		own, err := fieldedit.Compose(tree, over, u.contents[p.Release], m.wholeFileReader(ctx))
		edited := func(e fieldedit.Edit) bool {
			return slices.ContainsFunc(edits, func(o fieldedit.Edit) bool { return o.File == e.File })
		}
		if err == nil && slices.ContainsFunc(own, edited) {
			own, err = fieldedit.Compose(fieldedit.Apply(tree, edits), over, u.contents[p.Release], m.wholeFileReader(ctx))
		}
		if err != nil {
			refused[p.Component] = err.Error()
			continue
		}
		edits = fieldedit.JoinEdits(edits, own)
	}
	return edits, refused
}
