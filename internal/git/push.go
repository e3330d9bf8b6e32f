package git

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/cache/lock"
)

// PushSpec is one change of one remote branch.
type PushSpec struct {
	Branch string // without refs/heads/
	New    string // the commit it shall point to; empty deletes it
	Old    string // the commit it must point to now; empty: it must not exist
}

// Push changes one branch of the remote if it is as s.Old says; a branch that
// is already as s.New says is success. Afterwards the mirror's own branch says
// the same. ErrLeaseLost when the remote branch is something else,
// ErrUnknownCommit when the mirror has no s.New, ErrRejected when the remote
// refuses. After ErrRemote it is not known whether the push arrived: push
// again, that is safe. lock.ErrLeaseOver: the run that ctx is of has ended, and
// nothing was sent.
func (m *Mirror) Push(ctx context.Context, s PushSpec) error {
	if err := s.checkFields(); err != nil {
		return err
	}
	unlock, err := m.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()

	if s.New != "" {
		if err := m.requireCommits(ctx, s.New); err != nil {
			return fmt.Errorf("push branch %s: %w", s.Branch, err)
		}
	}
	ref := headsPrefix + s.Branch
	if m.beforePush != nil {
		m.beforePush(ref)
	}
	heads, err := m.allHeads(ctx)
	if err != nil {
		m.engine.markDamaged() // the push needs none of them; the next fetch finds out
	}
	if err := m.engine.pushBranch(ctx, s, heads); err != nil {
		return err
	}
	if m.afterPush != nil {
		m.afterPush(ref)
	}
	if err := m.setBranch(ctx, ref, s.New); err != nil {
		// The remote has it, which is what was asked for; the next fetch
		// brings the mirror there too.
		m.setHeads(nil)
		m.log.Warn("the push arrived, but the mirror's own branch could not follow", zap.String("ref", ref), zap.Error(err))
	}
	return nil
}

func (p PushSpec) checkFields() error {
	if err := checkBranch(p.Branch); err != nil {
		return err
	}
	for _, sha := range []string{p.New, p.Old} {
		if sha == "" {
			continue
		}
		if err := checkSHA(sha); err != nil {
			return err
		}
	}
	return nil
}

func (mp *mirrorPrograms) pushBranch(ctx context.Context, s PushSpec, heads map[string]string) error {
	op := fmt.Sprintf("push branch %s to %s", s.Branch, mp.remote.url)
	rejected, left := mp.pushSmart(ctx, op, s, heads)
	switch {
	case errors.Is(left, errLeaveToPrograms):
	case left != nil, rejected == nil:
		return left
	default:
		return mp.explainRejection(ctx, op, s, rejected.Reason, rejected.Messages)
	}
	err := mp.pushByProgram(ctx, op, s)
	if err == nil {
		mp.leftToPrograms(left)
	}
	return err
}

func (mp *mirrorPrograms) pushByProgram(ctx context.Context, op string, s PushSpec) error {
	if over := lock.CheckLease(ctx); over != nil {
		return leaseOverError(op, over)
	}
	ref := headsPrefix + s.Branch
	out, err := mp.runRemote(ctx, op,
		"push", "--porcelain", "--no-verify", "--recurse-submodules=no",
		"--force-with-lease="+ref+":"+s.Old, "--", mp.remote.url, s.New+":"+ref)
	if err == nil {
		return nil
	}
	rejected, reason := parseRejection(out, ref)
	if !rejected {
		return err
	}
	return mp.explainRejection(ctx, op, s, reason, remoteMessages(err))
}

// explainRejection says why a push didn't move its branch; nil: it is as it should be.
func (mp *mirrorPrograms) explainRejection(ctx context.Context, op string, s PushSpec, reason, messages string) error {
	// Only the remote can tell why: the lease may be lost, or the branch be
	// as wanted already (a deleted one is refused as stale, too).
	heads, lerr := mp.listRemoteHeads(ctx, []string{s.Branch})
	if lerr != nil {
		return lerr
	}
	now := heads[s.Branch]
	switch {
	case now == s.New:
		return nil
	case now != s.Old:
		return leaseLostError(op, now, s.Old)
	case strings.Contains(reason, "stale info"):
		return &Error{Op: op, Kind: ErrLeaseLost, Err: errors.New("it has moved and come back meanwhile")}
	}
	return &Error{Op: op, Kind: ErrRejected, Err: errors.New(shortenForLog(reason)),
		Hint: "check the branch's protection and the remote's hooks: " + cmp.Or(messages, "it gives no reason")}
}

