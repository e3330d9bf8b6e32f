package server_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/world/emulator"
)

// environmentBranches are three environments, the last of which lives on the tracked branch.
func environmentBranches() map[string]string {
	return map[string]string{"dev": "env/dev", "qa": "env/qa", "prod": "main"}
}

// withBranches makes a pipeline of directories one of branches.
func withBranches(text string, branches map[string]string) string {
	text = strings.Replace(text, "spec:\n", "spec:\n  layout: branches\n", 1)
	text = strings.NewReplacer("'{{ index .path.segments 1 }}'", "'{{ .component }}'", "'{{ .path.basename }}'", "'{{ .env }}'").Replace(text)
	for env, branch := range branches {
		text = strings.Replace(text, "- name: "+env+"\n", "- name: "+env+"\n      branch: "+branch+"\n", 1)
	}
	return text
}

// branchOf is where an environment lives.
func (ha *harness) branchOf(env string) string {
	if b := ha.opts.branches[env]; b != "" {
		return b
	}
	return "main"
}

// overlayDir is the folder of a component's overlay there: the same on every branch.
func (ha *harness) overlayDir(component, env string) string {
	if ha.opts.branches != nil {
		return "apps/" + component
	}
	return overlayPath(component, env)
}

// applicationDir is the folder of its Application.
func (ha *harness) applicationDir(component, env string) string {
	if ha.opts.folder != nil {
		return ha.opts.folder(component, env)
	}
	return ha.overlayDir(component, env)
}

// branchFiles are the first files of a branch; the rules are on main.
func (ha *harness) branchFiles(branch string) map[string]string {
	out := map[string]string{}
	if branch == "main" {
		var elements strings.Builder
		for _, c := range ha.opts.components {
			for _, env := range ha.environmentNames() {
				elements.WriteString("          - {component: " + c + ", env: " + env + ", branch: " + ha.branchOf(env) + "}\n")
			}
		}
		out["argocd/shop.yaml"] = strings.NewReplacer("REPO", ha.Forge.URL()+"/"+repoName+".git", "ELEMENTS", elements.String()).Replace(branchSet)
		out[".liftlock.yaml"] = ha.opts.pipeline
	}
	for _, env := range ha.environmentNames() {
		if ha.branchOf(env) != branch {
			continue
		}
		for _, c := range ha.opts.components {
			dir := ha.overlayDir(c, env)
			out[dir+"/deployment.yaml"] = strings.ReplaceAll(deploymentTemplate, "NAME", c)
			out[dir+"/replicas-of-"+env+".txt"] = "what is " + env + "'s own\n"
			out[dir+"/kustomization.yaml"] = "namePrefix: " + env + "-\n" + strings.NewReplacer("../../base", "deployment.yaml", "NAME", c, "TAG", ha.opts.tag(c, env)).Replace(kustomizationTemplate)
		}
	}
	for name, text := range ha.opts.files {
		if env, file, of := strings.Cut(name, ":"); !of && branch == "main" {
			out[name] = text
		} else if of && ha.branchOf(env) == branch {
			out[file] = text
		}
	}
	return out
}

// createBranches makes the environments' branches, but main.
func (ha *harness) createBranches() {
	ha.t.Helper()
	main, err := ha.Forge.Tree(repoName, "main")
	ha.must("list main", err)
	var stale []string
	for name := range main {
		stale = append(stale, name)
	}
	slices.Sort(stale)
	for _, env := range ha.environmentNames() {
		if ha.opts.branches == nil || ha.branchOf(env) == "main" {
			continue
		}
		files := ha.branchFiles(ha.branchOf(env))
		_, err := ha.Forge.CommitAs(repoName, "linus", ha.branchOf(env), "Environment "+env, files,
			slices.DeleteFunc(slices.Clone(stale), func(name string) bool { _, kept := files[name]; return kept })...)
		ha.must("make the branch of "+env, err)
	}
}

