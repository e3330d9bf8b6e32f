package lock

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
)

// users is how many hold a key or wait for it.
func (k *Keyed[K]) users(key K) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	if h := k.held[key]; h != nil {
		return h.users
	}
	return 0
}

func take(t *testing.T, l *Keyed[string], key string) (unlock func()) {
	t.Helper()
	unlock, err := l.Lock(t.Context(), key)
	if err != nil {
		t.Error(err)
		return func() {}
	}
	return unlock
}

// TestOneAtATime holds that a key has one holder at a time, and that others don't wait.
func TestOneAtATime(t *testing.T) {
	t.Parallel()
	var l Keyed[string]
	held := take(t, &l, "web")
	take(t, &l, "api")() // is not waited for
	running, most := 0, 0
	var wg sync.WaitGroup
	for range 40 {
		wg.Go(func() {
			defer take(t, &l, "web")()
			running++ // the race detector sees when this isn't alone
			most = max(most, running)
			running--
		})
	}
	for l.users("web") < 41 {
		runtime.Gosched()
	}
	held()
	wg.Wait()
	if most != 1 {
		t.Errorf("%d held it at once", most)
	}
	if len(l.held) != 0 {
		t.Errorf("%d keys are kept that nobody has", len(l.held))
	}
}

// TestWaitEndsWithTheContext holds that a waiting caller gives up with the context, with its
// reason, and that others don't notice.
func TestWaitEndsWithTheContext(t *testing.T) {
	t.Parallel()
	var l Keyed[string]
	held := take(t, &l, "web")
	ctx, cancel := context.WithCancelCause(t.Context())
	done, late := make(chan error), errors.New("it took too long")
	go func() {
		_, err := l.Lock(ctx, "web")
		done <- err
	}()
	for l.users("web") < 2 {
		runtime.Gosched()
	}
	cancel(late)
	if err := <-done; !errors.Is(err, late) {
		t.Errorf("it gave up with %v", err)
	}
	if n := l.users("web"); n != 1 {
		t.Errorf("%d have it or wait for it", n)
	}
	held()
	unlock, err := l.Lock(ctx, "web")
	if err != nil {
		t.Fatalf("what is free is not got: %v", err)
	}
	unlock()
}
