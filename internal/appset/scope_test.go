package appset

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// scopeSet is an ApplicationSet with a generator and a template's name and annotation.
func scopeSet(name, generators, application, annotation, destination string) string {
	return fmt.Sprintf(`apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: %s}
spec:
  goTemplate: true
  generators:
%s
  template:
    metadata: {name: '%s', annotations: {note: '%s'}}
    spec:
      project: default
      source: {repoURL: "%s", path: p}
      destination: {%s}
`, name, generators, application, annotation, repoURL, destination)
}

const (
	teamsRepo      = "https://git.example.com/acme/teams"
	teamsGenerator = "  - git: {repoURL: \"" + teamsRepo + "\", revision: HEAD, files: [{path: teams/*.json}]}"
	prodGenerator  = "  - clusters: {selector: {matchLabels: {env: prod}}}"
	hub            = "server: https://kubernetes.default.svc"
)

// scopeInput is a branch whose ApplicationSets read another repository and some clusters, and
// what the server could read besides.
func scopeInput(t *testing.T, sets ...string) (in Input, requested *[]string) {
	t.Helper()
	tree := map[string]string{"here/a.json": `{"v": "{{ .password }}", "team": "x"}`}
	for i, s := range sets {
		tree[fmt.Sprintf("argocd/%d.yaml", i)] = s
	}
	p := shop("argocd/*.yaml")
	p.Spec.Component, p.Spec.Environment = "", ""
	in = input(files(tree), p)
	in.Manifests, in.Main = true, "hub"
	in.ArgoCDs = map[string]ArgoCD{"hub": {
		Projects: []string{"default", "secret-project"},
		Clusters: []Cluster{
			{Secret: "a", Name: "east", Server: "https://east.internal:6443", Labels: map[string]string{"env": "prod", "region": "r1", "pci": "yes-it-is"}, Annotations: map[string]string{"owner": "jane-doe"}},
			{Secret: "b", Name: "hidden-cluster", Server: "https://hidden.internal:6443", Labels: map[string]string{"env": "lab"}},
		},
	}}
	requested = &[]string{}
	in.OpenExternal = func(_ context.Context, url, revision string) (*ExternalRef, error) {
		*requested = append(*requested, url+"@"+revision)
		switch {
		case !strings.HasPrefix(normalURL(url), "git.example.com/acme/") || strings.HasSuffix(url, "nothing"):
			return nil, errors.New("it is not tracked")
		case revision == "no-branch":
			return nil, errors.New("there is no such branch")
		}
		return &ExternalRef{Commit: strings.Repeat("b", 40), Tree: files(map[string]string{
			"teams/web.json": `{"team": "web", "password": "hunter2", "deep": {"shown": "yes", "token": "t0ken"}}`,
			"secrets/x.json": `{"team": "hunter2"}`,
		})}, nil
	}
	return in, requested
}

