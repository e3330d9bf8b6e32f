package fleet

import (
	"encoding/json"
	"path"
	"sort"
	"strings"

	argov1alpha1 "github.com/argoproj/argo-cd/v2/pkg/apis/application/v1alpha1"
)

// sourcesOf describes an Application's sources; here tells this repository's URLs.
func sourcesOf(app *argov1alpha1.Application, here func(url string) bool) []Source {
	specs := app.Spec.GetSources()
	if h := app.Spec.SourceHydrator; h != nil {
		// What Argo CD syncs is the hydrator's output; people edit its input.
		specs = []argov1alpha1.ApplicationSource{h.GetDrySource()}
	}
	out := make([]Source, 0, len(specs))
	for i := range specs {
		out = append(out, sourceOf(&specs[i], here))
	}
	return out
}

func hydrationOf(app *argov1alpha1.Application) *Hydration {
	s := app.Spec.SourceHydrator
	if s == nil {
		return nil
	}
	h := &Hydration{Branch: s.SyncSource.TargetBranch, Path: s.SyncSource.Path}
	if s.HydrateTo != nil {
		h.Staging = s.HydrateTo.TargetBranch
	}
	return h
}

func sourceOf(spec *argov1alpha1.ApplicationSource, here func(string) bool) Source {
	s := Source{
		RepoURL: withoutCredentials(spec.RepoURL), Path: spec.Path, Chart: spec.Chart,
		TargetRevision: spec.TargetRevision, Ref: spec.Ref,
		// A chart comes from a Helm repository, whatever its address looks like.
		Here: spec.Chart == "" && here(spec.RepoURL),
	}
	if kind, err := spec.ExplicitType(); err == nil && kind != nil {
		s.Type = SourceType(*kind)
	}
	if h := spec.Helm; h != nil {
		s.ValueFiles = append(s.ValueFiles, h.ValueFiles...)
		for _, p := range h.FileParameters {
			s.Files = append(s.Files, p.Path)
		}
	}
	if k := spec.Kustomize; k != nil {
		s.Files = append(s.Files, k.Components...)
		for _, p := range k.Patches {
			if p.Path != "" {
				s.Files = append(s.Files, p.Path)
			}
		}
	}
	if d := spec.Directory; d != nil {
		s.Recurse, s.Include, s.Exclude = d.Recurse, d.Include, d.Exclude
		s.Files = append(s.Files, d.Jsonnet.Libs...)
	}
	s.Options = optionsOf(spec)
	return s
}

// optionsOf are a source's blocks of options; nil when it has none.
func optionsOf(spec *argov1alpha1.ApplicationSource) json.RawMessage {
	if spec.Kustomize == nil && spec.Helm == nil && spec.Directory == nil && spec.Plugin == nil {
		return nil
	}
	raw, err := json.Marshal(struct {
		Kustomize *argov1alpha1.ApplicationSourceKustomize `json:"kustomize,omitempty"`
		Helm      *argov1alpha1.ApplicationSourceHelm      `json:"helm,omitempty"`
		Directory *argov1alpha1.ApplicationSourceDirectory `json:"directory,omitempty"`
		Plugin    *argov1alpha1.ApplicationSourcePlugin    `json:"plugin,omitempty"`
	}{spec.Kustomize, spec.Helm, spec.Directory, spec.Plugin})
	if err != nil {
		return nil // only raw JSON that isn't any can fail, and that was decoded
	}
	return raw
}

// HereFiles are the single files (or folders, for a component or a library)
// of the resolved repository that a target reads besides what its sources'
// paths pull in: values files, files that its options name, generator files,
// and Argo CD's parameter overrides. From the repository's root, sorted;
// whether they exist is not looked at, because creating one changes the
// target too.
func HereFiles(t Target) []string {
	refs := map[string]bool{} // $ref names of this repository
	for _, s := range t.Sources {
		if s.Ref != "" && s.Here {
			refs[s.Ref] = true
		}
	}
	var out []string
	for _, s := range t.Sources {
		for _, f := range s.ValueFiles {
			if p, ok := hereFile(s, refs, f, true); ok {
				out = append(out, p)
			}
		}
		for _, f := range s.Files {
			if p, ok := hereFile(s, refs, f, false); ok {
				out = append(out, p)
			}
		}
		if s.Here && s.Path != "" {
			if dir, ok := inTree(s.Path); ok {
				out = append(out, path.Join(dir, ".argocd-source.yaml"), path.Join(dir, ".argocd-source-"+t.Name+".yaml"))
			}
		}
	}
	out = append(out, t.GeneratorFiles...)
	return unique(out)
}

// Roots are the folders in which a target's carried fields are looked for:
// this repository's source paths, and the folders of its values files and of
// its generator files. Relative to the repository's root ("." is the root
// itself), cleaned, sorted, each once; never outside the repository.
func Roots(t Target) []string {
	refs := map[string]bool{}
	for _, s := range t.Sources {
		if s.Ref != "" && s.Here {
			refs[s.Ref] = true
		}
	}
	var out []string
	for _, s := range t.Sources {
		if s.Here && s.Path != "" {
			if dir, ok := inTree(s.Path); ok {
				out = append(out, dir)
			}
		}
		for _, f := range s.ValueFiles {
			if p, ok := hereFile(s, refs, f, true); ok {
				out = append(out, path.Dir(p))
			}
		}
	}
	if t.GeneratorFile != "" {
		out = append(out, path.Dir(t.GeneratorFile))
	}
	return unique(out)
}

// hereFile resolves a file that a source names to a path from the
// repository's root, when it lies in this repository.
func hereFile(s Source, refs map[string]bool, name string, mayRef bool) (string, bool) {
	if strings.Contains(name, "://") {
		return "", false
	}
	if mayRef && strings.HasPrefix(name, "$") {
		ref, rest, found := strings.Cut(strings.TrimPrefix(name, "$"), "/")
		if !found || !refs[ref] {
			return "", false
		}
		return inTree(rest)
	}
	if !s.Here {
		return "", false
	}
	if strings.HasPrefix(name, "/") { // Argo CD reads an absolute path from the repository's root
		return inTree(strings.TrimLeft(name, "/"))
	}
	return inTree(path.Join(s.Path, name))
}

// inTree cleans a path and says whether it stays below the root.
func inTree(p string) (string, bool) {
	clean := path.Clean(strings.TrimLeft(p, "/"))
	if clean == ".." || strings.HasPrefix(clean, "../") {
		return "", false
	}
	return clean, true
}

func unique(list []string) []string {
	sort.Strings(list)
	out := list[:0]
	for i, s := range list {
		if i == 0 || s != list[i-1] {
			out = append(out, s)
		}
	}
	return out
}
