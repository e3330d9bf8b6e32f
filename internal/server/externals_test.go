package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/emulator"
)

// TestPromotionOverASource renders overlays whose base is in a repository that the server's file lists,
// and says of one that isn't listed what to do.
func TestPromotionOverASource(t *testing.T) {
	t.Parallel()
	const baseRepo = "acme/base"
	for _, listed := range []bool{true, false} {
		t.Run(fmt.Sprintf("listed=%t", listed), func(t *testing.T) {
			s := newHarness(t, harnessOptions{})
			s.must("make the base", s.Forge.CreateRepo(baseRepo, emulator.RepoOptions{Author: "ada", Message: "A base", Access: map[string]emulator.Permission{"ada": emulator.Write}, Files: map[string]string{
				"sidecar/kustomization.yaml": "resources: [d.yaml]\n",
				"sidecar/d.yaml":             "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: sidecar}\nspec: {template: {spec: {containers: [{name: web, image: registry.example/web:0}]}}}\n"}}))
			if listed {
				s.opts.serverLines += fmt.Sprintf("sources:\n  - {url: %q, username: ada, password: token-of-ada}\n", s.Forge.CloneURL(baseRepo))
			}
			files := map[string]string{}
			for _, env := range []string{"dev", "qa", "prod"} {
				files[overlayPath("web", env)+"/kustomization.yaml"] = strings.NewReplacer("NAME", "web", "TAG", "1.0.0", "base\n", "base\n  - "+s.Forge.CloneURL(baseRepo)+"//sidecar?ref=main\n").Replace(kustomizationTemplate)
			}
			s.commitFiles("linus", "main", "Take the sidecar", files)
			s.start()
			p := s.releaseToProd("1.1.0")
			var d *api.RenderedDiff
			s.waitFor("the difference is there", func() (bool, string) {
				found, err := s.getDiff(p.Number)
				d = found
				return err == nil, fmt.Sprint(err)
			})
			got := fmt.Sprintf("%+v", d.Targets)
			if want := map[bool]string{true: "sidecar", false: "list it under sources in the server's file"}[listed]; !strings.Contains(got, want) || listed == strings.Contains(got, "list it under") {
				t.Errorf("the difference is %s; want %s in it", got, want)
			}
		})
	}
}