// TestScope resolves what somebody wrote who may read no more than the ApplicationSets of the
// branch do, and holds that nothing else is read, told or confirmed.
func TestScope(t *testing.T) {
	teams := scopeSet("teams", teamsGenerator, "{{ .team }}", "{{ .deep.shown }}", hub)
	clusters := scopeSet("clusters", prodGenerator, "on-{{ .name }}", `{{ index .metadata.labels "region" }}`, "name: \"{{ .name }}\"")
	base, _ := scopeInput(t, teams, clusters)
	known := mustResolve(t, base)
	if len(known.Problems) > 0 || len(known.Targets) != 2 {
		t.Fatalf("the branch's own: %+v", known)
	}
	scope := NewScope("hub", known)
	raw, err := json.Marshal(scope)
	must(t, err)
	if scope = new(Scope); json.Unmarshal(raw, scope) != nil {
		t.Fatal("a scope doesn't survive its way to a worker")
	}
	git := func(url, revision, path string) string {
		return fmt.Sprintf("  - git: {repoURL: %q, revision: %q, files: [{path: %q}]}", url, revision, path)
	}
	const here = "  - git: {repoURL: \"" + repoURL + "\", revision: main, files: [{path: \"here/*.json\"}]}"
	inMatrix := func(a, b string) string {
		indented := strings.ReplaceAll("\n"+a+"\n"+b, "\n  ", "\n      ")
		return "  - matrix:\n      generators:" + indented
	}
	for _, c := range []struct {
		name, set string
		reads     string   // what it is not evaluated for; empty: it is
		targets   []string // besides the branch's own
	}{
		{name: "nothing more", set: scopeSet("more", here, "{{ .team }}", "", hub), targets: []string{"x"}},
		{name: "the same once more", set: scopeSet("more", teamsGenerator, "again-{{ .team }}", "", hub), targets: []string{"again-web"}},
		{name: "the same by another spelling", set: scopeSet("more", git("git@git.example.com:ACME/teams.git", "HEAD", "teams/*.json"), "again-{{ .team }}", "", hub), targets: []string{"again-web"}},
		{name: "another repository", set: scopeSet("more", git("https://git.example.com/acme/vault", "HEAD", "teams/*.json"), "leak-{{ .password }}", "", hub), reads: "acme/vault"},
		{name: "one that isn't tracked", set: scopeSet("more", git("https://git.example.com/acme/nothing", "HEAD", "teams/*.json"), "leak-{{ .password }}", "", hub), reads: "acme/nothing"},
		{name: "folders", set: scopeSet("more", "  - git: {repoURL: \""+teamsRepo+"\", revision: HEAD, directories: [{path: \"*\"}]}", "leak-{{ .path.basename }}", "", hub), reads: "acme/teams"},
		{name: "another branch", set: scopeSet("more", git(teamsRepo, "secret", "teams/*.json"), "leak-{{ .team }}", "", hub), reads: `acme/teams at "secret"`},
		{name: "a branch that isn't there", set: scopeSet("more", git(teamsRepo, "no-branch", "teams/*.json"), "leak-{{ .team }}", "", hub), reads: `acme/teams at "no-branch"`},
		{name: "other files", set: scopeSet("more", git(teamsRepo, "HEAD", "secrets/*.json"), "leak-{{ .team }}", "", hub), reads: "acme/teams"},
		{name: "other words of the same files", set: scopeSet("more", teamsGenerator, "leak-{{ .password }}", "", hub), reads: "acme/teams: password"},
		{name: "other words below the same name", set: scopeSet("more", teamsGenerator, "leak-{{ .deep.token }}", "", hub), reads: "acme/teams: deep.token"},
		{name: "all words at once", set: scopeSet("more", teamsGenerator, "leak-{{ toJson . | sha256sum }}", "", hub), reads: "acme/teams: all that there is"},
		{name: "other words by a variable", set: scopeSet("more", teamsGenerator, "leak-{{ $all := . }}{{ $all.password }}", "", hub), reads: "acme/teams: all that there is"},
		{name: "a template that a file of the change brings", set: scopeSet("more", inMatrix(here, "  - git: {repoURL: \""+teamsRepo+"\", revision: HEAD, files: [{path: teams/*.json}], values: {x: '{{ .v }}'}}"), "leak-{{ .values.x }}", "", hub), reads: "acme/teams"},
		{name: "the same clusters", set: scopeSet("more", prodGenerator, "again-{{ .name }}", "", hub), targets: []string{"again-east"}},
		{name: "all clusters", set: scopeSet("more", "  - clusters: {}", "leak-{{ .name }}", "", hub), reads: "Argo CD's clusters"},
		{name: "other clusters", set: scopeSet("more", "  - clusters: {selector: {matchLabels: {env: lab}}}", "leak-{{ .name }}", "", hub), reads: "Argo CD's clusters with env=lab"},
		{name: "a cluster's address", set: scopeSet("more", prodGenerator, "leak-{{ .name }}", "{{ .server }}", hub), reads: "Argo CD's clusters with env=prod: server"},
		{name: "another label", set: scopeSet("more", prodGenerator, "leak-{{ .name }}", "{{ .metadata.labels.pci }}", hub), reads: "Argo CD's clusters with env=prod: metadata.labels.pci"},
		{name: "all labels", set: scopeSet("more", prodGenerator, "leak-{{ .name }}", "{{ range $k, $v := .metadata.labels }}{{ $v }}{{ end }}", hub), reads: "Argo CD's clusters with env=prod: metadata.labels"},
		{name: "an annotation", set: scopeSet("more", prodGenerator, "leak-{{ .name }}", `{{ with .metadata }}{{ .annotations.owner }}{{ end }}`, hub), reads: "Argo CD's clusters with env=prod: metadata.annotations.owner"},
		{name: "a destination that there is", set: scopeSet("more", "  - list: {elements: [{x: y}]}", "there", "", "name: hidden-cluster"), targets: []string{"there"}},
		{name: "a destination that there isn't", set: scopeSet("more", "  - list: {elements: [{x: y}]}", "there", "", "name: no-cluster"), targets: []string{"there"}},
		{name: "an address that there isn't", set: scopeSet("more", "  - list: {elements: [{x: y}]}", "there", "", "server: https://nowhere"), targets: []string{"there"}},
		{name: "a project that there is", set: strings.Replace(scopeSet("more", "  - list: {elements: [{x: y}]}", "there", "", hub), "project: default", "project: secret-project", 1), targets: []string{"there"}},
		{name: "a project that there isn't", set: strings.Replace(scopeSet("more", "  - list: {elements: [{x: y}]}", "there", "", hub), "project: default", "project: no-project", 1), targets: []string{"there"}},
		{name: "live Applications of another set", set: strings.Replace(scopeSet("others", "  - list: {elements: [{x: y}]}", "there", "", hub), "spec:\n", "spec:\n  tomorrow: true\n", 1), reads: "the live Applications of ApplicationSet others"},
	} {
		t.Run(c.name, func(t *testing.T) {
			in, requested := scopeInput(t, teams, clusters, c.set)
			in.Live = &Live{Sets: []LiveSet{{ArgoCD: "hub", Namespace: "argocd", Name: "others"}}, Applications: func(context.Context, string, string, string) ([]json.RawMessage, error) {
				t.Error("live Applications were listed")
				return nil, nil
			}}
			in.Scope = scope
			f := mustResolve(t, in)
			var names []string
			for _, x := range f.Targets {
				names = append(names, x.Name)
			}
			want := append([]string{"on-east", "web"}, c.targets...)
			slices.Sort(want)
			if d := cmp.Diff(want, names); d != "" {
				t.Errorf("%s; problems %v", d, f.Problems)
			}
			if c.reads == "" != (len(f.Problems) == 0) {
				t.Fatalf("problems: %v", f.Problems)
			}
			if c.reads != "" && !strings.HasPrefix(f.Problems[0].Message, "not evaluated: it reads "+c.reads) {
				t.Errorf("it says %q", f.Problems[0].Message)
			}
			text := targetSetText(t, f)
			for _, secret := range []string{"hunter2", "t0ken", "east.internal", "hidden.internal", "yes-it-is", "jane-doe"} {
				if strings.Contains(text, secret) {
					t.Errorf("it tells %s:\n%s", secret, text)
				}
			}
			for _, r := range *requested {
				if !strings.EqualFold(r, teamsRepo+"@HEAD") && !strings.EqualFold(r, "git@git.example.com:acme/teams.git@HEAD") {
					t.Errorf("%s was opened", r)
				}
			}
		})
	}
}

