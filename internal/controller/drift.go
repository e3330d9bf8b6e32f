package controller

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/pipeline/event"
	"github.com/liftlock/liftlock/internal/store"
)

// driftInterval is the time in which a target's drift is reported once. A controller that undoes
// Argo CD's syncs begins it anew all the time.
const driftInterval = time.Hour

// driftEvents tells of targets that this look is the first to find drifted.
func driftEvents(c *facts.ComponentEvaluation) []store.Event {
	u := c.Facts.Unit
	var out []store.Event
	for i := range c.Facts.Envs {
		env := &c.Facts.Envs[i]
		for k := range env.Targets {
			t := &env.Targets[k]
			d := t.Verdict.Drift
			if d == nil || d.Since.Before(c.Facts.Now) {
				continue
			}
			data, err := json.Marshal(d)
			if err != nil {
				panic(err) // plain data always marshals
			}
			out = append(out, store.Event{At: d.Since, Repo: u.Repo, Pipeline: u.Pipeline, Component: u.Component, Environment: env.Name,
				Kind:    event.Drifted,
				Message: fmt.Sprintf("%s was changed in the cluster: it %s", t.Name, d.Describe()), Data: data,
				IdempotencyKey: fmt.Sprintf("drifted|%s|%s|%s|%s|%s|%d", u.Repo, u.Pipeline, u.Component, env.Name, t.ID,
					d.Since.Truncate(driftInterval).Unix())})
		}
	}
	return out
}
