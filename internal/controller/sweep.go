package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/stored"
	"github.com/liftlock/liftlock/internal/store"
)

// unsettledUnits are the keys of a repository's units that a sweep evaluates without any news of
// them. They have something open or unsettled, or took a release within its watch window.
func (co *Controller) unsettledUnits(ctx context.Context, r *Repository) ([]wake.Key, error) {
	s, err := co.opts.Gatherer.Targets.Snapshot(ctx, r.Repository)
	if err != nil {
		return nil, err
	}
	rows, err := co.opts.Store.Units(ctx, store.UnitFilter{Repo: r.ID})
	if err != nil {
		return nil, err
	}
	var keys []wake.Key
	for _, row := range rows {
		var v stored.Unit
		if err := json.Unmarshal(row.Data, &v); err != nil {
			return nil, fmt.Errorf("read the view of %s from the store: %w", row.Key, err)
		}
		p := s.Pipeline(row.Pipeline)
		for i := range v.Decision.Envs {
			st := &v.Decision.Envs[i]
			if p == nil || p.Spec.EnvironmentByName(st.Environment) == nil || promotion.IsSoaking(&p.Spec, v.Decision.Envs, st) ||
				isUnsettled(st, p.Spec.EnvironmentByName(st.Environment).Verify.WatchWindow(), co.opts.Clock.Now()) {
				keys = append(keys, wake.ForUnit(s.RunsAs(promotion.Unit{Repo: row.Repo, Pipeline: row.Pipeline,
					Component: row.Component})))
				break
			}
		}
	}
	return keys, nil
}

// isUnsettled says that what an environment was last seen to be may have to become
// something else by itself.
func isUnsettled(st *promotion.EnvState, watch time.Duration, now time.Time) bool {
	switch {
	case st.Pull != 0, st.Revert != 0:
		return true
	case st.State == promotion.Idle, st.State == promotion.Baseline, st.State == promotion.Diverged:
		return st.Promotion != promotion.Idle
	case st.State == promotion.Verified && st.Promotion == promotion.Idle:
		return now.Before(st.Since.Add(watch))
	}
	return true
}
