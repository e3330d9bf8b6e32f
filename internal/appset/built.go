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

// BuildRequest asks for what Kustomize or Helm makes of a folder.
type BuildRequest struct {
	Folder    string // from the repository's root
	Release   string // Helm's
	Namespace string // likewise
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

// IsKustomization says that a file's name without its folder is one that a kustomization may have.
func IsKustomization(base string) bool { return slices.Contains(kustomizationNames, base) }

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
	q, err := NewBuildRequest(e)
	what, file := "kustomize", KustomizationFile(in.Tree, q.Folder)
	if e.Helm != nil {
		what, file = "helm.path", path.Join(q.Folder, "Chart.yaml")
	}
	fail := func(err error) ([]appSet, []Problem, bool) {
		return nil, []Problem{{File: in.Pipeline.File, Message: fmt.Sprintf("applicationSets[%d].%s %q: %v", i, what, q.Folder, err)}}, errors.Is(err, ErrBuildAgain)
	}
	if err != nil {
		return fail(err)
	}
	if in.Build == nil {
		return fail(errors.New("nothing is built here"))
	}
	built, err := in.Build(ctx, in.Tree, q)
	if err != nil {
		return fail(err)
	}
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

// NewBuildRequest asks for what an entry has built.
func NewBuildRequest(e *pipeline.ApplicationSetSource) (BuildRequest, error) {
	if e.Helm == nil {
		return BuildRequest{Folder: path.Clean(e.Kustomize), Options: json.RawMessage(`{"kustomize":{}}`)}, nil
	}
	q := BuildRequest{Folder: path.Clean(e.Helm.Path), Release: e.Helm.ReleaseName, Namespace: e.Helm.Namespace}
	if q.Release == "" {
		q.Release = path.Base(q.Folder)
	}
	helm := map[string]any{"valueFiles": e.Helm.ValueFiles}
	if e.Helm.Values != nil {
		helm["valuesObject"] = e.Helm.Values
	}
	var err error
	if q.Options, err = json.Marshal(map[string]any{"helm": helm}); err != nil {
		return q, fmt.Errorf("writing down the values: %w", err)
	}
	return q, nil
}

// builds says that some of the pipeline's sets are built.
func (in *Input) builds() bool {
	return slices.ContainsFunc(in.Pipeline.Spec.ApplicationSets, func(e pipeline.ApplicationSetSource) bool { return e.IsBuilt() })
}
