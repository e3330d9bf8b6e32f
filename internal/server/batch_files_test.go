package server_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/world/emulator"
)

// sharedListHarness is a scene whose components have their tags in elements of one list, in
// the ApplicationSet's own manifest.
type sharedListHarness struct{ listHarness }

// elementsYAML are dev's and qa's of two components, by their tags.
func elementsYAML(webDev, webQA, apiDev, apiQA string) string {
	return strings.NewReplacer("W1", webDev, "W2", webQA, "A1", apiDev, "A2", apiQA).Replace(`          - {component: web, env: dev, tag: "W1"}
          - {component: web, env: qa, tag: "W2"} # two of everything
          - {component: api, env: dev, tag: "A1"}
          - {component: api, env: qa, tag: "A2"}
`)
}

func (s sharedListHarness) appSetOf(elements string) string {
	return strings.ReplaceAll(s.listHarness.appSetOf(elements), "registry.example/web:", "registry.example/{{ .component }}:")
}

// updateApplication does the ApplicationSet controller's part.
func (s sharedListHarness) updateApplication(component, env, tag string) {
	s.t.Helper()
	s.must("update the Application", s.ArgoCD.SetOptions("argocd", component+"-"+env, map[string]any{"kustomize": map[string]any{"images": []any{"registry.example/" + component + ":" + tag}}}))
}

// TestBatchInOneFile moves two components whose fields are in one file, and reverts them when
// another component's field in it has changed since.
func TestBatchInOneFile(t *testing.T) {
	pipeline := strings.NewReplacer(
		`- kustomizeImages: ["registry.example/*"]`, `- yaml: {files: ["shop.yaml"], paths: ["spec.generators[0].list.elements[component={{component}},env={{environment}}].tag"]}`,
		"{{ index .path.segments 1 }}", "{{ .component }}", "{{ .path.basename }}", "{{ .env }}",
	).Replace(batchPipeline(dev, anyQA))
	s := sharedListHarness{listHarness{newHarness(t, harnessOptions{components: []string{"web", "api"}, pipeline: pipeline})}}
	s.commitFiles("linus", "main", "List the environments", map[string]string{listFile: s.appSetOf(elementsYAML("1.0.0", "1.0.0", "1.0.0", "1.0.0"))})
	for _, component := range s.opts.components {
		s.updateApplication(component, "dev", "1.0.0")
		s.updateApplication(component, "qa", "1.0.0")
	}
	s.start()
	s.awaitJudged()
	has := func(branch, want string) {
		t.Helper()
		text, _, err := s.Forge.File(repoName, branch, listFile)
		s.must("read the list", err)
		if d := cmp.Diff(s.appSetOf(want), text); d != "" {
			t.Errorf("%s (-want +got):\n%s", branch, d)
		}
	}
	s.commitFiles("linus", "main", "Release both", map[string]string{listFile: s.appSetOf(elementsYAML("1.1.0", "1.0.0", "2.0.0", "1.0.0"))})
	s.updateApplication("web", "dev", "1.1.0")
	s.updateApplication("api", "dev", "2.0.0")
	p := s.awaitBatchPull("qa", "", "web 1.1.0", "api 2.0.0")
	has(p.Branch, elementsYAML("1.1.0", "1.1.0", "2.0.0", "2.0.0"))
	for _, component := range []string{"\n| web | `", "\n| api | `"} {
		if !strings.Contains(p.Body, component) || strings.Contains(p.Body, "{{") || strings.Contains(p.Body, "| *shared* |") {
			t.Errorf("the body doesn't say what is whose:\n%s", p.Body)
		}
	}
	// The file changes on the branch: what moves is composed on the newer one.
	s.commitFiles("linus", "main", "Release web again", map[string]string{listFile: s.appSetOf(elementsYAML("1.2.0", "1.0.0", "2.0.0", "1.0.0"))})
	s.updateApplication("web", "dev", "1.2.0")
	p = s.awaitBatchPull("qa", p.Head, "web 1.2.0", "api 2.0.0")
	_, err := s.Forge.MergePull(repoName, p.Number, "linus", "squash")
	s.must("merge", err)
	s.updateApplication("web", "qa", "1.2.0")
	s.updateApplication("api", "qa", "2.0.0")
	s.awaitVerified("web", "qa", "1.2.0")
	s.awaitVerified("api", "qa", "2.0.0")
	s.commitFiles("linus", "main", "Release web once more", map[string]string{listFile: s.appSetOf(elementsYAML("1.3.0", "1.2.0", "2.0.0", "2.0.0"))})
	s.awaitReaction(p.Number, s.addComment(p.Number, "linus", "/liftlock revert wrong"), "+1")
	s.waitFor("the revert is open", func() (bool, string) { return len(s.listReverts(batchName, "qa")) == 1, "" })
	back := s.listReverts(batchName, "qa")[0]
	s.waitFor("it is composed on the newest commit", func() (bool, string) {
		text, _, err := s.Forge.File(repoName, back.Branch, listFile)
		return err == nil && strings.Contains(text, "1.3.0"), text
	})
	has(back.Branch, elementsYAML("1.3.0", "1.0.0", "2.0.0", "1.0.0"))
	_, err = s.Forge.MergePull(repoName, back.Number, "linus", "rebase")
	s.must("merge the revert", err)
	s.updateApplication("web", "qa", "1.0.0")
	s.updateApplication("api", "qa", "1.0.0")
	s.awaitVerified("web", "qa", "1.0.0")
	s.awaitVerified("api", "qa", "1.0.0")
	s.awaitReason("api", "qa", "was reverted from qa")
}

