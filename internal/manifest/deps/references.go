package deps

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"
)

// maxReferences bounds what one kustomization may name, and the strings that
// are taken from one configuration.
const maxReferences = 100_000

var (
	// errTooMany marks a file that names more than is followed.
	errTooMany = fmt.Errorf("it names more than %d files", maxReferences)
	// errTooManyKeys marks a file with too many keys: merge keys multiply.
	errTooManyKeys = errors.New("its keys, with those that are merged in, are more than are followed")
)

type refKind int

const (
	refFile         refKind = iota // one file
	refBase                        // a file, or a folder with a kustomization of its own
	refConfig                      // like refBase, and its strings may name further files
	refFolder                      // a folder, all of it
	refConfigString                // a string of a plugin's configuration: perhaps a path
	refRemote                      // an address, never a path
)

// reference is one path that a kustomization names, as written.
type reference struct {
	path string
	kind refKind
}

// parseReferences lists what a kustomization's bytes name, remote ones included.
// An error means that the list may not be complete.
//
// Like kustomize it takes keys in any case. Keys that are there twice, and
// what merge keys bring along, are all taken: which of them wins doesn't
// matter.
func parseReferences(data []byte, plain *plainParser) ([]reference, error) {
	doc, err := parseDocument(data, plain)
	if err != nil || doc == nil {
		return nil, err
	}
	c := &referenceCollector{}
	c.addPathLists(doc, refBase, "resources", "bases", "components")
	c.addPathLists(doc, refFile, "crds", "configurations")
	c.addPathLists(doc, refConfig, "generators", "transformers", "validators")
	for _, field := range []string{"patches", "patchesStrategicMerge", "patchesJson6902", "replacements"} {
		c.eachItem(doc, field, func(n *yaml.Node) { c.addPatch(n, field) })
	}
	for _, field := range []string{"configMapGenerator", "secretGenerator"} {
		c.eachMapping(doc, field, func(n *yaml.Node) { c.addGeneratorFiles(n, field) })
	}
	c.eachField(doc, "openapi", func(n *yaml.Node) { c.addPathField(n, "path", refFile) })
	c.addCharts(doc)
	if len(c.refs) >= maxReferences {
		c.err = errTooMany
	}
	return c.refs, c.err
}

// referenceCollector gathers references; the first thing of a wrong type is its error.
type referenceCollector struct {
	refs  []reference
	err   error
	steps int // taken through mappings
}

const (
	// maxMerges bounds how deep merge keys are followed.
	maxMerges = 16
	// maxSteps bounds the work on one file: merge keys multiply.
	maxSteps = 5_000_000
)

func (r *referenceCollector) recordTypeError(at string, n *yaml.Node) {
	if r.err == nil {
		r.err = fmt.Errorf("line %d: %s is not what kustomize wants there", n.Line, at)
	}
}

func (r *referenceCollector) addReference(kind refKind, path string) {
	if path != "" && len(r.refs) < maxReferences {
		r.refs = append(r.refs, reference{path, kind})
	}
}

// eachField calls do for the values that a mapping has under a key, those of
// the mappings that are merged into it included.
func (r *referenceCollector) eachField(n *yaml.Node, key string, do func(*yaml.Node)) {
	r.eachFieldAt(n, key, 0, do)
}

func (r *referenceCollector) eachFieldAt(n *yaml.Node, key string, depth int, do func(*yaml.Node)) {
	n = resolveAlias(n)
	if n.Kind != yaml.MappingNode {
		return
	}
	if r.steps += len(n.Content); r.steps > maxSteps || depth > maxMerges {
		r.err = errTooManyKeys
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := resolveAlias(n.Content[i]), resolveAlias(n.Content[i+1])
		switch {
		case k.Value == "<<" && v.Kind == yaml.SequenceNode:
			for _, m := range v.Content {
				r.eachFieldAt(m, key, depth+1, do)
			}
		case k.Value == "<<":
			r.eachFieldAt(v, key, depth+1, do)
		case strings.EqualFold(k.Value, key) && !isNull(v):
			do(v)
		}
	}
}

// eachItem calls do for the items of the list that a mapping has under a key.
func (r *referenceCollector) eachItem(n *yaml.Node, key string, do func(*yaml.Node)) {
	r.eachField(n, key, func(v *yaml.Node) {
		if v.Kind != yaml.SequenceNode {
			r.recordTypeError(key, v)
			return
		}
		for _, item := range v.Content {
			if len(r.refs) < maxReferences {
				do(resolveAlias(item))
			}
		}
	})
}

// eachMapping is eachItem for a list of mappings.
func (r *referenceCollector) eachMapping(n *yaml.Node, key string, do func(*yaml.Node)) {
	r.eachItem(n, key, func(item *yaml.Node) {
		if item.Kind != yaml.MappingNode {
			r.recordTypeError(key, item)
			return
		}
		do(item)
	})
}

// addPathField takes a field that is a path.
func (r *referenceCollector) addPathField(n *yaml.Node, key string, kind refKind) {
	r.eachField(n, key, func(v *yaml.Node) { r.addScalar(v, key, kind, v.Value) })
}

// stringField is a field's first string, or otherwise.
func (r *referenceCollector) stringField(n *yaml.Node, key, fallback string) string {
	out := ""
	r.eachField(n, key, func(v *yaml.Node) {
		if v.Kind == yaml.ScalarNode && out == "" {
			out = v.Value
		}
	})
	return cmp.Or(out, fallback)
}

