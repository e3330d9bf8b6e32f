//go:build e2e

package e2e

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"code.gitea.io/sdk/gitea"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion"
)

// byList makes an Application of one component for every environment of a list.
const byList = `apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: PREFIX, namespace: argocd}
spec:
  goTemplate: true
  goTemplateOptions: ["missingkey=error"]
  generators:
    - list:
        elements:
          - {env: dev, branch: DEV}
          - {env: qa, branch: QA}
          - {env: prod, branch: main}
  template:
    metadata:
      name: 'PREFIX-web-{{ .env }}'
    spec:
      project: default
      source: {repoURL: REPO, targetRevision: '{{ .branch }}', path: apps/web}
      destination: {server: https://kubernetes.default.svc, namespace: 'PREFIX-{{ .env }}'}
      syncPolicy: {automated: {prune: true}, syncOptions: [CreateNamespace=true]}
`

const listPipeline = `apiVersion: liftlock.dev/v1alpha1
kind: Pipeline
metadata:
  name: shop
spec:
  applicationSets:
    - path: argocd/*.yaml
  component: web
  environment: '{{ .env }}'
`

// Each environment lives on a branch of its own: a release goes from branch to
// branch, what is a branch's own stays, and a broken one comes back.
func TestReleaseTravelsFromBranchToBranch(t *testing.T) {
	t.Parallel()
	onBranch := func(env string) map[string]string {
		return map[string]string{
			"apps/web/kustomization.yaml": strings.Replace(kustomizationYAML("web", env, []string{"web"}), "../../base", "deployment.yaml", 1),
			"apps/web/deployment.yaml":    deploymentYAML("web", []string{"web"}),
			"OWNERS":                      "the people of " + env + "\n",
		}
	}
	environments := strings.NewReplacer("- name: dev\n", "- name: dev\n      branch: env/dev\n", "- name: qa\n", "- name: qa\n      branch: env/qa\n",
		"- name: prod\n", "- name: prod\n      branch: main\n").Replace(threeSteps)
	main := onBranch("prod")
	main[".liftlock.yaml"] = listPipeline + "  layout: branches\n  carry:\n    - kustomizeImages: [\"registry.example/*\"]\n  environments:\n" + environments
	f := repoFixture{plain: main, branches: map[string]map[string]string{"env/dev": onBranch("dev"), "env/qa": onBranch("qa")},
		sets: map[string]string{"shop.yaml": strings.NewReplacer("DEV", "env/dev", "QA", "env/qa").Replace(byList)}}
	s := startScenario(t, normalCluster, "branches", f, nil)
	const file = "apps/web/kustomization.yaml"
	release := func(tag string) {
		s.pushFileTo("env/dev", "Release web "+tag, file, setTag("web", tag))
	}

	release("1.1.0")
	qa := s.awaitMergedInto("env/qa", "qa", 0)
	s.checkOneLineIn(*qa.MergedCommitID+"^1", *qa.MergedCommitID, file)
	s.awaitWebState("qa", promotion.Verified)
	s.awaitRunning("web", "qa", "1.1.0")
	prod := s.awaitPull(promotionBranch("web", "prod"), "prod's pull request is open", 0, isOpenOnto("main"))
	s.approve(ada, prod)
	s.approve(grace, prod)
	prod = s.awaitMergedInto("main", "prod", 0)
	s.checkOneLineIn(*prod.MergedCommitID+"^1", *prod.MergedCommitID, file)
	s.awaitWebState("prod", promotion.Verified)
	s.awaitRunning("web", "prod", "1.1.0")

	before := s.readTree("env/qa")
	release("1.2.0-broken-in-qa")
	s.awaitMergedInto("env/qa", "qa", qa.Index)
	s.awaitPull(revertPrefix("web", "qa"), "the revert in qa is merged", 0, isMerged)
	if after := s.readTree("env/qa"); after != before {
		t.Errorf("the revert made the tree %s of env/qa, it was %s", after, before)
	}
	s.awaitWebState("qa", promotion.Verified)
	s.awaitRunning("web", "qa", "1.1.0")
}

