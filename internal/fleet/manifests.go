package fleet

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"sort"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	argov1alpha1 "github.com/argoproj/argo-cd/v2/pkg/apis/application/v1alpha1"

	"github.com/liftlock/liftlock/internal/pipeline"
)

const (
	apiVersion = "argoproj.io/v1alpha1"
	kindSet    = "ApplicationSet"
	// maxDocuments bounds the YAML documents of one manifest file.
	maxDocuments = 10_000
)

// set is one ApplicationSet as it was found.
type set struct {
	file  string
	entry int // index into the pipeline's applicationSets
	raw   []byte
	spec  argov1alpha1.ApplicationSet
}

// findSets reads the ApplicationSets that the pipeline's entries name. A file
// that several entries match belongs to the last of them, so that an entry
// can override an earlier, wider one. passing says that the tree itself
// failed, so that another try may answer differently.
func findSets(tree fs.FS, p *pipeline.Pipeline) (sets []set, problems []Problem, passing bool) {
	entries := p.Spec.ApplicationSets
	matches := make([][]string, len(entries))
	owner := map[string]int{}
	for i, e := range entries {
		names, err := globManifests(tree, e.Path)
		if err == nil && len(names) == 0 {
			err = errors.New("no file of that path exists")
		}
		if err != nil {
			passing = passing || errors.Is(err, errTree)
			problems = append(problems, Problem{File: p.File, Message: fmt.Sprintf("applicationSets[%d].path %q: %v", i, e.Path, err)})
		}
		matches[i] = names
		for _, n := range names {
			owner[n] = i
		}
	}
	files := make([]string, 0, len(owner))
	for f := range owner {
		files = append(files, f)
	}
	sort.Strings(files)
	holds := map[string]bool{} // files that say something about ApplicationSets, right or wrong
	for _, f := range files {
		found, wrong, failed := readSets(tree, f)
		passing = passing || failed
		for i := range found {
			found[i].entry = owner[f]
		}
		sets = append(sets, found...)
		problems = append(problems, wrong...)
		holds[f] = len(found)+len(wrong) > 0
	}
	for i, e := range entries {
		if len(matches[i]) > 0 && !anyOf(matches[i], holds) {
			problems = append(problems, Problem{File: p.File, Message: fmt.Sprintf(
				"applicationSets[%d].path %q: no ApplicationSet in %s", i, e.Path, few(matches[i]))})
		}
	}
	return sets, problems, passing
}

func anyOf(names []string, in map[string]bool) bool {
	for _, n := range names {
		if in[n] {
			return true
		}
	}
	return false
}

// few lists names, not too many of them.
func few(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

func globManifests(tree fs.FS, pattern string) ([]string, error) {
	clean := path.Clean(pattern)
	if pattern == "" || !fs.ValidPath(clean) {
		return nil, errors.New("it is not a path from the repository's root")
	}
	names, err := doublestar.Glob(tree, clean, doublestar.WithFilesOnly(), doublestar.WithFailOnIOErrors())
	switch {
	case errors.Is(err, doublestar.ErrBadPattern):
		return nil, errors.New("it is not a glob")
	case err != nil:
		return nil, treeError(err)
	}
	return names, nil
}

// readSets decodes every ApplicationSet of one file. Documents of other kinds
// are left alone; a document that can't be read at all is a problem, since it
// may be an ApplicationSet.
func readSets(tree fs.FS, file string) (sets []set, problems []Problem, passing bool) {
	data, err := readFile(tree, file)
	if err != nil {
		return nil, []Problem{{File: file, Message: err.Error()}}, errors.Is(err, errTree)
	}
	err = eachDocument(data, func(n int, doc []byte) error {
		raw, err := yaml.YAMLToJSONStrict(doc)
		if err != nil {
			return fmt.Errorf("document %d is not YAML: %w", n, err)
		}
		found, wrong := decodeObject(file, raw)
		sets, problems = append(sets, found...), append(problems, wrong...)
		return nil
	})
	if err != nil {
		problems = append(problems, Problem{File: file, Message: err.Error()})
	}
	return sets, problems, false
}

// eachDocument splits a YAML stream, or takes JSON as it is. n counts from 1.
func eachDocument(data []byte, do func(n int, doc []byte) error) error {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for n := 1; ; n++ {
		doc, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("document %d can't be read: %w", n, err)
		}
		if n > maxDocuments {
			return fmt.Errorf("more than %d documents", maxDocuments)
		}
		if len(bytes.TrimSpace(doc)) == 0 {
			continue
		}
		if err := do(n, doc); err != nil {
			return err
		}
	}
}

