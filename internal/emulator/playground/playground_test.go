package playground

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const setTemplate = `apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: shop}
spec:
  goTemplate: true
  generators: [{git: {repoURL: REPO, revision: main, directories: [{path: apps/*}]}}]
  template:
    metadata: {name: '{{ .path.basename }}'}
    spec:
      project: PROJECT
      source: {repoURL: REPO, targetRevision: HEAD, path: '{{ .path.path }}'}
      destination: {server: https://kubernetes.default.svc, namespace: '{{ .path.basename }}'}
      syncPolicy: {automated: {}}
`

func TestFollowsWhatIsPushed(t *testing.T) {
	lines := make(chan string, 100)
	p, err := New(t.Context(), Options{Dir: filepath.Join(t.TempDir(), "playground"), Report: func(line string) { lines <- line }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	await := func(wants ...string) {
		t.Helper()
		for _, want := range wants {
			select {
			case line := <-lines:
				if !strings.Contains(line, want) {
					t.Errorf("it reports %q, not %q", line, want)
				}
			case <-time.After(30 * time.Second):
				t.Fatalf("it doesn't report %q", want)
			}
		}
	}
	set := strings.ReplaceAll(setTemplate, "REPO", p.Forge.CloneURL(Repository))
	commit := func(files map[string]string, remove ...string) {
		t.Helper()
		if _, err := p.Forge.CommitAs(Repository, Owner, Branch, "A change", files, remove...); err != nil {
			t.Fatal(err)
		}
	}
	kustomization := "images: [{name: registry.example/web, newTag: \"1\"}]\n"
	commit(map[string]string{
		"argocd/shop.yaml": strings.ReplaceAll(set, "PROJECT", "default"), "argocd/project.yaml": "kind: AppProject\n",
		"apps/web/kustomization.yaml": kustomization, "apps/api/kustomization.yaml": kustomization,
	})
	await("makes the Application api of the ApplicationSet shop", "makes the Application web of")
	commit(map[string]string{"argocd/shop.yaml": strings.ReplaceAll(set, "PROJECT", "nowhere")})
	await("error getting project nowhere")
	if s, err := p.ArgoCD.State(namespace, "web"); err != nil || !s.Exists {
		t.Errorf("with a set that is wrong the Application is %+v, %v", s, err)
	}
	commit(map[string]string{"argocd/shop.yaml": strings.ReplaceAll(set, "PROJECT", "default")}, "apps/api/kustomization.yaml")
	await("removes the Application api")
	commit(nil, "argocd/shop.yaml")
	await("removes the Application web")
	commit(map[string]string{"argocd/shop.yaml": "kind: [\n"})
	await("the ApplicationSets aren't applied: argocd/shop.yaml: ")
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

// TestRefusesAFolderWithSomethingInIt: an earlier playground's too, whose repository isn't empty.
func TestRefusesAFolderWithSomethingInIt(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if p, err := New(t.Context(), Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), "isn't empty; remove it, or name another folder with --dir") {
		t.Errorf("it opens %v with %v", p, err)
	}
}
