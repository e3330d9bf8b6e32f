package appset

import (
	"encoding/json"
	"os"
	"path"
	"slices"
	"strings"

	argov1alpha1 "github.com/argoproj/argo-cd/v2/pkg/apis/application/v1alpha1"
	"github.com/bmatcuk/doublestar/v4"
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

func hydrationOf(g *generatedApp) *Hydration {
	s := g.app.Spec.SourceHydrator
	if s == nil {
		return nil
	}
	h := &Hydration{RepoURL: g.newer[hydratedRepository], Branch: s.SyncSource.TargetBranch, Path: s.SyncSource.Path}
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
			s.FileParameters = append(s.FileParameters, p.Path)
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
		s.Libs = append(s.Libs, d.Jsonnet.Libs...)
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

// SourceFiles are what one source of a target reads of the resolved repository besides what its
// path pulls in. They are from the repository's root, sorted. Whether they exist is not checked,
// because creating one changes the target too.
type SourceFiles struct {
	Values    []string // Helm's values files, also those that other sources' $ref leads to
	Globs     []string // of such files, where entries are globs or that isn't known
	Named     []string // files, and folders of components, that the options name
	Libs      []string // folders in which Jsonnet looks imports up
	Overrides []string // Argo CD's parameter overrides beside the manifests
}

// FilesOf are the files of one of the target's sources.
func FilesOf(t Target, s Source) SourceFiles {
	var out SourceFiles
	refs := refsOf(t)
	for _, f := range s.ValueFiles {
		for _, file := range helmFiles(t, s, refs, f) {
			isGlob := IsValueGlob(file) && t.ValueFiles != ValueFilesAsNames
			if isGlob {
				out.Globs = append(out.Globs, file)
			}
			if !isGlob || t.ValueFiles == "" {
				out.Values = append(out.Values, file)
			}
		}
	}
	for _, f := range s.FileParameters {
		out.Named = append(out.Named, helmFiles(t, s, refs, f)...)
	}
	if s.Here {
		for _, f := range s.Files {
			if p, ok := repositoryFile(s, f); ok {
				out.Named = append(out.Named, p)
			}
		}
		for _, f := range s.Libs { // from the root, whatever the path is
			if p, ok := inTree(f); ok {
				out.Libs = append(out.Libs, p)
			}
		}
		if dir, ok := inTree(s.Path); ok && s.Path != "" {
			out.Overrides = append(out.Overrides, path.Join(dir, ".argocd-source.yaml"))
			for _, name := range instanceNames(t) {
				out.Overrides = append(out.Overrides, path.Join(dir, ".argocd-source-"+name+".yaml"))
			}
		}
	}
	return SourceFiles{SortedUnique(out.Values), SortedUnique(out.Globs), SortedUnique(out.Named), SortedUnique(out.Libs),
		SortedUnique(out.Overrides)}
}

// LayeredValues are the values files of a source in the resolved repository, from its root, each
// after those over which Helm lays it. The chart's own come first, then the given ones in their
// order, with globs where entries are globs. A file that is given twice has the place that counts
// for the Argo CD; without a known Argo CD version there is no order.
func LayeredValues(t Target, s Source) []string {
	refs := refsOf(t)
	var out []string
	for _, f := range s.ValueFiles {
		for _, file := range SortedUnique(helmFiles(t, s, refs, f)) {
			isGlob, at := IsValueGlob(file), slices.Index(out, file)
			switch {
			case isGlob && t.ValueFiles != ValueFilesAsGlobs:
			case at < 0:
				out = append(out, file)
			case t.ValueFiles == "":
				return nil
			case t.ValueFiles == ValueFilesAsNames: // Helm reads it again
				out = append(slices.Delete(out, at, at+1), file)
			}
		}
	}
	own, ok := inTree(path.Join(s.Path, "values.yaml"))
	if isGiven := slices.ContainsFunc(out, func(layer string) bool { return LayerHas(layer, own) }); ok && s.Here &&
		s.Path != "" && !isGiven {
		out = slices.Insert(out, 0, own)
	}
	return out
}

// LayerHas says that a layer of [LayeredValues] is a file, or a glob that matches it.
func LayerHas(layer, file string) bool {
	isMatch, err := doublestar.Match(layer, file)
	return layer == file || IsValueGlob(layer) && isMatch && err == nil
}

// IsValueGlob says that Argo CD takes a values file's path for a glob, where it does so (argo-cd:
// isGlobPath in reposerver/repository).
func IsValueGlob(file string) bool { return strings.ContainsAny(file, "*?[") }

// valueFilesAs says what the entries of valueFiles mean in an Argo CD whose version is asked for
// only where it matters.
func valueFilesAs(sources []Source, version func() Version) ValueFilesAs {
	matters := func(s Source) bool {
		seen := map[string]bool{}
		return slices.ContainsFunc(s.ValueFiles, func(file string) bool {
			name := path.Clean(file)
			isTwice := seen[name]
			seen[name] = true
			return isTwice || IsValueGlob(s.Path+name) // the glob is the whole path
		})
	}
	if !slices.ContainsFunc(sources, matters) {
		return ""
	}
	switch v := version(); {
	case !v.IsKnown():
		return ""
	case v.expandsValueFiles():
		return ValueFilesAsGlobs
	}
	return ValueFilesAsNames
}

// Folders are this repository's source paths of a target, as Roots has them.
func Folders(t Target) []string {
	var out []string
	for _, s := range t.Sources {
		if s.Here && s.Path != "" {
			if dir, ok := inTree(s.Path); ok {
				out = append(out, dir)
			}
		}
	}
	return SortedUnique(out)
}

// Roots are the folders that may have a target's carried fields: this repository's source paths,
// and the folders of its values files and of its generator files. Relative to the repository's root
// ("." is the root itself), cleaned, sorted, each once; never outside the repository.
func Roots(t Target) []string {
	refs := refsOf(t)
	out := Folders(t)
	for _, s := range t.Sources {
		for _, f := range s.ValueFiles {
			for _, p := range helmFiles(t, s, refs, f) {
				out = append(out, path.Dir(p))
			}
		}
	}
	if t.GeneratorFile != "" {
		out = append(out, path.Dir(t.GeneratorFile))
	}
	return SortedUnique(out)
}

// refsOf are the sources that others may refer to by $name: whether each is
// of the resolved repository.
func refsOf(t Target) map[string]bool {
	refs := map[string]bool{}
	for _, s := range t.Sources {
		if s.Ref != "" {
			refs[s.Ref] = s.Here
		}
	}
	return refs
}

// instanceNames are the names that the repository server may know an
// Application by: one outside of the controller's own namespace has its
// namespace in front.
func instanceNames(t Target) []string {
	if t.Namespace == "" {
		return []string{t.Name}
	}
	return []string{t.Name, t.Namespace + "_" + t.Name}
}

// helmFiles resolves a values file or file parameter to paths from the
// repository's root, when it lies in this repository. There can be more than
// one because of [instanceNames].
func helmFiles(t Target, s Source, refs map[string]bool, name string) []string {
	if ref, rest, found := strings.Cut(strings.TrimPrefix(name, "$"), "/"); strings.HasPrefix(name, "$") {
		here, known := refs[ref]
		switch {
		case known && here && found:
			s, name = Source{Here: true, RepoURL: s.RepoURL, Path: s.Path, TargetRevision: s.TargetRevision}, "/"+rest
		case known, len(t.Sources) > 1:
			return nil // another repository, or an error
		}
	}
	if !s.Here {
		return nil
	}
	var out []string
	for _, instance := range instanceNames(t) {
		if p, ok := repositoryFile(s, expandBuildEnv(t, s, instance, name)); ok {
			out = append(out, p)
		}
	}
	return out
}

// expandBuildEnv puts the repository server's build environment into a file's
// name; what isn't known here, or nowhere, is empty.
func expandBuildEnv(t Target, s Source, instance, name string) string {
	return os.Expand(name, func(v string) string {
		switch v {
		case "$":
			return "$"
		case "ARGOCD_APP_NAME":
			return instance
		case "ARGOCD_APP_NAMESPACE":
			return t.DestNS
		case "ARGOCD_APP_SOURCE_REPO_URL":
			return s.RepoURL
		case "ARGOCD_APP_SOURCE_PATH":
			return s.Path
		case "ARGOCD_APP_SOURCE_TARGET_REVISION":
			return s.TargetRevision
		}
		return ""
	})
}

// repositoryFile resolves a file that a source of this repository names to a path
// from the repository's root.
func repositoryFile(s Source, name string) (string, bool) {
	if strings.Contains(name, "://") {
		return "", false
	}
	if strings.HasPrefix(name, "/") { // Argo CD reads an absolute path from the repository's root
		return inTree(name)
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

// SortedUnique sorts a list in place, and keeps each element once.
func SortedUnique(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}
