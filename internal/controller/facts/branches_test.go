package facts

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/promotion"
)

// branchPipeline has dev and qa on branches of their own and prod on main.
const branchPipeline = `apiVersion: liftlock.dev/v1alpha1
kind: Pipeline
metadata: {name: shop}
spec:
  layout: branches
  applicationSets: [{path: "argocd/*.yaml"}]
  component: '{{ .component }}'
  environment: '{{ .env }}'
  carry: [{kustomizeImages: ["*"]}]
  environments:
    - {name: dev, branch: env/dev}
    - {name: qa, after: [dev], branch: env/qa}
    - {name: prod, after: [qa], branch: main}
`

// appSetYAML is an ApplicationSet whose generators and source are given.
func appSetYAML(name, generators, source string) string {
	return `apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: ` + name + `, namespace: argocd}
spec:
  goTemplate: true
  generators: [` + generators + `]
  template:
    metadata: {name: '` + name + `-{{ .component }}-{{ .env }}'}
    spec:
      project: default
      ` + source + `
      destination: {server: https://kubernetes.default.svc, namespace: x}
`
}

const repoURL = "https://git.example/acme/fleet.git"

func listElement(component, env, branch string) string {
	return "{component: " + component + ", env: " + env + ", branch: " + branch + "}"
}

// newBranchRepo is a repository with web and api on each.
func newBranchRepo(t *testing.T, more map[string]string) *testRepo {
	t.Helper()
	var elements []string
	for _, c := range []string{"web", "api"} {
		elements = append(elements, listElement(c, "dev", "env/dev"), listElement(c, "qa", "env/qa"), listElement(c, "prod", "main"))
	}
	files := map[string]string{
		".liftlock.yaml":          branchPipeline,
		"argocd/s.yaml":           appSetYAML("s", "{list: {elements: ["+strings.Join(elements, ", ")+"]}}", "source: {repoURL: '"+repoURL+"', path: 'apps/{{ .component }}', targetRevision: '{{ .branch }}'}"),
		"base/kustomization.yaml": "resources: [d.yaml]\n", "base/d.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {template: {spec: {containers: [{name: d, image: x}]}}}\n",
		"base/common/kustomization.yaml": "kind: Component\nimages: [{name: x, newTag: '1'}]\n",
	}
	for _, c := range []string{"web", "api"} {
		files["apps/"+c+"/kustomization.yaml"] = "resources: [../../base]\nimages: [{name: x, newTag: '1'}]\n"
	}
	maps.Copy(files, more)
	c := newTestRepo(t, "fleet", files)
	for _, b := range []string{"env/dev", "env/qa"} {
		c.push(b)
	}
	return c
}

// checkoutBranch checks a branch out, so that commit goes on top of it.
func (t *testRepo) checkoutBranch(branch string) {
	t.t.Helper()
	t.at, _ = t.remote.Head(branch)
}

func newTestGatherer(c *testRepo) *Gatherer {
	return New(Options{Resolver: appset.New(appset.Options{}), MainArgoCD: "hub", Repos: []*branch.Repository{c.Repository}, Now: time.Now})
}

