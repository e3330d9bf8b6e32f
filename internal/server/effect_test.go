package server_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/world/emulator"
	"github.com/liftlock/liftlock/policies"
)

// TestPromotionWithoutEffectWaits holds a promotion whose image the Application of its
// target overrides. It is opened, says so everywhere and isn't merged, until the override is
// removed or a person skips the gate.
func TestPromotionWithoutEffectWaits(t *testing.T) {
	eachFace(t, func(t *testing.T, face emulator.Face) {
		s := startHarness(t, harnessOptions{face: face, pipeline: pipelineYAML([]string{"breakGlass: {users: [ada]}"}, dev, qa)})
		s.awaitJudged()
		set, _, err := s.Forge.File(repoName, "main", "argocd/shop.yaml")
		s.must("read the ApplicationSet", err)
		override := func(on bool) {
			text := set
			if on {
				text += "  templatePatch: |\n    {{- if eq .path.basename \"qa\" }}\n    spec: {source: {kustomize: {images: ['registry.example/web:0.9.7']}}}\n    {{- end }}\n"
			}
			s.commitFiles("linus", "main", "Override", map[string]string{"argocd/shop.yaml": text})
		}
		override(true)
		s.editTag("linus", "web", "dev", "1.1.0")
		p := s.awaitPromotion("web", "qa", "1.1.0")
		const reason = "doesn't show in the rendered manifests of web-qa: kustomize.images of the Application (argocd/shop.yaml:"
		waits := func(e *api.EnvironmentWhy) bool {
			return e.Incoming != nil && slices.ContainsFunc(e.Incoming.Gates, func(g api.Gate) bool {
				return g.Gate == string(promotion.GateEffect) && g.Outcome == string(policies.Wait) && strings.Contains(g.Reason, reason)
			})
		}
		s.awaitEnvironment("web", "qa", "waits for the effect", waits)
		now := s.awaitPull(p.Number, "says so", func(now *emulator.PullRequest) bool {
			return strings.Contains(liftlockStatus(now.Statuses).Description, "effect") && slices.ContainsFunc(now.Comments, func(c emulator.Comment) bool {
				return strings.Contains(c.Body, "kustomize.images of the Application")
			})
		})
		if state := liftlockStatus(now.Statuses).State; now.Merged || state != "pending" {
			t.Fatalf("it is merged: %t, its status is %s", now.Merged, state)
		}

		// It goes on when the override is taken away.
		override(false)
		s.awaitVerified("web", "qa", "1.1.0")

		// Somebody skips it.
		override(true)
		s.editTag("linus", "web", "dev", "1.2.0")
		p = s.awaitPromotion("web", "qa", "1.2.0")
		s.awaitEnvironment("web", "qa", "waits again", waits)
		id := s.addComment(p.Number, "ada", "/liftlock skip effect the hotfix stays for today")
		if a := s.awaitReaction(p.Number, id, "+1"); !strings.Contains(a, "skipped the gate `effect`") {
			t.Errorf("the skip is answered: %s", a)
		}
		s.awaitPull(p.Number, "is merged", func(now *emulator.PullRequest) bool { return now.Merged })
	})
}

// TestPromotionOfIgnoredFields holds that a pull request says which of its fields Argo CD ignores, and by which line:
// it would say Synced of what never arrived.
func TestPromotionOfIgnoredFields(t *testing.T) {
	s := startHarness(t, harnessOptions{})
	s.awaitJudged()
	set, _, err := s.Forge.File(repoName, "main", "argocd/shop.yaml")
	s.must("read the ApplicationSet", err)
	s.commitFiles("linus", "main", "Ignore images", map[string]string{"argocd/shop.yaml": set +
		"  templatePatch: |\n    spec:\n      ignoreDifferences:\n      - {group: '*', kind: '*', jqPathExpressions: ['.spec.template.spec.containers[].image']}\n"})
	s.editTag("linus", "web", "dev", "1.1.0")
	p := s.awaitPromotion("web", "qa", "1.1.0")
	s.awaitPull(p.Number, "says what is ignored", func(now *emulator.PullRequest) bool {
		return strings.Contains(now.Body, "Argo CD ignores spec.template.spec.containers")
	})
	s.awaitVerified("web", "qa", "1.1.0")
}

