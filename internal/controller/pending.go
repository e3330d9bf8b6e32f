package controller

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/store"
)

// pendingWakes are keys that are not in the store yet, because of news from Argo CD or a refused
// delivery. The watch doesn't wait for a commit, a burst of changes is one, and a delivery is
// refused when the store can't be written.
type pendingWakes struct {
	mu       sync.Mutex
	keys     map[wake.Key]pendingKey
	inputs   bool          // what targets depend on besides Git may have changed
	notified chan struct{} // holds a value while there is something to take
}

// pendingKey is how a key is to be woken, and why.
type pendingKey struct {
	how pendingWake
	// states are the digests of the newest states of Applications, where those are the only
	// reason: a run that was made with all of them is as good. nil: there is another reason.
	states map[applicationID]string
}

// digests are those of a key's states, sorted.
func (p pendingKey) digests() []string { return slices.Sorted(maps.Values(p.states)) }

// pendingWake is how urgent a wake is, and how long it waits for what else is heard; one that
// waits is never urgent.
type pendingWake struct {
	urgency store.Urgency
	delay   time.Duration
}

// burstDelay is how long news of Argo CD waits for more, unless something breaks or a unit waits
// for it. Argo CD writes the Applications of one sync several times within a moment, and every
// process hears of each.
const burstDelay = 200 * time.Millisecond

var (
	wakeUrgently   = pendingWake{urgency: store.Urgent}                      // something breaks
	wakeAtOnce     = pendingWake{urgency: store.Normal}                      // what was waited for is there
	wakeAfterBurst = pendingWake{urgency: store.Normal, delay: burstDelay}   // more may come
	wakeAfterDelay = pendingWake{urgency: store.Normal, delay: refusalDelay} // a delivery was refused
)

// wakesByKind are keys to wake, by how.
type wakesByKind map[pendingWake][]wake.Key

func (w wakesByKind) add(how pendingWake, keys ...wake.Key) { w[how] = append(w[how], keys...) }

func newPendingWakes() *pendingWakes {
	return &pendingWakes{keys: map[wake.Key]pendingKey{}, notified: make(chan struct{}, 1)}
}

// add notes keys to wake, and whether the targets' inputs may have changed. A key that is there
// already keeps the greater urgency and the shorter delay.
func (p *pendingWakes) add(inputs bool, how pendingWake, keys ...wake.Key) {
	if !inputs && len(keys) == 0 {
		return
	}
	p.mu.Lock()
	p.inputs = p.inputs || inputs
	for _, k := range keys {
		p.merge(k, pendingKey{how: how})
	}
	p.mu.Unlock()
	p.notify()
}

// addState notes a key to wake because an Application has a new state, of which there is a digest.
func (p *pendingWakes) addState(how pendingWake, id applicationID, digest string, key wake.Key) {
	p.mu.Lock()
	p.merge(key, pendingKey{how, map[applicationID]string{id: digest}})
	p.mu.Unlock()
	p.notify()
}

// restore notes again what was taken and could not be written.
func (p *pendingWakes) restore(inputs bool, keys map[wake.Key]pendingKey) {
	p.mu.Lock()
	p.inputs = p.inputs || inputs
	for k, before := range keys {
		newer, ok := p.keys[k]
		p.keys[k] = before
		if ok {
			p.merge(k, newer)
		}
	}
	p.mu.Unlock()
	p.notify()
}

// merge adds another reason for a key.
func (p *pendingWakes) merge(key wake.Key, next pendingKey) {
	if was, ok := p.keys[key]; ok {
		next.how = pendingWake{urgency: min(was.how.urgency, next.how.urgency), delay: min(was.how.delay, next.how.delay)}
		if was.states == nil || next.states == nil {
			next.states = nil
		} else {
			newer := next.states
			next.states = maps.Clone(was.states)
			maps.Copy(next.states, newer)
		}
	}
	p.keys[key] = next
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
func (p *pendingWakes) take() (inputs bool, keys map[wake.Key]pendingKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	inputs, keys = p.inputs, p.keys
	p.inputs, p.keys = false, map[wake.Key]pendingKey{}
	return inputs, keys
}
