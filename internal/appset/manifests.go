package appset

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	kjson "sigs.k8s.io/json"

	argov1alpha1 "github.com/argoproj/argo-cd/v2/pkg/apis/application/v1alpha1"

	"github.com/liftlock/liftlock/internal/wording"
)

const (
	apiVersion = "argoproj.io/v1alpha1"
	kindSet    = "ApplicationSet"
	// maxDocuments bounds the YAML documents of one manifest file.
	maxDocuments = 10_000
)

// appSet is one ApplicationSet as it was found.
type appSet struct {
	file    string // empty for a live one
	entry   int    // index into the pipeline's applicationSets
	raw     []byte
	spec    argov1alpha1.ApplicationSet
	policy  Policy
	version Version      // of the Argo CD that it is resolved for
	madeOf  []string     // the files that it is built of; none where file has it
	moved   []movedField // newer fields that are understood
	unknown error        // what of it isn't known here, so that it can't be resolved; the rest is decoded
	dropped []string     // fields of its templates that no Argo CD up to newestLine has, so that the API server drops them

	words func() []string // templateWords, once
}

func (as *appSet) newProblem(application, message string) Problem {
	return Problem{File: as.file, ApplicationSet: as.spec.Name, Application: application, Message: message}
}

// findSets reads the ApplicationSets that the pipeline's entries name. A file
// that several entries match belongs to the last of them, so that an entry
// can override an earlier, wider one. passing says that the tree itself
// failed, so that another try may answer differently.
func findSets(ctx context.Context, in *Input) (sets []appSet, problems []Problem, transient bool) {
	tree, p := in.Tree, in.Pipeline
	entries := p.Spec.ApplicationSets
	matches := make([][]string, len(entries))
	owner := map[string]int{}
	for i, e := range entries {
		if e.Live != nil {
			s, wrong, retry := in.decodeLiveSet(e.Live)
			if wrong != nil {
				problems, transient = append(problems, *wrong), transient || retry
				continue
			}
			s.entry = i
			sets = append(sets, s)
			continue
		}
		if e.Manifests().IsBuilt() {
			built, wrong, retry := in.buildSets(ctx, i)
			sets, problems, transient = append(sets, built...), append(problems, wrong...), transient || retry
			continue
		}
		names, err := globManifests(tree, e.Path)
		if err == nil && len(names) == 0 {
			err = errors.New("no file of that path exists" + describeFolder(tree, e.Path))
		}
		if err != nil {
			transient = transient || errors.Is(err, errTree)
			problems = append(problems, Problem{File: p.File, Message: fmt.Sprintf("applicationSets[%d].path %q: %v", i, e.Path, err)})
		}
		matches[i] = names
		for _, n := range names {
			owner[n] = i
		}
	}
	holds := map[string]bool{} // files that say something about ApplicationSets, right or wrong
	for _, f := range slices.Sorted(maps.Keys(owner)) {
		found, wrong, failed := readSets(tree, f)
		transient = transient || failed
		for i := range found {
			found[i].entry = owner[f]
		}
		sets = append(sets, found...)
		problems = append(problems, wrong...)
		holds[f] = len(found)+len(wrong) > 0
	}
	for i, e := range entries {
		if len(matches[i]) > 0 && !slices.ContainsFunc(matches[i], func(name string) bool { return holds[name] }) {
			problems = append(problems, Problem{File: p.File, Message: fmt.Sprintf(
				"applicationSets[%d].path %q: no ApplicationSet in %s", i, e.Path, wording.JoinFew(matches[i], 3))})
		}
	}
	return sets, problems, transient
}

// describeFolder says what is in the folder of a path that names nothing, for an author who
// mistyped it.
func describeFolder(tree fs.FS, pattern string) string {
	folder, _ := doublestar.SplitPattern(path.Clean(pattern))
	entries, err := fs.ReadDir(tree, folder)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "; there is no folder " + wording.Clip(folder, maxQuoted)
	case err != nil:
		return ""
	}
	var names []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		name := e.Name()
		if e.IsDir() {
			name += "/"
		}
		names = append(names, wording.Clip(name, maxQuoted))
	}
	if len(names) == 0 {
		return ""
	}
	if folder == "." {
		folder = "the root"
	}
	return fmt.Sprintf("; %s has %s", wording.Clip(folder, maxQuoted), wording.JoinFew(names, 5))
}