// TestPromotionThatItsLiveApplicationOverrides holds a promotion whose image only the live Application overrides, as
// Image Updater writes it, until that is taken away.
func TestPromotionThatItsLiveApplicationOverrides(t *testing.T) {
	eachFace(t, func(t *testing.T, face emulator.Face) {
		s := startHarness(t, harnessOptions{face: face})
		s.awaitJudged()
		s.must("override qa", s.ArgoCD.SetOptions("argocd", "web-qa", map[string]any{"kustomize": map[string]any{"images": []any{"registry.example/web:0.9.7"}}}))
		s.editTag("linus", "web", "dev", "1.1.0")
		p := s.awaitPromotion("web", "qa", "1.1.0")
		const reason = "doesn't show in the rendered manifests of web-qa: kustomize.images of the live Application web-qa overrides it"
		s.awaitEnvironment("web", "qa", "waits for the effect", func(e *api.EnvironmentWhy) bool {
			return e.Incoming != nil && slices.ContainsFunc(e.Incoming.Gates, func(g api.Gate) bool {
				return g.Gate == string(promotion.GateEffect) && g.Outcome == string(policies.Wait) && strings.Contains(g.Reason, reason)
			})
		})
		if now := s.awaitPull(p.Number, "says so", func(now *emulator.PullRequest) bool {
			return strings.Contains(liftlockStatus(now.Statuses).Description, "effect")
		}); now.Merged {
			t.Fatal("it is merged")
		}
		s.must("take it away", s.ArgoCD.SetOptions("argocd", "web-qa", nil))
		s.awaitVerified("web", "qa", "1.1.0")
	})
}

// TestPromotionOfAnOverriddenApplication holds a promotion that changes the Application itself, of which its
// ApplicationSet leaves what runs, before anybody merges it.
func TestPromotionOfAnOverriddenApplication(t *testing.T) {
	config := func(tag string) string { return fmt.Sprintf("{\n  \"tag\": %q\n}\n", tag) }
	files := map[string]string{}
	for _, env := range []string{"dev", "qa"} {
		files[overlayPath("web", env)+"/config.json"] = config("1.0.0")
	}
	s := newHarness(t, harnessOptions{files: files, pipeline: strings.Replace(pipelineYAML(nil, dev, qa, prod), `- kustomizeImages: ["registry.example/*"]`, `- json: {files: ["config.json"], paths: ["tag"]}`, 1)})
	set := s.appSetYAML("directories:\n          - path: apps/*/overlays/*", "files:\n          - path: apps/*/overlays/*/config.json",
		"        path: '{{ .path.path }}'", "        path: '{{ .path.path }}'\n        kustomize: {images: ['registry.example/web:{{ .tag }}']}")
	ignoring := strings.Replace(set, "  template:", "  ignoreApplicationDifferences: [{name: web-qa, jsonPointers: [/spec/source/kustomize/images]}]\n  template:", 1)
	s.commitFiles("linus", "main", "Say the tag in a file", map[string]string{"argocd/shop.yaml": ignoring})
	updates := func(env, tag string) {
		t.Helper()
		s.must("update the Application", s.ArgoCD.SetOptions("argocd", "web-"+env, map[string]any{"kustomize": map[string]any{"images": []any{"registry.example/web:" + tag}}}))
	}
	updates("dev", "1.0.0")
	updates("qa", "0.9.7")
	s.start()
	s.awaitJudged()
	s.commitFiles("linus", "main", "Release", map[string]string{overlayPath("web", "dev") + "/config.json": config("1.1.0")})
	updates("dev", "1.1.0")
	p := s.awaitPromotion("web", "qa", "1.1.0")
	waits := func(e *api.EnvironmentWhy) bool {
		return e.Incoming != nil && slices.ContainsFunc(e.Incoming.Gates, func(g api.Gate) bool {
			return g.Gate == string(promotion.GateEffect) && g.Outcome == string(policies.Wait) && strings.Contains(g.Reason, "the live Application web-qa")
		})
	}
	s.awaitEnvironment("web", "qa", "waits for the effect", waits)
	updates("qa", "1.0.0") // it has what Git says now, and would keep that
	s.awaitIdle()
	s.awaitEnvironment("web", "qa", "waits all the same", waits)
	if s.readPull(p.Number).Merged {
		t.Fatal("it is merged")
	}
	s.commitFiles("linus", "main", "Ignore nothing", map[string]string{"argocd/shop.yaml": set})
	s.awaitMerged(p.Number)
	updates("qa", "1.1.0")
	s.awaitVerified("web", "qa", "1.1.0")
}
