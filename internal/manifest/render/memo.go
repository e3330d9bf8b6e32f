package render

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/cache"
)

// ContentID identifies what lies at a path of one commit: a file's, a symbolic
// link's or a folder's content, as Git's object ids do, with its mode. ""
// stands for nothing there. A folder's must change with its entries.
type ContentID func(path string) (string, error)

// Memo keeps renderings by what they were made of, so that a commit that
// touches none of a target's files costs no rendering. Failures aren't kept, but
// what a process died of is for a while. It is safe for concurrent use; two calls for the
// same may both render.
type Memo struct {
	renderer   Renderer
	external   OpenExternal
	now        func() time.Time
	renderings *cache.Cache[[sha256.Size]byte, []cachedRendering]
	deaths     *cache.Cache[[sha256.Size]byte, death]
}

// MemoOptions are a Memo's options. The zero value is usable.
type MemoOptions struct {
	Caches   *cache.Group     // where the caches are counted; nil: nowhere
	Bytes    int              // about how many bytes of manifests are kept
	Renderer Renderer         // default: InProcess
	External OpenExternal     // nil: what needs one isn't rendered
	Now      func() time.Time // default: time.Now
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

// NewMemo makes a Memo.
func NewMemo(o MemoOptions) *Memo {
	m := &Memo{renderer: o.Renderer, external: o.External, now: o.Now}
	if m.renderer == nil {
		m.renderer = InProcess{}
	}
	if m.now == nil {
		m.now = time.Now
	}
	m.renderings = cache.New(o.Caches, cache.Options[[sha256.Size]byte, []cachedRendering]{
		Name: "rendered", Entries: maxMemoInputs, Bytes: int64(o.Bytes),
		Size: func(_ [sha256.Size]byte, list []cachedRendering) (n int64) {
			for i := range list {
				n += int64(list[i].manifests.estimateSize())
			}
			return n
		},
	})
	m.deaths = cache.New(o.Caches, cache.Options[[sha256.Size]byte, death]{Name: "rendering_deaths", Entries: maxDeaths})
	return m
}

// Render is RenderAll of one.
func (m *Memo) Render(ctx context.Context, tree fs.FS, id ContentID, in Input) (*Manifests, error) {
	out, err := m.RenderAll(ctx, []Job{{Tree: Tree{FS: tree, ID: id}, Input: in}})
	if err != nil {
		return nil, err
	}
	return out[0].Manifests, out[0].Err
}

// RenderAll is the renderer's, or what that said before of the same files. The manifests
// are shared: read them, don't change them.
func (m *Memo) RenderAll(ctx context.Context, jobs []Job) ([]Outcome, error) {
	if m.external == nil {
		return m.renderJobs(ctx, jobs, nil)
	}
	opener := &externalOpener{open: m.external, opened: map[External]openedExternal{}}
	jobs = slices.Clone(jobs)
	for i := range jobs {
		opener.addTo(ctx, &jobs[i].Input, listExternals(&jobs[i].Input))
	}
	out, err := m.renderJobs(ctx, jobs, opener)
	// Further sources of a target are known once it was rendered so far.
	for round := 0; err == nil && round < maxExternalRounds; round++ {
		var again []Job
		var at []int
		for i := range jobs {
			if opener.addTo(ctx, &jobs[i].Input, missedExternals(&out[i])) {
				again, at = append(again, jobs[i]), append(at, i)
			}
		}
		if len(again) == 0 {
			break
		}
		var rendered []Outcome
		if rendered, err = m.renderJobs(ctx, again, opener); err != nil {
			break
		}
		for k, i := range at {
			out[i] = rendered[k]
		}
	}
	for i := range out {
		opener.explain(&out[i])
	}
	return out, err
}

// renderJobs renders what isn't known yet. With an opener, what was rendered before is looked for
// with the externals that it was made of.
func (m *Memo) renderJobs(ctx context.Context, jobs []Job, opener *externalOpener) ([]Outcome, error) {
	out := make([]Outcome, len(jobs))
	keys := make([][sha256.Size]byte, len(jobs))
	var missing []Job
	var at []int
	for i := range jobs {
		known := false
		var err error
		if keys[i], err = inputKey(jobs[i].Input); err == nil {
			out[i], known, err = m.lookUp(ctx, keys[i], &jobs[i], opener)
		}
		switch {
		case err != nil:
			out[i].Err = fmt.Errorf("rendering %s: %w", jobs[i].Input.Application, err)
		case !known:
			missing, at = append(missing, jobs[i]), append(at, i)
		}
	}
	if len(missing) == 0 {
		return out, nil
	}
	rendered, err := m.renderer.RenderAll(ctx, missing)
	if err != nil {
		return nil, err
	}
	for k, i := range at {
		if err := m.rememberOutcome(keys[i], &jobs[i], rendered[k]); err != nil {
			rendered[k] = Outcome{Err: fmt.Errorf("rendering %s: %w", jobs[i].Input.Application, err)}
		}
		out[i] = rendered[k]
	}
	return out, nil
}

// lookUp gives what is known of a job.
func (m *Memo) lookUp(ctx context.Context, key [sha256.Size]byte, j *Job, opener *externalOpener) (o Outcome, known bool, err error) {
	list, _ := m.renderings.Get(key)
	for _, k := range list {
		if k.manifests.Reads.Revision && k.revision != j.Input.Revision {
			continue
		}
		if opener != nil {
			opener.addTo(ctx, &j.Input, k.manifests.Reads.listExternals())
		}
		now, err := computeFingerprint(&k.manifests.Reads, j.Tree.ID, &j.Input)
		if err != nil {
			return Outcome{}, false, err
		}
		if now == k.fingerprint {
			return Outcome{Manifests: k.manifests}, true, nil
		}
	}
	if m.deaths.Stats().Entries == 0 {
		return Outcome{}, false, nil
	}
	dead, err := newDeathKey(key, j)
	if err != nil {
		return Outcome{}, false, err
	}
	d, ok := m.deaths.Get(dead.sources)
	if ok && (d.tree == dead.tree || m.now().Before(d.retryAt)) {
		return Outcome{Err: d.cause}, true, nil
	}
	return Outcome{}, false, nil
}

// rememberOutcome remembers what came of a job.
func (m *Memo) rememberOutcome(key [sha256.Size]byte, j *Job, o Outcome) error {
	var died *Died
	if errors.As(o.Err, &died) {
		dead, err := newDeathKey(key, j)
		if err != nil {
			return err
		}
		last, _ := m.deaths.Get(dead.sources)
		m.deaths.Put(dead.sources, last.again(dead.tree, died, m.now()))
	}
	if o.Err != nil {
		return nil
	}
	k := cachedRendering{manifests: o.Manifests, revision: j.Input.Revision}
	var err error
	if k.fingerprint, err = computeFingerprint(&o.Manifests.Reads, j.Tree.ID, &j.Input); err != nil {
		return err
	}
	list, _ := m.renderings.Get(key)
	list = append([]cachedRendering{k}, list...)
	m.renderings.Put(key, list[:min(len(list), maxMemoRenderings)])
	return nil
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
