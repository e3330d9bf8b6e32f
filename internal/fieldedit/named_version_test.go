package fieldedit

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/pipeline"
)

// TestFindVersions holds which carried fields name an image or a chart, and what becomes of them with another version.
func TestFindVersions(t *testing.T) {
	t.Parallel()
	tree := newTree(map[string]string{
		"dev/kustomization.yaml": "images:\n- name: registry.example/web\n  newTag: \"1.20\"\n- name: app\n  newName: registry.example/app\n  newTag: v1\n" +
			"  digest: sha256:a\n- name: registry.example/db\n  digest: sha256:b\n- name: registry.example/none\n  newName: other\n",
		"dev/values.yaml": "image:\n  registry: registry.example\n  repository: api\n  tag: v2\nworker:\n  tag: v3\nsidecar:\n  tag: v4\n" +
			"proxy: {image: \"registry.example:5000/proxy:1.0@sha256:c\", version: 5}\nplain: {image: web}\n",
		"chart/values.yaml": "worker:\n  repository: registry.example/worker\nimage:\n  repository: wrong\n",
		"dev/Chart.yaml": "name: web\nversion: 1.0.0\ndependencies:\n- name: redis\n  version: 19.6.4\n  repository: https://charts.example/stable\n" +
			"- name: local\n  version: 1.0.0\n  repository: file://../local\n- name: oci\n  version: 2.0.0\n  repository: oci://registry.example/charts/\n",
		"dev/app.yaml":     "spec:\n  sources:\n  - repoURL: registry.example/charts\n    chart: web\n    targetRevision: 3.2.0\n  - repoURL: https://git.example/fleet\n    path: x\n    targetRevision: main\n",
		"dev/config.json":  `{"job": {"repository": "registry.example/job", "tag": "7"}, "tag": "8"}`,
		"dev2/values.yaml": "image:\n  registry: registry.example\n  repository: api\n  tag: v2\n",
	})
	o := Overlay{Roots: []string{"dev", "dev2"}, Carry: []pipeline.Carry{
		{KustomizeImages: []string{"**"}},
		{YAML: &pipeline.FieldPick{Files: []string{"values.yaml"}, Paths: []string{"image.tag", "worker.tag", "sidecar.tag", "proxy.image", "proxy.version", "plain.image"}}},
		{YAML: &pipeline.FieldPick{Files: []string{"Chart.yaml"}, Paths: []string{"version", "dependencies[*].version"}}},
		{YAML: &pipeline.FieldPick{Files: []string{"app.yaml"}, Paths: []string{"spec.sources[0].targetRevision", "spec.sources[1].targetRevision"}}},
		{JSON: &pipeline.FieldPick{Files: []string{"config.json"}, Paths: []string{"/job/tag", "tag"}}},
	}}
	found, err := FindVersions(tree, o, [][]string{{"chart/values.yaml", "missing.yaml", "dev/values.yaml"}})
	if err != nil {
		t.Fatal(err)
	}
	release, err := Read(tree, o)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range found {
		n := &found[i]
		text := fmt.Sprintf("%s%s %s %s tag=%t pin=%t at %s:", n.Image, n.Chart, n.Tag, n.Digest, n.HasTag(), n.CanPin(), strings.Join(n.Where, " "))
		for _, f := range n.With("9", "sha256:9") {
			text += fmt.Sprintf(" %s %s=%s", f.File, f.Path, f.Value)
		}
		got = append(got, text)
		if n.HasTag() && n.ValueIn(release, false) != n.Tag || n.CanPin() && n.ValueIn(release, true) != n.Digest {
			t.Errorf("%s: the release has %q and %q", text, n.ValueIn(release, false), n.ValueIn(release, true))
		}
	}
	want := []string{
		"https://charts.example/stable#redis 19.6.4  tag=true pin=false at dev/Chart.yaml:5: Chart.yaml dependencies[name=redis].version=9",
		"oci://registry.example/charts/oci 2.0.0  tag=true pin=false at dev/Chart.yaml:11: Chart.yaml dependencies[name=oci].version=9",
		"oci://registry.example/charts/web 3.2.0  tag=true pin=false at dev/app.yaml:5: app.yaml spec.sources[0].targetRevision=9",
		"registry.example/job 7  tag=true pin=false at dev/config.json:1: config.json /job/tag=9",
		"registry.example/web 1.20  tag=true pin=false at dev/kustomization.yaml:3: kustomization.yaml images[registry.example/web].newTag=9",
		"registry.example/app v1 sha256:a tag=true pin=true at dev/kustomization.yaml:5 dev/kustomization.yaml:6 dev/kustomization.yaml:7: kustomization.yaml images[app].newTag=9 kustomization.yaml images[app].digest=sha256:9",
		"registry.example/db  sha256:b tag=false pin=true at dev/kustomization.yaml:9: kustomization.yaml images[registry.example/db].digest=sha256:9",
		"registry.example/api v2  tag=true pin=false at dev/values.yaml:4 dev2/values.yaml:4: values.yaml image.tag=9",
		"registry.example/worker v3  tag=true pin=false at dev/values.yaml:6: values.yaml worker.tag=9",
		"registry.example:5000/proxy 1.0 sha256:c tag=true pin=true at dev/values.yaml:9: values.yaml proxy.image=registry.example:5000/proxy:9@sha256:9",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for i := range found {
		if found[i].isReference {
			if f := found[i].With("", "sha256:9"); f[0].Value != "registry.example:5000/proxy:1.0@sha256:9" {
				t.Errorf("%+v", f)
			}
		}
	}
}

// TestFindVersionsRefuses holds that nothing is said of an overlay that can't be read, or whose folders disagree.
func TestFindVersionsRefuses(t *testing.T) {
	t.Parallel()
	tree := newTree(map[string]string{"a/values.yaml": "image: {repository: web, tag: v1}\n", "b/values.yaml": "image: {repository: web, tag: v2}\n", "c/values.yaml": "image: [\n"})
	carry := []pipeline.Carry{{YAML: &pipeline.FieldPick{Files: []string{"values.yaml"}, Paths: []string{"image.tag"}}}}
	for _, roots := range [][]string{{"a", "b"}, {"c"}, {"../x"}} {
		if got, err := FindVersions(tree, Overlay{Roots: roots, Carry: carry}, nil); err == nil || got != nil {
			t.Errorf("%v: %+v", roots, got)
		}
	}
}
