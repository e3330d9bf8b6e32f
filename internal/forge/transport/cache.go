package transport

import (
	"container/list"
	"net/http"
	"sync"
)

// maxEntryBytes keeps one large answer from emptying the cache of all others.
const maxEntryBytes = 1 << 20

// cacheEntry is an answer that can be asked for again conditionally.
type cacheEntry struct {
	key    string
	etag   string
	header http.Header
	body   []byte
}

func (e *cacheEntry) byteSize() int { return len(e.key) + len(e.etag) + len(e.body) + 512 }

// cache holds the answers used last, up to a number of bytes. Safe for
// concurrent use; entries are never changed once they are in.
type cache struct {
	mu        sync.Mutex
	freeBytes int
	order     *list.List // of *entry, used last in front
	byKey     map[string]*list.Element
}

func newCache(bytes int) *cache {
	return &cache{freeBytes: bytes, order: list.New(), byKey: map[string]*list.Element{}}
}

func (c *cache) get(key string) *cacheEntry {
	c.mu.Lock()
	defer c.mu.Unlock()
	el, ok := c.byKey[key]
	if !ok {
		return nil
	}
	c.order.MoveToFront(el)
	return el.Value.(*cacheEntry)
}

func (c *cache) put(key string, e *cacheEntry) {
	e.key = key
	c.mu.Lock()
	defer c.mu.Unlock()
	if el, ok := c.byKey[key]; ok {
		c.drop(el)
	}
	if e.byteSize() > min(maxEntryBytes, c.freeBytes) {
		return
	}
	c.freeBytes -= e.byteSize()
	c.byKey[key] = c.order.PushFront(e)
	for c.freeBytes < 0 {
		c.drop(c.order.Back())
	}
}

func (c *cache) drop(el *list.Element) {
	e := c.order.Remove(el).(*cacheEntry)
	delete(c.byKey, e.key)
	c.freeBytes += e.byteSize()
}
