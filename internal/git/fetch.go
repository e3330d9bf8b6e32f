package git

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

const headsPrefix = "refs/heads/"

// RefChange is a branch that a fetch found changed.
type RefChange struct {
	Branch string // without refs/heads/
	Old    string // empty: new
	New    string // empty: gone
}

// Fetch brings the mirror's branches to where the remote's are, those that are
// gone included, and returns what changed, sorted by branch. The notes of Argo CD's source
// hydrator come along (HydratorNote); tags and other refs are not mirrored. Concurrent calls run one after the other. A mirror
// that turns out to be damaged is made anew, fetched whole and logged; then
// the changes are against what it held before. A remote that suddenly has no
// branches at all is ErrRemote, and the mirror keeps what it has.
func (m *Mirror) Fetch(ctx context.Context) ([]RefChange, error) {
	unlock, err := m.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	before, err := m.allHeads(ctx)
	if err != nil {
		before = nil
		m.engine.markDamaged() // the fetch finds out
	}
	after, err := m.engine.fetchBranches(ctx, before, m.takeExpected())
	if err != nil {
		m.setHeads(nil) // a part of them may have been updated
		return nil, err
	}
	if after == nil {
		if after, err = m.readHeads(ctx); err != nil {
			return nil, err
		}
	}
	if len(after) == 0 && len(before) > 0 {
		return nil, m.restoreHeads(ctx, before)
	}
	m.setHeads(after)
	return diffHeads(before, after), nil
}

// maxExpected bounds what a Fetch is told to expect. Branches past it are fetched all the same.
const maxExpected = 16

// Expect says at which commit a branch is on the remote, as a webhook says for example. The next
// Fetch then has that commit sent while it asks where the branches are, which saves a round trip.
// It does nothing else: the branch goes to where the remote says that it is.
func (m *Mirror) Expect(branch, sha string) {
	if checkBranch(branch) != nil || checkSHA(sha) != nil {
		return
	}
	m.expectedMu.Lock()
	defer m.expectedMu.Unlock()
	if _, again := m.expected[branch]; !again && len(m.expected) >= maxExpected {
		return
	}
	if m.expected == nil {
		m.expected = map[string]string{}
	}
	m.expected[branch] = sha
}

func (m *Mirror) takeExpected() map[string]string {
	m.expectedMu.Lock()
	defer m.expectedMu.Unlock()
	expected := m.expected
	m.expected = nil
	return expected
}

// restoreHeads puts the branches back after a fetch in which all have vanished. Git takes any web
// page for a repository of the "dumb" protocol without branches. So a proxy's error or login page
// with status 200 looks just like this.
func (m *Mirror) restoreHeads(ctx context.Context, before map[string]string) error {
	e := &Error{
		Op: "fetch " + m.url, Kind: ErrRemote,
		Err:  fmt.Errorf("it shows no branches, and had %d before", len(before)),
		Hint: "a proxy's page may be in its place; if the repository has really been emptied, remove " + m.dir,
	}
	if err := m.engine.restoreBranches(ctx, before); err != nil {
		e.Err = fmt.Errorf("%w; and putting them back: %w", e.Err, err)
	}
	m.setHeads(nil)
	return e
}

// diffHeads is what leads from some branches, or refs by their full names, to others, sorted.
func diffHeads(before, after map[string]string) []RefChange {
	var out []RefChange
	for branch, sha := range after {
		if before[branch] != sha {
			out = append(out, RefChange{Branch: branch, Old: before[branch], New: sha})
		}
	}
	for branch, sha := range before {
		if _, ok := after[branch]; !ok {
			out = append(out, RefChange{Branch: branch, Old: sha})
		}
	}
	slices.SortFunc(out, func(a, b RefChange) int { return strings.Compare(a.Branch, b.Branch) })
	return out
}

// Head is the commit that a branch points to in the mirror, as of the last
// Fetch or Push; ok is false when there is no such branch.
func (m *Mirror) Head(ctx context.Context, branch string) (sha string, ok bool, err error) {
	if err := checkBranch(branch); err != nil {
		return "", false, err
	}
	heads, err := m.allHeads(ctx)
	if err != nil {
		return "", false, err
	}
	sha, ok = heads[branch]
	return sha, ok, nil
}

// Heads are the mirror's branches whose names start with prefix ("" is all of
// them) and the commits they point to. The map is the caller's.
func (m *Mirror) Heads(ctx context.Context, prefix string) (map[string]string, error) {
	heads, err := m.allHeads(ctx)
	if err != nil {
		return nil, err
	}
	if prefix == "" {
		return maps.Clone(heads), nil
	}
	out := map[string]string{}
	for branch, sha := range heads {
		if strings.HasPrefix(branch, prefix) {
			out[branch] = sha
		}
	}
	return out, nil
}

// allHeads are the branches, from memory where possible: only this process
// changes them, under the write lock.
func (m *Mirror) allHeads(ctx context.Context) (map[string]string, error) {
	m.headsMu.Lock()
	defer m.headsMu.Unlock()
	if m.heads == nil {
		heads, err := m.readHeads(ctx)
		if err != nil {
			return nil, err
		}
		m.heads = heads
	}
	return m.heads, nil
}

func (m *Mirror) setHeads(heads map[string]string) {
	m.headsMu.Lock()
	defer m.headsMu.Unlock()
	m.heads, m.notes = heads, nil
}

func (m *Mirror) readHeads(ctx context.Context) (map[string]string, error) {
	refs, err := m.engine.listRefs(ctx, headsPrefix)
	if err != nil {
		return nil, fmt.Errorf("list the mirror's branches: %w", err)
	}
	heads := make(map[string]string, len(refs))
	for ref, sha := range refs {
		heads[strings.TrimPrefix(ref, headsPrefix)] = sha
	}
	return heads, nil
}