func globManifests(tree fs.FS, pattern string) ([]string, error) {
	clean := path.Clean(pattern)
	if pattern == "" || !fs.ValidPath(clean) {
		return nil, errors.New("it is not a path from the repository's root")
	}
	if err := wording.CheckGlob(clean); err != nil {
		return nil, err
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
func readSets(tree fs.FS, file string) (sets []appSet, problems []Problem, transient bool) {
	objects, err := readDocuments(tree, file)
	for _, raw := range objects {
		found, wrong := decodeObject(file, raw)
		sets, problems = append(sets, found...), append(problems, wrong...)
	}
	if err != nil {
		problems = append(problems, Problem{File: file, Message: err.Error()})
	}
	return sets, problems, errors.Is(err, errTree)
}

// readDocuments reads the documents of a file; with an error, those before the one that can't be read.
func readDocuments(tree fs.FS, file string) (objects []json.RawMessage, err error) {
	data, err := readFile(tree, file)
	if err != nil {
		return nil, err
	}
	err = eachDocument(data, func(n int, doc []byte) error {
		raw, err := yamlToJSON(doc)
		if err != nil {
			return explainYAML(data, n, err)
		}
		objects = append(objects, raw)
		return nil
	})
	return objects, err
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
func decodeObject(file string, raw []byte) ([]appSet, []Problem) {
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
		var sets []appSet
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
	s := appSet{file: file, raw: raw}
	err := s.decodeSpec(meta.APIVersion)
	if err != nil {
		return nil, []Problem{{File: file, ApplicationSet: meta.Metadata.Name, Message: err.Error()}}
	}
	return []appSet{s}, nil
}

func (as *appSet) decodeSpec(version string) error {
	if version != apiVersion {
		return fmt.Errorf("its apiVersion is %q; only %s is known", version, apiVersion)
	}
	wrong, err := as.decodeKnown(as.raw)
	if err != nil {
		return err
	}
	if wrong != nil {
		m := fieldMover{}
		moved, err := m.moveFields(as.raw)
		if err == nil && len(m.moved) > 0 {
			as.spec, as.moved, as.dropped = argov1alpha1.ApplicationSet{}, m.moved, nil
			wrong, err = as.decodeKnown(moved)
		}
		if err != nil {
			return err
		}
	}
	if as.spec.Name == "" {
		return errors.New("metadata.name is missing")
	}
	if err := as.checkDropped(); err != nil {
		return err
	}
	as.unknown, as.policy = wrong, policyOf(&as.spec)
	return nil
}

// decodeKnown decodes what 2.14's types know; the first of what they don't is its first
// result.
func (as *appSet) decodeKnown(raw []byte) (unknown, err error) {
	wrong, err := as.decodeStrictly(raw, &as.spec, "")
	if err != nil {
		return nil, err
	}
	for i := range as.spec.Spec.Generators {
		g, at := &as.spec.Spec.Generators[i], fmt.Sprintf("spec.generators[%d]", i)
		if g.Matrix != nil {
			err = as.checkNested(g.Matrix.Generators, at+".matrix", &wrong)
		}
		if g.Merge != nil {
			err = cmp.Or(err, as.checkNested(g.Merge.Generators, at+".merge", &wrong))
		}
		if err != nil {
			return nil, err
		}
	}
	return wrong, nil
}

// decodeStrictly decodes as the API server does, names by letter case. The field that it would drop
// is the first of its results: a field that a newer Argo CD understands changes which Applications
// there are. Fields of templates that no Argo CD has are kept by name.
func (as *appSet) decodeStrictly(raw []byte, into any, at string) (unknown, err error) {
	wrong, err := kjson.UnmarshalStrict(raw, into)
	if err != nil {
		return nil, fmt.Errorf("%s%w", locationPrefix(at), explainType(err))
	}
	for _, w := range wrong {
		if field, ok := templateField(w); ok && len(wrong) < maxStrictErrors {
			if at != "" {
				field = at + "." + field
			}
			as.dropped = append(as.dropped, field)
		} else if unknown == nil {
			unknown = fmt.Errorf("%s%w: this version of the resolver doesn't know it, so the set is not half-understood",
				locationPrefix(at), explainUnknown(w))
		}
	}
	return unknown, nil
}

// maxStrictErrors is how many errors the decoder tells at most.
const maxStrictErrors = 100

// explainType says of a value of another type than its field's what Kubernetes makes of that: the
// API server refuses the whole object.
func explainType(err error) error {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return err
	}
	return fmt.Errorf("%s has a %s where its type is %s, so that Kubernetes refuses the object", wrong.Field, wrong.Value, wrong.Type)
}

func locationPrefix(at string) string {
	if at == "" {
		return ""
	}
	return "in " + at + ": "
}

// checkNested decodes nested combining generators strictly: the library decodes them leniently,
// from raw JSON. Generators nested in those are typed. The first field that isn't known goes into
// unknown.
func (as *appSet) checkNested(nested []argov1alpha1.ApplicationSetNestedGenerator, at string, unknown *error) error {
	for i := range nested {
		here := fmt.Sprintf("%s.generators[%d]", at, i)
		for _, c := range []struct {
			raw  *apiextensionsv1.JSON
			into any
			at   string
		}{
			{nested[i].Matrix, &argov1alpha1.NestedMatrixGenerator{}, here + ".matrix"},
			{nested[i].Merge, &argov1alpha1.NestedMergeGenerator{}, here + ".merge"},
		} {
			if c.raw == nil {
				continue
			}
			wrong, err := as.decodeStrictly(c.raw.Raw, c.into, c.at)
			if err != nil {
				return err
			}
			*unknown = cmp.Or(*unknown, wrong)
		}
	}
	return nil
}
