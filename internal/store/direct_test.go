package store

import (
	"context"
	"time"
)

// Writes of one record each in a transaction of its own, as the tests make them;
// the server makes them as parts of larger ones.

func (s *Store) PutArrival(ctx context.Context, a Arrival) (int64, error) {
	return txWithResult(ctx, s, "putArrived", func(tx *Tx) (int64, error) { return tx.PutArrival(ctx, a) })
}

func (s *Store) PutPromotion(ctx context.Context, p Promotion) (int64, error) {
	return txWithResult(ctx, s, "putPromotion", func(tx *Tx) (int64, error) { return tx.PutPromotion(ctx, p) })
}

func (s *Store) PutPendingCommand(ctx context.Context, a PendingCommand) (int64, error) {
	return txWithResult(ctx, s, "putPendingCommand", func(tx *Tx) (int64, error) { return tx.PutPendingCommand(ctx, a) })
}

func (s *Store) FinishPendingCommand(ctx context.Context, id int64, outcome string) error {
	return s.Tx(ctx, "finishPendingCommand", func(tx *Tx) error { return tx.FinishPendingCommand(ctx, id, outcome) })
}

func (s *Store) PutUnit(ctx context.Context, u Unit) error {
	return s.Tx(ctx, "putUnit", func(tx *Tx) error { return tx.PutUnit(ctx, u) })
}

func (s *Store) DeleteUnit(ctx context.Context, key string) error {
	return s.Tx(ctx, "deleteUnit", func(tx *Tx) error { return tx.DeleteUnit(ctx, key) })
}

func (s *Store) PutObservations(ctx context.Context, all ...Observation) error {
	return s.Tx(ctx, "putObservations", func(tx *Tx) error { return tx.PutObservations(ctx, all...) })
}

func (s *Store) DeleteObservation(ctx context.Context, unit, environment, target string) error {
	return s.Tx(ctx, "deleteObservation", func(tx *Tx) error { return tx.DeleteObservation(ctx, unit, environment, target) })
}

func (s *Store) SetPullCursor(ctx context.Context, repo string, cursor time.Time) error {
	return s.Tx(ctx, "setPullCursor", func(tx *Tx) error { return tx.SetPullCursor(ctx, repo, cursor) })
}

func (s *Store) EnqueueMerge(ctx context.Context, repo, unit string) error {
	return s.Tx(ctx, "enqueueMerge", func(tx *Tx) error { return tx.EnqueueMerge(ctx, repo, unit) })
}

func (s *Store) DequeueMerge(ctx context.Context, repo, unit string) error {
	return s.Tx(ctx, "dequeueMerge", func(tx *Tx) error { return tx.DequeueMerge(ctx, repo, unit) })
}

func (s *Store) WakeAt(ctx context.Context, at time.Time, keys ...string) error {
	return s.Tx(ctx, "wake", func(tx *Tx) error { return tx.WakeAt(ctx, at, keys...) })
}

// pendingCommandBySource finds a command that may be done by where it was given.
func (s *Store) pendingCommandBySource(ctx context.Context, source string) (PendingCommand, bool, error) {
	return queryOne(ctx, s.db, (*PendingCommand).columns, `SELECT `+pendingCommandColumns+` FROM pending_commands WHERE source = $1`, source)
}
