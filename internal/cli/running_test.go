package cli

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/world/argoemulator"
)

// noRepositories is all that this Argo CD can deploy from.
type noRepositories struct{}

func (noRepositories) CloneURL(repo string) string                    { return "https://git.example/" + repo }
func (noRepositories) Head(string, string) (string, error)            { return "", nil }
func (noRepositories) Tree(string, string) (map[string]string, error) { return nil, nil }
func (noRepositories) Blob(string, string) (string, error)            { return "", nil }

const runningSets = `apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: shop, namespace: argocd}
spec:
  generators: [{list: {elements: [{name: web}, {name: api}, {name: new}]}}]
  template:
    metadata: {name: '{{name}}'}
    spec:
      project: default
      source: {repoURL: https://git.example/acme/fleet, targetRevision: main, path: 'apps/{{name}}'}
      destination: {server: https://kubernetes.default.svc, namespace: shop}
---
apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: agents, namespace: argocd}
spec:
  generators: [{clusters: {selector: {matchLabels: {tier: prod}}}}]
  template:
    metadata: {name: 'agent-{{name}}'}
    spec:
      project: nowhere
      source: {repoURL: https://git.example/acme/fleet, targetRevision: main, path: agent}
      destination: {name: '{{name}}', namespace: agent}
`

