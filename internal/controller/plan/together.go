package plan

import (
	"context"
	"fmt"
	"slices"

	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/promotion"
)

// together has the components of a pipeline judged that travel together.
func (m *maker) together(ctx context.Context, r *rules) ([]promotion.Decision, []opening, error) {
	answers := map[string]map[string]promotion.BatchComposition{}
	edits := map[string][]fieldedit.Edit{} // by environment and what moves
	for range rounds {
		f := promotion.BatchFacts{Compositions: answers}
		for _, u := range r.units {
			f.Components = append(f.Components, u.facts)
		}
		d := promotion.DecideBatch(f)
		own, asked := false, false
		for i, u := range r.units {
			looked, err := m.answer(ctx, u, d.Components[i].Actions)
			if err != nil {
				return nil, nil, err
			}
			own = own || looked
		}
		var opens []opening
		for _, a := range d.Actions {
			switch a := a.(type) {
			case promotion.FactRequest:
				if asked = true; own {
					continue // what moves together hangs on each one's own
				}
				id := promotion.BatchID(a.Members)
				if answers[a.Environment] == nil {
					answers[a.Environment] = map[string]promotion.BatchComposition{}
				}
				var err error
				if answers[a.Environment][id], edits[composedKey(a.Environment, id)], err = m.compound(ctx, r, a); err != nil {
					return nil, nil, err
				}
			case promotion.Open:
				o := opening{env: a.Environment, edits: edits[composedKey(a.Environment, a.Release)]}
				for _, p := range a.Members {
					o.parts = append(o.parts, part{r.unit(p.Component), promotion.Release{ID: p.Release, Name: p.Name}})
				}
				opens = append(opens, o)
			}
		}
		if !own && !asked {
			return d.Components, opens, nil
		}
	}
	return nil, nil, fmt.Errorf("judging %s asked for facts %d times without coming to an end", r.p.Name(), rounds)
}

// unit finds a component; it has one of that name.
func (r *rules) unit(component string) *unit {
	return r.units[slices.IndexFunc(r.units, func(u *unit) bool { return u.component == component })]
}

func (r *rules) components() []string {
	out := make([]string, len(r.units))
	for i, u := range r.units {
		out[i] = u.component
	}
	return out
}

// compound answers a look: what moving several releases at once changes, or whose
// part can't be made.
func (m *maker) compound(ctx context.Context, r *rules, l promotion.FactRequest) (promotion.BatchComposition, []fieldedit.Edit, error) {
	out := promotion.BatchComposition{Tip: m.line(r.p, l.Environment).commit}
	inside := make([]string, len(l.Members))
	for i, p := range l.Members {
		inside[i] = p.Component
	}
	edits, refused := m.join(ctx, r, l.Environment, l.Members)
	if out.RefusedByMember = refused; len(refused) > 0 {
		return out, edits, ctx.Err()
	}
	var err error
	if out.Refused, err = m.outside(ctx, r, inside, l.Environment, edits); err != nil || out.Refused == "" {
		return out, edits, err
	}
	for _, p := range l.Members { // whose part is it?
		own, _ := m.join(ctx, r, l.Environment, []promotion.Member{p})
		why, err := m.outside(ctx, r, inside, l.Environment, own)
		if err != nil {
			return out, edits, err
		}
		if why != "" {
			out.RefusedByMember[p.Component] = why
		}
	}
	return out, edits, nil
}

// join composes several releases, those that share files one upon the other.
func (m *maker) join(ctx context.Context, r *rules, env string, passengers []promotion.Member) (edits []fieldedit.Edit, refused map[string]string) {
	tree := m.line(r.p, env).tree
	refused = map[string]string{}
	for _, p := range passengers {
		u := r.unit(p.Component)
		over := u.envs[env].Overlay(r.p)
		own, err := fieldedit.Compose(tree, over, u.contents[p.Release], m.contents(ctx))
		taken := func(e fieldedit.Edit) bool {
			return slices.ContainsFunc(edits, func(o fieldedit.Edit) bool { return o.File == e.File })
		}
		if err == nil && slices.ContainsFunc(own, taken) {
			own, err = fieldedit.Compose(fieldedit.Apply(tree, edits), over, u.contents[p.Release], m.contents(ctx))
		}
		if err != nil {
			refused[p.Component] = err.Error()
			continue
		}
		edits = fieldedit.JoinEdits(edits, own)
	}
	return edits, refused
}
