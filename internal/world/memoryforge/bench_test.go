package memoryforge_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
)

// promote moves a branch to a new commit upon main, opens a pull request and merges it.
func (s *scene) promote(i int) {
	s.t.Helper()
	branch := fmt.Sprintf("topic-%d", i%50)
	author := s.Ident(botLogin)
	sha, err := s.remote.Write(context.Background(), git.CommitSpec{
		Parents: []string{s.tip("main")}, Base: s.tip("main"), Message: fmt.Sprint("Change ", i), Author: &author, When: s.clock(),
		Files: []git.FileWrite{{Path: branch + ".txt", Content: []byte(fmt.Sprint(i))}},
	})
	s.must(err)
	s.must(s.Push(s.repo, botLogin, branch, sha, true))
	pr, created, err := s.bot.CreatePullRequest(context.Background(), s.repo, forge.NewPullRequest{Title: "T", Branch: branch, Base: "main"})
	s.must(err)
	if !created {
		s.t.Fatalf("%s has a pull request: %+v", branch, pr)
	}
	_, err = s.bot.Merge(context.Background(), s.repo, forge.MergeRequest{Number: pr.Number, Head: pr.Head, Method: "squash"})
	s.must(err)
}

// BenchmarkForge is what calls cost in a repository with many closed pull requests.
func BenchmarkForge(b *testing.B) {
	s := newScene(b)
	const closed = 20_000
	since := time.Time{}
	for i := range closed {
		if i == closed-10 {
			since = s.clock()
		}
		s.promote(i)
	}
	s.events = nil
	b.Run("list since", func(b *testing.B) {
		for b.Loop() {
			list, err := s.bot.PullRequests(context.Background(), s.repo, since)
			if err != nil || len(list) > 20 {
				b.Fatal(len(list), err)
			}
		}
	})
	b.Run("push, open and merge", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			s.promote(i)
		}
	})
}
