package appset

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/wording"
)

// BuildRequest asks for what Kustomize makes of a folder.
type BuildRequest struct {
	Folder string // from the repository's root
	// Options are as those of an Application's source: they say what builds it.
	Options json.RawMessage
}

// Built is what was made of a folder.
type Built struct {
	Objects []json.RawMessage
	Files   []string // that it was made of, from the repository's root, sorted
}

// ManifestBuilder builds manifests of a tree's files. An error that wraps
// [ErrBuildAgain] is none of the files': another try may give an answer.
type ManifestBuilder func(ctx context.Context, tree fs.FS, q BuildRequest) (*Built, error)

// ErrBuildAgain marks that manifests couldn't be built for a reason that may pass.
var ErrBuildAgain = errors.New("it may be built at another time")

// kustomizationNames are the names that a kustomization may have.
var kustomizationNames = []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}

// KustomizationFile is a folder's kustomization, there or not.
func KustomizationFile(tree fs.FS, folder string) string {
	for _, name := range kustomizationNames {
		if _, err := fs.Stat(tree, path.Join(folder, name)); err == nil {
			return path.Join(folder, name)
		}
	}
	return path.Join(folder, kustomizationNames[0])
}

// buildSets builds the ApplicationSets of an entry. Objects of other kinds are left alone.
func (in *Input) buildSets(ctx context.Context, i int) (sets []appSet, problems []Problem, transient bool) {
	e := &in.Pipeline.Spec.ApplicationSets[i]
	fail := func(err error) ([]appSet, []Problem, bool) {
		return nil, []Problem{{File: in.Pipeline.File, Message: fmt.Sprintf("applicationSets[%d].kustomize %q: %v", i, e.Kustomize, err)}}, errors.Is(err, ErrBuildAgain)
	}
	if in.Build == nil {
		return fail(errors.New("nothing is built here"))
	}
	built, err := in.Build(ctx, in.Tree, KustomizeRequest(e))
	if err != nil {
		return fail(err)
	}
	file := KustomizationFile(in.Tree, path.Clean(e.Kustomize))
	for _, raw := range built.Objects {
		found, wrong := decodeObject(file, raw)
		sets, problems = append(sets, found...), append(problems, wrong...)
	}
	for n := range sets {
		sets[n].entry, sets[n].madeOf = i, built.Files
	}
	if len(sets)+len(problems) == 0 {
		return fail(fmt.Errorf("no ApplicationSet is among the %s that are built of it", wording.Count(len(built.Objects), "object")))
	}
	return sets, problems, false
}

// KustomizeRequest asks for what an entry's folder builds.
func KustomizeRequest(e *pipeline.ApplicationSetSource) BuildRequest {
	return BuildRequest{Folder: path.Clean(e.Kustomize), Options: json.RawMessage(`{"kustomize":{}}`)}
}

// builds says that some of the pipeline's sets are built.
func (in *Input) builds() bool {
	return slices.ContainsFunc(in.Pipeline.Spec.ApplicationSets, func(e pipeline.ApplicationSetSource) bool { return e.Kustomize != "" })
}
