package controller

import (
	"maps"
	"slices"
	"sync"

	"github.com/liftlock/liftlock/internal/cache"
	"github.com/liftlock/liftlock/internal/controller/wake"
)

// maxRequestedRevisions bounds the memory of revisions that were fetched for.
const maxRequestedRevisions = 10_000

// fetchRequests remember for which revisions, which Argo CD reports and Git doesn't
// know, a repository was fetched, and which units wait for that. A revision that a
// fetch didn't bring (a hydrated branch, another repository) is fetched for once.
type fetchRequests struct {
	requested *cache.Cache[string, bool]

	mu      sync.Mutex
	waiting map[wake.Key]bool // units
}

func newFetchRequests(group *cache.Group) *fetchRequests {
	return &fetchRequests{requested: cache.New(group, cache.Options[string, bool]{Name: "requested_revisions", Entries: maxRequestedRevisions}), waiting: map[wake.Key]bool{}}
}

// add notes the unknown revisions of a unit; true when one of them is new.
func (f *fetchRequests) add(unit wake.Key, revisions []string) bool {
	if len(revisions) == 0 {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiting[unit] = true
	isNew := false
	for _, rev := range revisions {
		if _, known := f.requested.Get(rev); !known {
			f.requested.Put(rev, true)
			isNew = true
		}
	}
	return isNew
}

// takeWaiting gives, once, the units that waited for a fetch of a repository.
func (f *fetchRequests) takeWaiting(repo string) []wake.Key {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := slices.DeleteFunc(slices.Collect(maps.Keys(f.waiting)), func(k wake.Key) bool { return k.Repository != repo })
	for _, k := range out {
		delete(f.waiting, k)
	}
	return out
}
