package controller

import (
	"maps"
	"slices"
	"sync"

	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/store"
)

// pendingWakes are keys about which something was heard from Argo CD, or that a delivery was
// refused, and that are not in the store yet: the watch doesn't wait for a commit, a burst of
// changes is one, and a delivery is refused when the store can't be written.
type pendingWakes struct {
	mu       sync.Mutex
	keys     map[wake.Key]pendingWake
	inputs   bool          // what targets depend on besides Git may have changed
	notified chan struct{} // holds a value while there is something to take
}

// pendingWake is why a key is to be woken.
type pendingWake struct {
	urgency store.Urgency
	// states are the digests of the newest states of Applications, where those are the only
	// reason: a run that was made with all of them is as good. nil: there is another reason.
	states map[applicationID]string
}

func newPendingWakes() *pendingWakes {
	return &pendingWakes{keys: map[wake.Key]pendingWake{}, notified: make(chan struct{}, 1)}
}

// add notes keys to wake, and whether the targets' inputs may have changed.
func (p *pendingWakes) add(inputs bool, urgency store.Urgency, keys ...wake.Key) {
	if !inputs && len(keys) == 0 {
		return
	}
	p.mu.Lock()
	p.inputs = p.inputs || inputs
	for _, k := range keys {
		p.merge(k, pendingWake{urgency: urgency})
	}
	p.mu.Unlock()
	p.notify()
}

// addState notes keys to wake because an Application has a new state.
func (p *pendingWakes) addState(urgency store.Urgency, id applicationID, digest string, keys ...wake.Key) {
	if digest == "" {
		p.add(false, urgency, keys...)
		return
	}
	p.mu.Lock()
	for _, k := range keys {
		p.merge(k, pendingWake{urgency, map[applicationID]string{id: digest}})
	}
	p.mu.Unlock()
	p.notify()
}

// restore notes again what was taken and could not be written.
func (p *pendingWakes) restore(inputs bool, keys map[wake.Key]pendingWake) {
	p.mu.Lock()
	p.inputs = p.inputs || inputs
	for k, w := range keys {
		newer, ok := p.keys[k]
		p.keys[k] = w
		if ok {
			p.merge(k, newer)
		}
	}
	p.mu.Unlock()
	p.notify()
}

// merge adds another reason for a key.
func (p *pendingWakes) merge(k wake.Key, w pendingWake) {
	was, ok := p.keys[k]
	if ok {
		w.urgency = min(w.urgency, was.urgency)
		if was.states == nil || w.states == nil {
			w.states = nil
		} else {
			newer := w.states
			w.states = maps.Clone(was.states)
			maps.Copy(w.states, newer)
		}
	}
	p.keys[k] = w
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

// take gives what was added since the last time.
func (p *pendingWakes) take() (inputs bool, keys map[wake.Key]pendingWake) {
	p.mu.Lock()
	defer p.mu.Unlock()
	inputs, keys = p.inputs, p.keys
	p.inputs, p.keys = false, map[wake.Key]pendingWake{}
	return inputs, keys
}

// digests are those of a key's states, sorted.
func (w pendingWake) digests() []string { return slices.Sorted(maps.Values(w.states)) }
