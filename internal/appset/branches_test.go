package appset

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/pipeline"
)

func TestViewFromBranch(t *testing.T) {
	here := func(path, revision string) Source { return Source{Here: true, Path: path, TargetRevision: revision} }
	base := Target{Name: "web", Branch: "env/qa", ApplicationSetFile: "argocd/web.yaml",
		Sources:       []Source{here("a", "env/qa"), here("b", "refs/heads/env/qa"), here("c", "main"), here("d", ""), here("e", "HEAD"), here("f", "v1"), here("g", "env/dev"), {Path: "h", TargetRevision: "env/qa"}},
		GeneratorFile: "main.json", GeneratorFiles: []string{"main.json"},
		BranchFiles: []BranchFile{{"env/dev", "dev.json"}, {"env/qa", "qa.json"}, {"env/qa", "qa/more.json"}}}
	loose := base
	loose.Branch = ""
	for _, c := range []struct {
		name   string
		target Target
		branch string
		paths  string
		files  string
	}{
		{"its environment's branch", base, "env/qa", "a b", "qa.json qa/more.json"},
		{"the tracked branch", base, "main", "c d e", "main.json"},
		{"another environment's", base, "env/dev", "g", "dev.json"},
		{"one that it has nothing of", base, "env/prod", "", ""},
		{"without branches, the tracked one", loose, "main", "a b c d e f g", "main.json"},
		{"without branches, another", loose, "env/qa", "a b", "qa.json qa/more.json"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ViewFromBranch(c.target, c.branch, "main")
			var paths []string
			for _, s := range got.Sources {
				if s.Here {
					paths = append(paths, s.Path)
				}
			}
			for i, s := range got.Sources {
				if was := c.target.Sources[i]; was.Here && (s.At == "") != s.Here || s.At != "" && !slices.Contains(TargetBranches(c.target, "main"), s.At) {
					t.Errorf("source %s, here %t, is at %q", s.Path, s.Here, s.At)
				}
			}
			if p, f := strings.Join(paths, " "), strings.Join(got.GeneratorFiles, " "); p != c.paths || f != c.files || !strings.HasPrefix(f, got.GeneratorFile) {
				t.Errorf("sources %q, generator files %q (first %q); want %q and %q", p, f, got.GeneratorFile, c.paths, c.files)
			}
			if set := got.ApplicationSetFile; (set != "") != (c.branch == "main") {
				t.Errorf("its ApplicationSet is in %q", set)
			}
		})
	}
	if d := cmp.Diff([]string{"env/dev", "env/qa", "main", "v1"}, TargetBranches(base, "main")); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"main"}, TargetBranches(Target{Sources: []Source{here("a", "")}}, "main")); d != "" {
		t.Error(d)
	}
	if !base.Sources[2].Here || base.ApplicationSetFile == "" {
		t.Error("On changed what it was given")
	}
}

// branchSet makes its targets of one file on each environment's branch.
const branchSet = `apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: s}
spec:
  goTemplate: true
  generators:
  - matrix:
      generators:
      - list: {elements: [{env: dev, branch: env/dev}, {env: qa, branch: env/qa}, {env: prod, branch: main}]}
      - git: {repoURL: "` + repoURL + `", revision: '{{ .branch }}', files: [{path: "apps/*/config.json"}]}
  template:
    metadata: {name: '{{ .path.basename }}-{{ .env }}'}
    spec:
      project: default
      source: {repoURL: "` + repoURL + `", path: charts/x, targetRevision: '{{ REVISION }}'}
      destination: {server: https://kubernetes.default.svc}
`

// onBranches resolves branchSet; heads are the branches' files by "branch:file".
func onBranches(revision string, heads map[string]string) Input {
	p := &pipeline.Pipeline{Metadata: pipeline.Metadata{Name: "shop"}, File: ".liftlock.yaml", Spec: pipeline.Spec{
		ApplicationSets: []pipeline.ApplicationSetSource{{Path: "set.yaml"}}, Component: "{{ .path.basename }}", Environment: "{{ .env }}",
		Layout:       pipeline.LayoutBranches,
		Environments: []pipeline.Environment{{Name: "dev", Branch: "env/dev"}, {Name: "qa", After: []string{"dev"}, Branch: "env/qa"}, {Name: "prod", After: []string{"qa"}, Branch: "main"}}}}
	trees := map[string]map[string]string{"main": {"set.yaml": strings.ReplaceAll(branchSet, "REVISION", revision)}, "env/dev": {}, "env/qa": {}}
	for at, text := range heads {
		branch, file, _ := strings.Cut(at, ":")
		trees[branch][file] = text
	}
	in := input(files(trees["main"]), p)
	in.Revision = strings.Repeat("a", 40)
	in.OpenExternal = func(_ context.Context, _, revision string) (*ExternalRef, error) {
		tree, ok := trees[revision]
		if !ok {
			return nil, fmt.Errorf("there is no %s", revision)
		}
		return &ExternalRef{Tree: files(tree), Commit: strings.Repeat("a", 40)}, nil // as if all had just been forked
	}
	return in
}

