package server

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/server/config"
	"github.com/liftlock/liftlock/internal/server/doctor"
	"github.com/liftlock/liftlock/internal/world/emulator"
)

// TestSilentArgoCD: an Argo CD that takes connections and never answers doesn't use up the time in
// which what needs none of it is resolved, and it is named.
func TestSilentArgoCD(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // connections wait in its backlog
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(err)
	t.Cleanup(func() { _ = silent.Close() })
	dir := t.TempDir()
	kubeconfig := filepath.Join(dir, "kubeconfig")
	must(os.WriteFile(kubeconfig, []byte(`{"apiVersion": "v1", "kind": "Config", "current-context": "hub", "contexts": [{"name": "hub", "context": {"cluster": "hub", "user": "hub"}}],
		"clusters": [{"name": "hub", "cluster": {"server": "http://`+silent.Addr().String()+`"}}], "users": [{"name": "hub", "user": {}}]}`), 0o600))

	forge, err := emulator.NewForge(emulator.ForgeOptions{Dir: filepath.Join(dir, "forge")})
	must(err)
	t.Cleanup(func() { _ = forge.Close() })
	must(forge.AddUser("liftlock-bot", "bot-token-0123456789", emulator.UserOptions{}))
	address := forge.CloneURL("acme/fleet")
	must(forge.CreateRepo("acme/fleet", emulator.RepoOptions{Author: "liftlock-bot", Access: map[string]emulator.Permission{"liftlock-bot": emulator.Admin}, Files: map[string]string{
		"apps/web/dev/kustomization.yaml": "", "apps/web/prod/kustomization.yaml": "",
		".liftlock.yaml": `apiVersion: liftlock.dev/v1alpha1
kind: Pipeline
metadata: {name: shop}
spec:
  mode: observe
  applicationSets: [{path: argocd/*.yaml}]
  component: '{{ index .path.segments 1 }}'
  environment: '{{ .path.basename }}'
  carry: [{kustomizeImages: ["*"]}]
  environments: [{name: dev}, {name: prod, after: [dev]}]
`,
		"argocd/shop.yaml": strings.ReplaceAll(`apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: shop, namespace: argocd}
spec:
  goTemplate: true
  generators:
    - git: {repoURL: ADDRESS, revision: main, directories: [{path: apps/*/*}]}
  template:
    metadata: {name: '{{ index .path.segments 1 }}-{{ .path.basename }}'}
    spec:
      project: default
      source: {repoURL: ADDRESS, targetRevision: main, path: '{{ .path.path }}'}
      destination: {server: https://kubernetes.default.svc, namespace: default}
`, "ADDRESS", address),
	}}))
	mirror, err := git.Open(t.Context(), git.Options{Dir: filepath.Join(dir, "mirror"), URL: address, Author: git.Ident{Name: "a", Email: "a@example.com"},
		Credentials: func(context.Context) (string, string, error) { return "liftlock-bot", "bot-token-0123456789", nil }})
	must(err)
	t.Cleanup(func() { _ = mirror.Close() })
	_, err = mirror.Fetch(t.Context())
	must(err)

	targets, err := newDoctorTargets(&config.Config{ArgoCD: []config.ArgoCD{{Name: "hub", Version: "v3.2.1", Kubernetes: config.Kubernetes{Kubeconfig: kubeconfig, Namespaces: []string{"argocd"}}}}}, time.Now)
	must(err)
	checkout := &doctor.Checkout{Config: &config.Repository{Forge: "hub", Name: "acme/fleet", Branch: "main"}, URL: address, Mirror: mirror}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	got, err := targets.Resolve(ctx, checkout, []*doctor.Checkout{checkout})
	if err != nil || len(got) != 1 || got[0].Targets != 2 || len(got[0].Problems) != 0 {
		t.Fatalf("it is resolved to %+v, %v", got, err)
	}
	if got[0].Unread == nil || !strings.Contains(got[0].Unread.Error(), "argocd hub") {
		t.Errorf("the Argo CD that doesn't answer isn't named: %v", got[0].Unread)
	}
}
