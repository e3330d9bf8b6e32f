package server_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/world/emulator"
	"github.com/liftlock/liftlock/policies"
)

// remoteOverlay is an overlay whose remote base goes with the image.
func remoteOverlay(ref, tag string) string {
	return fmt.Sprintf("resources:\n  - ../../base\n  - https://git.example/acme/web//config?ref=%s\nimages:\n  - name: registry.example/web\n    newTag: %s\n", ref, tag)
}

// TestIncompleteReleaseWaits holds a release whose commit changed an image, which is carried,
// and the ref of a remote base, which isn't. It waits until the other environment has the ref too,
// or a person asks for the release as it is.
func TestIncompleteReleaseWaits(t *testing.T) {
	file := func(env string) string { return overlayPath("web", env) + "/kustomization.yaml" }
	s := startHarness(t, harnessOptions{pipeline: pipelineYAML(nil, dev, anyQA),
		files: map[string]string{file("dev"): remoteOverlay("v1", "1.0.0"), file("qa"): remoteOverlay("v1", "1.0.0")}})
	s.awaitJudged()
	release := func(env, message, ref, tag string) {
		s.commitFiles("linus", "main", message, map[string]string{file(env): remoteOverlay(ref, tag)})
	}
	waits := func(e *api.EnvironmentWhy) bool {
		return slices.ContainsFunc(e.Why, func(r api.Reason) bool {
			return r.Code == "incomplete" && strings.Contains(r.Text, "changed the ref of https://git.example/acme/web//config")
		})
	}
	release("dev", "web 1.1.0", "v2", "1.1.0")
	e := s.awaitEnvironment("web", "qa", "waits for the base", waits)
	if pulls := s.listPulls("web", "qa"); len(pulls) > 0 || !e.Attention() {
		t.Fatalf("%d pull requests are open, and it is to be looked at: %t", len(pulls), e.Attention())
	}

	// Somebody asks for it as it is.
	if status, answer := s.postCommand(operatorToken, "/api/v1/pipelines/shop/promote", api.PipelineCommand{Component: "web", Environment: "qa"}); status != http.StatusOK {
		t.Fatalf("the promote is answered %d: %s", status, answer)
	}
	p := s.awaitPromotion("web", "qa", "1.1.0")
	if e := s.awaitEnvironment("web", "qa", "has it open", func(e *api.EnvironmentWhy) bool { return e.Incoming != nil && e.Incoming.State == "open" }); isIncomplete(e) {
		t.Errorf("what was asked for waits: %+v", e.Incoming)
	}
	_, err := s.Forge.MergePull(repoName, p.Number, "linus", "merge")
	s.must("merge it", err)
	s.awaitVerified("web", "qa", "1.1.0")

	// The environment is given the next one's base by a commit, and has it taken away again.
	release("dev", "web 1.2.0", "v3", "1.2.0")
	s.awaitEnvironment("web", "qa", "waits for the next base", waits)
	release("qa", "The base of 1.2.0", "v3", "1.1.0")
	p = s.awaitPromotion("web", "qa", "1.2.0")
	release("qa", "Back to the base of 1.0.0", "v1", "1.1.0")
	s.awaitEnvironment("web", "qa", "waits again", isIncomplete)
	s.awaitPull(p.Number, "says so", func(now *emulator.PullRequest) bool {
		return slices.ContainsFunc(now.Comments, func(c emulator.Comment) bool {
			return strings.Contains(c.Body, "incomplete") && strings.Contains(c.Body, "goes on without it")
		})
	})
}

// isIncomplete says that an open promotion waits for what would be left out.
func isIncomplete(e *api.EnvironmentWhy) bool {
	return e.Incoming != nil && slices.ContainsFunc(e.Incoming.Gates, func(g api.Gate) bool {
		return g.Gate == "incomplete" && g.Outcome == string(policies.Wait) && strings.HasSuffix(g.Reason, "/liftlock promote qa goes on without it")
	})
}
