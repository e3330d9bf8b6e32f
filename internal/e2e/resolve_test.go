//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// everyShape are ApplicationSets of every kind that needs nothing but a
// repository and clusters, in both template languages.
var everyShape = map[string]string{
	"list.yaml": `
  generators:
    - list:
        elements:
          - {env: dev, replicas: "1"}
          - {env: qa, replicas: "2"}
  template:
    metadata:
      name: 'PREFIX-list-{{env}}'
      labels: {replicas: '{{replicas}}'}
      annotations: {literal: '{{nothing}}'}
    spec:
      project: default
      source: {repoURL: REPO, targetRevision: main, path: 'apps/web/overlays/{{env}}'}
      destination: {server: https://kubernetes.default.svc, namespace: 'PREFIX-{{env}}'}
`,
	"clusters.yaml": `
  goTemplate: true
  goTemplateOptions: ["missingkey=error"]
  generators:
    - clusters:
        selector: {matchExpressions: [{key: run, operator: In, values: [PREFIX]}]}
        values: {tier: '{{ .metadata.labels.tier }}', short: '{{ .name | trunc 20 }}'}
  template:
    metadata:
      name: 'PREFIX-clusters-{{ .nameNormalized }}'
      annotations: {tier: '{{ .values.tier }}', short: '{{ .values.short }}'}
    spec:
      project: default
      source: {repoURL: REPO, targetRevision: main, path: apps/web/overlays/dev}
      destination: {name: '{{ .name }}', namespace: shop}
`,
	"directories.yaml": `
  generators:
    - git:
        repoURL: REPO
        revision: HEAD
        requeueAfterSeconds: 5
        directories: [{path: apps/*/overlays/*}, {path: apps/*/overlays/prod, exclude: true}]
        pathParamPrefix: app
        values: {kind: 'dir-{{app.path.basename}}'}
  template:
    metadata:
      name: 'PREFIX-dirs-{{app.path[1]}}-{{app.path.basenameNormalized}}'
      labels: {kind: '{{values.kind}}'}
    spec:
      project: default
      source: {repoURL: REPO, targetRevision: main, path: '{{app.path}}'}
      destination: {server: https://kubernetes.default.svc, namespace: default}
`,
	"files.yaml": `
  goTemplate: true
  generators:
    - git:
        repoURL: REPO
        revision: main
        requeueAfterSeconds: 5
        files: [{path: config/*.json}]
      selector: {matchExpressions: [{key: tier, operator: NotIn, values: ["off"]}]}
  template:
    metadata: {name: 'PREFIX-files-{{ .path.filename | trimSuffix ".json" }}'}
    spec:
      project: default
      source:
        repoURL: REPO
        targetRevision: '{{ dig "revision" "main" . }}'
        path: apps/web/overlays/dev
        kustomize: {images: ['registry.example/web:{{ .tag }}'], commonLabels: {path: '{{ index .path.segments 0 }}'}}
      destination: {server: https://kubernetes.default.svc, namespace: default}
  templatePatch: |
    metadata:
      labels:
        {{- range $k, $v := .labels }}
        {{ $k }}: {{ $v | quote }}
        {{- end }}
    {{- if .manual }}
    spec:
      syncPolicy: {automated: null, syncOptions: [Validate=false]}
    {{- end }}
`,
	"matrix.yaml": `
  goTemplate: true
  goTemplateOptions: ["missingkey=error"]
  generators:
    - matrix:
        generators:
          - git:
              repoURL: REPO
              revision: main
              requeueAfterSeconds: 5
              files: [{path: config/*.json}]
          - clusters:
              selector: {matchLabels: {run: PREFIX, tier: '{{ .tier }}'}}
              values: {from: '{{ .path.basename }}'}
  template:
    metadata:
      name: 'PREFIX-matrix-{{ .path.filenameNormalized | trunc 8 | trimSuffix "." }}-{{ .nameNormalized }}'
      labels: {from: '{{ .values.from }}'}
    spec:
      project: default
      source: {repoURL: REPO, targetRevision: main, path: apps/web/overlays/dev}
      destination: {name: '{{ .name }}', namespace: default}
`,
	"merge.yaml": `
  generators:
    - merge:
        mergeKeys: [env]
        generators:
          - list:
              elements:
                - {env: dev, sync: auto, tag: "1"}
                - {env: qa, sync: auto, tag: "1"}
          - list:
              elements: [{env: qa, tag: "2"}]
  template:
    metadata: {name: 'PREFIX-merge-{{env}}-{{tag}}', labels: {sync: '{{sync}}'}}
    spec:
      project: default
      sources:
        - {repoURL: REPO, targetRevision: main, path: 'apps/web/overlays/{{env}}'}
        - {repoURL: REPO, targetRevision: main, ref: values}
      destination: {server: https://kubernetes.default.svc, namespace: default}
`,
	"dropped.yaml": `
  generators:
    - list:
        elements: [{which: one, project: default, to: in-cluster}, {which: two, project: none-such, to: in-cluster}, {which: three, project: default, to: nowhere}]
  template:
    metadata: {name: 'PREFIX-dropped-{{which}}'}
    spec:
      project: '{{project}}'
      source: {repoURL: REPO, targetRevision: main, path: apps/web/overlays/dev}
      destination: {name: '{{to}}', namespace: default}
`,
}

var secrets = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

