package git

import (
	"slices"
	"sync"
)

const (
	// maxAncestries bounds the answers of IsAncestor that are remembered: one for
	// each environment of a large fleet, some 10 MB.
	maxAncestries = 50_000
	// maxDifferences bounds those of Changed, and maxDifference the paths in one.
	maxDifferences = 1000
	maxDifference  = 1000
)

// pairCache are answers about pairs of commits. Such an answer never changes;
// asking git for it again starts a program, and after a push every environment
// asks the same. Past a bound all are forgotten. It is safe for concurrent use.
type pairCache struct {
	mu          sync.Mutex
	ancestries  map[commitPair]bool
	differences map[commitPair][]FileChange
}

type commitPair struct{ a, b string }

func (m *pairCache) clearAll() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ancestries, m.differences = map[commitPair]bool{}, map[commitPair][]FileChange{}
}

func (m *pairCache) getAncestry(a, b string) (is, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	is, known = m.ancestries[commitPair{a, b}]
	return is, known
}

func (m *pairCache) putAncestry(a, b string, is bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ancestries == nil || len(m.ancestries) >= maxAncestries {
		m.ancestries = map[commitPair]bool{}
	}
	m.ancestries[commitPair{a, b}] = is
}

// getDifference gives a list that is the caller's.
func (m *pairCache) getDifference(a, b string) (list []FileChange, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	list, known = m.differences[commitPair{a, b}]
	return slices.Clone(list), known
}

func (m *pairCache) putDifference(a, b string, list []FileChange) {
	if len(list) > maxDifference {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.differences == nil || len(m.differences) >= maxDifferences {
		m.differences = map[commitPair][]FileChange{}
	}
	m.differences[commitPair{a, b}] = slices.Clone(list)
}
