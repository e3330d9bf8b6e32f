package server

import "time"

// retryTimer waits for the next try to reach a repository, or until somebody has heard that it
// may succeed now. It implements backoff.Timer.
type retryTimer struct {
	repo  string         // "forge:owner/name"
	fired chan time.Time // has room for one
	timer *time.Timer    // nil: it wasn't started
}

// newRetryTimer makes one that tryAgain fires, until dropRetryTimer.
func (s *Server) newRetryTimer(repo string) *retryTimer {
	t := &retryTimer{repo: repo, fired: make(chan time.Time, 1)}
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

// tryAgain has a repository tried at once if it isn't reached yet.
func (s *Server) tryAgain(repo string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for t := range s.connecting {
		if t.repo == repo {
			t.fire()
		}
	}
}

// Start begins to wait.
func (r *retryTimer) Start(d time.Duration) { r.timer = time.AfterFunc(d, r.fire) }

// Stop ends the wait.
func (r *retryTimer) Stop() {
	if r.timer != nil {
		r.timer.Stop()
	}
}

// C has a value when the wait is over.
func (r *retryTimer) C() <-chan time.Time { return r.fired }

func (r *retryTimer) fire() {
	select {
	case r.fired <- time.Now():
	default: // it has fired already
	}
}
