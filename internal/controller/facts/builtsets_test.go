package facts

import (
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/facts/live"
	"github.com/liftlock/liftlock/internal/fieldedit"
)

// TestPushToBuiltSets resolves again what a push changes of an overlay, its base or a patch, and wakes
// whose targets come out otherwise.
func TestPushToBuiltSets(t *testing.T) {
	w := newStory(t, twoEnvs, []string{"dev", "qa"}, "api", "web")
	set, err := w.repo.Mirror.Tree(w.head("main")).ReadFile("argocd/shop.yaml")
	w.must(err)
	const (
		overlay = "resources: [../base]\npatches: [{path: patch.yaml}]\n"
		patch   = "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: shop, namespace: argocd}\n"
	)
	w.commit("ada", "Build the set", map[string]string{
		".liftlock.yaml":                 strings.Replace(storyPipeline(twoEnvs), "path: argocd/*.yaml", "kustomize: argocd/hub", 1),
		"argocd/shop.yaml":               "",
		"argocd/base/shop.yaml":          string(set),
		"argocd/base/kustomization.yaml": "resources: [shop.yaml]\n",
		"argocd/hub/kustomization.yaml":  overlay,
		"argocd/hub/patch.yaml":          patch,
	})
	last := w.snapshot()
	if p := last.Pipelines[0]; len(p.Problems) > 0 || len(p.TargetSet.Targets) != 4 {
		t.Fatalf("%d targets, %v", len(p.TargetSet.Targets), p.Problems)
	}
	for _, step := range []struct {
		what, file, text string
		project          string // of every target, afterwards
		units, problems  int
	}{
		{"docs", "README.md", "x", "default", 0, 0},
		{"the base", "argocd/base/shop.yaml", strings.Replace(string(set), "project: default", "project: shop", 1), "shop", 2, 0},
		{"the patch", "argocd/hub/patch.yaml", patch + "spec: {template: {spec: {project: patched}}}\n", "patched", 2, 0},
		{"a broken overlay", "argocd/hub/kustomization.yaml", "resources: [../gone]\n", "patched", 2, 1},
		{"the overlay", "argocd/hub/kustomization.yaml", "resources: [../base]\n", "shop", 2, 0},
	} {
		w.commit("ada", step.what, map[string]string{step.file: step.text})
		now := w.snapshot()
		units, whole, err := w.o.Targets.ChangedUnits(w.ctx(), last, now)
		w.must(err)
		p := now.Pipelines[0]
		if whole || len(units) != step.units || len(p.Problems) != step.problems || len(p.TargetSet.Targets) != 4 {
			t.Errorf("%s: %d units (all: %t), %d targets, %v", step.what, len(units), whole, len(p.TargetSet.Targets), p.Problems)
		}
		for _, target := range p.TargetSet.Targets {
			if target.Project != step.project {
				t.Errorf("%s: %s is in %s", step.what, target.Name, target.Project)
			}
		}
		last = now
	}
}

// TestPushToPlainApplications resolves the targets again that a push changes in the manifests of plain
// Applications, and expects of an Application what its file says.
func TestPushToPlainApplications(t *testing.T) {
	w := newStory(t, twoEnvs, []string{"dev", "qa"}, "api", "web")
	application := func(component, env, project string) string {
		return "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: " + component + "-" + env + ", namespace: argocd}\nspec:\n" +
			"  project: " + project + "\n  source: {repoURL: 'https://git.example/acme/fleet.git', targetRevision: main, path: apps/" + component + "/" + env + "}\n" +
			"  destination: {server: 'https://kubernetes.default.svc', namespace: shop}\n"
	}
	text := strings.NewReplacer("applicationSets: ", "applications: ",
		"{{ index .path.segments 1 }}", `{{ index (.application.spec.source.path | splitList "/") 1 }}`,
		"{{ .path.basename }}", "{{ .application.spec.source.path | base }}").Replace(storyPipeline(twoEnvs))
	files := map[string]string{".liftlock.yaml": text, "argocd/shop.yaml": ""}
	for _, component := range []string{"api", "web"} {
		for _, env := range []string{"dev", "qa"} {
			files["argocd/"+component+"-"+env+".yaml"] = application(component, env, "default")
		}
	}
	w.commit("ada", "Name the Applications", files)
	last := w.snapshot()
	if p := last.Pipelines[0]; len(p.Problems) > 0 || len(p.TargetSet.Targets) != 4 {
		t.Fatalf("%d targets, %v", len(p.TargetSet.Targets), p.Problems)
	}
	w.commit("ada", "Move web in qa", map[string]string{"argocd/web-qa.yaml": application("web", "qa", "shop")})
	now := w.snapshot()
	units, whole, err := w.o.Targets.ChangedUnits(w.ctx(), last, now)
	w.must(err)
	if whole || len(units) != 1 {
		t.Errorf("%v (all: %t)", units, whole)
	}
	for i := range now.Pipelines[0].TargetSet.Targets {
		target := &now.Pipelines[0].TargetSet.Targets[i]
		want := "argocd/" + target.Name + ".yaml"
		g := live.GeneratedSpec(&branch.ResolvedEnv{Name: target.Environment, Component: target.Component}, target, fieldedit.Release{}, nil)
		if g == nil || g.Set != "" || g.File != want || len(g.Sources) != 1 || g.Sources[0].Path != target.Sources[0].Path {
			t.Errorf("%s: %+v", target.Name, g)
		}
	}
}
