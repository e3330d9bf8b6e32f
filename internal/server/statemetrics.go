package server

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/policies"
)

// stateCollector counts how components, promotions, gates and targets were when they were
// last evaluated, when it is asked for. Every replica shows the same: what is remembered of the
// rows only saves reading again those that haven't changed.
type stateCollector struct {
	store *store.Store
	now   func() time.Time

	mu    sync.Mutex
	known map[string]*unitStates // by the unit's key, of all that there were at the last scrape; never changed

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
		gateAge: describe("gate_oldest_seconds", "For how long the release that has waited for longest, of those that don't pass a "+
			"gate, could have come in.", "gate"),
		drifted: describe("targets_drifted", "Targets that were changed in the cluster and differ from what was synced to them."),
		untold:  describe("targets_untold", "Targets of which nobody has been able to tell for long how they are."),
	}
}

// Describe implements prometheus.Collector.
func (s *stateCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{s.components, s.promotions, s.oldest, s.gates, s.gateAge, s.drifted, s.untold} {
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

// unitStates is what is counted of a unit.
type unitStates struct {
	digest string
	at     time.Time
	envs   []envStates // none where the row can't be read: it is written again at its next change
}

// envStates is what is counted of a unit in an environment.
type envStates struct {
	environment, state string
	promotion          string    // empty: nothing would come in
	readySince         time.Time // zero: not known
	waits              []string  // the gates that don't pass, each once
	drifted, untold    int       // targets
}

// isOf says whether the states are those of a row.
func (u *unitStates) isOf(row *store.Unit) bool {
	return u != nil && u.digest == row.Digest && u.at.Equal(row.UpdatedAt)
}

// newUnitStates reads a row.
func newUnitStates(row *store.Unit) *unitStates {
	u := &unitStates{digest: row.Digest, at: row.UpdatedAt}
	var stored storedStates
	if json.Unmarshal(row.Data, &stored) != nil {
		return u
	}
	for _, e := range stored.Decision.Envs {
		env := envStates{environment: e.Environment, state: e.State, readySince: e.ReadySince}
		if e.Promotion != promotion.Idle {
			env.promotion = e.Promotion
		}
		for _, g := range e.Gates {
			if g.Outcome != policies.Pass && !slices.Contains(env.waits, g.Gate) {
				env.waits = append(env.waits, g.Gate)
			}
		}
		for _, t := range e.Targets {
			if t.Drift != nil {
				env.drifted++
			}
			if t.Untold {
				env.untold++
			}
		}
		u.envs = append(u.envs, env)
	}
	return u
}

// readStates reads all units' states, and calls use with each.
func (s *stateCollector) readStates(ctx context.Context, use func(pipeline string, e *envStates)) error {
	s.mu.Lock()
	old := s.known
	s.mu.Unlock()
	rows, err := store.ChangedUnits(ctx, s.store, func(row *store.Unit) bool { return old[row.Key].isOf(row) })
	if err != nil {
		return err
	}
	known := make(map[string]*unitStates, len(rows))
	for i := range rows {
		u := old[rows[i].Key]
		if !u.isOf(&rows[i]) {
			u = newUnitStates(&rows[i])
		}
		known[rows[i].Key] = u
		for j := range u.envs {
			use(rows[i].Pipeline, &u.envs[j])
		}
	}
	s.mu.Lock()
	s.known = known
	s.mu.Unlock()
	return nil
}

// Collect implements prometheus.Collector.
func (s *stateCollector) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), collectTimeout)
	defer cancel()
	now := s.now()
	values := map[*prometheus.Desc]map[[3]string]float64{s.components: {}, s.promotions: {}, s.oldest: {}, s.gates: {}, s.gateAge: {},
		s.drifted: {}, s.untold: {}}
	err := s.readStates(ctx, func(pipeline string, e *envStates) {
		at := func(label string) [3]string { return [3]string{pipeline, e.environment, label} }
		add := func(to *prometheus.Desc, label string, n int) {
			if n > 0 {
				values[to][at(label)] += float64(n)
			}
		}
		raiseAge := func(of *prometheus.Desc, label string) {
			if !e.readySince.IsZero() {
				values[of][at(label)] = max(values[of][at(label)], now.Sub(e.readySince).Seconds())
			}
		}
		add(s.components, e.state, 1)
		if e.promotion != "" {
			add(s.promotions, e.promotion, 1)
			raiseAge(s.oldest, "")
		}
		for _, gate := range e.waits {
			add(s.gates, gate, 1)
			raiseAge(s.gateAge, gate)
		}
		add(s.drifted, "", e.drifted)
		add(s.untold, "", e.untold)
	})
	if err != nil {
		ch <- prometheus.NewInvalidMetric(s.components, err)
		return
	}
	for desc, counts := range values {
		for at, n := range counts {
			labels := at[:]
			if desc == s.oldest || desc == s.drifted || desc == s.untold {
				labels = at[:2]
			}
			ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, n, labels...)
		}
	}
}
