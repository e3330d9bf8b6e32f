package propose

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/appset/history"
)

// rows are targets whose parameters are written as key=value pairs.
func rows(list ...string) []appset.Target {
	var out []appset.Target
	for i, row := range list {
		t := appset.Target{Name: strings.ToLower(fmt.Sprintf("%d %s", i, row)), Params: map[string]any{}, ApplicationSet: "set", ApplicationSetFile: "sets.yaml"}
		for pair := range strings.FieldsSeq(row) {
			key, value, _ := strings.Cut(pair, "=")
			t.Params[key] = value
			t.Sources = append(t.Sources, appset.Source{Path: value})
		}
		out = append(out, t)
	}
	return out
}

func TestAssign(t *testing.T) {
	numbered := rows("cluster=dev-1", "cluster=prod-1")
	for i := range numbered {
		numbered[i].Name, numbered[i].Sources = "set-"+fmt.Sprint(numbered[i].Params["cluster"]), nil
	}
	for name, c := range map[string]struct {
		targets []appset.Target
		chosen  Templates
		want    Templates
		envs    string
		choice  bool
		nothing bool
	}{
		"names that people use": {targets: rows("app=web env=dev", "app=web env=prod", "app=api env=dev", "app=api env=prod"),
			want: Templates{"{{ .app }}", "{{ .env }}"}, envs: "dev,prod"},
		"a prefix and a suffix": {targets: rows("app=web file=values-dev.yaml", "app=web file=values-prod.yaml", "app=api file=values-dev.yaml", "app=api file=values-prod.yaml"),
			want: Templates{"{{ .app }}", `{{ .file | trimPrefix "values-" | trimSuffix ".yaml" }}`}, envs: "dev,prod"},
		"both in one name": {targets: rows("dir=my-web-dev", "dir=my-web-prod", "dir=api-dev", "dir=api-prod"),
			want: Templates{`{{ .dir | splitList "-" | initial | join "-" }}`, `{{ .dir | splitList "-" | last }}`}, envs: "dev,prod"},
		"clusters of an environment are no environments": {targets: rows("app=web env=dev cluster=a", "app=web env=prod cluster=b", "app=web env=prod cluster=c", "app=api env=dev cluster=a", "app=api env=prod cluster=b", "app=api env=prod cluster=c"),
			want: Templates{"{{ .app }}", "{{ .env }}"}, envs: "dev,prod"},
		"one component, all in one name": {targets: rows("dir=web-dev", "dir=web-prod"), want: Templates{`{{ .dir | splitList "-" | initial | join "-" }}`, `{{ .dir | trimPrefix "web-" }}`}, envs: "dev,prod"},
		"capitals": {targets: rows("app=Web env=DEV", "app=Web env=PROD", "app=Api env=DEV", "app=Api env=PROD"),
			want: Templates{"{{ .app | normalize }}", "{{ .env | normalize }}"}, envs: "dev,prod"},
		"keys that a template can't name after a dot": {targets: rows("app=web my-env=dev", "app=web my-env=prod"),
			want: Templates{"{{ .app }}", `{{ index . "my-env" }}`}, envs: "dev,prod"},
		"what a person chose": {targets: rows("app=web env=dev zone=a", "app=web env=prod zone=b"), chosen: Templates{Environment: "{{ .zone }}"},
			want: Templates{"{{ .app }}", "{{ .zone }}"}, envs: "a,b"},
		"nobody knows the names":     {targets: rows("x=a y=m", "x=a y=n", "x=b y=m", "x=b y=n"), choice: true},
		"one environment":            {targets: rows("app=web env=dev", "app=web env=dev"), nothing: true},
		"nothing":                    {nothing: true},
		"a word inside another name": {targets: rows("app=load-balancer zone=m", "app=load-balancer zone=n", "app=web zone=m", "app=web zone=n", "app=api zone=m", "app=api zone=n"), choice: true},
		"longer names with a word each": {targets: rows("app=web env=eu-dev", "app=web env=eu-prod", "app=api env=eu-dev", "app=api env=eu-prod"),
			want: Templates{"{{ .app }}", `{{ .env | trimPrefix "eu-" }}`}, envs: "dev,prod"},
		"components that are called after environments": {targets: rows("app=staging-area env=dev", "app=staging-area env=prod", "app=test-runner env=dev", "app=test-runner env=prod"),
			want: Templates{"{{ .app }}", "{{ .env }}"}, envs: "dev,prod"},
		"one component that is called after an environment": {targets: rows("app=test-runner env=test", "app=test-runner env=qa", "app=test-runner env=prod"),
			want: Templates{"{{ .app }}", "{{ .env }}"}, envs: "prod,qa,test"},
		"long names with a word each": {targets: rows("id=debug_tool_for_staging kind=x", "id=first_sample_tool_on_staging kind=x", "id=first_sample_tool_on_prod kind=x", "id=network_debug_tool_on_prod kind=x",
			"id=second_sample_tool_on_prod kind=x"), nothing: true},
		"what differs for each Application": {targets: rows("id=a kind=x", "id=b kind=x", "id=c kind=x", "id=d kind=x"), nothing: true},
		"a number is no component": {targets: numbered,
			want: Templates{"{{ .applicationSet.metadata.name }}", `{{ .cluster | trimSuffix "-1" }}`}, envs: "dev,prod"},
		"a choice without values": {targets: rows("app=web env=dev", "app=web env=prod"), chosen: Templates{Component: "{{ .no }}"}, nothing: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Assign(t.Context(), c.targets, c.chosen)
			var choice *ChoiceError
			switch {
			case c.choice:
				if !errors.As(err, &choice) || len(choice.Options) < 2 {
					t.Fatalf("it gives %+v, %v", got, err)
				}
				return
			case c.nothing:
				if !errors.Is(err, ErrNothingUsable) {
					t.Fatalf("it gives %+v, %v", got, err)
				}
				return
			case err != nil:
				t.Fatal(err)
			}
			if got.Templates != c.want || strings.Join(got.Environments, ",") != c.envs || got.Targets != len(c.targets) {
				t.Errorf("it gives %+v", got)
			}
		})
	}
}

