package checkout

import (
	"bytes"
	"fmt"
	"os/exec"
	"testing"
	"time"
)

// lived makes a checkout with 1,000 components in 4 environments. Their releases each came in a
// commit of their own, in the order of the environments, after the pipeline. The last `ahead`
// components have another release in dev.
func lived(b *testing.B, limit string, ahead int) string {
	b.Helper()
	dir := b.TempDir()
	var stream bytes.Buffer
	file := func(name, text string) {
		fmt.Fprintf(&stream, "M 100644 inline %s\ndata %d\n%s\n", name, len(text), text)
	}
	commit := func(message string) {
		fmt.Fprintf(&stream, "commit refs/heads/main\ncommitter ada <ada@example.com> 1767323045 +0000\ndata %d\n%s\n", len(message), message)
	}
	overlay := func(app int, env, tag string) {
		file(fmt.Sprintf("apps/app%04d/overlays/%s/kustomization.yaml", app, env), "resources: [../../base]\nimages: [{name: registry.example/app, newTag: "+tag+"}]\n")
	}
	const apps = 1000
	envs := []string{"dev", "qa", "staging", "prod"}
	commit("First")
	file("argocd/shop.yaml", benchSet)
	file(".liftlock.yaml", benchPipeline+limit)
	for i := range apps {
		file(fmt.Sprintf("apps/app%04d/base/kustomization.yaml", i), "resources: [deployment.yaml]\n")
		file(fmt.Sprintf("apps/app%04d/base/deployment.yaml", i), "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: app}\n")
		for _, env := range envs {
			overlay(i, env, "v1")
		}
	}
	for i := range apps {
		for _, env := range envs {
			message := "v2"
			if env != "dev" {
				message = fmt.Sprintf("v2\n\nLiftlock-Pipeline: shop\nLiftlock-Environment: %s\nLiftlock-Component: app%04d\nLiftlock-Release: %s\nLiftlock-Kind: promotion\n", env, i, benchRelease)
			}
			commit(message)
			overlay(i, env, "v2")
		}
	}
	for i := apps - ahead; i < apps; i++ {
		commit("v3")
		overlay(i, "dev", "v3")
	}
	for _, args := range [][]string{{"init", "--quiet", "--initial-branch=main"}, {"remote", "add", "origin", "git@git.example:acme/fleet"}, {"fast-import", "--quiet"}, {"reset", "--quiet", "--hard"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		if args[0] == "fast-import" {
			cmd.Stdin = &stream
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	return dir
}

// benchRelease is the identity of the release v2.
const benchRelease = "5d3995d951c2c0724ab55f28d7ad2d601b5da280189b0363c9a8546c250549ad"

// BenchmarkPlan is all that `liftlock plan` does in a checkout with 1,000 components in 4
// environments and 4,000 commits since the pipeline came, but for the process's own start. It has
// nothing to do, ten promotions (the default limit), or a hundred.
func BenchmarkPlan(b *testing.B) {
	for _, ahead := range []int{0, 10, 100} {
		b.Run(fmt.Sprint(ahead), func(b *testing.B) {
			dir := lived(b, "  limits: {openPerEnvironment: 1000}\n", ahead)
			for b.Loop() {
				r, err := Open(b.Context(), dir, nil)
				if err != nil {
					b.Fatal(err)
				}
				p, err := r.Plan(b.Context(), PlanQuery{Now: time.Unix(1767323045, 0)})
				if err != nil || len(p.Problems) > 0 || len(p.Pipelines) != 1 || len(p.Pipelines[0].Promotions) != ahead {
					b.Fatalf("%v: %+v", err, p)
				}
				if err := r.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