// TestScopeWithTemplatesOfFiles holds that a file of the change gets no more out of a set of the
// branch's own that takes templates from files.
func TestScopeWithTemplatesOfFiles(t *testing.T) {
	set := scopeSet("more", "  - matrix:\n      generators:\n      - git: {repoURL: \""+repoURL+"\", revision: main, files: [{path: \"here/*.json\"}]}\n"+
		"      - git: {repoURL: \""+teamsRepo+"\", revision: HEAD, files: [{path: teams/*.json}], values: {x: '{{ .v }}'}}", "name", "{{ .values.x }}", hub)
	in, _ := scopeInput(t, set)
	if text := targetSetText(t, mustResolve(t, in)); !strings.Contains(text, "hunter2") {
		t.Fatalf("the set doesn't take templates from files:\n%s", text)
	}
	in.Scope = NewScope("hub", mustResolve(t, in))
	if f := mustResolve(t, in); strings.Contains(targetSetText(t, f), "hunter2") {
		t.Errorf("it tells the password:\n%s", targetSetText(t, f))
	}
}

// TestScopeHidesWords holds that what templates may not use isn't there for them, however they
// come by its name.
func TestScopeHidesWords(t *testing.T) {
	base, _ := scopeInput(t, scopeSet("teams", teamsGenerator, "{{ .team }}", "{{ .deep.shown }}", hub))
	scope := NewScope("hub", mustResolve(t, base))
	words, _ := scope.find(scope.Items[slices.IndexFunc(scope.Items, func(i ScopeItem) bool { return i.Kind == scopeRepository })].ScopeKey)
	got := readWords(words).apply(map[string]any{"team": "web", "password": "x", "deep": map[string]any{"shown": 1, "token": 2}, "list": []any{map[string]any{"a": 1}}, "path": map[string]any{"path": "teams"}})
	if d := cmp.Diff(map[string]any{"team": "web", "deep": map[string]any{"shown": 1}}, got); d != "" {
		t.Error(d)
	}
	list := readWords{"list.name": true, "list" + elements: true, "path.segments": true}
	got = list.apply(map[string]any{"list": []any{map[string]any{"name": "a", "secret": "b"}, "c"}, "path[0]": "p", "other": 1})
	if d := cmp.Diff(map[string]any{"list": []any{map[string]any{"name": "a"}, nil}, "path[0]": "p"}, got); d != "" {
		t.Error(d)
	}
	if whole := (readWords{everyWord: true}).apply(map[string]any{"a": 1}); len(whole) != 1 {
		t.Errorf("of all words: %v", whole)
	}
}