// parseRejection finds in the output of push --porcelain whether the ref was
// refused, and git's reason.
func parseRejection(out []byte, ref string) (bool, string) {
	for line := range bytes.Lines(out) {
		// "!\t<from>:<to>\t[rejected] (stale info)\n"
		f := strings.SplitN(strings.TrimSuffix(string(line), "\n"), "\t", 3)
		if len(f) == 3 && f[0] == "!" && strings.HasSuffix(f[1], ":"+ref) {
			return true, f[2]
		}
	}
	return false, ""
}

// remoteMessages are what the remote itself said about a refused push; empty: nothing.
func remoteMessages(err error) string {
	var said []string
	for line := range strings.Lines(stderrOf(err)) {
		if rest, ok := strings.CutPrefix(line, "remote:"); ok {
			if rest = strings.TrimSpace(rest); rest != "" {
				said = append(said, rest)
			}
		}
	}
	return strings.Join(said, " ")
}

// RemoteHeads asks the remote itself where branches are, in one request; one that
// doesn't exist there is left out. The mirror stays as it is.
func (m *Mirror) RemoteHeads(ctx context.Context, branches ...string) (map[string]string, error) {
	for _, branch := range branches {
		if err := checkBranch(branch); err != nil {
			return nil, err
		}
	}
	return m.engine.listRemoteHeads(ctx, branches)
}

func (mp *mirrorPrograms) listRemoteHeads(ctx context.Context, branches []string) (map[string]string, error) {
	op := fmt.Sprintf("look up %s at %s", strings.Join(branches, ", "), mp.remote.url)
	heads, err := mp.listHeadsSmart(ctx, op, branches)
	if !errors.Is(err, errLeaveToPrograms) {
		return heads, err
	}
	args := []string{"ls-remote", "--quiet", "--refs", "--", mp.remote.url}
	for _, branch := range branches {
		args = append(args, headsPrefix+branch)
	}
	out, err := mp.runRemote(ctx, op, args...)
	if err != nil {
		return nil, err
	}
	heads = map[string]string{}
	for line := range bytes.Lines(out) {
		// The pattern also matches refs that only end in it.
		sha, name, _ := strings.Cut(strings.TrimSuffix(string(line), "\n"), "\t")
		if branch, ok := strings.CutPrefix(name, headsPrefix); ok && isSHA(sha) && slices.Contains(branches, branch) {
			heads[branch] = sha
		}
	}
	return heads, nil
}

// setBranch sets the mirror's own branch after a push.
func (m *Mirror) setBranch(ctx context.Context, ref, sha string) error {
	if err := m.engine.setRef(ctx, ref, sha); err != nil {
		return err
	}
	heads, err := m.allHeads(ctx)
	if err != nil {
		return err
	}
	heads = maps.Clone(heads)
	branch := strings.TrimPrefix(ref, headsPrefix)
	if sha == "" {
		delete(heads, branch)
	} else {
		heads[branch] = sha
	}
	m.setHeads(heads)
	return nil
}

func (mp *mirrorPrograms) setRef(ctx context.Context, ref, sha string) error {
	args := []string{"update-ref", "--", ref, sha}
	if sha == "" {
		args = []string{"update-ref", "-d", "--", ref}
	}
	_, err := mp.runGit(ctx, mp.gitCommand(args...))
	return err
}

// leaseOverError is a push that isn't sent, as the run that it is of has ended.
func leaseOverError(op string, over error) error { return &Error{Op: op, Err: over} }

func leaseLostError(op, now, old string) error {
	return &Error{Op: op, Kind: ErrLeaseLost, Err: fmt.Errorf("it is at %s, expected was %s", shaOrNothing(now), shaOrNothing(old))}
}

func shaOrNothing(sha string) string {
	if sha == "" {
		return "nothing"
	}
	return sha
}