func TestGeneratorFilesOfBranches(t *testing.T) {
	heads := map[string]string{}
	for _, b := range []string{"env/dev", "env/qa", "main"} {
		heads[b+":apps/web/config.json"] = `{"tag": "1"}`
	}
	f := mustResolve(t, onBranches(".branch", heads))
	var got []string
	for _, x := range f.Targets {
		got = append(got, fmt.Sprintf("%s on %s: %v %v", x.Name, x.Branch, x.GeneratorFiles, x.BranchFiles))
	}
	want := []string{
		"web-dev on env/dev: [] [{env/dev apps/web/config.json}]",
		"web-prod on main: [apps/web/config.json] []",
		"web-qa on env/qa: [] [{env/qa apps/web/config.json}]",
	}
	if d := cmp.Diff(want, got); d != "" || len(f.Problems) != 0 {
		t.Errorf("%v (-want +got):\n%s", f.Problems, d)
	}
}

// TestExternalBranches resolves with a branch at another commit than it is: the
// caller's word counts, and answers are not mixed up.
func TestExternalBranches(t *testing.T) {
	heads := map[string]string{"env/dev:apps/web/config.json": "{}", "env/qa:apps/web/config.json": "{}", "main:apps/web/config.json": "{}"}
	in := onBranches(".branch", heads)
	r := New(Options{})
	names := func(in Input) string {
		f, err := r.Resolve(t.Context(), in)
		must(t, err)
		var out []string
		for _, x := range f.Targets {
			out = append(out, x.Name)
		}
		return strings.Join(out, " ")
	}
	edited := in
	edited.Branches = map[string]ExternalRef{"env/qa": {Tree: files(map[string]string{"apps/api/config.json": "{}"}), Commit: strings.Repeat("b", 40)}}
	for range 2 {
		if got := names(in); got != "web-dev web-prod web-qa" {
			t.Errorf("as it is: %s", got)
		}
		if got := names(edited); got != "api-qa web-dev web-prod" {
			t.Errorf("with another commit of env/qa: %s", got)
		}
	}
}

func TestBranchMismatch(t *testing.T) {
	heads := map[string]string{"env/dev:apps/web/config.json": "{}", "env/qa:apps/web/config.json": "{}", "main:apps/web/config.json": "{}"}
	in := onBranches(`if eq .env "qa" }}env/dev{{ else }}{{ .branch }}{{ end`, heads)
	in.Pipeline.Spec.Component, in.Pipeline.Spec.Environment = "web", "{{ .env }}"
	if f := mustResolve(t, in); len(f.Problems) != 0 {
		t.Errorf("web-qa has a generator file on its branch: %v", f.Problems)
	}
	set := strings.NewReplacer("revision: '{{ .branch }}'", "revision: main", "REVISION", `if eq .env "qa" }}env/dev{{ else }}{{ .branch }}{{ end`).Replace(branchSet)
	in.Tree = files(map[string]string{"set.yaml": set, "apps/web/config.json": "{}"})
	f := mustResolve(t, in)
	if len(f.Problems) != 1 || f.Problems[0].Application != "web-qa" || len(f.Targets) != 3 {
		t.Fatalf("%d targets, problems %v", len(f.Targets), f.Problems)
	}
	want := `it follows targetRevision "env/dev", and environment qa lives on the branch env/qa: let the ApplicationSet's template give targetRevision: env/qa, or correct the environment's branch in the pipeline`
	if d := cmp.Diff(want, f.Problems[0].Message); d != "" {
		t.Error(d)
	}
	in.Tree = files(map[string]string{"set.yaml": strings.ReplaceAll(set, `source: {repoURL: "`+repoURL, `source: {repoURL: "https://charts.example`), "apps/web/config.json": "{}"})
	f = mustResolve(t, in)
	if len(f.Problems) != 2 || !strings.Contains(f.Problems[0].Message, "nothing of it is on the branch env/dev, where environment dev lives") {
		t.Errorf("nothing of this repository: %v", f.Problems)
	}
}
