package appset

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/pipeline"
)

const repoURL = "https://git.example.com/acme/fleet.git"

// shop is a pipeline of three environments over the given manifest globs.
func shop(paths ...string) *pipeline.Pipeline {
	p := &pipeline.Pipeline{File: ".liftlock.yaml"}
	p.Metadata.Name = "shop"
	p.Spec.Component = "{{ index .path.segments 1 }}"
	p.Spec.Environment = "{{ .path.basename }}"
	for _, path := range paths {
		p.Spec.ApplicationSets = append(p.Spec.ApplicationSets, pipeline.ApplicationSetSource{Path: path})
	}
	p.Spec.Environments = []pipeline.Environment{{Name: "dev"}, {Name: "qa", After: []string{"dev"}}, {Name: "prod", After: []string{"qa"}}}
	return p
}

// files makes a tree of the given contents.
func files(contents map[string]string) fstest.MapFS {
	tree := fstest.MapFS{}
	for name, data := range contents {
		tree[name] = &fstest.MapFile{Data: []byte(data)}
	}
	return tree
}

const directoriesSet = `apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: shop, namespace: argocd}
spec:
  goTemplate: true
  goTemplateOptions: ["missingkey=error"]
  generators:
    - git:
        repoURL: https://git.example.com/acme/fleet.git
        revision: HEAD
        directories: [{path: apps/*/*}]
  template:
    metadata: {name: '{{ index .path.segments 1 }}-{{ .path.basename }}'}
    spec:
      project: default
      source: {repoURL: https://git.example.com/acme/fleet.git, targetRevision: main, path: '{{ .path.path }}'}
      destination: {server: https://kubernetes.default.svc, namespace: '{{ .path.basename }}'}
      syncPolicy: {automated: {}}
`

func directoriesTree() fstest.MapFS {
	return files(map[string]string{
		"argocd/shop.yaml":                 directoriesSet,
		"argocd/project.yaml":              "apiVersion: argoproj.io/v1alpha1\nkind: AppProject\nmetadata: {name: default}\n",
		"apps/web/dev/kustomization.yaml":  "",
		"apps/web/qa/kustomization.yaml":   "",
		"apps/web/prod/kustomization.yaml": "",
		"apps/api/dev/kustomization.yaml":  "",
		"apps/.hidden/dev/x":               "",
	})
}

func input(tree fs.FS, p *pipeline.Pipeline) Input {
	return Input{Pipeline: p, Tree: tree, Branch: "main", RepoURLs: []string{repoURL}}
}

func mustResolve(t *testing.T, in Input) *TargetSet {
	t.Helper()
	f, err := New(Options{}).Resolve(context.Background(), in)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestResolveDirectories(t *testing.T) {
	f := mustResolve(t, input(directoriesTree(), shop("argocd/*.yaml")))
	if len(f.Problems) > 0 {
		t.Fatalf("problems: %v", f.Problems)
	}
	var got []string
	for _, x := range f.Targets {
		got = append(got, fmt.Sprintf("%s %s/%s %s", x.Name, x.Component, x.Environment, strings.Join(Roots(x), ",")))
	}
	want := []string{"api-dev api/dev apps/api/dev", "web-dev web/dev apps/web/dev", "web-prod web/prod apps/web/prod", "web-qa web/qa apps/web/qa"}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatal(d)
	}
	web := f.Targets[1]
	if web.Namespace != "argocd" || web.Project != "default" || !web.AutoSync || !web.Managed() ||
		web.ApplicationSet != "shop" || web.ApplicationSetFile != "argocd/shop.yaml" || web.DestNS != "dev" ||
		len(web.Sources) != 1 || !web.Sources[0].Here || web.Sources[0].TargetRevision != "main" {
		t.Fatalf("%+v", web)
	}
}

