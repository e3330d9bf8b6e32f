package controller

import (
	"maps"
	"slices"
	"sync"

	"github.com/liftlock/liftlock/internal/controller/wake"
)

// pendingWakes are keys about which something was heard from Argo CD and that are
// not in the store yet: the watch doesn't wait for a commit, and a burst of
// changes is one.
type pendingWakes struct {
	mu       sync.Mutex
	keys     map[wake.Key]bool
	inputs   bool          // what targets depend on besides Git may have changed
	notified chan struct{} // holds a value while there is something to take
}

func newPendingWakes() *pendingWakes {
	return &pendingWakes{keys: map[wake.Key]bool{}, notified: make(chan struct{}, 1)}
}

// add notes keys to wake, and whether the targets' inputs may have changed.
func (p *pendingWakes) add(inputs bool, keys ...wake.Key) {
	if !inputs && len(keys) == 0 {
		return
	}
	p.mu.Lock()
	p.inputs = p.inputs || inputs
	for _, k := range keys {
		p.keys[k] = true
	}
	p.mu.Unlock()
	select {
	case p.notified <- struct{}{}:
	default:
	}
}

// take gives what was added since the last time.
func (p *pendingWakes) take() (inputs bool, keys []wake.Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	inputs, keys = p.inputs, slices.Collect(maps.Keys(p.keys))
	p.inputs = false
	clear(p.keys)
	return inputs, keys
}
