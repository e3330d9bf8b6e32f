package story

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/world/emulator"
)

// checkOneLine holds that what a pull request landed is one line of one overlay.
func (s *Story) checkOneLine(ctx context.Context, p *emulator.PullRequest) error {
	step := fmt.Sprintf("%s moves exactly one line of one overlay", s.pullName(p.Number))
	ref, ok := promotion.ParseBranch(p.Branch)
	if !ok {
		return &StepError{Step: step, Seen: p.Branch}
	}
	_, err := s.checkCommit(ctx, step, p.MergeCommit, Kustomization(ref.Environment))
	return err
}

// checkDiscovered holds that a commit brought a release into dev by itself, and moved one line of its overlay.
func (s *Story) checkDiscovered(ctx context.Context, tag, commit string) error {
	step := tag + " comes into dev by a commit of its own, which moves one line"
	landed, err := s.checkCommit(ctx, step, commit, Kustomization("dev"))
	if err == nil && landed.Trailers[promotion.TrailerKind] != promotion.KindDiscovery {
		return &StepError{Step: step, Seen: landed.Message}
	}
	return err
}

// checkCommit holds that a commit moves one line of one file, and nothing else.
func (s *Story) checkCommit(ctx context.Context, step, commit, file string) (*git.CommitInfo, error) {
	var m *git.Mirror
	err := s.awaitStep(ctx, step, func() (bool, string, error) {
		var err error
		if m, err = s.Fixture.openMirror(ctx); err != nil {
			return false, err.Error(), nil // a branch that is deleted meanwhile fails the fetch
		}
		return true, "", nil
	})
	if err != nil {
		return nil, err
	}
	defer m.Close() // it only read
	landed, err := m.Commit(ctx, commit)
	if err != nil {
		return landed, &StepError{Step: step, Err: err}
	}
	diff, err := m.Diff(ctx, landed.Parents[0], commit)
	if err != nil {
		return landed, &StepError{Step: step, Err: err}
	}
	var files []string
	added, removed := 0, 0
	for line := range strings.Lines(diff) {
		switch {
		case strings.HasPrefix(line, "+++ b/"):
			files = append(files, strings.TrimSpace(strings.TrimPrefix(line, "+++ b/")))
		case strings.HasPrefix(line, "---"):
		case strings.HasPrefix(line, "+"):
			added++
		case strings.HasPrefix(line, "-"):
			removed++
		}
	}
	if len(files) != 1 || files[0] != file || added != 1 || removed != 1 {
		return landed, &StepError{Step: step, Seen: diff}
	}
	return landed, nil
}

// openMirror opens a mirror of the world's repository, to look at it with.
func (f *Fixture) openMirror(ctx context.Context) (*git.Mirror, error) {
	dir, err := f.Forge.GitDir(Repo)
	if err != nil {
		return nil, err
	}
	m, err := git.Open(ctx, git.Options{Dir: filepath.Join(f.Dir, "look.git"), URL: dir,
		Author: git.Ident{Name: "demo", Email: "demo@example.com"}})
	if err != nil {
		return nil, err
	}
	if _, err := m.Fetch(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("look at the repository: %w", err), m.Close())
	}
	return m, nil
}
