package render

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/kustomize/kyaml/openapi"

	"github.com/liftlock/liftlock/internal/manifest/deps"
)

// kinds of kustomizations, by what they have; %d is the folder's number.
var kustomizationParts = []string{
	"components:\n- ../d4\n",
	"patches:\n- path: patch.yaml\n",
	"patches:\n- patch: '[{\"op\": \"add\", \"path\": \"/data/j\", \"value\": \"k\"}]'\n  target: {kind: ConfigMap}\n",
	"patchesJson6902:\n- {path: json.yaml, target: {version: v1, kind: ConfigMap, name: cm%d}}\n",
	"configMapGenerator:\n- {name: g%d, files: [file.txt, k=x.env], envs: [x.env], literals: [a=b]}\n",
	"secretGenerator:\n- {name: s%d, files: [file.txt]}\n",
	"transformers:\n- labels.yaml\n- plugin.yaml\n",
	"replacements:\n- path: replacement.yaml\n",
	"namePrefix: p%d-\n",
	"nameSuffix: -s\n",
	"namespace: n%d\n",
	"labels:\n- pairs: {l: v%d}\n  includeSelectors: true\n",
	"commonAnnotations: {a: v%d}\n",
	"images:\n- {name: web, newTag: \"%d.0\"}\n",
	"replicas:\n- {name: web, count: %d}\n",
	"configurations: [config.yaml]\n",
	"crds: [schema.json]\n",
	"openapi: {path: openapi.json}\n",
	"generatorOptions: {disableNameSuffixHash: true}\n",
	"sortOptions: {order: fifo}\n",
	"resources: [linked.yaml]\n",
}

// drawKustomizations draws folders of which each may use a later one.
func drawKustomizations(t *rapid.T) map[string]string {
	const folders = 5
	tree := map[string]string{}
	for i := range folders {
		dir := fmt.Sprintf("d%d", i)
		kind, version := "Kustomization", "v1beta1"
		if i == folders-1 {
			kind, version = "Component", "v1alpha1"
		}
		tree[dir+"/cm.yaml"] = fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm%d}\ndata: &d {a: b, version: \"1.20\", on: \"yes\"}\n", i)
		tree[dir+"/web.yaml"] = fmt.Sprintf("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: w%d}\nspec: {replicas: 1, template: {spec: {containers: [{name: web, image: web}]}}}\n", i)
		tree[dir+"/patch.yaml"] = strings.Replace(tree[dir+"/cm.yaml"], "a: b", "a: patched", 1)
		tree[dir+"/json.yaml"] = "- {op: add, path: /data/x, value: y}\n"
		tree[dir+"/file.txt"], tree[dir+"/x.env"] = "text\r\nümlaut\n", "K=v\n"
		tree[dir+"/labels.yaml"] = "apiVersion: builtin\nkind: LabelTransformer\nmetadata: {name: l}\nlabels: {a: b}\nfieldSpecs: [{path: metadata/labels, create: true}]\n"
		tree[dir+"/plugin.yaml"] = fmt.Sprintf("apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: p}\npath: json.yaml\ntarget: {kind: ConfigMap, name: cm%d}\n", i)
		tree[dir+"/replacement.yaml"] = fmt.Sprintf("source: {kind: ConfigMap, name: cm%d, fieldPath: data.a}\ntargets: [{select: {kind: ConfigMap, name: cm%d}, fieldPaths: [data.b], options: {create: true}}]\n", i, i)
		tree[dir+"/schema.json"], tree[dir+"/config.yaml"] = "{}", "namePrefix: [{path: metadata/name}]\n"
		tree[dir+"/openapi.json"] = `{"definitions":{}}`
		tree[dir+"/real.yaml"] = fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata: {name: svc%d}\n", i)
		tree[dir+"/linked.yaml"] = "-> real.yaml"
		var b strings.Builder
		fmt.Fprintf(&b, "kind: %s\napiVersion: kustomize.config.k8s.io/%s\n", kind, version)
		resources := "resources:\n- cm.yaml\n- web.yaml\n"
		if i == folders-1 {
			resources = "resources:\n- cm.yaml\n"
		}
		if i < folders-2 && rapid.Bool().Draw(t, "base") {
			resources += fmt.Sprintf("- ../d%d\n", rapid.IntRange(i+1, folders-2).Draw(t, "which"))
		}
		seen := map[string]bool{"components": i == folders-1, "resources": true}
		for _, part := range kustomizationParts {
			field, _, _ := strings.Cut(part, ":")
			if rapid.IntRange(0, 3).Draw(t, field) > 0 {
				continue
			}
			if field == "resources" {
				resources += "- linked.yaml\n"
				continue
			}
			if !seen[field] {
				seen[field] = true
				b.WriteString(strings.ReplaceAll(part, "%d", fmt.Sprint(i)))
			}
		}
		tree[dir+"/"+rapid.SampledFrom([]string{"kustomization.yaml", "kustomization.yml", "Kustomization"}).Draw(t, "name")] = b.String() + resources
	}
	return tree
}

