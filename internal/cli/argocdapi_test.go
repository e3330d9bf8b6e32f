package cli

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/world/argoemulator"
)

// runningAPI is an Argo CD that is known by its own API alone: its address, and a file with
// its authority. There is no kubeconfig.
func runningAPI(t *testing.T) (a *argoemulator.ArgoCD, dir string, flags []string) {
	t.Helper()
	a, dir = runningArgoCD(t)
	t.Setenv("KUBECONFIG", filepath.Join(dir, "missing"))
	t.Setenv(argocdTokenVariable, a.APIToken())
	authority := filepath.Join(t.TempDir(), "ca.pem")
	if err := a.WriteAuthority(authority); err != nil {
		t.Fatal(err)
	}
	return a, dir, []string{"--argocd-url", a.APIURL(), "--argocd-ca-file", authority}
}

// TestResolveByArgoCDsAPI needs no access to a cluster: projects, clusters and what runs are
// Argo CD's own answers.
func TestResolveByArgoCDsAPI(t *testing.T) {
	a, dir, flags := runningAPI(t)
	out, err := run(t, append([]string{"resolve", "--repo", dir}, flags...)...)
	if want := `Application agent-c-1: its project "nowhere" does not exist`; exitCode(err) != 1 || !strings.Contains(out, want) || !strings.Contains(out, "apps/web") || strings.Contains(out, "hunter2") {
		t.Errorf("exit code %d, want %q in\n%s", exitCode(err), want, out)
	}
	out, err = run(t, append([]string{"resolve", "--repo", dir, "--diff"}, flags...)...)
	for _, want := range []string{"missing    argocd/new", "extra      argocd/old", "different  argocd/api", "release → main"} {
		if !strings.Contains(out, want) {
			t.Errorf("there is no %q in (exit code %d)\n%s", want, exitCode(err), out)
		}
	}
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte(os.Getenv(argocdTokenVariable)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(argocdTokenVariable, "")
	again, err := run(t, append([]string{"resolve", "--repo", dir, "--diff", "--argocd-token-file", token}, flags...)...)
	if again != out {
		t.Errorf("with the token from a file it says (%v)\n%s", err, again)
	}
	t.Setenv(argocdTokenVariable, a.APIToken())
	a.FailRequests("GET", "api/clusters", 1, 403)
	out, err = run(t, append([]string{"resolve", "--repo", dir}, flags...)...)
	for _, want := range []string{"note: the clusters are not known: ", "ApplicationSet agents: it generates from Argo CD's clusters", "apps/web"} {
		if exitCode(err) != 1 || !strings.Contains(out, want) {
			t.Errorf("the clusters may not be seen: there is no %q in (exit code %d)\n%s", want, exitCode(err), out)
		}
	}
	a.FailRequests("GET", "api/clusters", 1, 403)
	if out, err = run(t, append([]string{"resolve", "--repo", dir, "--clusters", "live"}, flags...)...); err == nil || !strings.Contains(err.Error(), "403 Forbidden") {
		t.Errorf("the clusters that were asked for may not be seen: %v\n%s", err, out)
	}
}

// TestPlanByArgoCDsAPI plans for targets of a set that only runs.
func TestPlanByArgoCDsAPI(t *testing.T) {
	a, dir, flags := runningAPI(t)
	set := map[string]any{"metadata": map[string]any{"name": "live", "namespace": "argocd"}, "spec": map[string]any{
		"generators": []any{map[string]any{"list": map[string]any{"elements": []any{map[string]any{"env": "dev"}, map[string]any{"env": "qa"}}}}},
		"template": map[string]any{"metadata": map[string]any{"name": "live-{{env}}"}, "spec": map[string]any{
			"project": "default", "destination": map[string]any{"name": "in-cluster", "namespace": "live"},
			"source": map[string]any{"repoURL": "https://git.example/acme/fleet", "path": "live/{{env}}", "targetRevision": "main"},
		}},
	}}
	if err := a.AddObject("applicationsets", set); err != nil {
		t.Fatal(err)
	}
	overlay := "resources: [deployment.yaml]\nimages: [{name: web, newTag: 1.0.0}]\n"
	files := map[string]string{"live/dev/kustomization.yaml": overlay, "live/qa/kustomization.yaml": overlay, ".liftlock.yaml": `apiVersion: liftlock.dev/v1alpha1
kind: Pipeline
metadata: {name: shop}
spec:
  applicationSets: [{live: {argocd: hub, namespace: argocd, name: live}}]
  component: web
  environment: '{{ .env }}'
  carry: [{kustomizeImages: ['*']}]
  environments: [{name: dev}, {name: qa, after: [dev]}]
`}
	for _, env := range []string{"dev", "qa"} {
		files["live/"+env+"/deployment.yaml"] = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {template: {spec: {containers: [{name: web, image: web}]}}}\n"
	}
	commit := func(message string) {
		t.Helper()
		for name, text := range files {
			file := filepath.Join(dir, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o750), os.WriteFile(file, []byte(text), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		for _, args := range [][]string{{"checkout", "-q", "-B", "main"}, {"add", "-A"}, {"-c", "user.name=ada", "-c", "user.email=ada@example.com", "commit", "-q", "-m", message}} {
			if out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		}
	}
	commit("A pipeline")
	files["live/dev/kustomization.yaml"] = strings.Replace(overlay, "1.0.0", "1.1.0", 1)
	commit("Release 1.1.0")

	plan := []string{"plan", "--repo", dir, "--repo-url", "https://git.example/acme/fleet"}
	out, err := run(t, append(plan, flags...)...)
	for _, want := range []string{"+images: [{name: web, newTag: 1.1.0}]", "live/qa/kustomization.yaml"} {
		if exitCode(err) != 0 || !strings.Contains(out, want) {
			t.Errorf("there is no %q in (%v)\n%s", want, err, out)
		}
	}
	if out, err := run(t, plan...); exitCode(err) != 1 || !strings.Contains(out, "the connection") && !strings.Contains(out, "no connection") {
		t.Errorf("without a connection it says (exit code %d, %v)\n%s", exitCode(err), err, out)
	}
}

// TestArgoCDsAPISaysNo tells what is wrong with the flags, the token and its rights.
func TestArgoCDsAPISaysNo(t *testing.T) {
	_, dir, flags := runningAPI(t)
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args  []string
		token string
		want  string
	}{
		"another token":           {flags, "stolen", "the token of --argocd-url and $ARGOCD_AUTH_TOKEN is not accepted"},
		"an empty file":           {append([]string{"--argocd-token-file", empty}, flags...), "", "is empty"},
		"no such file":            {append([]string{"--argocd-token-file", empty + "x"}, flags...), "", "--argocd-token-file: "},
		"no authority":            {flags[:2], "", "certificate"},
		"a broken authority":      {append(flags[:2:2], "--argocd-ca-file", empty), "", "there is no certificate in the file"},
		"no address":              {flags[2:], "", "--argocd-ca-file is for Argo CD's own API: say where that is with --argocd-url"},
		"both ways":               {append([]string{"--context", "hub"}, flags...), "", "so give one of them"},
		"an address that is none": {[]string{"--argocd-url", "argocd"}, "", "--argocd-url and $ARGOCD_AUTH_TOKEN: the API's address is no URL"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.token != "" {
				t.Setenv(argocdTokenVariable, c.token)
			}
			out, err := run(t, append([]string{"resolve", "--repo", dir}, c.args...)...)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "stolen") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	out, err := run(t, append([]string{"resolve", "--repo", dir, "--argocd-insecure"}, flags[:2]...)...)
	if exitCode(err) != 1 || !strings.Contains(out, "agent-c-1") {
		t.Errorf("without a look at the certificate: %v\n%s", err, out)
	}
}
