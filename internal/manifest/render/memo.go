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

	"github.com/liftlock/liftlock/internal/cache"
)

// ContentID identifies what lies at a path of one commit: a file's, a symbolic
// link's or a folder's content, as Git's object ids do, with its mode. ""
// stands for nothing there. A folder's must change with its entries.
type ContentID func(path string) (string, error)

// Memo keeps renderings by what they were made of, so that a commit that
// touches none of a target's files costs no rendering. Failures aren't kept.
// It is safe for concurrent use; two calls for the same may both render.
type Memo struct {
	renderings *cache.Cache[[sha256.Size]byte, []cachedRendering]
}

const (
	// maxMemoInputs bounds the inputs of which renderings are kept.
	maxMemoInputs = 100_000
	// maxMemoRenderings bounds the renderings of one input: of what is merged, and of
	// the edits to it that are open.
	maxMemoRenderings = 8
)

// cachedRendering is a rendering with the identity of all that it read.
type cachedRendering struct {
	manifests   *Manifests
	revision    string
	fingerprint [sha256.Size]byte
}

// NewMemo makes a Memo that keeps up to about bytes of manifests.
func NewMemo(group *cache.Group, bytes int) *Memo {
	return &Memo{cache.New(group, cache.Options[[sha256.Size]byte, []cachedRendering]{
		Name: "rendered", Entries: maxMemoInputs, Bytes: int64(bytes),
		Size: func(_ [sha256.Size]byte, list []cachedRendering) (n int64) {
			for i := range list {
				n += int64(list[i].manifests.estimateSize())
			}
			return n
		},
	})}
}

// Render is [Render], or what it said before of the same files. The manifests
// are shared: read them, don't change them.
func (m *Memo) Render(ctx context.Context, tree fs.FS, id ContentID, in Input) (*Manifests, error) {
	key, err := inputKey(in)
	if err != nil {
		return nil, fmt.Errorf("rendering %s: %w", in.Application, err)
	}
	known, _ := m.renderings.Get(key)
	for _, k := range known {
		if k.manifests.Reads.Revision && k.revision != in.Revision {
			continue
		}
		now, err := computeFingerprint(&k.manifests.Reads, id, &in)
		if err != nil {
			return nil, fmt.Errorf("rendering %s: %w", in.Application, err)
		}
		if now == k.fingerprint {
			return k.manifests, nil
		}
	}
	out, err := Render(ctx, tree, in)
	if err != nil {
		return nil, err
	}
	k := cachedRendering{manifests: out, revision: in.Revision}
	if k.fingerprint, err = computeFingerprint(&out.Reads, id, &in); err != nil {
		return nil, fmt.Errorf("rendering %s: %w", in.Application, err)
	}
	known = append([]cachedRendering{k}, known...)
	m.renderings.Put(key, known[:min(len(known), maxMemoRenderings)])
	return out, nil
}

// inputKey is over all of an input but its revision, which few targets read.
func inputKey(in Input) ([sha256.Size]byte, error) {
	in.Revision = ""
	data, err := json.Marshal(in)
	return sha256.Sum256(data), err
}

// computeFingerprint is over the identity of everything that was read.
func computeFingerprint(r *ReadSet, id ContentID, in *Input) ([sha256.Size]byte, error) {
	h := sha256.New()
	add := func(r *ReadSet, id ContentID) error {
		for _, list := range [][]string{r.Files, r.Links, r.Folders, r.Absent} {
			if err := hashContents(h, list, id); err != nil {
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

func hashContents(h hash.Hash, list []string, id ContentID) error {
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

// estimateSize is about what lists take in memory.
func (r *ReadSet) estimateSize() int {
	n := 0
	for _, list := range [][]string{r.Files, r.Links, r.Folders, r.Absent} {
		for _, p := range list {
			n += 16 + len(p)
		}
	}
	return n
}

// estimateSize is about what manifests take in memory.
func (m *Manifests) estimateSize() int {
	const each = 200
	n := each
	for i := range m.Objects {
		n += each + len(m.Objects[i].JSON)
	}
	n += m.Reads.estimateSize()
	for branch, r := range m.Reads.Branches {
		n += each + len(branch) + r.estimateSize()
	}
	return n
}
