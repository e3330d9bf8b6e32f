package appset

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"
	"go.uber.org/zap"

	"github.com/argoproj/argo-cd/v2/applicationset/controllers/template"
	"github.com/argoproj/argo-cd/v2/applicationset/generators"
	"github.com/argoproj/argo-cd/v2/applicationset/services"
	"github.com/argoproj/argo-cd/v2/applicationset/utils"
	argov1alpha1 "github.com/argoproj/argo-cd/v2/pkg/apis/application/v1alpha1"

	"github.com/liftlock/liftlock/internal/git"
)

// The benchmarks compare with Argo CD's own generator library on the same
// commit of a real mirror, at the size that the numbers in docs/resolution.md
// are for. Whether both give the same is checked before ours is timed.
var benchTargets = flag.Int("bench-targets", 10_000, "Applications in the benchmarks' fleets")

// benchShape is one way to come by many Applications.
type benchShape struct {
	name     string
	set      string
	file     int // which generator file a push changes; -1: none
	clusters []Cluster
}

// benchTemplate is an Application as teams write them, over the parameters
// that all shapes have.
func benchTemplate(app, env, path, server string) string {
	return fmt.Sprintf(`
  template:
    metadata:
      name: '{{ %[1]s }}-{{ %[2]s }}'
      labels: {app: '{{ %[1]s }}', env: '{{ %[2]s }}'}
      annotations: {notifications.argoproj.io/subscribe.on-degraded.slack: 'team-{{ %[1]s }}'}
    spec:
      project: default
      source:
        repoURL: https://git.example.com/acme/fleet.git
        targetRevision: main
        path: '{{ %[3]s }}'
        kustomize: {namePrefix: '{{ %[2]s }}-', commonLabels: {env: '{{ %[2]s }}'}}
      destination: {server: '%[4]s', namespace: '{{ %[1]s }}-{{ %[2]s }}'}
      syncPolicy:
        automated: {prune: true, selfHeal: true}
        syncOptions: [CreateNamespace=true, ServerSideApply=true]
`, app, env, path, server)
}

func benchSet(generators, template string) string {
	return "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: bench, namespace: argocd}\nspec:\n  goTemplate: true\n  goTemplateOptions: [missingkey=error]\n  generators:\n" + generators + strings.TrimPrefix(template, "\n")
}

const inCluster = "https://kubernetes.default.svc"

func benchShapes(n int) []benchShape {
	var list strings.Builder
	list.WriteString("  - list:\n      elements:\n")
	for i := range n {
		fmt.Fprintf(&list, "      - {app: app-%05d, env: %s, path: apps/app-%05d}\n", i, benchEnv(i), i)
	}
	const git = "{repoURL: 'https://git.example.com/acme/fleet.git', revision: HEAD, "
	const files = "git: " + git + "files: [{path: 'apps/*/config.json'}]}"
	var overrides strings.Builder
	for i := range 100 {
		fmt.Fprintf(&overrides, "          - {app: app-%05d, tier: gold}\n", i)
	}
	return []benchShape{
		{name: "list", file: -1, set: benchSet(list.String(), benchTemplate(".app", ".env", ".path", inCluster))},
		{name: "directories", file: -1, set: benchSet("  - git: "+git+"directories: [{path: 'apps/*'}]}\n",
			benchTemplate(".path.basename", "index .path.segments 0", ".path.path", inCluster))},
		{name: "files-clusters", file: n / 2, clusters: []Cluster{{Secret: "prod", Name: "prod", Server: "https://prod.example.com", Labels: map[string]string{"env": "prod"}}},
			set: benchSet("  - matrix:\n      generators:\n      - "+files+"\n      - clusters: {selector: {matchLabels: {env: prod}}}\n",
				benchTemplate(".app", ".env", ".path.path", "{{ .server }}"))},
		{name: "merge", file: n / 2, set: benchSet("  - merge:\n      mergeKeys: [app]\n      generators:\n      - "+files+"\n      - list:\n          elements:\n"+overrides.String(),
			benchTemplate(".app", ".env", ".path.path", inCluster))},
	}
}

func benchEnv(i int) string { return []string{"dev", "qa", "prod"}[i%3] }

func benchConfig(i int, tag string) string {
	return fmt.Sprintf(`{"app": "app-%05d", "env": "%s", "tier": "silver", "release": {"tag": "%s", "replicas": %d}}`, i, benchEnv(i), tag, 1+i%5)
}

