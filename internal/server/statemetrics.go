package server

import (
	"context"
	"encoding/json"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/policies"
)

// stateCollector counts how components, promotions, gates and targets were when they were
// last evaluated, when it is asked for. Every replica shows the same.
type stateCollector struct {
	store *store.Store
	now   func() time.Time

	components, promotions, oldest, gates, gateAge, drifted, untold *prometheus.Desc
}

func newStateCollector(s *store.Store, now func() time.Time) *stateCollector {
	describe := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("liftlock_"+name, help, append([]string{"pipeline", "environment"}, labels...), nil)
	}
	return &stateCollector{store: s, now: now,
		components: describe("components", "Components by the state of the release that an environment has.", "state"),
		promotions: describe("promotions", "Components by the state of the release that would come into an environment.", "state"),
		oldest:     describe("promotion_oldest_seconds", "For how long the release that has waited for longest could have come in."),
		gates:      describe("gates_waiting", "Open promotions that don't pass a gate.", "gate"),
		gateAge:    describe("gate_oldest_seconds", "For how long the release that has waited for longest, of those that don't pass a gate, could have come in.", "gate"),
		drifted:    describe("targets_drifted", "Targets that were changed in the cluster and differ from what was synced to them."),
		untold:     describe("targets_untold", "Targets of which nobody has been able to tell for long how they are."),
	}
}

// Describe implements prometheus.Collector.
func (c *stateCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.components, c.promotions, c.oldest, c.gates, c.gateAge, c.drifted, c.untold} {
		ch <- d
	}
}

// storedStates is what of a unit's row is counted: the rest isn't decoded.
type storedStates struct {
	Decision struct {
		Envs []struct {
			Environment string    `json:"environment"`
			State       string    `json:"state"`
			Promotion   string    `json:"promotion"`
			ReadySince  time.Time `json:"readySince"`
			Gates       []struct {
				Gate    string           `json:"gate"`
				Outcome policies.Outcome `json:"outcome"`
			} `json:"gates"`
			Targets map[string]struct {
				Drift  *struct{} `json:"drift"`
				Untold bool      `json:"untold"`
			} `json:"targets"`
		} `json:"envs"`
	} `json:"decision"`
}

// Collect implements prometheus.Collector.
func (c *stateCollector) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), collectTimeout)
	defer cancel()
	units, err := c.store.Units(ctx, store.UnitFilter{})
	if err != nil {
		ch <- prometheus.NewInvalidMetric(c.components, err)
		return
	}
	now := c.now()
	values := map[*prometheus.Desc]map[[3]string]float64{c.components: {}, c.promotions: {}, c.oldest: {}, c.gates: {}, c.gateAge: {}, c.drifted: {}, c.untold: {}}
	for _, u := range units {
		var row storedStates
		if json.Unmarshal(u.Data, &row) != nil {
			continue // it is written again at its next change
		}
		for _, e := range row.Decision.Envs {
			at := func(label string) [3]string { return [3]string{u.Pipeline, e.Environment, label} }
			values[c.components][at(e.State)]++
			if e.Promotion != promotion.Idle && e.Promotion != "" {
				values[c.promotions][at(e.Promotion)]++
				if !e.ReadySince.IsZero() {
					values[c.oldest][at("")] = max(values[c.oldest][at("")], now.Sub(e.ReadySince).Seconds())
				}
			}
			waits := map[string]bool{}
			for _, g := range e.Gates {
				if g.Outcome != policies.Pass && !waits[g.Gate] {
					waits[g.Gate] = true
					values[c.gates][at(g.Gate)]++
					if !e.ReadySince.IsZero() {
						values[c.gateAge][at(g.Gate)] = max(values[c.gateAge][at(g.Gate)], now.Sub(e.ReadySince).Seconds())
					}
				}
			}
			for _, t := range e.Targets {
				if t.Drift != nil {
					values[c.drifted][at("")]++
				}
				if t.Untold {
					values[c.untold][at("")]++
				}
			}
		}
	}
	for desc, counts := range values {
		for at, n := range counts {
			labels := at[:]
			if desc == c.oldest || desc == c.drifted || desc == c.untold {
				labels = at[:2]
			}
			ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, n, labels...)
		}
	}
}
