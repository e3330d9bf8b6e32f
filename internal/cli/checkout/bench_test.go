package checkout

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/liftlock/liftlock/internal/appset"
)

const benchSet = `apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: shop, namespace: argocd}
spec:
  goTemplate: true
  goTemplateOptions: [missingkey=error]
  generators:
    - git: {repoURL: https://git.example/acme/fleet.git, revision: main, directories: [{path: apps/*/overlays/*}]}
  template:
    metadata: {name: '{{ index .path.segments 1 }}-{{ .path.basename }}'}
    spec:
      project: default
      source: {repoURL: https://git.example/acme/fleet.git, targetRevision: main, path: '{{ .path.path }}'}
      destination: {server: https://kubernetes.default.svc, namespace: '{{ index .path.segments 1 }}'}
`

const benchPipeline = `apiVersion: liftlock.dev/v1alpha1
kind: Pipeline
metadata: {name: shop}
spec:
  applicationSets: [{path: argocd/*.yaml}]
  component: '{{ index .path.segments 1 }}'
  environment: '{{ .path.basename }}'
  carry: [{kustomizeImages: ["registry.example/*"]}]
  environments: [{name: dev}, {name: qa, after: [dev]}, {name: staging, after: [qa]}, {name: prod, after: [staging]}]
`

// thousand is a checkout with 1,000 targets.
func thousand(b *testing.B) string {
	b.Helper()
	dir := b.TempDir()
	write := func(name, text string) {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	write("argocd/shop.yaml", benchSet)
	write(".liftlock.yaml", benchPipeline)
	for i := range 250 {
		app := fmt.Sprintf("apps/app%03d/", i)
		write(app+"base/kustomization.yaml", "resources: [deployment.yaml]\n")
		write(app+"base/deployment.yaml", "kind: Deployment\n")
		for _, env := range []string{"dev", "qa", "staging", "prod"} {
			write(app+"overlays/"+env+"/kustomization.yaml", "resources: [../../base]\nimages: [{name: registry.example/app, newTag: v1}]\n")
		}
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch=main"}, {"remote", "add", "origin", "git@git.example:acme/fleet"}, {"add", "--all"},
		{"-c", "user.name=ada", "-c", "user.email=ada@example.com", "commit", "--quiet", "--message=First"},
	} {
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	return dir
}

// BenchmarkResolve is all that `liftlock resolve` does in a checkout with 1,000 targets, but for
// the process's own start. The resolution is the part of it that turns the files into targets.
func BenchmarkResolve(b *testing.B) {
	dir := thousand(b)
	for name, rev := range map[string]string{"workingTree": "", "commit": "HEAD"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				r, err := Open(b.Context(), dir, nil)
				if err != nil {
					b.Fatal(err)
				}
				a, err := r.Resolve(b.Context(), Query{Rev: rev})
				if err != nil || len(a.Problems) > 0 || len(a.PipelineTargets[0].Targets) != 1000 {
					b.Fatal(err, a)
				}
				if err := WriteTable(io.Discard, a); err != nil {
					b.Fatal(err)
				}
				if err := r.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("resolutionAlone", func(b *testing.B) {
		r, err := Open(b.Context(), dir, nil)
		if err != nil {
			b.Fatal(err)
		}
		defer r.Close()
		t, err := r.At(b.Context(), "")
		if err != nil {
			b.Fatal(err)
		}
		g, pipes, err := r.selectPipelines(b.Context(), t, Query{}, &Resolution{})
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if _, err := r.resolvePipeline(b.Context(), appset.New(appset.Options{}), g, t, appset.Input{Pipeline: pipes[0]}, false); err != nil {
				b.Fatal(err)
			}
		}
	})
}
