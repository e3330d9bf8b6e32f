package transport

import (
	"container/list"
	"net/http"
	"sync"
)

// maxEntry keeps one large answer from emptying the cache of all others.
const maxEntry = 1 << 20

// entry is an answer that can be asked for again conditionally.
type entry struct {
	key    string
	etag   string
	header http.Header
	body   []byte
}

func (e *entry) size() int { return len(e.key) + len(e.etag) + len(e.body) + 512 }

// cache holds the answers used last, up to a number of bytes. Safe for
// concurrent use; entries are never changed once they are in.
type cache struct {
	mu    sync.Mutex
	room  int
	order *list.List // of *entry, used last in front
	byKey map[string]*list.Element
}

func newCache(bytes int) *cache {
	return &cache{room: bytes, order: list.New(), byKey: map[string]*list.Element{}}
}

func (c *cache) get(key string) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	el, ok := c.byKey[key]
	if !ok {
		return nil
	}
	c.order.MoveToFront(el)
	return el.Value.(*entry)
}

func (c *cache) put(key string, e *entry) {
	e.key = key
	c.mu.Lock()
	defer c.mu.Unlock()
	if el, ok := c.byKey[key]; ok {
		c.drop(el)
	}
	if e.size() > min(maxEntry, c.room) {
		return
	}
	c.room -= e.size()
	c.byKey[key] = c.order.PushFront(e)
	for c.room < 0 {
		c.drop(c.order.Back())
	}
}

func (c *cache) drop(el *list.Element) {
	e := c.order.Remove(el).(*entry)
	delete(c.byKey, e.key)
	c.room += e.size()
}
