//go:build e2e

package e2e

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion"
)

// builtSets are ApplicationSets that something builds, and how another component comes to them.
type builtSets struct {
	entry     string            // of the pipeline's applicationSets
	source    string            // of the Application that installs them
	files     map[string]string // in argocd/, with placeholders
	sets      []string          // their names after the prefix, in the end
	file, add string            // what one of the files becomes, for the component cart to be there
}

// setOfComponents is the template of a set that elements of component and env are given.
const setOfComponents = `  template:
    metadata:
      name: 'PREFIX-{{ .component }}-{{ .env }}'
    spec:
      project: default
      source: {repoURL: REPO, targetRevision: main, path: 'apps/{{ .component }}/overlays/{{ .env }}'}
      destination: {server: https://kubernetes.default.svc, namespace: 'PREFIX-{{ .env }}'}
      syncPolicy: {automated: {prune: true}, syncOptions: [CreateNamespace=true]}
`

// A fleet's sets are what a chart, or an overlay, makes of them, here and in the cluster, where an
// Application installs them. A component that it begins to make is promoted as those are that were there.
func TestReleaseOfBuiltSets(t *testing.T) {
	t.Parallel()
	t.Run("Helm", runSetsOfChart)
	t.Run("Kustomize", runSetsOfOverlay)
}

func runSetsOfChart(t *testing.T) {
	t.Parallel()
	const set = `{{- range $component := .Values.components }}
---
apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: 'PREFIX-{{ $component }}', namespace: argocd}
spec:
  goTemplate: true
  generators:
    - list:
        elements:
          {{- range $.Values.environments }}
          - {component: {{ $component }}, env: {{ . }}}
          {{- end }}
`
	escaped := strings.NewReplacer("{{ .", "{{ \"{{ .", " }}", " }}\" }}").Replace(setOfComponents)
	runReleaseOfBuiltSets(t, "chart", builtSets{
		entry:  "helm: {path: argocd/sets, valueFiles: [values-lab.yaml], values: {environments: [dev, qa, prod]}}",
		source: "{path: argocd/sets, helm: {valueFiles: [values-lab.yaml], valuesObject: {environments: [dev, qa, prod]}}}",
		files: map[string]string{
			"sets/Chart.yaml":          "apiVersion: v2\nname: sets\nversion: 0.1.0\n",
			"sets/values.yaml":         "components: []\nenvironments: []\n",
			"sets/values-lab.yaml":     "components: [web]\n",
			"sets/templates/sets.yaml": set + escaped + "{{- end }}\n",
		},
		sets: []string{"-web", "-cart"},
		file: "sets/values-lab.yaml", add: "components: [web, cart]\n",
	})
}

func runSetsOfOverlay(t *testing.T) {
	t.Parallel()
	const set = `apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: PREFIX, namespace: argocd}
spec:
  goTemplate: true
  generators:
    - matrix:
        generators:
          - list: {elements: []}
          - list: {elements: [{env: dev}, {env: qa}, {env: prod}]}
`
	const element = "      - {op: add, path: /spec/generators/0/matrix/generators/0/list/elements/-, value: {component: web}}\n"
	const overlay = `resources: [../../base]
nameSuffix: -lab
patches:
  - target: {kind: ApplicationSet}
    patch: |-
` + element
	runReleaseOfBuiltSets(t, "overlays", builtSets{
		entry:  "kustomize: argocd/overlays/lab",
		source: "{path: argocd/overlays/lab}",
		files: map[string]string{
			"base/shop.yaml":                  set + setOfComponents,
			"base/kustomization.yaml":         "resources: [shop.yaml]\n",
			"overlays/lab/kustomization.yaml": overlay,
		},
		sets: []string{"-lab"},
		file: "overlays/lab/kustomization.yaml", add: overlay + strings.ReplaceAll(element, "web", "cart"),
	})
}

func runReleaseOfBuiltSets(t *testing.T, name string, b builtSets) {
	pipeline := strings.NewReplacer("path: argocd/*.yaml", b.entry,
		"'{{ index .path.segments 1 }}'", "'{{ .component }}'", "'{{ .path.basename }}'", "'{{ .env }}'").Replace(pipelineFile)
	f := singleComponent()
	f.plain, f.sets = map[string]string{".liftlock.yaml": pipeline + "  environments:\n" + f.environments}, b.files
	s := newScenario(t, normalCluster, name, f)
	for _, set := range b.sets {
		s.sets = append(s.sets, s.prefix+set)
	}
	s.installSets(b.source)
	s.awaitSettled()
	s.startServer()
	s.pushRelease("web", "dev", "1.1.0")

	// The same push brings another component and its Applications.
	f.components = map[string][]string{"cart": {"cart"}}
	edits := map[string]edit{"argocd/" + b.file: func(string) string { return b.add }}
	for file, text := range f.renderFiles(s.prefix, s.clone.url) {
		if strings.HasPrefix(file, "apps/cart/") {
			edits[file] = func(string) string { return text }
		}
	}
	s.pushEdits(dev, "Add the cart", edits)
	for _, env := range []string{"dev", "qa", "prod"} {
		s.awaitWhy("cart", env, "has its target", func(e *api.EnvironmentWhy) error {
			if len(e.Targets) != 1 {
				return errors.New("it has none")
			}
			return nil
		})
	}
	s.awaitRunning("cart", "qa", firstTag)
	s.pushRelease("cart", "dev", "1.1.0")
	s.awaitInQA("web")
	s.awaitInQA("cart")
	s.runGit("fetch", "-q", "origin")
	if out, said, err := s.runProgram("resolve", "--rev", "origin/main", "--diff"); err != nil {
		t.Errorf("what is built isn't what runs: %v\n%s\n%s", err, out, said)
	}
}

// awaitInQA waits until qa runs a component's release, and it is offered to prod.
func (s *scenario) awaitInQA(component string) {
	s.Helper()
	qa := s.awaitMerged(component, "qa", "1.1.0", 0)
	s.checkOneEnvironment(qa, component, "qa", 1)
	s.awaitState(component, "qa", "1.1.0", promotion.Verified)
	s.awaitRunning(component, "qa", "1.1.0")
	s.awaitOpen(component, "prod", "1.1.0", 0)
}

// installSets has Argo CD install the story's ApplicationSets from the repository.
func (s *scenario) installSets(source string) {
	s.Helper()
	name := s.prefix + "-sets"
	manifest := `apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: ` + name + `, namespace: argocd}
spec:
  project: default
  source: ` + source + `
  destination: {server: https://kubernetes.default.svc, namespace: argocd}
  syncPolicy: {automated: {prune: true}}
`
	var u unstructured.Unstructured
	s.must(yaml.Unmarshal([]byte(manifest), &u.Object))
	s.must(unstructured.SetNestedField(u.Object, s.clone.url, "spec", "source", "repoURL"))
	s.must(unstructured.SetNestedField(u.Object, "main", "spec", "source", "targetRevision"))
	all := s.cluster.kube.Resource(applications).Namespace("argocd")
	_, err := all.Create(s.ctx, &u, metav1.CreateOptions{})
	s.must(err)
	s.Cleanup(func() { // before its ApplicationSets are removed
		ctx, cancel := cleanupContext()
		defer cancel()
		if err := all.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			s.Error(err)
		}
	})
}