const branchSet = `apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata:
  name: shop
  namespace: argocd
spec:
  goTemplate: true
  goTemplateOptions: ["missingkey=error"]
  generators:
    - list:
        elements:
ELEMENTS
  template:
    metadata:
      name: '{{ .component }}-{{ .env }}'
    spec:
      project: default
      source:
        repoURL: REPO
        targetRevision: '{{ .branch }}'
        path: 'apps/{{ .component }}'
      destination:
        server: https://kubernetes.default.svc
        namespace: '{{ .component }}-{{ .env }}'
      syncPolicy:
        automated: {}
`

// TestStoryOnBranches is the story where each environment lives on a branch of its own. It also
// holds that every pull request is for the branch of its environment, and that the rest of each
// branch stays as it is. A restart without a database finds nothing to do.
func TestStoryOnBranches(t *testing.T) { testStoryOnBranches(t, forgeFace()) }

func testStoryOnBranches(t *testing.T, face emulator.Face) {
	s := startHarness(t, harnessOptions{face: face, branches: environmentBranches()})
	before := map[string]string{}
	for _, env := range s.environmentNames() {
		text, _, err := s.Forge.File(repoName, s.branchOf(env), s.overlayDir("web", env)+"/kustomization.yaml")
		s.must("read an overlay", err)
		before[env] = text
	}
	s.runStory()
	for _, env := range s.environmentNames() {
		text, _, err := s.Forge.File(repoName, s.branchOf(env), s.overlayDir("web", env)+"/kustomization.yaml")
		s.must("read an overlay", err)
		if want := strings.Replace(before[env], "1.0.0", "1.1.0", 1); text != want {
			t.Errorf("the overlay of %s is\n%s\nwant\n%s", env, text, want)
		}
	}
	for _, env := range []string{"qa", "prod"} {
		p := s.listPulls("web", env)[0]
		if p.Base != s.branchOf(env) {
			t.Errorf("#%d is for %s, want %s", p.Number, p.Base, s.branchOf(env))
		}
	}
	s.awaitIdle()
	s.deleteDatabase()
	s.start()
	s.awaitJudged()
	s.awaitIdle()
	if all, err := s.ownPulls(); err != nil || len(all) != 2 {
		t.Errorf("after the database was lost there are %d pull requests (%v), want 2", len(all), err)
	}
	for _, env := range s.environmentNames() {
		s.awaitEnvironment("web", env, "carries what it did", func(e *api.EnvironmentWhy) bool { return strings.Contains(e.Name, "1.1.0") })
	}
}

// TestPollingFollowsBranches finds without webhooks what was pushed to an
// environment's branch.
func TestPollingFollowsBranches(t *testing.T) {
	s := startHarness(t, harnessOptions{branches: environmentBranches(), noHook: true, poll: 100 * time.Millisecond})
	s.awaitJudged()
	s.commitRelease("web", "1.1.0")
	if p := s.awaitPromotion("web", "qa", "1.1.0"); p.Base != "env/qa" {
		t.Errorf("#%d is for %s", p.Number, p.Base)
	}
}

// TestRevertOnABranch takes a release that degrades qa back, on qa's branch.
func TestRevertOnABranch(t *testing.T) {
	s := startHarness(t, harnessOptions{branches: environmentBranches()})
	s.awaitJudged()
	before, err := s.Forge.Tree(repoName, "env/qa")
	s.must("list qa's branch", err)
	const bad = "1.1.0-late-in-qa"
	s.commitRelease("web", bad)
	s.awaitMerged(s.awaitPromotion("web", "qa", bad).Number)
	s.awaitEnvironment("web", "qa", "has the release of before", func(e *api.EnvironmentWhy) bool {
		return e.LandedBy == promotion.ByRevert && strings.Contains(e.Name, "1.0.0")
	})
	if p := s.listReverts("web", "qa")[0]; p.Base != "env/qa" || !p.Merged {
		t.Errorf("the revert #%d is for %s, merged %t", p.Number, p.Base, p.Merged)
	}
	after, err := s.Forge.Tree(repoName, "env/qa")
	s.must("list qa's branch", err)
	if d := cmp.Diff(before, after); d != "" {
		t.Errorf("qa's branch (-before +after):\n%s", d)
	}
	s.awaitIdle()
	for _, p := range s.listPulls("web", "prod") { // opened before qa degraded
		if p.Open || p.Merged {
			t.Errorf("#%d still brings it to prod", p.Number)
		}
	}
}

