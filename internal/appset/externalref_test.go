package appset

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOtherRepositoriesAndRevisions(t *testing.T) {
	const other = "https://git.example.com/acme/envs"
	set := func(url, revision string) string {
		return `apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: s}
spec:
  goTemplate: true
  generators:
  - git: {repoURL: "` + url + `", revision: "` + revision + `", files: [{path: "*/config.yaml"}]}
  - git: {repoURL: "` + repoURL + `", revision: main, files: [{path: "here/config.yaml"}]}
  template:
    metadata: {name: '{{ .name }}'}
    spec:
      project: default
      source: {repoURL: x, path: p}
      destination: {server: https://kubernetes.default.svc}
`
	}
	tree := func(url, revision string) map[string]string {
		return map[string]string{"set.yaml": set(url, revision), "here/config.yaml": "name: here\npath: {basename: dev, segments: [a, web]}\n"}
	}
	otherFiles := map[string]string{"dev/config.yaml": "name: there\n"}
	commit := strings.Repeat("b", 40)
	requests := []string{}
	answer := func(_ context.Context, url, revision string) (*ExternalRef, error) {
		requests = append(requests, url+"@"+revision)
		if url != other && revision != "v1" {
			return nil, errors.New("the server doesn't track it")
		}
		return &ExternalRef{Tree: files(otherFiles), Commit: commit}, nil
	}
	for _, c := range []struct {
		name, url, revision string
		refused             bool
		want                []string
		problem             string
	}{
		{name: "another repository", url: other, revision: "main", want: []string{"here", "there"}},
		{name: "another revision", url: repoURL, revision: "v1", want: []string{"here", "there"}},
		{name: "not tracked", url: "https://u:secret@git.example.com/acme/secret", revision: "main", problem: `a git generator reads https://git.example.com/acme/secret at revision "main": the server doesn't track it`},
		{name: "refused", url: other, revision: "main", refused: true, problem: "which is not this repository: other repositories can't be read here"},
		{name: "another revision refused", url: repoURL, revision: "v1", refused: true, problem: `reads revision "v1", which is not the branch that is tracked ("main"): other revisions can't be read here`},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := shop("set.yaml")
			p.Spec.Component, p.Spec.Environment = "", ""
			in := input(files(tree(c.url, c.revision)), p)
			if !c.refused {
				in.OpenExternal = answer
			}
			f := mustResolve(t, in)
			var names []string
			for _, x := range f.Targets {
				names = append(names, x.Name)
				want := ""
				if x.Name == "here" {
					want = "here/config.yaml"
				}
				if x.GeneratorFile != want {
					t.Errorf("%s has the generator file %q, want %q", x.Name, x.GeneratorFile, want)
				}
			}
			if d := cmp.Diff(c.want, names); d != "" {
				t.Error(d)
			}
			if c.problem == "" != (len(f.Problems) == 0) || len(f.Problems) > 0 && !strings.Contains(f.Problems[0].Message, c.problem) {
				t.Errorf("%v, want %q", f.Problems, c.problem)
			}
		})
	}

	// A fleet is good for as long as the other repository stays where it was.
	p := shop("set.yaml")
	p.Spec.Component, p.Spec.Environment = "", ""
	in := input(files(tree(other, "main")), p)
	in.OpenExternal, in.Revision = answer, strings.Repeat("a", 40)
	r := New(Options{})
	resolve := func() *TargetSet {
		f, err := r.Resolve(t.Context(), in)
		must(t, err)
		return f
	}
	requests = nil
	first := resolve()
	if again := resolve(); again != first || len(requests) != 2 {
		t.Errorf("asked %v, the same fleet: %t", requests, again == first)
	}
	commit = strings.Repeat("c", 40)
	otherFiles["qa/config.yaml"] = "name: more\n"
	if moved := resolve(); len(moved.Targets) != 3 {
		t.Errorf("after the other repository moved: %+v", moved)
	}
}
