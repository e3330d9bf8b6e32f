package appset

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/argoproj/argo-cd/v2/applicationset/generators"
	"github.com/argoproj/argo-cd/v2/applicationset/services"
	argov1alpha1 "github.com/argoproj/argo-cd/v2/pkg/apis/application/v1alpha1"
)

// gitGenerator is the library's git generator, asked for one file at a time, so that a file that
// gave its parameters before isn't parsed again. It runs without its values block, which the
// library renders slowly.
type gitGenerator struct {
	generators.Generator // over the repository's folders

	folders       *folderRepos
	file          *singleFileRepos
	fileGenerator generators.Generator // over that file
	prefetched    map[string][]byte    // files that were read in one go, by id
	version       Version
	repos         *commitRepos
	render        *renderer
	origins       *origins
	cache         *resultCache
	scope         *scopeRun
	fresh         bool // the caller is a merge, which writes into the parameters
}

func newGitGenerator(of *generatorRun, namespace string, fresh bool) *gitGenerator {
	g := &gitGenerator{
		folders: &folderRepos{repos: of.repos, cache: of.cache}, file: &singleFileRepos{},
		version: of.version, repos: of.repos, render: of.render, origins: of.origins, cache: of.cache, scope: of.scope, fresh: fresh,
	}
	g.Generator, g.fileGenerator = generators.NewGitGenerator(g.folders, namespace), generators.NewGitGenerator(g.file, namespace)
	return g
}

// GenerateParams gives the parameters of folders, or of files sorted by path.
func (g *gitGenerator) GenerateParams(spec *argov1alpha1.ApplicationSetGenerator, set *argov1alpha1.ApplicationSet,
	c client.Client) ([]map[string]any, error) {
	if spec == nil || spec.Git == nil {
		return nil, generators.EmptyAppSetGeneratorError
	}
	usable, err := g.scope.requestRepository(spec.Git, spec.Selector)
	if err != nil {
		return nil, err
	}
	git := *spec.Git
	git.Values = nil
	values := spec.Git.Values
	if len(git.Directories) > 0 || len(git.Files) == 0 {
		g.folders.prefixes = literalPrefixes(git.Directories)
		out, err := g.Generator.GenerateParams(&argov1alpha1.ApplicationSetGenerator{Git: &git}, set, c)
		for i := 0; i < len(out) && err == nil; i++ {
			out[i] = usable.apply(out[i])
			err = g.render.renderValues(values, out[i])
		}
		return out, err
	}
	// Without a file this says what is wrong with the project, if something is.
	if _, err := g.parseParams("", nil, &git, set, c); err != nil {
		return nil, err
	}
	files, err := g.locateFiles(&git)
	if err != nil {
		return nil, err
	}
	out := make([]map[string]any, 0, len(files))
	like := gitParamsKey(spec.Git, set) + usable.digest()
	for i := range files {
		if err := g.repos.ctx.Err(); err != nil {
			return nil, err
		}
		if i%readBatchSize == 0 {
			g.prefetched = g.repos.prefetchFiles(files[i:min(i+readBatchSize, len(files))], func(f *fileAt) bool {
				_, known := g.cache.findFile(fileKey{like, g.repos.originOf(f), f.id})
				return !known
			})
		}
		params, err := g.fileParams(&files[i], like, &git, values, usable, set, c)
		if err != nil {
			return nil, err
		}
		out = append(out, params...)
	}
	return out, nil
}

// locateFiles lists the files that a generator's paths match and none that excludes
// does, sorted, each once.
func (g *gitGenerator) locateFiles(git *argov1alpha1.GitGenerator) ([]fileAt, error) {
	var out []fileAt
	excluded := map[string]bool{}
	for _, item := range git.Files {
		pattern, exclude := strings.CutPrefix(item.Path, excludedPath)
		found, err := g.repos.locateFiles(git.RepoURL, git.Revision, pattern)
		g.cache.queries.recordQuery(repoQuery{git.RepoURL, git.Revision, pattern, false}, found, nil, err)
		if err != nil {
			return nil, fmt.Errorf("error generating params from git: %w", err)
		}
		if !exclude {
			out = append(out, found...)
			continue
		}
		for i := range found {
			excluded[found[i].name] = true
		}
	}
	out = slices.DeleteFunc(out, func(f fileAt) bool { return excluded[f.name] })
	slices.SortFunc(out, func(a, b fileAt) int { return strings.Compare(a.name, b.name) })
	return slices.CompactFunc(out, func(a, b fileAt) bool { return a.name == b.name }), nil
}

// fileParams gives one file's parameters: those that it gave before, if it says
// the same.
func (g *gitGenerator) fileParams(f *fileAt, like string, git *argov1alpha1.GitGenerator, values map[string]string, usable readWords,
	set *argov1alpha1.ApplicationSet, c client.Client) ([]map[string]any, error) {
	id, data, err := g.repos.identifyFile(f)
	if err != nil {
		return nil, err
	}
	key := fileKey{like, g.repos.originOf(f), id}
	out, known := g.cache.findFile(key)
	if !known {
		if data == nil {
			data = g.prefetched[f.id]
		}
		if data == nil {
			if data, err = g.repos.readFile(f); err != nil {
				return nil, err
			}
		}
		if out, err = g.parseParams(f.name, data, git, set, c); err != nil {
			return nil, err
		}
		for i := range out {
			out[i] = usable.apply(out[i])
			if err := g.render.renderValues(values, out[i]); err != nil {
				return nil, fmt.Errorf("error generating params from git: unable to process file '%s': %w", f.name, err)
			}
		}
		g.cache.storeFile(key, out)
	}
	if g.fresh {
		out = copyParams(out)
	}
	if !strings.HasPrefix(key.name, "\x00") { // of this repository
		from := []string{key.name}
		for _, params := range out {
			g.origins.recordFiles(params, from)
		}
	}
	return out, nil
}

