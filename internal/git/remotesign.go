package git

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"go.uber.org/zap"
)

// signedPrefix holds, by the day and the id of a commit that Write made, what the remote made of
// it: refs/liftlock/signed/20060102/<id>.
const signedPrefix = "refs/liftlock/signed/"

// RemoteCommit is a commit that a remote is to make.
type RemoteCommit struct {
	Message string
	Parents []string
	Tree    string      // the id that its root tree will have
	Base    string      // the tree that Changes are made to: the first parent's; empty: none
	Changes []FileWrite // sorted, with their modes; those to be deleted have only a path
}

// RemoteSigner has the remote make a commit that the remote signs, on no branch, and gives its id.
type RemoteSigner func(ctx context.Context, c RemoteCommit) (sha string, err error)

// Sign gives the commit to push in place of one that Write made. Where the remote signs commits
// (Options.RemoteSigner), it is the remote's commit of the same files, parents and message, else
// the commit itself. The remote's commit is brought here, compared, and given again for two weeks,
// also after a restart. So a caller that was interrupted before the push pushes the same. The
// remote decides its author, committer and time. Errors of the signer are wrapped; the error is
// ErrRejected where the remote made something else.
func (m *Mirror) Sign(ctx context.Context, sha string) (string, error) {
	if m.remoteSigner == nil {
		return sha, nil
	}
	made, err := m.Commit(ctx, sha)
	if err != nil {
		return "", fmt.Errorf("have %s signed: %w", sha, err)
	}
	known, err := m.findSigned(ctx, sha)
	if err != nil || known != "" {
		return known, err
	}
	c, err := m.describeCommit(ctx, made)
	if err != nil {
		return "", fmt.Errorf("have %s signed: %w", sha, err)
	}
	signed, err := m.remoteSigner(ctx, c)
	if err != nil {
		return "", fmt.Errorf("have %s signed: %w", sha, err)
	}
	if err := checkSHA(signed); err != nil {
		return "", fmt.Errorf("have %s signed: %w", sha, err)
	}
	return signed, m.adoptSigned(ctx, made, signed)
}

// findSigned is what the remote made of a commit; empty: nothing that is known here.
func (m *Mirror) findSigned(ctx context.Context, sha string) (string, error) {
	refs, err := m.engine.listRefs(ctx, signedPrefix)
	if err != nil {
		return "", err
	}
	for ref, signed := range refs {
		if strings.HasSuffix(ref, "/"+sha) {
			return signed, nil
		}
	}
	return "", nil
}

// describeCommit says what a remote needs to know to make a commit.
func (m *Mirror) describeCommit(ctx context.Context, made *CommitInfo) (RemoteCommit, error) {
	c := RemoteCommit{Message: made.Message, Parents: made.Parents, Tree: made.Tree}
	parent := ""
	if len(made.Parents) > 0 {
		info, err := m.Commit(ctx, made.Parents[0])
		if err != nil {
			return c, err
		}
		parent, c.Base = info.SHA, info.Tree
	}
	changes, err := m.Changed(ctx, parent, made.SHA)
	if err != nil {
		return c, err
	}
	for _, change := range changes {
		w := FileWrite{Path: change.Path, Mode: change.NewMode, Delete: change.Status == 'D'}
		if !w.Delete {
			if w.Content, err = m.Tree(made.SHA).ReadFile(change.Path); err != nil {
				return c, err
			}
		}
		c.Changes = append(c.Changes, w)
	}
	return c, nil
}

// adoptSigned brings what the remote made here, and keeps it where it is what was to be made.
func (m *Mirror) adoptSigned(ctx context.Context, made *CommitInfo, signed string) error {
	unlock, err := m.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := m.engine.fetchCommit(ctx, signed); err != nil {
		return err
	}
	got, err := m.Commit(ctx, signed)
	if err != nil {
		return fmt.Errorf("read the commit that the remote made of %s: %w", made.SHA, err)
	}
	if got.Tree != made.Tree || !slices.Equal(got.Parents, made.Parents) ||
		strings.TrimRight(got.Message, "\n") != strings.TrimRight(made.Message, "\n") {
		return &Error{Op: "have " + made.SHA + " signed", Kind: ErrRejected,
			Err: fmt.Errorf("%s, which the remote made of it, has other files, parents or another message", signed)}
	}
	m.log.Debug("the remote made and signed a commit", zap.String("of", made.SHA), zap.String("commit", signed))
	return m.engine.setRef(ctx, signedPrefix+m.now().UTC().Format(keepDay)+"/"+made.SHA, signed)
}
