package store

import (
	"encoding/json"
	"errors"
	"sync"
	"testing"

	"github.com/liftlock/liftlock/internal/world/storetest"
)

// TestReplicasNotifyEachOther holds that one replica's writes reach the others.
func TestReplicasNotifyEachOther(t *testing.T) {
	dsn := storetest.PostgresSchema(t)
	a, b := mustOpen(t, dsn, Options{}), mustOpen(t, dsn, Options{})
	newEvents, cancel := b.Subscribe()
	defer cancel()
	shown, leave := b.SubscribeShown()
	defer leave()
	must(t, a.PutUnit(ctx, Unit{Key: "u", Digest: "1", Data: json.RawMessage(`{}`)}))
	await(t, shown, "the other replica's unit")
	must(t, a.DeleteUnit(ctx, "u"))
	await(t, shown, "the unit that is gone")
	must(t, a.Wake(ctx, "a"))
	await(t, b.Wakeups(), "the other replica's wake")
	value(a.AddEvents(ctx, Event{Kind: "k"}))(t)
	await(t, newEvents, "the other replica's event")
	c := value(b.Claim(ctx, "b", 1))(t)
	must(t, b.Finish(ctx, "b", c[0], Outcome{Next: b.time.now()}))
	await(t, a.Wakeups(), "the other replica's finish with a next time")
}

// Two Liftlocks in one database, each in its own schema, don't wake each other.
func TestSchemasAreApart(t *testing.T) {
	a, b := mustOpen(t, storetest.PostgresSchema(t), Options{}), mustOpen(t, storetest.PostgresSchema(t), Options{})
	must(t, a.Wake(ctx, "a"))
	must(t, b.Wake(ctx, "b"))
	await(t, b.Wakeups(), "its own wake")
	if got := keysOf(value(b.Claim(ctx, "b", 10))(t)); len(got) != 1 || got[0] != "b" {
		t.Fatalf("claimed %q", got)
	}
}

// After its connection was cut, a replica listens again, and is signalled for
// what it may have missed.
func TestListeningAgain(t *testing.T) {
	dsn := storetest.PostgresSchema(t)
	a, b := mustOpen(t, dsn, Options{}), mustOpen(t, dsn, Options{})
	mustExec(t, a.backend.(*postgresDB).pool, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE query LIKE 'LISTEN "liftlock ' || current_schema() || '"%'`)
	await(t, b.Wakeups(), "what it may have missed")
	must(t, a.Wake(ctx, "a"))
	await(t, b.Wakeups(), "a wake")
}

func TestReplicasStartingAtOnce(t *testing.T) {
	dsn := storetest.PostgresSchema(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			s, err := Open(ctx, dsn, Options{})
			if err != nil {
				t.Errorf("open: %v", err)
				return
			}
			if err := s.Wake(ctx, "a"); err != nil {
				t.Error(err)
			}
			s.Close()
		})
	}
	wg.Wait()
}

// The function runs again when the database gives the transaction up, and not
// for an error of its own.
func TestRunningAgain(t *testing.T) {
	w := onPostgres(t)
	must(t, w.PutRecord(ctx, recordKey("a"), []byte("0")))
	must(t, w.PutRecord(ctx, recordKey("b"), []byte("0")))
	var meet sync.WaitGroup
	meet.Add(2)
	var wg sync.WaitGroup
	var mu sync.Mutex
	runs := 0
	for _, keys := range [][2]string{{"a", "b"}, {"b", "a"}} {
		wg.Go(func() {
			first := true
			if err := w.Tx(ctx, "crossed", func(tx *Tx) error {
				mu.Lock()
				runs++
				mu.Unlock()
				if err := tx.PutRecord(ctx, recordKey(keys[0]), []byte("1"+keys[0])); err != nil {
					return err
				}
				if first { // both hold their first row now: a deadlock
					first = false
					meet.Done()
					meet.Wait()
				}
				return tx.PutRecord(ctx, recordKey(keys[1]), []byte("2"+keys[0]))
			}); err != nil {
				t.Errorf("transaction: %v", err)
			}
		})
	}
	wg.Wait()
	if runs < 3 {
		t.Fatalf("both ran once: there was no deadlock, the test is wrong")
	}

	own, runs := errors.New("own"), 0
	if err := w.Tx(ctx, "fails", func(*Tx) error { runs++; return own }); !errors.Is(err, own) || runs != 1 {
		t.Fatalf("ran %d times: %v", runs, err)
	}
}