// All environments read one values file, in which each has a key of its own.
func TestReleaseTravelsFromKeyToKeyOfOneFile(t *testing.T) {
	t.Parallel()
	const file = "apps/web/values.yaml"
	plain := map[string]string{
		".liftlock.yaml":      listPipeline + "  carry:\n    - yaml: {files: [values.yaml], paths: ['tags.{{environment}}']}\n  environments:\n" + threeSteps,
		"apps/web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 0.1.0\n",
		file:                  "# one for all\nenv: none\ntags:\n  dev: 1.0.0\n  qa: 1.0.0   # the release\n  prod: 1.0.0\n",
		"apps/web/templates/deployment.yaml": strings.Replace(deploymentYAML("web", []string{"web"}), "image: registry.example/web",
			"image: registry.example/web:{{ index .Values.tags .Values.env }}", 1),
	}
	set := strings.NewReplacer("DEV", "main", "QA", "main", "path: apps/web}", "path: apps/web, helm: {parameters: [{name: env, value: '{{ .env }}'}]}}").Replace(byList)
	s := startScenario(t, normalCluster, "keys", repoFixture{plain: plain, sets: map[string]string{"shop.yaml": set}}, nil)
	release := func(tag string) {
		s.pushFileTo("main", "Release web "+tag, file, func(text string) string {
			return regexp.MustCompile(`(?m)^  dev: .*$`).ReplaceAllString(text, "  dev: "+tag)
		})
	}

	release("1.1.0")
	qa := s.awaitMergedInto("main", "qa", 0)
	s.checkOneLineIn(*qa.MergedCommitID+"^1", *qa.MergedCommitID, file)
	s.awaitWebState("qa", promotion.Verified)
	s.awaitRunning("web", "qa", "1.1.0")
	s.awaitRunning("web", "prod", "1.0.0")
	prod := s.awaitPull(promotionBranch("web", "prod"), "prod's pull request is open", 0, isOpenOnto("main"))
	s.approve(ada, prod)
	s.approve(grace, prod)
	s.awaitMergedInto("main", "prod", 0)
	s.awaitWebState("prod", promotion.Verified)
	s.awaitRunning("web", "prod", "1.1.0")

	release("1.2.0-broken-in-qa")
	before := *s.awaitMergedInto("main", "qa", qa.Index).MergedCommitID + "^1"
	revert := s.awaitPull(revertPrefix("web", "qa"), "the revert in qa is merged", 0, isMerged)
	s.runGit("fetch", "-q", "origin")
	if out := s.runGit("diff", before, *revert.MergedCommitID, "--", file); out != "" {
		t.Errorf("the revert did not restore the file:\n%s", out)
	}
	s.awaitWebState("qa", promotion.Verified)
	s.awaitRunning("web", "qa", "1.1.0")
	s.awaitRunning("web", "prod", "1.1.0")
}

// pushFileTo edits one file on a branch.
func (s *scenario) pushFileTo(branch, message, file string, change edit) {
	s.Helper()
	commit, err := s.clone.push(s.ctx, s.cluster.accounts[dev], branch, branch, message, map[string]edit{file: change})
	s.must(err)
	s.Logf("        %s pushes to %s: %s: %.10s", dev, branch, message, commit)
}

// awaitMergedInto waits until web's newest pull request into an environment is merged
// into a branch.
func (s *scenario) awaitMergedInto(base, env string, after int64) *gitea.PullRequest {
	s.Helper()
	p := s.awaitPull(promotionBranch("web", env), env+"'s pull request is merged", after, isMerged)
	if p.Base.Ref != base {
		s.Errorf("#%d was merged into %s, wanted %s", p.Index, p.Base.Ref, base)
	}
	return p
}

func isOpenOnto(base string) func(*gitea.PullRequest) error {
	return func(p *gitea.PullRequest) error {
		if p.State != gitea.StateOpen || p.Base.Ref != base {
			return fmt.Errorf("#%d is %s, onto %s", p.Index, p.State, p.Base.Ref)
		}
		return nil
	}
}

// awaitWebState waits until web's release in an environment is in the state.
func (s *scenario) awaitWebState(env, state string) {
	s.Helper()
	s.awaitWhy("web", env, "it is "+state, func(e *api.EnvironmentWhy) error {
		if e.State != state {
			return fmt.Errorf("it is %s", e.State)
		}
		return nil
	})
}

// readTree is a branch's tree, fetched just now.
func (s *scenario) readTree(branch string) string {
	s.Helper()
	s.runGit("fetch", "-q", "origin")
	return strings.TrimSpace(s.runGit("rev-parse", "origin/"+branch+"^{tree}"))
}