const filesSet = `apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: helm}
spec:
  generators:
    - git:
        repoURL: git@git.example.com:acme/fleet.git
        revision: main
        files: [{path: "clusters/*/config.json"}]
  template:
    metadata: {name: 'web-{{path.basename}}'}
    spec:
      project: ""
      sources:
        - repoURL: https://charts.example.com
          chart: web
          targetRevision: 1.2.3
          helm: {valueFiles: ["$values/clusters/{{path.basename}}/values/web.yaml", "$other/x.yaml"]}
        - {repoURL: https://git.example.com/acme/fleet, targetRevision: main, ref: values}
      destination: {name: '{{cluster.name}}', namespace: web}
`

func TestResolveFilesFasttemplateMultiSource(t *testing.T) {
	p := shop("sets/helm.yaml")
	p.Spec.Component = "web"
	p.Spec.ApplicationSets[0].Environment = `{{ if eq .path.basename "dev" }}{{ index .path.segments 1 }}{{ end }}`
	p.Spec.ApplicationSets[0].ArgoCD = "hub"
	tree := files(map[string]string{
		"sets/helm.yaml":            filesSet,
		"clusters/dev/config.json":  `{"cluster": {"name": "c-dev"}}`,
		"clusters/prod/config.json": `{"cluster": {"name": "c-prod"}}`,
	})
	f := mustResolve(t, input(tree, p))
	if len(f.Problems) > 0 || len(f.Targets) != 2 {
		t.Fatalf("%+v", f)
	}
	dev, prod := f.Targets[0], f.Targets[1]
	if dev.Environment != "dev" || dev.Component != "web" || prod.Managed() {
		t.Fatalf("dev %+v\nprod %+v", dev, prod)
	}
	if dev.Cluster != "c-dev" || dev.GeneratorFile != "clusters/dev/config.json" || dev.ArgoCD != "hub" || dev.Project != "default" {
		t.Fatalf("%+v", dev)
	}
	if d := cmp.Diff([]string{"clusters/dev", "clusters/dev/values"}, Roots(dev)); d != "" {
		t.Fatal(d)
	}
	if d := cmp.Diff([]string{"clusters/dev/config.json", "clusters/dev/values/web.yaml"}, RepositoryFiles(dev)); d != "" {
		t.Fatal(d)
	}
}

