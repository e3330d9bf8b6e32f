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

// KustomizationNames are the names that a kustomization may have, in the order in which kustomize looks for them.
var KustomizationNames = []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}

// IsKustomization says that a file's name without its folder is one that a kustomization may have.
func IsKustomization(base string) bool { return slices.Contains(KustomizationNames, base) }

// KustomizationFile is a folder's kustomization, there or not.
func KustomizationFile(tree fs.FS, folder string) string {
	for _, name := range KustomizationNames {
		if _, err := fs.Stat(tree, path.Join(folder, name)); err == nil {
			return path.Join(folder, name)
		}
	}
	return path.Join(folder, KustomizationNames[0])
}

// builtOf is the folder that is built, and the key of the entry that names it.
func builtOf(m pipeline.ManifestSource) (key, folder string) {
	if m.Helm != nil {
		return "helm.path", path.Clean(m.Helm.Path)
	}
	return "kustomize", path.Clean(m.Kustomize)
}

// buildEntry builds what an entry has built. file is what stands for all that it is built of; at is
// where the entry is in the pipeline file.
func (in *Input) buildEntry(ctx context.Context, at string, m pipeline.ManifestSource) (file string, built *Built, problem *Problem,
	transient bool) {
	q, err := NewBuildRequest(m)
	what, folder := builtOf(m)
	file = KustomizationFile(in.Tree, folder)
	if m.Helm != nil {
		file = path.Join(folder, "Chart.yaml")
	}
	if err == nil && in.Build == nil {
		err = errors.New("nothing is built here")
	}
	if err == nil {
		built, err = in.Build(ctx, in.Tree, q)
	}
	if err != nil {
		problem = &Problem{File: in.Pipeline.File, Message: fmt.Sprintf("%s.%s %q: %v", at, what, folder, err)}
		return file, nil, problem, errors.Is(err, ErrBuildAgain)
	}
	return file, built, nil, false
}

// missingAmong says that nothing of a kind is among what an entry's folder makes.
func (in *Input) missingAmong(at, kind string, m pipeline.ManifestSource, built *Built) Problem {
	what, folder := builtOf(m)
	return Problem{File: in.Pipeline.File, Message: fmt.Sprintf("%s.%s %q: no %s is among the %s that are built of it",
		at, what, folder, kind, wording.Count(len(built.Objects), "object"))}
}

// buildSets builds the ApplicationSets of an entry. Objects of other kinds are left alone.
func (in *Input) buildSets(ctx context.Context, i int) (sets []appSet, problems []Problem, transient bool) {
	at, m := fmt.Sprintf("applicationSets[%d]", i), in.Pipeline.Spec.ApplicationSets[i].Manifests()
	file, built, problem, transient := in.buildEntry(ctx, at, m)
	if problem != nil {
		return nil, []Problem{*problem}, transient
	}
	for _, raw := range built.Objects {
		found, wrong := decodeObject(file, raw)
		sets, problems = append(sets, found...), append(problems, wrong...)
	}
	for n := range sets {
		sets[n].entry, sets[n].madeOf = i, built.Files
	}
	if len(sets)+len(problems) == 0 {
		problems = []Problem{in.missingAmong(at, kindSet, m, built)}
	}
	return sets, problems, false
}

// NewBuildRequest asks for what an entry has built.
func NewBuildRequest(m pipeline.ManifestSource) (BuildRequest, error) {
	if m.Helm == nil {
		return BuildRequest{Folder: path.Clean(m.Kustomize), Options: json.RawMessage(`{"kustomize":{}}`)}, nil
	}
	q := BuildRequest{Folder: path.Clean(m.Helm.Path), Release: m.Helm.ReleaseName, Namespace: m.Helm.Namespace}
	if q.Release == "" {
		q.Release = path.Base(q.Folder)
	}
	helm := map[string]any{"valueFiles": m.Helm.ValueFiles}
	if m.Helm.Values != nil {
		helm["valuesObject"] = m.Helm.Values
	}
	var err error
	if q.Options, err = json.Marshal(map[string]any{"helm": helm}); err != nil {
		return q, fmt.Errorf("writing down the values: %w", err)
	}
	return q, nil
}

// builds says that some of the pipeline's sets or Applications are built.
func (in *Input) builds() bool {
	return slices.ContainsFunc(in.Pipeline.Spec.ApplicationSets,
		func(e pipeline.ApplicationSetSource) bool { return e.Manifests().IsBuilt() }) ||
		slices.ContainsFunc(in.Pipeline.Spec.Applications, func(e pipeline.ApplicationSource) bool { return e.Manifests().IsBuilt() })
}
