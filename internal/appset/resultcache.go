package appset

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"sync"

	argov1alpha1 "github.com/argoproj/argo-cd/v2/pkg/apis/application/v1alpha1"

	"github.com/liftlock/liftlock/internal/cache"
)

// maxCachedResults bounds the files and Applications that are remembered of all
// sets together. Most of them are in a target set that is held anyway.
const maxCachedResults = 100_000

// resultBytes is about what one takes besides what a held target has of it.
const resultBytes = 1024

// setResults is one set's.
type setResults struct {
	files     map[fileKey][]map[string]any // parameters of git file generators
	params    map[uint64][]map[string]any  // those of other generators, by their hash
	joins     map[paramsPair]joinedParams  // those of matrices
	groups    map[string]*mergeGroup       // those of merges
	targetKey string                       // what targets depend on besides their parameters
	byHash    map[uint64][]*builtTarget    // by their parameters' hash
	byAddress map[uintptr]*builtTarget     // by their parameters' address
	built     []*builtTarget               // all of them, in the order in which they were made
	byFile    func() map[string][]int      // their places in built by each of their files
	outcome   *cachedOutcome
	entries   int64 // that all of these are
}

// paramsPair are the addresses of two sets of parameters, and how they are joined.
type paramsPair struct {
	a, b       uintptr
	goTemplate bool
}

// joinedParams holds on to what was joined, so that its addresses stay its own.
type joinedParams struct{ a, b, both map[string]any }

// fileKey is what a git file's parameters depend on: how the generator makes
// them, and what the file is called and says.
type fileKey struct{ generator, name, id string }

// newSetCache remembers, of each ApplicationSet, what its last resolution was made of, so that the
// next one makes only what is new. Its values are never written to again.
func newSetCache(group *cache.Group) *cache.Cache[string, *setResults] {
	return cache.New(group, cache.Options[string, *setResults]{Name: "appset-parts", Entries: maxCachedResults,
		Bytes: maxCachedResults * resultBytes,
		Size:  func(_ string, s *setResults) int64 { return s.entries * resultBytes }})
}

func newSetResults(targetKey string) *setResults {
	return &setResults{
		files: map[fileKey][]map[string]any{}, params: map[uint64][]map[string]any{}, joins: map[paramsPair]joinedParams{},
		groups:    map[string]*mergeGroup{},
		targetKey: targetKey, byHash: map[uint64][]*builtTarget{}, byAddress: map[uintptr]*builtTarget{},
	}
}

// countEntries counts what is remembered, once nothing more is added.
func (s *setResults) countEntries() {
	s.entries = int64(len(s.files) + len(s.joins) + len(s.groups) + len(s.byHash) + 1)
}

// resultCache is one resolution's view of a set's memory: what it finds or makes
// goes into the next one, and what it doesn't is forgotten. It is used by one
// goroutine.
type resultCache struct {
	last, next *setResults
	queries    *queryLog
}

func newResultCache(last *setResults, targetKey string) *resultCache {
	return &resultCache{last: last, next: newSetResults(targetKey), queries: newQueryLog()}
}

func (r *resultCache) findFile(key fileKey) ([]map[string]any, bool) {
	params, known := r.next.files[key]
	if !known {
		if params, known = r.last.files[key]; known {
			r.next.files[key] = params
		}
	}
	return params, known
}

func (r *resultCache) storeFile(key fileKey, params []map[string]any) {
	r.next.files[key] = params
}

// reuseParams gives parameters that were given before the address that they had.
func (r *resultCache) reuseParams(all []map[string]any) []map[string]any {
	out := make([]map[string]any, len(all))
	for i, params := range all {
		hash := hashMap(params)
		equal := func(old map[string]any) bool { return reflect.DeepEqual(old, params) }
		if n := slices.IndexFunc(r.next.params[hash], equal); n >= 0 {
			out[i] = r.next.params[hash][n]
			continue
		}
		if n := slices.IndexFunc(r.last.params[hash], equal); n >= 0 {
			params = r.last.params[hash][n]
		}
		r.next.params[hash] = append(r.next.params[hash], params)
		out[i] = params
	}
	return out
}

// findJoined finds what a matrix made of the same two sets of parameters.
func (r *resultCache) findJoined(a, b map[string]any, goTemplate bool) (map[string]any, bool) {
	key := paramsPair{mapAddress(a), mapAddress(b), goTemplate}
	old, known := r.last.joins[key]
	if known {
		r.next.joins[key] = old
	}
	return old.both, known
}

