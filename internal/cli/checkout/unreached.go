package checkout

import (
	"context"
	"errors"
	"os"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/pipeline"
)

// UnreachedTargets are what is wrong with the targets of the current folder's pipeline files;
// none where it isn't the root of a checkout, of which nothing more is known.
func UnreachedTargets(ctx context.Context) ([]appset.Problem, error) {
	r, err := Open(ctx, "", nil)
	if errors.Is(err, git.ErrNoRepository) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer r.Close() // only read
	here, err := os.Stat(".")
	if err != nil {
		return nil, err
	}
	if root, err := os.Stat(r.Dir()); err != nil || !os.SameFile(here, root) {
		return nil, err
	}
	return r.unreachedTargets(ctx)
}

// unreachedTargets say which targets of the working tree's pipelines no merge into the branch
// that the tree stands for reaches, as far as the checkout alone tells: sets that need a
// cluster or a network are left out. The error is for pipeline files that can't be used.
func (r *Repository) unreachedTargets(ctx context.Context) ([]appset.Problem, error) {
	t, err := r.At(ctx, "")
	if err != nil {
		return nil, err
	}
	pipes, err := pipeline.Load(t.FS)
	if err != nil {
		return nil, err
	}
	var known Known
	in, err := known.resolverInput(pipes)
	if err != nil {
		return nil, err
	}
	files, _ := r.overlayFiles(t, nil)
	resolver := appset.New(appset.Options{})
	var out []appset.Problem
	for _, p := range pipes {
		in.Pipeline = p
		set, err := r.resolvePipeline(ctx, resolver, files, t, in, false)
		if err != nil {
			return nil, err
		}
		out = append(out, appset.UnreachedTargets(p, set.Targets, r.main)...)
	}
	return out, nil
}
