package server_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/world/argoemulator"
	"github.com/liftlock/liftlock/internal/world/emulator"
)

// appSetYAML is the scene's ApplicationSet, changed by pairs of old and new text.
func (ha *harness) appSetYAML(changes ...string) string {
	return strings.NewReplacer(append([]string{"REPO", ha.Forge.URL() + "/" + repoName + ".git"}, changes...)...).Replace(applicationSetTemplate)
}

// applyAppSet makes an ApplicationSet an object of the cluster.
func (ha *harness) applyAppSet(text string) {
	ha.t.Helper()
	var x map[string]any
	ha.must("read the ApplicationSet", yaml.Unmarshal([]byte(text), &x))
	ha.must("add the ApplicationSet", ha.ArgoCD.AddObject("applicationsets", x))
}

// addCluster adds a cluster Secret.
func (ha *harness) addCluster(name, server, env string) {
	ha.t.Helper()
	plain := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	ha.must("add a cluster", ha.ArgoCD.AddObject("secrets", map[string]any{
		"metadata": map[string]any{"name": "cluster-" + name, "namespace": "argocd", "labels": map[string]any{"argocd.argoproj.io/secret-type": "cluster", "env": env}},
		"data":     map[string]any{"name": plain(name), "server": plain(server), "config": plain(`{"bearerToken":"a-clusters-token"}`)},
	}))
}

// promoteToProd takes a release from dev to prod.
func (ha *harness) promoteToProd(component, tag string) {
	ha.t.Helper()
	ha.commitRelease(component, tag)
	ha.awaitMerged(ha.awaitPromotion(component, "qa", tag).Number)
	p := ha.awaitPromotion(component, "prod", tag)
	ha.approve(p.Number, "ada")
	ha.approve(p.Number, "grace")
	ha.awaitMerged(p.Number)
	ha.awaitVerified(component, "prod", tag)
}

const liveAppSets = "  applicationSets:\n    - live: {argocd: hub, namespace: argocd, name: shop}\n"

// live is a pipeline file whose targets come from the live ApplicationSet.
func livePipeline() string {
	return strings.Replace(pipelineYAML(nil), "  applicationSets:\n    - path: argocd/*.yaml\n", liveAppSets, 1)
}

// TestNewerApplicationSet has fields that aren't known here: its live
// Applications are the targets.
func TestNewerApplicationSet(t *testing.T) {
	s := newHarness(t, harnessOptions{})
	newer := s.appSetYAML("          - path: apps/*/overlays/*", "          - path: apps/*/overlays/*\n            depthOfTomorrow: 3")
	s.commitFiles("linus", "main", "Use what a newer Argo CD knows", map[string]string{"argocd/shop.yaml": newer})
	s.applyAppSet(newer)
	s.start()
	s.awaitJudged()
	s.promoteToProd("web", "1.1.0")
}

// TestNewerApplicationSetThatDoesNotRun can't be resolved and has no live
// Applications to go by: it stops what it concerns, says where, and goes on when
// the live object is there.
func TestNewerApplicationSetThatDoesNotRun(t *testing.T) {
	s := startHarness(t, harnessOptions{components: []string{"web", "api"}})
	s.awaitJudged()
	// Two sets from now on; api's is broken by the next commit.
	only := func(component, name string) string {
		return s.appSetYAML("name: shop", "name: "+name, "apps/*/", "apps/"+component+"/")
	}
	newer := strings.Replace(only("api", "apis"), "  template:", "  tomorrow: true\n  template:", 1)
	s.commitFiles("linus", "main", "Split the sets", map[string]string{"argocd/shop.yaml": only("web", "shop"), "argocd/apis.yaml": only("api", "apis")})
	s.commitRelease("api", "1.1.0")
	s.awaitMerged(s.awaitPromotion("api", "qa", "1.1.0").Number)
	held := s.awaitPromotion("api", "prod", "1.1.0")
	s.commitFiles("linus", "main", "Use what a newer Argo CD knows", map[string]string{"argocd/apis.yaml": newer})
	s.approve(held.Number, "ada")
	s.approve(held.Number, "grace")
	s.awaitPull(held.Number, "waits for its targets", func(p *emulator.PullRequest) bool {
		st := liftlockStatus(p.Statuses)
		return st.State == "pending" && strings.Contains(st.Description, "targets")
	})
	s.awaitReason("api", "prod", "tomorrow")
	s.promoteToProd("web", "1.1.0")
	if s.readPull(held.Number).Merged {
		t.Fatal("a target that can't be resolved did not stop the merge")
	}
	s.applyAppSet(newer)
	for _, env := range []string{"dev", "qa", "prod"} {
		s.must("hand the Application over", s.ArgoCD.RemoveApplication("argocd", "api-"+env))
		s.must("hand the Application over", s.ArgoCD.AddApplication(argoemulator.AppSpec{Name: "api-" + env, Repo: repoName, Path: overlayPath("api", env),
			DestinationNamespace: "api-" + env, ApplicationSet: "apis"}))
	}
	s.awaitMerged(held.Number)
}

