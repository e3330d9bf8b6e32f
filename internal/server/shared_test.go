package server_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/emulator"
)

const (
	listed = "argocd/shop.yaml"
	// anyQA and anyProd are merged by people.
	anyQA   = "name: qa\nafter: [dev]\nverify: " + verifyFast
	anyProd = "name: prod\nafter: [dev]\nverify: " + verifyFast
)

// list is a scene whose environments have their tags in elements of one list,
// in the ApplicationSet's own manifest.
type list struct{ *scene }

func listScene(t *testing.T, elements string, environments ...string) list {
	pipeline := strings.NewReplacer(
		`- kustomizeImages: ["registry.example/*"]`, `- yaml: {files: ["shop.yaml"], paths: ["spec.generators[0].list.elements[component={{component}},env={{environment}}].tag"]}`,
		"{{ index .path.segments 1 }}", "{{ .component }}", "{{ .path.basename }}", "{{ .env }}",
	).Replace(pipelineOf(nil, environments...))
	s := list{scenery(t, plan{pipeline: pipeline, files: map[string]string{".github/CODEOWNERS": "* @acme/fleet\n"}})}
	s.commit("linus", "main", "List the environments", map[string]string{listed: s.set(elements)})
	for _, env := range s.environments() {
		s.runs(env, "1.0.0")
	}
	return s
}

func (s list) set(elements string) string {
	return s.setText("    - git:\n        repoURL: REPO\n        revision: main\n        directories:\n          - path: apps/*/overlays/*\n", "    - list:\n        elements:\n"+elements,
		"{{ index .path.segments 1 }}-{{ .path.basename }}", "{{ .component }}-{{ .env }}",
		"        path: '{{ .path.path }}'", "        path: 'apps/{{ .component }}/overlays/{{ .env }}'\n        kustomize: {images: ['registry.example/web:{{ .tag }}']}")
}

// runs does the ApplicationSet controller's part.
func (s list) runs(env, tag string) {
	s.t.Helper()
	s.must("update the Application", s.ArgoCD.SetOptions("argocd", "web-"+env, map[string]any{"kustomize": map[string]any{"images": []any{"registry.example/web:" + tag}}}))
}

// tags are the elements' at a branch, in their order.
func (s list) tags(branch string) string {
	s.t.Helper()
	text, _, err := s.Forge.File(repoName, branch, listed)
	s.must("read the list", err)
	var out []string
	for _, m := range regexp.MustCompile(`env: (\w+), .*?tag: "(.*?)"`).FindAllStringSubmatch(text, -1) {
		out = append(out, m[1]+" "+m[2])
	}
	return strings.Join(out, ", ")
}

// TestElementsOfOneList moves a release to two environments at once whose tags are
// in the same file, and takes them back one after the other.
func TestElementsOfOneList(t *testing.T) {
	const elements = `          - {component: web, env: dev, tag: "1.0.0"}
          - {component: web, env: qa, size: small, tag: "1.0.0"} # two of everything
          - {component: web, env: prod, size: large, tag: "1.0.0"}
`
	for _, method := range []string{"merge", "squash", "rebase"} {
		t.Run(method, func(t *testing.T) {
			s := listScene(t, elements, dev, anyQA, anyProd)
			s.start()
			s.quiet()
			s.commit("linus", "main", "Release", map[string]string{listed: s.set(strings.Replace(elements, "1.0.0", "1.1.0", 1))})
			s.runs("dev", "1.1.0")
			q, p := s.opened("web", "qa", "1.1.0"), s.opened("web", "prod", "1.1.0")
			released, err := s.Forge.Tree(repoName, "main")
			s.must("list the tree", err)
			for pull, want := range map[*emulator.PullRequest]string{&q: "dev 1.1.0, qa 1.1.0, prod 1.0.0", &p: "dev 1.1.0, qa 1.0.0, prod 1.1.0"} {
				if got := s.tags(pull.Branch); got != want {
					t.Errorf("#%d makes it %q, want %q", pull.Number, got, want)
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
			s.runs("qa", "1.1.0")
			s.verified("web", "qa", "1.1.0")
			p = s.pullIs(p.Number, "is composed anew", func(now *emulator.PullRequest) bool { return now.Head != p.Head })
			if got := s.tags(p.Branch); got != "dev 1.1.0, qa 1.1.0, prod 1.1.0" {
				t.Errorf("composed anew it makes %q", got)
			}
			if e, _ := s.env("web", "prod"); e == nil || !strings.Contains(e.Name, "1.0.0") || e.LandedBy != "baseline" {
				t.Errorf("prod after qa's merge: %+v", e)
			}
			merge(p.Number)
			s.runs("prod", "1.1.0")
			s.verified("web", "prod", "1.1.0")

			// qa goes back, though prod's element has changed in the file since.
			back := func(env string, of int, want string) {
				t.Helper()
				s.reacted(of, s.comment(of, "linus", "/liftlock revert wrong"), "+1")
				s.until("the revert is open", func() (bool, string) { return len(s.reverts("web", env)) == 1, "" })
				merge(s.reverts("web", env)[0].Number)
				if got := s.tags("main"); got != want {
					t.Errorf("after %s's revert it is %q, want %q", env, got, want)
				}
				s.runs(env, "1.0.0")
				s.is("web", env, "is back", func(e *api.WhyHere) bool { return e.LandedBy == "revert" && strings.Contains(e.Name, "1.0.0") })
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
	s := listScene(t, elements, dev, anyQA)
	// Of every element the set makes a second Application, for a component of its own.
	double := func(elements string) string {
		return strings.NewReplacer("    - list:\n        elements:\n"+elements, "    - matrix:\n        generators:\n          - list:\n              elements:\n"+
			strings.ReplaceAll(elements, "          -", "                -")+"          - list: {elements: [{also: web}, {also: shadow}]}\n",
			"{{ .component }}-{{ .env }}", "{{ .also }}-{{ .env }}").Replace(s.set(elements))
	}
	text, _, err := s.Forge.File(repoName, "main", ".liftlock.yaml")
	s.must("read the pipeline file", err)
	s.commit("linus", "main", "A shadow of everything", map[string]string{
		listed: double(elements), ".liftlock.yaml": strings.NewReplacer("generators[0].list", "generators[0].matrix.generators[0].list", "component={{component}},", "", "{{ .component }}", "{{ .also }}").Replace(text),
	})
	s.start()
	s.quiet()
	released := strings.Replace(elements, "1.0.0", "1.1.0", 1)
	s.commit("linus", "main", "Release", map[string]string{listed: double(released)})
	s.runs("dev", "1.1.0")
	s.says("web", "qa", "argocd/shop.yaml also decides what the ApplicationSets generate for shadow-qa; a promotion may only edit what no target outside qa depends on")
	s.idle()
	if n := len(s.pulls("web", "qa")); n != 0 {
		t.Fatalf("%d pull requests that change another component were opened", n)
	}
	s.commit("linus", "main", "No shadows", map[string]string{listed: strings.Replace(double(released), ", {also: shadow}", "", 1)})
	s.opened("web", "qa", "1.1.0")
}
