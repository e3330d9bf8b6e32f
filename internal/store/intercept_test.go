package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
)

// TestIntercept holds when Options.Intercept is asked, and what becomes of its errors: one
// before an answer keeps the call from having an effect, one after it doesn't.
func TestIntercept(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, w *testStore) {
		must(t, w.Close())
		var calls []string
		var failing string
		away := errors.New("away")
		s := w.openWith(Options{Now: w.clock.Now, Intercept: func(_ context.Context, name string, answered bool) error {
			call := fmt.Sprintf("%s %v", name, answered)
			calls = append(calls, call)
			if call == failing {
				return away
			}
			return nil
		}})
		check := func(want ...string) {
			t.Helper()
			assertEqual(t, calls, want)
			calls = nil
		}
		fails := func(err error) {
			t.Helper()
			if !errors.Is(err, away) {
				t.Errorf("it ended with %v", err)
			}
		}
		calls = nil
		must(t, s.Tx(ctx, "run", func(tx *Tx) error {
			_, err := tx.Units(ctx, UnitFilter{})
			return err
		}))
		check("run false", "run true")
		value(s.Units(ctx, UnitFilter{}))(t)
		check(" false")
		value(s.PullUsage(ctx, "r", "shop", "bot", "web", "liftlock/", w.Now()))(t)
		check(" false", " false")
		value(s.RestrainingPulls(ctx, PastPlace{}))(t)
		check()
		if err := s.Tx(ctx, "run", func(*Tx) error { return errors.ErrUnsupported }); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("it ended with %v", err)
		}
		check("run false")

		failing = "putRecord false"
		fails(s.PutRecord(ctx, recordKey("k"), nil))
		absent(s.Record(ctx, recordKey("k")))(t)
		failing = "putRecord true"
		fails(s.PutRecord(ctx, recordKey("k"), nil))
		found(s.Record(ctx, recordKey("k")))(t)
		failing = " false"
		_, _, err := s.Record(ctx, recordKey("k"))
		fails(err)
		_, err = s.ForProcess(w.Now).Depth(ctx)
		fails(err)
		failing = ""
		if !slices.Contains(calls, "putRecord true") {
			t.Errorf("the calls were %q", calls)
		}
	})
}

// TestInterceptStatement holds that Options.InterceptStatement is asked before each statement of
// a transaction, and that one whose statement it keeps from being run leaves nothing.
func TestInterceptStatement(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, w *testStore) {
		must(t, w.Close())
		var transactions []string
		failing := 0
		away := errors.New("away")
		s := w.openWith(Options{Now: w.clock.Now, InterceptStatement: func(_ context.Context, transaction string) error {
			if transactions = append(transactions, transaction); len(transactions) == failing {
				return away
			}
			return nil
		}})
		write := func() error {
			transactions = nil
			return s.Tx(t.Context(), "two", func(tx *Tx) error {
				if err := tx.PutRecord(t.Context(), recordKey("a"), nil); err != nil {
					return err
				}
				_, err := tx.Records(t.Context(), RecordFilter{Kinds: []string{"a"}})
				return err
			})
		}
		for failing = 1; failing <= 2; failing++ {
			if err := write(); !errors.Is(err, away) || len(transactions) != failing {
				t.Errorf("statement %d fails and it ends with %v, after %q", failing, err, transactions)
			}
			absent(s.Record(t.Context(), recordKey("a")))(t)
		}
		must(t, write())
		assertEqual(t, transactions, []string{"two", "two"})
		found(s.Record(t.Context(), recordKey("a")))(t)
	})
}
