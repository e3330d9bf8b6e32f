package fieldedit

import (
	"github.com/liftlock/liftlock/internal/cache"
)

// ParseCache remembers files that were parsed, by their content: one that a
// thousand environments share is parsed once a version, not a thousand times.
// It may be used concurrently.
type ParseCache struct {
	docs *cache.Cache[parseCacheKey, *document]
}

type parseCacheKey struct {
	id string // git's, of the content
	as fileFormat
}

// minCachedSize is the size in bytes from which a file is worth remembering.
const minCachedSize = 8 << 10

// NewParseCache remembers files of up to so many bytes together; what they become
// takes some forty times as much.
func NewParseCache(group *cache.Group, maxBytes int64) *ParseCache {
	return &ParseCache{cache.New(group, cache.Options[parseCacheKey, *document]{Name: "parsed_files",
		Entries: int(maxBytes / minCachedSize), Bytes: maxBytes,
		Size: func(_ parseCacheKey, d *document) int64 { return int64(len(d.data)) }})}
}

func (p *ParseCache) put(key parseCacheKey, d *document) {
	if p == nil || len(d.data) < minCachedSize {
		return
	}
	d.lineStarts() // now, because later readers aren't alone
	p.docs.Put(key, d)
}