// TestLiveApplicationSet has no manifest in the repository. A change of the live
// object is one of the targets, without a commit.
func TestLiveApplicationSet(t *testing.T) {
	s := newHarness(t, harnessOptions{pipeline: livePipeline()})
	s.commitFiles("linus", "main", "Keep the set elsewhere", map[string]string{"argocd/shop.yaml": "# in another repository\n"})
	s.applyAppSet(s.appSetYAML())
	s.start()
	s.awaitJudged()
	s.promoteToProd("web", "1.1.0")
	s.applyAppSet(s.appSetYAML("          - path: apps/*/overlays/*", "          - path: apps/*/overlays/*\n          - path: apps/*/overlays/prod\n            exclude: true"))
	s.awaitReason("web", "prod", "no ApplicationSet generates a target")
	s.applyAppSet(s.appSetYAML())
	s.awaitVerified("web", "prod", "1.1.0")
}

// TestLiveApplicationSetDuringAnOutage starts the server while the Argo CD that has the live set is
// away. Nothing is made up, nothing is forgotten, and when it is back it goes on.
func TestLiveApplicationSetDuringAnOutage(t *testing.T) {
	s := newHarness(t, harnessOptions{pipeline: livePipeline()})
	s.applyAppSet(s.appSetYAML())
	s.start()
	s.awaitJudged()
	s.promoteToProd("web", "1.1.0")
	s.stop()
	s.ArgoCD.FailRequests("", "", -1, http.StatusServiceUnavailable)
	s.ArgoCD.CutWatches()
	s.start()
	s.waitFor("/readyz says so", func() (bool, string) {
		status, text := s.getText("/readyz")
		return status == http.StatusOK && strings.Contains(text, "argocd hub: ") && !strings.Contains(text, "argocd hub: ok"), text
	})
	s.commitRelease("web", "1.2.0")
	s.awaitIdle()
	if n := len(s.listPulls("web", "qa")); n != 1 {
		t.Fatalf("%d promotions into qa while nobody knows the targets", n)
	}
	if e, seen := s.readEnvironment("web", "prod"); e == nil || !strings.Contains(e.Name, "1.1.0") {
		t.Errorf("what was known is gone: %s", seen)
	}
	s.ArgoCD.FailRequests("", "", 0, 0)
	s.awaitMerged(s.awaitPromotion("web", "qa", "1.2.0").Number)
	s.awaitPromotion("web", "prod", "1.2.0")
}

// clusterSet deploys prod to every cluster that says it is one for prod.
const clusterSet = `apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata:
  name: prod
  namespace: argocd
spec:
  goTemplate: true
  goTemplateOptions: ["missingkey=error"]
  generators:
    - matrix:
        generators:
          - clusters:
              selector:
                matchLabels: {env: prod}
          - git:
              repoURL: REPO
              revision: main
              directories:
                - path: apps/*/overlays/prod
  template:
    metadata:
      name: '{{ index .path.segments 1 }}-{{ .path.basename }}'
    spec:
      project: default
      source:
        repoURL: REPO
        targetRevision: main
        path: '{{ .path.path }}'
      destination:
        server: '{{ .server }}'
        namespace: '{{ index .path.segments 1 }}-{{ .path.basename }}'
`

