package server_test

import (
	"fmt"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/world/emulator"
)

const (
	listFile = "argocd/shop.yaml"
	// anyQA and anyProd are merged by people.
	anyQA   = "name: qa\nafter: [dev]\nverify: " + verifyFast
	anyProd = "name: prod\nafter: [dev]\nverify: " + verifyFast
)

// listHarness is a scene whose environments have their tags in elements of one list,
// in the ApplicationSet's own manifest.
type listHarness struct{ *harness }

func newListHarness(t *testing.T, elements string, environments ...string) listHarness {
	pipeline := strings.NewReplacer(
		`- kustomizeImages: ["registry.example/*"]`, `- yaml: {files: ["shop.yaml"], paths: ["spec.generators[0].list.elements[component={{component}},env={{environment}}].tag"]}`,
		"{{ index .path.segments 1 }}", "{{ .component }}", "{{ .path.basename }}", "{{ .env }}",
	).Replace(pipelineYAML(nil, environments...))
	s := listHarness{newHarness(t, harnessOptions{pipeline: pipeline, files: map[string]string{".github/CODEOWNERS": "* @acme/fleet\n"}})}
	s.commitFiles("linus", "main", "List the environments", map[string]string{listFile: s.appSetOf(elements)})
	for _, env := range s.environmentNames() {
		s.updateApplication(env, "1.0.0")
	}
	return s
}

func (l listHarness) appSetOf(elements string) string {
	return l.appSetYAML("    - git:\n        repoURL: REPO\n        revision: main\n        directories:\n          - path: apps/*/overlays/*\n", "    - list:\n        elements:\n"+elements,
		"{{ index .path.segments 1 }}-{{ .path.basename }}", "{{ .component }}-{{ .env }}",
		"        path: '{{ .path.path }}'", "        path: 'apps/{{ .component }}/overlays/{{ .env }}'\n        kustomize: {images: ['registry.example/web:{{ .tag }}']}")
}

// updateApplication does the ApplicationSet controller's part.
func (l listHarness) updateApplication(env, tag string) {
	l.t.Helper()
	l.must("update the Application", l.ArgoCD.SetOptions("argocd", "web-"+env, map[string]any{"kustomize": map[string]any{"images": []any{"registry.example/web:" + tag}}}))
}

// readTags are the elements' at a branch, in their order.
func (l listHarness) readTags(branch string) string {
	l.t.Helper()
	text, _, err := l.Forge.File(repoName, branch, listFile)
	l.must("read the list", err)
	var out []string
	for _, m := range regexp.MustCompile(`env: (\w+), .*?tag: "(.*?)"`).FindAllStringSubmatch(text, -1) {
		out = append(out, m[1]+" "+m[2])
	}
	return strings.Join(out, ", ")
}