// TestImpactOnBranches says on people's pull requests into environments'
// branches what they do: to the targets that follow the branch, and to no others.
func TestImpactOnBranches(t *testing.T) {
	s := startHarness(t, harnessOptions{branches: environmentBranches()})
	s.awaitJudged()
	theirs := func(base, name string, files map[string]string) int {
		t.Helper()
		head, err := s.Forge.Head(repoName, base)
		s.must("read a branch", err)
		s.must("make a branch", s.Forge.SetBranch(repoName, "linus", name, head))
		s.commitFiles("linus", name, "Change "+name, files)
		n, err := s.Forge.OpenPull(repoName, "linus", name, base, "Change "+name, "")
		s.must("open a pull request", err)
		return n
	}
	change := map[string]string{"apps/web/deployment.yaml": strings.ReplaceAll(deploymentTemplate, "NAME", "web") + "          imagePullPolicy: Always\n"}
	s.awaitImpactCheck(theirs("env/qa", "in-qa", change), "success", "touches qa: 1 changed", "| qa | changed | `web-qa` |", "of `env/qa`")
	s.awaitImpactCheck(theirs("main", "in-prod", change), "success", "touches prod: 1 changed", "| prod | changed | `web-prod` |")
	s.awaitImpactCheck(theirs("env/dev", "rules", map[string]string{".liftlock.yaml": "kind: Nonsense\n", "argocd/shop.yaml": "nonsense: [\n"}), "success", "touches no target")
	otherBranch := theirs("env/dev", "feature", change)
	s.awaitImpactCheck(otherBranch, "success", "touches dev: 1 changed", "web-dev")
	// A pull request into a branch that no environment lives on is ignored.
	nobody := theirs("feature", "on-top", map[string]string{"apps/web/x": "x\n"})
	s.awaitIdle()
	if p := s.readPull(nobody); len(p.Statuses) != 0 || len(p.Comments) != 0 {
		t.Errorf("#%d is judged: %+v, %+v", nobody, p.Statuses, p.Comments)
	}
}

// TestABranchThatIsNotThere goes on elsewhere without qa's branch, says what is
// missing, and takes qa up when somebody creates it; later the branch is rewritten.
func TestABranchThatIsNotThere(t *testing.T) {
	s := newHarness(t, harnessOptions{branches: environmentBranches(), components: []string{"web"}, pipeline: pipelineYAML(nil, dev, manualQA, strings.Replace(prod, "after: [qa]", "after: [dev]", 1))})
	tip, err := s.Forge.Head(repoName, "env/qa")
	s.must("read qa's branch", err)
	s.must("delete qa's branch", s.Forge.SetBranch(repoName, "linus", "env/qa", ""))
	s.start()
	s.awaitJudged()
	s.awaitEnvironment("web", "qa", "says what is missing", func(e *api.EnvironmentWhy) bool {
		return strings.Contains(e.Text, "has no branch env/qa") && strings.Contains(e.Text, "git push origin main:refs/heads/env/qa")
	})
	s.commitRelease("web", "1.1.0")
	s.awaitPromotion("web", "prod", "1.1.0")
	if n := len(s.listPulls("web", "qa")); n != 0 {
		t.Errorf("%d pull requests are for a branch that isn't there", n)
	}
	s.must("create qa's branch", s.Forge.SetBranch(repoName, "linus", "env/qa", tip))
	p := s.awaitPromotion("web", "qa", "1.1.0")
	if _, err := s.Forge.MergePull(repoName, p.Number, "linus", "merge"); err != nil {
		t.Fatal(err)
	}
	s.awaitVerified("web", "qa", "1.1.0")
	s.must("rewrite qa's branch", s.Forge.SetBranch(repoName, "linus", "env/qa", tip))
	s.awaitEnvironment("web", "qa", "is what the rewritten branch says", func(e *api.EnvironmentWhy) bool { return strings.Contains(e.Name, "1.0.0") })
	s.awaitIdle()
}

