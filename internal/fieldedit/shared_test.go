package fieldedit

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/pipeline"
)

const elements = `kind: ApplicationSet
spec:
  generators:
    - list:
        elements:
          - {component: web, env: dev, cluster: d1, revision: "1.3"}   # the newest
          - {component: web, env: prod, cluster: eu, revision: "1.2"}
          - {component: web, env: prod, cluster: us, revision: "1.2"}
          - {component: api, env: prod, cluster: eu, revision: "1.2"}
          - component: web
            env: qa
            url: https://qa.example
  template:
    metadata: {name: '{{.component}}-{{.env}}-{{.cluster}}'}
`

func yamlCarry(absent string, file, at string) pipeline.Carry {
	return pipeline.Carry{YAML: &pipeline.FieldPick{Files: []string{file}, Paths: []string{at}}, WhenAbsent: absent}
}

// sharedOverlay is the overlay of an environment whose fields are in folders that others have, too.
func sharedOverlay(component, environment string, carry ...pipeline.Carry) Overlay {
	return Overlay{Shared: []string{"."}, Carry: carry, Environment: environment, Component: component}
}

// TestShared carries from dev of web to another environment of it, in files that
// both are in, and back again.
func TestShared(t *testing.T) {
	const selection = "spec.generators[0].list.elements[component={{component}},env={{environment}}].revision"
	tests := []struct {
		name      string
		files     map[string]string
		carry     pipeline.Carry
		component string // else web
		to        string // else prod
		places    []string
		replaced  []string          // old and new in turn, in the file that is edited
		created   map[string]string // files that come
		refused   string
	}{
		{name: "elements of a list", files: map[string]string{"set.yaml": elements}, carry: yamlCarry("", "set.yaml", selection),
			places:   []string{"set.yaml " + selection},
			replaced: []string{`cluster: eu, revision: "1.2"}` + "\n          - {component: web, env: prod, cluster: us, revision: \"1.2\"", `cluster: eu, revision: "1.3"}` + "\n          - {component: web, env: prod, cluster: us, revision: \"1.3\""}},
		{name: "as JSONPath", files: map[string]string{"set.yaml": elements},
			carry:    yamlCarry("", "set.yaml", `$.spec.generators[0].list.elements[?(@.component=="{{component}}" && @.env=="{{ environment }}")].revision`),
			places:   []string{"set.yaml " + selection},
			replaced: []string{`cluster: eu, revision: "1.2"}` + "\n          - {component: web, env: prod, cluster: us, revision: \"1.2\"", `cluster: eu, revision: "1.3"}` + "\n          - {component: web, env: prod, cluster: us, revision: \"1.3\""}},
		{name: "an element lacks it", files: map[string]string{"set.yaml": elements}, carry: yamlCarry("", "set.yaml", selection), to: "qa",
			refused: `set.yaml: spec.generators[0].list.elements[component=web,env=qa].revision isn't there: add it by hand, or set whenAbsent: add`},
		{name: "an element is given it", files: map[string]string{"set.yaml": elements}, carry: yamlCarry("add", "set.yaml", selection), to: "qa",
			replaced: []string{"env: qa\n", "env: qa\n            revision: \"1.3\"\n"}},
		{name: "no element", files: map[string]string{"set.yaml": elements}, carry: yamlCarry("add", "set.yaml", selection), to: "eu",
			refused: `set.yaml:6: spec.generators[0].list.elements[component=web,env=eu].revision: no item of spec.generators[0].list.elements has component=web and env=eu; there are web and dev, web and prod, api and prod, web and qa`},
		{name: "one of its elements lacks it", files: map[string]string{"e.yaml": "- {env: dev, tag: b}\n- {env: prod, name: x, tag: a}\n- {env: prod, name: y}\n"},
			carry:   yamlCarry("", "e.yaml", "[env={{environment}}].tag"),
			refused: `e.yaml: [env=prod,name=y].tag isn't there: add it by hand, or set whenAbsent: add`},
		{name: "one of its elements is given it", files: map[string]string{"e.yaml": "- {env: dev, tag: b}\n- {env: prod, name: x, tag: a}\n- {env: prod, name: y}\n"},
			carry: yamlCarry("add", "e.yaml", "[env={{environment}}].tag"), replaced: []string{"x, tag: a", "x, tag: b", "name: y", "name: y, tag: b"}},
		{name: "elements that nothing tells apart", files: map[string]string{"e.yaml": "- {env: dev, tag: b}\n- {env: prod, tag: a}\n- {env: prod, tag: a}\n"},
			carry: yamlCarry("", "e.yaml", "[env={{environment}}].tag"), refused: `two items have [env=prod] (the other is on line 2) and nothing that tells them apart`},
		{name: "elements that disagree", files: map[string]string{"e.yaml": "- {env: dev, tag: c}\n- {env: prod, name: x, tag: a}\n- {env: prod, name: y, tag: b}\n"},
			carry: yamlCarry("", "e.yaml", "[env={{environment}}].tag"), replaced: []string{"tag: a", "tag: c", "tag: b", "tag: c"}},
		{name: "a key", files: map[string]string{"values.yaml": "dev:\n  image: {tag: b}\nprod:\n  image: {tag: a} # ours\nall: {x: 1}\n"}, carry: yamlCarry("", "values.yaml", "{{environment}}.image.tag"),
			places: []string{"values.yaml {{environment}}.image.tag"}, replaced: []string{"{tag: a}", "{tag: b}"}},
		{name: "a key that isn't there", files: map[string]string{"values.yaml": "dev:\n  image:\n    tag: b\n"}, carry: yamlCarry("", "values.yaml", "{{environment}}.image.tag"),
			refused: "values.yaml: prod.image.tag isn't there"},
		{name: "a key that is added", files: map[string]string{"values.yaml": "dev:\n  image:\n    tag: b\n"}, carry: yamlCarry("add", "values.yaml", "{{environment}}.image.tag"),
			replaced: []string{"tag: b\n", "tag: b\nprod:\n  image:\n    tag: b\n"}},
		{name: "within a key", files: map[string]string{"values.yaml": "tag-dev-web: b\ntag-prod-web: a\ntag-prod-api: a\n"}, carry: yamlCarry("", "values.yaml", "tag-{{environment}}-{{component}}"),
			replaced: []string{"prod-web: a", "prod-web: b"}},
		{name: "a JSON Pointer", files: map[string]string{"r.json": `{"dev": {"web": "b"}, "prod": {"web": "a"}}`},
			carry:  pipeline.Carry{JSON: &pipeline.FieldPick{Files: []string{"*.json"}, Paths: []string{"/{{environment}}/{{component}}"}}},
			places: []string{"r.json /{{environment}}/{{component}}"}, replaced: []string{`"a"`, `"b"`}},
		{name: "with wildcards", files: map[string]string{"e.yaml": "- {env: dev, apps: [{name: x, tag: b}, {name: y, tag: c}]}\n- {env: prod, apps: [{name: y, tag: a}, {name: x, tag: a}]}\n"},
			carry:    yamlCarry("", "e.yaml", "[env={{environment}}].apps[*].tag"),
			places:   []string{"e.yaml [env={{environment}}].apps[name=x].tag", "e.yaml [env={{environment}}].apps[name=y].tag"},
			replaced: []string{"y, tag: a}, {name: x, tag: a", "y, tag: c}, {name: x, tag: b"}},
		{name: "told apart by a key", files: map[string]string{"e.yaml": "- {env: dev, part: x, tag: b}\n- {env: prod, part: x, tag: a}\n"}, carry: yamlCarry("", "e.yaml", "[env={{environment}},part=*].tag"),
			places: []string{"e.yaml [part=x,env={{environment}}].tag"}, replaced: []string{"tag: a", "tag: b"}},
		{name: "a document", files: map[string]string{"apps.yaml": "metadata: {name: web-dev}\nspec: {rev: b}\n---\nmetadata: {name: web-prod}\nspec: {rev: a}\n"},
			carry: yamlCarry("", "apps.yaml", "[metadata.name={{component}}-{{environment}}].spec.rev"), replaced: []string{"rev: a", "rev: b"}},
		{name: "files side by side", files: map[string]string{"values-dev.yaml": "tag: b\n", "values-prod.yaml": "tag: a\n", "values-qa.yaml": "tag: a\n"},
			carry: yamlCarry("", "values-{{environment}}.yaml", "tag"), places: []string{"values-{{environment}}.yaml tag"}, replaced: []string{"tag: a", "tag: b"}},
		{name: "a folder for each", files: map[string]string{"envs/dev/web.yaml": "tag: b\n", "envs/prod/web.yaml": "tag: a\n", "envs/prod/api.yaml": "tag: a\n"},
			carry: yamlCarry("", "*/{{environment}}/{{component}}.yaml", "tag"), places: []string{"envs/{{environment}}/{{component}}.yaml tag"}, replaced: []string{"tag: a", "tag: b"}},
		{name: "no file", files: map[string]string{"values-dev.yaml": "tag: b\n"}, carry: yamlCarry("add", "values-{{environment}}.yaml", "tag"),
			refused: "values-prod.yaml: tag can't be added, because the environment doesn't have the file: create it"},
		{name: "a name that is grammar elsewhere", component: `w.e[*]="b"`, files: map[string]string{"values.yaml": "w:\n  e: x\n'w.e[*]=\"b\"':\n  dev: b\n  prod: a\n"},
			carry: yamlCarry("", "values.yaml", "{{component}}.{{environment}}"), places: []string{"values.yaml {{component}}.{{environment}}"}, replaced: []string{"prod: a", "prod: b"}},
		{name: "a name that is a glob elsewhere", component: `w*`, files: map[string]string{"w*-dev.yaml": "tag: b\n", "w*-prod.yaml": "tag: a\n", "web-prod.yaml": "tag: a\n"},
			carry: yamlCarry("", "{{component}}-{{environment}}.yaml", "tag"), replaced: []string{"tag: a", "tag: b"}},
		{name: "a name with a slash", component: "shop/web", files: map[string]string{"shop/web.yaml": "tag: b\n"}, carry: yamlCarry("", "{{component}}.yaml", "tag"),
			refused: `the component "shop/web" can't be a part of a file's name`},
		{name: "whole files", files: map[string]string{"config/dev/a": "2", "config/dev/sub/b": "1", "config/prod/a": "1", "config/prod/old": "1", "config/qa/a": "1"},
			carry:  pipeline.Carry{Files: &pipeline.FilePick{Include: []string{"config/{{environment}}/**"}}, WhenAbsent: "add"},
			places: []string{"config/{{environment}}/a ", "config/{{environment}}/sub/b "}, replaced: []string{"1", "2"}, created: map[string]string{"config/prod/sub/b": "1"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.component == "" {
				tt.component = "web"
			}
			if tt.to == "" {
				tt.to = "prod"
			}
			before := newTree(tt.files)
			from, to := sharedOverlay(tt.component, "dev", tt.carry), sharedOverlay(tt.component, tt.to, tt.carry)
			want, err := Read(before, from)
			var edits []Edit
			if err == nil {
				edits, err = Compose(before, to, want, contentsUnder(before, from))
			}
			if tt.refused != "" {
				if err == nil || !strings.Contains(err.Error(), tt.refused) {
					t.Fatalf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var places []string
			for _, f := range want.Fields {
				places = append(places, f.File+" "+f.Path)
			}
			if tt.places != nil {
				if diff := cmp.Diff(tt.places, places); diff != "" {
					t.Errorf("places (-want +got)\n%s", diff)
				}
			}
			for _, e := range edits {
				text := strings.NewReplacer(tt.replaced...).Replace(string(e.Before))
				if e.Created {
					text = tt.created[e.File]
				}
				if diff := cmp.Diff(text, string(e.After)); !e.Deleted && diff != "" {
					t.Errorf("%s (-want +got)\n%s", e.File, diff)
				}
				if strings.Contains(e.Changes[0].String(), "{{") {
					t.Errorf("people are shown the placeholder: %s", e.Changes[0])
				}
			}
			if len(edits) == 0 {
				t.Error("nothing is edited")
			}
			checkRestores(t, before, edits, to)
		})
	}
}

// contentsUnder reads the whole files of an overlay by their places.
func contentsUnder(commit fstest.MapFS, o Overlay) Contents {
	return func(f Field) ([]byte, error) {
		found, err := Locate(commit, o)
		for _, l := range found {
			if l.Field.Key() == f.Key() {
				return commit[l.File].Data, nil
			}
		}
		return nil, err
	}
}

// checkRestores holds that a promotion's edits are undone to the byte.
func checkRestores(t *testing.T, before fstest.MapFS, edits []Edit, o Overlay) {
	t.Helper()
	landed := Apply(before, edits)
	var files []string
	for _, e := range edits {
		files = append(files, e.File)
	}
	back, err := Restore(before, landed, landed, files, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range back {
		if was := before[e.File]; was == nil && !e.Deleted || was != nil && string(was.Data) != string(e.After) {
			t.Errorf("%s comes back as %q", e.File, e.After)
		}
	}
	if len(back) != len(edits) {
		t.Errorf("%d edits, %d come back", len(edits), len(back))
	}
}

func replaceInElements(text string, pairs ...string) fstest.MapFS {
	return newTree(map[string]string{"set.yaml": strings.NewReplacer(pairs...).Replace(text)})
}

// TestSharedRestore takes a promotion back in a file that has changed since.
func TestSharedRestore(t *testing.T) {
	text := "elements:\n  - {env: dev, name: d, tag: b}\n  - {env: prod, name: x, tag: a}\n  - {env: prod, name: y, tag: a}\n"
	carry := yamlCarry("add", "set.yaml", "elements[env={{environment}}].tag")
	before, landed := replaceInElements(text), replaceInElements(text, "tag: a", "tag: b")
	promoted := strings.ReplaceAll(text, "tag: a", "tag: b")
	for name, tt := range map[string]struct{ now, want, err string }{
		"another environment's element has changed": {now: strings.Replace(promoted, "d, tag: b", "d, tag: c", 1), want: strings.Replace(text, "d, tag: b", "d, tag: c", 1)},
		"an element was put before it":              {now: strings.Replace(promoted, "elements:\n", "elements:\n  - {env: qa, name: q, tag: b}\n", 1), want: strings.Replace(text, "elements:\n", "elements:\n  - {env: qa, name: q, tag: b}\n", 1)},
		"the elements are in another order": {now: "elements:\n  - {env: prod, name: y, tag: b}\n  - {env: dev, name: d, tag: b}\n  - {env: prod, name: x, tag: b}\n",
			want: "elements:\n  - {env: prod, name: y, tag: a}\n  - {env: dev, name: d, tag: b}\n  - {env: prod, name: x, tag: a}\n"},
		"its own has a third value": {now: strings.Replace(promoted, "x, tag: b", "x, tag: c", 1), err: `set.yaml:3: elements[env=prod,name=x].tag was "a" before the promotion, "b" with it, and is "c" now`},
		"an element of it is gone":  {now: strings.Replace(promoted, "  - {env: prod, name: y, tag: b}\n", "", 1), err: `elements[env=prod,name=x].tag was "a" before the promotion, "b" with it, and is gone now`},
	} {
		t.Run(name, func(t *testing.T) {
			now := replaceInElements(tt.now)
			edits, err := Restore(before, landed, now, []string{"set.yaml"}, sharedOverlay("web", "prod", carry))
			if tt.err != "" {
				var changed *ChangedError
				if !errors.As(err, &changed) || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("got %v, %v", edits, err)
				}
				return
			}
			if err != nil || len(edits) != 1 {
				t.Fatalf("got %v, %v", edits, err)
			}
			if diff := cmp.Diff(tt.want, string(edits[0].After)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
	if _, err := Restore(before, landed, landed, []string{"set.yaml", "other.yaml"}, sharedOverlay("web", "prod", carry)); err == nil || !strings.Contains(err.Error(), "other.yaml: the promotion edited it, but it is outside") {
		t.Errorf("a file of a shared folder that isn't carried: %v", err)
	}
}

// TestSharedRoots holds which fields count in folders that others have as well.
func TestSharedRoots(t *testing.T) {
	commit := newTree(map[string]string{
		"own/values.yaml": "tag: 1\n", "all/values.yaml": "tag: 2\nqa: {tag: 3}\n", "all/qa.yaml": "tag: 4\n", "all/kustomization.yaml": "images: [{name: a, newTag: b}]\n",
		"all/{{environment}}.yaml": "tag: 5\n", "all/.argocd-source-web-prod.yaml": "helm: {parameters: [{name: tag, value: x}]}\n",
	})
	o := Overlay{Roots: []string{"own"}, Shared: []string{"all", "own", "nothing"}, Environment: "qa", Component: "web", Carry: []pipeline.Carry{
		{KustomizeImages: []string{"*"}},
		{YAML: &pipeline.FieldPick{Files: []string{"values.yaml", "{{environment}}.yaml"}, Paths: []string{"tag", "{{environment}}.tag"}}},
	}}
	found, err := Locate(commit, o)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range found {
		got = append(got, l.File+" "+l.Field.File+" "+l.Field.Path+" "+l.Field.Value)
	}
	if diff := cmp.Diff([]string{"all/qa.yaml {{environment}}.yaml tag 4", "all/values.yaml values.yaml {{environment}}.tag 3", "own/values.yaml values.yaml tag 1"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	s, err := NewScope(o)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"all/qa.yaml": true, "all/values.yaml": true, "own/values.yaml": true, "own/kustomization.yaml": true, "all/kustomization.yaml": false, "all/prod.yaml": false, "values.yaml": false} {
		if s.Covers(name) != want {
			t.Errorf("covers %s: %v", name, !want)
		}
	}
	if diff := cmp.Diff([]string{"all/qa.yaml", "all/values.yaml", "nothing/qa.yaml", "nothing/values.yaml", "own/Kustomization", "own/kustomization.yaml", "own/kustomization.yml", "own/qa.yaml", "own/values.yaml"}, s.Paths()); diff != "" {
		t.Errorf("paths (-want +got)\n%s", diff)
	}
	single := o
	single.Shared, single.Files = nil, []string{"all/values.yaml", "own/values.yaml", "top.yaml"}
	if r, err := Read(commit, single); err != nil || r.String() != "tag 1, tag 3" {
		t.Errorf("single files: %v, %v", r, err)
	}
	if s, err = NewScope(single); err != nil || s.Covers("all/qa.yaml") || !s.Covers("all/values.yaml") || s.Covers("top.yaml") {
		t.Errorf("the scope of single files: %v", err)
	}
	if diff := cmp.Diff([]string{"all/values.yaml", "own/Kustomization", "own/kustomization.yaml", "own/kustomization.yml", "own/qa.yaml", "own/values.yaml"}, s.Paths()); diff != "" {
		t.Errorf("paths of single files (-want +got)\n%s", diff)
	}
	literal := sharedOverlay("web", "qa", yamlCarry("", "*.yaml", "{{environment}}.tag"))
	literal.Shared = []string{"all"}
	if _, err := Locate(commit, literal); err == nil || !strings.Contains(err.Error(), "all/{{environment}}.yaml: its name has {{") {
		t.Errorf("a file that is named like a placeholder: %v", err)
	}
	commit["all/values.yaml"].Data = []byte("qa: {'{{environment}}': {tag: 1}}\n")
	literal.Carry[0] = yamlCarry("", "values.yaml", "{{environment}}.*.tag")
	if _, err := Locate(commit, literal); err == nil || !strings.Contains(err.Error(), "qa.{{environment}} has {{, which would be taken for a placeholder") {
		t.Errorf("a key that is named like a placeholder: %v", err)
	}
	overridden := newTree(map[string]string{"all/values.yaml": "qa: {tag: 1}\n", "all/.argocd-source.yaml": "helm: {parameters: [{name: qa.tag, value: x}]}\n"})
	literal.Carry[0] = yamlCarry("", "values.yaml", "{{environment}}.tag")
	if _, err := Locate(overridden, literal); err == nil || !strings.Contains(err.Error(), "all/.argocd-source.yaml:1: qa.tag: Argo CD lays this file over") {
		t.Errorf("an overridden field: %v", err)
	}
}
