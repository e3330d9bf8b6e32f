package reads

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"
)

// kustomizationNames are the names that kustomize looks for, in its order.
var kustomizationNames = []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}

// maxReferences bounds what one kustomization may name.
const maxReferences = 100_000

type refKind int

const (
	refFile   refKind = iota // one file
	refBase                  // a file, or a folder with a kustomization of its own
	refConfig                // like refBase, and its strings may name further files
	refChart                 // a folder, all of it
)

// reference is one path that a kustomization names, as written.
type reference struct {
	path string
	kind refKind
}

// references lists what a kustomization's bytes name, remote ones included.
// An error means that the list may not be complete.
func references(data []byte) ([]reference, error) {
	var doc map[string]any
	dec := yaml.NewDecoder(bytes.NewReader(data))
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, nil // an empty file is an empty kustomization
	case err != nil:
		return nil, fmt.Errorf("it can't be read as YAML: %w", err)
	}
	c := &collector{}
	c.lists(doc, refBase, "resources", "bases", "components")
	c.lists(doc, refFile, "crds", "configurations")
	c.lists(doc, refConfig, "generators", "transformers", "validators")
	c.patches(doc["patches"], "patches")
	c.patches(doc["patchesStrategicMerge"], "patchesStrategicMerge")
	c.patches(doc["patchesJson6902"], "patchesJson6902")
	c.patches(doc["replacements"], "replacements")
	c.keyed(doc["configMapGenerator"], "configMapGenerator")
	c.keyed(doc["secretGenerator"], "secretGenerator")
	if m, ok := doc["openapi"].(map[string]any); ok {
		c.one(m["path"], refFile, "openapi.path")
	}
	c.charts(doc)
	if c.err == nil && len(c.refs) > maxReferences {
		c.err = fmt.Errorf("it names more than %d files", maxReferences)
		c.refs = c.refs[:maxReferences]
	}
	return c.refs, c.err
}

// collector gathers references; the first thing of a wrong type is its error.
type collector struct {
	refs []reference
	err  error
}

func (c *collector) wrong(at string, v any) {
	if c.err == nil {
		c.err = fmt.Errorf("%s is not what kustomize wants there (%T)", at, v)
	}
}

func (c *collector) add(kind refKind, path string) {
	if path != "" {
		c.refs = append(c.refs, reference{path, kind})
	}
}

func (c *collector) one(v any, kind refKind, at string) {
	switch s := v.(type) {
	case nil:
	case string:
		c.add(kind, s)
	default:
		c.wrong(at, v)
	}
}

func (c *collector) list(v any, at string, do func(item any)) {
	switch l := v.(type) {
	case nil:
	case []any:
		for _, item := range l {
			do(item)
		}
	default:
		c.wrong(at, v)
	}
}

// lists takes fields that are lists of paths, or of YAML given in place.
func (c *collector) lists(doc map[string]any, kind refKind, fields ...string) {
	for _, field := range fields {
		c.list(doc[field], field, func(item any) {
			s, ok := item.(string)
			switch {
			case !ok:
				c.wrong(field, item)
			case strings.Contains(s, "\n"):
				c.inline(s, kind)
			default:
				c.add(kind, s)
			}
		})
	}
}

// inline takes YAML given in place; configurations may name files.
func (c *collector) inline(text string, kind refKind) {
	if kind != refConfig {
		return
	}
	for _, s := range stringsOf([]byte(text)) {
		c.add(refConfig, s)
	}
}

// patches takes entries that are paths, or objects with a path.
func (c *collector) patches(v any, at string) {
	c.list(v, at, func(item any) {
		switch p := item.(type) {
		case string:
			if !strings.Contains(p, "\n") {
				c.add(refFile, p)
			}
		case map[string]any:
			c.one(p["path"], refFile, at+".path")
		default:
			c.wrong(at, item)
		}
	})
}

// keyed takes ConfigMap and Secret generators: files as path or key=path.
func (c *collector) keyed(v any, at string) {
	c.list(v, at, func(item any) {
		m, ok := item.(map[string]any)
		if !ok {
			c.wrong(at, item)
			return
		}
		c.list(m["files"], at+".files", func(f any) {
			s, ok := f.(string)
			if !ok {
				c.wrong(at+".files", f)
				return
			}
			if _, path, found := strings.Cut(s, "="); found {
				s = path
			}
			c.add(refFile, s)
		})
		c.list(m["envs"], at+".envs", func(f any) { c.one(f, refFile, at+".envs") })
		c.one(m["env"], refFile, at+".env")
	})
}

// charts takes the Helm charts that a kustomization inflates.
func (c *collector) charts(doc map[string]any) {
	home := "charts"
	if globals, ok := doc["helmGlobals"].(map[string]any); ok {
		if s, ok := globals["chartHome"].(string); ok && s != "" {
			home = s
		}
	}
	chart := func(home, name string) {
		c.add(refChart, strings.TrimSuffix(home, "/")+"/"+name)
	}
	c.list(doc["helmCharts"], "helmCharts", func(item any) {
		m, ok := item.(map[string]any)
		if !ok {
			c.wrong("helmCharts", item)
			return
		}
		c.one(m["valuesFile"], refFile, "helmCharts.valuesFile")
		c.list(m["additionalValuesFiles"], "helmCharts.additionalValuesFiles", func(f any) {
			c.one(f, refFile, "helmCharts.additionalValuesFiles")
		})
		if name, ok := m["name"].(string); ok && name != "" {
			chart(home, name)
		}
	})
	c.list(doc["helmChartInflationGenerator"], "helmChartInflationGenerator", func(item any) {
		m, ok := item.(map[string]any)
		if !ok {
			c.wrong("helmChartInflationGenerator", item)
			return
		}
		c.one(m["values"], refFile, "helmChartInflationGenerator.values")
		at := "charts"
		if s, ok := m["chartHome"].(string); ok && s != "" {
			at = s
		}
		if name, ok := m["chartName"].(string); ok && name != "" {
			chart(at, name)
		}
	})
}

// stringsOf lists the short scalars of a YAML stream: a plugin's
// configuration may name files under any key.
func stringsOf(data []byte) []string {
	var out []string
	dec := yaml.NewDecoder(bytes.NewReader(data))
	for range maxConfigDocuments {
		var n yaml.Node
		if dec.Decode(&n) != nil {
			break
		}
		scalars(&n, &out)
	}
	return out
}

const (
	maxConfigDocuments = 100
	maxPath            = 4096 // the longest path that git on Linux checks out
)

func scalars(n *yaml.Node, out *[]string) {
	if n.Kind == yaml.ScalarNode && n.Value != "" && len(n.Value) <= maxPath && !strings.Contains(n.Value, "\n") && len(*out) < maxReferences {
		*out = append(*out, n.Value)
	}
	for _, child := range n.Content { // aliases have none: their anchor was seen
		scalars(child, out)
	}
}

// remoteForm is what kustomize fetches instead of reading: URLs, git@host:…,
// host/org/repo of the known hosts, and anything with a ?ref=.
var remoteForm = regexp.MustCompile(`^[a-z][a-z0-9+.-]*::|^[A-Za-z][A-Za-z0-9+.-]*://|^[^/@]+@[^/:]+[:/]|^(github\.com|gitlab\.com|bitbucket\.org)[/:]|[?&](ref|version|submodules|timeout)=|^gh:`)

// remote says that a reference leaves the repository.
func remote(path string) bool { return remoteForm.MatchString(path) }
