package fieldedit

import "sync"

// Parsed remembers files that were parsed, by their content: one that a
// thousand environments share is parsed once a version, not a thousand times.
// It may be used concurrently.
type Parsed struct {
	most int // bytes of text

	mu   sync.Mutex
	docs map[parsedKey]*document
	size int
}

type parsedKey struct {
	id string // git's, of the content
	as format
}

// NewParsed remembers files of up to so many bytes together; what they become
// takes some forty times as much.
func NewParsed(most int) *Parsed { return &Parsed{most: most, docs: map[parsedKey]*document{}} }

// minParsed is the size from which a file is worth remembering.
const minParsed = 8 << 10

func (p *Parsed) get(key parsedKey) *document {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.docs[key]
}

func (p *Parsed) put(key parsedKey, d *document) {
	if p == nil || len(d.data) < minParsed || len(d.data) > p.most {
		return
	}
	d.lines() // now, because whoever reads it later isn't alone
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.docs[key] != nil {
		return
	}
	if p.size += len(d.data); p.size > p.most {
		clear(p.docs)
		p.size = len(d.data)
	}
	p.docs[key] = d
}
