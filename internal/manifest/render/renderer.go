package render

import (
	"context"
	"fmt"
)

// Job is one rendering that is asked for.
type Job struct {
	Tree  Tree
	Input Input
}

// Outcome is what came of one: manifests, or an error as Render's, or a [*Died].
type Outcome struct {
	Manifests *Manifests
	Err       error
}

// Renderer renders targets: in this process, or in others that may die. It may be called
// concurrently.
type Renderer interface {
	// RenderAll gives an outcome for each of the jobs. The error is the context's, or that
	// nothing can be rendered for a reason that isn't the jobs'.
	RenderAll(ctx context.Context, jobs []Job) ([]Outcome, error)
}

// InProcess renders in this process: for trees whose authors could do worse than to end it.
type InProcess struct{}

var _ Renderer = InProcess{}

// RenderAll renders one after the other.
func (InProcess) RenderAll(ctx context.Context, jobs []Job) ([]Outcome, error) {
	out := make([]Outcome, len(jobs))
	for i := range jobs {
		out[i].Manifests, out[i].Err = Render(ctx, jobs[i].Tree.FS, jobs[i].Input)
		if err := ctx.Err(); err != nil && out[i].Err != nil {
			return nil, fmt.Errorf("rendering %s: %w", jobs[i].Input.Application, err)
		}
	}
	return out, nil
}