// TestClustersGenerator resolves an ApplicationSet over the cluster Secrets that
// Argo CD has.
func TestClustersGenerator(t *testing.T) {
	s := newHarness(t, harnessOptions{argocdLines: "    clusters: {live: true}\n", cluster: func(_, env string) string { return map[string]string{"prod": "https://eu.example"}[env] }})
	s.addCluster("eu", "https://eu.example", "prod")
	s.addCluster("us", "https://us.example", "none")
	s.commitFiles("linus", "main", "Deploy prod to the clusters that say so", map[string]string{
		"argocd/shop.yaml": s.appSetYAML("          - path: apps/*/overlays/*", "          - path: apps/*/overlays/dev\n          - path: apps/*/overlays/qa"), "argocd/prod.yaml": strings.ReplaceAll(clusterSet, "REPO", s.Forge.URL()+"/"+repoName+".git")})
	s.start()
	s.awaitJudged()
	s.promoteToProd("web", "1.1.0")
	if n := s.countLogged("a-clusters-token"); n != 0 {
		t.Errorf("a cluster's credentials are in the log")
	}
}

// TestForbiddenProjects works without being allowed to see AppProjects, and says
// what isn't checked.
func TestForbiddenProjects(t *testing.T) {
	s := newHarness(t, harnessOptions{})
	s.ArgoCD.FailRequests("", "appprojects", -1, http.StatusForbidden)
	s.start()
	s.awaitJudged()
	s.promoteToProd("web", "1.1.0")
	status, text := s.getText("/readyz")
	if status != http.StatusOK || !strings.Contains(text, "argocd hub: ok") || !strings.Contains(text, "argocd hub appprojects: ") || !strings.Contains(text, "resources [appprojects], verbs [get, list, watch]") {
		t.Errorf("/readyz: HTTP %d: %s", status, text)
	}
}

// TestMissingProject drops the Applications of a project that doesn't exist, as
// Argo CD does, and takes them in when somebody makes it.
func TestMissingProject(t *testing.T) {
	s := startHarness(t, harnessOptions{})
	s.awaitJudged()
	s.commitRelease("web", "1.1.0")
	s.awaitMerged(s.awaitPromotion("web", "qa", "1.1.0").Number)
	p := s.awaitPromotion("web", "prod", "1.1.0")
	s.commitFiles("linus", "main", "Move to a project of our own", map[string]string{"argocd/shop.yaml": s.appSetYAML("project: default", "project: shop")})
	s.approve(p.Number, "ada")
	s.approve(p.Number, "grace")
	s.awaitReason("web", "prod", "project")
	s.awaitIdle()
	if s.readPull(p.Number).Merged {
		t.Fatal("merged while the targets' project is missing")
	}
	s.must("make the project", s.ArgoCD.AddObject("appprojects", map[string]any{"metadata": map[string]any{"name": "shop", "namespace": "argocd"}}))
	s.awaitMerged(p.Number)
}

// TestReleaseThroughAGeneratorsFile carries a field that the ApplicationSet generates the
// Application from. A target has it when its Application says so, and not when Argo CD has only
// seen the commit.
func TestReleaseThroughAGeneratorsFile(t *testing.T) {
	config := func(tag string) string { return fmt.Sprintf("{\n  \"tag\": %q\n}\n", tag) }
	files := map[string]string{}
	for _, env := range []string{"dev", "qa", "prod"} {
		files[overlayPath("web", env)+"/config.json"] = config("1.0.0")
	}
	s := newHarness(t, harnessOptions{files: files, pipeline: strings.Replace(pipelineYAML(nil), `- kustomizeImages: ["registry.example/*"]`, `- json: {files: ["config.json"], paths: ["tag"]}`, 1)})
	set := s.appSetYAML("directories:\n          - path: apps/*/overlays/*", "files:\n          - path: apps/*/overlays/*/config.json",
		"        path: '{{ .path.path }}'", "        path: '{{ .path.path }}'\n        kustomize: {images: ['registry.example/web:{{ .tag }}']}")
	s.commitFiles("linus", "main", "Say the tag in a file", map[string]string{"argocd/shop.yaml": set})
	updates := func(env, tag string) {
		t.Helper()
		s.must("update the Application", s.ArgoCD.SetOptions("argocd", "web-"+env, map[string]any{"kustomize": map[string]any{"images": []any{"registry.example/web:" + tag}}}))
	}
	for _, env := range []string{"dev", "qa", "prod"} {
		updates(env, "1.0.0")
	}
	s.start()
	s.awaitJudged()
	s.commitFiles("linus", "main", "Release", map[string]string{overlayPath("web", "dev") + "/config.json": config("1.1.0")})
	s.awaitEnvironment("web", "dev", "waits for its ApplicationSet", func(e *api.EnvironmentWhy) bool {
		return strings.Contains(e.Name, "1.1.0") && len(e.Targets) == 1 && strings.Contains(e.Targets[0].Reason, "the ApplicationSet shop has not brought the Application up to date yet")
	})
	s.awaitIdle()
	if n := len(s.listPulls("web", "qa")); n != 0 {
		t.Fatalf("%d promotions of what the target doesn't have", n)
	}
	updates("dev", "1.1.0")
	s.awaitVerified("web", "dev", "1.1.0")
	s.awaitMerged(s.awaitPromotion("web", "qa", "1.1.0").Number)
	// From now on the set never updates what it created.
	s.commitFiles("linus", "main", "Only create", map[string]string{"argocd/shop.yaml": strings.Replace(set, "  template:", "  syncPolicy: {applicationsSync: create-only}\n  template:", 1)})
	s.awaitEnvironment("web", "qa", "names the policy", func(e *api.EnvironmentWhy) bool {
		return len(e.Targets) == 1 && strings.Contains(e.Targets[0].Reason, "only creates Applications and never updates them (applicationsSync, or its controller's policy)")
	})
	updates("qa", "1.1.0") // by hand
	s.awaitVerified("web", "qa", "1.1.0")
}