func TestFieldWords(t *testing.T) {
	for text, want := range map[string]string{
		"plain":                      "",
		"{{ .a.b }}-{{ $.c }}":       "a.b c",
		"{{ . }}":                    "<all>",
		"{{ toJson $ }}":             "<all>",
		`{{ index .m "k" "x.y/z" }}`: "m.k.x.y/z",
		`{{ index .m .k }}`:          "m k",
		`{{ index . "k" }}`:          "k",
		`{{ (index .m "k").rest }}`:  "m.k",
		"{{ if .a }}{{ .b }}{{ else }}{{ .c }}{{ end }}":             "a b c",
		"{{ with .a }}{{ .b }}{{ end }}":                             "a.b",
		"{{ with .a }}{{ $.b }}{{ end }}":                            "b",
		"{{ range .a }}{{ .b }}{{ end }}":                            "a.# a.b",
		"{{ range .a }}{{ . }}{{ end }}":                             "a.# a",
		"{{ range $i, $v := .a }}{{ $v.b }}{{ end }}":                "a",
		"{{ $x := .a }}{{ $x.b }}":                                   "a",
		"{{ range . }}{{ .b }}{{ end }}":                             "<all>",
		`{{ define "t" }}{{ .secret }}{{ end }}{{ template "t" . }}`: "<all>",
		`{{ "}}" }}{{ .a | replace "." "-" }}`:                       "a",
		"{{ .broken":                                                 "",
	} {
		var got []string
		for _, w := range fieldWords(text) {
			if w == everyWord {
				w = "<all>"
			}
			got = append(got, w)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	if got := strings.Join(plainWords("{{a.b}}-{{ metadata.labels.app.kubernetes.io/name }}{{c"), " "); got != "a.b metadata.labels.app.kubernetes.io/name c" {
		t.Errorf("without Go templates: %q", got)
	}
}
