package controller

import (
	"sync"

	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/store"
)

// pendingWakes are keys about which something was heard from Argo CD, or that a delivery was
// refused, and that are not in the store yet: the watch doesn't wait for a commit, a burst of
// changes is one, and a delivery is refused when the store can't be written.
type pendingWakes struct {
	mu       sync.Mutex
	keys     map[wake.Key]store.Urgency
	inputs   bool          // what targets depend on besides Git may have changed
	notified chan struct{} // holds a value while there is something to take
}

func newPendingWakes() *pendingWakes {
	return &pendingWakes{keys: map[wake.Key]store.Urgency{}, notified: make(chan struct{}, 1)}
}

// add notes keys to wake, and whether the targets' inputs may have changed.
func (p *pendingWakes) add(inputs bool, urgency store.Urgency, keys ...wake.Key) {
	if !inputs && len(keys) == 0 {
		return
	}
	p.mu.Lock()
	p.inputs = p.inputs || inputs
	for _, k := range keys {
		if was, ok := p.keys[k]; !ok || urgency < was {
			p.keys[k] = urgency
		}
	}
	p.mu.Unlock()
	p.notify()
}

// notify says that there is something to take.
func (p *pendingWakes) notify() {
	select {
	case p.notified <- struct{}{}:
	default:
	}
}

// isEmpty says that there is nothing to take.
func (p *pendingWakes) isEmpty() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.inputs && len(p.keys) == 0
}

// take gives what was added since the last time, by urgency.
func (p *pendingWakes) take() (inputs bool, keys urgentKeys) {
	p.mu.Lock()
	defer p.mu.Unlock()
	inputs, keys = p.inputs, urgentKeys{}
	for k, urgency := range p.keys {
		keys.add(urgency, k)
	}
	p.inputs = false
	clear(p.keys)
	return inputs, keys
}
