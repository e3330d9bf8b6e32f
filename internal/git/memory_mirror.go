package git

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/liftlock/liftlock/internal/cache"
	"github.com/liftlock/liftlock/internal/cache/lock"
	"github.com/liftlock/liftlock/internal/git/sshsig"
)

// MemoryOptions say how a mirror in memory works.
type MemoryOptions struct {
	Author       Ident        // of the commits that Write makes
	SigningKey   *sshsig.Key  // signs them; nil: they aren't signed
	RemoteSigner RemoteSigner // as Options have it
	Caches       *cache.Group // where its caches are counted; nil: nowhere

	Now func() time.Time // nil: time.Now; only ages what is on no ref

	// BeforeRemote and AfterRemote are called around each call of the remote: "fetch", "push",
	// "heads", "fetch-ref" or "fetch-commit"; nil: nothing. An error of BeforeRemote is returned in
	// place of the call. One of AfterRemote comes after the call had its effect at the remote,
	// which the caller doesn't learn then. They may change the remote, and not write to the mirror.
	BeforeRemote, AfterRemote func(ctx context.Context, op string) error
}

// OpenMemory makes a mirror of a remote in memory. It is empty until the first Fetch, knows only
// the commits that it fetched or wrote, and answers as one over git's programs does. Commits on no
// branch are kept from Maintain for two weeks.
func OpenMemory(r *MemoryRemote, o MemoryOptions) *Mirror {
	if o.Now == nil {
		o.Now = time.Now
	}
	e := &memoryMirror{memory: memory{objects: r.engine.objects, signingKey: o.SigningKey}, remote: r, opts: o, refs: map[string]string{},
		kept: map[string]time.Time{}}
	m := newMirror(e, newRepository(e, o.Caches, "the mirror in memory", "it never had it"), o.Now)
	m.url, m.author, m.remoteSigner = "memory:", o.Author, o.RemoteSigner
	return m
}

// memoryMirror is the engine of a mirror in memory.
type memoryMirror struct {
	memory
	remote *MemoryRemote
	opts   MemoryOptions

	refsMu sync.Mutex
	refs   map[string]string
	kept   map[string]time.Time // when a commit was written or fetched by FetchRef, or a ref left it
}

var _ mirrorEngine = (*memoryMirror)(nil)

// callRemote calls the remote with what the options want before and after.
func (m *memoryMirror) callRemote(ctx context.Context, op string, call func() error) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s the remote in memory: %w", op, err)
	}
	if before := m.opts.BeforeRemote; before != nil {
		if err := before(ctx, op); err != nil {
			return err
		}
	}
	if err := call(); err != nil {
		return err
	}
	if after := m.opts.AfterRemote; after != nil {
		return after(ctx, op)
	}
	return nil
}

func (m *memoryMirror) fetchBranches(ctx context.Context, _, _ map[string]string) (map[string]string, error) {
	return nil, m.callRemote(ctx, "fetch", func() error {
		heads := m.remote.Heads()
		notes, ok := m.remote.findRef(hydratorNotes)
		if ok {
			if err := m.learn(notes); err != nil {
				return &Error{Op: "fetch " + hydratorNotes, Kind: ErrRemote, Err: err}
			}
		}
		for branch, sha := range heads {
			if err := m.learn(sha); err != nil {
				return &Error{Op: "fetch " + headsPrefix + branch, Kind: ErrRemote, Err: err}
			}
		}
		m.refsMu.Lock()
		defer m.refsMu.Unlock()
		for ref := range m.refs {
			if branch, ok := strings.CutPrefix(ref, headsPrefix); ok && heads[branch] == "" {
				m.moveRef(ref, "")
			}
		}
		for branch, sha := range heads {
			m.moveRef(headsPrefix+branch, sha)
		}
		m.moveRef(hydratorNotes, notes)
		return nil
	})
}

