package store

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/world/storetest"
)

func benchEachDatabase(b *testing.B, f func(b *testing.B, s *Store)) {
	b.Run("memory", func(b *testing.B) { f(b, OpenMemory(Options{})) })
	b.Run("sqlite", func(b *testing.B) { f(b, mustOpen(b, onSQLiteAddress(b), Options{})) })
	b.Run("postgres", func(b *testing.B) { f(b, mustOpen(b, storetest.PostgresSchema(b), Options{})) })
}

func perSecond(b *testing.B) { b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "/s") }

func BenchmarkWake(b *testing.B) {
	benchEachDatabase(b, func(b *testing.B, s *Store) {
		for i := 0; b.Loop(); i++ {
			must(b, s.Wake(ctx, fmt.Sprint("key-", i)))
		}
		perSecond(b)
	})
}

// BenchmarkAccept is a burst of deliveries: on SQLite they share commits.
func BenchmarkAccept(b *testing.B) {
	benchEachDatabase(b, func(b *testing.B, s *Store) {
		var n atomic.Int64
		b.SetParallelism(64)
		b.RunParallel(func(p *testing.PB) {
			for p.Next() {
				id := fmt.Sprint(n.Add(1))
				if _, err := s.Accept(ctx, Delivery{Forge: "hub", ID: id, ReceivedAt: time.Now(), Keys: []string{"key-" + id}}); err != nil {
					b.Error(err)
				}
			}
		})
		perSecond(b)
	})
}

// BenchmarkWakeToWork is one key's way: woken, signalled, claimed, finished.
func BenchmarkWakeToWork(b *testing.B) {
	benchEachDatabase(b, func(b *testing.B, s *Store) {
		var claiming time.Duration
		for b.Loop() {
			begun := time.Now()
			must(b, s.Wake(ctx, "key"))
			<-s.Wakeups()
			c := value(s.Claim(ctx, me, 1))(b)
			claiming += time.Since(begun)
			if len(c) > 0 { // none: the signal was the last finish's
				must(b, s.Finish(ctx, me, c[0], Outcome{}))
			}
		}
		b.ReportMetric(float64(claiming.Microseconds())/float64(b.N), "µs-to-work")
	})
}

// BenchmarkClaimAmongMany claims from a queue that holds many keys for later.
func BenchmarkClaimAmongMany(b *testing.B) {
	benchEachDatabase(b, func(b *testing.B, s *Store) {
		must(b, s.Tx(ctx, "fill", func(tx *Tx) error {
			for i := range 20_000 {
				if err := tx.WakeAt(ctx, time.Now().Add(time.Hour), fmt.Sprint("later-", i)); err != nil {
					return err
				}
			}
			return nil
		}))
		for b.Loop() {
			must(b, s.Wake(ctx, "key"))
			c := value(s.Claim(ctx, me, 1))(b)
			must(b, s.Finish(ctx, me, c[0], Outcome{}))
		}
	})
}
