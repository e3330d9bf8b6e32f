package server_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/emulator"
)

// shared is a scene whose components have their tags in elements of one list, in
// the ApplicationSet's own manifest.
type shared struct{ list }

// elements are dev's and qa's of two components, by their tags.
func elements(webDev, webQA, apiDev, apiQA string) string {
	return strings.NewReplacer("W1", webDev, "W2", webQA, "A1", apiDev, "A2", apiQA).Replace(`          - {component: web, env: dev, tag: "W1"}
          - {component: web, env: qa, tag: "W2"} # two of everything
          - {component: api, env: dev, tag: "A1"}
          - {component: api, env: qa, tag: "A2"}
`)
}

func (s shared) set(elements string) string {
	return strings.ReplaceAll(s.list.set(elements), "registry.example/web:", "registry.example/{{ .component }}:")
}

// runs does the ApplicationSet controller's part.
func (s shared) runs(component, env, tag string) {
	s.t.Helper()
	s.must("update the Application", s.ArgoCD.SetOptions("argocd", component+"-"+env, map[string]any{"kustomize": map[string]any{"images": []any{"registry.example/" + component + ":" + tag}}}))
}

// TestTogetherInOneFile moves two components whose fields are in one file, and
// takes them back when somebody else's field in it has changed since.
func TestTogetherInOneFile(t *testing.T) {
	pipeline := strings.NewReplacer(
		`- kustomizeImages: ["registry.example/*"]`, `- yaml: {files: ["shop.yaml"], paths: ["spec.generators[0].list.elements[component={{component}},env={{environment}}].tag"]}`,
		"{{ index .path.segments 1 }}", "{{ .component }}", "{{ .path.basename }}", "{{ .env }}",
	).Replace(together(dev, anyQA))
	s := shared{list{scenery(t, plan{components: []string{"web", "api"}, pipeline: pipeline})}}
	s.commit("linus", "main", "List the environments", map[string]string{listed: s.set(elements("1.0.0", "1.0.0", "1.0.0", "1.0.0"))})
	for _, component := range s.p.components {
		s.runs(component, "dev", "1.0.0")
		s.runs(component, "qa", "1.0.0")
	}
	s.start()
	s.quiet()
	has := func(branch, want string) {
		t.Helper()
		text, _, err := s.Forge.File(repoName, branch, listed)
		s.must("read the list", err)
		if d := cmp.Diff(s.set(want), text); d != "" {
			t.Errorf("%s (-want +got):\n%s", branch, d)
		}
	}
	s.commit("linus", "main", "Release both", map[string]string{listed: s.set(elements("1.1.0", "1.0.0", "2.0.0", "1.0.0"))})
	s.runs("web", "dev", "1.1.0")
	s.runs("api", "dev", "2.0.0")
	p := s.moving("qa", "", "web 1.1.0", "api 2.0.0")
	has(p.Branch, elements("1.1.0", "1.1.0", "2.0.0", "2.0.0"))
	for _, component := range []string{"**web**", "**api**"} {
		if !strings.Contains(p.Body, component) || strings.Contains(p.Body, "{{") || strings.Contains(p.Body, "In files that they share") {
			t.Errorf("the body doesn't say what is whose:\n%s", p.Body)
		}
	}
	// The file changes on the branch: what moves is composed on the newer one.
	s.commit("linus", "main", "Release web again", map[string]string{listed: s.set(elements("1.2.0", "1.0.0", "2.0.0", "1.0.0"))})
	s.runs("web", "dev", "1.2.0")
	p = s.moving("qa", p.Head, "web 1.2.0", "api 2.0.0")
	_, err := s.Forge.MergePull(repoName, p.Number, "linus", "squash")
	s.must("merge", err)
	s.runs("web", "qa", "1.2.0")
	s.runs("api", "qa", "2.0.0")
	s.verified("web", "qa", "1.2.0")
	s.verified("api", "qa", "2.0.0")
	s.commit("linus", "main", "Release web once more", map[string]string{listed: s.set(elements("1.3.0", "1.2.0", "2.0.0", "2.0.0"))})
	s.reacted(p.Number, s.comment(p.Number, "linus", "/liftlock revert wrong"), "+1")
	s.until("the revert is open", func() (bool, string) { return len(s.reverts(train, "qa")) == 1, "" })
	back := s.reverts(train, "qa")[0]
	s.until("it is composed on the newest commit", func() (bool, string) {
		text, _, err := s.Forge.File(repoName, back.Branch, listed)
		return err == nil && strings.Contains(text, "1.3.0"), text
	})
	has(back.Branch, elements("1.3.0", "1.0.0", "2.0.0", "1.0.0"))
	_, err = s.Forge.MergePull(repoName, back.Number, "linus", "rebase")
	s.must("merge the revert", err)
	s.runs("web", "qa", "1.0.0")
	s.runs("api", "qa", "1.0.0")
	s.verified("web", "qa", "1.0.0")
	s.verified("api", "qa", "1.0.0")
	s.says("api", "qa", "was reverted from qa")
}

