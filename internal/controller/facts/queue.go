package facts

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
)

// queueKey is where the store keeps that a component waits for a place in
// environments: the few that wait are found without reading all there are.
func queueKey(u promotion.Unit) string { return queuePrefix(u) + u.Component }

func queuePrefix(u promotion.Unit) string { return "queue|" + u.Repo + "|" + u.Pipeline + "|" }

// queuedSince are the environments that a component waits for a place in, with since
// when its release could have come.
type queuedSince map[string]time.Time

// RecordQueued notes whether a component waits for a place, as a decision says. It
// is for the transaction that stores the decision.
func (o *recordGatherer) RecordQueued(ctx context.Context, tx *store.Tx, c *ComponentEvaluation, d *promotion.ComponentDecision) error {
	waits := queuedSince{}
	for i := range d.Envs {
		if e := &d.Envs[i]; e.Promotion == promotion.Waiting && !e.ReadySince.IsZero() && onlyLimitBlocks(e) {
			waits[e.Environment] = e.ReadySince
		}
	}
	key := queueKey(c.Facts.Unit)
	if len(waits) == 0 {
		return tx.DeleteState(ctx, key)
	}
	data, err := json.Marshal(waits)
	if err != nil {
		return fmt.Errorf("note that %s waits for a place: %w", wake.UnitName(c.Facts.Unit), err)
	}
	return tx.PutState(ctx, key, data)
}

// DropQueued forgets a component that is gone.
func (o *recordGatherer) DropQueued(ctx context.Context, tx *store.Tx, u promotion.Unit) error {
	return tx.DeleteState(ctx, queueKey(u))
}

// onlyLimitBlocks says that nothing but the limit keeps a promotion from opening.
func onlyLimitBlocks(e *promotion.EnvState) bool {
	for _, w := range e.Why {
		if w.Code != "limit" {
			return false
		}
	}
	return len(e.Why) > 0
}

// countAhead counts the components that have waited longer for a place in an
// environment, as their own last decisions say.
func (o *recordGatherer) countAhead(ctx context.Context, u promotion.Unit, l *promotion.Limits) error {
	rows, err := o.store.StateByPrefix(ctx, queuePrefix(u))
	if err != nil {
		return err
	}
	delete(rows, queueKey(u))
	if len(rows) == 0 {
		return nil
	}
	mine, err := o.readySince(ctx, u)
	if err != nil {
		return err
	}
	for key, raw := range rows {
		var waits queuedSince
		if err := json.Unmarshal(raw, &waits); err != nil {
			return fmt.Errorf("read who waits for a place (%s) from the store: %w", key, err)
		}
		component := key[len(queuePrefix(u)):]
		for env, since := range waits {
			own := mine[env]
			if own.IsZero() || since.Before(own) || since.Equal(own) && component < u.Component {
				l.QueuedAhead[env]++
			}
		}
	}
	return nil
}

// readySince is since when a unit's own releases could have come, as its last
// decision says.
func (o *recordGatherer) readySince(ctx context.Context, u promotion.Unit) (queuedSince, error) {
	row, ok, err := o.store.Unit(ctx, wake.UnitName(u))
	if err != nil || !ok {
		return nil, err
	}
	var v UnitView
	if err := json.Unmarshal(row.Data, &v); err != nil {
		return nil, fmt.Errorf("read the unit %s from the store: %w", row.Key, err)
	}
	out := queuedSince{}
	for _, e := range v.Decision.Envs {
		out[e.Environment] = e.ReadySince
	}
	return out, nil
}