// decodeObject decodes one object, and the items of a list.
func decodeObject(file string, raw []byte) ([]set, []Problem) {
	var meta struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Items []json.RawMessage `json:"items"`
	}
	// Anything without a kind, be it a number or a values file, is not ours.
	_ = json.Unmarshal(raw, &meta)
	switch meta.Kind {
	case "List", kindSet + "List":
		var sets []set
		var problems []Problem
		for _, item := range meta.Items {
			var inner struct {
				Kind string `json:"kind"`
			}
			// A list of lists is not a thing that kubectl prints.
			if json.Unmarshal(item, &inner) != nil || inner.Kind != kindSet {
				continue
			}
			found, wrong := decodeObject(file, item)
			sets, problems = append(sets, found...), append(problems, wrong...)
		}
		return sets, problems
	case kindSet:
	default:
		return nil, nil
	}
	s := set{file: file, raw: raw}
	err := s.decode(meta.APIVersion)
	if err != nil {
		return nil, []Problem{{File: file, ApplicationSet: meta.Metadata.Name, Message: err.Error()}}
	}
	return []set{s}, nil
}

func (s *set) decode(version string) error {
	if version != apiVersion {
		return fmt.Errorf("its apiVersion is %q; only %s is known", version, apiVersion)
	}
	if err := strictly(s.raw, &s.spec, ""); err != nil {
		return err
	}
	if s.spec.Name == "" {
		return errors.New("metadata.name is missing")
	}
	for i := range s.spec.Spec.Generators {
		if err := checkGenerator(&s.spec.Spec.Generators[i], fmt.Sprintf("spec.generators[%d]", i)); err != nil {
			return err
		}
	}
	return nil
}

// strictly decodes as the API server does, names by letter case, and refuses
// what it would drop: a field that a newer Argo CD understands changes which
// Applications there are.
func strictly(raw []byte, into any, at string) error {
	wrong, err := kjson.UnmarshalStrict(raw, into)
	if err != nil {
		return fmt.Errorf("%s%w", prefix(at), err)
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%s%w: this version of the resolver doesn't know it, so the set is not half-understood", prefix(at), wrong[0])
	}
	return nil
}

func prefix(at string) string {
	if at == "" {
		return ""
	}
	return "in " + at + ": "
}

// checkGenerator refuses what can't be resolved from a commit, nested
// generators included, and decodes those strictly: the library itself
// decodes them leniently, from raw JSON.
func checkGenerator(g *argov1alpha1.ApplicationSetGenerator, at string) error {
	if err := refuse(g.SCMProvider != nil, g.PullRequest != nil, g.Plugin != nil, g.ClusterDecisionResource != nil, at); err != nil {
		return err
	}
	if g.Matrix != nil {
		if err := checkNested(g.Matrix.Generators, at+".matrix"); err != nil {
			return err
		}
	}
	if g.Merge != nil {
		return checkNested(g.Merge.Generators, at+".merge")
	}
	return nil
}

func checkNested(nested []argov1alpha1.ApplicationSetNestedGenerator, at string) error {
	for i := range nested {
		g, here := &nested[i], fmt.Sprintf("%s.generators[%d]", at, i)
		if err := refuse(g.SCMProvider != nil, g.PullRequest != nil, g.Plugin != nil, g.ClusterDecisionResource != nil, here); err != nil {
			return err
		}
		matrix, merge := argov1alpha1.NestedMatrixGenerator{}, argov1alpha1.NestedMergeGenerator{}
		if err := checkRaw(g.Matrix, &matrix, here+".matrix"); err != nil {
			return err
		}
		if err := checkRaw(g.Merge, &merge, here+".merge"); err != nil {
			return err
		}
		if err := checkTerminal(matrix.Generators, here+".matrix"); err != nil {
			return err
		}
		if err := checkTerminal(merge.Generators, here+".merge"); err != nil {
			return err
		}
	}
	return nil
}

func checkRaw(raw *apiextensionsv1.JSON, into any, at string) error {
	if raw == nil {
		return nil
	}
	return strictly(raw.Raw, into, at)
}

func checkTerminal(terminal []argov1alpha1.ApplicationSetTerminalGenerator, at string) error {
	for i := range terminal {
		g := &terminal[i]
		if err := refuse(g.SCMProvider != nil, g.PullRequest != nil, g.Plugin != nil, g.ClusterDecisionResource != nil,
			fmt.Sprintf("%s.generators[%d]", at, i)); err != nil {
			return err
		}
	}
	return nil
}

// refuse names a generator that needs more than a commit and a snapshot.
func refuse(scmProvider, pullRequest, plugin, duck bool, at string) error {
	switch {
	case scmProvider:
		return networkError(at, "scmProvider")
	case pullRequest:
		return networkError(at, "pullRequest")
	case plugin:
		return networkError(at, "plugin")
	case duck:
		return fmt.Errorf("%s.clusterDecisionResource: not supported yet", at)
	}
	return nil
}

func networkError(at, generator string) error {
	return fmt.Errorf("%s.%s: generators that call the network are off, and the server file's generators.%s that would turn them on is not supported yet", at, generator, generator)
}
