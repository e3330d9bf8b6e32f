package server

import (
	"context"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/config"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/webhooks"
)

// repositoryNumberer is a forge whose webhooks carry the repository's number (Event.RepoID).
type repositoryNumberer interface {
	// RepositoryNumber is the number, which stays when the repository is renamed or moved.
	RepositoryNumber(ctx context.Context, r forge.Repo) (int64, error)
}

// readNumber remembers a repository's number, where its forge has one.
func (s *Server) readNumber(ctx context.Context, id string, f forge.Forge, r forge.Repo) error {
	n, ok := f.(repositoryNumberer)
	if !ok {
		return nil
	}
	number, err := n.RepositoryNumber(ctx, r)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.numbers[id] = number
	return nil
}

// repositoryOf is the repository of the server's file that an event is about; nil: none. What
// was renamed or moved to another owner is still in the file as it was: it is found by its
// former name, or by its number once it was reached. The name comes first: the number of what
// is in the file under its old and its new name doesn't tell which is meant.
func (s *Server) repositoryOf(forgeName string, ev *webhooks.Event) *config.Repository {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, matches := range []func(r *config.Repository) bool{
		func(r *config.Repository) bool {
			return strings.EqualFold(r.Name, ev.Repo) || strings.EqualFold(r.Name, ev.Former)
		},
		func(r *config.Repository) bool { return ev.RepoID != 0 && s.numbers[r.Forge+":"+r.Name] == ev.RepoID },
	} {
		at := slices.IndexFunc(s.o.Config.Repositories, func(r config.Repository) bool { return r.Forge == forgeName && matches(&r) })
		if at >= 0 {
			return &s.o.Config.Repositories[at]
		}
	}
	return nil
}
