package appset

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
)

// maxKept bounds the targets of all fleets that are kept: their lists alone
// are 5 MB for 10,000. The last fleet is kept however large it is.
const maxKept = 20_000

// keep holds the last fleets by what they were resolved from. A commit's
// files never change, so its fleet doesn't either.
type keep struct {
	mu     sync.Mutex
	most   int
	size   int // targets
	fleets map[string]*Fleet
	order  []string // oldest first
}

func newKeep(most int) *keep { return &keep{most: most, fleets: map[string]*Fleet{}} }

func (k *keep) get(key string) *Fleet {
	if key == "" {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.fleets[key]
}

func (k *keep) put(key string, f *Fleet) {
	if key == "" {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.drop(key)
	k.order = append(k.order, key)
	k.fleets[key] = f
	k.size += len(f.Targets)
	for len(k.order) > k.most || k.size > maxKept && len(k.order) > 1 {
		k.drop(k.order[0])
	}
}

func (k *keep) drop(key string) {
	if f := k.fleets[key]; f != nil {
		k.size -= len(f.Targets)
		delete(k.fleets, key)
		k.order = slices.DeleteFunc(k.order, func(o string) bool { return o == key })
	}
}

// key identifies everything that an answer depends on; "" for a tree that is
// not a commit's.
func (in *Input) key() (string, error) {
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
		in.Projects, in.Projects != nil, in.Globbing, in.ArgoCDs, in.Main, in.liveKey(), in.Generators, in.Other != nil, in.Manifests})
	if err != nil {
		return "", fmt.Errorf("resolving ApplicationSets: writing down the inputs: %w", err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:]), nil
}