// TestAssignNoEnvironments holds that nothing is taken for environments in sets of one Application
// each, all in one cluster. A person is asked, and offered neither the sets' names nor the cluster
// as the component.
func TestAssignNoEnvironments(t *testing.T) {
	var targets []appset.Target
	for _, app := range []string{"agent-web", "agent-api", "agent-mail", "sample-node", "sample-grpc"} {
		targets = append(targets, appset.Target{Name: app + "-lab", Cluster: "lab", Params: map[string]any{"cluster": "lab"},
			Sources: []appset.Source{{Path: "charts/" + app}}, ApplicationSet: app, ApplicationSetFile: "apps/" + app + ".yaml"})
	}
	got, err := Assign(t.Context(), targets, Templates{})
	var choice *ChoiceError
	if !errors.As(err, &choice) {
		t.Fatalf("it gives %+v, %v", got, err)
	}
	for _, o := range choice.Options {
		if strings.Contains(o.Meaning, "components lab") || strings.Contains(o.Meaning, "agent-web") {
			t.Errorf("it offers %+v", o)
		}
	}
}

// TestAssignByChart takes the chart for the component where a parameter names it, and not a part of
// Applications' names.
func TestAssignByChart(t *testing.T) {
	var targets []appset.Target
	for _, chart := range []string{"aws-ebs-csi", "aws-efs-csi", "keda"} {
		for _, env := range []string{"dev", "prod"} {
			targets = append(targets, appset.Target{Name: "addon-" + env + "-" + chart, Params: map[string]any{"env": env, "chart": chart},
				Sources: []appset.Source{{Chart: chart}}, ApplicationSet: chart, ApplicationSetFile: chart + ".yaml"})
		}
	}
	got, err := Assign(t.Context(), targets, Templates{})
	if err != nil || got.Component != "{{ .chart }}" || got.Environment != "{{ .env }}" {
		t.Errorf("it gives %+v, %v", got, err)
	}
}

