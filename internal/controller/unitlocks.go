package controller

import (
	"sync"

	"github.com/liftlock/liftlock/internal/promotion"
)

// unitLocks keep a unit's own run and its merge, which run under different keys,
// apart in this process. Between processes the store's slots and the forge's
// compare-and-swap do.
type unitLocks struct {
	mu   sync.Mutex
	held map[promotion.Unit]*unitLock
}

type unitLock struct {
	sync.Mutex
	users int // who has it or waits for it
}

// lock waits for a unit; the lock is forgotten when nobody has it any more.
func (l *unitLocks) lock(u promotion.Unit) (unlock func()) {
	l.mu.Lock()
	if l.held == nil {
		l.held = map[promotion.Unit]*unitLock{}
	}
	m := l.held[u]
	if m == nil {
		m = &unitLock{}
		l.held[u] = m
	}
	m.users++
	l.mu.Unlock()
	m.Lock()
	return func() {
		m.Unlock()
		l.mu.Lock()
		defer l.mu.Unlock()
		if m.users--; m.users == 0 {
			delete(l.held, u)
		}
	}
}
