package checkout

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"gopkg.in/yaml.v3"

	"github.com/liftlock/liftlock/internal/pipeline"
)

// kindPattern is what a manifest of a kind, or of a list of them, has in one of its lines.
func kindPattern(kind string) string {
	return `kind["']?[[:space:]]*:[[:space:]]*["']?` + kind + `(List)?["']?[[:space:]]*($|[,}#])`
}

// findManifests lists the files of the tree that hold objects of a kind. Those that
// are templates of a Helm chart are none until the chart is rendered: they are
// left out and named apart.
func (t *Tree) findManifests(ctx context.Context, kind string) (sets, templates []string, err error) {
	found, err := t.FS.Grep(ctx, kindPattern(kind), "*.yaml", "*.yml", "*.json")
	if err != nil {
		return nil, nil, err
	}
	for _, name := range found {
		info, err := fs.Stat(t.FS, name)
		switch {
		case err != nil || !info.Mode().IsRegular(): // a link: what it points to is found itself
		case t.inChart(name):
			templates = append(templates, name)
		case info.Size() > maxInspected:
			sets = append(sets, name)
		default:
			data, err := fs.ReadFile(t.FS, name)
			if err != nil {
				return nil, nil, err
			}
			if mayHold(data, kind) {
				sets = append(sets, name)
			}
		}
	}
	return sets, templates, nil
}

// maxInspected bounds the files that are read here; the resolver says which is too large.
const maxInspected = 4 << 20

// mayHold says whether one of a manifest's documents is an object of one of Argo CD's
// kinds, or a list with one. A manifest that can't be read, or is too large to be
// looked into, may hold one.
func mayHold(data []byte, kind string) bool {
	if len(data) > maxInspected {
		return true
	}
	documents := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var node yaml.Node
		switch err := documents.Decode(&node); {
		case errors.Is(err, io.EOF):
			return false
		case err != nil:
			return true
		}
		type header struct {
			APIVersion string `yaml:"apiVersion"`
			Kind       string `yaml:"kind"`
		}
		var object struct {
			header `yaml:",inline"`
			Items  []header `yaml:"items"`
		}
		if err := node.Decode(&object); err != nil {
			continue // not a Kubernetes object
		}
		for _, h := range append(object.Items, object.header) {
			if h.Kind == kind && (kind != kindApplication || strings.HasPrefix(h.APIVersion, "argoproj.io/")) {
				return true
			}
		}
	}
}

// inChart says whether a file is below the templates folder of a chart.
func (t *Tree) inChart(name string) bool { return t.chartOf(name) != "" }

// escapeGlob makes a glob that matches one path only.
func escapeGlob(name string) string { return globMeta.ReplaceAllString(name, `\$0`) }

var globMeta = regexp.MustCompile(`[\\*?\[\]{}]`)

// matchesAny says whether a tree has a file that a glob matches. It is also true when that can't be
// found out, so that the reader of the file says why.
func matchesAny(tree fs.FS, glob string) bool {
	found := false
	err := doublestar.GlobWalk(tree, path.Clean(glob), func(string, fs.DirEntry) error {
		found = true
		return doublestar.SkipDir
	}, doublestar.WithFilesOnly(), doublestar.WithFailOnIOErrors())
	return found || err != nil
}

// pipelineOfSets is a pipeline over these files, whose targets belong to no
// component and no environment.
func pipelineOfSets(files []string) *pipeline.Pipeline {
	p := &pipeline.Pipeline{}
	for _, name := range files {
		p.Spec.ApplicationSets = append(p.Spec.ApplicationSets, pipeline.ApplicationSetSource{Path: escapeGlob(name)})
	}
	return p
}

// narrowPipeline is a pipeline that generates from these files alone, as far as they
// are its own; nil when none is.
func narrowPipeline(p *pipeline.Pipeline, files []string) *pipeline.Pipeline {
	out := *p
	out.Spec.ApplicationSets, out.Spec.Applications = nil, nil
	for _, name := range files {
		for i := len(p.Spec.ApplicationSets) - 1; i >= 0; i-- { // the last one that matches counts
			entry := p.Spec.ApplicationSets[i]
			if ok, err := doublestar.Match(path.Clean(entry.Path), name); err == nil && ok {
				entry.Path = escapeGlob(name)
				out.Spec.ApplicationSets = append(out.Spec.ApplicationSets, entry)
				break
			}
		}
	}
	if len(out.Spec.ApplicationSets) == 0 {
		return nil
	}
	return &out
}
