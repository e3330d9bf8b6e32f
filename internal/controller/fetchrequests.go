package controller

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/liftlock/liftlock/internal/cache"
	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/wake"
)

// maxRequestedRevisions bounds the memory of revisions that were fetched for.
const maxRequestedRevisions = 10_000

// fetchRequests remember for which revisions, which Argo CD reports and Git doesn't
// know, this process has fetched a repository. A revision that a fetch didn't bring (a
// hydrated branch, another repository) is fetched for once.
type fetchRequests struct {
	requested *cache.Cache[string, bool]

	mu     sync.Mutex
	count  int            // of fetches
	newest map[string]int // by repository: which of them was its newest
}

func newFetchRequests(group *cache.Group) *fetchRequests {
	return &fetchRequests{requested: cache.New(group, cache.Options[string, bool]{Name: "requested_revisions",
		Entries: maxRequestedRevisions}), newest: map[string]int{}}
}

// isNew says that a repository wasn't fetched for some of these revisions.
func (f *fetchRequests) isNew(repo string, revisions []string) bool {
	return slices.ContainsFunc(revisions, func(rev string) bool {
		_, known := f.requested.Get(repo + " " + rev)
		return !known
	})
}

// noteFetch notes that a repository was fetched.
func (f *fetchRequests) noteFetch(repo string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count++
	f.newest[repo] = f.count
}

// remember notes for which revisions a repository was fetched.
func (f *fetchRequests) remember(repo string, revisions []string) {
	for _, rev := range revisions {
		f.requested.Put(repo+" "+rev, true)
	}
}

// fetches counts them, for fetchedSince.
func (f *fetchRequests) fetches() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.count
}

// fetchedSince says that a repository was fetched since there were so many fetches.
func (f *fetchRequests) fetchedSince(repo string, count int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.newest[repo] > count
}

// fetchUnknown fetches where Argo CD is ahead of this process's mirror at the look. The push's own
// event may be lost or late, and another process, with a mirror of its own, may serve it. again is
// true where there are new commits; fetches is how many fetches there were before the look.
func (co *Controller) fetchUnknown(ctx context.Context, ev *facts.Evaluation, fetches int) (again bool, err error) {
	unknown := map[string][]string{}
	for _, c := range ev.Components {
		for repo, list := range c.FetchRequests {
			unknown[repo] = append(unknown[repo], list...)
		}
	}
	for _, repo := range slices.Sorted(maps.Keys(unknown)) {
		if co.fetchRequests.isNew(repo, unknown[repo]) {
			if err := co.fetchFor(ctx, repo, unknown[repo]); err != nil {
				return again, err
			}
		}
		again = again || co.fetchRequests.fetchedSince(repo, fetches)
	}
	return again, nil
}

// fetchFor fetches a repository for some revisions, and wakes it: the other fetched commits are
// news for others.
func (co *Controller) fetchFor(ctx context.Context, repo string, revisions []string) error {
	if r, _ := co.repository(repo); r != nil {
		if _, err := co.fetch(ctx, r); err != nil {
			return err
		}
	}
	co.fetchRequests.remember(repo, revisions)
	return co.opts.Store.Wake(ctx, wake.ForRepository(repo).String())
}