// TestAssignByFolder takes what the folder is called for the component, and not a part of something else.
func TestAssignByFolder(t *testing.T) {
	var targets []appset.Target
	for _, env := range []string{"staging", "production"} {
		targets = append(targets, appset.Target{Name: "web-c-" + env, Params: map[string]any{"cluster": "c-" + env, "env": env, "app": map[string]any{"shortName": "web"}},
			Sources: []appset.Source{{Path: "web/" + env}}, ApplicationSet: "set", ApplicationSetFile: "sets.yaml"})
	}
	got, err := Assign(t.Context(), targets, Templates{})
	if err != nil || strings.Join(got.Components, ",") != "web" || strings.Join(got.Environments, ",") != "production,staging" {
		t.Errorf("it gives %+v, %v", got, err)
	}
}

func TestRankOf(t *testing.T) {
	var last int
	for _, name := range []string{"sandbox", "dev-1", "integration", "eu-test", "QA", "uat2", "stage", "pre-prod", "canary", "prod_us"} {
		r, ok := rankOf(name)
		if !ok || r <= last && name != "sandbox" {
			t.Errorf("%s is %d, %v after %d", name, r, ok, last)
		}
		last = r
	}
	for _, name := range []string{"web", "product", "developer", "non-prod", ""} {
		if r, ok := rankOf(name); ok {
			t.Errorf("%s is known as %d", name, r)
		}
	}
}

// newSource is a component in environments, each with a folder of its own, and what happened to it.
func newSource(envs []string, moments ...fstest.MapFS) *Source {
	s := &Source{Components: map[string]map[string]*history.Environment{"web": {}}, Branch: func(string) string { return "" }, Tracked: "main"}
	for _, e := range envs {
		s.Components["web"][e] = &history.Environment{Component: "web", Name: e, Roots: []string{e}}
	}
	now := fstest.MapFS{}
	for _, m := range moments {
		next := fstest.MapFS{}
		var changed []string
		for name, f := range now {
			next[name] = f
		}
		for name, f := range m {
			next[name] = f
			changed = append(changed, name)
		}
		now = next
		s.History = append(s.History, Moment{Tree: now, Changed: changed})
	}
	s.Tree = func(string) fs.FS { return now }
	return s
}

func files(pairs ...string) fstest.MapFS {
	out := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	return out
}

// remote is an environment's kustomization with an image and a remote base.
func remote(environment, tag, ref, image string, more ...string) fstest.MapFS {
	text := "images: [{name: " + image + ", newTag: " + tag + "}]\nresources:\n- https://git.example/acme/web//config?timeout=9&ref=" + ref + "\n"
	for _, m := range more {
		text += "- " + m + "\n"
	}
	return files(environment+"/kustomization.yaml", text)
}

