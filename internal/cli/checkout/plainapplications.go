package checkout

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/liftlock/liftlock/internal/appset"
)

// applicationPattern is what a manifest of a plain Application has in one of its lines.
const applicationPattern = `kind["']?[[:space:]]*:[[:space:]]*["']?Application["']?[[:space:]]*($|[,}])`

// manifestApplications are the plain Applications of a tree's manifests.
type manifestApplications struct {
	files        []string
	applications []plainApplication
	templates    []string // of Helm charts, which are left out
}

type plainApplication struct {
	file   string
	name   string
	labels map[string]string
	raw    json.RawMessage
}

// findApplications reads the plain Applications of a tree. One whose sources are other
// Applications' manifests, an app of apps, is among them.
func (t *Tree) findApplications(ctx context.Context) (*manifestApplications, error) {
	found, err := t.FS.Grep(ctx, applicationPattern, "*.yaml", "*.yml", "*.json")
	if err != nil {
		return nil, err
	}
	out := &manifestApplications{}
	for _, name := range found {
		info, err := fs.Stat(t.FS, name)
		switch {
		case err != nil || !info.Mode().IsRegular() || info.Size() > maxInspected:
			continue
		case t.inChart(name):
			out.templates = append(out.templates, name)
			continue
		}
		data, err := fs.ReadFile(t.FS, name)
		if err != nil {
			return nil, err
		}
		out.add(name, data)
	}
	return out, nil
}

// add takes the Applications of a manifest; what can't be read has none.
func (m *manifestApplications) add(name string, data []byte) {
	documents := yaml.NewDecoder(bytes.NewReader(data))
	before := len(m.applications)
	for {
		var object map[string]any
		if err := documents.Decode(&object); err != nil {
			break // the end, or what can't be read
		}
		raw, err := json.Marshal(object)
		if err != nil || object["kind"] != "Application" {
			continue
		}
		var read struct {
			APIVersion string `json:"apiVersion"`
			Metadata   struct {
				Name   string            `json:"name"`
				Labels map[string]string `json:"labels"`
			} `json:"metadata"`
		}
		if json.Unmarshal(raw, &read) != nil || read.Metadata.Name == "" || !strings.HasPrefix(read.APIVersion, "argoproj.io/") {
			continue
		}
		m.applications = append(m.applications, plainApplication{name, read.Metadata.Name, read.Metadata.Labels, raw})
	}
	if len(m.applications) > before {
		m.files = append(m.files, name)
	}
}

// leaves are the Applications that aren't apps of apps: those whose sources hold no other
// Application's file.
func (m *manifestApplications) leaves(targets []appset.Target) *manifestApplications {
	parents := map[string]bool{}
	for i := range targets {
		for _, s := range targets[i].Sources {
			if s.Here && s.Chart == "" && slices.ContainsFunc(m.applications, func(a plainApplication) bool { return a.name != targets[i].Name && isBelow(s.Path, a.file) }) {
				parents[targets[i].Name] = true
			}
		}
	}
	out := &manifestApplications{files: m.files, templates: m.templates}
	for _, a := range m.applications {
		if !parents[a.name] {
			out.applications = append(out.applications, a)
		}
	}
	return out
}

// selector picks these Applications by a label that all have, which others lack: one with the
// same value for all, else one that is there.
func (m *manifestApplications) selector(all *manifestApplications) (string, bool) {
	if len(m.applications) == 0 {
		return "", false
	}
	for _, key := range slices.Sorted(maps.Keys(m.applications[0].labels)) {
		value, same, has := m.applications[0].labels[key], true, true
		for _, a := range m.applications {
			v, ok := a.labels[key]
			has, same = has && ok, same && v == value
		}
		text := key
		if same {
			text = key + "=" + value
		}
		if chosen, err := all.selectBy(text); has && err == nil && len(chosen) == len(m.applications) {
			return text, true
		}
	}
	return "", false
}

func (m *manifestApplications) selectBy(selector string) ([]json.RawMessage, error) {
	s, err := labels.Parse(selector)
	if err != nil {
		return nil, err
	}
	var out []json.RawMessage
	for _, a := range m.applications {
		if s.Matches(labels.Set(a.labels)) {
			out = append(out, a.raw)
		}
	}
	return out, nil
}

// liveObjects are the Applications as if they ran; nil where there are none.
func (m *manifestApplications) liveObjects() *appset.Live {
	if m == nil {
		return nil
	}
	return &appset.Live{Selected: func(_ context.Context, _, _, selector string) ([]json.RawMessage, error) { return m.selectBy(selector) }}
}

// isBelow says that a file lies in a folder, or further down.
func isBelow(folder, file string) bool {
	folder = path.Clean(folder)
	return folder == "." || strings.HasPrefix(file, folder+"/")
}
