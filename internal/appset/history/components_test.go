package history

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/appset"
)

// TestComponentsOnBranches has one folder on three branches: each environment owns its own, and a
// folder that two environments read there has no owner.
func TestComponentsOnBranches(t *testing.T) {
	target := func(component, environment, branch, revision string, paths ...string) appset.Target {
		out := appset.Target{Name: component + "-" + environment, Component: component, Environment: environment, Branch: branch}
		for _, p := range paths {
			out.Sources = append(out.Sources, appset.Source{Here: true, Path: p, TargetRevision: revision})
		}
		return out
	}
	both := target("pay", "qa", "env/qa", "env/qa", "apps/pay")
	both.Sources = append(both.Sources, appset.Source{Here: true, Path: "charts/pay", TargetRevision: "main"}, appset.Source{Here: true, Path: "apps/web", TargetRevision: "env/dev"})
	generated := target("api", "qa", "env/qa", "v1.2.3", "apps/api")
	generated.GeneratorFile, generated.GeneratorFiles = "envs/qa.json", []string{"envs/qa.json"}
	generated.BranchFiles = []appset.BranchFile{{Branch: "env/dev", File: "dev/config.json"}, {Branch: "env/qa", File: "qa/config.json"}}
	fl := &appset.TargetSet{Targets: []appset.Target{
		target("web", "dev", "env/dev", "refs/heads/env/dev", "apps/web", "apps/own"), target("web", "qa", "env/qa", "env/qa", "apps/web", "shared"),
		target("web", "prod", "main", "HEAD", "apps/web", "shared"), both, generated,
		{Name: "nobody", Branch: "main", Sources: []appset.Source{{Here: true, Path: "shared", TargetRevision: "env/qa"}}},
	}}
	got := map[string][]string{}
	for component, envs := range Components(fl, "main", nil) {
		for env, e := range envs {
			got[component+" "+env] = e.Roots
		}
	}
	want := map[string][]string{
		"web dev":  {"apps/own"}, // apps/web is read by pay's third source too
		"web qa":   {"apps/web"}, // no environment owns shared there
		"web prod": {"apps/web", "shared"},
		"pay qa":   {"apps/pay"}, // what it has of main and of dev's branch is no overlay of qa's
		"api qa":   {"qa"},       // its source is pinned; of the generators' files only one is on qa's branch
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("roots (-want +got):\n%s", diff)
	}
}

func TestNothingCarried(t *testing.T) {
	for want, e := range map[string]Environment{
		"no carried field is found below [a b]": {Roots: []string{"a", "b"}},
		"no carried field is found: no folder is this environment's alone, and none with a placeholder in [charts argocd/shop.yaml], which others may have as well": {Shared: []string{"charts"}, Files: []string{"argocd/shop.yaml"}},
	} {
		if got := e.NothingCarried(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestComponents(t *testing.T) {
	target := func(component, environment string, paths ...string) appset.Target {
		out := appset.Target{Name: component + "-" + environment, Component: component, Environment: environment}
		for _, p := range paths {
			out.Sources = append(out.Sources, appset.Source{Here: true, Path: p})
		}
		return out
	}
	fl := &appset.TargetSet{Targets: []appset.Target{
		target("web", "qa", "apps/web/qa", "shared"), target("web", "qa", "apps/web/qa-eu", "apps/web/qa"),
		target("web", "prod", "apps/web/prod", "shared"), target("api", "qa", "apps/api/qa"),
		target("", "", "apps/nobody", "apps/api/qa/jobs"), target("cart", ""), target("pay", "qa", "apps/pay"), target("", "", "apps/pay"),
	}}
	first := &fl.Targets[0]
	first.ApplicationSetFile, first.GeneratorFile, first.GeneratorFiles = "argocd/shop.yaml", "apps/web/qa/config.json", []string{"apps/web/qa/config.json", "envs.json"}
	first.Sources[0].ValueFiles = []string{"../common.yaml", "own.yaml"}
	fl.Targets[2].Sources[0].ValueFiles = []string{"../common.yaml"}
	got, shared, files := map[string][]string{}, map[string][]string{}, map[string][]string{}
	count := map[string]int{}
	for component, envs := range Components(fl, "main", nil) {
		for env, e := range envs {
			got[component+" "+env] = e.Roots
			shared[component+" "+env] = e.Shared
			files[component+" "+env] = e.Files
			count[component+" "+env] = len(e.Targets)
		}
	}
	want := map[string][]string{
		"web qa":   {"apps/web/qa", "apps/web/qa-eu"},
		"web prod": {"apps/web/prod"},
		"api qa":   {"apps/api/qa"},
		"pay qa":   nil, // an Application that nobody manages reads the same folder
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("roots (-want +got):\n%s", diff)
	}
	want = map[string][]string{"web qa": {"shared"}, "web prod": {"shared"}, "api qa": {}, "pay qa": {"apps/pay"}}
	if diff := cmp.Diff(want, shared); diff != "" {
		t.Errorf("shared (-want +got):\n%s", diff)
	}
	want = map[string][]string{"web qa": {"apps/web/common.yaml", "argocd/shop.yaml", "envs.json"}, "web prod": {"apps/web/common.yaml"}, "api qa": nil, "pay qa": nil}
	if diff := cmp.Diff(want, files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int{"web qa": 2, "web prod": 1, "api qa": 1, "pay qa": 1}, count); diff != "" {
		t.Errorf("targets (-want +got):\n%s", diff)
	}
}
