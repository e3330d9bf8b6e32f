package facts

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/cause"
	"github.com/liftlock/liftlock/internal/promotion/stored"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
)

// queuedSince are the environments that a component waits for a place in, with since
// when its release could have come.
type queuedSince map[string]time.Time

// queued finds the few components that wait for a place without reading all there are.
var queued = record.Declare[record.Unit, queuedSince](record.Declaration{
	Name: "queued", Owner: "controller/facts", Lifetime: record.UntilDropped, Strict: true,
	Doc: "The environments that the component waits for a place in, with since when its release could have come.",
})

// listQueued lists the components of a pipeline that wait for a place.
func listQueued(ctx context.Context, records record.Lister, repo, pipeline string) ([]record.Stored[record.Unit, queuedSince], error) {
	return queued.List(ctx, records, record.Within{Repo: repo, NamePrefix: record.PipelinePrefix(pipeline)})
}

// RecordQueued notes whether a component waits for a place, as a decision says. It
// is for the transaction that stores the decision.
func (rg *recordGatherer) RecordQueued(ctx context.Context, tx *store.Tx, c *ComponentEvaluation, d *promotion.ComponentDecision) error {
	waits := queuedSince{}
	for i := range d.Envs {
		if e := &d.Envs[i]; e.Promotion == promotion.Waiting && !e.ReadySince.IsZero() && onlyLimitBlocks(e) {
			waits[e.Environment] = e.ReadySince
		}
	}
	if len(waits) == 0 {
		return queued.Drop(ctx, tx, record.Unit(c.Facts.Unit))
	}
	return queued.Put(ctx, tx, record.Unit(c.Facts.Unit), waits)
}

// DropQueued forgets a component that is gone.
func (rg *recordGatherer) DropQueued(ctx context.Context, tx *store.Tx, u promotion.Unit) error {
	return queued.Drop(ctx, tx, record.Unit(u))
}

// onlyLimitBlocks says that nothing but the limit keeps a promotion from opening.
func onlyLimitBlocks(e *promotion.EnvState) bool {
	for _, w := range e.Why {
		if w.Code != cause.Limit {
			return false
		}
	}
	return len(e.Why) > 0
}

// countAhead counts the components that have waited longer for a place in an
// environment, as their own last decisions say.
func (rg *recordGatherer) countAhead(ctx context.Context, u promotion.Unit, records record.Lister, l *promotion.Limits) error {
	all, err := listQueued(ctx, records, u.Repo, u.Pipeline)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(e record.Stored[record.Unit, queuedSince]) bool { return e.About == record.Unit(u) })
	if len(all) == 0 {
		return nil
	}
	mine, err := rg.readySince(ctx, u)
	if err != nil {
		return err
	}
	for i := range all {
		for env, since := range all[i].Value {
			own := mine[env]
			if own.IsZero() || since.Before(own) || since.Equal(own) && all[i].About.Component < u.Component {
				l.QueuedAhead[env]++
			}
		}
	}
	return nil
}

// readySince is since when a unit's own releases could have come, as its last
// decision says.
func (rg *recordGatherer) readySince(ctx context.Context, u promotion.Unit) (queuedSince, error) {
	row, ok, err := rg.store.Unit(ctx, wake.UnitName(u))
	if err != nil || !ok {
		return nil, err
	}
	var v stored.Unit
	if err := json.Unmarshal(row.Data, &v); err != nil {
		return nil, fmt.Errorf("read the unit %s from the store: %w", row.Key, err)
	}
	out := queuedSince{}
	for _, e := range v.Decision.Envs {
		out[e.Environment] = e.ReadySince
	}
	return out, nil
}

// NextQueued are the units that have waited longest for a place in an environment, as
// many as there are places: when one comes free, one of them takes it.
func (rg *recordGatherer) NextQueued(ctx context.Context, s *branch.Snapshot) ([]promotion.Unit, error) {
	var out []promotion.Unit
	for _, p := range s.Pipelines {
		all, err := listQueued(ctx, rg.store, s.Repo.ID, p.Name())
		if err != nil {
			return nil, err
		}
		since := map[string]map[string]time.Time{} // by environment and component
		for i := range all {
			for env, at := range all[i].Value {
				if since[env] == nil {
					since[env] = map[string]time.Time{}
				}
				since[env][all[i].About.Component] = at
			}
		}
		for _, waits := range since {
			components := slices.SortedFunc(maps.Keys(waits), func(a, b string) int { return waits[a].Compare(waits[b]) })
			for _, component := range components[:min(len(components), p.Spec.Limits.OpenPerEnvironment)] {
				out = append(out, promotion.Unit{Repo: s.Repo.ID, Pipeline: p.Name(), Component: component})
			}
		}
	}
	return out, nil
}