func (m *memoryMirror) fetchRef(ctx context.Context, ref string) error {
	return m.callRemote(ctx, "fetch-ref", func() error {
		sha, ok := m.remote.findRef(ref)
		if !ok {
			return &Error{Op: "fetch " + ref, Kind: ErrRemote, Err: fmt.Errorf("couldn't find remote ref %s", ref)}
		}
		if err := m.learn(sha); err != nil {
			return &Error{Op: "fetch " + ref, Kind: ErrRemote, Err: err}
		}
		m.refsMu.Lock()
		defer m.refsMu.Unlock()
		m.kept[sha] = m.opts.Now()
		m.moveRef(fetchedPrefix+m.opts.Now().UTC().Format(keepDay)+"/"+ref, sha)
		return nil
	})
}

// isReplaced: what was fetched stays for its two weeks, as it takes no room on a disk.
func (m *memoryMirror) isReplaced(context.Context, string) (bool, error) { return false, nil }

func (m *memoryMirror) fetchCommit(ctx context.Context, sha string) error {
	return m.callRemote(ctx, "fetch-commit", func() error {
		if err := m.learn(sha); err != nil {
			return &Error{Op: "fetch " + sha, Kind: ErrRemote, Err: err}
		}
		return nil
	})
}

func (m *memoryMirror) pushBranch(ctx context.Context, s PushSpec, _ map[string]string) error {
	return m.callRemote(ctx, "push", func() error {
		if over := lock.CheckLease(ctx); over != nil {
			return leaseOverError("push branch "+s.Branch, over)
		}
		if s.New != "" {
			if err := m.remote.engine.learn(s.New); err != nil {
				return err
			}
		}
		return m.remote.Update(s.Branch, s.New, s.Old)
	})
}

func (m *memoryMirror) listRemoteHeads(ctx context.Context, branches []string) (map[string]string, error) {
	heads := map[string]string{}
	err := m.callRemote(ctx, "heads", func() error {
		for _, branch := range branches {
			if sha, ok := m.remote.Head(branch); ok {
				heads[branch] = sha
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return heads, nil
}

func (m *memoryMirror) listRefs(_ context.Context, prefix string) (map[string]string, error) {
	m.refsMu.Lock()
	defer m.refsMu.Unlock()
	out := map[string]string{}
	for ref, sha := range m.refs {
		if strings.HasPrefix(ref, prefix) {
			out[ref] = sha
		}
	}
	return out, nil
}

func (m *memoryMirror) setRef(_ context.Context, ref, sha string) error {
	m.refsMu.Lock()
	defer m.refsMu.Unlock()
	m.moveRef(ref, sha)
	return nil
}

// moveRef is setRef with the refs locked.
func (m *memoryMirror) moveRef(ref, sha string) {
	was := m.refs[ref]
	if was == sha {
		return
	}
	if was != "" {
		m.kept[was] = m.opts.Now()
	}
	if sha == "" {
		delete(m.refs, ref)
	} else {
		m.refs[ref] = sha
	}
}

func (m *memoryMirror) writeCommit(ctx context.Context, s CommitSpec, base string, files []FileWrite) (string, error) {
	sha, err := m.memory.writeCommit(ctx, s, base, files)
	if err == nil {
		m.refsMu.Lock()
		defer m.refsMu.Unlock()
		m.kept[sha] = m.opts.Now()
	}
	return sha, err
}

func (m *memoryMirror) restoreBranches(ctx context.Context, heads map[string]string) error {
	for branch, sha := range heads {
		if err := m.setRef(ctx, headsPrefix+branch, sha); err != nil {
			return err
		}
	}
	return nil
}

// maintain forgets the commits that no ref has led to for two weeks.
func (m *memoryMirror) maintain(ctx context.Context) error {
	m.refsMu.Lock()
	defer m.refsMu.Unlock()
	oldest := m.opts.Now().Add(-keepUnpushedFor)
	for ref := range m.refs {
		if day, _, _ := strings.Cut(strings.TrimPrefix(ref, signedPrefix), "/"); strings.HasPrefix(ref, signedPrefix) &&
			day < oldest.UTC().Format(keepDay) {
			delete(m.refs, ref)
		}
	}
	maps.DeleteFunc(m.kept, func(_ string, at time.Time) bool { return at.Before(oldest) })
	var still commitSet
	for _, sha := range slices.Concat(slices.Collect(maps.Values(m.refs)), slices.Collect(maps.Keys(m.kept))) {
		if c, ok := m.objects.lookUpCommit(sha); ok {
			still.addHistory(c)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known = still
	return ctx.Err()
}
