package evaluate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/manifest/render"
)

// buildRenderer is what builds, and may remember what it built.
type buildRenderer interface {
	RenderAll(ctx context.Context, jobs []render.Job) ([]render.Outcome, error)
}

// SetParameter sets one of a chart's values as Argo CD sets a parameter.
func SetParameter(values map[string]any, name, value string, asText bool) error {
	return render.SetParameter(values, name, value, asText)
}

// BuildInProcess builds manifests in this process: for trees whose authors could do worse than to
// end it.
func BuildInProcess() appset.ManifestBuilder { return NewManifestBuilder(render.InProcess{}) }

// NewManifestBuilder builds manifests by a renderer of targets: nothing is read but the tree.
func NewManifestBuilder(by buildRenderer) appset.ManifestBuilder {
	return func(ctx context.Context, tree fs.FS, q appset.BuildRequest) (*appset.Built, error) {
		job := render.Job{Tree: render.Tree{FS: tree}, Input: render.Input{
			Application: q.Release, Namespace: q.Namespace, Sources: []render.Source{{Path: q.Folder, InTree: true, Options: q.Options}}}}
		if t, ok := tree.(interface {
			Identity(name string) (string, error)
		}); ok {
			job.Tree.ID = t.Identity
		}
		if _, here := by.(render.InProcess); !here && job.Tree.ID == nil {
			return nil, errors.New("it is in a tree that can't be told from others")
		}
		out, err := by.RenderAll(ctx, []render.Job{job})
		var died *render.Died
		switch {
		case err != nil:
			return nil, fmt.Errorf("%w: %w", appset.ErrBuildAgain, err)
		case ctx.Err() != nil || errors.As(out[0].Err, &died):
			return nil, fmt.Errorf("%w: %w", appset.ErrBuildAgain, out[0].Err)
		case out[0].Err != nil:
			return nil, out[0].Err
		}
		built := &appset.Built{Files: slices.Clone(out[0].Manifests.Reads.Files)}
		for i := range out[0].Manifests.Objects {
			built.Objects = append(built.Objects, json.RawMessage(out[0].Manifests.Objects[i].JSON))
		}
		return built, nil
	}
}
