package store

import (
	"sync"
)

// The subjects that processes on one PostgreSQL database tell each other about.
const (
	subjectWakes  = "wakes"
	subjectEvents = "events"
	subjectUnits  = "units"
)

// signals tells this process's runner and subscribers that there is news. A
// signal carries nothing, so one that is pending already says enough.
type signals struct {
	wakes chan struct{}

	mu   sync.Mutex
	subs map[chan struct{}]subscription
}

// subscription says what a subscriber is signalled of.
type subscription struct{ units bool } // besides events

func newSignals() *signals {
	return &signals{wakes: make(chan struct{}, 1), subs: map[chan struct{}]subscription{}}
}

// notifySubject signals the subject; an unknown one (of a newer replica) is ignored.
func (s *signals) notifySubject(subject string) {
	switch subject {
	case subjectWakes:
		trySignal(s.wakes)
	case subjectEvents, subjectUnits:
		s.mu.Lock()
		defer s.mu.Unlock()
		for c, of := range s.subs {
			if of.units || subject == subjectEvents {
				trySignal(c)
			}
		}
	}
}

func (s *signals) subscribe(of subscription) (<-chan struct{}, func()) {
	c := make(chan struct{}, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.subs[c] = of
	return c, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.subs, c)
	}
}

func trySignal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
