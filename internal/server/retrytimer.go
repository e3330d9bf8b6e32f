package server

import "time"

// retryTimer waits for the next try to reach a repository, or until somebody has heard that it
// may succeed now. It implements backoff.Timer.
type retryTimer struct {
	forge string
	fired chan time.Time // has room for one
	timer *time.Timer    // nil: it wasn't started
}

// newRetryTimer makes one that tryAgain fires, until dropRetryTimer.
func (s *Server) newRetryTimer(forge string) *retryTimer {
	t := &retryTimer{forge: forge, fired: make(chan time.Time, 1)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.connecting[t] = true
	return t
}

func (s *Server) dropRetryTimer(t *retryTimer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.connecting, t)
}

// tryAgain has the repositories of a forge that aren't reached yet tried at once.
func (s *Server) tryAgain(forge string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for t := range s.connecting {
		if t.forge == forge {
			t.fire()
		}
	}
}

// Start begins to wait.
func (t *retryTimer) Start(d time.Duration) { t.timer = time.AfterFunc(d, t.fire) }

// Stop ends the wait.
func (t *retryTimer) Stop() {
	if t.timer != nil {
		t.timer.Stop()
	}
}

// C has a value when the wait is over.
func (t *retryTimer) C() <-chan time.Time { return t.fired }

func (t *retryTimer) fire() {
	select {
	case t.fired <- time.Now():
	default: // it has fired already
	}
}
