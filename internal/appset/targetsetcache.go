package appset

import (
	"github.com/liftlock/liftlock/internal/cache"
)

const (
	// maxCachedTargets bounds the targets of all sets that are kept.
	maxCachedTargets = 20_000
	// targetBytes is what a target takes in a list, without what it points to.
	targetBytes = 512
)

// newTargetSetCache holds the last target sets by what they were resolved from. A
// commit's files never change, so what they resolve to doesn't either. One that
// is too large by itself takes all the room.
func newTargetSetCache(group *cache.Group, most int) *cache.Cache[string, *TargetSet] {
	return cache.New(group, cache.Options[string, *TargetSet]{Name: "appset-targets", Entries: most, Bytes: maxCachedTargets * targetBytes,
		Size: func(_ string, f *TargetSet) int64 { return int64(min(len(f.Targets), maxCachedTargets)) * targetBytes }})
}

// cacheKey identifies everything that an answer depends on; "" for a tree that is
// not a commit's.
func (in *Input) cacheKey() (string, error) {
	if in.Revision == "" {
		return "", nil
	}
	heads := make(map[string]string, len(in.Branches))
	for branch, e := range in.Branches {
		heads[branch] = e.Commit
	}
	scope, err := in.Scope.digest()
	if err != nil {
		return "", err
	}
	return digestValues(in.Pipeline, in.Pipeline.File, in.Revision, in.Branch, heads, in.RepoURLs, in.Clusters, in.Clusters != nil,
		in.Placements,
		in.Projects, in.Projects != nil, in.Globbing, in.Version, in.ArgoCDs, in.Main, in.liveCacheKey(), in.Generators,
		in.OpenExternal != nil, in.Build != nil, in.Manifests, scope)
}
