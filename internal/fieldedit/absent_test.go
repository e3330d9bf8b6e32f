package fieldedit

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/pipeline"
)

// TestWhenAbsent carries, a kind at a time, what the target environment lacks:
// refused by file and field, or added, never skipped.
func TestWhenAbsent(t *testing.T) {
	yaml := func(file string, paths ...string) pipeline.Carry {
		return pipeline.Carry{YAML: &pipeline.FieldPick{Files: []string{file}, Paths: paths}}
	}
	images := pipeline.Carry{KustomizeImages: []string{"registry.example/*"}}
	files := pipeline.Carry{Files: &pipeline.FilePick{Include: []string{"config/**"}}}
	for _, c := range []struct {
		name       string
		carry      pipeline.Carry
		file       string
		dev, prod  string // prod empty: the file isn't there
		want       string // with add; empty: refused there, too
		refused    string
		addRefused string
	}{
		{name: "an image's tag", carry: images, file: "kustomization.yaml",
			dev:        "images:\n- name: registry.example/web\n  newTag: v2\n",
			prod:       "images:\n# ours\n- name: registry.example/web\n  newName: mirror.example/web\n",
			addRefused: "newName"},
		{name: "the tag of an entry without one", carry: images, file: "kustomization.yaml",
			dev:  "images:\n- name: registry.example/web\n  newTag: v2\n",
			prod: "images:\n- name: registry.example/web # ours\n",
			want: "images:\n- name: registry.example/web # ours\n  newTag: v2\n", refused: "prod/kustomization.yaml: images[registry.example/web].newTag isn't there"},
		{name: "an image's digest", carry: images, file: "kustomization.yaml",
			dev:  "images:\n- name: registry.example/web\n  newTag: v2\n  digest: sha256:" + strings.Repeat("0", 64) + "\n",
			prod: "images:\n- name: registry.example/web\n  newTag: v1\n",
			want: "images:\n- name: registry.example/web\n  newTag: v2\n  digest: sha256:" + strings.Repeat("0", 64) + "\n", refused: "images[registry.example/web].digest isn't there"},
		{name: "an image", carry: images, file: "kustomization.yaml",
			dev:  "images:\n- name: registry.example/web\n  newTag: v2\n- name: registry.example/db\n  newTag: v7\n",
			prod: "images:\n- name: registry.example/web\n  newTag: v2\n",
			want: "images:\n- name: registry.example/web\n  newTag: v2\n- name: registry.example/db\n  newTag: v7\n", refused: "images[registry.example/db].newTag isn't there"},
		{name: "a Helm value", carry: yaml("values.yaml", "image.tag"), file: "values.yaml",
			dev: "image:\n  tag: \"1.10\"\n", prod: "image:\n    repository: x # kept\nother: 1\n",
			want: "image:\n    repository: x # kept\n    tag: \"1.10\"\nother: 1\n", refused: "prod/values.yaml: image.tag isn't there"},
		{name: "a number", carry: yaml("values.yaml", "replicas"), file: "values.yaml",
			dev: "replicas: 3\n", prod: "other: 1\n", want: "other: 1\nreplicas: 3\n", refused: "replicas isn't there"},
		{name: "a dependency's version", carry: yaml("Chart.yaml", "dependencies[name=redis].version"), file: "Chart.yaml",
			dev: "dependencies:\n- name: redis\n  version: 2.0.0\n", prod: "dependencies:\n- name: redis\n  repository: https://charts.example\n",
			want: "dependencies:\n- name: redis\n  repository: https://charts.example\n  version: 2.0.0\n", refused: "dependencies[name=redis].version isn't there"},
		{name: "a dependency", carry: yaml("Chart.yaml", "dependencies[name=redis].version"), file: "Chart.yaml",
			dev: "dependencies:\n- name: redis\n  version: 2.0.0\n", prod: "dependencies:\n- name: other\n  version: 1.0.0\n",
			refused: "dependencies[name=redis].version isn't there", addRefused: "redis"},
		{name: "an Application's revision", carry: yaml("app.yaml", "spec.source.targetRevision"), file: "app.yaml",
			dev: "spec:\n  source:\n    targetRevision: v2\n", prod: "spec:\n  source:\n    path: web\n",
			want: "spec:\n  source:\n    path: web\n    targetRevision: v2\n", refused: "spec.source.targetRevision isn't there"},
		{name: "a Helm parameter's value", carry: yaml("app.yaml", "spec.source.helm.parameters[name=image.tag].value"), file: "app.yaml",
			dev:  "spec: {source: {helm: {parameters: [{name: image.tag, value: v2}]}}}\n",
			prod: "spec: {source: {helm: {parameters: [{name: image.tag}]}}}\n",
			want: "spec: {source: {helm: {parameters: [{name: image.tag, value: v2}]}}}\n", refused: "isn't there"},
		{name: "a JSON key", carry: pipeline.Carry{JSON: &pipeline.FieldPick{Files: []string{"config.json"}, Paths: []string{"release.tag"}}}, file: "config.json",
			dev: `{"release": {"tag": "v2"}}`, prod: "{\n  \"release\": {\n    \"by\": \"x\"\n  }\n}\n",
			want: "{\n  \"release\": {\n    \"by\": \"x\",\n    \"tag\": \"v2\"\n  }\n}\n", refused: "prod/config.json: release.tag isn't there"},
		{name: "a file of fields", carry: yaml("values.yaml", "image.tag"), file: "values.yaml",
			dev: "image: {tag: v2}\n", refused: "values.yaml", addRefused: "values.yaml"},
		{name: "a whole file", carry: files, file: "config/a b.conf", dev: "x\r\n", want: "x\r\n", refused: "config/a b.conf isn't there: add it by hand, or set whenAbsent: add"},
	} {
		for _, absent := range []string{"", pipeline.WhenAbsentRefuse, pipeline.WhenAbsentAdd} {
			t.Run(c.name+" "+absent, func(t *testing.T) {
				all := map[string]string{"dev/" + c.file: c.dev, "prod/README": "the folder is there\n"}
				if c.prod != "" {
					all["prod/"+c.file] = c.prod
				}
				commit := newTree(all)
				c.carry.WhenAbsent = absent
				carry := []pipeline.Carry{c.carry}
				want := mustRead(t, commit, carry, "dev")
				edits, err := Compose(commit, Overlay{Roots: []string{"prod"}, Carry: carry}, want, contentsOf(commit, []string{"dev"}))
				refused := c.refused
				if absent == pipeline.WhenAbsentAdd {
					refused = c.addRefused
				} else if refused == "" {
					refused = c.addRefused
				}
				if refused != "" {
					if err == nil || !strings.Contains(err.Error(), refused) || edits != nil {
						t.Errorf("%d edits, %v; want %q", len(edits), err, refused)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				after := applyToMap(commit, edits)
				if d := cmp.Diff(c.want, string(after["prod/"+c.file].Data)); d != "" {
					t.Errorf("(-want +got):\n%s", d)
				}
				if mustRead(t, after, carry, "prod").ID() != want.ID() {
					t.Error("it has another identity than the one that was carried")
				}
			})
		}
	}
}
