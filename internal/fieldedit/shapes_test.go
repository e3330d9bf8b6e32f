package fieldedit

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/pipeline"
)

// The files of these tests are as charts, Argo CD, Codefresh and Harness have them.
const (
	chartDev = `apiVersion: v2
name: shop
version: 0.1.0
dependencies:
  - name: redis
    version: 20.1.0
    repository: https://charts.example.com
    alias: sessions
  - name: postgresql
    version: "15.5.38" # keep in step with the operator
    repository: https://charts.example.com
  - name: redis
    version: 19.6.4
    repository: https://charts.example.com
    alias: cache
`
	chartProd = `apiVersion: v2
name: shop
version: 0.1.0
dependencies:
- {name: redis, alias: cache, version: 19.0.0, repository: https://charts.example.com}
- name: postgresql
  repository: https://charts.example.com
  version: "15.0.0"
- name: redis
  alias: sessions
  repository: https://charts.example.com
  version: 19.0.0
`
	applications = `apiVersion: argoproj.io/v1alpha1
kind: Application
metadata:
  name: web
spec:
  source:
    repoURL: https://charts.example.com
    chart: web
    targetRevision: 1.4.2
    helm:
      parameters:
        - name: image.tag
          value: v9
        - name: image.pullPolicy
          value: Always
---
# the database
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata:
  name: db
spec:
  sources:
    - repoURL: https://charts.example.com
      chart: postgresql
      targetRevision: 15.5.38
    - repoURL: https://git.example.com/fleet.git
      targetRevision: main
      ref: values
`
	applicationSet = `apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: shop}
spec:
  generators:
    - list:
        elements:
          - cluster: eu
            url: https://eu.example.com
            chart: {revision: 1.2.3}
          - cluster: us
            url: https://us.example.com
            chart: {revision: 1.2.3}
  template:
    metadata: {name: 'shop-{{.cluster}}'}
    spec:
      source: {repoURL: https://charts.example.com, chart: shop, targetRevision: '{{.chart.revision}}'}
`
	codefreshConfig = `{
  "appName": "web",
  "userGivenName": "web-dev",
  "srcPath": "resources/web/overlays/dev",
  "sources": [
    {"name": "chart", "targetRevision": "1.4.2"},
    {"name": "values", "targetRevision": "main"}
  ],
  "labels": {"release.tag": "v9"}
}
`
	harnessConfig = `{
  "env": "dev",
  "cluster": "eu-1",
  "image": {"repository": "registry.example/web", "tag": "1.4.2"},
  "replicas": 2,
  "enabled": true
}
`
)

