package controller

import (
	"sync"
	"time"

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

// pendingWake is how urgent a wake is, and how long it waits for what else is heard.
type pendingWake struct {
	urgency store.Urgency
	delay   time.Duration
}

// burstDelay is how long news of Argo CD waits for more that neither breaks anything nor is what a
// unit waits for: it writes the Applications of one sync several times within a moment, and
// every process hears of each.
const burstDelay = 200 * time.Millisecond

var (
	wakeUrgently   = pendingWake{urgency: store.Urgent}                          // something breaks
	wakeAtOnce     = pendingWake{urgency: store.Normal}                          // what was waited for is there
	wakeAfterBurst = pendingWake{urgency: store.Normal, delay: burstDelay}       // more may come
	wakeAfterDelay = pendingWake{urgency: store.Background, delay: refusalDelay} // a delivery was refused
)

// wakesByKind are keys to wake, by how.
type wakesByKind map[pendingWake][]wake.Key

func newPendingWakes() *pendingWakes {
	return &pendingWakes{keys: map[wake.Key]pendingWake{}, notified: make(chan struct{}, 1)}
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
		next := how
		if was, ok := p.keys[k]; ok {
			next = pendingWake{urgency: min(was.urgency, how.urgency), delay: min(was.delay, how.delay)}
		}
		p.keys[k] = next
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

// take gives what was added since the last time.
func (p *pendingWakes) take() (inputs bool, wakes wakesByKind) {
	p.mu.Lock()
	defer p.mu.Unlock()
	inputs, wakes = p.inputs, wakesByKind{}
	for k, how := range p.keys {
		wakes[how] = append(wakes[how], k)
	}
	p.inputs = false
	clear(p.keys)
	return inputs, wakes
}
