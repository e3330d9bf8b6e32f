package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Delivery is one webhook delivery: who it is and whom it wakes. Its body is not
// kept: a run reads the world again.
type Delivery struct {
	Forge      string // the forge's name in the server's file
	ID         string // the forge's own, the same when it delivers again
	Event      string // the forge's name for it
	Repo       string // as the forge spells it; empty when the event has none
	ReceivedAt time.Time
	Keys       []string  // to wake; may be empty
	Urgency    Urgency   // with which
	DueAt      time.Time // when; zero, or past: at once
	// Records are stored with it: what the delivery says that a look must not miss.
	Records []Record
}

// Accept writes the delivery down and wakes its keys, in one transaction: when
// it returns without an error, both are safe and the delivery may be
// acknowledged. A delivery whose forge and ID are known already changes nothing
// and isn't fresh. Safe, and on SQLite much cheaper, to call concurrently.
func (s *Store) Accept(ctx context.Context, d Delivery) (fresh bool, err error) {
	if err := d.checkFields(); err != nil {
		return false, wrapError(err, "accept the delivery %.80q of %s", d.ID, d.Forge)
	}
	if s.accepts != nil {
		// A failure of the others' transaction, or a caller of theirs that gives up, is none of
		// this one's.
		a, alone := s.accepts.accept(ctx, d, s.acceptAll)
		switch {
		case a.err == nil:
			return a.fresh, nil
		case alone:
			return false, a.err
		}
	}
	return txWithResult(ctx, s, "accept", func(tx *Tx) (bool, error) { return tx.accept(ctx, d) })
}

// acceptAll accepts deliveries in one transaction, all of them or none.
func (s *Store) acceptAll(ctx context.Context, all []*acceptance) error {
	return s.Tx(ctx, "accept", func(tx *Tx) (err error) {
		for _, a := range all {
			if a.fresh, err = tx.accept(ctx, a.delivery); err != nil {
				return err
			}
		}
		return nil
	})
}

// accept writes a delivery down and wakes its keys, unless it is known already.
func (t *Tx) accept(ctx context.Context, d Delivery) (fresh bool, err error) {
	if fresh, err = t.writeDelivery(ctx, d); err != nil || !fresh {
		return false, wrapError(err, "accept the delivery %s of %s", d.ID, d.Forge)
	}
	for i := range d.Records {
		if err := t.PutRecord(ctx, d.Records[i].RecordKey, d.Records[i].Data); err != nil {
			return false, err
		}
	}
	distance := int64(0)
	if !d.DueAt.IsZero() {
		distance = microsUntil(t.now(), d.DueAt)
	}
	return true, t.wakeIn(distance, d.Urgency, d.Keys)
}

func (t *Tx) writeDelivery(ctx context.Context, d Delivery) (fresh bool, err error) {
	keys, err := json.Marshal(d.Keys)
	if err != nil {
		return false, err
	}
	n, err := t.db.exec(ctx, `INSERT INTO deliveries (forge, id, event, repo, keys, received_at)
		VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING`,
		d.Forge, d.ID, d.Event, d.Repo, string(keys), toMicros(d.ReceivedAt))
	return n > 0, err
}

// HasDelivery says whether a forge's delivery was accepted and isn't forgotten yet.
func (q queries) HasDelivery(ctx context.Context, forge, id string) (bool, error) {
	_, ok, err := queryOne(ctx, q.db, oneColumn[string], `SELECT id FROM deliveries WHERE forge = $1 AND id = $2`, forge, id)
	return ok, wrapError(err, "look for the delivery %.80q of %s", id, forge)
}

func (d Delivery) checkFields() error {
	if len(d.Keys) > maxKeys {
		return fmt.Errorf("%w: it wakes %d keys, at most %d are allowed", ErrInvalid, len(d.Keys), maxKeys)
	}
	for _, k := range d.Keys {
		if err := checkKey("a key to wake", k); err != nil {
			return err
		}
	}
	return cmp.Or(checkKey("the forge's name", d.Forge), checkKey("the delivery's id", d.ID),
		checkNames("the event's name", d.Event, "the repository's name", d.Repo))
}

// PruneDeliveries forgets deliveries received before the time and returns how many. A later
// repetition of a delivery counts as fresh, and does no more harm than a look at the world.
func (s *Store) PruneDeliveries(ctx context.Context, before time.Time) (int, error) {
	return s.pruneTable(ctx, deliveryTable, before)
}
