package plan

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/overlay"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion"
)

// rounds bounds how often one component's judgement asks for another fact.
const rounds = 8

// contender is a release that would come into an environment if there is a place.
type contender struct {
	unit  *unit
	look  promotion.Look
	since time.Time
}

// judge has every component of a pipeline judged, the places in each environment
// going to those that have waited longest.
func (m *maker) judge(ctx context.Context, r *rules) (Pipeline, error) {
	out := Pipeline{Name: r.p.Name(), Observe: r.p.Spec.Mode == pipeline.Observe, Together: r.p.Spec.Batches(), Promotions: []Promotion{}, Waiting: []Waiting{}}
	if err := m.queue(ctx, r); err != nil {
		return out, err
	}
	decisions := make([]promotion.Decision, len(r.units))
	for i, u := range r.units {
		var err error
		if decisions[i], err = m.decide(ctx, u); err != nil {
			return out, err
		}
	}
	for _, spec := range r.p.Topo() {
		for i, u := range r.units {
			st := decisions[i].Env(spec.Name)
			opened := slices.ContainsFunc(decisions[i].Actions, func(a promotion.Action) bool {
				open, ok := a.(promotion.Open)
				return ok && open.Environment == spec.Name
			})
			switch {
			case opened, out.Observe && wouldOpen(st):
				p, err := m.promotion(ctx, u, st)
				if err != nil {
					return out, err
				}
				out.Promotions = append(out.Promotions, p)
			case !spec.Source() || st.State == promotion.Mixed || st.State == promotion.Unreadable:
				out.Waiting = append(out.Waiting, waiting(spec, st, u))
			}
		}
	}
	return out, nil
}

// queue composes what contends for a place in each environment, oldest first, and
// counts for each component those before it.
func (m *maker) queue(ctx context.Context, r *rules) error {
	contenders := map[string][]contender{}
	for _, u := range r.units {
		d := promotion.Decide(u.facts)
		for _, a := range d.Actions {
			if l, ok := a.(promotion.Look); ok && l.What == promotion.LookCompose {
				contenders[l.Environment] = append(contenders[l.Environment], contender{u, l, d.Env(l.Environment).ReadySince})
			}
		}
	}
	for env, list := range contenders {
		slices.SortStableFunc(list, func(a, b contender) int {
			return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.unit.component, b.unit.component))
		})
		ahead, limit := 0, r.p.Spec.Limits.OpenPerEnvironment
		for _, c := range list {
			if r.p.Spec.Batches() {
				ahead = 0 // all go by one pull request
			}
			c.unit.facts.Limits.Ahead[env] = ahead
			if limit > 0 && ahead >= limit {
				ahead++
				continue
			}
			if err := m.compose(ctx, c.unit, c.look); err != nil {
				return err
			}
			if made := c.unit.env(env).Composed[c.look.Release]; made.Refused == "" && !made.Empty {
				ahead++
			}
		}
	}
	return nil
}

// decide has a component judged, answering what it asks for.
func (m *maker) decide(ctx context.Context, u *unit) (promotion.Decision, error) {
	for range rounds {
		d := promotion.Decide(u.facts)
		looks := 0
		for _, a := range d.Actions {
			l, ok := a.(promotion.Look)
			if !ok {
				continue
			}
			looks++
			if l.What != promotion.LookCompose {
				return d, fmt.Errorf("judging %s asks for %q, though nothing is degraded", u.component, l.What)
			}
			if err := m.compose(ctx, u, l); err != nil {
				return d, err
			}
		}
		if looks == 0 {
			return d, nil
		}
	}
	return promotion.Decision{}, fmt.Errorf("judging %s asked for facts %d times without coming to an end", u.component, rounds)
}

// compose answers a look: what moving a release into an environment changes, or
// why it can't be done.
func (m *maker) compose(ctx context.Context, u *unit, l promotion.Look) error {
	at := m.line(u.rules.p, l.Environment)
	out := promotion.Composed{Tip: at.commit}
	edits, err := overlay.Compose(at.tree, u.envs[l.Environment].Overlay(u.rules.p), u.contents[l.Release], m.contents(ctx))
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		out.Refused = err.Error()
	case len(edits) == 0:
		out.Empty = true
	default:
		for _, e := range edits {
			out.Files = append(out.Files, e.File)
		}
		if out.Refused, err = m.outside(ctx, u, l.Environment, edits); err != nil {
			return err
		}
	}
	u.composed[composedKey(l.Environment, l.Release)] = edits
	u.env(l.Environment).Composed[l.Release] = out
	return nil
}

func composedKey(env, release string) string { return env + "|" + release }

// contents gives the files that a release carries as a whole, by their ids.
func (m *maker) contents(ctx context.Context) overlay.Contents {
	return func(f overlay.Field) (data []byte, err error) {
		err = m.main.tree.ReadBlobs(ctx, []string{f.ObjectID()}, overlay.MaxFileSize, func(_ int, content []byte, err error) error {
			data = content
			return err
		})
		return data, err
	}
}

// wouldOpen says that only the pipeline's mode keeps a promotion from opening.
func wouldOpen(st *promotion.EnvState) bool {
	return st.Candidate != "" && len(st.Why) == 1 && st.Why[0].Code == "observe"
}

// waiting says why nothing opens.
func waiting(spec *pipeline.Environment, st *promotion.EnvState, u *unit) Waiting {
	w := Waiting{Component: u.component, Environment: spec.Name, State: st.State, Why: st.Why}
	if st.Release != "" {
		w.Release = &promotion.Release{ID: st.Release, Name: st.Name}
	}
	if st.Candidate != "" {
		w.Coming = &promotion.Release{ID: st.Candidate, Name: st.Coming}
	}
	switch {
	case len(w.Why) > 0:
	case st.State == promotion.Mixed, st.State == promotion.Unreadable:
		w.Why = []promotion.Reason{{Code: st.State, Text: st.Reason}}
	default:
		w.Why = []promotion.Reason{{Code: UpToDate, Text: "nothing newer may come: it carries what is before it"}}
	}
	return w
}
