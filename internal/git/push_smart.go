package git

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/liftlock/liftlock/internal/cache/lock"
	"github.com/liftlock/liftlock/internal/git/smarthttp"
)

// maxSmartPack is what git push sends in one piece (http.postBuffer); more than that its own way
// gets through more proxies.
const maxSmartPack = 1 << 20

// pushSmart pushes with one request. Where it was rejected the reason is given, as explainRejection
// takes it.
func (mp *mirrorPrograms) pushSmart(ctx context.Context, op string, s PushSpec, heads map[string]string) (*smarthttp.RejectedError, error) {
	if !mp.smart.isUsable(mp.opts.Now()) {
		return nil, errLeaveToPrograms
	}
	// A removal is done by the host whatever the branch is at, where it doesn't know the commit that
	// it should be at. And what was pushed before, as it seems, costs less to look up.
	if s.New == "" || heads[s.Branch] == s.New {
		now, err := mp.listHeadsSmart(ctx, op, []string{s.Branch})
		switch {
		case err != nil, now[s.Branch] == s.New:
			return nil, err
		case now[s.Branch] != s.Old:
			return nil, leaseLostError(op, now[s.Branch], s.Old)
		}
	}
	var pack []byte
	if s.New != "" {
		var err error
		if pack, err = mp.pack(ctx, s.New, heads); err != nil {
			return nil, fmt.Errorf("%w: %w", errLeaveToPrograms, err)
		}
	}
	var rejected *smarthttp.RejectedError
	var over error
	err := mp.trySmart(ctx, op, func(ctx context.Context, who smarthttp.Credentials) error {
		rejected = nil
		if over = lock.CheckLease(ctx); over != nil {
			return over
		}
		err := mp.smart.client.Push(ctx, who, smarthttp.Update{Ref: headsPrefix + s.Branch, Old: s.Old, New: s.New}, pack)
		if errors.As(err, &rejected) {
			rejected.Reason, rejected.Messages = redactCredentials(rejected.Reason, who), redactCredentials(rejected.Messages, who)
			return nil
		}
		return err
	})
	if over != nil {
		return nil, leaseOverError(op, over)
	}
	if err == nil && rejected != nil && rejected.Unpack {
		return nil, fmt.Errorf("%w: %w", errLeaveToPrograms, rejected) // git push asks first what is there
	}
	return rejected, err
}

// pack has what a commit brings that the remote's branches, as they were last known, don't have.
func (mp *mirrorPrograms) pack(ctx context.Context, sha string, heads map[string]string) ([]byte, error) {
	c := mp.gitCommand("pack-objects", "--revs", "--stdout", "--thin", "--delta-base-offset", "-q")
	c.MaxStdout = maxSmartPack
	revisions := []string{sha}
	for _, head := range heads {
		revisions = append(revisions, "^"+head)
	}
	c.Stdin = []byte(strings.Join(revisions, "\n") + "\n")
	return mp.runGit(ctx, c)
}
