package promotion

import (
	"encoding/json"
	"slices"
	"time"
)

// BatchFacts are everything that a decision about a pipeline with batch:
// environment is made from.
type BatchFacts struct {
	// Components has the facts of each component, all of one pipeline at one time.
	Components []Facts `json:"components"`
	// Compositions answers Look together: by environment and BatchID.
	Compositions map[string]map[string]BatchComposition `json:"together,omitempty"`
}

// BatchComposition is what moving several components' releases at once would be.
type BatchComposition struct {
	Tip             string            `json:"tip"`               // what it was composed on
	Refused         string            `json:"refused,omitempty"` // why it can't be made
	RefusedByMember map[string]string `json:"of,omitempty"`      // why a component's own part can't be made
}

// BatchDecision is what is to be done for the components of a pipeline that
// travel together.
type BatchDecision struct {
	// Components are their own decisions, in the facts' order, without what is
	// done to pull requests of several.
	Components []Decision `json:"components"`
	Actions    []Action   `json:"-"` // on pull requests of several components
	Next       time.Time  `json:"next,omitzero"`
}

// MarshalJSON writes the shared actions with their kind, as Decision does.
func (d BatchDecision) MarshalJSON() ([]byte, error) {
	type plain BatchDecision
	acts, err := marshalActions(d.Actions)
	if err != nil {
		return nil, err
	}
	return json.Marshal(struct {
		Actions []map[string]any `json:"actions"`
		plain
	}{acts, plain(d)})
}

// DecideBatch judges the components of a pipeline with batch: environment. Decide
// is the judge of each; this only joins what concerns a pull request that several
// share: it carries those that are ready, it merges when every one of them says
// so, and what it brought is taken back as a whole. It is pure and total like
// Decide; after a Look, in a component's actions or in the shared ones, the
// caller gathers the fact and calls again.
func DecideBatch(f BatchFacts) BatchDecision {
	b := &batchPlanner{facts: shareBatchFacts(f.Components), compositions: f.Compositions, reverting: map[string]bool{}}
	for i := range b.facts {
		d := Decide(b.facts[i])
		b.recheckAt(d.Next)
		b.out.Components = append(b.out.Components, d)
	}
	for _, env := range environmentNames(b.facts) {
		b.joinOpenReverts(env)
		b.joinNewReverts(env)
		b.planPromotion(env)
	}
	return b.out
}

// environmentNames are the names of all environments, topologically sorted.
func environmentNames(facts []Facts) []string {
	var out []string
	for i := range facts {
		for k := range facts[i].Envs {
			if name := facts[i].Envs[k].Name; !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	return out
}

func findEnv(f *Facts, name string) *Env {
	for i := range f.Envs {
		if f.Envs[i].Name == name {
			return &f.Envs[i]
		}
	}
	return nil
}

// shareBatchFacts copies the facts and fills in what a component must know of the others:
// who of those that came with it is not verified, and whose degradation a revert
// of several is for.
func shareBatchFacts(components []Facts) []Facts {
	out := slices.Clone(components)
	byPull := map[string][]batchArrival{} // by environment and commit: whom one pull request brought
	for i := range out {
		f := &out[i]
		f.Envs = slices.Clone(f.Envs)
		for k := range f.Envs {
			e := &f.Envs[k]
			e.History = slices.Clone(e.History)
			for h := range e.History {
				if a := &e.History[h]; a.By == ByPromotion {
					key := e.Name + "|" + a.Commit
					byPull[key] = append(byPull[key], batchArrival{f, e, a})
				}
			}
		}
	}
	for _, batch := range byPull {
		lacks := make([]string, len(batch))
		for i, w := range batch {
			lacks[i] = unverifiedReason(w.facts, w.env, w.arrival)
		}
		for i := range batch {
			for k, why := range lacks {
				if k != i && why != "" {
					batch[i].arrival.BlockedBy = why
					break
				}
			}
		}
	}
	for _, env := range environmentNames(out) {
		markWantedReverts(out, env)
	}
	return out
}

// batchArrival is one of those that came by one pull request.
type batchArrival struct {
	facts   *Facts
	env     *Env
	arrival *Arrival
}

// markWantedReverts tells the passengers of open reverts whose doing it is that they go back.
func markWantedReverts(facts []Facts, env string) {
	why := map[int]string{}
	for i := range facts {
		e := findEnv(&facts[i], env)
		if e == nil || e.Revert == nil || len(e.Revert.Members) == 0 || why[e.Revert.Number] != "" {
			continue
		}
		requested := slices.ContainsFunc(facts[i].PendingCommands, func(a PendingCommand) bool {
			return a.Verb == "revert" && a.Environment == env && a.Release != "" && a.Release == e.Revert.Release
		})
		switch r := rollUpTargets(e); {
		case r.state == Degraded:
			why[e.Revert.Number] = facts[i].Unit.Component + " is degraded: " + r.reason
		case requested:
			why[e.Revert.Number] = facts[i].Unit.Component + " was asked to go back"
		}
	}
	for i := range facts {
		e := findEnv(&facts[i], env)
		if e == nil || e.Revert == nil || why[e.Revert.Number] == "" {
			continue
		}
		u := *e.Revert
		u.RevertCause = why[u.Number]
		e.Revert = &u
	}
}
