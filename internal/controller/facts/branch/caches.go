package branch

import (
	"github.com/liftlock/liftlock/internal/cache"
)

// MaxRepositories bounds the repositories of a server, and more than bounds those that
// there are.
const MaxRepositories = 10_000

// MaxEnvironments bounds the memory of each environment of each component: past it the least
// recently evaluated ones are worked out again.
const MaxEnvironments = 50_000

// NewCache makes a cache that is bounded by entries alone: of small values.
func NewCache[K comparable, V any](group *cache.Group, name string, entries int) *cache.Cache[K, V] {
	return cache.New(group, cache.Options[K, V]{Name: name, Entries: entries})
}
