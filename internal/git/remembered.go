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

// remembered are answers about pairs of commits. Such an answer never changes;
// asking git for it again starts a program, and after a push every environment
// asks the same. Past a bound all are forgotten. It is safe for concurrent use.
type remembered struct {
	mu          sync.Mutex
	ancestries  map[pair]bool
	differences map[pair][]FileChange
}

type pair struct{ a, b string }

func (m *remembered) clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ancestries, m.differences = map[pair]bool{}, map[pair][]FileChange{}
}

func (m *remembered) ancestry(a, b string) (is, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	is, known = m.ancestries[pair{a, b}]
	return is, known
}

func (m *remembered) keepAncestry(a, b string, is bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ancestries == nil || len(m.ancestries) >= maxAncestries {
		m.ancestries = map[pair]bool{}
	}
	m.ancestries[pair{a, b}] = is
}

// difference gives a list that is the caller's.
func (m *remembered) difference(a, b string) (list []FileChange, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	list, known = m.differences[pair{a, b}]
	return slices.Clone(list), known
}

func (m *remembered) keepDifference(a, b string, list []FileChange) {
	if len(list) > maxDifference {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.differences == nil || len(m.differences) >= maxDifferences {
		m.differences = map[pair][]FileChange{}
	}
	m.differences[pair{a, b}] = slices.Clone(list)
}