// TestAnOverlayThatGeneratorsRead carries a Helm parameter and a chart's version
// in a file on each environment's branch, which the ApplicationSet reads there.
func TestAnOverlayThatGeneratorsRead(t *testing.T) {
	s := newHarness(t, harnessOptions{branches: map[string]string{"dev": "env/dev", "qa": "env/qa"},
		pipeline: pipelineYAML([]string{`  - json: {files: [config.json], paths: [chart.version, tag]}`}, dev, qa),
		files:    map[string]string{"dev:envs/web/config.json": `{"tag": "a", "chart": {"version": "1.0.0"}, "size": 1}`, "qa:envs/web/config.json": "{\"size\": 3,\n  \"chart\": {\"version\": \"1.0.0\"}, \"tag\": \"a\"}\n"},
	})
	set := strings.NewReplacer("REPO", s.Forge.URL()+"/"+repoName+".git", `    - list:
        elements:
ELEMENTS
`, `    - matrix:
        generators:
          - list: {elements: [{component: web, env: dev, branch: env/dev}, {component: web, env: qa, branch: env/qa}]}
          - git: {repoURL: `+s.Forge.URL()+"/"+repoName+`.git, revision: '{{ .branch }}', files: [{path: envs/*/config.json}]}
`, "path: 'apps/{{ .component }}'\n", "path: 'apps/{{ .component }}'\n        kustomize: {commonAnnotations: {tag: '{{ .tag }}', chart: '{{ .chart.version }}'}}\n").Replace(branchSet)
	s.commitFiles("linus", "main", "Read the environments' files", map[string]string{"argocd/shop.yaml": set})
	options := func(tag, chart string) map[string]any {
		return map[string]any{"kustomize": map[string]any{"commonAnnotations": map[string]any{"tag": tag, "chart": chart}}}
	}
	for _, env := range s.environmentNames() {
		s.must("set the options of "+env, s.ArgoCD.SetOptions("argocd", "web-"+env, options("a", "1.0.0")))
	}
	s.start()
	s.awaitJudged()
	s.commitFiles("linus", "env/dev", "Release b", map[string]string{"envs/web/config.json": `{"tag": "b", "chart": {"version": "1.1.0"}, "size": 1}`})
	s.must("generate dev's Application", s.ArgoCD.SetOptions("argocd", "web-dev", options("b", "1.1.0")))
	s.waitFor("it is merged into qa's branch", func() (bool, string) {
		all := s.listPulls("web", "qa")
		_, why := s.readEnvironment("web", "qa")
		return len(all) == 1 && all[0].Merged && all[0].Base == "env/qa", why
	})
	text, _, err := s.Forge.File(repoName, "env/qa", "envs/web/config.json")
	s.must("read qa's file", err)
	if want := "{\"size\": 3,\n  \"chart\": {\"version\": \"1.1.0\"}, \"tag\": \"b\"}\n"; text != want {
		t.Errorf("qa's file is %q, want %q", text, want)
	}
	s.must("generate qa's Application", s.ArgoCD.SetOptions("argocd", "web-qa", options("b", "1.1.0")))
	s.awaitEnvironment("web", "qa", "is verified", func(e *api.EnvironmentWhy) bool {
		return e.State == promotion.Verified && strings.Contains(e.Name, "1.1.0")
	})
}

// TestATargetThatFollowsAnotherBranch stops its component only, and says why.
func TestATargetThatFollowsAnotherBranch(t *testing.T) {
	s := newHarness(t, harnessOptions{branches: environmentBranches(), components: []string{"api", "web"}})
	set, _, err := s.Forge.File(repoName, "main", "argocd/shop.yaml")
	s.must("read the set", err)
	s.commitFiles("linus", "main", "Mix the branches up", map[string]string{"argocd/shop.yaml": strings.Replace(set, "{component: api, env: qa, branch: env/qa}", "{component: api, env: qa, branch: env/prod}", 1)})
	s.start()
	s.awaitJudged()
	s.commitRelease("web", "1.1.0")
	s.commitRelease("api", "1.1.0")
	s.awaitVerified("web", "qa", "1.1.0")
	s.awaitReason("api", "qa", `api-qa: it follows targetRevision "env/prod", and environment qa lives on the branch env/qa`)
	if n := len(s.listPulls("api", "qa")); n != 0 {
		t.Errorf("%d pull requests for a component whose targets are not known", n)
	}
}