// `liftlock resolve` gives the same of a checkout as the running controller made of the same
// ApplicationSets and clusters.
func TestResolveEqualsTheController(t *testing.T) {
	t.Parallel()
	f := singleComponent()
	f.sets = map[string]string{}
	for name, spec := range everyShape {
		f.sets[name] = "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: PREFIX-" + strings.TrimSuffix(name, ".yaml") + ", namespace: argocd}\nspec:" + spec
	}
	s := newScenario(t, normalCluster, "resolve", f)
	_, err := s.clone.push(s.ctx, s.cluster.accounts[dev], "main", "main", "Configuration that generators read", map[string]edit{
		"config/eu.json": func(string) string {
			return `{"tier": "gold", "tag": "1.0.0", "labels": {"a": "b", "b": "1"}, "manual": false}`
		},
		"config/us.json": func(string) string {
			return `{"tier": "tin", "tag": "1.20", "labels": {}, "manual": true, "revision": "HEAD"}`
		},
		// Ownership is not tested here.
		".liftlock.yaml": func(old string) string {
			return strings.NewReplacer("'{{ index .path.segments 1 }}'", "web", "'{{ .path.basename }}'", "dev").Replace(old)
		},
		"config/off.json": func(string) string { return `{"tier": "off", "tag": "1", "labels": {}, "manual": false}` },
	})
	s.must(err)
	clusters := s.addClusters("gold", "tin")
	s.applySets(f, nil)
	s.sets = nil
	for name := range everyShape {
		s.sets = append(s.sets, s.prefix+"-"+strings.TrimSuffix(name, ".yaml"))
	}

	shapes := maps.Clone(everyShape)
	want, code := s.runResolve(shapes, "--clusters", "live", "--kubeconfig", s.cluster.kubeconfig)
	if code != 1 {
		t.Errorf("resolve ended with %d; two Applications are dropped, which scripts must see", code)
	}
	// Without a connection the missing project can't be known; the rest can.
	byFile, _ := s.runResolve(shapes, "--clusters", clusters)
	delete(byFile, s.prefix+"-dropped-two")
	if d := cmp.Diff(want, byFile); d != "" {
		t.Errorf("(-live clusters +file):\n%s", d)
	}
	eventually(s, "the controller's Applications are those that resolve says", func() (bool, error) {
		list, err := s.cluster.kube.Resource(applications).Namespace("argocd").List(s.ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		got := map[string]any{}
		s.apps = nil
		for i := range list.Items {
			for _, o := range list.Items[i].GetOwnerReferences() {
				if slices.Contains(s.sets, o.Name) {
					s.apps = append(s.apps, list.Items[i].GetName())
					got[list.Items[i].GetName()] = generatedFields(&list.Items[i])
				}
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			return false, errors.New("(-resolve +controller):\n" + d)
		}
		return true, nil
	})
	delete(shapes, "dropped.yaml") // its problems are not differences
	if _, code := s.runResolve(shapes, "--diff", "--clusters", "live", "--kubeconfig", s.cluster.kubeconfig); code != 0 {
		t.Errorf("resolve --diff ended with %d where nothing differs", code)
	}
	if len(want) != 13 {
		t.Errorf("%d Applications, wanted 13: %v", len(want), slices.Sorted(maps.Keys(want)))
	}
}

// addClusters makes a cluster of each tier known to Argo CD and writes them as
// `kubectl get secret -o yaml` prints them. Nothing answers at their addresses,
// which matters to nobody: nothing is synced.
func (s *scenario) addClusters(tiers ...string) (file string) {
	s.Helper()
	list := map[string]any{"apiVersion": "v1", "kind": "List"}
	var items []any
	for i, tier := range tiers {
		name := s.prefix + "-" + tier
		secret := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Secret",
			"metadata":   map[string]any{"name": name, "namespace": "argocd", "labels": map[string]any{"argocd.argoproj.io/secret-type": "cluster", "run": s.prefix, "tier": tier, "environment": []string{"prod", "staging"}[i%2]}},
			"stringData": map[string]any{"name": name, "server": "https://" + name + ".invalid", "config": `{"bearerToken": "not-a-token"}`},
		}}
		made, err := s.cluster.kube.Resource(secrets).Namespace("argocd").Create(s.ctx, secret, metav1.CreateOptions{})
		s.must(err)
		s.Cleanup(func() {
			ctx, cancel := cleanupContext()
			defer cancel()
			if err := s.cluster.kube.Resource(secrets).Namespace("argocd").Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
				s.Error(err)
			}
		})
		items = append(items, made.Object)
	}
	list["items"] = items
	raw, err := yaml.Marshal(list)
	s.must(err)
	file = filepath.Join(s.server.dir, "clusters.yaml")
	s.must(os.WriteFile(file, raw, 0o600))
	return file
}

// runResolve is what the command says of some sets of the story's clone, by name.
func (s *scenario) runResolve(shapes map[string]string, args ...string) (apps map[string]any, code int) {
	s.Helper()
	s.runGit("fetch", "-q", "origin")
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	all := []string{"resolve", "--repo", s.clone.dir, "--rev", "origin/main", "-o", "json"}
	for name := range shapes {
		all = append(all, "-f", filepath.Join(s.clone.dir, "argocd", name))
	}
	cmd := exec.CommandContext(ctx, program, append(all, args...)...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.Fatal(err)
	}
	s.Logf("resolve says: %s", stderr.String())
	var list struct {
		Items []unstructured.Unstructured `json:"items"`
	}
	if err := json.Unmarshal(out, &list); err != nil {
		s.Fatalf("resolve printed no list: %v\n%.2000s", err, out)
	}
	apps = map[string]any{}
	for i := range list.Items {
		apps[list.Items[i].GetName()] = generatedFields(&list.Items[i])
	}
	return apps, cmd.ProcessState.ExitCode()
}

// generatedFields is the part of an Application that its set decides.
func generatedFields(u *unstructured.Unstructured) map[string]any {
	return map[string]any{
		"name": fmt.Sprint(u.GetName()), "labels": u.GetLabels(), "annotations": u.GetAnnotations(), "finalizers": u.GetFinalizers(), "spec": u.Object["spec"],
	}
}
