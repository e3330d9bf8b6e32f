package store

import (
	"context"
	"maps"
	"slices"
)

// Tx is one write transaction. It is for one goroutine and only until the
// function that it was given to returns.
type Tx struct {
	queries
	store    *Store
	wakes    map[string]nextWake
	finishes map[string]runFinish
	run      *heldClaim      // the run that writes; nil: none
	subjects map[string]bool // what to signal after the commit
}

// nextWake is when a key is to run, and how urgently.
type nextWake struct {
	key      string
	distance int64 // from now, in microseconds
	urgency  Urgency
}

// runFinish is a run's end, kept until the transaction's end.
type runFinish struct {
	owner   string
	claim   Claim
	outcome Outcome
	// The outcome's times as distances from now, in microseconds; below 0: none.
	next, hold int64
}

// heldClaim is a claim with its owner.
type heldClaim struct {
	owner string
	claim Claim
}

type heldClaimKey struct{}

// WithClaim is a context for a key's run. A write transaction with it stores nothing and returns
// ErrLost when the claim isn't the owner's any more as it commits. Another run has the key then,
// and what this one found out is older than what that one did.
func WithClaim(ctx context.Context, owner string, c Claim) context.Context {
	return context.WithValue(ctx, heldClaimKey{}, &heldClaim{owner: owner, claim: c})
}

// ClaimOf is the claim of the run that a context is of; false: of none.
func ClaimOf(ctx context.Context) (Claim, bool) {
	held, _ := ctx.Value(heldClaimKey{}).(*heldClaim)
	if held == nil {
		return Claim{}, false
	}
	return held.claim, true
}

// withoutClaim is a context for what says itself whose it is.
func withoutClaim(ctx context.Context) context.Context {
	return context.WithValue(ctx, heldClaimKey{}, (*heldClaim)(nil))
}

// Tx runs f in one write transaction: all of it is stored, or, when f or the commit fails, nothing.
// The name is for Options.OnCommit. Wakes and finishes take effect at the transaction's end, so a
// lost claim (ErrLost), the finished one or that of WithClaim, comes back from Tx, not from
// Tx.Finish.
//
// On SQLite one transaction runs at a time and f keeps all other writers waiting. So read the world
// before, and don't call the store's own methods in f. Those that write would wait forever, and in
// memory also those that read. On PostgreSQL f runs again, a few times at most, when the database
// gives a transaction up for another's sake. So f must touch nothing but tx and variables that it
// sets anew.
func (s *Store) Tx(ctx context.Context, name string, f func(tx *Tx) error) error {
	intercept := s.options.Intercept
	if intercept == nil {
		return s.runTx(ctx, name, f)
	}
	if err := intercept(ctx, name, false); err != nil {
		return wrapError(err, "store the transaction %q", name)
	}
	if err := s.runTx(ctx, name, f); err != nil {
		return err
	}
	return wrapError(intercept(ctx, name, true), "store the transaction %q", name)
}

func (s *Store) runTx(ctx context.Context, name string, f func(tx *Tx) error) error {
	var tx *Tx
	var own error // f's or our own, which say already what was being done
	run, _ := ctx.Value(heldClaimKey{}).(*heldClaim)
	err := s.backend.runTx(ctx, name, func(db session) error {
		tx = &Tx{
			queries: queries{db: s.options.interceptStatements(name, db), now: s.time.now}, store: s, run: run,
			wakes: map[string]nextWake{}, finishes: map[string]runFinish{}, subjects: map[string]bool{},
		}
		own = f(tx)
		if own == nil {
			own = tx.writeWakesAndFinishes(ctx)
		}
		return own
	})
	switch {
	case own != nil:
		return own
	case err != nil:
		return wrapError(err, "store the transaction %q", name)
	}
	for subject := range tx.subjects {
		s.signals.notifySubject(subject)
	}
	return nil
}

// writeWakesAndFinishes writes the finishes and wakes, and sees that the run still has its claim. They
// come last and in the order of their keys, so that two transactions that wake and finish each
// other's keys don't wait for each other.
func (t *Tx) writeWakesAndFinishes(ctx context.Context) error {
	runs := ""
	if t.run != nil {
		runs = t.run.claim.Key
	}
	keys := slices.Compact(slices.Sorted(func(yield func(string) bool) {
		maps.Keys(t.wakes)(yield)
		maps.Keys(t.finishes)(yield)
		if t.run != nil {
			yield(runs)
		}
	}))
	var run []nextWake // neighbouring keys that are only woken go in one statement
	flush := func() error {
		if len(run) == 0 {
			return nil
		}
		err := wrapError(t.wakeKeys(ctx, run), "wake %s", run[0].key)
		run = run[:0]
		return err
	}
	for _, k := range keys {
		if t.run != nil && k == runs {
			if err := flush(); err != nil {
				return err
			}
			if err := t.checkClaim(ctx); err != nil {
				return err
			}
		}
		if fin, ok := t.finishes[k]; ok {
			if err := flush(); err != nil {
				return err
			}
			if err := t.writeFinish(ctx, fin); err != nil {
				return err
			}
		}
		if next, ok := t.wakes[k]; ok {
			run = append(run, next)
		}
		if len(run) == wakesAtOnce {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if err := flush(); err != nil {
		return err
	}
	notify := t.store.dialect.notify
	if notify == "" {
		return nil
	}
	for subject := range t.subjects {
		if _, err := t.db.exec(ctx, notify, subject); err != nil {
			return wrapError(err, "announce new %s to the other replicas", subject)
		}
	}
	return nil
}

// checkClaim returns ErrLost where the run's claim is lost, and else keeps others from claiming
// its key until the transaction's end.
func (t *Tx) checkClaim(ctx context.Context) error {
	held, err := t.holdsClaim(ctx, t.run.owner, t.run.claim)
	if err == nil && !held {
		err = ErrLost
	}
	return wrapError(err, "store what the run of %s found out", t.run.claim.Key)
}

// txWithResult is Tx for one call with a result.
func txWithResult[T any](ctx context.Context, s *Store, name string, f func(tx *Tx) (T, error)) (T, error) {
	var out T
	err := s.Tx(ctx, name, func(tx *Tx) (err error) {
		out, err = f(tx)
		return err
	})
	if err != nil {
		var zero T
		return zero, err
	}
	return out, nil
}
