package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/controller/onboard"
)

// serverMirror makes a repository as a server has it, and what a proposal for it is requested by.
func serverMirror(t *testing.T, files map[string]string) onboard.Request {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		at := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	git := func(args ...string) string {
		t.Helper()
		out, err := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=ada", "-c", "user.email=ada@example.org"}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "--quiet", "--initial-branch", "trunk")
	git("add", "-A")
	git("commit", "--quiet", "--message", "Overlays")
	head := git("rev-parse", "HEAD")
	return onboard.Request{Repository: "hub:acme/fleet", GitDir: filepath.Join(dir, ".git"), Branch: "trunk", Commit: head, Heads: map[string]string{"trunk": head},
		URLs: []string{"https://git.example/acme/fleet.git"}}
}

// serveProposal asks for a proposal as a server does.
func serveProposal(t *testing.T, q onboard.Request) *onboard.Proposal {
	t.Helper()
	in, err := json.Marshal(q)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := ServeProposal(t.Context(), bytes.NewReader(in), &out); err != nil {
		t.Fatal(err)
	}
	var p onboard.Proposal
	if err := json.Unmarshal(out.Bytes(), &p); err != nil {
		t.Fatal(err)
	}
	return &p
}

const clusterSet = `apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: web, namespace: argocd}
spec:
  goTemplate: true
  generators: [{clusters: {selector: {matchLabels: {app: web}}}}]
  template:
    metadata: {name: 'web-{{ .metadata.labels.env }}'}
    spec:
      project: default
      source: {repoURL: 'https://git.example/acme/fleet.git', targetRevision: trunk, path: 'apps/web/{{ .metadata.labels.env }}'}
      destination: {server: '{{ .server }}', namespace: web}
`

// TestServeProposal proposes for a server's mirror: by the clusters that it knows, with an example where it knows none,
// by the sets that run where the repository has none, and nothing where there is nothing.
func TestServeProposal(t *testing.T) {
	files := map[string]string{"README.md": "x\n"}
	var clusters []appset.Cluster
	for _, env := range []string{"dev", "qa", "prod"} {
		files["apps/web/"+env+"/kustomization.yaml"] = "images:\n  - name: registry.example/web\n    newTag: 1.0.0\n"
		clusters = append(clusters, appset.Cluster{Secret: env, Namespace: "argocd", Name: env, Server: "https://" + env + ".example", Labels: map[string]string{"app": "web", "env": env}})
	}
	nothing := serveProposal(t, serverMirror(t, files))
	if !strings.Contains(nothing.Nothing, "kind: ApplicationSet") || nothing.Text != "" {
		t.Errorf("of nothing it proposes %+v", nothing)
	}
	running := serverMirror(t, files)
	running.Clusters = clusters
	var set map[string]any
	if err := yaml.Unmarshal([]byte(clusterSet), &set); err != nil {
		t.Fatal(err)
	}
	object, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	running.Sets = []appset.LiveSet{{ArgoCD: "hub", Namespace: "argocd", Name: "web", Object: object}}
	if p := serveProposal(t, running); p.Open != nil || !strings.Contains(p.Text, "live: {namespace: argocd, name: web}") {
		t.Errorf("of a set that runs it proposes %+v", p)
	}
	files["argocd/web.yaml"] = clusterSet
	known := serverMirror(t, files)
	known.Clusters = clusters
	p := serveProposal(t, known)
	if p.Open != nil || len(p.Steps) != 3 || strings.Join(p.Components, " ") != "web" || len(p.Waiting) == 0 || p.PlanErr != "" || !strings.Contains(p.Text, "mode: observe") {
		t.Errorf("with clusters it proposes %+v", p)
	}
	known.Clusters = nil
	if p := serveProposal(t, known); p.Open == nil || p.Open.Question == "" || !strings.Contains(p.Text, "TODO") {
		t.Errorf("without clusters it proposes %+v", p)
	}
}