// benchRepository is a mirror with a fleet of n folders, and the commits of a
// branch on which each changes one generator file more.
func benchRepository(b *testing.B, n, commits int, shapes []benchShape) (m *git.Mirror, revisions []string) {
	b.Helper()
	bare := b.TempDir()
	runGit(b, bare, "init", "-q", "--bare", "--initial-branch=main")
	var s strings.Builder
	blob := func(path, content string) {
		fmt.Fprintf(&s, "M 100644 inline %s\ndata %d\n%s\n", path, len(content), content)
	}
	for c := range commits + 1 {
		s.WriteString("commit refs/heads/main\ncommitter a <a@example.com> 1700000000 +0000\ndata 1\nx\n")
		if c > 0 {
			blob(fmt.Sprintf("apps/app-%05d/config.json", n/2), benchConfig(n/2, fmt.Sprintf("v%d", c)))
			continue
		}
		for _, shape := range shapes {
			blob("argocd/"+shape.name+".yaml", shape.set)
		}
		for i := range n {
			blob(fmt.Sprintf("apps/app-%05d/config.json", i), benchConfig(i, "v0"))
			blob(fmt.Sprintf("apps/app-%05d/kustomization.yaml", i), "resources: [../../base]\n")
		}
	}
	cmd := exec.Command("git", "-C", bare, "fast-import", "--quiet")
	cmd.Stdin = strings.NewReader(s.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("git fast-import: %v\n%s", err, out)
	}
	m, err := git.Open(b.Context(), git.Options{URL: "file://" + bare, Dir: b.TempDir(), Author: git.Ident{Name: "a", Email: "a@example.com"}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = m.Close() })
	if _, err := m.Fetch(b.Context()); err != nil {
		b.Fatal(err)
	}
	revisions = strings.Fields(runGit(b, bare, "rev-list", "--reverse", "refs/heads/main"))
	return m, revisions
}

func (bs *benchShape) input(m *git.Mirror, revision string) Input {
	p := shop("argocd/" + bs.name + ".yaml")
	p.Spec.Component, p.Spec.Environment = "web", "dev"
	clusters := bs.clusters
	if clusters == nil {
		clusters = []Cluster{}
	}
	return Input{Pipeline: p, Tree: m.Tree(revision), Revision: revision, Branch: "main", RepoURLs: []string{repoURL}, Clusters: clusters, Projects: []string{"default"}}
}

// libraryRepos is the commit as Argo CD's repo server would give it, in memory.
type libraryRepos struct {
	services.Repos
	files   map[string]map[string][]byte // by pattern
	folders []string
}

func (l *libraryRepos) GetFiles(_ context.Context, _, _, pattern string, _, _ bool) (map[string][]byte, error) {
	return l.files[pattern], nil
}

func (l *libraryRepos) GetDirectories(context.Context, string, string, bool, bool) ([]string, error) {
	return l.folders, nil
}

// library is Argo CD's way from a set to Applications.
type library struct {
	set   *argov1alpha1.ApplicationSet
	repos *libraryRepos
	snap  *snapshot
	made  []argov1alpha1.Application // by the last generate
}

func (bs *benchShape) library(b *testing.B, m *git.Mirror, revision string) *library {
	b.Helper()
	in := bs.input(m, revision)
	sets, problems, _ := findSets(b.Context(), &in)
	if len(sets) != 1 || len(problems) > 0 {
		b.Fatal(problems)
	}
	repos := &commitRepos{ctx: b.Context(), commit: &commit{tree: in.Tree, urls: in.RepoURLs}, globbing: GlobbingGit}
	const pattern = "apps/*/config.json"
	found, err := repos.locateFiles(repoURL, "HEAD", pattern)
	must(b, err)
	files := map[string][]byte{}
	for i := range found {
		files[found[i].name], err = repos.readFile(&found[i])
		must(b, err)
	}
	folders, err := repos.listFolders(repoURL, "HEAD", []string{""})
	must(b, err)
	return &library{set: &sets[0].spec, repos: &libraryRepos{files: map[string]map[string][]byte{pattern: files}, folders: folders}, snap: newSnapshots(&in)[""]}
}

func (l *library) generate(b *testing.B) {
	b.Helper()
	c := &snapshotClient{secrets: l.snap.secrets, projects: l.snap.projects}
	gens := generators.GetGenerators(b.Context(), c, &snapshotClientset{secrets: l.snap.secrets}, "argocd", l.repos, nil, generators.SCMConfig{})
	apps, _, err := template.GenerateApplications(logrus.WithField("applicationset", l.set.Name), *l.set.DeepCopy(), gens, &utils.Render{}, c)
	if err != nil || len(apps) != *benchTargets {
		b.Fatal(len(apps), err)
	}
	l.made = apps
}

// sameAs checks that a fleet equals the library's.
func (l *library) sameAs(b *testing.B, f *TargetSet) {
	b.Helper()
	if l.made == nil {
		l.generate(b)
	}
	want := map[string]string{}
	for i := range l.made {
		want[l.made[i].Name] = canonical(b, &l.made[i])
	}
	got := map[string]string{}
	for _, t := range f.Targets {
		app := &argov1alpha1.Application{}
		must(b, json.Unmarshal(t.Application, app))
		got[app.Name] = canonical(b, app)
	}
	if len(f.Problems) > 0 || len(got) != *benchTargets {
		b.Fatal(len(got), f.Problems)
	}
	if d := cmp.Diff(want, got); d != "" {
		b.Fatalf("the Applications differ (-library +liftlock):\n%s", d[:min(len(d), 4000)])
	}
}