func (r *resultCache) storeJoined(a, b, both map[string]any, goTemplate bool) {
	if a != nil && b != nil {
		r.next.joins[paramsPair{mapAddress(a), mapAddress(b), goTemplate}] = joinedParams{a, b, both}
	}
}

// findGroup finds what was merged of the same parameters.
func (r *resultCache) findGroup(g *mergeGroup) *mergeGroup {
	old := r.last.groups[g.key]
	if old == nil || !slices.EqualFunc(old.parts, g.parts, func(a, b map[string]any) bool {
		return a != nil &&
			mapAddress(a) == mapAddress(b)
	}) {
		return nil
	}
	return old
}

func (r *resultCache) storeGroup(g *mergeGroup) {
	r.next.groups[g.key] = g
}

// findTarget finds what was made of the same parameters, files and template.
func (r *resultCache) findTarget(over string, params map[string]any, files []string) *builtTarget {
	if r.last.targetKey != r.next.targetKey || len(r.last.byHash) == 0 {
		return nil
	}
	same := func(m *builtTarget) bool { return m.over == over && slices.Equal(m.files, files) }
	if m := r.last.byAddress[mapAddress(params)]; m != nil && params != nil && same(m) {
		r.storeTarget(m)
		return m
	}
	for _, m := range r.last.byHash[hashMap(params)] {
		if same(m) && reflect.DeepEqual(m.params, params) {
			r.storeTarget(m)
			return m
		}
	}
	return nil
}

// expectTargets makes room for as many.
func (r *resultCache) expectTargets(n int) {
	if len(r.next.byHash) == 0 {
		r.next.byHash, r.next.byAddress = make(map[uint64][]*builtTarget, n), make(map[uintptr]*builtTarget, n)
	}
}

// keepBuilt remembers what was built. A later target in its place has the same files.
func (s *setResults) keepBuilt(built []*builtTarget) {
	s.built = built
	s.byFile = sync.OnceValue(func() map[string][]int {
		out := make(map[string][]int, len(built))
		for i, b := range built {
			for _, f := range b.files {
				out[f] = append(out[f], i)
			}
		}
		return out
	})
}

// placesOf are the places of what came of some of the files, in order.
func (s *setResults) placesOf(files []string) []int {
	byFile := s.byFile()
	var out []int
	for _, f := range files {
		out = append(out, byFile[f]...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (r *resultCache) storeTarget(m *builtTarget) {
	r.next.byHash[m.hash] = append(r.next.byHash[m.hash], m)
	r.next.byAddress[mapAddress(m.params)] = m
}

// setCacheKeys say what parts of a set's memory depend on.
type setCacheKeys struct {
	set     string // which set it is
	targets string // what a target depends on besides its parameters
	outcome string // what all of them depend on besides what repositories answer
}

func newSetCacheKeys(in *Input, s *appSet, e *pipelineEntry, snap *snapshot) (setCacheKeys, error) {
	var k setCacheKeys
	var err error
	if k.set, err = digestValues(s.version, in.RepoURLs, in.Branch, in.Pipeline.File, in.Pipeline.Name(), e.argocd, s.file,
		s.spec.Namespace, s.spec.Name); err != nil {
		return k, err
	}
	spec := s.spec
	spec.Spec.Generators, spec.Status = nil, argov1alpha1.ApplicationSetStatus{}
	if k.targets, err = digestValues(spec, s.file, s.madeOf, s.policy, e.argocd, e.component.String(), e.environment.String(),
		e.environments, in.RepoURLs, in.Manifests); err != nil {
		return k, err
	}
	a := snap.argocd
	k.outcome, err = digestValues(k.targets, sha256.Sum256(s.raw), a.Namespace, a.Clusters, a.Clusters != nil, a.Placements, a.Projects,
		a.Projects != nil, a.Globbing, snap.scopeDigest)
	return k, err
}

// gitParamsKey is how a git generator makes parameters of a file, for a fileKey.
func gitParamsKey(git *argov1alpha1.GitGenerator, set *argov1alpha1.ApplicationSet) string {
	raw, err := json.Marshal([]any{git.PathParamPrefix, git.Values, set.Spec.GoTemplate, set.Spec.GoTemplateOptions})
	if err != nil {
		panic(fmt.Sprintf("strings can't be written down: %v", err))
	}
	return string(raw)
}

// digestValues identifies values that JSON can write down.
func digestValues(values ...any) (string, error) {
	raw, err := json.Marshal(values)
	if err != nil {
		return "", fmt.Errorf("resolving ApplicationSets: writing down the inputs: %w", err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:]), nil
}