func TestFindCarry(t *testing.T) {
	two := []string{"a", "b"}
	for name, c := range map[string]struct {
		source *Source
		want   []string
	}{
		"tags, not what differs": {newSource(two, files("a/values.yaml", "image: {tag: v1}\nreplicas: 1", "b/values.yaml", "image: {tag: v1}\nreplicas: 2")),
			[]string{`yaml: {files: ["values.yaml"], paths: ["image.tag"]}`}},
		"not a branch that is followed": {newSource(two, files("a/c.json", `{"revision": "main"}`, "b/c.json", `{"revision": "main"}`)), nil},
		"a value that went from one to the other": {newSource(two,
			files("a/c.json", `{"flavour": "x"}`, "b/c.json", `{"flavour": "x"}`), files("a/c.json", `{"flavour": "y"}`), files("b/c.json", `{"flavour": "y"}`)),
			[]string{`json: {files: ["c.json"], paths: ["flavour"]}`}},
		"never the same, but called so": {newSource(two, files("a/values.yaml", "tag: v2", "b/values.yaml", "tag: v1")),
			[]string{`yaml: {files: ["values.yaml"], paths: ["tag"]}`}},
		"nothing of a chart's own version": {newSource(two, files("a/Chart.yaml", "version: 1.0.0\ndependencies: [{name: x, version: 2.0.0}]", "b/Chart.yaml", "version: 1.0.0\ndependencies: [{name: x, version: 2.0.0}]")),
			[]string{`yaml: {files: ["Chart.yaml"], paths: ["dependencies[name=x].version"]}`}},
		"the lock and the archives beside a dependency": {newSource(two,
			files("a/Chart.yaml", "dependencies: [{name: x, version: 2.0.0}]", "b/Chart.yaml", "dependencies: [{name: x, version: 2.0.0}]", "b/Chart.lock", "digest: d", "a/charts/x-2.0.0.tgz", "t")),
			[]string{`yaml: {files: ["Chart.yaml"], paths: ["dependencies[name=x].version"]}`, `files: {include: ["Chart.lock"]}`, `files: {include: ["charts/*.tgz"]}`}},
		"the lock of a chart deeper, of Helm 2": {newSource(two,
			files("a/[c]/requirements.yaml", "dependencies: [{name: x, version: 2.0.0}]", "b/[c]/requirements.yaml", "dependencies: [{name: x, version: 2.0.0}]", "b/[c]/requirements.lock", "digest: d")),
			[]string{`yaml: {files: ["\\[c\\]/requirements.yaml"], paths: ["dependencies[name=x].version"]}`, `files: {include: ["\\[c\\]/requirements.lock"]}`}},
		"no lock without a dependency": {newSource(two, files("a/values.yaml", "tag: v1", "b/values.yaml", "tag: v1", "a/Chart.yaml", "version: 1.0.0", "a/Chart.lock", "digest: d")),
			[]string{`yaml: {files: ["values.yaml"], paths: ["tag"]}`}},
		"images of one registry": {newSource(two,
			files("a/kustomization.yaml", "images: [{name: r/web, newTag: v1}, {name: r/db, newTag: v9}]",
				"b/kustomization.yaml", "images: [{name: r/web, newTag: v1}, {name: r/db, newTag: v9}]")),
			[]string{`kustomizeImages: ["r/*"]`}},
		"an image that one environment alone has is left out": {newSource(two,
			files("a/kustomization.yaml", "images: [{name: r/web, newTag: v1}, {name: r/db, newTag: v9}]", "b/kustomization.yaml", "images: [{name: r/web, newTag: v1}]")),
			[]string{`kustomizeImages: ["r/web"]`}},
		"a wildcard takes no item that is left out": {newSource(two, files(
			"a/deploy.yaml", "containers: [{name: web, image: r/web:1}, {name: proxy, image: r/proxy:2}, {name: agent, image: r/agent:a}, {name: debug, image: r/debug:9}]",
			"b/deploy.yaml", "containers: [{name: web, image: r/web:1}, {name: proxy, image: r/proxy:2}, {name: agent, image: r/agent:b}]")),
			[]string{`yaml: {files: ["deploy.yaml"], paths: ["containers[name=proxy].image", "containers[name=web].image"]}`}},
		"no image whose tag is its environment's name": {newSource(two,
			files("a/kustomization.yaml", "images: [{name: r/web, newTag: v1}, {name: r/proxy, newTag: a}]", "b/kustomization.yaml", "images: [{name: r/web, newTag: v1}, {name: r/proxy, newTag: b}]")),
			[]string{`kustomizeImages: ["r/web"]`}},
		"a remote base's ref with its image": {newSource(two, remote("a", "v1", "v1", "r/web"), remote("b", "v1", "v1", "r/web")),
			[]string{`kustomizeImages: ["r/*"]`, `kustomizeRefs: ["https://git.example/acme/**"]`}},
		"a ref that one commit changed with an image": {newSource(two, remote("a", "v1", "x1", "r/web"), remote("b", "v1", "x2", "r/web"), remote("a", "v2", "x3", "r/web")),
			[]string{`kustomizeImages: ["r/*"]`, `kustomizeRefs: ["https://git.example/acme/**"]`}},
		"no ref that was never changed with an image, nor the same": {newSource(two, remote("a", "v1", "x1", "r/web"), remote("b", "v1", "x2", "r/web"), remote("a", "v2", "x1", "r/web")),
			[]string{`kustomizeImages: ["r/*"]`}},
		"no branch as a ref": {newSource(two, remote("a", "v1", "main", "r/web"), remote("b", "v1", "main", "r/web")),
			[]string{`kustomizeImages: ["r/*"]`}},
		"no ref that only one environment has": {newSource(two, remote("a", "v1", "v1", "r/web", "https://git.example/acme/quota?ref=v3"), remote("b", "v1", "v1", "r/web")),
			[]string{`kustomizeImages: ["r/*"]`, `kustomizeRefs: ["https://git.example/acme/web//config"]`}},
		"not what an Application is made from": {newSource(two,
			files("a/c.yaml", "tag: v1\nservice: web\nname: a-web", "b/c.yaml", "tag: v1\nservice: web\nname: b-web"),
			files("a/c.yaml", "tag: v2\nservice: web2\nname: a-web", "b/c.yaml", "tag: v2\nservice: web\nname: a-web")),
			[]string{`yaml: {files: ["c.yaml"], paths: ["tag"]}`}},
		"not an item by its place": {newSource(two, files("a/c.yaml", "tag: v1\nlist: [{tag: v1}, {other: 1}]", "b/c.yaml", "tag: v1\nlist: [{tag: v1}, {other: 1}]")),
			[]string{`yaml: {files: ["c.yaml"], paths: ["tag"]}`}},
		"not a template, how much there is, a branch or a word": {newSource(two,
			files("a/c.yaml", "tag: '{{ .tag }}'\nrevision: HEAD\nreplicaCount: 1\nversion: latest", "b/c.yaml", "tag: '{{ .tag }}'\nrevision: HEAD\nreplicaCount: 1\nversion: latest"),
			files("a/c.yaml", "tag: '{{ .tag }}'\nrevision: HEAD\nreplicaCount: 3\nversion: latest"), files("b/c.yaml", "tag: '{{ .tag }}'\nrevision: HEAD\nreplicaCount: 3\nversion: latest")), nil},
		"not what an object is, nor how it is synced": {newSource(two,
			files("a/c.yaml", "apiVersion: v1\nmetadata: {name: x}\nspec: {tag: v1, syncPolicy: {prune: 'no'}}", "b/c.yaml", "apiVersion: v1\nmetadata: {name: x}\nspec: {tag: v1, syncPolicy: {prune: 'no'}}"),
			files("a/c.yaml", "apiVersion: v2\nmetadata: {name: y}\nspec: {tag: v1, syncPolicy: {prune: 'yes'}}"), files("b/c.yaml", "apiVersion: v2\nmetadata: {name: y}\nspec: {tag: v1, syncPolicy: {prune: 'yes'}}")),
			[]string{`yaml: {files: ["c.yaml"], paths: ["spec.tag"]}`}},
		"not where an image is":              {newSource(two, files("a/d.yaml", "containers: [{name: web, image: r.example/web}]", "b/d.yaml", "containers: [{name: web, image: r.example/web}]")), nil},
		"a file that isn't YAML has nothing": {newSource(two, files("a/values.yaml", "{", "b/values.yaml", "tag: v1")), nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := FindCarry(t.Context(), c.source)
			if err != nil {
				t.Fatal(err)
			}
			var texts []string
			for _, e := range got.Entries {
				texts = append(texts, carryText(e))
			}
			if diff := cmp.Diff(c.want, texts); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestFindCarryOfComponents holds what is carried where a component is in one environment, and in files that are called
// after their components.
func TestFindCarryOfComponents(t *testing.T) {
	addTo := func(s *Source, component, environment, root string, files ...string) {
		if s.Components[component] == nil {
			s.Components[component] = map[string]*history.Environment{}
		}
		e := &history.Environment{Component: component, Name: environment, Files: files}
		if root != "" {
			e.Roots = []string{root}
		}
		s.Components[component][environment] = e
	}
	image := newSource([]string{"a", "b"}, files("a/kustomization.yaml", "images: [{name: r/web, newTag: v1}]",
		"b/kustomization.yaml", "images: [{name: r/web, newTag: v1}]", "c/kustomization.yaml", "images: [{name: r/new, newTag: v2}]"))
	addTo(image, "new", "a", "c")
	own := newSource(nil, files("values/a/web.yaml", "tag: v1", "values/b/web.yaml", "tag: v1", "values/a/db.yaml", "tag: v2", "values/b/db.yaml", "tag: v2"))
	both := newSource(nil, files("values/web.yaml", "tag: v1"))
	for _, e := range []string{"a", "b"} {
		addTo(own, "web", e, "", "values/"+e+"/web.yaml")
		addTo(own, "db", e, "", "values/"+e+"/db.yaml")
		addTo(both, "web", e, "", "values/web.yaml")
	}
	// of has both components made from the same files: those of an environment's folder, or else all.
	of := func(texts ...string) *Source {
		out := newSource(nil, files(texts...))
		for _, e := range []string{"a", "b"} {
			var single []string
			for i := 0; i < len(texts); i += 2 {
				if name := texts[i]; strings.Contains(name, "/"+e+"/") || strings.Count(name, "/") == 1 {
					single = append(single, name)
				}
			}
			addTo(out, "web", e, "", single...)
			addTo(out, "db", e, "", single...)
		}
		return out
	}
	for name, c := range map[string]struct {
		source *Source
		want   []string
	}{
		"an image of a component in one environment is one of the registry's": {image, []string{`kustomizeImages: ["r/*"]`}},
		"a file for one environment that is called after its component":       {own, []string{`yaml: {files: ["{{component}}.yaml"], paths: ["tag"]}`}},
		"a file of two environments that is called after their component":     {both, nil},
		"a key for each component in a file for one environment": {of("values/a/all.yaml", "web: {tag: v1}\ndb: {tag: v2}", "values/b/all.yaml", "web: {tag: v1}\ndb: {tag: v2}"),
			[]string{`yaml: {files: ["all.yaml"], paths: ["{{component}}.tag"]}`}},
		"a key for each component in a file for both": {of("values/all.yaml", "web: {tag: v1}\ndb: {tag: v2}"), nil},
		"a key for each component and environment": {of("values/all.yaml", "web: {a: {tag: v1}, b: {tag: v1}}\ndb: {a: {tag: v2}, b: {tag: v2}}"),
			[]string{`yaml: {files: ["all.yaml"], paths: ["{{component}}.{{environment}}.tag"]}`}},
		"a manifest that isn't called after its component": {of("argocd/a/x.yaml", "metadata: {name: web-a}\nspec: {tag: v1}", "argocd/b/x.yaml", "metadata: {name: web-b}\nspec: {tag: v1}"),
			[]string{`yaml: {files: ["x.yaml"], paths: ["[metadata.name={{component}}-{{environment}}].spec.tag"]}`}},
		"a manifest whose name says the component alone, a file for each environment": {of("argocd/a/x.yaml", "metadata: {name: web}\nspec: {tag: v1}", "argocd/b/x.yaml", "metadata: {name: web}\nspec: {tag: v1}"),
			[]string{`yaml: {files: ["x.yaml"], paths: ["[metadata.name={{component}}].spec.tag"]}`}},
		"the same in one file for both": {of("argocd/x.yaml", "metadata: {name: web}\nspec: {tag: v1}"), nil},
		"several manifests in a file": {of("argocd/all.yaml", "metadata: {name: web-a}\nspec: {tag: v1}\n---\nmetadata: {name: web-b}\nspec: {tag: v1}\n---\n---\nmetadata: {name: db-a}\nspec: {tag: v2}\n---\nmetadata: {name: db-b}\nspec: {tag: v2}\n"),
			[]string{`yaml: {files: ["all.yaml"], paths: ["[metadata.name={{component}}-{{environment}}].spec.tag"]}`}},
		"manifests that a chart tells apart": {of("argocd/a/all.yaml", "metadata: {name: x}\nspec: {source: {chart: web, tag: v1}}\n---\nmetadata: {name: y}\nspec: {source: {chart: db, tag: v2}}",
			"argocd/b/all.yaml", "metadata: {name: x}\nspec: {source: {chart: web, tag: v1}}\n---\nmetadata: {name: y}\nspec: {source: {chart: db, tag: v2}}"),
			[]string{`yaml: {files: ["all.yaml"], paths: ["[spec.source.chart={{component}}].spec.source.tag"]}`}},
		"templates of Helm's":                       {of("argocd/a/web.yaml", "metadata: {name: web-a}\nspec: {tag: v1, project: {{ .Values.project }}}", "argocd/b/web.yaml", "metadata: {name: web-b}\nspec: {tag: v1, project: {{ .Values.project }}}"), nil},
		"manifests of which several have that name": {of("argocd/a/all.yaml", "metadata: {name: web}\nspec: {tag: v1}\n---\nmetadata: {name: web}\nspec: {tag: v2}", "argocd/b/all.yaml", "metadata: {name: web}\nspec: {tag: v1}"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := FindCarry(t.Context(), c.source)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, e := range found.Entries {
				got = append(got, carryText(e))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOwnerOf(t *testing.T) {
	for address, want := range map[string]string{
		"https://git.example/acme/web//config": "https://git.example/acme",
		"github.com/acme/web":                  "github.com/acme",
		"git@git.example:acme/web//config":     "git@git.example:acme",
		"ssh://git@git.example/acme/web.git":   "ssh://git@git.example/acme",
		"https://git.example/web":              "",
		"web":                                  "",
	} {
		if got := ownerOf(address); got != want {
			t.Errorf("%s is of %q, not %q", address, got, want)
		}
	}
}

func TestOrder(t *testing.T) {
	tag := func(env, v string) []string { return []string{env + "/values.yaml", "tag: " + v} }
	for name, c := range map[string]struct {
		envs    []string
		moments []fstest.MapFS
		order   []string
		want    Steps
		choice  bool
	}{
		"by names":                            {envs: []string{"prod-us", "dev", "prod-eu", "qa"}, want: Steps{{"dev"}, {"qa"}, {"prod-us", "prod-eu"}}},
		"by history":                          {envs: []string{"blue", "red"}, moments: []fstest.MapFS{files(append(tag("blue", "1"), tag("red", "1")...)...), files(tag("red", "2")...), files(tag("blue", "2")...)}, want: Steps{{"red"}, {"blue"}}},
		"one unknown name":                    {envs: []string{"dev", "demo", "prod"}, moments: []fstest.MapFS{files(append(append(tag("dev", "1"), tag("demo", "1")...), tag("prod", "1")...)...), files(tag("dev", "2")...), files(tag("demo", "2")...), files(tag("prod", "2")...)}, want: Steps{{"dev"}, {"demo"}, {"prod"}}},
		"at once says nothing":                {envs: []string{"blue", "red"}, moments: []fstest.MapFS{files(append(tag("blue", "1"), tag("red", "1")...)...), files(append(tag("blue", "2"), tag("red", "2")...)...)}, choice: true},
		"nobody knows":                        {envs: []string{"blue", "red"}, choice: true},
		"history never has prod before stage": {envs: []string{"stage", "x", "prod"}, moments: []fstest.MapFS{files(append(append(tag("stage", "1"), tag("x", "1")...), tag("prod", "1")...)...), files(tag("prod", "2")...), files(tag("x", "2")...), files(tag("stage", "2")...)}, choice: true},
		"a person says":                       {envs: []string{"blue", "red", "dev"}, order: []string{"red", "blue+dev"}, want: Steps{{"red"}, {"blue", "dev"}}},
		"a person forgets one":                {envs: []string{"blue", "red"}, order: []string{"red"}},
		"a person names one twice":            {envs: []string{"blue", "red"}, order: []string{"red", "red", "blue"}},
	} {
		t.Run(name, func(t *testing.T) {
			carried, err := FindCarry(t.Context(), newSource(c.envs, c.moments...))
			if err != nil {
				t.Fatal(err)
			}
			got, _, err := OrderEnvironments(c.envs, carried, c.order)
			var choice *ChoiceError
			if errors.As(err, &choice) != c.choice || (err == nil) != (c.want != nil) {
				t.Fatalf("it gives %v, %v", got, err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