// addPathLists takes fields that are lists of paths, or of configurations given in place.
func (r *referenceCollector) addPathLists(doc *yaml.Node, kind refKind, fields ...string) {
	for _, field := range fields {
		r.eachItem(doc, field, func(n *yaml.Node) {
			switch {
			case isNull(n):
			case n.Kind != yaml.ScalarNode:
				r.recordTypeError(field, n)
			case kind == refConfig && strings.ContainsAny(n.Value, "\n{:"):
				r.addInlineConfig(n.Value)
				r.addReference(kind, n.Value) // should it be a strange path after all
			default:
				r.addReference(kind, n.Value)
			}
		})
	}
}

// addInlineConfig takes a plugin's configuration given in place.
func (r *referenceCollector) addInlineConfig(text string) {
	list, err := collectStrings([]byte(text))
	if err != nil {
		r.err = err
	}
	for _, s := range list {
		r.addReference(refConfigString, s)
		r.addReference(refConfigString, defaultChartHome+"/"+s)
		if _, path, ok := strings.Cut(s, "="); ok {
			r.addReference(refConfigString, path)
		}
	}
}

// addPatch takes an entry that is a path, a patch in place, or has a path.
func (r *referenceCollector) addPatch(n *yaml.Node, at string) {
	switch n.Kind {
	case yaml.ScalarNode:
		if !strings.Contains(n.Value, "\n") {
			r.addReference(refFile, n.Value)
		}
	case yaml.MappingNode:
		r.addPathField(n, "path", refFile)
	default:
		r.recordTypeError(at, n)
	}
}

// addGeneratorFiles takes ConfigMap and Secret generators: files as path or key=path.
func (r *referenceCollector) addGeneratorFiles(n *yaml.Node, at string) {
	r.eachItem(n, "files", func(f *yaml.Node) {
		_, path, found := strings.Cut(f.Value, "=")
		if !found {
			path = f.Value
		}
		r.addScalar(f, at+".files", refFile, path)
	})
	r.eachItem(n, "envs", func(f *yaml.Node) { r.addScalar(f, at+".envs", refFile, f.Value) })
	r.addPathField(n, "env", refFile)
}

// addScalar takes the path that a scalar stands for.
func (r *referenceCollector) addScalar(n *yaml.Node, at string, kind refKind, path string) {
	if n.Kind != yaml.ScalarNode {
		r.recordTypeError(at, n)
		return
	}
	r.addReference(kind, path)
}

// defaultChartHome is where kustomize looks for charts when nothing is said.
const defaultChartHome = "charts"

// addCharts takes the Helm charts that a kustomization inflates.
func (r *referenceCollector) addCharts(doc *yaml.Node) {
	home := defaultChartHome
	r.eachField(doc, "helmGlobals", func(n *yaml.Node) { home = r.stringField(n, "chartHome", home) })
	r.eachMapping(doc, "helmCharts", func(n *yaml.Node) {
		r.addPathField(n, "valuesFile", refFile)
		r.eachItem(n, "additionalValuesFiles", func(f *yaml.Node) { r.addScalar(f, "additionalValuesFiles", refFile, f.Value) })
		r.addChart(home, r.stringField(n, "name", ""), r.stringField(n, "version", ""), r.stringField(n, "repo", ""))
	})
	r.eachMapping(doc, "helmChartInflationGenerator", func(n *yaml.Node) {
		r.addPathField(n, "values", refFile)
		r.addChart(r.stringField(n, "chartHome", home), r.stringField(n, "chartName", ""), r.stringField(n, "chartVersion", ""),
			r.stringField(n, "chartRepoUrl", ""))
	})
}

// addChart takes one chart: fetched, or found below the charts' home, where one
// with a repository has a folder of its own.
func (r *referenceCollector) addChart(home, name, version, repo string) {
	if repo != "" {
		r.addReference(refRemote, repo)
	}
	if name == "" {
		return
	}
	home = strings.TrimSuffix(home, "/")
	r.addReference(refFolder, home+"/"+name)
	if version != "" {
		r.addReference(refFolder, home+"/"+name+"-"+version)
	}
}

// remotePattern is what kustomize fetches instead of reading: URLs, git@host:…,
// host/org/repo of the known hosts, and anything with a ?ref=.
var remotePattern = regexp.MustCompile(
	`(?i)^[a-z][a-z0-9+.-]*::|^[a-z][a-z0-9+.-]*://|^[^/@]+@[^/:]+[:/]|^(www\.)?(github\.com|gitlab\.com|bitbucket\.org)[/:]|[?&](ref|version|submodules|timeout)=|^gh:`)

// isRemote says that a reference leaves the repository.
func isRemote(path string) bool {
	if !strings.ContainsAny(path, ":@?&") && !strings.Contains(path, ".com/") && !strings.Contains(path, ".org/") {
		return false // most paths: saves the expression's time
	}
	return remotePattern.MatchString(path)
}

// errUnreadable marks YAML that no parser takes: the tools fail on it too.
var errUnreadable = errors.New("it can't be read as YAML")

// isOwnLimit says that an error is a limit of ours, not a fault that stops the
// tools as well.
func isOwnLimit(err error) bool {
	return errors.Is(err, errTooLarge) || errors.Is(err, errTooMany) || errors.Is(err, errTooManyKeys)
}
