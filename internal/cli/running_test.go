package cli

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/emulator"
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

// runningArgoCD is one with Applications of the set shop; the commands find it,
// and the checkout that they are to look at is in the folder that is returned.
func runningArgoCD(t *testing.T) (*emulator.ArgoCD, string) {
	t.Helper()
	a, err := emulator.NewArgoCD(emulator.ArgoCDOptions{Repos: noRepositories{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	for _, app := range []emulator.AppSpec{
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

func TestResolveComparesWithWhatRuns(t *testing.T) {
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
