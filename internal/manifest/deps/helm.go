package deps

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"path"
	"strings"

	"gopkg.in/yaml.v3"
)

// chartMetadata are the files that Helm reads of a chart besides its folders.
var chartMetadata = []string{"Chart.yaml", "Chart.lock", "values.yaml", "values.schema.json", "requirements.yaml", "requirements.lock", ".helmignore"}

// chartFolders are read as a whole.
var chartFolders = []string{"templates", "crds", "charts"}

// chart is one Helm chart's folder: its own files, and dependencies that lie
// in the repository. What its templates read by name is told by its traits:
// [release] draws the conclusion.
func (w *walker) chart(dir string) {
	at, err := w.find(dir)
	if err != nil {
		w.problem(dir, err)
		return
	}
	dir = at.path
	for _, f := range chartMetadata {
		w.file(inFolder(dir, f))
	}
	for _, f := range chartFolders {
		w.everything(inFolder(dir, f))
	}
	for _, f := range []string{"Chart.yaml", "requirements.yaml"} {
		w.dependencies(dir, inFolder(dir, f))
	}
	w.templates(inFolder(dir, "templates"), ^traits(0))
	// A chart's chart reads its own files, which count already.
	w.templates(inFolder(dir, "charts"), ^usesFiles)
	w.text(inFolder(dir, "values.yaml"))
}

// dependencies follows file:// dependencies.
func (w *walker) dependencies(dir, name string) {
	at, err := w.find(name)
	if err != nil || at.kind != file {
		return // Helm's to complain about
	}
	data, err := w.read(at)
	if err != nil {
		w.widen(dir, name, err)
		return
	}
	doc, err := document(data, w.plain)
	if err != nil {
		w.widen(dir, name, err)
		return
	}
	if doc == nil {
		return
	}
	c := &collector{}
	c.each(doc, "dependencies", func(n *yaml.Node) {
		repo := c.text(n, "repository", "")
		local, ok := strings.CutPrefix(repo, "file://")
		if !ok {
			if repo != "" {
				w.remote(repo)
			}
			return
		}
		p, err := clean(dir, local)
		if err != nil {
			w.widen(dir, name, err)
			return
		}
		w.use(roleChart, p, "")
	})
	if c.err != nil {
		w.widen(dir, name, c.err)
	}
}

// values is a values file: its text may be rendered as a template.
func (w *walker) values(name string) {
	at, err := w.find(name)
	if err != nil {
		w.problem(name, err)
		return
	}
	if at.kind == folder {
		w.use(roleEverything, at.path, "")
		return
	}
	w.text(name)
}

// text notes whether a values file holds text that reads files.
func (w *walker) text(name string) {
	at, err := w.find(name)
	if err != nil || at.kind != file {
		return
	}
	data, err := w.scan(at)
	if err != nil {
		w.out.traits |= namesFiles
		return
	}
	w.out.traits |= traitsOf(data) & namesFiles
}

// templates notes what the templates below a folder do; packed charts are
// looked into. What can't be read may do anything. Only the traits of mask
// count.
func (w *walker) templates(dir string, mask traits) {
	at, err := w.find(dir)
	if err != nil || at.kind != folder {
		return
	}
	list, err := w.view.below(at.path)
	if err != nil {
		w.problem(dir, err)
		w.out.traits |= doubt & mask
		return
	}
	for _, name := range list.files {
		if !isChartText(name) {
			continue
		}
		at, err := w.view.find(name)
		if err != nil || at.kind != file {
			continue
		}
		data, err := w.scan(at)
		switch {
		case err != nil:
			w.out.traits |= doubt & mask
		case strings.HasSuffix(name, packedSuffix):
			w.out.traits |= unpacked(data) & mask
		default:
			w.out.traits |= traitsOf(data) & mask
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
func (v *view) chartTexts(dir string) []string {
	var out []string
	for _, f := range []string{"Chart.yaml", "requirements.yaml", "values.yaml"} {
		out = append(out, inFolder(dir, f))
	}
	for _, f := range []string{"templates", "charts"} {
		first, end := v.span(inFolder(dir, f))
		for _, name := range v.files[first:end] {
			if isChartText(name) && !strings.HasSuffix(name, packedSuffix) {
				out = append(out, name)
			}
		}
	}
	return out
}

// maxUnpacked bounds what is read of a packed chart.
const maxUnpacked = 32 << 20

// unpacked reads the traits of a packed chart's files.
func unpacked(data []byte) traits {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return 0 // Helm can't load it either
	}
	limited := &io.LimitedReader{R: z, N: maxUnpacked}
	archive := tar.NewReader(limited)
	var t traits
	for {
		switch _, err := archive.Next(); {
		case errors.Is(err, io.EOF):
			return t
		case err != nil:
			return t | doubt
		}
		text, err := io.ReadAll(archive)
		if err != nil || limited.N <= 0 {
			return t | doubt
		}
		t |= traitsOf(text)
	}
}
