// Package lock separates callers that wait for a forge, for git or for a cluster while they hold a
// lock. Others that wait for such a lock give up with the context, so that a call that hangs holds
// up no other. For state in memory there is sync.Mutex.
package lock

import (
	"context"
	"fmt"
	"sync"
)

// Keyed is a lock for each key. The zero value is ready, and a key that nobody holds or
// waits for takes no memory. It is safe for concurrent use.
type Keyed[K comparable] struct {
	mu   sync.Mutex
	held map[K]*holder
}

type holder struct {
	token chan struct{} // has a value while somebody holds it
	users int           // who holds it or waits for it
}

// Lock waits for a key until it is free or the context ends, which is the only error; one
// that is free is got in any case. unlock is called once.
func (k *Keyed[K]) Lock(ctx context.Context, key K) (unlock func(), err error) {
	k.mu.Lock()
	if k.held == nil {
		k.held = map[K]*holder{}
	}
	h := k.held[key]
	if h == nil {
		h = &holder{token: make(chan struct{}, 1)}
		k.held[key] = h
	}
	h.users++
	k.mu.Unlock()
	select {
	case h.token <- struct{}{}:
	default:
		select {
		case h.token <- struct{}{}:
		case <-ctx.Done():
			k.leave(key, h)
			return nil, fmt.Errorf("wait for who is at %v: %w", key, context.Cause(ctx))
		}
	}
	return func() {
		<-h.token
		k.leave(key, h)
	}, nil
}

func (k *Keyed[K]) leave(key K, h *holder) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if h.users--; h.users == 0 {
		delete(k.held, key)
	}
}
