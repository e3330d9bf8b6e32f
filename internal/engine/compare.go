package engine

import (
	"context"
	"fmt"

	"github.com/liftlock/liftlock/internal/engine/observe"
)

// Compare compares what a pipeline of a repository resolves to with what runs.
// A repository that isn't looked after has no pipeline.
func (e *Engine) Compare(ctx context.Context, repo, pipeline string) (*observe.Compared, error) {
	r, ok := e.repos[repo]
	if !ok {
		return nil, fmt.Errorf("%s in %s: %w", pipeline, repo, observe.ErrNoPipeline)
	}
	return e.o.Observer.Compare(ctx, r.Repository, pipeline)
}
