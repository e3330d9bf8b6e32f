package deps

import (
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
	// errKeys marks a file with too many keys: merge keys multiply.
	errKeys = errors.New("its keys, with those that are merged in, are more than are followed")
)

type refKind int

const (
	refFile   refKind = iota // one file
	refBase                  // a file, or a folder with a kustomization of its own
	refConfig                // like refBase, and its strings may name further files
	refFolder                // a folder, all of it
	refInline                // a string of a plugin's configuration: perhaps a path
	refRemote                // an address, never a path
)

// reference is one path that a kustomization names, as written.
type reference struct {
	path string
	kind refKind
}

// references lists what a kustomization's bytes name, remote ones included.
// An error means that the list may not be complete.
//
// Like kustomize it takes keys in any case. Keys that are there twice, and
// what merge keys bring along, are all taken: which of them wins doesn't
// matter.
func references(data []byte, plain *plainParser) ([]reference, error) {
	doc, err := document(data, plain)
	if err != nil || doc == nil {
		return nil, err
	}
	c := &collector{}
	c.lists(doc, refBase, "resources", "bases", "components")
	c.lists(doc, refFile, "crds", "configurations")
	c.lists(doc, refConfig, "generators", "transformers", "validators")
	for _, field := range []string{"patches", "patchesStrategicMerge", "patchesJson6902", "replacements"} {
		c.each(doc, field, func(n *yaml.Node) { c.patch(n, field) })
	}
	for _, field := range []string{"configMapGenerator", "secretGenerator"} {
		c.each(doc, field, func(n *yaml.Node) { c.keyed(n, field) })
	}
	c.fields(doc, "openapi", func(n *yaml.Node) { c.one(n, "path", refFile) })
	c.charts(doc)
	if len(c.refs) >= maxReferences {
		c.err = errTooMany
	}
	return c.refs, c.err
}

