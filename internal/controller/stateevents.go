package controller

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/pipeline/event"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/stored"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/wording"
	"github.com/liftlock/liftlock/policies"
)

// stateEvents tells what has become of a component's environments since the last look
// that a person may have to see to. Without a last look, as after the database was lost,
// nothing is told anew; with the same digest as then, nothing has become of them.
func (co *Controller) stateEvents(ctx context.Context, c *facts.ComponentEvaluation, d *promotion.ComponentDecision,
	digest string) ([]store.Event, error) {
	if !slices.ContainsFunc(d.Envs, func(env promotion.EnvState) bool { return len(noteworthyStates(&env)) > 0 }) {
		return nil, nil
	}
	row, ok, err := co.opts.Store.Unit(ctx, wake.UnitName(c.Facts.Unit))
	if err != nil || !ok || row.Digest == digest {
		return nil, err
	}
	var before stored.Unit
	if err := json.Unmarshal(row.Data, &before); err != nil {
		return nil, fmt.Errorf("read the unit %s from the store: %w", row.Key, err)
	}
	var out []store.Event
	for i := range d.Envs {
		env := &d.Envs[i]
		k := slices.IndexFunc(before.Decision.Envs, func(b promotion.EnvState) bool { return b.Environment == env.Environment })
		if k < 0 {
			continue
		}
		was, u := noteworthyStates(&before.Decision.Envs[k]), c.Facts.Unit
		for kind, s := range noteworthyStates(env) {
			if last, so := was[kind]; so && last.about == s.about {
				continue
			}
			out = append(out, store.Event{At: c.Facts.Now, Repo: u.Repo, Pipeline: u.Pipeline, Component: u.Component,
				Environment: env.Environment, Pull: s.pull, Kind: kind, Message: s.text})
		}
	}
	slices.SortFunc(out, func(a, b store.Event) int {
		return cmp.Or(cmp.Compare(a.Environment, b.Environment), cmp.Compare(a.Kind, b.Kind))
	})
	return out, nil
}

// noteworthyState is a state that is told once for what it is about.
type noteworthyState struct {
	about, text string
	pull        int
}

// noteworthyStates are those of an environment, by the kind of event that they are.
func noteworthyStates(env *promotion.EnvState) map[event.Kind]noteworthyState {
	out := map[event.Kind]noteworthyState{}
	what := func(name string) string {
		if name == "" {
			return "what is there"
		}
		return name
	}
	switch env.State {
	case promotion.Failed:
		out[event.Failed] = noteworthyState{about: env.Release + env.Commit, pull: env.LandedPull,
			text: fmt.Sprintf("%s failed in %s: %s", what(env.Name), env.Environment, env.Reason)}
	case promotion.Diverged:
		out[event.Diverged] = noteworthyState{about: env.Release, text: fmt.Sprintf("%s: %s", env.Environment, env.Reason)}
	}
	if untold := env.UntoldTargets(); len(untold) > 0 {
		first := fmt.Sprintf("%s in %s: %s", untold[0], env.Environment, env.Targets[untold[0]].Reason)
		if more := len(untold) - 1; more > 0 {
			first += fmt.Sprintf(" (and %s)", wording.Count(more, "other target"))
		}
		out[event.Untold] = noteworthyState{about: env.Release + env.Commit, pull: env.LandedPull, text: first}
	}
	if env.Promotion == promotion.Held && env.Pull > 0 {
		text := fmt.Sprintf("#%d into %s is held", env.Pull, env.Environment)
		if i := slices.IndexFunc(env.Gates, func(g policies.Result) bool { return g.Gate == promotion.GateHold }); i >= 0 {
			text += ": " + env.Gates[i].Reason
		}
		out[event.Held] = noteworthyState{about: fmt.Sprint(env.Pull), pull: env.Pull, text: text}
	}
	if i := slices.IndexFunc(env.Gates, func(g policies.Result) bool {
		return g.Gate == policies.GateApprovals &&
			g.Outcome == policies.Wait
	}); i >= 0 && env.Pull > 0 {
		out[event.Waiting] = noteworthyState{about: fmt.Sprint(env.Pull), pull: env.Pull,
			text: fmt.Sprintf("#%d brings %s to %s and waits: %s", env.Pull, what(env.CandidateName), env.Environment, env.Gates[i].Reason)}
	}
	return out
}
