package plan

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion"
)

// maxRounds bounds how often one component's judgement asks for another fact.
const maxRounds = 8

// contender is a release that would come into an environment if there is a place.
type contender struct {
	unit    *unit
	request promotion.FactRequest
	since   time.Time
}

// opening is a pull request that would be opened: of one component, or of several.
type opening struct {
	env   string
	parts []part
	edits []fieldedit.Edit
}

// part is one component in it.
type part struct {
	unit    *unit
	release promotion.Release
}

func (o *opening) componentNames() []string {
	out := make([]string, len(o.parts))
	for i, p := range o.parts {
		out[i] = p.unit.component
	}
	return out
}

// evaluatePipeline has every component of a pipeline judged.
func (m *planner) evaluatePipeline(ctx context.Context, r *resolvedPipeline) (Pipeline, error) {
	out := Pipeline{Name: r.pipeline.Name(), DryRun: r.pipeline.Spec.Mode == pipeline.ModeDryRun, Promotions: []Promotion{}, Waiting: []Waiting{}}
	decide := m.evaluateUnits
	if r.pipeline.Spec.BatchesByEnvironment() {
		decide = m.evaluateBatch
	}
	decisions, opens, err := decide(ctx, r)
	if err != nil {
		return out, err
	}
	for _, spec := range r.pipeline.TopologicalOrder() {
		moves := map[*unit]bool{}
		for _, o := range opens {
			if o.env != spec.Name {
				continue
			}
			for _, p := range o.parts {
				moves[p.unit] = true
			}
			p, err := m.describePromotion(ctx, r, &o)
			if err != nil {
				return out, err
			}
			out.Promotions = append(out.Promotions, p)
		}
		for i, u := range r.units {
			st := decisions[i].Env(spec.Name)
			if !moves[u] && (!spec.IsSource() || st.State == promotion.Mixed || st.State == promotion.Unreadable) {
				out.Waiting = append(out.Waiting, explainWaiting(spec, st, u))
			}
		}
	}
	return out, nil
}

// evaluateUnits has each component judged by itself, the places in each environment going
// to those that have waited longest.
func (m *planner) evaluateUnits(ctx context.Context, r *resolvedPipeline) ([]promotion.ComponentDecision, []opening, error) {
	if err := m.queueContenders(ctx, r); err != nil {
		return nil, nil, err
	}
	var opens []opening
	decisions := make([]promotion.ComponentDecision, len(r.units))
	for i, u := range r.units {
		d, err := m.decideUnit(ctx, u)
		if err != nil {
			return nil, nil, err
		}
		decisions[i] = d.Components[0]
		for _, a := range d.Actions {
			if a, ok := a.(promotion.Open); ok {
				to := promotion.Release{ID: a.Release, Name: a.Name}
				opens = append(opens, opening{env: a.Environment, parts: []part{{u, to}}, edits: u.composed[compositionKey(a.Environment, a.Release)]})
			}
		}
	}
	return decisions, opens, nil
}

// queueContenders composes what contends for a place in each environment, oldest first, and
// counts for each component those before it.
func (m *planner) queueContenders(ctx context.Context, r *resolvedPipeline) error {
	contenders := map[string][]contender{}
	for _, u := range r.units {
		d := promotion.Decide(promotion.Facts{Components: []promotion.ComponentFacts{u.facts}}).Components[0]
		for _, a := range d.Actions {
			if l, ok := a.(promotion.FactRequest); ok && l.What == promotion.RequestComposition {
				contenders[l.Environment] = append(contenders[l.Environment], contender{u, l, d.Env(l.Environment).ReadySince})
			}
		}
	}
	for env, list := range contenders {
		slices.SortStableFunc(list, func(a, b contender) int {
			return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.unit.component, b.unit.component))
		})
		ahead, limit := 0, r.pipeline.Spec.Limits.OpenPerEnvironment
		for _, c := range list {
			c.unit.facts.Limits.QueuedAhead[env] = ahead
			if limit > 0 && ahead >= limit {
				ahead++
				continue
			}
			if err := m.answerComposition(ctx, c.unit, c.request); err != nil {
				return err
			}
			if made := c.unit.findEnv(env).Compositions[c.request.Release]; made.State == promotion.EditPossible {
				ahead++
			}
		}
	}
	return nil
}

// decideUnit has a component judged, answering what it asks for.
func (m *planner) decideUnit(ctx context.Context, u *unit) (promotion.Decision, error) {
	for range maxRounds {
		d := promotion.Decide(promotion.Facts{Components: []promotion.ComponentFacts{u.facts}})
		if looked, err := m.answerRequests(ctx, u, d.Components[0].Actions); !looked || err != nil {
			return d, err
		}
	}
	return promotion.Decision{}, fmt.Errorf("judging %s asked for facts %d times without coming to an end", u.component, maxRounds)
}

// answerRequests gathers what a component's decision asks for, and says whether it asks.
func (m *planner) answerRequests(ctx context.Context, u *unit, actions []promotion.Action) (looked bool, err error) {
	for _, a := range actions {
		l, ok := a.(promotion.FactRequest)
		if !ok {
			continue
		}
		looked = true
		if l.What != promotion.RequestComposition {
			return true, fmt.Errorf("judging %s asks for %q, though nothing is degraded", u.component, l.What)
		}
		if err := m.answerComposition(ctx, u, l); err != nil {
			return true, err
		}
	}
	return looked, nil
}

// answerComposition answers a look: what moving a release into an environment changes, or
// why it can't be done. Where components travel together others may come along,
// so what it changes of theirs is judged with them.
func (m *planner) answerComposition(ctx context.Context, u *unit, l promotion.FactRequest) error {
	at := m.branchOf(u.pipeline.pipeline, l.Environment)
	out := promotion.Composition{Tip: at.commit}
	edits, err := fieldedit.Compose(at.tree, u.envs[l.Environment].Overlay(u.pipeline.pipeline), u.contents[l.Release], m.wholeFileReader(ctx))
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		out.Refuse(err.Error())
	case len(edits) == 0:
		out.State = promotion.EditEmpty
	default:
		inside := []string{u.component}
		if u.pipeline.pipeline.Spec.BatchesByEnvironment() {
			inside = u.pipeline.componentNames()
		}
		for _, e := range edits {
			out.Files = append(out.Files, e.File)
		}
		why, err := m.whyNotIsolated(ctx, u.pipeline, inside, l.Environment, edits)
		if err != nil {
			return err
		}
		out.Refuse(why)
	}
	u.composed[compositionKey(l.Environment, l.Release)] = edits
	u.findEnv(l.Environment).Compositions[l.Release] = out
	return nil
}

func compositionKey(env, release string) string { return env + "|" + release }

// wholeFileReader gives the files that a release carries as a whole, by their ids.
func (m *planner) wholeFileReader(ctx context.Context) fieldedit.Contents {
	return func(f fieldedit.Field) (data []byte, err error) {
		err = m.tracked.tree.ReadBlobs(ctx, []string{f.ObjectID()}, fieldedit.MaxFileSize, func(_ int, content []byte, err error) error {
			data = content
			return err
		})
		return data, err
	}
}

// explainWaiting says why nothing opens.
func explainWaiting(spec *pipeline.Environment, st *promotion.EnvState, u *unit) Waiting {
	w := Waiting{Component: u.component, Environment: spec.Name, State: st.State, Why: st.Why}
	if st.Release != "" {
		w.Release = &promotion.Release{ID: st.Release, Name: st.Name}
	}
	if st.Candidate != "" {
		w.Candidate = &promotion.Release{ID: st.Candidate, Name: st.CandidateName}
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