// TestShapes holds what patterns pick in the files that teams keep.
func TestShapes(t *testing.T) {
	commit := newTree(map[string]string{
		"c/Chart.yaml":          chartDev,
		"c/apps.yaml":           applications,
		"c/set.yaml":            applicationSet,
		"c/config.json":         codefreshConfig,
		"c/harness/config.json": harnessConfig,
		"c/values.yaml":         "web: {image: {tag: v1}}\nworker:\n  image: {tag: v2}\nglobal: {x: 1}\nargs: [a, b]\nempty: {}\n",
		"c/list.yaml":           "apiVersion: v1\nkind: List\nitems:\n- metadata: {name: a}\n  data: {v: 1}\n- metadata: {name: b}\n  data: {v: 2}\n",
		"c/root.yaml":           "- {env: dev, tag: v1}\n- {env: qa, tag: v0}\n",
		"c/aliased.yaml":        "x: &x {tag: v1}\nl: [*x, {tag: v2, name: b}]\n",
		"c/bomb.yaml":           "a: &a {x: 1, y: 1, z: 1, w: 1, v: 1, u: 1, t: 1, s: 1}\nb: &b {x: *a, y: *a, z: *a, w: *a, v: *a, u: *a}\nc: &c {x: *b, y: *b, z: *b, w: *b, v: *b}\nd: &d {x: *c, y: *c, z: *c, w: *c}\ne: &e {x: *d, y: *d, z: *d}\n",
		"c/nameless.yaml":       "l:\n- {tag: v1}\n",
		"c/twins.yaml":          "l:\n- {name: a, tag: v1}\n- {name: a, tag: v2}\n",
		"c/merged.yaml":         "b: &b {name: x}\nl:\n- {<<: *b, tag: v1}\n",
		"c/many.yaml":           "l: [" + strings.Repeat("1, ", maxPicked+1) + "]\n",
	})
	tests := []struct {
		file, path string
		want       []string // path = value
		err        string
	}{
		{"Chart.yaml", "dependencies[*].version", []string{"dependencies[alias=sessions].version = 20.1.0", "dependencies[name=postgresql].version = 15.5.38", "dependencies[alias=cache].version = 19.6.4"}, ""},
		{"Chart.yaml", "dependencies[name=postgresql].version", []string{"dependencies[name=postgresql].version = 15.5.38"}, ""},
		{"Chart.yaml", "dependencies[name=redis].version", nil, "c/Chart.yaml:12: dependencies[name=redis].version: two items have name=redis"},
		{"Chart.yaml", "dependencies[name=*].version", nil, "two items of the list are [name=redis] (the other is on line 5)"},
		{"Chart.yaml", "dependencies[alias=*].version", nil, "c/Chart.yaml:9: dependencies[alias=*].version: the item has no alias"},
		{"apps.yaml", "[metadata.name=*].spec.source.targetRevision", []string{"[metadata.name=web].spec.source.targetRevision = 1.4.2"}, ""},
		{"apps.yaml", "[metadata.name=web].spec.source.helm.parameters[name=image.tag].value", []string{"[metadata.name=web].spec.source.helm.parameters[name=image.tag].value = v9"}, ""},
		{"apps.yaml", "spec.source.helm.parameters[*].value", []string{"spec.source.helm.parameters[name=image.tag].value = v9", "spec.source.helm.parameters[name=image.pullPolicy].value = Always"}, ""},
		{"apps.yaml", "[1].spec.sources[*].targetRevision", []string{"[1].spec.sources[chart=postgresql].targetRevision = 15.5.38", "[1].spec.sources[ref=values].targetRevision = main"}, ""},
		{"apps.yaml", "spec.sources[chart=postgresql].targetRevision", []string{"spec.sources[chart=postgresql].targetRevision = 15.5.38"}, ""},
		{"apps.yaml", "kind", nil, "name the document, as in [metadata.name=web].kind"},
		{"apps.yaml", "[kind=Application].metadata.name", nil, "two items have kind=Application"},
		{"apps.yaml", "[metadata.name=api].kind", nil, ""},
		{"set.yaml", "spec.generators[0].list.elements[*].chart.revision", []string{"spec.generators[0].list.elements[cluster=eu].chart.revision = 1.2.3", "spec.generators[0].list.elements[cluster=us].chart.revision = 1.2.3"}, ""},
		{"set.yaml", "spec.generators[0].list.elements[cluster=us].url", []string{"spec.generators[0].list.elements[cluster=us].url = https://us.example.com"}, ""},
		{"set.yaml", "[0].spec.template.spec.source.chart", []string{"[0].spec.template.spec.source.chart = shop"}, ""},
		{"config.json", "$.sources[?(@.name=='chart')].targetRevision", []string{"sources[name=chart].targetRevision = 1.4.2"}, ""},
		{"config.json", "$.sources[*].targetRevision", []string{"sources[name=chart].targetRevision = 1.4.2", "sources[name=values].targetRevision = main"}, ""},
		{"config.json", "$.labels['release.tag']", []string{`labels["release.tag"] = v9`}, ""},
		{"config.json", "/labels/release.tag", []string{"/labels/release.tag = v9"}, ""},
		{"harness/config.json", "image.tag", []string{"image.tag = 1.4.2"}, ""},
		{"harness/config.json", "*", nil, "image: it is a mapping, not a single value"},
		{"values.yaml", "*.image.tag", []string{"web.image.tag = v1", "worker.image.tag = v2"}, ""},
		{"values.yaml", "args[*]", []string{"args[0] = a", "args[1] = b"}, ""},
		{"values.yaml", "nothing.*.tag", nil, ""},
		{"values.yaml", "global[name=*].tag", nil, ""},
		{"list.yaml", "items[*].data.v", []string{"items[metadata.name=a].data.v = 1", "items[metadata.name=b].data.v = 2"}, ""},
		{"list.yaml", "items[*].metadata.name", nil, "the item has no name by which a wildcard could tell it apart"},
		{"root.yaml", "[env=*].tag", []string{"[env=dev].tag = v1", "[env=qa].tag = v0"}, ""},
		{"root.yaml", "[env=qa].tag", []string{"[env=qa].tag = v0"}, ""},
		{"aliased.yaml", "l[*].tag", nil, "the item has no name"},
		{"bomb.yaml", "*.*.*.*.*.*", nil, "more than"},
		{"nameless.yaml", "l[*].tag", nil, "c/nameless.yaml:2: l[*].tag: the item has no name"},
		{"nameless.yaml", "l[tag=*].tag", nil, "the item has no tag to tell it apart"},
		{"twins.yaml", "l[*].tag", nil, "can't tell them apart"},
		{"merged.yaml", "l[*].tag", nil, "merge key"},
		{"many.yaml", "l[*]", nil, "more than 2000 values"},
	}
	for _, tt := range tests {
		t.Run(tt.file+" "+tt.path, func(t *testing.T) {
			pick := &pipeline.FieldPick{Files: []string{tt.file}, Paths: []string{tt.path}}
			c := pipeline.Carry{YAML: pick}
			if strings.HasSuffix(tt.file, ".json") {
				c = pipeline.Carry{JSON: pick}
			}
			found, err := Locate(commit, Overlay{Roots: []string{"c"}, Carry: []pipeline.Carry{c}})
			if tt.err != "" {
				var r *RefusedError
				if !errors.As(err, &r) || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("got %v, %v", found, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, l := range found {
				got = append(got, l.Field.Path+" = "+l.Field.Value)
				if b, err := (Overlay{Carry: []pipeline.Carry{c}}).resolvePlaceholders(); err != nil || b.entryOf(l.Field) == nil {
					t.Errorf("%s isn't seen as picked by %s", l.Field.Path, tt.path)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestWildcardCarriesByIdentity holds that a list in another order, in another
// style, gets the versions of the items with the same names.
func TestWildcardCarriesByIdentity(t *testing.T) {
	commit := newTree(map[string]string{"dev/Chart.yaml": chartDev, "prod/Chart.yaml": chartProd})
	carry := []pipeline.Carry{{YAML: &pipeline.FieldPick{Files: []string{"Chart.yaml"}, Paths: []string{"dependencies[*].version"}}}}
	want := mustRead(t, commit, carry, "dev")
	edits, err := Compose(commit, Overlay{Roots: []string{"prod"}, Carry: carry}, want, nil)
	if err != nil {
		t.Fatal(err)
	}
	expect := strings.NewReplacer("alias: cache, version: 19.0.0", "alias: cache, version: 19.6.4", `"15.0.0"`, `"15.5.38"`, "  version: 19.0.0\n", "  version: 20.1.0\n").Replace(chartProd)
	if diff := cmp.Diff(expect, string(edits[0].After)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got := mustRead(t, applyToMap(commit, edits), carry, "prod"); got.ID() != want.ID() {
		t.Errorf("carries %v instead of %v", got, want)
	}
	less := newTree(map[string]string{"prod/Chart.yaml": strings.Replace(chartProd, "postgresql", "mysql", 1)})
	var extra *ExtraError
	if _, err := Compose(less, Overlay{Roots: []string{"prod"}, Carry: carry}, want, nil); !errors.As(err, &extra) || !strings.Contains(err.Error(), "dependencies[name=mysql].version") {
		t.Errorf("another dependency: %v", err)
	}
}
