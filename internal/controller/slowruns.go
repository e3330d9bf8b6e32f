package controller

import (
	"context"
	"sync"
	"time"

	"github.com/liftlock/liftlock/internal/controller/wake"
)

const (
	// runTimeout bounds a run: past it something hangs that no deadline of its own ends,
	// and the run is told as failed and tried again. The longest that is well is a first
	// fetch, which has git.DefaultTimeout.
	runTimeout = 15 * time.Minute
	// slowAfter is how long a run keeps a worker to itself. After that another one is
	// taken on in its place: what hangs in one repository keeps no other one waiting.
	slowAfter = 30 * time.Second
	// maxSlowRuns is how many of those a repository may have. The rest of its keys waits
	// hangingDelay, and again, until one of them has ended.
	maxSlowRuns  = 4
	hangingDelay = 5 * time.Second
)

// slowRuns counts by repository the runs that have gone on for long.
type slowRuns struct {
	mu     sync.Mutex
	byRepo map[string]int
}

func (s *slowRuns) add(repo string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byRepo == nil {
		s.byRepo = map[string]int{}
	}
	if s.byRepo[repo] += n; s.byRepo[repo] == 0 {
		delete(s.byRepo, repo)
	}
}

// isHanging says that no more runs of a repository are begun until one of them has ended.
func (s *slowRuns) isHanging(repo string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byRepo[repo] >= maxSlowRuns
}

// watchRun calls leave when a run has gone on for long; ended is called at its end.
func (co *Controller) watchRun(ctx context.Context, key string, leave func()) (ended func()) {
	k, _ := wake.Parse(key)
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if !co.sleepFor(ctx, slowAfter) {
			return
		}
		co.slow.add(k.Repository, 1)
		defer co.slow.add(k.Repository, -1)
		leave()
		<-ctx.Done()
	}()
	return func() {
		cancel()
		<-done
	}
}
