package live

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/stored"
	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// GatherIncidents lists other unhealthy targets, also those that recovered a while ago. It lists
// none while all of the component's own are healthy, for no decision needs them then. Where a
// target of its own is degraded, the incidents of its last evaluation are on the list too, also
// when they are over by now. The process that saw them may be gone. children are the Applications
// below the unit's targets.
func (ga *Gatherer) GatherIncidents(ctx context.Context, c *branch.ComponentBasis,
	children []appset.Target) ([]promotion.ClusterIncident, error) {
	isDegraded := func(t *promotion.Target) bool { return t.Verdict.State == verification.Degraded }
	if !hasTarget(c, func(t *promotion.Target) bool { return isDegraded(t) || t.NotHealthy || len(t.Unhealthy.Value) > 0 }) {
		return nil, nil
	}
	now := ga.clusterIncidents(c.Pipeline, children)
	if !hasTarget(c, isDegraded) {
		return now, nil
	}
	row, ok, err := ga.Store.Unit(ctx, wake.UnitName(c.Facts.Unit))
	if err != nil || !ok {
		return now, err
	}
	var before stored.Unit
	if err := json.Unmarshal(row.Data, &before); err != nil {
		return nil, fmt.Errorf("read the unit %s from the store: %w", row.Key, err)
	}
	return WithEarlier(now, before.Incidents, c.Facts.Now), nil
}

// WithEarlier adds the incidents of an earlier list that are over; what isn't said of
// them any more is over as of now. One that goes on is as old, and was as bad, as the
// earlier list says: the process that saw its beginning may be gone.
func WithEarlier(list, earlier []promotion.ClusterIncident, now time.Time) []promotion.ClusterIncident {
	for _, w := range earlier {
		i := slices.IndexFunc(list, func(k promotion.ClusterIncident) bool {
			return k.ID == w.ID && k.Target == w.Target && k.Cluster == w.Cluster
		})
		if i >= 0 && w.Until.IsZero() && list[i].Until.IsZero() {
			if w.Since.Before(list[i].Since) {
				list[i].Since = w.Since
			}
			list[i].Unsettled = list[i].Unsettled && w.Unsettled
		}
		if i >= 0 && (w.Until.IsZero() || w.Unsettled || !list[i].Unsettled) {
			continue
		}
		if w.Until.IsZero() {
			w.Until = now
		}
		if now.Sub(w.Until) <= RecoveredFor {
			list = append(list, w)
		}
	}
	return list
}

func hasTarget(c *branch.ComponentBasis, is func(*promotion.Target) bool) bool {
	for i := range c.Facts.Envs {
		if slices.ContainsFunc(c.Facts.Envs[i].Targets, func(t promotion.Target) bool { return is(&t) }) {
			return true
		}
	}
	return false
}
