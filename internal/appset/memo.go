package appset

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	argov1alpha1 "github.com/argoproj/argo-cd/v2/pkg/apis/application/v1alpha1"
)

// maxRemembered bounds the files and Applications that are remembered of all
// sets together. Most of them are in a fleet that is held anyway.
const maxRemembered = 100_000

// memo remembers, of each ApplicationSet, what its last resolution was made
// of, so that the next one makes only what is new. What it holds is never
// written to again. It is safe for concurrent use.
type memo struct {
	mu    sync.Mutex
	sets  map[string]*memory
	order []string // least recently used first
	size  int
}

// memory is one set's.
type memory struct {
	files  map[fileKey][]map[string]any // parameters of git file generators
	plain  map[uint64][]map[string]any  // those of other generators, by their hash
	joins  map[pair]joined              // those of matrices
	groups map[string]*group            // those of merges
	like   string                       // what targets depend on besides their parameters
	made   map[uint64][]*made           // by their parameters' hash
	at     map[uintptr]*made            // by their parameters' address
	answer *settled
}

// pair are the addresses of two sets of parameters, and how they are joined.
type pair struct {
	a, b       uintptr
	goTemplate bool
}

// joined holds on to what was joined, so that its addresses stay its own.
type joined struct{ a, b, both map[string]any }

// fileKey is what a git file's parameters depend on: how the generator makes
// them, and what the file is called and says.
type fileKey struct{ like, name, id string }

func newMemo() *memo { return &memo{sets: map[string]*memory{}} }

func newMemory(like string) *memory {
	return &memory{
		files: map[fileKey][]map[string]any{}, plain: map[uint64][]map[string]any{}, joins: map[pair]joined{}, groups: map[string]*group{},
		like: like, made: map[uint64][]*made{}, at: map[uintptr]*made{},
	}
}

func (m *memory) weight() int { return len(m.files) + len(m.joins) + len(m.groups) + len(m.made) + 1 }

// last is what is remembered of a set; an empty memory if nothing is.
func (m *memo) last(key string) *memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	if at := m.sets[key]; at != nil {
		m.touch(key)
		return at
	}
	return &memory{}
}

func (m *memo) put(key string, at *memory) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if old := m.sets[key]; old != nil {
		m.size -= old.weight()
	} else {
		m.order = append(m.order, key)
	}
	m.sets[key] = at
	m.size += at.weight()
	m.touch(key)
	for m.size > maxRemembered && len(m.order) > 0 {
		oldest := m.order[0]
		m.size -= m.sets[oldest].weight()
		delete(m.sets, oldest)
		m.order = m.order[1:]
	}
}

func (m *memo) touch(key string) {
	for i, k := range m.order {
		if k == key {
			m.order = append(append(m.order[:i:i], m.order[i+1:]...), key)
			return
		}
	}
}

// recall is one resolution's view of a set's memory: what it finds or makes
// goes into the next one, and what it doesn't is forgotten. It is used by one
// goroutine. A nil one remembers nothing.
type recall struct {
	last, next *memory
	trail      *trail
}

func newRecall(last *memory, like string) *recall {
	return &recall{last: last, next: newMemory(like), trail: newTrail()}
}

func (r *recall) file(key fileKey) ([]map[string]any, bool) {
	if r == nil {
		return nil, false
	}
	params, known := r.next.files[key]
	if !known {
		if params, known = r.last.files[key]; known {
			r.next.files[key] = params
		}
	}
	return params, known
}

func (r *recall) keepFile(key fileKey, params []map[string]any) {
	if r != nil {
		r.next.files[key] = params
	}
}

// same gives parameters that were given before the address that they had.
func (r *recall) same(all []map[string]any) []map[string]any {
	if r == nil {
		return all
	}
	out := make([]map[string]any, len(all))
	for i, params := range all {
		hash := hashMap(params)
		equal := func(old map[string]any) bool { return equalMaps(old, params) }
		if n := slices.IndexFunc(r.next.plain[hash], equal); n >= 0 {
			out[i] = r.next.plain[hash][n]
			continue
		}
		if n := slices.IndexFunc(r.last.plain[hash], equal); n >= 0 {
			params = r.last.plain[hash][n]
		}
		r.next.plain[hash] = append(r.next.plain[hash], params)
		out[i] = params
	}
	return out
}