// TestTogetherOnBranches moves two components on an environment's own branch, and
// takes them back there.
func TestTogetherOnBranches(t *testing.T) {
	s := begin(t, plan{components: []string{"web", "api"}, branches: onBranches(), pipeline: together(dev, gatedQA, prod)})
	s.quiet()
	s.release("web", "1.1.0")
	s.release("api", "2.0.0-late-in-qa")
	p := s.moving("qa", "", "web 1.1.0", "api 2.0.0")
	before, err := s.Forge.Tree(repoName, "env/qa")
	s.must("list qa's branch", err)
	s.approve(p.Number, "ada")
	if p = s.merged(p.Number); p.Base != "env/qa" {
		t.Errorf("#%d is for %s", p.Number, p.Base)
	}
	s.until("the revert of both merges", func() (bool, string) {
		rs := s.reverts(train, "qa")
		_, seen := s.env("api", "qa")
		return len(rs) == 1 && rs[0].Merged && rs[0].Base == "env/qa", seen
	})
	after, err := s.Forge.Tree(repoName, "env/qa")
	s.must("list qa's branch", err)
	if d := cmp.Diff(before, after); d != "" {
		t.Errorf("qa's branch (-before +after):\n%s", d)
	}
	s.idle()
	for _, p := range s.pulls(train, "prod") { // opened before api degraded
		if p.Open || p.Merged {
			t.Errorf("#%d still brings them to prod", p.Number)
		}
	}
}

// TestTakenBranch opens nothing while somebody else has the branch, and builds
// upon what a process that died there pushed.
func TestTakenBranch(t *testing.T) {
	s := scenery(t, plan{components: []string{"web", "api"}, pipeline: together(dev, gatedQA)})
	s.commit("linus", "liftlock/shop/qa/batch", "Mine", map[string]string{"mine.txt": "mine\n"})
	s.start()
	s.quiet()
	s.releases("web", "1.1.0", "api", "2.0.0")
	s.says("web", "qa", "the branch liftlock/shop/qa/batch exists with a commit by")
	s.says("api", "qa", "delete or rename it")
	s.idle()
	if all, err := s.Forge.Pulls(repoName); err != nil || len(all) != 0 {
		t.Fatalf("%d pull requests (%v)", len(all), err)
	}
	s.must("delete it", s.Forge.SetBranch(repoName, "linus", "liftlock/shop/qa/batch", ""))
	s.release("web", "1.2.0") // any news of the repository
	p := s.moving("qa", "", "web 1.2.0", "api 2.0.0")
	if n := slices.IndexFunc(s.pulls(train, "qa"), func(o emulator.PullRequest) bool { return o.Number == p.Number }); n < 0 {
		t.Error("it isn't there")
	}
}