// TestDifferences compares what is resolved with what runs.
func TestDifferences(t *testing.T) {
	clock := newSteppedClock()
	s := startHarness(t, harnessOptions{clock: clock})
	s.awaitJudged()
	var d api.Differences
	compare := func() {
		t.Helper()
		clock.Step(time.Minute) // past what is remembered
		d = api.Differences{}
		_, err := s.getJSON("/api/v1/pipelines/shop/differences", &d)
		s.must("compare", err)
	}
	compare()
	if d.Equal != 3 || len(d.Missing)+len(d.Extra)+len(d.Different) != 0 || d.Repository != "hub:"+repoName || len(d.Commit) != 40 {
		t.Fatalf("nothing differs: %+v", d)
	}
	s.must("remove one", s.ArgoCD.RemoveApplication("argocd", "web-qa"))
	for name, path := range map[string]string{"web-old": overlayPath("web", "qa"), "other": "elsewhere"} {
		owner := map[string]string{"web-old": "shop"}[name]
		s.must("add one", s.ArgoCD.AddApplication(argoemulator.AppSpec{Name: name, Repo: repoName, Path: path, DestinationNamespace: name, ApplicationSet: owner}))
	}
	s.must("remove one", s.ArgoCD.RemoveApplication("argocd", "web-prod"))
	s.must("add another", s.ArgoCD.AddApplication(argoemulator.AppSpec{Name: "web-prod", Repo: repoName, Branch: "release-1", Path: overlayPath("web", "prod"), DestinationNamespace: "web-prod", ApplicationSet: "shop"}))
	compare()
	want := "equal 1, missing [web-qa], extra [web-old], different [web-prod: spec.source.targetRevision release-1 → main]"
	got := fmt.Sprintf("equal %d, missing %v, extra %v, different [", d.Equal, differenceNames(d.Missing), differenceNames(d.Extra))
	for _, x := range d.Different {
		for _, f := range x.Fields {
			got += fmt.Sprintf("%s: %s %s → %s", x.Name, f.Path, f.Live, f.Resolved)
		}
	}
	if got += "]"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if status, page := s.getText("/differences/shop"); status != http.StatusOK || !strings.Contains(page, "web-old") || !strings.Contains(page, "release-1") {
		t.Errorf("the page: HTTP %d", status)
	}
	s.ArgoCD.FailRequests("", "", -1, http.StatusServiceUnavailable)
	clock.Step(time.Minute)
	if status, err := s.getJSON("/api/v1/pipelines/shop/differences", &d); status != http.StatusServiceUnavailable || !strings.Contains(fmt.Sprint(err), "argocd hub") {
		t.Errorf("HTTP %d: %v", status, err)
	}
	if e, seen := s.readEnvironment("web", "dev"); e == nil || e.State == promotion.Degraded {
		t.Errorf("it only looked: %s", seen)
	}
}

func differenceNames(list []api.Difference) []string {
	out := make([]string, 0, len(list))
	for _, d := range list {
		out = append(out, d.Name)
	}
	return out
}
