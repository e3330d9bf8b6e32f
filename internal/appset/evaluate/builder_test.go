package evaluate

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/manifest/render"
	"github.com/liftlock/liftlock/internal/pipeline"
)

// builtShop is the shop with its set in a base, which an overlay calls otherwise and a patch adds an
// annotation to.
func builtShop() fstest.MapFS {
	tree := shop()
	tree["argocd/base/shop.yaml"] = tree["argocd/shop.yaml"]
	delete(tree, "argocd/shop.yaml")
	for name, text := range map[string]string{
		"argocd/base/kustomization.yaml": "resources: [shop.yaml]\n",
		"argocd/hub/kustomization.yaml":  "resources: [../base]\nnameSuffix: -hub\npatches: [{path: patch.yaml}]\n",
		"argocd/hub/patch.yaml":          "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: shop, namespace: argocd, annotations: {team: web}}\n",
		"argocd/none/kustomization.yaml": "configMapGenerator: [{name: a, literals: [a=b]}]\n",
		"argocd/away/kustomization.yaml": "resources: ['https://git.example/acme/base//argocd?ref=v1']\n",
	} {
		tree[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return tree
}

func builtInput(t testing.TB, folder string) Input {
	in := shopInput(t)
	in.Build = BuildInProcess()
	in.Pipelines[0].Spec.ApplicationSets = []pipeline.ApplicationSetSource{{Kustomize: folder}}
	return in
}

// TestSetsThatKustomizeBuilds gives the same targets here and in a worker, which know what they are made of.
func TestSetsThatKustomizeBuilds(t *testing.T) {
	f := bothWays(t, builtShop(), builtInput(t, "argocd/hub")).Pipelines["shop"].TargetSet
	if len(f.Problems) > 0 || len(f.Targets) != 4 {
		t.Fatalf("%d targets, %v", len(f.Targets), f.Problems)
	}
	made := []string{"argocd/base/kustomization.yaml", "argocd/base/shop.yaml", "argocd/hub/kustomization.yaml", "argocd/hub/patch.yaml"}
	for _, target := range f.Targets {
		if target.ApplicationSet != "shop-hub" || target.ApplicationSetFile != "argocd/hub/kustomization.yaml" || !slices.Equal(target.SetFiles, made) {
			t.Errorf("%s is of %s in %s, made of %v", target.Name, target.ApplicationSet, target.ApplicationSetFile, target.SetFiles)
		}
	}
	for _, file := range made {
		if !f.Targets[0].IsGeneratedFrom(file) {
			t.Errorf("it doesn't depend on %s", file)
		}
	}
}

// TestSetsThatCantBeBuilt says of an entry why it has no sets, without guessing any.
func TestSetsThatCantBeBuilt(t *testing.T) {
	for _, c := range []struct{ folder, want string }{
		{"argocd/none", `applicationSets[0].kustomize "argocd/none": no ApplicationSet is among the 1 object that are built of it`},
		{"argocd/away", "https://git.example/acme/base"},
		{"argocd/gone", "the source's path is no folder"},
		{"apps/web", "kustomization"},
	} {
		f := bothWays(t, builtShop(), builtInput(t, c.folder)).Pipelines["shop"].TargetSet
		if len(f.Targets) > 0 || len(f.Problems) != 1 || f.Problems[0].File != ".liftlock.yaml" || !strings.Contains(f.Problems[0].Message, c.want) {
			t.Errorf("%s: %d targets, %v", c.folder, len(f.Targets), f.Problems)
		}
	}
	in := builtInput(t, "argocd/hub")
	in.Build = nil
	f, err := InProcess(t.Context(), appset.New(appset.Options{}), builtShop(), in)
	if problems := f.Pipelines["shop"].TargetSet.Problems; err != nil || len(problems) != 1 || !strings.Contains(problems[0].Message, "nothing is built here") {
		t.Errorf("without a builder: %v, %v", problems, err)
	}
}

// failingRenderer fails as often as it is to, then builds.
type failingRenderer struct{ failures int }

func (f *failingRenderer) RenderAll(ctx context.Context, jobs []render.Job) ([]render.Outcome, error) {
	if f.failures--; f.failures >= 0 {
		return nil, errors.New("no worker can be started")
	}
	return render.InProcess{}.RenderAll(ctx, jobs)
}

// tellable is a tree that tells itself from others.
type tellable struct{ fstest.MapFS }

func (tellable) Identity(name string) (string, error) { return name, nil }

// TestBuildAgain keeps no answer that was given because nothing could be built just then.
func TestBuildAgain(t *testing.T) {
	resolver, by := appset.New(appset.Options{}), &failingRenderer{failures: 1}
	in := builtInput(t, "argocd/hub")
	in.Revision, in.Build = strings.Repeat("a", 40), NewManifestBuilder(by)
	for _, want := range []int{0, 4, 4} {
		w, err := InProcess(t.Context(), resolver, tellable{builtShop()}, in)
		if err != nil {
			t.Fatal(err)
		}
		f := w.Pipelines["shop"].TargetSet
		if len(f.Targets) != want || (f.RefreshAfter > 0) != (want == 0) || (len(f.Problems) > 0) != (want == 0) {
			t.Errorf("%d targets, %v, again after %s; want %d", len(f.Targets), f.Problems, f.RefreshAfter, want)
		}
	}
	if built := -by.failures; built != 1 {
		t.Errorf("it was built %d times, and once was enough", built)
	}
}

// chartShop is the shop with its set in a chart, which has an element for each of a values file's environments.
func chartShop() fstest.MapFS {
	tree := shop()
	delete(tree, "argocd/shop.yaml")
	for name, text := range map[string]string{
		"charts/sets/Chart.yaml":       "apiVersion: v2\nname: sets\nversion: 1.0.0\n",
		"charts/sets/values.yaml":      "project: default\nenvironments: []\n",
		"charts/sets/values-prod.yaml": "environments: [dev]\n",
		"argocd/hub.yaml":              "environments: [dev, prod]\n",
		"charts/sets/templates/shop.yaml": `apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: {{ .Release.Name }}, namespace: {{ .Release.Namespace }}}
spec:
  goTemplate: true
  generators:
    - list:
        elements:
          {{- range .Values.environments }}
          - {path: {segments: [apps, web], basename: {{ . }}}}
          {{- end }}
  template:
    metadata: {name: 'web-{{ "{{ .path.basename }}" }}'}
    spec:
      project: {{ .Values.project }}
      source: {repoURL: https://git.example/acme/fleet.git, targetRevision: HEAD, path: 'apps/web/overlays/{{ "{{ .path.basename }}" }}'}
      destination: {server: https://kubernetes.default.svc, namespace: web}
`} {
		tree[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return tree
}

// TestSetsThatHelmBuilds gives what a chart makes of its values, here and in a worker.
func TestSetsThatHelmBuilds(t *testing.T) {
	for _, c := range []struct {
		name, entry   string
		set, project  string
		targets       int
		problem, made string
	}{
		{"values files", "{path: charts/sets, valueFiles: [values-prod.yaml, /argocd/hub.yaml]}", "sets", "default", 2, "", "argocd/hub.yaml"},
		{"the later file counts", "{path: charts/sets, valueFiles: [/argocd/hub.yaml, values-prod.yaml]}", "sets", "default", 1, "", "charts/sets/values-prod.yaml"},
		{"values over them", "{path: charts/sets, releaseName: hub, valueFiles: [values-prod.yaml], values: {project: shop, environments: [prod, dev]}}", "hub", "shop", 2, "", "charts/sets/templates/shop.yaml"},
		{"no such file", "{path: charts/sets, valueFiles: [values-qa.yaml]}", "", "", 0, "values-qa.yaml", ""},
		{"no chart", "{path: apps/web}", "", "", 0, `applicationSets[0].helm.path "apps/web"`, ""},
	} {
		in := shopInput(t)
		all, err := pipeline.Parse(".liftlock.yaml", []byte(strings.Replace(shopText, "{path: argocd/*.yaml}", "{helm: "+c.entry+"}", 1)))
		if err != nil {
			t.Fatal(err)
		}
		in.Pipelines, in.Build = all, BuildInProcess()
		f := bothWays(t, chartShop(), in).Pipelines["shop"].TargetSet
		if len(f.Targets) != c.targets || (len(f.Problems) > 0) != (c.problem != "") || c.problem != "" && !strings.Contains(f.Problems[0].Message, c.problem) {
			t.Errorf("%s: %d targets, %v", c.name, len(f.Targets), f.Problems)
		}
		for _, target := range f.Targets {
			if target.ApplicationSet != c.set || target.Project != c.project || target.ApplicationSetFile != "charts/sets/Chart.yaml" || !target.IsGeneratedFrom(c.made) {
				t.Errorf("%s: %s of %s in project %s, made of %v", c.name, target.Name, target.ApplicationSet, target.Project, target.SetFiles)
			}
		}
	}
}