// TestProblems holds that whatever can't be resolved surely ends in a named
// problem and no targets of that set.
func TestProblems(t *testing.T) {
	simple := func(generators string) string {
		return "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: s}\nspec:\n  goTemplate: true\n  goTemplateOptions: [missingkey=error]\n  generators:\n" + generators +
			"  template:\n    metadata: {name: '{{ .name }}'}\n    spec:\n      project: default\n      source: {repoURL: x, path: p}\n      destination: {server: https://kubernetes.default.svc}\n"
	}
	list := "  - list: {elements: [{name: a, path: {basename: dev, segments: [apps, web, dev]}}]}\n"
	cases := []struct {
		name    string
		tree    map[string]string
		change  func(*Input)
		problem string // in the first problem's String
		targets int
	}{
		{name: "no such file", tree: map[string]string{"x": ""}, problem: `applicationSets[0].path "sets/*.yaml": no file of that path exists; there is no folder sets`},
		{name: "no ApplicationSet", tree: map[string]string{"sets/a.yaml": "kind: ConfigMap\n", "sets/b.yaml": "just text"}, problem: "no ApplicationSet in sets/a.yaml, sets/b.yaml"},
		{name: "not YAML", tree: map[string]string{"sets/a.yaml": "a: [\n"}, problem: "sets/a.yaml: document 1 is not YAML"},
		{name: "duplicate key", tree: map[string]string{"sets/a.yaml": "a: 1\n---\nkind: ApplicationSet\nmetadata: {name: a}\nkind: ApplicationSet\n"},
			problem: `sets/a.yaml: document 2 is not YAML: the key "kind" is given twice, in line 3 and in line 5`},
		{name: "not YAML further down", tree: map[string]string{"sets/a.yaml": "a: 1\n---\nb: [\n"}, problem: "sets/a.yaml: document 2 is not YAML: yaml: line 3: "},
		{name: "another type", tree: map[string]string{"sets/a.yaml": "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: s}\nspec: {template: {spec: {syncPolicy: {retry: {limit: '5'}}}}}\n"},
			problem: "ApplicationSet s: spec.template.spec.syncPolicy.retry.limit has a string where its type is int64, so that Kubernetes refuses the object"},
		{name: "other version", tree: map[string]string{"sets/a.yaml": "apiVersion: argoproj.io/v2\nkind: ApplicationSet\n"}, problem: `its apiVersion is "argoproj.io/v2"`},
		{name: "no name", tree: map[string]string{"sets/a.yaml": "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nspec: {}\n"}, problem: "metadata.name is missing"},
		{name: "unknown field", tree: map[string]string{"sets/a.yaml": simple("  - git: {repoURL: x, revision: HEAD, files: [{path: a, recurse: true}]}\n")},
			problem: `ApplicationSet s: unknown field "spec.generators[0].git.files[0].recurse"`},
		{name: "letter case", tree: map[string]string{"sets/a.yaml": simple("  - List: {elements: []}\n")}, problem: `unknown field "spec.generators[0].List"`},
		{name: "unknown field in a nested generator", tree: map[string]string{"sets/a.yaml": simple("  - matrix: {generators: [{list: {elements: [{}]}}, {merge: {mergeKeys: [a], generators: [{list: {elementz: []}}]}}]}\n")},
			problem: `in spec.generators[0].matrix.generators[1].merge: unknown field "generators[0].list.elementz"`},
		{name: "combined too deep", tree: map[string]string{"sets/a.yaml": simple("  - matrix: {generators: [{list: {elements: [{}]}}, {matrix: {generators: [{matrix: {generators: []}}]}}]}\n")},
			problem: `unknown field "generators[0].matrix"`},
		{name: "scmProvider", tree: map[string]string{"sets/a.yaml": simple("  - scmProvider: {github: {organization: acme}}\n")}, problem: "its scmProvider generator asks the network, and such generators are off: the server's file turns them on with generators.scmProvider"},
		{name: "nested pullRequest", tree: map[string]string{"sets/a.yaml": simple("  - merge: {mergeKeys: [a], generators: [{pullRequest: {}}]}\n")}, problem: "generators.pullRequest"},
		{name: "clusterDecisionResource", tree: map[string]string{"sets/a.yaml": simple("  - clusterDecisionResource: {configMapRef: x}\n")}, problem: "its clusterDecisionResource generator needs a ConfigMap and a resource of the cluster"},
		{name: "other repository", tree: map[string]string{"sets/a.yaml": simple("  - git: {repoURL: 'https://u:secret@git.example.com/acme/other', revision: HEAD, directories: [{path: '*'}]}\n")},
			problem: "https://git.example.com/acme/other, which is not this repository"},
		{name: "other revision", tree: map[string]string{"sets/a.yaml": simple("  - git: {repoURL: '" + repoURL + "', revision: v1, directories: [{path: '*'}]}\n")}, problem: `revision "v1", which is not the branch that is tracked ("main")`},
		{name: "clusters not known", tree: map[string]string{"sets/a.yaml": simple("  - matrix: {generators: [{list: {elements: [{}]}}, {clusters: {}}]}\n")}, problem: "those are not known here"},
		{name: "partial results", tree: map[string]string{"sets/a.yaml": simple(list + "  - list: {elements: [{nome: b}]}\n")}, problem: "map has no entry for key"},
		{name: "missing project", tree: map[string]string{"sets/a.yaml": simple(list)}, change: func(in *Input) { in.Projects = []string{"other"} }, problem: `Application a: its project "default" does not exist`},
		{name: "unknown destination", tree: map[string]string{"sets/a.yaml": strings.Replace(simple(list), "{server: https://kubernetes.default.svc}", "{name: nowhere}", 1)},
			change: func(in *Input) { in.Clusters = []Cluster{} }, problem: "destination nowhere is not a cluster that Argo CD knows"},
		{name: "duplicates", tree: map[string]string{"sets/a.yaml": simple(list + list)}, problem: "more than one Application of this name", targets: 1},
		{name: "two sets, one name", tree: map[string]string{"sets/a.yaml": simple(list), "sets/b.yaml": simple(list)}, problem: "sets/b.yaml: ApplicationSet s: Application a: ApplicationSet s in sets/a.yaml generates", targets: 1},
		{name: "environment not in the pipeline", tree: map[string]string{"sets/a.yaml": strings.ReplaceAll(simple(list), "dev", "staging")}, problem: `environment "staging", of component "web", is not in the pipeline`, targets: 1},
		{name: "environment misspelt", tree: map[string]string{"sets/a.yaml": strings.ReplaceAll(simple(list), "dev", "devv")}, problem: `or let the environment template give nothing for it; did you mean "dev"?`, targets: 1},
		{name: "too deep a segment", tree: map[string]string{"sets/a.yaml": simple("  - list: {elements: [{name: a, path: {path: apps/web, basename: dev, segments: [apps]}}]}\n")}, change: func(in *Input) { in.Pipeline.Spec.Component = "{{ index .path.segments 7 }}" }, problem: "index out of range: 7; its path has the segments 0 to 1", targets: 1},
		{name: "component template fails", tree: map[string]string{"sets/a.yaml": simple("  - list: {elements: [{name: a, path: {basename: dev, segments: [apps]}}]}\n")}, problem: "Application a: the component template", targets: 1},
		{name: "missing parameter beside a long one", tree: map[string]string{"sets/a.yaml": simple("  - list: {elements: [{name: a, " + strings.Repeat("x", 90) + ": b}]}\n")}, problem: "; there are name, " + strings.Repeat("x", 77) + "…", targets: 1},
		{name: "missing parameter", tree: map[string]string{"sets/a.yaml": simple("  - list: {elements: [{name: a}]}\n")}, problem: `map has no entry for key "path"`, targets: 1},
		{name: "not a name", tree: map[string]string{"sets/a.yaml": strings.ReplaceAll(simple(list), "web", "Web_Shop")}, problem: `gave "Web_Shop", which is not a name`, targets: 1},
		{name: "broken template", tree: map[string]string{"sets/a.yaml": simple(list)}, change: func(in *Input) { in.Pipeline.Spec.Component = "{{ .x" }, problem: "the component template", targets: 1},
		{name: "endless template", tree: map[string]string{"sets/a.yaml": simple(list)}, change: func(in *Input) { in.Pipeline.Spec.Component = `{{ range until 100000 }}xxxx{{ end }}` }, problem: "writes more than 4096 bytes", targets: 1},
		{name: "repeat bomb", tree: map[string]string{"sets/a.yaml": simple(list)}, change: func(in *Input) { in.Pipeline.Spec.Component = `{{ repeat 1000000000 "x" }}` }, problem: "that would be more than", targets: 1},
		{name: "oversized manifest", tree: map[string]string{"sets/a.yaml": strings.Repeat("#", maxFile+1)}, problem: "are more than the 4194304 that are read"},
		{name: "alias bomb", tree: map[string]string{"sets/a.yaml": aliasBomb()}, problem: "excessive aliasing"},
		{name: "pathspec magic", tree: map[string]string{"sets/a.yaml": simple("  - git: {repoURL: '" + repoURL + "', revision: HEAD, files: [{path: ':!x'}]}\n")}, problem: "pathspec magic"},
		{name: "library panic", tree: map[string]string{"sets/a.yaml": simple("  - merge:\n      mergeKeys: [name]\n      generators:\n      - clusters: {values: {x: z}}\n      - list: {elements: [{name: in-cluster, values: {a: 1}}]}\n")},
			change: func(in *Input) { in.Clusters = []Cluster{} }, problem: "the generator library failed on it"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			in := input(files(c.tree), shop("sets/*.yaml"))
			if c.change != nil {
				c.change(&in)
			}
			f := mustResolve(t, in)
			if len(f.Problems) == 0 || !strings.Contains(f.Problems[0].String(), c.problem) {
				t.Errorf("problems %v\nwant one with %q", f.Problems, c.problem)
			}
			for _, p := range f.Problems {
				if strings.Contains(p.String(), "secret") {
					t.Errorf("a credential is in %q", p)
				}
			}
			if len(f.Targets) != c.targets {
				t.Errorf("%d targets, want %d: %+v", len(f.Targets), c.targets, f.Targets)
			}
			for _, x := range f.Targets {
				if x.Managed() && c.name != "duplicates" && c.name != "two sets, one name" {
					t.Errorf("%s is managed as %s/%s", x.Name, x.Component, x.Environment)
				}
			}
		})
	}
}

