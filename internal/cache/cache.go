// Package cache is the one kind of memory that this process keeps besides the store: values that
// could be computed or read again. It is bounded by entries and by bytes, and the least recently
// used go first.
//
// No result depends on a cache for being right: several servers run side by side, and an entry may
// be gone at any time. Knowledge that one run gained and another needs belongs into the store.
package cache

import (
	"cmp"
	"slices"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// Options say what a cache holds and how much of it.
type Options[K comparable, V any] struct {
	Name    string                 // in metrics; unique within its group
	Entries int                    // how many at most; at least 1
	Bytes   int64                  // how large all values together may be, as Size counts; 0: not bounded
	Size    func(key K, v V) int64 // of one entry, in bytes, about; needed with Bytes
}

// Cache is a bounded map. It is safe for concurrent use; values are shared, so callers don't change
// them.
type Cache[K comparable, V any] struct {
	o Options[K, V]

	mu    sync.Mutex
	lru   *simplelru.LRU[K, V]
	stats Stats
}

// Stats are what a cache has done since it was made, and what it holds.
type Stats struct {
	Name      string
	Hits      uint64
	Misses    uint64
	Evictions uint64 // entries that went because there was no more room
	Entries   int
	Bytes     int64 // 0 where the cache isn't bounded by bytes
}

// New makes an empty cache and adds it to a group; a nil group is none. It panics
// when the options bound nothing.
func New[K comparable, V any](group *Group, o Options[K, V]) *Cache[K, V] {
	lru, err := simplelru.NewLRU[K, V](o.Entries, nil)
	if err != nil || o.Bytes > 0 && o.Size == nil {
		panic("cache " + o.Name + " has no bound")
	}
	c := &Cache[K, V]{o: o, lru: lru, stats: Stats{Name: o.Name}}
	group.add(c.Stats)
	return c
}

// Get gives a cached value; false where there is none, or it was evicted.
func (c *Cache[K, V]) Get(key K) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, ok := c.lru.Get(key)
	if ok {
		c.stats.Hits++
	} else {
		c.stats.Misses++
	}
	return v, ok
}

// Put keeps a value, in place of the one that the key had. One that is larger
// than the whole cache is not kept.
func (c *Cache[K, V]) Put(key K, v V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.removeKey(key)
	if c.o.Bytes > 0 {
		size := c.o.Size(key, v)
		if size > c.o.Bytes {
			c.stats.Evictions++
			return
		}
		c.stats.Bytes += size
		for c.stats.Bytes > c.o.Bytes {
			c.evictOldest()
		}
	}
	if c.lru.Len() == c.o.Entries {
		c.evictOldest()
	}
	c.lru.Add(key, v)
}

// GetOrLoad is Get, or else what load gives, which is kept where it is no error.
// Two callers may load the same value at once; the later one's is kept.
func (c *Cache[K, V]) GetOrLoad(key K, load func() (V, error)) (V, error) {
	if v, ok := c.Get(key); ok {
		return v, nil
	}
	v, err := load()
	if err == nil {
		c.Put(key, v)
	}
	return v, err
}

// Remove forgets a value, where it is there.
func (c *Cache[K, V]) Remove(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.removeKey(key)
}

// RemoveFunc forgets all entries that a function says yes to.
func (c *Cache[K, V]) RemoveFunc(drop func(key K, v V) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, key := range c.lru.Keys() {
		if v, ok := c.lru.Peek(key); ok && drop(key, v) {
			c.removeKey(key)
		}
	}
}

// Clear forgets everything.
func (c *Cache[K, V]) Clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lru.Purge()
	c.stats.Bytes = 0
}

// Stats are the figures as of now.
func (c *Cache[K, V]) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.stats
	s.Entries = c.lru.Len()
	return s
}

func (c *Cache[K, V]) removeKey(key K) {
	if v, ok := c.lru.Peek(key); ok {
		c.forgetSize(key, v)
		c.lru.Remove(key)
	}
}

func (c *Cache[K, V]) evictOldest() {
	if key, v, ok := c.lru.RemoveOldest(); ok {
		c.forgetSize(key, v)
		c.stats.Evictions++
	}
}

func (c *Cache[K, V]) forgetSize(key K, v V) {
	if c.o.Bytes > 0 {
		c.stats.Bytes -= c.o.Size(key, v)
	}
}

// Group is the caches of one server, for its metrics. The zero group is empty and
// ready; it is safe for concurrent use. A nil group takes caches and forgets them.
type Group struct {
	mu    sync.Mutex
	stats []func() Stats
}

func (g *Group) add(stats func() Stats) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stats = append(g.stats, stats)
}

// Stats are the figures of all caches, sorted by name; of several with one name,
// such as one for each repository, the sums.
func (g *Group) Stats() []Stats {
	g.mu.Lock()
	all := slices.Clone(g.stats)
	g.mu.Unlock()
	byName := map[string]Stats{}
	for _, stats := range all {
		s := stats()
		sum := byName[s.Name]
		byName[s.Name] = Stats{Name: s.Name, Hits: sum.Hits + s.Hits, Misses: sum.Misses + s.Misses, Evictions: sum.Evictions + s.Evictions,
			Entries: sum.Entries + s.Entries, Bytes: sum.Bytes + s.Bytes}
	}
	out := make([]Stats, 0, len(byName))
	for _, s := range byName {
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b Stats) int { return cmp.Compare(a.Name, b.Name) })
	return out
}