// TestKustomizeOracle compares with kustomize itself over a copy on disk, and
// holds that whatever is read is among what the reads room says.
func TestKustomizeOracle(t *testing.T) {
	silenceLogs(t)
	rendered := 0
	rapid.Check(t, func(rt *rapid.T) {
		contents := drawKustomizations(rt)
		root := writeTree(t, contents)
		defer os.RemoveAll(root)
		m, err := Render(context.Background(), memoryTree(contents), singleSource("d0", ""))
		openAPILock.Lock()
		resmap, wantErr := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(root, "d0"))
		openapi.ResetOpenAPI()
		openAPILock.Unlock()
		if (err == nil) != (wantErr == nil) {
			rt.Fatalf("ours: %v\nkustomize: %v", err, wantErr)
		}
		if err != nil {
			return
		}
		rendered++
		out, err := resmap.AsYaml()
		if err != nil {
			rt.Fatal(err)
		}
		if d := cmp.Diff(yamlObjectLines(t, out), objectLines(m)); d != "" {
			rt.Fatal(d)
		}
		checkReadsKnown(rt, contents, m, deps.Source{Path: "d0"})
	})
	if rendered == 0 {
		t.Error("no kustomization was right")
	}
}

// checkReadsKnown holds that a rendering read only files that reads names for its source.
func checkReadsKnown(t interface{ Fatalf(string, ...any) }, contents map[string]string, m *Manifests, s deps.Source, extra ...string) {
	x, err := deps.Build(context.Background(), memoryTree(contents), []deps.Reader{{ID: "r", Sources: []deps.Source{s}, Extra: extra}})
	if err != nil {
		t.Fatalf("%v", err)
	}
	for _, p := range slices.Concat(m.Reads.Files, m.Reads.Links, m.Reads.Absent) {
		if len(x.Readers(p)) == 0 && !strings.Contains(p, ".argocd-source") {
			t.Fatalf("%s was read, and reads doesn't know: %v", p, x.Files("r"))
		}
	}
}

