package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/pipeline/event"
	"github.com/liftlock/liftlock/internal/world/storetest"
)

// Three runners at once: no key runs twice at the same time, and every wake is
// followed by a run that began after it.
func TestThreeRunners(t *testing.T) {
	t.Run("memory", func(t *testing.T) {
		s := OpenMemory(Options{})
		testThreeRunners(t, s, s, s)
	})
	t.Run("sqlite", func(t *testing.T) {
		s := mustOpen(t, onSQLiteAddress(t), Options{})
		testThreeRunners(t, s, s, s)
	})
	t.Run("postgres", func(t *testing.T) {
		dsn := storetest.PostgresSchema(t)
		testThreeRunners(t, mustOpen(t, dsn, Options{}), mustOpen(t, dsn, Options{}), mustOpen(t, dsn, Options{}))
	})
}

func onSQLiteAddress(t testing.TB) string { return "sqlite://" + t.TempDir() + "/liftlock.db" }

func testThreeRunners(t *testing.T, stores ...*Store) {
	const keys, wakes = 12, 400
	type key struct {
		begun   atomic.Int64 // wakes that were begun
		seen    atomic.Int64 // of them, begun before the last run
		running atomic.Bool
	}
	var all [keys]key
	name := func(i int) string { return fmt.Sprint("key-", i) }
	wake := func(s *Store, i int) error {
		all[i].begun.Add(1)
		return s.Wake(ctx, name(i))
	}
	work, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()

	var runs, inRun atomic.Int64
	run := func(s *Store, owner string, c Claim) error {
		var i int
		if _, err := fmt.Sscanf(c.Key, "key-%d", &i); err != nil {
			return err
		}
		k := &all[i]
		if !k.running.CompareAndSwap(false, true) {
			return fmt.Errorf("%s runs twice at the same time", c.Key)
		}
		seen := k.begun.Load()
		runs.Add(1)
		runtime.Gosched()
		if rand.IntN(8) == 0 && inRun.Add(1) < wakes {
			if err := wake(s, i); err != nil { // an event during the run
				return err
			}
		}
		if _, err := s.Depth(ctx); err != nil {
			return err
		}
		k.seen.Store(seen)
		k.running.Store(false)
		return s.Finish(ctx, owner, c, Outcome{})
	}

	var producers, runners sync.WaitGroup
	for p := range 4 {
		producers.Go(func() {
			for n := range wakes {
				if err := wake(stores[(p+n)%len(stores)], rand.IntN(keys)); err != nil {
					t.Errorf("wake: %v", err)
					return
				}
			}
		})
	}
	for r, s := range stores {
		owner := fmt.Sprint("runner-", r)
		runners.Go(func() {
			for work.Err() == nil {
				claims, err := s.Claim(work, owner, 1+rand.IntN(3))
				if err != nil {
					if work.Err() == nil { // a driver calls what was cut short an error of its own
						t.Errorf("claim: %v", err)
					}
					return
				}
				for _, c := range claims {
					if err := run(s, owner, c); err != nil {
						t.Error(err)
						stop()
					}
				}
				if len(claims) > 0 {
					continue
				}
				select {
				case <-s.Wakeups():
				case <-work.Done():
				}
			}
		})
	}
	producers.Wait()

	// At rest nothing is due and nothing runs; the signals bring that about.
	for work.Err() == nil {
		d := value(stores[0].Depth(ctx))(t)
		if d.Due == 0 && d.Running == 0 {
			break
		}
		runtime.Gosched()
	}
	if errors.Is(work.Err(), context.DeadlineExceeded) {
		t.Errorf("not at rest after a minute: %+v", value(stores[0].Depth(ctx))(t))
	}
	stop()
	runners.Wait()
	for i := range all {
		if begun, seen := all[i].begun.Load(), all[i].seen.Load(); seen != begun {
			t.Errorf("%s: the last run began after %d of %d wakes", name(i), seen, begun)
		}
	}
	t.Logf("%d runs", runs.Load())
}

// A reader that follows the events by their numbers misses none, although they
// are added by transactions that overlap.
func TestFollowingEventsMissesNone(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, w *testStore) {
		const writers, each = 6, 40
		newEvents, cancel := w.Subscribe()
		defer cancel()
		for i := range writers {
			go func() {
				for n := range each {
					if err := w.Tx(ctx, "run", func(tx *Tx) error {
						_, err := tx.AddEvents(ctx, Event{Kind: event.Kind(fmt.Sprint(i, "/", n))}, Event{Kind: event.Kind(fmt.Sprint(i, "/", n, "b"))})
						runtime.Gosched()
						return err
					}); err != nil {
						t.Errorf("add events: %v", err)
						return
					}
				}
			}()
		}
		var last int64
		for got := 0; got < 2*writers*each; {
			await(t, newEvents, "new events")
			for _, e := range value(w.Events(ctx, EventFilter{After: last, Limit: maxLimit}))(t) {
				if e.Seq <= last {
					t.Fatalf("%d comes after %d", e.Seq, last)
				}
				last = e.Seq
				got++
			}
		}
	})
}

// Two transactions that finish and wake each other's keys both get through.
func TestCrossedTransactions(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, w *testStore) {
		for range 20 {
			must(t, w.Wake(ctx, "a", "b"))
			claims := w.claim(t, me, "a", "b")
			var wg sync.WaitGroup
			for i, c := range claims {
				wg.Go(func() {
					if err := w.Tx(ctx, "run", func(tx *Tx) error {
						if err := tx.Finish(ctx, me, c, Outcome{}); err != nil {
							return err
						}
						return tx.Wake(ctx, claims[1-i].Key)
					}); err != nil {
						t.Errorf("transaction: %v", err)
					}
				})
			}
			wg.Wait()
			for _, c := range value(w.Claim(ctx, me, 10))(t) {
				must(t, w.Finish(ctx, me, c, Outcome{}))
			}
		}
	})
}
