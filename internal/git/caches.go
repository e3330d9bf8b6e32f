package git

import "github.com/liftlock/liftlock/internal/cache"

const (
	// maxFolderBytes bounds the listings of folders that are kept, at about
	// listedEntryBytes for an entry.
	maxFolderBytes   = 25 << 20
	listedEntryBytes = 120
	maxFolders       = 200_000
	// maxRoots bounds the commits of which the root folder is known.
	maxRoots = 100_000
	// maxAncestries bounds the answers of IsAncestor that are kept: one for each
	// environment of a large fleet, some 10 MB.
	maxAncestries = 50_000
	// maxDifferences bounds those of Changed, and maxDifference the paths in one.
	maxDifferences = 1000
	maxDifference  = 1000
	// maxWritten bounds the commits that are known to have been written: a fleet's open
	// promotions are composed anew at every look.
	maxWritten = 50_000
)

// caches are what is known of objects and of pairs of commits. Neither ever
// changes: commits that share folders share their listings, and what git was
// asked about two commits needs no program the next time.
type caches struct {
	folders     *cache.Cache[string, []treeEntry] // by tree id
	roots       *cache.Cache[string, string]      // commit id → its tree's id
	ancestries  *cache.Cache[commitPair, bool]
	differences *cache.Cache[commitPair, []FileChange]
	written     *cache.Cache[writtenSpec, string] // by what was asked for, the commit
}

type commitPair struct{ a, b string }

func newCaches(group *cache.Group) caches {
	return caches{
		folders: cache.New(group, cache.Options[string, []treeEntry]{Name: "git-folders", Entries: maxFolders, Bytes: maxFolderBytes,
			Size: func(_ string, list []treeEntry) int64 { return int64(1+len(list)) * listedEntryBytes }}),
		roots:       cache.New(group, cache.Options[string, string]{Name: "git-roots", Entries: maxRoots}),
		ancestries:  cache.New(group, cache.Options[commitPair, bool]{Name: "git-ancestries", Entries: maxAncestries}),
		differences: cache.New(group, cache.Options[commitPair, []FileChange]{Name: "git-differences", Entries: maxDifferences}),
		written:     cache.New(group, cache.Options[writtenSpec, string]{Name: "git-written", Entries: maxWritten}),
	}
}

// forgetAll is for a repository whose objects are gone.
func (c *caches) forgetAll() {
	c.folders.Clear()
	c.roots.Clear()
	c.ancestries.Clear()
	c.differences.Clear()
	c.written.Clear()
}
