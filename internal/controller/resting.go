package controller

import (
	"maps"
	"sync"
	"time"
)

const (
	// restingDelay is how long a key waits whose repository rests, where nothing wakes it.
	restingDelay = 10 * time.Minute
	// restCheckInterval is how often it is read at the most whether a repository in which
	// something was refused is to rest.
	restCheckInterval = time.Minute
)

// restingRepos are the repositories in which nothing is done for one reason, as far as this process
// has met that: whoever doesn't know it meets it by itself.
type restingRepos struct {
	mu      sync.Mutex
	since   map[string]time.Time // by repository
	checked map[string]time.Time // when it was last read of one that doesn't rest
}

func newRestingRepos() *restingRepos {
	return &restingRepos{since: map[string]time.Time{}, checked: map[string]time.Time{}}
}

func (a *restingRepos) rests(repo string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.since[repo].IsZero()
}

// all are the repositories that rest, and since when that is known.
func (a *restingRepos) all() map[string]time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.since)
}

// mayCheck says whether it is time to read of a repository whether it is to rest, and counts
// that as done.
func (a *restingRepos) mayCheck(repo string, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now.Sub(a.checked[repo]) < restCheckInterval {
		return false
	}
	a.checked[repo] = now
	return true
}

// set remembers whether a repository rests, and says whether that is news.
func (a *restingRepos) set(repo string, rests bool, now time.Time) (changed bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	was := !a.since[repo].IsZero()
	switch {
	case rests && !was:
		a.since[repo] = now
	case !rests:
		delete(a.since, repo)
	}
	return was != rests
}