func TestRemoteReferencesAreNamed(t *testing.T) {
	silenceLogs(t)
	for _, tt := range []struct{ name, kustomization, more, remote string }{
		{name: "base over HTTPS", kustomization: "resources: ['https://git.example/a/b//base?ref=v1']", remote: "https://git.example/a/b//base?ref=v1"},
		{name: "credentials are dropped", kustomization: "resources: ['https://me:secret@git.example/a/b']", remote: "https://git.example/a/b"},
		{name: "upper case", kustomization: "resources: ['HTTPS://git.example/x.yaml']", remote: "HTTPS://git.example/x.yaml"},
		{name: "field in another case", kustomization: "ReSources: ['https://git.example/x.yaml']", remote: "https://git.example/x.yaml"},
		{name: "a host that kustomize knows", kustomization: "resources: [github.com/a/b]", remote: "github.com/a/b"},
		{name: "over SSH", kustomization: "resources: ['git@git.example:a/b.git']", remote: "git@git.example:a/b.git"},
		{name: "a file of the machine", kustomization: "resources: ['file:///etc']", remote: "file:///etc"},
		{name: "forced git", kustomization: "resources: ['git::https://git.example/a/b']", remote: "git::https://git.example/a/b"},
		{name: "component", kustomization: "components: ['ssh://git.example/a/b']", remote: "ssh://git.example/a/b"},
		{name: "patch", kustomization: "resources: [cm.yaml]\npatches: [{path: 'https://git.example/p.yaml'}]", remote: "https://git.example/p.yaml"},
		{name: "strategic merge patch", kustomization: "resources: [cm.yaml]\npatchesStrategicMerge: ['https://git.example/p.yaml']", remote: "https://git.example/p.yaml"},
		{name: "generator's file", kustomization: "configMapGenerator: [{name: x, files: ['k=https://git.example/f']}]", remote: "https://git.example/f"},
		{name: "generator's environment", kustomization: "secretGenerator: [{name: x, envs: ['http://git.example/f']}]", remote: "http://git.example/f"},
		{name: "old environment", kustomization: "secretGenerator: [{name: x, env: 'http://git.example/f'}]", remote: "http://git.example/f"},
		{name: "schema", kustomization: "resources: [cm.yaml]\nopenapi: {path: 'https://git.example/s.json'}", remote: "https://git.example/s.json"},
		{name: "resource definitions", kustomization: "resources: [cm.yaml]\ncrds: ['https://git.example/s.json']", remote: "https://git.example/s.json"},
		{name: "configurations", kustomization: "resources: [cm.yaml]\nconfigurations: ['https://git.example/s.yaml']", remote: "https://git.example/s.yaml"},
		{name: "replacement", kustomization: "resources: [cm.yaml]\nreplacements: [{path: 'https://git.example/s.yaml'}]", remote: "https://git.example/s.yaml"},
		{name: "plugin as text", kustomization: "resources: [cm.yaml]\ntransformers: ['{apiVersion: builtin, kind: PatchTransformer, metadata: {name: x}, PATH: \"https://git.example/p\"}']", remote: "https://git.example/p"},
		{name: "plugin's address as text that is nearly YAML", kustomization: "resources: [cm.yaml]\ntransformers: ['https://git.example/a: b']", remote: "https://git.example/a: b"},
		{name: "plugin in a file", kustomization: "generators: [gen.yaml]", more: "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: x}\nfiles: [a=https://git.example/f]\n", remote: "https://git.example/f"},
		{name: "plugin's address in escapes", kustomization: "generators: [gen.yaml]", more: "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: x}\nfiles: [\"a=\\x68ttps://git.example/f\"]\n", remote: "https://git.example/f"},
		{name: "below a base", kustomization: "resources: [base]", remote: "https://git.example/deep"},
		{name: "Helm charts", kustomization: "helmCharts: [{name: x, repo: 'https://charts.example'}]"},
		{name: "plugins from a kustomization that builds them", kustomization: "generators: [gens]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			contents := map[string]string{
				"app/kustomization.yaml":      tt.kustomization,
				"app/cm.yaml":                 "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n",
				"app/gen.yaml":                tt.more,
				"app/base/kustomization.yaml": "resources: ['https://git.example/deep']",
				"app/gens/kustomization.yaml": "resources: [g.yaml]\nnamePrefix: x\n",
				"app/gens/g.yaml":             "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: x}\n",
			}
			_, err := Render(context.Background(), memoryTree(contents), singleSource("app", ""))
			var u *Unrenderable
			if !errors.As(err, &u) {
				t.Fatalf("the error is %v", err)
			}
			if tt.remote != "" && !slices.Contains(u.Remote, tt.remote) {
				t.Errorf("the addresses are %q", u.Remote)
			}
			if u.Source != "app" || strings.Contains(err.Error(), "secret") {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// TestEveryFieldIsKnown fails when a new kustomize has fields that may name
// something outside.
func TestEveryFieldIsKnown(t *testing.T) {
	looked := []string{"OpenAPI", "PatchesStrategicMerge", "PatchesJson6902", "Patches", "Replacements", "Resources", "Components", "Crds", "Bases",
		"ConfigMapGenerator", "SecretGenerator", "HelmCharts", "HelmChartInflationGenerator", "Configurations", "Generators", "Transformers", "Validators"}
	harmless := []string{"TypeMeta", "MetaData", "NamePrefix", "NameSuffix", "Namespace", "CommonLabels", "Labels", "CommonAnnotations", "Images", "ImageTags",
		"Replicas", "Vars", "SortOptions", "HelmGlobals", "GeneratorOptions", "BuildMetadata"}
	for i := range reflect.TypeFor[types.Kustomization]().NumField() {
		if name := reflect.TypeFor[types.Kustomization]().Field(i).Name; !slices.Contains(looked, name) && !slices.Contains(harmless, name) {
			t.Errorf("kustomizationrefs.go doesn't look at %s", name)
		}
	}
}

func TestSchemaStaysWithItsKustomization(t *testing.T) {
	silenceLogs(t)
	thing := "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: t}\nspec: {list: [{id: a, v: 1}, {id: b, v: 1}]}\n"
	patch := "patches:\n- patch: |-\n    apiVersion: example.com/v1\n    kind: Thing\n    metadata: {name: t}\n    spec: {list: [{id: b, v: 2}]}\n"
	schema := `{"definitions":{"v1.Thing":{"properties":{"spec":{"properties":{"list":{"items":{"type":"object"},"type":"array","x-kubernetes-patch-merge-key":"id","x-kubernetes-patch-strategy":"merge"}},"type":"object"}},"type":"object","x-kubernetes-group-version-kind":[{"group":"example.com","kind":"Thing","version":"v1"}]}}}`
	contents := map[string]string{
		"with/thing.yaml": thing, "with/schema.json": schema, "with/kustomization.yaml": "resources: [thing.yaml]\nopenapi: {path: schema.json}\n" + patch,
		"without/thing.yaml": thing, "without/kustomization.yaml": "resources: [thing.yaml]\n" + patch,
	}
	before := objectLines(mustRender(t, contents, singleSource("without", "")))
	merged := objectLines(mustRender(t, contents, singleSource("with", "")))
	if !strings.Contains(merged, `[{"id":"a","v":1},{"id":"b","v":2}]`) && !strings.Contains(merged, `[{"id":"b","v":2},{"id":"a","v":1}]`) {
		t.Errorf("the schema's merge key wasn't used: %s", merged)
	}
	if after := objectLines(mustRender(t, contents, singleSource("without", ""))); after != before {
		t.Errorf("the schema stayed behind:\n%s", cmp.Diff(before, after))
	}
}
