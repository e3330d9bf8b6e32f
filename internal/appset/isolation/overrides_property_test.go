package isolation_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	helmengine "helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/strvals"
	"pgregory.net/rapid"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/appset/isolation"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/manifest/render"
	"github.com/liftlock/liftlock/internal/pipeline"
)

// parameter is one of helm.parameters or helm.fileParameters.
type parameter struct {
	Name        string `json:"name"`
	Value       string `json:"value,omitempty"`
	Path        string `json:"path,omitempty"`
	ForceString bool   `json:"forceString,omitempty"`
}

// helmOverrides are helm's options of an Application that may override a carried field.
type helmOverrides struct {
	ValueFiles     []string       `json:"valueFiles,omitempty"`
	Parameters     []parameter    `json:"parameters,omitempty"`
	FileParameters []parameter    `json:"fileParameters,omitempty"`
	Values         string         `json:"values,omitempty"`
	ValuesObject   map[string]any `json:"valuesObject,omitempty"`
}

// overriddenApplication is a random Application with what may override its fields.
type overriddenApplication struct {
	files fstest.MapFS
	file  string // that is edited
	dir   string
	// Helm's options, or those of kustomize.
	helm   *helmOverrides
	images []string
}

const overriddenChart = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: {{ .Values.replicas | default 1 }}
  template:
    spec:
      containers:
      - name: web
        image: registry.example/web:{{ (.Values.image | default dict).tag | default "none" | replace "v" "r" }}
{{- if (.Values.sidecar | default dict).enabled }}
      - name: sidecar
        image: registry.example/sidecar:{{ .Values.sidecar.tag | default "none" }}
{{- end }}
`

func drawOverridden(t *rapid.T) *overriddenApplication {
	a := &overriddenApplication{files: fstest.MapFS{}, dir: "app"}
	put := func(name, text string) { a.files[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644} }
	maybe := func(label string) bool { return rapid.IntRange(0, 3).Draw(t, label) == 0 }
	tag := func(label string) string { return rapid.SampledFrom([]string{"v1", "v2", "v9"}).Draw(t, label) }
	if rapid.IntRange(0, 2).Draw(t, "kustomize") == 0 {
		a.file = "app/kustomization.yaml"
		put("app/deployment.yaml", deployment("web", "registry.example/web:v0"))
		text := "resources: [deployment.yaml]\nimages:\n- name: registry.example/web\n  newTag: v1\n"
		if maybe("edited below") {
			a.file = "base/kustomization.yaml"
			put("base/deployment.yaml", deployment("web", "registry.example/web:v0"))
			put(a.file, text)
			text = "resources: [../base]\n"
			if maybe("overridden above") {
				text += "images:\n- name: registry.example/web\n  newTag: " + tag("above") + "\n"
			}
		}
		put("app/kustomization.yaml", text)
		for _, name := range []string{"registry.example/web", "registry.example/other"} {
			if maybe("images " + name) {
				a.images = append(a.images, name+":"+tag("image"))
			}
		}
		if maybe("renamed") {
			a.images = append(a.images, "registry.example/web=mirror.example/web")
		}
		return a
	}
	a.file, a.helm = "app/values-qa.yaml", &helmOverrides{ValueFiles: []string{"values-qa.yaml"}}
	put("app/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n")
	put("app/values.yaml", "image:\n  tag: none\n  name: web\n")
	put("app/templates/deployment.yaml", overriddenChart)
	put("app/tag.txt", tag("in a file"))
	put(a.file, "image:\n  tag: v1\nsidecar:\n  enabled: "+fmt.Sprint(rapid.Bool().Draw(t, "sidecar"))+"\n  tag: v1\nreplicas: 1\n")
	values := func(label string) map[string]any {
		return rapid.SampledFrom([]map[string]any{
			{"image": map[string]any{"tag": tag(label)}}, {"image": map[string]any{"name": "x"}}, {"image": nil}, {"image": map[string]any{"tag": nil}},
			{"sidecar": map[string]any{"enabled": true}}, {"sidecar": map[string]any{"enabled": false}}, {"sidecar": map[string]any{"tag": tag(label)}}, {"replicas": 3},
		}).Draw(t, label)
	}
	text := func(label string) string {
		raw, err := yaml.Marshal(values(label))
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	name := func(label string) string {
		return rapid.SampledFrom([]string{"image.tag", "sidecar.tag", "image.name", `image\.tag`, "replicas"}).Draw(t, label)
	}
	if maybe("an earlier file") {
		put("app/early.yaml", text("early"))
		a.helm.ValueFiles = append([]string{"early.yaml"}, a.helm.ValueFiles...)
	}
	if maybe("a later file") {
		put("app/late.yaml", text("late"))
		a.helm.ValueFiles = append(a.helm.ValueFiles, "late.yaml")
	}
	if maybe("values") {
		a.helm.Values = text("values")
	}
	if maybe("valuesObject") {
		a.helm.ValuesObject = values("valuesObject")
	}
	if maybe("parameters") {
		a.helm.Parameters = append(a.helm.Parameters, parameter{Name: name("parameter"), Value: tag("value"), ForceString: rapid.Bool().Draw(t, "string")})
	}
	if maybe("fileParameters") {
		a.helm.FileParameters = append(a.helm.FileParameters, parameter{Name: name("file parameter"), Path: "tag.txt"})
	}
	return a
}

// putSet writes the ApplicationSet that has the options, in its template or in its templatePatch.
func (o *overriddenApplication) putSet(t *rapid.T) {
	options := map[string]any{}
	if o.helm != nil {
		options["helm"] = o.helm
	}
	if len(o.images) > 0 {
		options["kustomize"] = map[string]any{"images": o.images}
	}
	raw, err := json.Marshal(options)
	if err != nil {
		t.Fatal(err)
	}
	source, more := "          path: app\n", ""
	switch {
	case rapid.Bool().Draw(t, "templatePatch"):
		more = "  templatePatch: |\n    spec: {source: " + string(raw) + "}\n"
	case len(options) > 0:
		text, err := yaml.JSONToYAML(raw)
		if err != nil {
			t.Fatal(err)
		}
		source += indent(string(text), "          ")
	}
	o.files["argocd/set.yaml"] = &fstest.MapFile{Data: []byte(set("web", "    - list: {elements: [{component: web, env: qa}]}\n", "{{.component}}-{{.env}}", source, "{{.component}}", "{{.env}}", more)), Mode: 0o644}
}

// render is the Application's files as Helm's and kustomize's own libraries render them. They get
// the options in Argo CD's order: values files, the Application's values, --set, --set-string,
// --set-file; kustomize edit set image.
func (o *overriddenApplication) render(t *rapid.T, files fs.FS) (string, error) {
	read := func(name string) []byte {
		data, err := fs.ReadFile(files, name)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	if o.helm == nil {
		return o.kustomize(t, files), nil
	}
	values := map[string]any{}
	lay := func(text []byte) {
		over := map[string]any{}
		if err := yaml.Unmarshal(text, &over); err != nil {
			t.Fatal(err)
		}
		values = layOver(values, over)
	}
	for _, f := range o.helm.ValueFiles {
		lay(read("app/" + f))
	}
	if o.helm.ValuesObject != nil {
		raw, err := json.Marshal(o.helm.ValuesObject)
		if err != nil {
			t.Fatal(err)
		}
		lay(raw)
	} else {
		lay([]byte(o.helm.Values))
	}
	for _, asString := range []bool{false, true} {
		for _, p := range o.helm.Parameters {
			parse := strvals.ParseInto
			if asString {
				parse = strvals.ParseIntoString
			}
			if p.ForceString != asString {
				continue
			}
			if err := parse(p.Name+"="+p.Value, values); err != nil {
				return "", err
			}
		}
	}
	for _, p := range o.helm.FileParameters {
		err := strvals.ParseIntoFile(p.Name+"="+p.Path, values, func(name []rune) (any, error) { return string(read("app/" + string(name))), nil })
		if err != nil {
			return "", err
		}
	}
	var buffered []*loader.BufferedFile
	for _, name := range []string{"Chart.yaml", "values.yaml", "templates/deployment.yaml"} {
		buffered = append(buffered, &loader.BufferedFile{Name: name, Data: read("app/" + name)})
	}
	chart, err := loader.LoadFiles(buffered)
	if err != nil {
		t.Fatal(err)
	}
	top, err := chartutil.ToRenderValues(chart, values, chartutil.ReleaseOptions{Name: "web-qa"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	out, err := helmengine.Render(chart, top)
	return out["web/templates/deployment.yaml"], err
}

// takeOptions takes the options as the ApplicationSet generates them.
func (o *overriddenApplication) takeOptions(t *rapid.T, raw json.RawMessage) {
	if o.helm == nil {
		return
	}
	var options struct {
		Helm helmOverrides `json:"helm"`
	}
	if err := json.Unmarshal(raw, &options); err != nil {
		t.Fatal(err)
	}
	o.helm = &options.Helm
}

// layOver is what helm's -f does with a further file.
func layOver(under, over map[string]any) map[string]any {
	out := maps.Clone(under)
	for k, v := range over {
		if m, ok := v.(map[string]any); ok {
			if below, ok := out[k].(map[string]any); ok {
				out[k] = layOver(below, m)
				continue
			}
		}
		out[k] = v
	}
	return out
}

func (o *overriddenApplication) kustomize(t *rapid.T, files fs.FS) string {
	disk := filesys.MakeFsInMemory()
	for _, name := range []string{"app", "base"} {
		_ = fs.WalkDir(files, name, func(p string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return nil
			}
			data, err := fs.ReadFile(files, p)
			if err == nil {
				err = disk.WriteFile("/"+p, data)
			}
			return err
		})
	}
	var k map[string]any
	data, err := disk.ReadFile("/app/kustomization.yaml")
	if err == nil {
		err = yaml.Unmarshal(data, &k)
	}
	if err != nil {
		t.Fatal(err)
	}
	images, _ := k["images"].([]any)
	for _, arg := range o.images {
		name, to, renamed := strings.Cut(arg, "=")
		if !renamed {
			name, to = "", arg
		}
		repository, tag, _ := strings.Cut(to, ":")
		entry := map[string]any{"name": repository, "newTag": tag}
		if renamed {
			entry = map[string]any{"name": name, "newName": repository}
		}
		at := slices.IndexFunc(images, func(i any) bool { return i.(map[string]any)["name"] == entry["name"] })
		if at < 0 {
			images = append(images, entry)
			continue
		}
		// kustomize edit set image replaces the whole entry, also what it says nothing of.
		images[at] = entry
	}
	k["images"] = images
	if data, err = yaml.Marshal(k); err == nil {
		err = disk.WriteFile("/app/kustomization.yaml", data)
	}
	if err != nil {
		t.Fatal(err)
	}
	m, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(disk, "/app")
	if err != nil {
		t.Fatal(err)
	}
	out, err := m.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestIneffectiveEqualsHelmAndKustomize holds that a field is said to have no effect exactly where the library's own
// rendering is the same with it and without it, whatever overrides it.
func TestIneffectiveEqualsHelmAndKustomize(t *testing.T) {
	var shown, hidden, named int
	rapid.Check(t, func(t *rapid.T) {
		a := drawOverridden(t)
		a.putSet(t)
		ops := map[string]string{} // by path, what it becomes
		if a.helm == nil {
			ops["images[registry.example/web].newTag"] = "v2"
		} else {
			ops["image.tag"] = "v2"
			if rapid.Bool().Draw(t, "sidecar's tag too") {
				ops["sidecar.tag"] = "v3"
			}
			if rapid.Bool().Draw(t, "replicas too") {
				ops["replicas"] = "2"
			}
		}
		tree, changes := a.edit(t, ops, "")
		resolver, renderer := appset.New(appset.Options{}), isolation.New(render.MemoOptions{Bytes: 1 << 20})
		effects := func(after fs.FS) []isolation.Effect {
			out, err := renderer.Effects(context.Background(), &isolation.Edit{
				Before: a.resolve(t, resolver, a.files), After: a.resolve(t, resolver, after), Files: []string{a.file},
				FilesByTarget: map[string][]string{"/argocd/web-qa": {a.file}}, MayChange: func(*appset.Target) bool { return true }, Revision: "c0ffee",
			})
			if err != nil {
				t.Fatal(err)
			}
			if len(out) != 1 {
				t.Fatalf("the effects are %+v", out)
			}
			return out
		}
		without := func(c *fieldedit.Change) []isolation.Effect {
			others, _ := a.edit(t, ops, c.Path)
			return effects(others)
		}
		a.takeOptions(t, a.resolve(t, resolver, a.files).Targets[0].Sources[0].Options)
		after, err := a.render(t, tree)
		found := effects(tree)
		if failed := found[0].Changes == nil; failed != (err != nil) {
			t.Fatalf("it can't be rendered here: %s; by the libraries: %v", found[0].Why, err)
		}
		if err != nil {
			return
		}
		said := map[string]isolation.Override{}
		for _, f := range isolation.ListIneffective(isolation.Trees{Files: a.files, Sets: a.files}, found, changes, without) {
			said[f.Change.Path] = f.Override
		}
		for i := range changes {
			c := &changes[i]
			if c.Path == "replicas" {
				continue
			}
			others, _ := a.edit(t, ops, c.Path)
			before, err := a.render(t, others)
			if err != nil {
				t.Fatal(err)
			}
			same := before == after
			override, is := said[c.Path]
			if is != same {
				t.Fatalf("%s is said to have no effect: %t, by %v; the libraries say %t:\n%s", c.Path, is, override, same, after)
			}
			switch {
			case !same:
				shown++
			case override.String() != "":
				named++
				hidden++
			default:
				hidden++
			}
		}
	})
	t.Logf("%d fields show, %d don't; of %d it is said what overrides them", shown, hidden, named)
	if !t.Failed() && (shown < 10 || named < 10) {
		t.Errorf("the Applications are too tame: %d fields show, %d are overridden", shown, named)
	}
}

// edit makes a tree with new values but one, with what it changes.
func (o *overriddenApplication) edit(t *rapid.T, values map[string]string, but string) (fs.FS, []fieldedit.Change) {
	var ops []fieldedit.Op
	for _, p := range slices.Sorted(maps.Keys(values)) {
		if p == but {
			continue
		}
		parse, arg := fieldedit.ParseOp, p+"="+values[p]
		if image, is := fieldedit.ImageOfPath(p); is && o.helm == nil {
			parse, arg = fieldedit.ParseImageOp, image+"="+values[p]
		}
		op, err := parse(arg)
		if err != nil {
			t.Fatal(err)
		}
		ops = append(ops, op)
	}
	before := o.files[o.file].Data
	if len(ops) == 0 {
		return o.files, nil
	}
	after, changes, err := fieldedit.Set(before, o.file, ops)
	if err != nil {
		t.Fatal(err)
	}
	for i := range changes {
		changes[i].File = o.file
	}
	return fieldedit.Apply(o.files, []fieldedit.Edit{{File: o.file, Before: before, After: after, Mode: 0o100644, Changes: changes}}), changes
}

func (o *overriddenApplication) resolve(t *rapid.T, r *appset.Resolver, tree fs.FS) isolation.Resolution {
	p := &pipeline.Pipeline{APIVersion: "liftlock.dev/v1alpha1", Kind: "Pipeline", Metadata: pipeline.Metadata{Name: "shop"}, File: ".liftlock.yaml"}
	p.Spec.ApplicationSets = []pipeline.ApplicationSetSource{{Path: "argocd/*.yaml"}}
	p.Spec.Component, p.Spec.Environment = `{{ .component }}`, `{{ .env }}`
	p.Spec.Environments = []pipeline.Environment{{Name: "qa"}}
	f, err := r.Resolve(context.Background(), appset.Input{Pipeline: p, Tree: tree, Branch: "main", RepoURLs: []string{repoURL}})
	if err != nil || len(f.Problems) > 0 || len(f.Targets) != 1 {
		t.Fatalf("the targets are %+v, the problems %v: %v", f.Targets, f.Problems, err)
	}
	return isolation.Resolution{Tree: tree, ID: identities(tree), Targets: f.Targets}
}