// runningArgoCD is one with Applications of the set shop. The commands find it, and their checkout
// is in the folder that is returned.
func runningArgoCD(t *testing.T) (*argoemulator.ArgoCD, string) {
	t.Helper()
	a, err := argoemulator.New(argoemulator.Options{Repos: noRepositories{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	for _, app := range []argoemulator.AppSpec{
		{Name: "web", Path: "apps/web"}, {Name: "api", Path: "apps/api", Branch: "release"}, {Name: "old", Path: "apps/old"},
		{Name: "mine", Path: "apps/mine", ApplicationSet: "somebody's"},
	} {
		app.Repo, app.DestinationNamespace, app.Manual = "acme/fleet", "shop", true
		if app.ApplicationSet == "" {
			app.ApplicationSet = "shop"
		}
		if err := a.AddApplication(app); err != nil {
			t.Fatal(err)
		}
	}
	secret := map[string]any{
		"metadata": map[string]any{"name": "cluster-1", "namespace": "argocd", "labels": map[string]any{"argocd.argoproj.io/secret-type": "cluster", "tier": "prod"}},
		"data":     map[string]any{"name": "Yy0x", "server": "aHR0cHM6Ly9jLTEuZXhhbXBsZQ==", "config": "aHVudGVyMg=="},
	}
	if err := a.AddObject("secrets", secret); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := a.WriteKubeconfig(kubeconfig); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", kubeconfig)
	if out, err := exec.Command("git", "init", "--quiet", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := os.WriteFile(filepath.Join(dir, "sets.yaml"), []byte(runningSets), 0o600); err != nil {
		t.Fatal(err)
	}
	return a, dir
}

func exitCode(err error) int {
	var exit exitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.code
	}
	return 1
}

func TestResolveComparesWithLive(t *testing.T) {
	a, dir := runningArgoCD(t)
	out, err := run(t, "resolve", "--repo", dir, "--diff")
	for _, want := range []string{
		"missing    argocd/new", "extra      argocd/old", "different  argocd/api", "spec.source.targetRevision", "release → main",
		"sets.yaml: ApplicationSet agents: it generates from Argo CD's clusters", "Not compared, because they couldn't be resolved: agents",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("there is no %q in\n%s", want, out)
		}
	}
	if strings.Contains(out, "mine") || exitCode(err) != 1 {
		t.Errorf("exit code %d\n%s", exitCode(err), out)
	}

	// With the clusters everything is resolved; a project that isn't there is a problem.
	out, err = run(t, "resolve", "--repo", dir, "--diff", "--clusters", "live")
	if want := `Application agent-c-1: its project "nowhere" does not exist`; !strings.Contains(out, want) || exitCode(err) != 1 {
		t.Errorf("exit code %d, want %q in\n%s", exitCode(err), want, out)
	}
	if err := a.AddObject("appprojects", map[string]any{"metadata": map[string]any{"name": "nowhere", "namespace": "argocd"}}); err != nil {
		t.Fatal(err)
	}
	out, err = run(t, "resolve", "--repo", dir, "--diff", "--clusters", "live", "-o", "json")
	if exitCode(err) != exitDifferent || !strings.Contains(out, `"name": "agent-c-1"`) {
		t.Errorf("exit code %d\n%s", exitCode(err), out)
	}
	out, err = run(t, "resolve", "--repo", dir, "--clusters", "live")
	if exitCode(err) != 0 || !strings.Contains(out, "agent-c-1  c-1") || strings.Contains(out, "hunter2") {
		t.Errorf("exit code %d\n%s", exitCode(err), out)
	}
}

func TestResolveWhereArgoCDSaysNo(t *testing.T) {
	a, dir := runningArgoCD(t)
	a.FailRequests("GET", "appprojects", 1, 403)
	out, err := run(t, "resolve", "--repo", dir, "--clusters", "live")
	if exitCode(err) != 0 || !strings.Contains(out, "note: whether the Applications' projects exist is not checked: ") {
		t.Errorf("exit code %d\n%s", exitCode(err), out)
	}
	a.FailRequests("GET", "secrets", 1, 403)
	if out, err := run(t, "resolve", "--repo", dir, "--clusters", "live"); err == nil || !strings.Contains(err.Error(), "list cluster Secrets in namespace argocd") {
		t.Errorf("%v\n%s", err, out)
	}
	t.Setenv("KUBECONFIG", filepath.Join(dir, "missing"))
	if out, err := run(t, "resolve", "--repo", dir, "--diff"); err == nil {
		t.Errorf("without a kubeconfig:\n%s", out)
	}
}

func TestResolveOfALiveSet(t *testing.T) {
	a, dir := runningArgoCD(t)
	set := map[string]any{
		"metadata": map[string]any{"name": "elsewhere", "namespace": "argocd"},
		"spec": map[string]any{
			"generators": []any{map[string]any{"list": map[string]any{"elements": []any{map[string]any{"name": "one"}}}}},
			"template": map[string]any{
				"metadata": map[string]any{"name": "{{name}}"},
				"spec": map[string]any{
					"project": "default", "destination": map[string]any{"name": "in-cluster"},
					"source": map[string]any{"repoURL": "https://git.example/acme/fleet", "path": "x"},
				},
			},
		},
	}
	if err := a.AddObject("applicationsets", set); err != nil {
		t.Fatal(err)
	}
	pipeline := func(sources string) {
		text := "apiVersion: liftlock.dev/v1alpha1\nkind: Pipeline\nmetadata: {name: shop}\nspec:\n  applicationSets: [" + sources + "]\n" +
			"  component: '{{ .name }}'\n  environment: prod\n  carry: [{kustomizeImages: ['*']}]\n  environments: [{name: prod}]\n"
		if err := os.WriteFile(filepath.Join(dir, ".liftlock.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pipeline("{live: {argocd: hub, namespace: argocd, name: elsewhere}}")
	out, err := run(t, "resolve", "--repo", dir, "--clusters", "live")
	if exitCode(err) != 0 || !strings.Contains(out, "one   one        prod         hub") {
		t.Errorf("exit code %d\n%s", exitCode(err), out)
	}
	pipeline("{live: {argocd: hub, namespace: argocd, name: elsewhere}}, {live: {argocd: other, namespace: argocd, name: elsewhere}}")
	if out, err := run(t, "resolve", "--repo", dir, "--clusters", "live"); err == nil || !strings.Contains(err.Error(), "several Argo CDs (hub, other): say with --argocd") {
		t.Errorf("%v\n%s", err, out)
	}
	out, err = run(t, "resolve", "--repo", dir, "--clusters", "live", "--argocd", "hub")
	if exitCode(err) != 1 || !strings.Contains(out, "one   one        prod         hub") || !strings.Contains(out, "the connection is to hub") {
		t.Errorf("exit code %d\n%s", exitCode(err), out)
	}
}

// TestInitFromLiveSets proposes a pipeline where the sets that deploy a checkout are made elsewhere.
func TestInitFromLiveSets(t *testing.T) {
	a, dir := runningArgoCD(t)
	git := func(args ...string) {
		t.Helper()
		if out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	git("rm", "--quiet", "--force", "--ignore-unmatch", "sets.yaml")
	if err := os.Remove(filepath.Join(dir, "sets.yaml")); err != nil {
		t.Fatal(err)
	}
	git("remote", "add", "origin", "git@git.example:acme/fleet.git")
	for _, env := range []string{"dev", "qa"} {
		overlay := filepath.Join(dir, "apps", "web", "overlays", env)
		if err := os.MkdirAll(overlay, 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(overlay, "kustomization.yaml"), []byte("images: [{name: registry.example/web, newTag: '1'}]\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := run(t, "init", "--repo", dir); err == nil || !strings.Contains(err.Error(), "liftlock init --live takes those that run") {
		t.Errorf("without live sets: %v\n%s", err, out)
	}
	if out, err := run(t, "init", "--repo", dir, "--live"); err == nil || !strings.Contains(err.Error(), "looked for ApplicationSets in the running Argo CD's namespaces; there is none") {
		t.Errorf("without sets: %v\n%s", err, out)
	}
	addSet := func(name, repository string) {
		t.Helper()
		err := a.AddObject("applicationsets", map[string]any{
			"metadata": map[string]any{"name": name, "namespace": "argocd"},
			"spec": map[string]any{
				"goTemplate": true,
				"generators": []any{map[string]any{"list": map[string]any{"elements": []any{map[string]any{"env": "dev"}, map[string]any{"env": "qa"}}}}},
				"template": map[string]any{
					"metadata": map[string]any{"name": name + "-{{ .env }}", "labels": map[string]any{"component": "web"}},
					"spec": map[string]any{
						"project": "default", "destination": map[string]any{"name": "in-cluster", "namespace": "{{ .env }}"},
						"source": map[string]any{"repoURL": repository, "targetRevision": "HEAD", "path": "apps/web/overlays/{{ .env }}"},
					},
				},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	addSet("other", "https://git.example/acme/other")
	if out, err := run(t, "init", "--repo", dir, "--live"); err == nil || !strings.Contains(err.Error(), "no ApplicationSet that runs deploys from this repository (git@git.example:acme/fleet.git), of 1") {
		t.Errorf("with another repository's set: %v\n%s", err, out)
	}
	addSet("web", "https://git.example/acme/fleet")
	out, err := run(t, "init", "--repo", dir, "--live", "-o", "json")
	if exitCode(err) != 0 {
		t.Fatalf("%v\n%s", err, out)
	}
	var answer proposalAnswer
	if err := json.Unmarshal([]byte(out), &answer); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"from 1 ApplicationSet of the running Argo CD: 2 Applications, 1 component in 2\n", "    - live: {namespace: argocd, name: web}\n", "plan needs --clusters live", `kustomizeImages: ["registry.example/*"]`, "after: [dev]"} {
		if !strings.Contains(answer.Text, want) {
			t.Errorf("the proposal has no %q:\n%s", want, answer.Text)
		}
	}
	if answer.File != ".liftlock.yaml" || answer.Written || strings.Contains(out, `"name": "other"`) {
		t.Errorf("%s", out)
	}
	if out, err := run(t, "init", "--repo", dir, "--live", "--write"); exitCode(err) != 0 {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := run(t, "resolve", "--repo", dir, "--clusters", "live"); exitCode(err) != 0 || !strings.Contains(out, "web-qa   web        qa") {
		t.Errorf("with the file that was written: %v\n%s", err, out)
	}
}

// TestInitFromLiveSetsOfAllKinds holds that a set that couldn't be resolved is named with its cure.
// A set whose generator reads this checkout counts though it deploys a chart, and sets of one name
// in two namespaces are two.
func TestInitFromLiveSetsOfAllKinds(t *testing.T) {
	a, dir := runningArgoCD(t)
	if err := os.Remove(filepath.Join(dir, "sets.yaml")); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("git", "-C", dir, "remote", "add", "origin", "git@git.example:acme/fleet.git").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, env := range []string{"dev", "qa"} {
		if err := os.MkdirAll(filepath.Join(dir, "envs"), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "envs", env+".yaml"), []byte("env: "+env+"\nversion: 1.0.0\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	addSet := func(namespace, name string, generator map[string]any, source map[string]any) {
		t.Helper()
		err := a.AddObject("applicationsets", map[string]any{
			"metadata": map[string]any{"name": name, "namespace": namespace},
			"spec": map[string]any{
				"goTemplate": true, "generators": []any{generator},
				"template": map[string]any{
					"metadata": map[string]any{"name": name + "-{{ .env }}", "labels": map[string]any{"component": "web"}},
					"spec":     map[string]any{"project": "default", "destination": map[string]any{"name": "in-cluster", "namespace": "{{ .env }}"}, "source": source},
				},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	files := map[string]any{"git": map[string]any{"repoURL": "https://git.example/acme/fleet", "revision": "HEAD", "files": []any{map[string]any{"path": "envs/*.yaml"}}}}
	list := map[string]any{"list": map[string]any{"elements": []any{map[string]any{"env": "dev"}}}}
	chart := map[string]any{"repoURL": "https://charts.example", "chart": "web", "targetRevision": "{{ .version }}"}
	addSet("argocd", "web", files, chart)
	addSet("team", "web", list, map[string]any{"repoURL": "https://git.example/acme/other", "targetRevision": "HEAD", "path": "web"})
	addSet("argocd", "agents", map[string]any{"clusters": map[string]any{}}, map[string]any{"repoURL": "https://git.example/acme/fleet", "targetRevision": "HEAD", "path": "agent"})
	out, err := run(t, "init", "--repo", dir, "--live", "--namespace", "argocd,team", "-o", "json")
	if exitCode(err) != 0 {
		t.Fatalf("%v\n%s", err, out)
	}
	var answer proposalAnswer
	if err := json.Unmarshal([]byte(out), &answer); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"from 1 ApplicationSet of the running Argo CD: 2 Applications", "    - live: {namespace: argocd, name: web}\n", "# Left out, because they couldn't be resolved: argocd/agents.\n"} {
		if !strings.Contains(answer.Text, want) {
			t.Errorf("the proposal has no %q:\n%s", want, answer.Text)
		}
	}
	if strings.Contains(answer.Text, "namespace: team") {
		t.Errorf("another namespace's set is in the proposal:\n%s", answer.Text)
	}
	if !slices.ContainsFunc(answer.Notes, func(n appset.Problem) bool {
		return n.ApplicationSet == "argocd/agents" && strings.Contains(n.Message, "on the command line --clusters does")
	}) {
		t.Errorf("the notes don't say why agents is left out: %+v", answer.Notes)
	}
}
