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
	waiting map[string]map[wake.Key]bool // units, by the repository that they wait for
}

func newFetchRequests(group *cache.Group) *fetchRequests {
	return &fetchRequests{requested: cache.New(group, cache.Options[string, bool]{Name: "requested_revisions", Entries: maxRequestedRevisions}), waiting: map[string]map[wake.Key]bool{}}
}

// add notes what of a repository a unit doesn't know; true when some of it is new.
func (f *fetchRequests) add(unit wake.Key, repo string, revisions []string) bool {
	if len(revisions) == 0 {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.waiting[repo] == nil {
		f.waiting[repo] = map[wake.Key]bool{}
	}
	f.waiting[repo][unit] = true
	isNew := false
	for _, rev := range revisions {
		if _, known := f.requested.Get(repo + " " + rev); !known {
			f.requested.Put(repo+" "+rev, true)
			isNew = true
		}
	}
	return isNew
}

// takeWaiting gives, once, the units that waited for a fetch of a repository.
func (f *fetchRequests) takeWaiting(repo string) []wake.Key {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := slices.Collect(maps.Keys(f.waiting[repo]))
	delete(f.waiting, repo)
	return out
}
