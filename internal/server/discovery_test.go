package server_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	memory "github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

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
func (r *testRegistry) push(image, source, revision string) v1.Image {
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
	return built
}

// webKey is the public key to the private one by which sign signs.
const webKey = `-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEAO2onvM62pC1io6jQKm8Nc2UyFXcd4kOmOsBIoYtZ2ik=
-----END PUBLIC KEY-----
`

// sign puts a signature beside an image, as cosign sign --key does. seed makes the key; 0 is webKey's.
func (r *testRegistry) sign(repository string, image v1.Image, seed byte) {
	r.t.Helper()
	digest, err := image.Digest()
	if err != nil {
		r.t.Fatal(err)
	}
	signed := fmt.Appendf(nil, `{"critical":{"identity":{"docker-reference":%q},"image":{"docker-manifest-digest":%q},"type":"cosign container image signature"}}`,
		r.host+"/"+repository, digest)
	key := ed25519.NewKeyFromSeed(append(make([]byte, ed25519.SeedSize-1), seed))
	signatures, err := mutate.Append(mutate.MediaType(empty.Image, types.OCIManifestSchema1), mutate.Addendum{
		Layer:       static.NewLayer(signed, "application/vnd.dev.cosign.simplesigning.v1+json"),
		Annotations: map[string]string{"dev.cosignproject.cosign/signature": base64.StdEncoding.EncodeToString(ed25519.Sign(key, signed))}})
	if err != nil {
		r.t.Fatal(err)
	}
	ref, err := name.NewTag(r.host+"/"+repository+":sha256-"+digest.Hex+".sig", name.Insecure)
	if err == nil {
		err = remote.Write(ref, signatures)
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

// TestSignedReleasesComeIn brings in what is signed by the key beside the pipeline file, and not what somebody else pushed
// and signed.
func TestSignedReleasesComeIn(t *testing.T) {
	r := startTestRegistry(t)
	o := r.discovering(qa)
	o.pipeline = strings.Replace(o.pipeline, "choose: {semver: \"*\"}", "choose: {semver: \"*\"}, verify: {cosign: {key: keys/web.pub}}", 1)
	o.files["keys/web.pub"] = webKey
	s := newHarness(t, o)
	r.sign("web", r.push("web:1.0.0", "", ""), 0)
	s.start()
	s.awaitJudged()
	r.sign("web", r.push("web:1.2.0", "", ""), 1)
	r.sign("web", r.push("web:1.1.0", "", ""), 0)
	s.awaitVerified("web", "dev", "1.1.0")
	r.sign("web", r.push("web:1.3.0", "", ""), 0)
	s.awaitVerified("web", "dev", "1.3.0")
}

// TestReleasesComeInByWebhook brings in at once what the registry tells of, and nothing that somebody tells who doesn't
// know the secret. Nobody polls meanwhile.
func TestReleasesComeInByWebhook(t *testing.T) {
	r := startTestRegistry(t)
	o := r.discovering(qa)
	o.discover = time.Hour
	o.serverLines = "registries: [{host: \"" + r.host + "\", plainHTTP: true, webhookSecret: hook-secret-1}]\n"
	s := newHarness(t, o)
	r.push("web:1.0.0", "", "")
	s.start()
	s.awaitJudged()
	s.waitFor("the first list of tags is made", func() (bool, string) {
		_, text := s.getText("/metrics")
		return strings.Contains(text, "liftlock_registry_calls_total{registry=\""+r.host+"\",status=\"200\"}"), ""
	})
	r.push("web:1.1.0", "", "")
	push := map[string]any{"events": []any{map[string]any{"action": "push", "target": map[string]string{"repository": "web", "tag": "1.1.0"}}}}
	for _, token := range []string{"", "hook-secret-2"} {
		if code, text := s.postCommand(token, "/webhooks/registries/"+r.host, push); code != 401 {
			t.Errorf("%d: %s", code, text)
		}
	}
	if code, text := s.postCommand("", "/webhooks/registries/"+r.host+"?token=hook-secret-1", push); code != 200 {
		t.Errorf("%d: %s", code, text)
	}
	s.awaitVerified("web", "dev", "1.1.0")
}

// TestReleasesComeInByPullRequests takes images from a registry by pull requests, which a person merges in each of the forge's
// ways. Who made the image is no other than where Liftlock commits it itself.
func TestReleasesComeInByPullRequests(t *testing.T) {
	r := startTestRegistry(t)
	o := r.discovering(qa, approvedByAnybody)
	o.pipeline = strings.Replace(o.pipeline, "      discover: [", "      deliver: pull-request\n      discover: [", 1)
	s := newHarness(t, o)
	r.push("web:1.0.0", "", "")
	s.start()
	s.awaitJudged()
	for i, method := range []string{"merge", "squash", "rebase"} {
		version := fmt.Sprintf("1.%d.0", i+1)
		r.push("web:"+version, "", "")
		var p emulator.PullRequest
		s.waitEvery(pollInterval, "the pull request with "+version, func() (bool, string) {
			all, err := s.Forge.Pulls(repoName)
			s.must("list pull requests", err)
			for _, p = range all {
				if p.Open && p.Branch == promotion.IncomingBranch("shop", "dev", "web") && strings.Contains(p.Title, version) {
					return true, ""
				}
			}
			return false, fmt.Sprintf("there are %d", len(all))
		})
		_, err := s.Forge.MergePull(repoName, p.Number, "ada", method)
		s.must("merge it", err)
		s.awaitVerified("web", "dev", version)
		s.awaitPromotion("web", "prod", version)
		s.awaitGate("came in by itself, and who made it isn't known: its labels org.opencontainers.image.source and .revision have to name a commit of a repository of acme")
	}
}
