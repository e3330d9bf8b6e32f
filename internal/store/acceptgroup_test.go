package store

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"
)

// blockWriter keeps the writer busy until it is called.
func blockWriter(t *testing.T, w *testStore) (release func()) {
	t.Helper()
	started, free, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- w.Tx(ctx, "busy", func(*Tx) error {
			close(started)
			<-free
			return nil
		})
	}()
	<-started
	return func() {
		close(free)
		must(t, <-ended)
	}
}

// awaitWaiting waits until a delivery is being written, and so many wait for the next
// transaction.
func (ag *acceptGroup) awaitWaiting(n int) {
	for is := false; !is; runtime.Gosched() {
		ag.mu.Lock()
		is = ag.busy && len(ag.waiting) == n
		ag.mu.Unlock()
	}
}

// Deliveries that come while another is being written share a transaction, and each is
// told whether it was known.
func TestAcceptsShareATransaction(t *testing.T) {
	var mu sync.Mutex
	commits := 0
	w := onSQLite(t)
	must(t, w.Close())
	w.Store = mustOpen(t, w.dsn, Options{OnCommit: func(name string, before bool) {
		mu.Lock()
		defer mu.Unlock()
		if name == "accept" && before {
			commits++
		}
	}})
	release := blockWriter(t, w)
	const others = 20
	results := make(chan bool, 1+others)
	accept := func(id string) {
		fresh, err := w.Accept(ctx, Delivery{Forge: "hub", ID: id, ReceivedAt: time.Now(), Keys: []string{"key " + id}})
		if err != nil {
			t.Error(err)
		}
		results <- fresh
	}
	go accept("0")
	w.accepts.awaitWaiting(0)
	for i := range others {
		go accept(fmt.Sprint(i / 2)) // each twice
	}
	w.accepts.awaitWaiting(others)
	release()
	fresh := 0
	for range 1 + others {
		if <-results {
			fresh++
		}
	}
	assertEqual(t, fresh, others/2)
	assertEqual(t, len(value(w.Claim(ctx, "me", 100))(t)), others/2)
	mu.Lock()
	defer mu.Unlock()
	assertEqual(t, commits, 2)
}

// TestAcceptsFailAlone holds that one that writes for others and gives up, or fails, takes no other
// with it.
func TestAcceptsFailAlone(t *testing.T) {
	w := onSQLite(t)
	release := blockWriter(t, w)
	results := make(chan error, 3)
	accept := func(ctx context.Context, id string) {
		_, err := w.Accept(ctx, Delivery{Forge: "hub", ID: id, ReceivedAt: time.Now()})
		results <- err
	}
	leader, giveUp := context.WithCancel(ctx)
	go accept(ctx, "first")
	w.accepts.awaitWaiting(0)
	go accept(leader, "leader")
	w.accepts.awaitWaiting(1)
	go accept(ctx, "other")
	w.accepts.awaitWaiting(2)
	giveUp()
	release()
	failed := 0
	for range 3 {
		if err := <-results; errors.Is(err, context.Canceled) {
			failed++
		} else {
			must(t, err)
		}
	}
	assertEqual(t, failed, 1)
	for id, want := range map[string]bool{"first": true, "leader": false, "other": true} {
		assertEqual(t, value(w.HasDelivery(ctx, "hub", id))(t), want)
	}
}

// TestAcceptThatPanics holds that a write that doesn't return leaves none waiting.
func TestAcceptThatPanics(t *testing.T) {
	g := &acceptGroup{}
	write := func(context.Context, []*acceptance) error { panic("broken") }
	results := make(chan error, 3)
	accept := func() {
		defer func() {
			if p := recover(); p != nil {
				results <- nil
			}
		}()
		a, alone := g.accept(ctx, Delivery{}, write)
		if alone {
			t.Error("it was told that it was alone")
		}
		results <- a.err
	}
	started, free := make(chan struct{}), make(chan struct{})
	go func() {
		defer func() { results <- recover().(error) }()
		g.accept(ctx, Delivery{}, func(context.Context, []*acceptance) error {
			close(started)
			<-free
			panic(errAborted)
		})
	}()
	<-started
	go accept()
	g.awaitWaiting(1)
	go accept()
	g.awaitWaiting(2)
	close(free)
	panicked := 0
	for range 3 {
		if err := <-results; err == nil {
			panicked++
		} else if !errors.Is(err, errAborted) {
			t.Error(err)
		}
	}
	assertEqual(t, panicked, 1)
	assertEqual(t, g.busy, false)
}
