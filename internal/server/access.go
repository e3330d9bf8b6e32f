package server

import (
	"context"
	"fmt"
	"strings"

	"github.com/liftlock/liftlock/internal/console"
	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
)

// newAccess is who reads which repositories; nil: every reader all.
func (s *Server) newAccess() *console.Readers {
	if len(s.o.Config.Access) == 0 {
		return nil
	}
	out := &console.Readers{OnForge: s.mayReadOnForge}
	for _, a := range s.o.Config.Access {
		out.Rules = append(out.Rules, console.ReaderRule{Repositories: a.Repositories, Groups: a.Groups, Tokens: a.Tokens, Forge: a.Forge})
	}
	return out
}

// mayReadOnForge says whether an account may read a repository on its forge.
func (s *Server) mayReadOnForge(ctx context.Context, repository, account string) (bool, error) {
	name, path, _ := strings.Cut(repository, ":")
	f, i := s.forges[name], strings.LastIndexByte(path, '/')
	if f == nil || i < 0 {
		return false, fmt.Errorf("ask who may read %s: there is no such repository on a forge of the server's file", repository)
	}
	level, err := f.Permission(ctx, forge.Repo{Owner: path[:i], Name: path[i+1:]}, account)
	if err != nil {
		return false, fmt.Errorf("ask whether %s may read %s: %w", account, repository, err)
	}
	return level >= forge.PermissionRead, nil
}

// repositoryOfKey is the repository that a key of the queue is about; empty: it can't be told.
func repositoryOfKey(key string) string {
	k, ok := wake.Parse(key)
	if !ok {
		return ""
	}
	return k.Repository
}

// attributeTrouble says which repository a trouble of the health is about, or that it is about
// none. A name that several forges have counts as no repository's for readers who don't read all.
func (s *Server) attributeTrouble(t *api.Trouble) {
	name, ok := strings.CutPrefix(t.Part, "repository ")
	if !ok {
		t.General = true
		return
	}
	for i := range s.o.Config.Repositories {
		r := &s.o.Config.Repositories[i]
		switch {
		case r.Name != name:
		case t.Repository != "":
			t.Repository = ""
			return
		default:
			t.Repository = r.Forge + ":" + r.Name
		}
	}
}