func takeSnapshot(t *testing.T, o *Gatherer, c *testRepo) *branch.Snapshot {
	t.Helper()
	s, err := o.Targets.Snapshot(t.Context(), c.Repository)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSnapshotFollowsBranches moves, rewrites and deletes an environment's
// branch: the snapshot follows, and nothing is resolved again that didn't read it.
func TestSnapshotFollowsBranches(t *testing.T) {
	c := newBranchRepo(t, nil)
	o := newTestGatherer(c)
	s := takeSnapshot(t, o, c)
	if len(s.Pipelines) != 1 || len(s.Pipelines[0].Problems) != 0 || len(s.Pipelines[0].TargetSet.Targets) != 6 {
		t.Fatalf("the first snapshot: %+v", s.Pipelines)
	}
	if again := takeSnapshot(t, o, c); again != s {
		t.Error("nothing has moved, and there is another snapshot")
	}
	c.checkoutBranch("env/qa")
	moved := c.commit("env/qa", map[string]string{"apps/web/x": "x"})
	next := takeSnapshot(t, o, c)
	p := next.Pipelines[0]
	if next == s || next.BranchTips["env/qa"] != moved || next.BranchFor(p.Pipeline, "qa") != (branch.Head{Branch: "env/qa", Commit: moved}) || next.Generation != s.Generation {
		t.Errorf("after a push: %v, turn %d", next.BranchTips, next.Generation)
	}
	if p.TargetSet != s.Pipelines[0].TargetSet || p.ReaderIndexes["env/dev"] != s.Pipelines[0].ReaderIndexes["env/dev"] || p.ReaderIndexes["env/qa"] == s.Pipelines[0].ReaderIndexes["env/qa"] {
		t.Error("what the push doesn't concern was made anew, or what it does was kept")
	}
	if l := next.BranchFor(p.Pipeline, "prod"); l != (branch.Head{Branch: "main", Commit: next.Commit}) {
		t.Errorf("prod is at %v", l)
	}
	c.checkoutBranch("main") // as if somebody had rewritten qa's branch
	c.push("env/qa")
	if s := takeSnapshot(t, o, c); s.BranchTips["env/qa"] != s.Commit {
		t.Errorf("after it was rewritten: %v", s.BranchTips)
	}
	c.remote.SetRef("refs/heads/env/qa", "")
	fetchMirror(t, c)
	s = takeSnapshot(t, o, c)
	if l := s.BranchFor(s.Pipelines[0].Pipeline, "qa"); l != (branch.Head{Branch: "env/qa", Commit: ""}) || len(s.Pipelines[0].Problems) != 0 {
		t.Errorf("without the branch, qa is at %v; %q", l, s.Pipelines[0].Problems)
	}
}

func fetchMirror(t *testing.T, c *testRepo) {
	t.Helper()
	if _, err := c.Mirror.Fetch(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestSnapshotFollowsGeneratorFilesOnBranches has targets that are made of files
// on the branches: a push there changes targets without a commit on main.
func TestSnapshotFollowsGeneratorFilesOnBranches(t *testing.T) {
	set := appSetYAML("g", "{matrix: {generators: [{list: {elements: ["+listElement("web", "dev", "env/dev")+", "+listElement("web", "qa", "env/qa")+"]}}, "+
		"{git: {repoURL: '"+repoURL+"', revision: '{{ .branch }}', files: [{path: config.json}]}}]}}",
		"source: {repoURL: https://charts.example, chart: web, targetRevision: '{{ .tag }}'}")
	c := newBranchRepo(t, map[string]string{"argocd/s.yaml": set, "config.json": `{"tag": "1.0.0"}`})
	o := newTestGatherer(c)
	s := takeSnapshot(t, o, c)
	if e := s.Pipelines[0].Units["web"].Envs["qa"]; len(s.Pipelines[0].Problems) != 0 || e == nil || !slices.Equal(e.Roots, []string{"."}) || e.Targets[0].GeneratorFile != "config.json" {
		t.Fatalf("%q: %+v", s.Pipelines[0].Problems, e)
	}
	c.checkoutBranch("env/qa")
	c.commit("env/qa", map[string]string{"config.json": `{"tag": "1.1.0"}`})
	next := takeSnapshot(t, o, c)
	if v := next.Pipelines[0].Units["web"].Envs["qa"].Targets[0].Sources[0].TargetRevision; v != "1.1.0" || next.Generation != s.Generation+1 {
		t.Errorf("after a push qa's chart is %s, turn %d", v, next.Generation)
	}
	if v := next.Pipelines[0].Units["web"].Envs["dev"].Targets[0].Sources[0].TargetRevision; v != "1.0.0" {
		t.Errorf("dev's chart is %s", v)
	}
}

// chartOnMain has web and api of qa rendered from a chart on main with values
// from another branch.
func chartOnMain(branch string) map[string]string {
	return map[string]string{
		"argocd/t.yaml": appSetYAML("t", "{list: {elements: ["+listElement("web", "qa", branch)+", "+listElement("api", "qa", branch)+"]}}",
			"sources: [{repoURL: '"+repoURL+"', path: charts/x, targetRevision: HEAD, helm: {valueFiles: ['$own/values/all.yaml', '$own/values/{{ .component }}.yaml']}}, {repoURL: '"+repoURL+"', ref: own, targetRevision: '{{ .branch }}'}]"),
		"charts/x/Chart.yaml": "apiVersion: v2\nname: x\nversion: 1.0.0\n", "charts/x/values.yaml": "size: 1\n",
		"charts/x/templates/c.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {size: '{{ .Values.size }}', tag: '{{ .Values.tag }}', extra: '{{ .Values.extra }}'}\n",
		"values/all.yaml":           "extra: a\n", "values/web.yaml": "tag: a\n", "values/api.yaml": "tag: a\n",
	}
}

// TestOutsideOnBranches asks what an edit of qa's branch must not be made for.
func TestOutsideOnBranches(t *testing.T) {
	const kustomization = "apps/web/kustomization.yaml"
	another := func(component, env, branch string) map[string]string {
		return map[string]string{"argocd/t.yaml": appSetYAML("t", "{list: {elements: ["+listElement(component, env, branch)+"]}}",
			"source: {repoURL: '"+repoURL+"', path: apps/web, targetRevision: '{{ .branch }}'}")}
	}
	generated := func(path string) map[string]string {
		return map[string]string{"argocd/t.yaml": appSetYAML("t", "{matrix: {generators: [{list: {elements: ["+listElement("web", "qa", "env/qa")+", "+listElement("api", "qa", "env/qa")+"]}}, "+
			"{git: {repoURL: '"+repoURL+"', revision: '{{ .branch }}', files: [{path: '"+path+"'}]}}]}}",
			"source: {repoURL: '"+repoURL+"', path: 'apps/{{ .component }}', targetRevision: '{{ .branch }}', kustomize: {namePrefix: '{{ .tag }}-'}}"),
			"config/web.json": `{"tag": "a"}`, "config/all.json": `{"tag": "a"}`}
	}
	for name, c := range map[string]struct {
		more map[string]string
		env  string
		file string
		text string
		want string // "": nothing outside
	}{
		"its own overlay, which is everywhere":         {env: "qa", file: kustomization, text: "resources: [../../base]\nimages: [{name: x, newTag: '2'}]\n"},
		"the same on the tracked branch":               {env: "prod", file: kustomization, text: "resources: [../../base]\nimages: [{name: x, newTag: '2'}]\n"},
		"a base of two components of the environment":  {env: "qa", file: "base/kustomization.yaml", text: "resources: [d.yaml]\nnamePrefix: y-\n", want: "base/kustomization.yaml is also read by s-api-qa, whose manifests it would change"},
		"a target of nobody's on its branch":           {more: another("other", "''", "env/qa"), env: "qa", file: kustomization, text: "namePrefix: y-\nresources: [../../base]\n", want: "is also read by t-other-, whose manifests it would change"},
		"a target of nobody's on another branch":       {more: another("other", "''", "env/dev"), env: "qa", file: kustomization, text: "namePrefix: y-\nresources: [../../base]\n"},
		"another environment's that follows it":        {more: another("web", "prod", "env/qa"), env: "qa", file: kustomization, text: "namePrefix: y-\nresources: [../../base]\n", want: "is also read by t-web-prod, whose manifests it would change"},
		"a generator's file of two components":         {more: generated("config/all.json"), env: "qa", file: "config/all.json", text: `{"tag": "b"}`, want: "config/all.json also decides what the ApplicationSets generate for t-api-qa"},
		"a generator's file that another branch has":   {more: generated("config/all.json"), env: "dev", file: "config/all.json", text: `{"tag": "b"}`},
		"a copy of the ApplicationSets":                {env: "qa", file: "argocd/s.yaml", text: "nonsense: [\n"},
		"the ApplicationSets themselves, on their own": {env: "prod", file: "argocd/s.yaml", text: appSetYAML("s", "{list: {elements: []}}", "source: {repoURL: x, path: p}"), want: "argocd/s.yaml also decides what the ApplicationSets generate for"},
		"values of its own for a chart of main's":      {more: chartOnMain("env/qa"), env: "qa", file: "values/web.yaml", text: "tag: b\n"},
		"values that two components of it share":       {more: chartOnMain("env/qa"), env: "qa", file: "values/all.yaml", text: "extra: b\n", want: "values/all.yaml is also read by t-api-qa, whose manifests it would change"},
		"shared values that change nothing":            {more: chartOnMain("env/qa"), env: "qa", file: "values/all.yaml", text: "extra: a\nunused: b\n"},
		"a chart that qa's targets have of main":       {more: chartOnMain("env/qa"), env: "prod", file: "charts/x/values.yaml", text: "size: 2\n", want: "charts/x/values.yaml is also read by t-api-qa, t-web-qa, whose manifests it would change"},
		"a chart's values that others override":        {more: chartOnMain("env/qa"), env: "prod", file: "charts/x/values.yaml", text: "size: 1\ntag: z\n"},
		"the rules' name on any branch":                {env: "qa", file: ".liftlock.yaml", text: "x: y\n", want: "is the pipeline's own file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo := newBranchRepo(t, c.more)
			o := newTestGatherer(repo)
			s := takeSnapshot(t, o, repo)
			p := s.Pipelines[0]
			at := &Evaluation{Basis: branch.Basis{Snapshot: s, Pipeline: p, Unit: p.Units["web"].Unit}}
			edit := fieldedit.Edit{File: c.file, Mode: fieldedit.Mode(0o100644), After: []byte(c.text)}
			for range 2 { // the second is from memory
				why, err := o.Effects.WhyNotIsolated(t.Context(), &at.Basis, []string{"web"}, c.env, s.BranchFor(p.Pipeline, c.env).Commit, []fieldedit.Edit{edit})
				if err != nil || c.want == "" && why != "" || !strings.Contains(why, c.want) {
					t.Errorf("%q, %v; want %q", why, err, c.want)
				}
			}
		})
	}
}

// TestBlameOnBranches counts commits of every branch that a target follows.
func TestBlameOnBranches(t *testing.T) {
	two := appSetYAML("s", "{list: {elements: ["+listElement("web", "qa", "env/qa")+"]}}",
		"sources: [{repoURL: '"+repoURL+"', path: 'apps/web', targetRevision: '{{ .branch }}'}, {repoURL: '"+repoURL+"', path: base, targetRevision: main}]")
	c := newBranchRepo(t, map[string]string{"argocd/s.yaml": two})
	o := newTestGatherer(c)
	landed, _, err := c.Mirror.Head(t.Context(), "env/qa")
	if err != nil {
		t.Fatal(err)
	}
	c.checkoutBranch("env/qa")
	mine := c.commit("env/qa", map[string]string{"apps/web/kustomization.yaml": "resources: [../../base]\n"})
	c.commit("env/qa", map[string]string{"apps/api/x": "x\n"})
	c.checkoutBranch("main")
	c.commit("main", map[string]string{"apps/web/kustomization.yaml": "resources: [../../base]\nnamePrefix: z-\n"})
	base := c.commit("main", map[string]string{"base/d.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: d}\n"})
	s := takeSnapshot(t, o, c)
	info, err := c.Mirror.Commit(context.Background(), landed)
	if err != nil {
		t.Fatal(err)
	}
	env := &promotion.Env{Name: "qa", Branch: "env/qa", Tip: s.BranchTips["env/qa"], Targets: []promotion.Target{{Name: "s-web-qa"}},
		Landed: promotion.Sure(promotion.Landed{Commit: landed, At: info.CommitTime})}
	if err := o.answerBlame(t.Context(), componentOf(&Evaluation{Basis: branch.Basis{Snapshot: s, Pipeline: s.Pipelines[0]}}, branch.ComponentBasis{Unit: s.Pipelines[0].Units["web"]}), env); err != nil {
		t.Fatal(err)
	}
	got := slices.Sorted(slices.Values(env.Targets[0].ChangedSince.Value))
	if d := cmp.Diff(slices.Sorted(slices.Values([]string{mine, base})), got); d != "" || !env.Targets[0].ChangedSince.OK {
		t.Errorf("touched by (-want +got):\n%s", d)
	}
}
