package server_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/world/emulator"
	"github.com/liftlock/liftlock/policies"
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

// TestPushToASource has a push to a listed repository wake its readers, long before they would run
// again by themselves; an unsigned one wakes nothing.
func TestPushToASource(t *testing.T) {
	const baseRepo = "acme/base"
	eachFace(t, func(t *testing.T, face emulator.Face) {
		s := newHarness(t, harnessOptions{face: face, pipeline: pipelineYAML(nil, dev, qa, prod)})
		base := func(image string) map[string]string {
			return map[string]string{"web/kustomization.yaml": "resources: [d.yaml]\n",
				"web/d.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {template: {spec: {containers: [{name: web, image: \"" + image + ":0\"}]}}}\n"}
		}
		s.must("make the base", s.Forge.CreateRepo(baseRepo, emulator.RepoOptions{Author: "ada", Message: "A base", Access: map[string]emulator.Permission{"ada": emulator.Write}, Files: base("registry.example/other")}))
		s.opts.serverLines += fmt.Sprintf("sources:\n  - {url: %q, username: ada, password: token-of-ada}\n", s.Forge.CloneURL(baseRepo))
		files := map[string]string{}
		for _, env := range []string{"dev", "qa", "prod"} {
			files[overlayPath("web", env)+"/kustomization.yaml"] = strings.NewReplacer("NAME", "web", "TAG", "1.0.0", "../../base", s.Forge.CloneURL(baseRepo)+"//web?ref=main").Replace(kustomizationTemplate)
		}
		s.commitFiles("linus", "main", "Take the base of another repository", files)
		s.start()
		s.editTag("linus", "web", "dev", "1.1.0")
		p := s.awaitPromotion("web", "qa", "1.1.0")
		s.awaitEnvironment("web", "qa", "waits for the effect", func(e *api.EnvironmentWhy) bool {
			return e.Incoming != nil && slices.ContainsFunc(e.Incoming.Gates, func(g api.Gate) bool {
				return g.Gate == string(promotion.GateEffect) && g.Outcome == string(policies.Wait) && strings.Contains(g.Reason, "doesn't show")
			})
		})
		if code, _ := s.postDelivery(testDelivery{"push", "forged", "not the secret", s.pushPayload(baseRepo)}); code != http.StatusUnauthorized {
			t.Errorf("a forged delivery is answered with %d", code)
		}
		s.must("point a webhook of the base at the server", s.Forge.AddHook(baseRepo, "ada", emulator.Hook{URL: s.url + "/webhooks/hub", Secret: secret, Active: true}))
		_, err := s.Forge.LandAs(baseRepo, "ada", "main", "The right image", base("registry.example/web"))
		s.must("push the base", err)
		pushed := time.Now()
		s.awaitPull(p.Number, "is merged", func(now *emulator.PullRequest) bool { return now.Merged })
		if took := time.Since(pushed); took > 2*time.Minute {
			t.Errorf("it is merged %s after the push, when it was looked at anyway", took)
		}
	})
}
