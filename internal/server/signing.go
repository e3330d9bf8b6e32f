package server

import (
	"context"
	"fmt"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
)

// commitSigner has a forge sign what is committed to a repository, where the server's file says so;
// nil: it doesn't.
func (s *Server) commitSigner(f forge.Forge, r forge.Repo) (git.RemoteSigner, error) {
	if !s.o.Config.SignsByForge() {
		return nil, nil
	}
	by, ok := f.(forge.CommitSigner)
	if !ok {
		return nil, fmt.Errorf("the forge of %s can't sign commits; correct signing in the server's file", r)
	}
	return func(ctx context.Context, c git.RemoteCommit) (string, error) {
		n := forge.NewCommit{Message: c.Message, Parents: c.Parents, Tree: c.Tree, Base: c.Base}
		for _, w := range c.Changes {
			n.Changes = append(n.Changes, forge.FileChange{Path: w.Path, Executable: w.Mode == git.Executable, Content: w.Content,
				Delete: w.Delete})
		}
		return by.SignCommit(ctx, r, n)
	}, nil
}