// TestBatchOnBranches moves two components on an environment's own branch, and
// takes them back there.
func TestBatchOnBranches(t *testing.T) {
	s := startHarness(t, harnessOptions{components: []string{"web", "api"}, branches: environmentBranches(), pipeline: batchPipeline(dev, gatedQA, prod)})
	s.awaitJudged()
	s.commitRelease("web", "1.1.0")
	s.commitRelease("api", "2.0.0-late-in-qa")
	p := s.awaitBatchPull("qa", "", "web 1.1.0", "api 2.0.0")
	before, err := s.Forge.Tree(repoName, "env/qa")
	s.must("list qa's branch", err)
	s.approve(p.Number, "ada")
	if p = s.awaitMerged(p.Number); p.Base != "env/qa" {
		t.Errorf("#%d is for %s", p.Number, p.Base)
	}
	s.waitFor("the revert of both merges", func() (bool, string) {
		rs := s.listReverts(batchName, "qa")
		_, seen := s.readEnvironment("api", "qa")
		return len(rs) == 1 && rs[0].Merged && rs[0].Base == "env/qa", seen
	})
	after, err := s.Forge.Tree(repoName, "env/qa")
	s.must("list qa's branch", err)
	if d := cmp.Diff(before, after); d != "" {
		t.Errorf("qa's branch (-before +after):\n%s", d)
	}
	s.awaitIdle()
	for _, p := range s.listPulls(batchName, "prod") { // opened before api degraded
		if p.Open || p.Merged {
			t.Errorf("#%d still brings them to prod", p.Number)
		}
	}
}

// TestBranchInUse opens nothing while somebody else has the branch, and builds
// upon what a process that died there pushed.
func TestBranchInUse(t *testing.T) {
	s := newHarness(t, harnessOptions{components: []string{"web", "api"}, pipeline: batchPipeline(dev, gatedQA)})
	s.commitFiles("linus", "liftlock/shop/qa/batch", "Mine", map[string]string{"mine.txt": "mine\n"})
	s.start()
	s.awaitJudged()
	s.commitReleases("web", "1.1.0", "api", "2.0.0")
	s.awaitReason("web", "qa", "the branch liftlock/shop/qa/batch exists with a commit by")
	s.awaitReason("api", "qa", "delete or rename it")
	s.awaitIdle()
	if all, err := s.ownPulls(); err != nil || len(all) != 0 {
		t.Fatalf("%d pull requests (%v)", len(all), err)
	}
	s.must("delete it", s.Forge.SetBranch(repoName, "linus", "liftlock/shop/qa/batch", ""))
	s.commitRelease("web", "1.2.0") // any news of the repository
	p := s.awaitBatchPull("qa", "", "web 1.2.0", "api 2.0.0")
	if n := slices.IndexFunc(s.listPulls(batchName, "qa"), func(o emulator.PullRequest) bool { return o.Number == p.Number }); n < 0 {
		t.Error("it isn't there")
	}
}
