package tracked

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/fleet"
)

func TestComponents(t *testing.T) {
	target := func(component, environment string, paths ...string) fleet.Target {
		out := fleet.Target{Name: component + "-" + environment, Component: component, Environment: environment}
		for _, p := range paths {
			out.Sources = append(out.Sources, fleet.Source{Here: true, Path: p})
		}
		return out
	}
	fl := &fleet.Fleet{Targets: []fleet.Target{
		target("web", "qa", "apps/web/qa", "shared"), target("web", "qa", "apps/web/qa-eu", "apps/web/qa"),
		target("web", "prod", "apps/web/prod", "shared"), target("api", "qa", "apps/api/qa"),
		target("", "", "apps/nobody", "apps/api/qa/jobs"), target("cart", ""), target("pay", "qa", "apps/pay"), target("", "", "apps/pay"),
	}}
	fl.Targets[0].ApplicationSetFile = "argocd/shop.yaml"
	got, shared := map[string][]string{}, map[string][]string{}
	count := map[string]int{}
	for component, envs := range Components(fl) {
		for env, e := range envs {
			got[component+" "+env] = e.Roots
			shared[component+" "+env] = e.Shared
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
	want = map[string][]string{"web qa": {"argocd", "shared"}, "web prod": {"shared"}, "api qa": nil, "pay qa": {"apps/pay"}}
	if diff := cmp.Diff(want, shared); diff != "" {
		t.Errorf("shared (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int{"web qa": 2, "web prod": 1, "api qa": 1, "pay qa": 1}, count); diff != "" {
		t.Errorf("targets (-want +got):\n%s", diff)
	}
}
