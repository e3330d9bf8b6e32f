package playground

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/world/argoemulator"
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

func TestFollowsPushes(t *testing.T) {
	p, await, stop := runPlayground(t)
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
	stop()
}

// runPlayground runs a playground until stop; await waits for what it reports.
func runPlayground(t *testing.T) (p *Playground, await func(wants ...string), stop func()) {
	t.Helper()
	lines := make(chan string, 100)
	p, err := New(t.Context(), Options{Dir: filepath.Join(t.TempDir(), "playground"), Report: func(line string) { lines <- line }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	await = func(wants ...string) {
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
	return p, await, func() {
		t.Helper()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestTriesAgain: what was applied in half goes on from there without another push, and a push to a
// branch that isn't followed is reported.
func TestTriesAgain(t *testing.T) {
	p, await, stop := runPlayground(t)
	set := strings.NewReplacer("REPO", p.Forge.CloneURL(Repository), "PROJECT", "default").Replace(setTemplate)
	kustomization := "images: [{name: registry.example/web, newTag: \"1\"}]\n"
	commit, err := p.Forge.CommitAs(Repository, Owner, "master", "A change", map[string]string{"argocd/shop.yml": set, "apps/api/kustomization.yaml": kustomization, "apps/web/kustomization.yaml": kustomization})
	if err != nil {
		t.Fatal(err)
	}
	await("follows the branch main, and only master was pushed: git push origin HEAD:main")
	if err := p.ArgoCD.AddApplication(argoemulator.AppSpec{Name: "web", Namespace: namespace, Repo: Repository, Path: "apps/web", DestinationNamespace: "web"}); err != nil {
		t.Fatal(err)
	}
	if err := p.Forge.SetBranch(Repository, Owner, Branch, commit); err != nil {
		t.Fatal(err)
	}
	await("makes the Application api of the ApplicationSet shop", "the ApplicationSets aren't applied: adding Application argocd/web: it exists already")
	if err := p.ArgoCD.RemoveApplication(namespace, "web"); err != nil {
		t.Fatal(err)
	}
	await("makes the Application web of the ApplicationSet shop")
	stop()
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
