package fieldedit

import "sync"

// ParseCache remembers files that were parsed, by their content: one that a
// thousand environments share is parsed once a version, not a thousand times.
// It may be used concurrently.
type ParseCache struct {
	maxBytes int // bytes of text

	mu   sync.Mutex
	docs map[parseCacheKey]*document
	size int
}

type parseCacheKey struct {
	id string // git's, of the content
	as fileFormat
}

// NewParseCache remembers files of up to so many bytes together; what they become
// takes some forty times as much.
func NewParseCache(most int) *ParseCache {
	return &ParseCache{maxBytes: most, docs: map[parseCacheKey]*document{}}
}

// minCachedSize is the size from which a file is worth remembering.
const minCachedSize = 8 << 10

func (p *ParseCache) get(key parseCacheKey) *document {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.docs[key]
}

func (p *ParseCache) put(key parseCacheKey, d *document) {
	if p == nil || len(d.data) < minCachedSize || len(d.data) > p.maxBytes {
		return
	}
	d.lineStarts() // now, because whoever reads it later isn't alone
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.docs[key] != nil {
		return
	}
	if p.size += len(d.data); p.size > p.maxBytes {
		clear(p.docs)
		p.size = len(d.data)
	}
	p.docs[key] = d
}