// collector gathers references; the first thing of a wrong type is its error.
type collector struct {
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

func (c *collector) wrong(at string, n *yaml.Node) {
	if c.err == nil {
		c.err = fmt.Errorf("line %d: %s is not what kustomize wants there", n.Line, at)
	}
}

func (c *collector) add(kind refKind, path string) {
	if path != "" && len(c.refs) < maxReferences {
		c.refs = append(c.refs, reference{path, kind})
	}
}

// fields calls do for the values that a mapping has under a key, those of
// the mappings that are merged into it included.
func (c *collector) fields(n *yaml.Node, key string, do func(*yaml.Node)) {
	c.fieldsAt(n, key, 0, do)
}

func (c *collector) fieldsAt(n *yaml.Node, key string, depth int, do func(*yaml.Node)) {
	n = behind(n)
	if n.Kind != yaml.MappingNode {
		return
	}
	if depth > maxMerges {
		c.err = errKeys
		return
	}
	if c.steps += len(n.Content); c.steps > maxSteps {
		c.err = errKeys
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := behind(n.Content[i]), behind(n.Content[i+1])
		switch {
		case k.Value == "<<" && v.Kind == yaml.SequenceNode:
			for _, m := range v.Content {
				c.fieldsAt(m, key, depth+1, do)
			}
		case k.Value == "<<":
			c.fieldsAt(v, key, depth+1, do)
		case strings.EqualFold(k.Value, key) && !isNull(v):
			do(v)
		}
	}
}

// each calls do for the items of the list that a mapping has under a key.
func (c *collector) each(n *yaml.Node, key string, do func(*yaml.Node)) {
	c.fields(n, key, func(v *yaml.Node) {
		if v.Kind != yaml.SequenceNode {
			c.wrong(key, v)
			return
		}
		for _, item := range v.Content {
			if len(c.refs) < maxReferences {
				do(behind(item))
			}
		}
	})
}

// one takes a field that is a path.
func (c *collector) one(n *yaml.Node, key string, kind refKind) {
	c.fields(n, key, func(v *yaml.Node) {
		if v.Kind != yaml.ScalarNode {
			c.wrong(key, v)
			return
		}
		c.add(kind, v.Value)
	})
}

// text is a field's first string, or otherwise.
func (c *collector) text(n *yaml.Node, key, otherwise string) string {
	out := ""
	c.fields(n, key, func(v *yaml.Node) {
		if v.Kind == yaml.ScalarNode && out == "" {
			out = v.Value
		}
	})
	if out == "" {
		return otherwise
	}
	return out
}

// lists takes fields that are lists of paths, or of configurations given in place.
func (c *collector) lists(doc *yaml.Node, kind refKind, fields ...string) {
	for _, field := range fields {
		c.each(doc, field, func(n *yaml.Node) {
			switch {
			case isNull(n):
			case n.Kind != yaml.ScalarNode:
				c.wrong(field, n)
			case kind == refConfig && strings.ContainsAny(n.Value, "\n{:"):
				c.inline(n.Value)
				c.add(kind, n.Value) // should it be a strange path after all
			default:
				c.add(kind, n.Value)
			}
		})
	}
}

// inline takes a plugin's configuration given in place.
func (c *collector) inline(text string) {
	list, err := stringsOf([]byte(text))
	if err != nil {
		c.err = err
	}
	for _, s := range list {
		c.add(refInline, s)
		c.add(refInline, defaultChartHome+"/"+s)
		if _, path, ok := strings.Cut(s, "="); ok {
			c.add(refInline, path)
		}
	}
}

// patch takes an entry that is a path, a patch in place, or has a path.
func (c *collector) patch(n *yaml.Node, at string) {
	switch n.Kind {
	case yaml.ScalarNode:
		if !strings.Contains(n.Value, "\n") {
			c.add(refFile, n.Value)
		}
	case yaml.MappingNode:
		c.one(n, "path", refFile)
	default:
		c.wrong(at, n)
	}
}

// keyed takes ConfigMap and Secret generators: files as path or key=path.
func (c *collector) keyed(n *yaml.Node, at string) {
	if n.Kind != yaml.MappingNode {
		c.wrong(at, n)
		return
	}
	c.each(n, "files", func(f *yaml.Node) {
		if f.Kind != yaml.ScalarNode {
			c.wrong(at+".files", f)
			return
		}
		path := f.Value
		if _, after, found := strings.Cut(path, "="); found {
			path = after
		}
		c.add(refFile, path)
	})
	c.each(n, "envs", func(f *yaml.Node) { c.scalar(f, at+".envs", refFile) })
	c.one(n, "env", refFile)
}

func (c *collector) scalar(n *yaml.Node, at string, kind refKind) {
	if n.Kind != yaml.ScalarNode {
		c.wrong(at, n)
		return
	}
	c.add(kind, n.Value)
}

// defaultChartHome is where kustomize looks for charts when nothing is said.
const defaultChartHome = "charts"

// charts takes the Helm charts that a kustomization inflates.
func (c *collector) charts(doc *yaml.Node) {
	home := defaultChartHome
	c.fields(doc, "helmGlobals", func(n *yaml.Node) { home = c.text(n, "chartHome", home) })
	c.each(doc, "helmCharts", func(n *yaml.Node) {
		if n.Kind != yaml.MappingNode {
			c.wrong("helmCharts", n)
			return
		}
		c.one(n, "valuesFile", refFile)
		c.each(n, "additionalValuesFiles", func(f *yaml.Node) { c.scalar(f, "additionalValuesFiles", refFile) })
		c.chart(home, c.text(n, "name", ""), c.text(n, "version", ""), c.text(n, "repo", ""))
	})
	c.each(doc, "helmChartInflationGenerator", func(n *yaml.Node) {
		if n.Kind != yaml.MappingNode {
			c.wrong("helmChartInflationGenerator", n)
			return
		}
		c.one(n, "values", refFile)
		c.chart(c.text(n, "chartHome", home), c.text(n, "chartName", ""), c.text(n, "chartVersion", ""), c.text(n, "chartRepoUrl", ""))
	})
}

// chart takes one chart: fetched, or found below the charts' home, where one
// with a repository has a folder of its own.
func (c *collector) chart(home, name, version, repo string) {
	if repo != "" {
		c.add(refRemote, repo)
	}
	if name == "" {
		return
	}
	home = strings.TrimSuffix(home, "/")
	c.add(refFolder, home+"/"+name)
	if version != "" {
		c.add(refFolder, home+"/"+name+"-"+version)
	}
}

// remoteForm is what kustomize fetches instead of reading: URLs, git@host:…,
// host/org/repo of the known hosts, and anything with a ?ref=.
var remoteForm = regexp.MustCompile(`(?i)^[a-z][a-z0-9+.-]*::|^[a-z][a-z0-9+.-]*://|^[^/@]+@[^/:]+[:/]|^(www\.)?(github\.com|gitlab\.com|bitbucket\.org)[/:]|[?&](ref|version|submodules|timeout)=|^gh:`)

// remote says that a reference leaves the repository.
func remote(path string) bool {
	if !strings.ContainsAny(path, ":@?&") && !strings.Contains(path, ".com/") && !strings.Contains(path, ".org/") {
		return false // most paths: saves the expression's time
	}
	return remoteForm.MatchString(path)
}

// errUnreadable marks YAML that no parser takes: the tools fail on it too.
var errUnreadable = errors.New("it can't be read as YAML")

// beyondUs says that an error is a limit of ours, not a fault that stops the
// tools as well.
func beyondUs(err error) bool {
	return errors.Is(err, errTooLarge) || errors.Is(err, errTooMany) || errors.Is(err, errKeys)
}
