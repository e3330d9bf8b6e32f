package reads

import (
	"bytes"
	"fmt"
	"path"
	"strings"

	"gopkg.in/yaml.v3"
)

// chartFiles are what Helm reads of a chart besides its folders.
var chartFiles = []string{"Chart.yaml", "Chart.lock", "values.yaml", "values.schema.json", "requirements.yaml", "requirements.lock", ".helmignore"}

// chartFolders are read as a whole.
var chartFolders = []string{"templates", "crds", "charts"}

// chart is one Helm chart's folder: its own files, what templates read
// through .Files, and dependencies that lie in the repository.
func (w *walker) chart(dir string) {
	if !w.enter("chart", dir) {
		return
	}
	for _, f := range chartFiles {
		w.file(path.Join(dir, f))
	}
	for _, f := range chartFolders {
		w.everything(path.Join(dir, f))
	}
	for _, f := range []string{"Chart.yaml", "requirements.yaml"} {
		w.dependencies(dir, path.Join(dir, f))
	}
	if w.readsAnyFile(dir) {
		w.everything(dir)
	}
}

// dependencies follows file:// dependencies.
func (w *walker) dependencies(dir, name string) {
	found, err := w.view.find(name)
	if err != nil || found.kind != file {
		return // its absence is recorded, and Helm's to complain about
	}
	data, err := w.view.read(found)
	if err != nil {
		w.widen(dir, name, err)
		return
	}
	var doc struct {
		Dependencies []struct {
			Repository string `yaml:"repository"`
		} `yaml:"dependencies"`
	}
	if err := yaml.NewDecoder(bytes.NewReader(data)).Decode(&doc); err != nil {
		w.widen(dir, name, fmt.Errorf("it can't be read as YAML: %w", err))
		return
	}
	for _, d := range doc.Dependencies {
		local, ok := strings.CutPrefix(d.Repository, "file://")
		if !ok {
			if d.Repository != "" {
				w.remote(d.Repository)
			}
			continue
		}
		p, err := clean(dir, local)
		if err != nil {
			w.widen(dir, name, err)
			continue
		}
		w.chart(w.folder(p))
	}
}

// readsAnyFile says that a template uses .Files, which reads any file of the
// chart by a name that may be computed.
func (w *walker) readsAnyFile(dir string) bool {
	found, err := w.view.find(path.Join(dir, "templates"))
	if err != nil || found.kind != folder {
		return false
	}
	list, err := w.view.below(found.path)
	if err != nil {
		return true
	}
	for _, name := range list.files {
		data, err := w.view.read(place{path: name, kind: file})
		if err != nil || bytes.Contains(data, []byte(".Files")) {
			return true
		}
	}
	return false
}
