package fleet

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
	like   string                       // what targets depend on besides their parameters
	made   map[uint64][]*made           // by their parameters' hash
	answer *settled
}

// fileKey is what a git file's parameters depend on: how the generator makes
// them, and what the file is called and says.
type fileKey struct{ like, name, id string }

func newMemo() *memo { return &memo{sets: map[string]*memory{}} }

func (m *memory) weight() int { return len(m.files) + len(m.made) + 1 }

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
	r := &recall{last: last, trail: newTrail(), next: &memory{files: map[fileKey][]map[string]any{}, like: like, made: map[uint64][]*made{}}}
	return r
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

// target finds what was made of the same parameters, files and template.
func (r *recall) target(hash uint64, over string, params map[string]any, files []string) *made {
	if r == nil || r.last.like != r.next.like {
		return nil
	}
	for _, m := range r.last.made[hash] {
		if m.over == over && slices.Equal(m.target.GeneratorFiles, files) && equalMaps(m.params, params) {
			return m
		}
	}
	return nil
}

func (r *recall) keepTarget(hash uint64, m *made) {
	if r != nil {
		r.next.made[hash] = append(r.next.made[hash], m)
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