// parseParams makes parameters of one file, as the library does; "" is none, of which the
// library says what is wrong with the rest.
func (g *gitGenerator) parseParams(name string, data []byte, git *argov1alpha1.GitGenerator, set *argov1alpha1.ApplicationSet,
	c client.Client) ([]map[string]any, error) {
	if g.version.skipsEmptyLists() && isEmptyList(data) {
		return nil, nil
	}
	if out := plainParams(name, data, git.PathParamPrefix, set.Spec.GoTemplate); name != "" && out != nil {
		return out, nil
	}
	g.file.name, g.file.data = name, asList(data)
	spec := *git
	spec.Files = []argov1alpha1.GitFileGeneratorItem{{Path: name}}
	return g.fileGenerator.GenerateParams(&argov1alpha1.ApplicationSetGenerator{Git: &spec}, set, c)
}

// isEmptyList says that a file is a list of nothing.
func isEmptyList(data []byte) bool {
	for line := range bytes.Lines(data) {
		if line = bytes.TrimSpace(line); len(line) == 0 || line[0] == '#' || bytes.HasPrefix(line, []byte("---")) {
			continue
		}
		if line[0] != '[' { // a list that has no brackets has elements
			return false
		}
		var list []any
		return yaml.Unmarshal(data, &list) == nil && len(list) == 0
	}
	return false
}

// asList makes a list of a JSON object, which the library would parse twice:
// it tries a list first.
func asList(data []byte) []byte {
	if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) || !json.Valid(data) {
		return data
	}
	return slices.Concat([]byte("["), data, []byte("]"))
}

// singleFileRepos is a repository of one file, for the library to parse.
type singleFileRepos struct {
	services.Repos
	name string
	data []byte
}

// GetFiles returns the file.
func (s *singleFileRepos) GetFiles(context.Context, string, string, string, bool, bool) (map[string][]byte, error) {
	if s.name == "" {
		return nil, nil
	}
	return map[string][]byte{s.name: s.data}, nil
}

// folderRepos are a repository's folders, those that some paths can match: the
// library tries each path on each folder, and a matrix has thousands of paths.
type folderRepos struct {
	services.Repos
	repos    *commitRepos
	cache    *resultCache
	prefixes []string
}

// GetDirectories returns the folders in the controller's order.
func (f *folderRepos) GetDirectories(_ context.Context, repoURL, revision string, _, _ bool) ([]string, error) {
	out, err := f.repos.listFolders(repoURL, revision, f.prefixes)
	f.cache.queries.recordQuery(repoQuery{repoURL, revision, strings.Join(f.prefixes, "\x00"), true}, nil, out, err)
	return out, err
}

// literalPrefixes are the beginnings of what paths can match.
func literalPrefixes(items []argov1alpha1.GitDirectoryGeneratorItem) []string {
	var out []string
	for _, item := range items {
		if !item.Exclude {
			out = append(out, literalPrefix(item.Path))
		}
	}
	return SortedUnique(out)
}

// literalPrefix is what of a glob comes before its first special character.
func literalPrefix(glob string) string {
	if i := strings.IndexAny(glob, `*?[\`); i >= 0 {
		return glob[:i]
	}
	return glob
}

// clustersGenerator is the library's clusters generator without its values
// block, which the library renders slowly.
type clustersGenerator struct {
	generators.Generator
	render  *renderer
	version Version
	scope   *scopeRun
}

// GenerateParams gives the parameters of clusters.
func (cg *clustersGenerator) GenerateParams(spec *argov1alpha1.ApplicationSetGenerator, set *argov1alpha1.ApplicationSet,
	c client.Client) ([]map[string]any, error) {
	if spec == nil || spec.Clusters == nil {
		return nil, generators.EmptyAppSetGeneratorError
	}
	usable, err := cg.scope.requestClusters(spec.Clusters, spec.Selector)
	if err != nil {
		return nil, err
	}
	clusters := *spec.Clusters
	clusters.Values = nil
	out, err := cg.Generator.GenerateParams(&argov1alpha1.ApplicationSetGenerator{Clusters: &clusters}, set, c)
	if err != nil {
		return nil, err
	}
	if cg.version.listsClustersOnce() {
		out = listClustersOnce(out, clusters.FlatList)
	}
	if clusters.FlatList {
		usable = usable.ofElements()
	}
	for i := range out {
		each := out[i : i+1]
		if clusters.FlatList {
			each, _ = out[i]["clusters"].([]map[string]any)
		}
		for j := range each {
			each[j] = usable.apply(each[j])
			if err := cg.render.renderValues(spec.Clusters.Values, each[j]); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// listClustersOnce leaves out the clusters whose name was there before.
func listClustersOnce(all []map[string]any, flat bool) []map[string]any {
	seen := map[any]bool{}
	repeats := func(params map[string]any) bool {
		before := seen[params["name"]]
		seen[params["name"]] = true
		return before
	}
	if !flat {
		return slices.DeleteFunc(all, repeats)
	}
	for _, params := range all {
		list, _ := params["clusters"].([]map[string]any)
		params["clusters"] = slices.DeleteFunc(list, repeats)
	}
	return all
}
