package prtext

import (
	"fmt"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/appset/impact"
)

// changes are the pull requests of people that the goldens show.
func changes() map[string]Impact {
	report := func(parts ...impact.Pipeline) *impact.Report {
		return &impact.Report{Pipelines: parts, Files: 3}
	}
	web := func(what, env string) impact.Target {
		return impact.Target{Name: "web-" + env, Component: "web", What: what, Cluster: "in-cluster", Files: []string{"apps/web/overlays/" + env + "/kustomization.yaml"}}
	}
	problem := appset.Problem{File: "argocd/shop.yaml", ApplicationSet: "shop", Message: "unknown field spec.tomorrow"}
	many := impact.Environment{Name: "qa"}
	for i := range 40 {
		t := web(impact.Changed, "qa")
		t.Name = fmt.Sprintf("team-%d", i)
		t.Files = []string{"base/deployment.yaml"}
		many.Targets = append(many.Targets, t)
	}
	evil := web(impact.Created, "qa")
	evil.Name, evil.Files = "a`|<b>@here", []string{"x\n|y|.yaml", "[link](http://evil.example)"}
	out := map[string]Impact{
		"impact-nothing": {Report: report(impact.Pipeline{Name: "shop"})},
		"impact-rules":   {Report: &impact.Report{Rules: []string{".liftlock.yaml"}, Files: 1}},
		"impact-one": {Report: report(impact.Pipeline{Name: "shop", Environments: []impact.Environment{
			{Name: "qa", Targets: []impact.Target{web(impact.Changed, "qa")}}}})},
		"impact-all": {Report: report(impact.Pipeline{Name: "shop", Environments: []impact.Environment{
			{Name: "dev", Targets: []impact.Target{web(impact.Changed, "dev")}},
			{Name: "qa", Targets: []impact.Target{web(impact.Created, "qa"), web(impact.Changed, "qa")}},
			{Name: "prod", Targets: []impact.Target{{Name: "web-prod", What: impact.Deleted, Kept: "its resources stay: the ApplicationSet has preserveResourcesOnDeletion"}}},
			{Targets: []impact.Target{{Name: "tools", What: impact.Changed, Fields: []impact.Field{{Path: "spec.source.targetRevision", Before: "1.0", After: "1.1"}, {Path: "spec.project", After: "x"}}, More: 3}}},
		}}), ChangedOnBranch: []string{"apps/web/base/deployment.yaml"}, Unknown: []string{"the Argo CD hub: its list can't be read: forbidden"}},
		"impact-refused": {Report: report(impact.Pipeline{Name: "shop", OneEnvironment: true, Environments: []impact.Environment{
			{Name: "dev", Targets: []impact.Target{web(impact.Changed, "dev")}},
			{Name: "prod", Targets: []impact.Target{web(impact.Changed, "prod")}}}}, impact.Pipeline{Name: "tools", Environments: []impact.Environment{
			{Name: "dev", Targets: []impact.Target{web(impact.Changed, "dev")}},
			{Name: "qa", Targets: []impact.Target{web(impact.Changed, "qa")}}}})},
		"impact-rendered": {NotRendered: 3, Report: report(impact.Pipeline{Name: "shop", Environments: []impact.Environment{
			{Name: "qa", Targets: []impact.Target{web(impact.Changed, "qa"), web(impact.Created, "qa-2"), web(impact.Changed, "qa-3")}}}}),
			Rendered: []Rendered{{Target: "web-qa", Summary: "1 changed", Diff: "@@ v1 ConfigMap web @@\n- data.a: `1`\n+ data.a: </details>\n"}, {Target: "web-qa-2", Summary: "1 added", Diff: "@@ v1 Service web @@\n+ spec.type: ClusterIP\n"},
				{Target: "web-qa-3", Why: "the chart x comes from a Helm repository"}}},
		"impact-not-rendered": {RenderedErr: "rendering them needs more than 512 MiB of memory", Report: report(impact.Pipeline{Name: "shop", Environments: []impact.Environment{
			{Name: "qa", Targets: []impact.Target{web(impact.Changed, "qa")}}}})},
		"impact-one-wanted": {Report: report(impact.Pipeline{Name: "shop", OneEnvironment: true, Environments: []impact.Environment{
			{Name: "prod", Targets: []impact.Target{web(impact.Changed, "prod")}}}})},
		"impact-many": {Report: report(impact.Pipeline{Name: "shop", Environments: []impact.Environment{many}}, impact.Pipeline{Name: "tools", Environments: []impact.Environment{
			{Name: "dev", Targets: []impact.Target{web(impact.Deleted, "dev")}}}})},
		"impact-problems": {Report: report(impact.Pipeline{Name: "shop", Problems: []appset.Problem{problem}, Fixed: []appset.Problem{problem}, Preexisting: []appset.Problem{problem},
			Environments: []impact.Environment{{Name: "qa", Targets: []impact.Target{{Name: "web-qa", What: impact.Unknown}}}}})},
		"impact-failed": {Failed: "evaluating it needs more than 512 MiB of memory"},
		"impact-broken": {PipelineErr: ".liftlock.yaml:3: unknown key \"gate\", did you mean \"gates\"?\n.liftlock.yaml:9: name is missing",
			Report: report(impact.Pipeline{Name: "shop"})},
		"impact-hostile": {Report: report(impact.Pipeline{Name: "shop", Environments: []impact.Environment{{Name: "qa", Targets: []impact.Target{evil}}}})},
	}
	for name, in := range out {
		in.Branch, in.Base = "main", "0123456789abcdef0123456789abcdef01234567"
		out[name] = in
	}
	return out
}

func TestImpact(t *testing.T) {
	for name, in := range changes() {
		t.Run(name, func(t *testing.T) {
			s, text := in.Status(), in.Comment()
			golden(t, name, fmt.Sprintf("worth a comment: %t\nstatus: %s: %s\n\n======== comment\n%s", in.NeedsComment(), s.State, s.Description, text))
			if !IsStatusComment(text) {
				t.Error("the comment would not be found again")
			}
			if len([]rune(s.Description)) > maxStatus || strings.Contains(s.Description, "\n") {
				t.Errorf("the status is %q", s.Description)
			}
		})
	}
}
