package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/server/config"
	"github.com/liftlock/liftlock/internal/store/record"
	"github.com/liftlock/liftlock/webhooks"
)

// errReplaced: another repository has the name of one that was looked after.
var errReplaced = errors.New("another repository has this name by now")

// repositoryNumbers are the numbers of repositories on their forges.
var repositoryNumbers = record.Declare[record.Repository, int64](record.Declaration{
	Name: "repository-number", Owner: "server", Lifetime: record.Lasting,
	Doc: "The repository's number on its forge when it was first reached. Without it, the repository that has the name now is believed.",
})

// readNumber reads a repository's number on its forge and holds it against the number that it had
// when it was first reached, which the store has. It is 0 where the forge tells none. The error is
// errReplaced where they differ: anybody may have made the present one.
func (s *Server) readNumber(ctx context.Context, id string, f forge.Forge, r forge.Repo) (int64, error) {
	n, ok := f.(forge.RepositoryNumberer)
	if !ok {
		return 0, nil
	}
	number, err := n.RepositoryNumber(ctx, r)
	if err != nil || number == 0 {
		return 0, err
	}
	was, known, err := repositoryNumbers.Get(ctx, s.store, record.Repository(id))
	switch {
	case err != nil:
		return 0, err
	case !known:
		err = repositoryNumbers.Put(ctx, s.store, record.Repository(id), number)
	case was != number:
		err = fmt.Errorf("%w: the number of %s was %d, and is %d", errReplaced, r, was, number)
	}
	if err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.numbers[id] = number
	return number, nil
}

// repositoryOf is the repository of the server's file that an event is about; nil: none. A
// repository that was renamed or moved to another owner is still in the file as it was. It is found
// by its former name, or by its number once it was reached. The name comes first: where a
// repository is in the file under its old and its new name, its number doesn't tell which is meant.
// A repository that only has the name of one with another number isn't ours.
func (s *Server) repositoryOf(forgeName string, ev *webhooks.Event) *config.Repository {
	return s.findRepository(forgeName, func(r *config.Repository, number int64) bool {
		isOther := ev.RepoID != 0 && number != 0 && ev.RepoID != number
		return !isOther && (strings.EqualFold(r.Name, ev.Repo) || strings.EqualFold(r.Name, ev.Former))
	}, func(_ *config.Repository, number int64) bool { return ev.RepoID != 0 && number == ev.RepoID })
}

// replacedBy is the repository of the server's file whose name the one has that an event is about,
// which is another; nil: none.
func (s *Server) replacedBy(forgeName string, ev *webhooks.Event) *config.Repository {
	return s.findRepository(forgeName, func(r *config.Repository, number int64) bool {
		return strings.EqualFold(r.Name, ev.Repo) && ev.RepoID != 0 && number != 0 && ev.RepoID != number
	})
}

// findRepository finds a repository of the server's file on a forge by the first of some conditions
// that one fulfils; nil: none does. They are given its number, 0 where that isn't known.
func (s *Server) findRepository(forgeName string, conditions ...func(r *config.Repository, number int64) bool) *config.Repository {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, matches := range conditions {
		at := slices.IndexFunc(s.o.Config.Repositories, func(r config.Repository) bool {
			return r.Forge == forgeName && matches(&r, s.numbers[r.Forge+":"+r.Name])
		})
		if at >= 0 {
			return &s.o.Config.Repositories[at]
		}
	}
	return nil
}
