package server_test

import (
	"cmp"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/liftlock/liftlock/internal/world/emulator"
)

func overlayPath(component, env string) string { return "apps/" + component + "/overlays/" + env }

// environmentNames are those of the scene's pipeline file, in its order.
func (ha *harness) environmentNames() []string {
	var out []string
	for line := range strings.Lines(ha.opts.pipeline) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "- name: "); ok {
			out = append(out, name)
		}
	}
	return out
}

// repositoryFiles are the repository's first commit.
func (ha *harness) repositoryFiles() map[string]string {
	if ha.opts.branches != nil {
		return ha.branchFiles("main")
	}
	out := map[string]string{
		"argocd/shop.yaml": strings.NewReplacer("REPO", ha.Forge.URL()+"/"+repoName+".git", inCluster, cmp.Or(ha.opts.destination, inCluster)).Replace(applicationSetTemplate),
		".liftlock.yaml":   ha.opts.pipeline,
	}
	if ha.opts.plugin != "" {
		const folder = "        path: '{{ .path.path }}'\n"
		out["argocd/shop.yaml"] = strings.Replace(out["argocd/shop.yaml"], folder, folder+"        plugin: {name: "+ha.opts.plugin+"}\n", 1)
	}
	ha.addComponentFiles(out, ha.opts.components)
	if ha.opts.onboard {
		delete(out, ".liftlock.yaml")
	}
	for name, text := range ha.opts.files {
		out[name] = text
	}
	return out
}

// pluginOptions are the options of a source that a plugin renders; nil without one.
func pluginOptions(name string) map[string]any {
	if name == "" {
		return nil
	}
	return map[string]any{"plugin": map[string]any{"name": name}}
}

// addComponentFiles adds the bases and overlays of components.
func (ha *harness) addComponentFiles(files map[string]string, components []string) {
	for _, c := range components {
		files["apps/"+c+"/base/kustomization.yaml"] = "resources:\n  - deployment.yaml\n"
		files["apps/"+c+"/base/deployment.yaml"] = strings.ReplaceAll(deploymentTemplate, "NAME", c)
		for _, env := range ha.environmentNames() {
			files[overlayPath(c, env)+"/kustomization.yaml"] = strings.NewReplacer("NAME", c, "TAG", ha.opts.tag(c, env)).Replace(kustomizationTemplate)
		}
	}
}

// inCluster is the server of the cluster that an Argo CD runs in.
const inCluster = "https://kubernetes.default.svc"

const applicationSetTemplate = `apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata:
  name: shop
  namespace: argocd
spec:
  goTemplate: true
  goTemplateOptions: ["missingkey=error"]
  generators:
    - git:
        repoURL: REPO
        revision: main
        directories:
          - path: apps/*/overlays/*
  template:
    metadata:
      name: '{{ index .path.segments 1 }}-{{ .path.basename }}'
    spec:
      project: default
      source:
        repoURL: REPO
        targetRevision: main
        path: '{{ .path.path }}'
      destination:
        server: https://kubernetes.default.svc
        namespace: '{{ index .path.segments 1 }}-{{ .path.basename }}'
      syncPolicy:
        automated: {}
`

const deploymentTemplate = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: NAME
spec:
  selector:
    matchLabels: {app: NAME}
  template:
    metadata:
      labels: {app: NAME}
    spec:
      containers:
        - name: NAME
          image: registry.example/NAME
`

const kustomizationTemplate = `resources:
  - ../../base
images:
  - name: registry.example/NAME
    newTag: TAG
`

// pipelineYAML is a pipeline file; spec's lines go before the environments, each
// environment is the lines of one entry. Without environments: dev, qa, which
// merges by itself, and prod, which needs the approvals of ada and grace.
func pipelineYAML(spec []string, environments ...string) string {
	if len(environments) == 0 {
		environments = []string{dev, qa, prod}
	}
	var b strings.Builder
	b.WriteString(`apiVersion: liftlock.dev/v1alpha1
kind: Pipeline
metadata:
  name: shop
spec:
  applicationSets:
    - path: argocd/*.yaml
  component: '{{ index .path.segments 1 }}'
  environment: '{{ .path.basename }}'
  carry:
    - kustomizeImages: ["registry.example/*"]
`)
	for _, line := range spec {
		b.WriteString("  " + line + "\n")
	}
	b.WriteString("  environments:\n")
	for _, env := range environments {
		for i, line := range strings.Split(env, "\n") {
			indent := "      "
			if i == 0 {
				indent = "    - "
			}
			b.WriteString(indent + line + "\n")
		}
	}
	return b.String()
}

const (
	dev  = "name: dev\nverify: " + verifyFast
	qa   = "name: qa\nafter: [dev]\nmerge: auto\nonDegraded: revert-and-merge\nverify: " + verifyFast
	prod = "name: prod\nafter: [qa]\nmerge: auto\ngates:\n  - approvals: {count: 2, from: {users: [ada, grace]}}\nverify: " + verifyFast
)

// freeAddress finds a port for a server whose address must be known before it runs.
func freeAddress(t testing.TB) string {
	t.Helper()
	address, err := emulator.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// steppedClock stands still until it is stepped. It starts now: what the forge asks
// for in seconds is counted from the real time. Unlike the fake clock it is made
// of, a timer that is due at once fires at once.
type steppedClock struct{ *clocktesting.FakeClock }

func newSteppedClock() *steppedClock {
	return &steppedClock{clocktesting.NewFakeClock(time.Now().UTC().Truncate(time.Second))}
}

// NewTimer implements clock.Clock.
func (s *steppedClock) NewTimer(d time.Duration) clock.Timer {
	if d > 0 {
		return s.FakeClock.NewTimer(d)
	}
	return clock.RealClock{}.NewTimer(0)
}
