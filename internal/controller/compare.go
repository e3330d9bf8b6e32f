package controller

import (
	"context"
	"fmt"

	"github.com/liftlock/liftlock/internal/controller/facts"
)

// Compare compares what a pipeline of a repository resolves to with what runs.
// A repository that isn't looked after has no pipeline.
func (e *Engine) Compare(ctx context.Context, repo, pipeline string) (*facts.Compared, error) {
	r, ok := e.repos[repo]
	if !ok {
		return nil, fmt.Errorf("%s in %s: %w", pipeline, repo, facts.ErrNoPipeline)
	}
	return e.o.Observer.Compare(ctx, r.Repository, pipeline)
}
