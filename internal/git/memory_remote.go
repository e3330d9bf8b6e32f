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

	mu sync.Mutex
	// Pull requests leave many refs behind, while most reads are of branches.
	heads map[string]string // by branch
	refs  map[string]string // the others, by full name
}

// remoteIdent is the author of commits for which the caller names none.
var remoteIdent = Ident{Name: "remote", Email: "remote@localhost"}

// NewMemoryRemote makes an empty one.
func NewMemoryRemote() *MemoryRemote {
	e := &memory{objects: newMemoryObjects()}
	return &MemoryRemote{engine: e, heads: map[string]string{}, refs: map[string]string{},
		repository: newRepository(e, nil, "the remote in memory", "it never had it")}
}

// Heads are all branches with their commits. The map is the caller's.
func (mr *MemoryRemote) Heads() map[string]string {
	mr.mu.Lock()
	defer mr.mu.Unlock()
	return maps.Clone(mr.heads)
}

// Head is the commit that a branch points to; ok is false when there is no such branch.
func (mr *MemoryRemote) Head(branch string) (sha string, ok bool) {
	return mr.findRef(headsPrefix + branch)
}

// Write makes a commit on no branch; it refuses what Mirror.Write refuses. Author and
// committer are the remote's own where the spec has none.
func (mr *MemoryRemote) Write(ctx context.Context, s CommitSpec) (string, error) {
	base, files, err := mr.planCommit(ctx, &s, remoteIdent)
	if err != nil {
		return "", err
	}
	return mr.engine.writeCommit(ctx, s, base, files)
}

// Update moves a branch from old to new, where empty means that it isn't there. It also succeeds
// where the branch is at new already. The error is ErrLeaseLost when the branch is at another
// commit and ErrUnknownCommit when there is no such commit. It is ErrRejected when its name can't
// stand beside that of another branch.
func (mr *MemoryRemote) Update(branch, new, old string) error {
	s := PushSpec{Branch: branch, New: new, Old: old}
	if err := s.checkFields(); err != nil {
		return err
	}
	if new != "" {
		if _, err := mr.engine.findCommit(new); err != nil {
			return fmt.Errorf("update branch %s: %w", branch, mr.unknownCommitError(new))
		}
	}
	mr.mu.Lock()
	defer mr.mu.Unlock()
	op, now := "update branch "+branch, mr.heads[branch]
	switch {
	case now == new:
		return nil
	case now != old:
		return leaseLostError(op, now, old)
	case new == "":
		delete(mr.heads, branch)
		return nil
	}
	if now == "" {
		for other := range mr.heads {
			if strings.HasPrefix(other, branch+"/") || strings.HasPrefix(branch, other+"/") {
				return &Error{Op: op, Kind: ErrRejected, Hint: "there is " + headsPrefix + other}
			}
		}
	}
	mr.heads[branch] = new
	return nil
}

// SetRef points a ref of any full name (refs/pull/7/head) to a commit of the remote or of one of
// its mirrors, wherever it points now. An empty one deletes it. One to a commit that nobody wrote
// can't be fetched.
func (mr *MemoryRemote) SetRef(ref, sha string) {
	_ = mr.engine.learn(sha) // fetching it says what is wrong
	mr.mu.Lock()
	defer mr.mu.Unlock()
	kept, name := mr.keptAs(ref)
	if sha == "" {
		delete(kept, name)
		return
	}
	kept[name] = sha
}

// keptAs is where a ref is kept, and by which name. Called with the lock held.
func (mr *MemoryRemote) keptAs(ref string) (kept map[string]string, name string) {
	if branch, ok := strings.CutPrefix(ref, headsPrefix); ok {
		return mr.heads, branch
	}
	return mr.refs, ref
}

// tags are the names of the tags.
func (mr *MemoryRemote) tags() []string {
	mr.mu.Lock()
	defer mr.mu.Unlock()
	var out []string
	for ref := range mr.refs {
		if tag, ok := strings.CutPrefix(ref, tagsPrefix); ok {
			out = append(out, tag)
		}
	}
	return out
}

func (mr *MemoryRemote) findRef(ref string) (sha string, ok bool) {
	mr.mu.Lock()
	defer mr.mu.Unlock()
	kept, name := mr.keptAs(ref)
	sha, ok = kept[name]
	return sha, ok
}