// fast is the shape with fasttemplate in place of Go templates.
func (bs benchShape) fast() benchShape {
	bs.set = strings.NewReplacer("  goTemplate: true\n  goTemplateOptions: [missingkey=error]\n", "", "{{ index .path.segments 0 }}", "{{path[0]}}", "{{ .path.path }}", "{{path}}",
		"{{ .path.basename }}", "{{path.basename}}", "{{ .path }}", "{{path}}", "{{ .app }}", "{{app}}", "{{ .env }}", "{{env}}", "{{ .server }}", "{{server}}").Replace(bs.set)
	return bs
}

// BenchmarkResolve resolves fleets of all shapes cold. library/… generates the Applications as the
// controller does. liftlock/… reads the manifest and the files from the mirror, generates the same
// and describes the targets. The library is given the set decoded, as the API server gives it to
// the controller. Reading the manifest is part of cpu-ms/op and, by itself, cpu-ms/manifest.
// x-library is how many times as long the library took in the same run, the manifest left out.
func BenchmarkResolve(b *testing.B) { benchmarkCold(b, benchShapes(*benchTargets)) }

// BenchmarkResolveFasttemplate does the same for sets without Go templates,
// which the library renders faster.
func BenchmarkResolveFasttemplate(b *testing.B) {
	shapes := benchShapes(*benchTargets)
	for i := range shapes {
		shapes[i] = shapes[i].fast()
	}
	benchmarkCold(b, shapes)
}

// reportProcessorTime reports cpu-ms/op: what the work takes of the processors, the garbage
// collection included, whatever else the machine does.
func reportProcessorTime(b *testing.B) (end func() (milliseconds float64)) {
	b.Helper()
	runtime.GC()
	began := processorTime(b)
	return func() float64 {
		took := milliseconds(processorTime(b)-began, b.N)
		b.ReportMetric(took, "cpu-ms/op")
		return took
	}
}

// milliseconds is how many of them each of n operations took.
func milliseconds(total time.Duration, n int) float64 { return float64(total) / float64(n) / 1e6 }

// manifestTime is what reading the set from the mirror and decoding it takes, in
// milliseconds of the processors.
func (bs *benchShape) manifestTime(b *testing.B, m *git.Mirror, revision string) float64 {
	b.Helper()
	const times = 10
	runtime.GC()
	began := processorTime(b)
	for range times {
		in := bs.input(m, revision)
		if sets, problems, _ := findSets(b.Context(), &in); len(sets) != 1 || len(problems) > 0 {
			b.Fatal(problems)
		}
	}
	return milliseconds(processorTime(b)-began, times)
}

func benchmarkCold(b *testing.B, shapes []benchShape) {
	redirectLibraryLogs(zap.NewNop())
	m, revisions := benchRepository(b, *benchTargets, 0, shapes)
	for i := range shapes {
		shape := &shapes[i]
		l := shape.library(b, m, revisions[0])
		took := 0.0 // by the library; 0: it wasn't timed
		b.Run("library/"+shape.name, func(b *testing.B) {
			end := reportProcessorTime(b)
			b.ReportAllocs()
			for b.Loop() {
				l.generate(b)
			}
			took = end()
		})
		b.Run("liftlock/"+shape.name, func(b *testing.B) {
			in := shape.input(m, revisions[0])
			in.Manifests = true
			f, err := New(Options{}).Resolve(b.Context(), in)
			must(b, err)
			l.sameAs(b, f)
			manifest := shape.manifestTime(b, m, revisions[0])
			end := reportProcessorTime(b)
			b.ReportAllocs()
			for b.Loop() {
				f, err := New(Options{}).Resolve(b.Context(), shape.input(m, revisions[0]))
				if err != nil || len(f.Targets) != *benchTargets || len(f.Problems) > 0 {
					b.Fatal(err, len(f.Targets), f.Problems)
				}
			}
			own := end()
			b.ReportMetric(manifest, "cpu-ms/manifest")
			if took > 0 {
				b.ReportMetric(took/(own-manifest), "x-library")
			}
		})
	}
}

// BenchmarkResolveChanged resolves one commit after another of which each
// changes one generator file.
func BenchmarkResolveChanged(b *testing.B) {
	const commits = 50
	shapes := benchShapes(*benchTargets)
	m, revisions := benchRepository(b, *benchTargets, commits, shapes)
	for i := range shapes {
		shape := &shapes[i]
		if shape.file < 0 {
			continue
		}
		b.Run(shape.name, func(b *testing.B) {
			r := New(Options{CacheSize: 1})
			resolve := func(n int) *TargetSet {
				f, err := r.Resolve(b.Context(), shape.input(m, revisions[n%len(revisions)]))
				if err != nil || len(f.Targets) != *benchTargets || len(f.Problems) > 0 {
					b.Fatal(err, len(f.Targets), f.Problems)
				}
				return f
			}
			last, n := resolve(0), 0
			defer reportProcessorTime(b)()
			b.ReportAllocs()
			for b.Loop() {
				n++
				f := resolve(n)
				before, _ := json.Marshal(last.Targets[shape.file].Params)
				after, _ := json.Marshal(f.Targets[shape.file].Params)
				if bytes.Equal(before, after) {
					b.Fatal("the change was not seen")
				}
				last = f
			}
		})
	}
}