func aliasBomb() string {
	var b strings.Builder
	b.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n")
	for i := 1; i < 12; i++ {
		fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 10), ","))
	}
	return b.String()
}

func TestOverridesAndLaterEntryWins(t *testing.T) {
	p := shop("argocd/*.yaml", "argocd/shop.yaml")
	p.Spec.ApplicationSets[1].Environment = "prod"
	p.Spec.ApplicationSets[1].Component = `{{ .application.metadata.name }}-{{ .applicationSet.metadata.name }}`
	p.Spec.ApplicationSets[1].ArgoCD = "prod-hub"
	f := mustResolve(t, input(directoriesTree(), p))
	if len(f.Problems) > 0 {
		t.Fatal(f.Problems)
	}
	for _, x := range f.Targets {
		if x.Environment != "prod" || x.ArgoCD != "prod-hub" || x.Component != x.Name+"-shop" {
			t.Fatalf("%+v", x)
		}
	}
}

func TestTimeout(t *testing.T) {
	set := strings.Replace(directoriesSet, "{{ index .path.segments 1 }}-", `{{ range until 200000 }}{{ range until 200000 }}{{ end }}{{ end }}`, 1)
	tree := directoriesTree()
	tree["argocd/shop.yaml"].Data = []byte(set)
	r := New(Options{Timeout: 20 * time.Millisecond})
	in := input(tree, shop("argocd/shop.yaml"))
	in.Revision = strings.Repeat("a", 40)
	f, err := r.Resolve(context.Background(), in)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Targets) > 0 || len(f.Problems) != 1 || !strings.Contains(f.Problems[0].Message, "longer than 20ms") {
		t.Fatalf("%+v", f)
	}
	if r.targetSets.Stats().Entries > 0 {
		t.Fatal("a timeout must not be kept")
	}
}

func TestCachedByInputs(t *testing.T) {
	r := New(Options{CacheSize: 1})
	in := input(directoriesTree(), shop("argocd/*.yaml"))
	in.Revision = strings.Repeat("a", 40)
	resolve := func() *TargetSet {
		f, err := r.Resolve(context.Background(), in)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	first := resolve()
	if resolve() != first {
		t.Fatal("the same inputs were resolved again")
	}
	in.Clusters = []Cluster{}
	if resolve() == first {
		t.Fatal("other clusters gave the same fleet")
	}
	in.Clusters = nil
	if resolve() == first {
		t.Fatal("more fleets were kept than asked")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	in.Branch = "other"
	if _, err := r.Resolve(ctx, in); err == nil {
		t.Fatal("an ended context must be an error")
	}
}

func TestManifests(t *testing.T) {
	in := input(directoriesTree(), shop("argocd/*.yaml"))
	in.Manifests = true
	f := mustResolve(t, in)
	var app map[string]any
	if err := json.Unmarshal(f.Targets[0].Application, &app); err != nil {
		t.Fatal(err)
	}
	if app["kind"] != "Application" || app["status"] != nil {
		t.Fatalf("%v", app)
	}
}
