package controller

import (
	"context"
	"fmt"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
)

// Compare compares what a pipeline of a repository resolves to with what runs.
// A repository that isn't looked after has no pipeline.
func (co *Controller) Compare(ctx context.Context, repo, pipeline string) (*branch.LiveComparison, error) {
	r, _ := co.repository(repo)
	if r == nil {
		return nil, fmt.Errorf("%s in %s: %w", pipeline, repo, branch.ErrNoPipeline)
	}
	return co.opts.Gatherer.Targets.Compare(ctx, r.Repository, pipeline)
}
