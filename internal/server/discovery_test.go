package server_test

import (
	"io"
	"log"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	memory "github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/world/emulator"
)

// testRegistry is a registry of images.
type testRegistry struct {
	t    *testing.T
	host string
}

func startTestRegistry(t *testing.T) *testRegistry {
	t.Helper()
	server := httptest.NewServer(memory.New(memory.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	return &testRegistry{t, strings.TrimPrefix(server.URL, "http://")}
}

// push puts an image there, with the labels that say what it was built from where source isn't empty.
func (r *testRegistry) push(image, source, revision string) {
	r.t.Helper()
	ref, err := name.NewTag(r.host+"/"+image, name.Insecure)
	if err != nil {
		r.t.Fatal(err)
	}
	config, err := empty.Image.ConfigFile()
	if err != nil {
		r.t.Fatal(err)
	}
	config = config.DeepCopy()
	config.Config.Labels = map[string]string{"name": image}
	if source != "" {
		config.Config.Labels["org.opencontainers.image.source"], config.Config.Labels["org.opencontainers.image.revision"] = source, revision
	}
	built, err := mutate.ConfigFile(empty.Image, config)
	if err == nil {
		err = remote.Write(ref, built)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// discovering are options of a scene whose images are in a registry of its own, and come into dev by themselves.
func (r *testRegistry) discovering(environments ...string) harnessOptions {
	here := func(text string) string { return strings.ReplaceAll(text, "registry.example", r.host) }
	discover := dev + "\ndiscover: [{image: \"registry.example/*\", choose: {semver: \"*\"}}]"
	files := map[string]string{"apps/web/base/deployment.yaml": here(strings.ReplaceAll(deploymentTemplate, "NAME", "web"))}
	pipeline := here(pipelineYAML(nil, append([]string{discover}, environments...)...))
	for line := range strings.Lines(pipeline) {
		if env, ok := strings.CutPrefix(strings.TrimSpace(line), "- name: "); ok {
			files[overlayPath("web", env)+"/kustomization.yaml"] = here(strings.NewReplacer("NAME", "web", "TAG", "1.0.0").Replace(kustomizationTemplate))
		}
	}
	return harnessOptions{pipeline: pipeline, files: files, discover: 100 * time.Millisecond, serverLines: "registries: [{host: \"" + r.host + "\", plainHTTP: true}]\n"}
}

// TestReleasesComeIn takes an image from its push to a registry to prod, and nobody writes to Git but Liftlock. Who made
// the application's commits, as the image says, can't approve it; where it doesn't say, approvals wait.
func TestReleasesComeIn(t *testing.T) {
	r := startTestRegistry(t)
	s := newHarness(t, r.discovering(qa, approvedByAnybody))
	s.must("make the application's repository", s.Forge.CreateRepo("acme/web", emulator.RepoOptions{Author: "linus", Message: "First", Files: map[string]string{"main.go": "1"},
		Access: map[string]emulator.Permission{s.bot: emulator.Read, "linus": emulator.Write, "grace": emulator.Write}}))
	first, err := s.Forge.Head("acme/web", "main")
	s.must("read the head", err)
	second, err := s.Forge.CommitAs("acme/web", "grace", "main", "Second", map[string]string{"main.go": "2"})
	s.must("commit", err)
	page := strings.TrimSuffix(s.Forge.CloneURL("acme/web"), ".git")
	r.push("web:1.0.0", page, first)
	s.start()
	s.awaitJudged()

	before, err := s.Forge.Head(repoName, "main")
	s.must("read the head", err)
	r.push("web:1.1.0", page, second)
	s.awaitVerified("web", "dev", "1.1.0")
	p := s.awaitPromotion("web", "prod", "1.1.0")
	s.approve(p.Number, "grace")
	s.awaitGate("authors of the release don't count (grace)")
	s.approve(p.Number, "ada")
	s.awaitMerged(p.Number)
	s.awaitVerified("web", "prod", "1.1.0")
	if after, err := s.Forge.Head(repoName, "main"); err != nil || after == before {
		t.Errorf("%s, %v", after, err)
	}

	r.push("web:1.2.0", "", "")
	s.awaitPromotion("web", "prod", "1.2.0")
	s.awaitGate("came in by itself, and who made it isn't known: its labels org.opencontainers.image.source and .revision have to name a commit of a repository of acme")
	if code, text := s.getText("/metrics"); code != 200 || !strings.Contains(text, "liftlock_registry_calls_total{registry=\""+r.host+"\",status=\"200\"}") {
		t.Errorf("the metrics say %d", code)
	}
	if code, text := s.getText("/api/v1/audit?verb=" + promotion.AuditDiscover); code != 200 || strings.Count(text, "came into dev by itself") != 2 {
		t.Errorf("the audit trail says %d: %s", code, text)
	}
}
