package store

import (
	"context"
	"time"
)

// pruneAtOnce is how many rows one transaction deletes, so that none waits long for it.
const pruneAtOnce = 1000

// prunableTables are the tables that only grow, with the condition for rows that are over. Events
// and audit are history, and only done commands are pruned. Keys that nothing wakes and that have
// not run since are as good as new ones. The arrivals of a unit that is still shown are bounded by
// their number instead.
var prunableTables = []prunableTable{
	deliveryTable,
	{"events", "seq", "at < $1"},
	{"audit", "id", "at < $1"},
	{"pending_commands", "id", "done_at > 0 AND done_at < $1"},
	{"wakes", "key", "ready_at = 9223372036854775807 AND fails = 0 AND ended_at < $1"},
	{"browser_sessions", "id", "expires_at < $1"},
	{"arrivals", "unit, environment, commit_id, release_id", "at < $1 AND unit NOT IN (SELECT key FROM units)"},
}

// deliveryTable is the one that is pruned also by itself.
var deliveryTable = prunableTable{"deliveries", "forge, id", "received_at < $1"}

type prunableTable struct{ name, primaryKey, over string }

// Prune forgets the history before the time: deliveries, events, the audit trail, done commands,
// keys that are idle since, and browsers' expired sessions. It also forgets the arrivals of units
// that don't exist any more. It returns how many rows went. It may run beside everything else, and
// on several replicas.
func (s *Store) Prune(ctx context.Context, before time.Time) (int, error) {
	total := 0
	for _, a := range prunableTables {
		n, err := s.pruneTable(ctx, a, before)
		total += n
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

func (s *Store) pruneTable(ctx context.Context, t prunableTable, before time.Time) (int, error) {
	total := 0
	for {
		n, err := txWithResult(ctx, s, "prune", func(tx *Tx) (int64, error) { return tx.pruneRows(ctx, t, before) })
		total += int(n)
		if err != nil || n < pruneAtOnce {
			return total, wrapError(err, "prune old %s", t.name)
		}
	}
}

// pruneRows deletes at most pruneAtOnce rows that are over.
func (t *Tx) pruneRows(ctx context.Context, p prunableTable, before time.Time) (int64, error) {
	return t.db.exec(ctx, "DELETE FROM "+p.name+" WHERE ("+p.primaryKey+") IN (SELECT "+p.primaryKey+" FROM "+p.name+
		" WHERE "+p.over+limitTo("$2")+t.store.dialect.skipLocked+")", toMicros(before), pruneAtOnce)
}
