package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/pipeline"
)

// Git is a repository's history; a *git.Mirror and a *git.Checkout are one.
type Git interface {
	Log(ctx context.Context, q git.LogQuery) ([]git.CommitInfo, error)
	Tree(sha string) *git.Tree
}

// historyDepth bounds how many versions of the pipeline files are walked to
// find the last good one and the commits that brought their parts.
const historyDepth = 500

// pipelinePaths are where pipeline files live.
var pipelinePaths = []string{pipeline.FileName, pipeline.FolderName}

// pipelineVersions walks the commits that changed the pipeline files, newest first.
func pipelineVersions(ctx context.Context, repo Git, from string) ([]git.CommitInfo, error) {
	log, err := repo.Log(ctx, git.LogQuery{From: from, FirstParent: true, Paths: pipelinePaths, Limit: historyDepth})
	if err != nil {
		return nil, fmt.Errorf("walk the history of the pipeline files: %w", err)
	}
	return log, nil
}

// LastGood finds the newest version of the pipeline files, back from a commit,
// that can be used, and the commit that has it. None at all is no error: then
// there are no pipelines, and the commit is the given one.
func LastGood(ctx context.Context, repo Git, tip string) ([]*pipeline.Pipeline, string, error) {
	log, err := pipelineVersions(ctx, repo, tip)
	if err != nil {
		return nil, "", err
	}
	for _, c := range log {
		pipes, err := pipeline.Load(repo.Tree(c.SHA))
		if err == nil {
			return pipes, c.SHA, nil
		}
		if unread := gitFailure(err); unread != nil {
			return nil, "", unread
		}
	}
	return nil, tip, nil
}

// gitFailure is an error of git's, which says nothing of what a version has; nil
// for a version that is broken, and for none.
func gitFailure(err error) error {
	var failed *git.Error
	if errors.As(err, &failed) {
		return fmt.Errorf("read an earlier version of the pipeline files: %w", err)
	}
	return nil
}

// Baseline goes back from a commit that has the pipeline to the commit that brought the pipeline or
// the newest of its carry entries. Releases that landed no later than that never move by
// themselves. Versions that were broken in between don't interrupt a pipeline's life.
func Baseline(ctx context.Context, repo Git, p *pipeline.Pipeline, from string) (string, error) {
	log, err := pipelineVersions(ctx, repo, from)
	if err != nil {
		return "", err
	}
	base := ""
	for _, c := range log {
		pipes, err := pipeline.Load(repo.Tree(c.SHA))
		if unread := gitFailure(err); unread != nil {
			return "", unread
		}
		if err != nil && !errors.Is(err, pipeline.ErrNoPipeline) {
			continue
		}
		then := slices.IndexFunc(pipes, func(q *pipeline.Pipeline) bool { return q.Name() == p.Name() })
		if then < 0 || !carriesAll(pipes[then].Spec.Carry, p.Spec.Carry) {
			break
		}
		base = c.SHA
	}
	return cmp.Or(base, from), nil
}

// maxHistorySteps bounds the commits that SameRules looks at.
const maxHistorySteps = 50

// SameRules says that no commit changed the pipeline files between an earlier commit and a later
// one, by first parents. Then LastGood and Baseline find the same at both. False also means that
// this can't be told soon.
func SameRules(ctx context.Context, repo interface {
	Git
	Commit(ctx context.Context, sha string) (*git.CommitInfo, error)
}, before, at string) bool {
	for range maxHistorySteps {
		if at == before {
			return true
		}
		c, err := repo.Commit(ctx, at)
		if err != nil || len(c.Parents) == 0 {
			return false
		}
		for _, name := range pipelinePaths {
			was, err := repo.Tree(c.Parents[0]).Identity(name)
			if err != nil {
				return false
			}
			if is, err := repo.Tree(at).Identity(name); err != nil || is != was {
				return false
			}
		}
		at = c.Parents[0]
	}
	return false
}

func carriesAll(then, now []pipeline.Carry) bool {
	return !slices.ContainsFunc(now, func(n pipeline.Carry) bool {
		return !slices.ContainsFunc(then, func(t pipeline.Carry) bool { return reflect.DeepEqual(t, n) })
	})
}
