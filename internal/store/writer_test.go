package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"
)

// Transactions that wait at the same moment share a commit; each is told of its
// own outcome only.
func TestGroupCommit(t *testing.T) {
	var mu sync.Mutex
	var before, after []string
	w := onSQLite(t)
	must(t, w.Close())
	w.Store = mustOpen(t, w.dsn, Options{OnCommit: func(name string, b bool) {
		mu.Lock()
		defer mu.Unlock()
		if b {
			before = append(before, name)
		} else {
			after = append(after, name)
		}
	}})

	started, release := make(chan struct{}), make(chan struct{})
	first := make(chan error, 1)
	go func() {
		first <- w.Tx(ctx, "first", func(tx *Tx) error {
			close(started)
			<-release
			return tx.PutRecord(ctx, recordKey("first"), nil)
		})
	}()
	<-started
	const others = 20
	errs := make(chan error, others)
	for i := range others {
		go func() {
			errs <- w.Tx(ctx, fmt.Sprint("other-", i), func(tx *Tx) error {
				if err := tx.PutRecord(ctx, recordKey(fmt.Sprint("other-", i)), nil); err != nil {
					return err
				}
				if i%4 == 0 {
					return errors.New("not this one")
				}
				return nil
			})
		}()
	}
	close(release)
	must(t, <-first)
	failed := 0
	for range others {
		if err := <-errs; err != nil {
			failed++
		}
	}
	assertEqual(t, failed, others/4)
	for i := range others {
		_, ok, err := w.Record(ctx, recordKey(fmt.Sprint("other-", i)))
		must(t, err)
		assertEqual(t, ok, i%4 != 0)
	}
	mu.Lock()
	defer mu.Unlock()
	assertEqual(t, len(before), 1+others-others/4)
	slices.Sort(before)
	slices.Sort(after)
	assertEqual(t, after, before)
}

// A function that panics or ends its goroutine takes its own writes back, and
// the writer goes on.
func TestTransactionThatDoesNotReturn(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, w *testStore) {
		ended := make(chan any)
		go func() {
			defer func() { ended <- recover() }()
			_ = w.Tx(ctx, "panics", func(tx *Tx) error {
				must(t, tx.PutRecord(ctx, recordKey("k"), nil))
				panic("oh")
			})
		}()
		if got := <-ended; got != "oh" {
			t.Fatalf("recovered %v, want the panic", got)
		}
		absent(w.Record(ctx, recordKey("k")))(t)
		must(t, w.PutRecord(ctx, recordKey("next"), nil))
	})
}

// A caller whose context ends while it waits for its turn gives up; its function
// doesn't run.
func TestGivingUpBeforeTheTurn(t *testing.T) {
	t.Run("memory", func(t *testing.T) { testGivingUpBeforeTheTurn(t, onMemory(t)) })
	t.Run("sqlite", func(t *testing.T) { testGivingUpBeforeTheTurn(t, onSQLite(t)) })
}

func testGivingUpBeforeTheTurn(t *testing.T, w *testStore) {
	started, release := make(chan struct{}), make(chan struct{})
	first := make(chan error, 1)
	go func() {
		first <- w.Tx(ctx, "first", func(*Tx) error { close(started); <-release; return nil })
	}()
	<-started
	short, cancel := context.WithCancel(ctx)
	waiting := make(chan error, 1)
	go func() {
		waiting <- w.Tx(short, "second", func(*Tx) error { t.Error("ran"); return nil })
	}()
	cancel()
	if err := <-waiting; !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want the context's error", err)
	}
	close(release)
	must(t, <-first)
	must(t, w.Wake(ctx, "a"))
}

// Every write goes through the hook, before and after, under its own name.
func TestCommitHook(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, w *testStore) {
		var mu sync.Mutex
		var seen []string
		must(t, w.Close())
		o := Options{Now: w.clock.Now, OnCommit: func(name string, before bool) {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, fmt.Sprintf("%s %v", name, before))
		}}
		s := w.openWith(o)
		value(s.Accept(ctx, Delivery{Forge: "f", ID: "1", Keys: []string{"a"}}))(t)
		c := value(s.Claim(ctx, me, 1))(t)
		must(t, s.Tx(ctx, "run", func(tx *Tx) error { return tx.Finish(ctx, me, c[0], Outcome{}) }))
		value(s.TakeSlot(ctx, "s", me, time.Minute))(t)
		mu.Lock()
		defer mu.Unlock()
		assertEqual(t, seen, []string{"accept true", "accept false", "claim true", "claim false", "run true", "run false", "takeSlot true", "takeSlot false"})
	})
}
