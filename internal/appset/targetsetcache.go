package appset

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
)

// maxCachedTargets bounds the targets of all fleets that are kept: their lists alone
// are 5 MB for 10,000. The last fleet is kept however large it is.
const maxCachedTargets = 20_000

// targetSetCache holds the last fleets by what they were resolved from. A commit's
// files never change, so its fleet doesn't either.
type targetSetCache struct {
	mu       sync.Mutex
	capacity int
	size     int // targets
	sets     map[string]*TargetSet
	order    []string // oldest first
}

func newTargetSetCache(most int) *targetSetCache {
	return &targetSetCache{capacity: most, sets: map[string]*TargetSet{}}
}

func (k *targetSetCache) get(key string) *TargetSet {
	if key == "" {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.sets[key]
}

func (k *targetSetCache) put(key string, f *TargetSet) {
	if key == "" {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.evictKey(key)
	k.order = append(k.order, key)
	k.sets[key] = f
	k.size += len(f.Targets)
	for len(k.order) > k.capacity || k.size > maxCachedTargets && len(k.order) > 1 {
		k.evictKey(k.order[0])
	}
}

func (k *targetSetCache) evictKey(key string) {
	if f := k.sets[key]; f != nil {
		k.size -= len(f.Targets)
		delete(k.sets, key)
		k.order = slices.DeleteFunc(k.order, func(o string) bool { return o == key })
	}
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
	raw, err := json.Marshal(struct {
		Pipeline         any
		File             string
		Revision, Branch string
		Branches         map[string]string
		URLs             []string
		Clusters         []Cluster
		KnowsClusters    bool
		Projects         []string
		KnowsProjects    bool
		Globbing         string
		ArgoCDs          map[string]ArgoCD
		Main             string
		Live             []string
		Generators       Generators
		Other            bool
		Manifests        bool
	}{in.Pipeline, in.Pipeline.File, in.Revision, in.Branch, heads, in.RepoURLs, in.Clusters, in.Clusters != nil,
		in.Projects, in.Projects != nil, in.Globbing, in.ArgoCDs, in.Main, in.liveCacheKey(), in.Generators, in.OpenExternal != nil, in.Manifests})
	if err != nil {
		return "", fmt.Errorf("resolving ApplicationSets: writing down the inputs: %w", err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:]), nil
}
