package git

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
)

// MemoryRemote is a remote repository in memory, for tests and simulations: its
// branches and other refs, and the commits that were pushed to it or made there.
// Its objects are real, so that the same CommitSpec makes the same commit in it, in
// its mirrors (OpenMemory) and in git. It is safe for concurrent use.
type MemoryRemote struct {
	repository
	engine *memory

	mu   sync.Mutex
	refs map[string]string // by full name
}

// remoteIdent makes the commits of which nobody says who does.
var remoteIdent = Ident{Name: "remote", Email: "remote@localhost"}

// NewMemoryRemote makes an empty one.
func NewMemoryRemote() *MemoryRemote {
	e := &memory{objects: newMemoryObjects()}
	return &MemoryRemote{engine: e, refs: map[string]string{}, repository: newRepository(e, nil, "the remote in memory", "it never had it")}
}

// Heads are all branches with their commits. The map is the caller's.
func (r *MemoryRemote) Heads() map[string]string {
	heads := map[string]string{}
	for ref, sha := range r.listRefs(headsPrefix) {
		heads[strings.TrimPrefix(ref, headsPrefix)] = sha
	}
	return heads
}

// Head is the commit that a branch points to; ok is false when there is no such branch.
func (r *MemoryRemote) Head(branch string) (sha string, ok bool) {
	return r.findRef(headsPrefix + branch)
}

// Write makes a commit on no branch; it refuses what Mirror.Write refuses. Author and
// committer are the remote's own where the spec has none.
func (r *MemoryRemote) Write(ctx context.Context, s CommitSpec) (string, error) {
	base, files, err := r.planCommit(ctx, &s, remoteIdent)
	if err != nil {
		return "", err
	}
	return r.engine.writeCommit(ctx, s, base, files)
}

// Update moves a branch from old to new, where empty is that it isn't there. It is
// success, too, where the branch is as new says already; ErrLeaseLost when it is
// something else, ErrUnknownCommit when there is no such commit, ErrRejected when
// its name can't stand beside that of another branch.
func (r *MemoryRemote) Update(branch, new, old string) error {
	s := PushSpec{Branch: branch, New: new, Old: old}
	if err := s.checkFields(); err != nil {
		return err
	}
	if new != "" {
		if _, err := r.engine.findCommit(new); err != nil {
			return fmt.Errorf("update branch %s: %w", branch, r.unknownCommitError(new))
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	op, ref := "update branch "+branch, headsPrefix+branch
	now := r.refs[ref]
	switch {
	case now == new:
		return nil
	case now != old:
		return leaseLostError(op, now, old)
	case new == "":
		delete(r.refs, ref)
		return nil
	}
	if now == "" {
		for other := range r.refs {
			if strings.HasPrefix(other, ref+"/") || strings.HasPrefix(ref, other+"/") {
				return &Error{Op: op, Kind: ErrRejected, Hint: "there is " + other}
			}
		}
	}
	r.refs[ref] = new
	return nil
}

// SetRef points a ref of any full name (refs/pull/7/head) to a commit, whatever it is
// at; an empty one deletes it. A commit that the remote lacks is ignored by those who
// fetch it.
func (r *MemoryRemote) SetRef(ref, sha string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if sha == "" {
		delete(r.refs, ref)
		return
	}
	r.refs[ref] = sha
}

func (r *MemoryRemote) findRef(ref string) (sha string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	sha, ok = r.refs[ref]
	return sha, ok
}

func (r *MemoryRemote) listRefs(prefix string) map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if prefix == "" {
		return maps.Clone(r.refs)
	}
	out := map[string]string{}
	for ref, sha := range r.refs {
		if strings.HasPrefix(ref, prefix) {
			out[ref] = sha
		}
	}
	return out
}