// joined finds what a matrix made of the same two sets of parameters.
func (r *recall) joined(a, b map[string]any, goTemplate bool) (map[string]any, bool) {
	if r == nil {
		return nil, false
	}
	key := pair{address(a), address(b), goTemplate}
	old, known := r.last.joins[key]
	if known {
		r.next.joins[key] = old
	}
	return old.both, known
}

func (r *recall) keepJoined(a, b, both map[string]any, goTemplate bool) {
	if r != nil && a != nil && b != nil {
		r.next.joins[pair{address(a), address(b), goTemplate}] = joined{a, b, both}
	}
}

// group finds what was merged of the same parameters.
func (r *recall) group(g *group) *group {
	if r == nil {
		return nil
	}
	old := r.last.groups[g.key]
	if old == nil || !slices.EqualFunc(old.parts, g.parts, func(a, b []map[string]any) bool {
		return slices.EqualFunc(a, b, func(a, b map[string]any) bool { return a != nil && address(a) == address(b) })
	}) {
		return nil
	}
	return old
}

func (r *recall) keepGroup(g *group) {
	if r != nil {
		r.next.groups[g.key] = g
	}
}

// target finds what was made of the same parameters, files and template.
func (r *recall) target(over string, params map[string]any, files []string) *made {
	if r == nil || r.last.like != r.next.like {
		return nil
	}
	same := func(m *made) bool { return m.over == over && slices.Equal(m.files, files) }
	if m := r.last.at[address(params)]; m != nil && params != nil && same(m) {
		r.keepTarget(m)
		return m
	}
	for _, m := range r.last.made[hashMap(params)] {
		if same(m) && equalMaps(m.params, params) {
			r.keepTarget(m)
			return m
		}
	}
	return nil
}

func (r *recall) keepTarget(m *made) {
	if r != nil {
		r.next.made[m.hash] = append(r.next.made[m.hash], m)
		r.next.at[address(m.params)] = m
	}
}

// memoryKeys say what parts of a set's memory depend on.
type memoryKeys struct {
	set     string // which set it is
	targets string // what a target depends on besides its parameters
	answer  string // what all of them depend on besides what repositories answer
}

func keysOf(in *Input, s *set, e *entry, snap *snapshot) (memoryKeys, error) {
	var k memoryKeys
	var err error
	if k.set, err = digest(in.RepoURLs, in.Branch, in.Pipeline.File, in.Pipeline.Name(), e.argocd, s.file, s.spec.Namespace, s.spec.Name); err != nil {
		return k, err
	}
	spec := s.spec
	spec.Spec.Generators, spec.Status = nil, argov1alpha1.ApplicationSetStatus{}
	if k.targets, err = digest(spec, s.file, s.policy, e.argocd, e.component.String(), e.environment.String(), e.environments, in.RepoURLs, in.Manifests); err != nil {
		return k, err
	}
	a := snap.argocd
	k.answer, err = digest(k.targets, sha256.Sum256(s.raw), a.Namespace, a.Clusters, a.Clusters != nil, a.Projects, a.Projects != nil, a.Globbing)
	return k, err
}

// kindOf is how a git generator makes parameters of a file, for a fileKey.
func kindOf(git *argov1alpha1.GitGenerator, set *argov1alpha1.ApplicationSet) string {
	raw, err := json.Marshal([]any{git.PathParamPrefix, git.Values, set.Spec.GoTemplate, set.Spec.GoTemplateOptions})
	if err != nil {
		panic(fmt.Sprintf("strings can't be written down: %v", err))
	}
	return string(raw)
}

// digest identifies values that JSON can write down.
func digest(values ...any) (string, error) {
	raw, err := json.Marshal(values)
	if err != nil {
		return "", fmt.Errorf("resolving ApplicationSets: writing down the inputs: %w", err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:]), nil
}