// TestElementsOfOneList moves a release to two environments at once whose tags are
// in the same file, and takes them back one after the other.
func TestElementsOfOneList(t *testing.T) {
	t.Parallel()
	const elements = `          - {component: web, env: dev, tag: "1.0.0"}
          - {component: web, env: qa, size: small, tag: "1.0.0"} # two of everything
          - {component: web, env: prod, size: large, tag: "1.0.0"}
`
	for _, method := range []string{"merge", "squash", "rebase"} {
		t.Run(method, func(t *testing.T) {
			s := newListHarness(t, elements, dev, anyQA, anyProd)
			s.start()
			s.awaitJudged()
			s.commitFiles("linus", "main", "Release", map[string]string{listFile: s.appSetOf(strings.Replace(elements, "1.0.0", "1.1.0", 1))})
			s.updateApplication("dev", "1.1.0")
			q, p := s.awaitPromotion("web", "qa", "1.1.0"), s.awaitPromotion("web", "prod", "1.1.0")
			released, err := s.Forge.Tree(repoName, "main")
			s.must("list the tree", err)
			for pull, want := range map[*emulator.PullRequest]string{&q: "dev 1.1.0, qa 1.1.0, prod 1.0.0", &p: "dev 1.1.0, qa 1.0.0, prod 1.1.0"} {
				if got := s.readTags(pull.Branch); got != want {
					t.Errorf("#%d makes it %q, want %q", pull.Number, got, want)
				}
				target := "`web-" + path.Base(path.Dir(pull.Branch)) + "`"
				if !strings.Contains(pull.Body, target) || !strings.Contains(pull.Body, "whose Application changes: `spec.source.kustomize.images[0]`") {
					t.Errorf("the body doesn't say that %s's Application changes:\n%s", target, pull.Body)
				}
				if strings.Contains(pull.Body, "{{") {
					t.Errorf("the body shows a placeholder:\n%s", pull.Body)
				}
			}
			merge := func(number int) {
				t.Helper()
				_, err := s.Forge.MergePull(repoName, number, "linus", method)
				s.must(fmt.Sprintf("merge #%d", number), err)
			}
			// The second is made anew on the first, which is no news of its own environment.
			merge(q.Number)
			s.updateApplication("qa", "1.1.0")
			s.awaitVerified("web", "qa", "1.1.0")
			p = s.awaitPull(p.Number, "is composed anew", func(now *emulator.PullRequest) bool { return now.Head != p.Head })
			if got := s.readTags(p.Branch); got != "dev 1.1.0, qa 1.1.0, prod 1.1.0" {
				t.Errorf("composed anew it makes %q", got)
			}
			if e, _ := s.readEnvironment("web", "prod"); e == nil || !strings.Contains(e.Name, "1.0.0") || e.LandedBy != "baseline" {
				t.Errorf("prod after qa's merge: %+v", e)
			}
			merge(p.Number)
			s.updateApplication("prod", "1.1.0")
			s.awaitVerified("web", "prod", "1.1.0")

			// qa goes back, though prod's element has changed in the file since.
			back := func(env string, of int, want string) {
				t.Helper()
				s.awaitReaction(of, s.addComment(of, "linus", "/liftlock revert wrong"), "+1")
				s.waitFor("the revert is open", func() (bool, string) { return len(s.listReverts("web", env)) == 1, "" })
				merge(s.listReverts("web", env)[0].Number)
				if got := s.readTags("main"); got != want {
					t.Errorf("after %s's revert it is %q, want %q", env, got, want)
				}
				s.updateApplication(env, "1.0.0")
				s.awaitEnvironment("web", env, "is back", func(e *api.EnvironmentWhy) bool { return e.LandedBy == "revert" && strings.Contains(e.Name, "1.0.0") })
			}
			back("qa", q.Number, "dev 1.1.0, qa 1.0.0, prod 1.1.0")
			back("prod", p.Number, "dev 1.1.0, qa 1.0.0, prod 1.0.0")
			again, err := s.Forge.Tree(repoName, "main")
			s.must("list the tree", err)
			if d := cmp.Diff(released, again); d != "" {
				t.Errorf("the way back (-want +got):\n%s", d)
			}
		})
	}
}

// TestElementOfOthers edits no element that another component's targets are
// generated from too, names them, and goes on at once when they aren't any more.
func TestElementOfOthers(t *testing.T) {
	const elements = `          - {component: web, env: dev, tag: "1.0.0"}
          - {component: web, env: qa, tag: "1.0.0"}
`
	s := newListHarness(t, elements, dev, anyQA)
	// The set makes a second Application of every element, for a component of its own.
	double := func(elements string) string {
		return strings.NewReplacer("    - list:\n        elements:\n"+elements, "    - matrix:\n        generators:\n          - list:\n              elements:\n"+
			strings.ReplaceAll(elements, "          -", "                -")+"          - list: {elements: [{also: web}, {also: shadow}]}\n",
			"{{ .component }}-{{ .env }}", "{{ .also }}-{{ .env }}").Replace(s.appSetOf(elements))
	}
	text, _, err := s.Forge.File(repoName, "main", ".liftlock.yaml")
	s.must("read the pipeline file", err)
	s.commitFiles("linus", "main", "A shadow of everything", map[string]string{
		listFile: double(elements), ".liftlock.yaml": strings.NewReplacer("generators[0].list", "generators[0].matrix.generators[0].list", "component={{component}},", "", "{{ .component }}", "{{ .also }}").Replace(text),
	})
	s.start()
	s.awaitJudged()
	released := strings.Replace(elements, "1.0.0", "1.1.0", 1)
	s.commitFiles("linus", "main", "Release", map[string]string{listFile: double(released)})
	s.updateApplication("dev", "1.1.0")
	s.awaitReason("web", "qa", "argocd/shop.yaml also decides what the ApplicationSets generate for shadow-qa; a promotion may only edit what no target outside qa depends on")
	s.awaitIdle()
	if n := len(s.listPulls("web", "qa")); n != 0 {
		t.Fatalf("%d pull requests that change another component were opened", n)
	}
	s.commitFiles("linus", "main", "No shadows", map[string]string{listFile: strings.Replace(double(released), ", {also: shadow}", "", 1)})
	s.awaitPromotion("web", "qa", "1.1.0")
}
