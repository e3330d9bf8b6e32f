package render

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"hash"
	"io/fs"
	"maps"
	"slices"
	"sync"
)

// ID identifies what lies at a path of one commit: a file's, a symbolic
// link's or a folder's content, as Git's object ids do, with its mode. ""
// stands for nothing there. A folder's must change with its entries.
type ID func(path string) (string, error)

// Memo keeps renderings by what they were made of, so that a commit that
// touches none of a target's files costs no rendering. Failures aren't kept.
// It is safe for concurrent use; two calls for the same may both render.
type Memo struct {
	mu         sync.Mutex
	young, old map[[sha256.Size]byte][]remembered
	size, most int
}

// remembered is a rendering with the identity of all that it read.
type remembered struct {
	manifests *Manifests
	revision  string
	print     [sha256.Size]byte
}

// NewMemo makes a Memo that keeps up to about bytes of manifests; the oldest
// half goes first.
func NewMemo(bytes int) *Memo {
	return &Memo{young: map[[sha256.Size]byte][]remembered{}, most: bytes / 2}
}

// Render is [Render], or what it said before of the same files. The manifests
// are shared: read them, don't change them.
func (m *Memo) Render(ctx context.Context, tree fs.FS, id ID, in Input) (*Manifests, error) {
	key, err := keyOf(in)
	if err != nil {
		return nil, fmt.Errorf("rendering %s: %w", in.Application, err)
	}
	for _, k := range m.candidates(key) {
		if k.manifests.Reads.Revision && k.revision != in.Revision {
			continue
		}
		now, err := fingerprint(&k.manifests.Reads, id, &in)
		if err != nil {
			return nil, fmt.Errorf("rendering %s: %w", in.Application, err)
		}
		if now == k.print {
			m.keep(key, k)
			return k.manifests, nil
		}
	}
	out, err := Render(ctx, tree, in)
	if err != nil {
		return nil, err
	}
	k := remembered{manifests: out, revision: in.Revision}
	if k.print, err = fingerprint(&out.Reads, id, &in); err != nil {
		return nil, fmt.Errorf("rendering %s: %w", in.Application, err)
	}
	m.keep(key, k)
	return out, nil
}

// keyOf is over all of an input but its revision, which few targets read.
func keyOf(in Input) ([sha256.Size]byte, error) {
	in.Revision = ""
	data, err := json.Marshal(in)
	return sha256.Sum256(data), err
}

// fingerprint is over the identity of everything that was read.
func fingerprint(r *Reads, id ID, in *Input) ([sha256.Size]byte, error) {
	h := sha256.New()
	add := func(r *Reads, id ID) error {
		for _, list := range [][]string{r.Files, r.Links, r.Folders, r.Absent} {
			if err := identify(h, list, id); err != nil {
				return err
			}
		}
		return nil
	}
	if err := add(r, id); err != nil {
		return [sha256.Size]byte{}, err
	}
	for _, branch := range slices.Sorted(maps.Keys(r.Branches)) {
		other, known := in.Branches[branch]
		if !known {
			return [sha256.Size]byte{}, nil // nothing has this print
		}
		fmt.Fprintf(h, "%q\n", branch)
		reads := r.Branches[branch]
		if err := add(&reads, other.ID); err != nil {
			return [sha256.Size]byte{}, err
		}
	}
	return [sha256.Size]byte(h.Sum(nil)), nil
}

func identify(h hash.Hash, list []string, id ID) error {
	fmt.Fprintln(h, len(list))
	for _, p := range list {
		what, err := id(p)
		if err != nil {
			return fmt.Errorf("identifying %s: %w", p, err)
		}
		fmt.Fprintf(h, "%q %q\n", p, what)
	}
	return nil
}

func (m *Memo) candidates(key [sha256.Size]byte) []remembered {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append(append([]remembered(nil), m.young[key]...), m.old[key]...)
}

// keep remembers a rendering, or that it was asked for again.
func (m *Memo) keep(key [sha256.Size]byte, k remembered) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, have := range m.young[key] {
		if have.print == k.print && have.revision == k.revision {
			return
		}
	}
	size := k.manifests.size()
	if m.size+size > m.most && m.size > 0 {
		m.old, m.young, m.size = m.young, map[[sha256.Size]byte][]remembered{}, 0
	}
	m.young[key] = append(m.young[key], k)
	m.size += size
}

// size is about what lists take in memory.
func (r *Reads) size() int {
	n := 0
	for _, list := range [][]string{r.Files, r.Links, r.Folders, r.Absent} {
		for _, p := range list {
			n += 16 + len(p)
		}
	}
	return n
}

// size is about what manifests take in memory.
func (m *Manifests) size() int {
	const each = 200
	n := each
	for i := range m.Objects {
		n += each + len(m.Objects[i].JSON)
	}
	n += m.Reads.size()
	for branch, r := range m.Reads.Branches {
		n += each + len(branch) + r.size()
	}
	return n
}
