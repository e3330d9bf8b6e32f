package store

import (
	"cmp"
	"context"
	"time"
)

// TakeSlot takes the named slot for ttl, or extends it for its owner; false when
// somebody else has it. An owner is a process or a run of one: on SQLite all
// slots are free after a restart. For what must outlive the process, use
// PutState.
func (s *Store) TakeSlot(ctx context.Context, name, owner string, ttl time.Duration) (bool, error) {
	if err := cmp.Or(checkKey("its name", name), checkKey("its owner", owner)); err != nil {
		return false, wrapError(err, "take the slot %.80q", name)
	}
	return txWithResult(ctx, s, "takeSlot", func(tx *Tx) (bool, error) {
		n, err := tx.db.exec(ctx, `INSERT INTO slots (name, owner, lease_until) VALUES ($1, $2, liftlock_now() + $3)
			ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, lease_until = excluded.lease_until
			WHERE slots.owner = excluded.owner OR slots.lease_until <= liftlock_now()`, name, owner, ttl.Microseconds())
		return n > 0, wrapError(err, "take the slot %s", name)
	})
}

// FreeSlot gives the slot back, also for a run whose claim was lost; one that isn't the owner's is left
// alone.
func (s *Store) FreeSlot(ctx context.Context, name, owner string) error {
	return s.Tx(withoutClaim(ctx), "freeSlot", func(tx *Tx) error {
		_, err := tx.db.exec(ctx, `DELETE FROM slots WHERE name = $1 AND owner = $2`, name, owner)
		return wrapError(err, "free the slot %s", name)
	})
}

// CountSlots counts the slots that are taken of those whose names begin with a prefix.
func (q queries) CountSlots(ctx context.Context, prefix string) (int, error) {
	var w whereClause
	w.addCondition("lease_until > liftlock_now()")
	w.addPrefix("name", prefix)
	n, _, err := queryOne(ctx, q.db, oneColumn[int], `SELECT count(*) FROM slots`+w.String(), w.args...)
	return n, wrapError(err, "count the slots %s…", prefix)
}
