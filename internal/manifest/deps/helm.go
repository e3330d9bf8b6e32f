package deps

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"gopkg.in/yaml.v3"
)

// chartMetadata are the files that Helm reads of a chart besides its folders.
var chartMetadata = []string{"Chart.yaml", "Chart.lock", "values.yaml", "values.schema.json", "requirements.yaml", "requirements.lock",
	".helmignore"}

// chartFolders are read as a whole.
var chartFolders = []string{"templates", "crds", "charts"}

// followChart is one Helm chart's folder: its own files, and dependencies that lie in the
// repository. Its traits tell which files its templates read by name: [release] draws the
// conclusion.
func (w *walker) followChart(dir string) {
	at, ok := w.lookUp(dir)
	if !ok {
		return
	}
	dir = at.path
	for _, f := range chartMetadata {
		w.lookUp(inFolder(dir, f))
	}
	for _, f := range chartFolders {
		w.recordEverything(inFolder(dir, f))
	}
	for _, f := range []string{"Chart.yaml", "requirements.yaml"} {
		w.followDependencies(dir, inFolder(dir, f))
	}
	w.scanTemplates(inFolder(dir, "templates"), ^traits(0))
	// A chart's chart reads its own files, which count already.
	w.scanTemplates(inFolder(dir, "charts"), ^readsFiles)
	w.scanValuesFile(inFolder(dir, "values.yaml"))
}

// followDependencies follows file:// dependencies.
func (w *walker) followDependencies(dir, name string) {
	at, err := w.findPath(name)
	if err != nil || at.kind != kindFile {
		return // Helm's to complain about
	}
	data, ok := w.readOrWiden(dir, name, at)
	if !ok {
		return
	}
	doc, err := parseDocument(data, w.plain)
	if err != nil {
		w.widenToFolder(dir, name, err)
		return
	}
	if doc == nil {
		return
	}
	c := &referenceCollector{}
	c.eachItem(doc, "dependencies", func(n *yaml.Node) {
		repo := c.stringField(n, "repository", "")
		local, ok := strings.CutPrefix(repo, "file://")
		if !ok {
			if repo != "" {
				w.recordRemote(repo)
			}
			return
		}
		p, err := joinPath(dir, local)
		if err != nil {
			w.widenToFolder(dir, name, err)
			return
		}
		w.useNode(roleChart, p, "")
	})
	if c.err != nil {
		w.widenToFolder(dir, name, c.err)
	}
}

// followValuesFile is a values file: its text may be rendered as a template.
func (w *walker) followValuesFile(name string) {
	at, ok := w.lookUp(name)
	switch {
	case !ok:
	case at.kind == kindFolder:
		w.useNode(roleEverything, at.path, "")
	default:
		w.scanValuesFile(name)
	}
}

// useValueGlobs makes the values files that globs match part of what is read.
func (w *walker) useValueGlobs(globs []string) {
	for _, g := range globs {
		p, err := joinPath(".", g)
		if err != nil || len(p) > maxPatternBytes {
			w.widenToFolder(".", g, cmp.Or(err, fmt.Errorf("the glob is longer than %d bytes", maxPatternBytes)))
			continue
		}
		dir, glob := doublestar.SplitPattern(p)
		if !doublestar.ValidatePattern(glob) {
			w.recordProblem(p, fmt.Errorf("%q is not a glob", glob))
			continue
		}
		w.useNode(roleValueGlob, dir, glob)
	}
}

// followValueGlob records the values files below a folder that a glob matches, now and later. A
// link's target counts as a whole: a glob may go through it.
func (w *walker) followValueGlob(dir, glob string) {
	at, ok := w.lookUp(dir)
	if !ok {
		return
	}
	r := rule{dir: at.path, shape: shapeGlob, glob: glob}
	w.result.rules = append(w.result.rules, r)
	if at.kind != kindFolder {
		return
	}
	list, err := w.tree.listBelow(at.path)
	if err != nil {
		w.recordProblem(at.path, err)
		return
	}
	for _, name := range list.files {
		if rel, below := cutFolder(at.path, name); below && doublestar.MatchUnvalidated(glob, rel) {
			w.useNode(roleValues, name, "")
		}
	}
	for _, name := range list.links {
		if !r.covers(name) {
			continue
		}
		if to, ok := w.lookUp(name); ok && to.kind == kindFolder {
			w.useNode(roleEverything, to.path, "")
		}
	}
}

// scanValuesFile notes whether a values file holds text that reads files.
func (w *walker) scanValuesFile(name string) {
	at, err := w.findPath(name)
	if err != nil || at.kind != kindFile {
		return
	}
	data, err := w.scanFile(at)
	if err != nil {
		w.result.traits |= mentionsFiles
		return
	}
	w.result.traits |= traitsOf(data) & mentionsFiles
}

// scanTemplates notes what the templates below a folder do, those of packed charts too. One that
// can't be read may do anything. Only the traits of mask count.
func (w *walker) scanTemplates(dir string, mask traits) {
	at, err := w.findPath(dir)
	if err != nil || at.kind != kindFolder {
		return
	}
	list, err := w.tree.listBelow(at.path)
	if err != nil {
		w.recordProblem(dir, err)
		w.result.traits |= unknownTraits & mask
		return
	}
	for _, name := range list.files {
		if !isChartText(name) {
			continue
		}
		at, err := w.tree.find(name)
		if err != nil || at.kind != kindFile {
			continue
		}
		data, err := w.scanFile(at)
		switch {
		case err != nil:
			w.result.traits |= unknownTraits & mask
		case strings.HasSuffix(name, packedSuffix):
			w.result.traits |= scanPackedChart(data) & mask
		default:
			w.result.traits |= traitsOf(data) & mask
		}
	}
}

const packedSuffix = ".tgz"

// isChartText says that a file below a chart's templates or charts may be
// rendered, or hold such text.
func isChartText(name string) bool {
	return strings.HasSuffix(name, packedSuffix) || path.Base(name) == "values.yaml" || strings.Contains(name, "/templates/")
}

// chartTexts lists what following a chart reads, when the tree is listed.
func (t *treeView) chartTexts(dir string) []string {
	var out []string
	for _, f := range []string{"Chart.yaml", "requirements.yaml", "values.yaml"} {
		out = append(out, inFolder(dir, f))
	}
	for _, f := range []string{"templates", "charts"} {
		first, end := t.listedRange(inFolder(dir, f))
		for _, name := range t.files[first:end] {
			if isChartText(name) && !strings.HasSuffix(name, packedSuffix) {
				out = append(out, name)
			}
		}
	}
	return out
}

// maxUnpackedBytes bounds what is read of a packed chart.
const maxUnpackedBytes = 32 << 20

// scanPackedChart reads the traits of a packed chart's files.
func scanPackedChart(data []byte) traits {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return 0 // Helm can't load it either
	}
	limited := &io.LimitedReader{R: z, N: maxUnpackedBytes}
	archive := tar.NewReader(limited)
	var t traits
	for {
		switch _, err := archive.Next(); {
		case errors.Is(err, io.EOF):
			return t
		case err != nil:
			return t | unknownTraits
		}
		text, err := io.ReadAll(archive)
		if err != nil || limited.N <= 0 {
			return t | unknownTraits
		}
		t |= traitsOf(text)
	}
}
