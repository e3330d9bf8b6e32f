package deps

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// tracingFS is kustomize's file system with a note of every file that it reads.
type tracingFS struct {
	filesys.FileSystem
	mu   sync.Mutex
	seen map[string]bool
}

func (t *tracingFS) ReadFile(name string) ([]byte, error) {
	t.mu.Lock()
	t.seen[strings.TrimPrefix(path.Clean(name), "/")] = true
	t.mu.Unlock()
	return t.FileSystem.ReadFile(name)
}

// drawKustomizations draws folders in which each may use the later ones.
func drawKustomizations(t *rapid.T) map[string]string {
	const folders = 5
	tree := map[string]string{}
	for i := range folders {
		dir := fmt.Sprintf("d%d", i)
		kind := "Kustomization"
		if i == folders-1 {
			kind = "Component"
		}
		name := fmt.Sprintf("cm%d", i)
		tree[dir+"/cm.yaml"] = fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {a: b}\n", name)
		tree[dir+"/patch.yaml"] = tree[dir+"/cm.yaml"]
		tree[dir+"/json.yaml"] = "- {op: add, path: /data/x, value: y}\n"
		tree[dir+"/file.txt"], tree[dir+"/x.env"] = "text", "K=v\n"
		tree[dir+"/unused.yaml"] = tree[dir+"/cm.yaml"]
		tree[dir+"/labels.yaml"] = "apiVersion: builtin\nkind: LabelTransformer\nmetadata: {name: l}\nlabels: {a: b}\nfieldSpecs: [{path: metadata/labels, create: true}]\n"
		tree[dir+"/plugin.yaml"] = fmt.Sprintf("apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: p}\npath: json.yaml\ntarget: {kind: ConfigMap, name: %s}\n", name)
		tree[dir+"/replacement.yaml"] = fmt.Sprintf("source: {kind: ConfigMap, name: %s, fieldPath: data.a}\ntargets: [{select: {kind: ConfigMap, name: %s}, fieldPaths: [data.b], options: {create: true}}]\n", name, name)
		tree[dir+"/crd.json"], tree[dir+"/conf.yaml"] = "{}", "nameReference: []\n"
		tree[dir+"/gen.yaml"] = fmt.Sprintf("apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: made%d}\nname: made%d\nfiles: [key=keyed.txt]\nenvs: [gen.env]\n", i, i)
		tree[dir+"/keyed.txt"], tree[dir+"/gen.env"], tree[dir+"/inline.json"], tree[dir+"/folder.yaml"] = "keyed", "A=b\n", tree[dir+"/json.yaml"], tree[dir+"/json.yaml"]
		tree[dir+"/plugins/kustomization.yaml"] = "resources: [one.yaml]\n"
		tree[dir+"/plugins/one.yaml"] = fmt.Sprintf("apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: q}\npath: folder.yaml\ntarget: {kind: ConfigMap, name: %s}\n", name)
		tree[dir+"/anchored.txt"] = "anchored"
		var b strings.Builder
		resources := rapid.SampledFrom([]string{"resources", "Resources", "RESOURCES", "resources: []\nresources"}).Draw(t, "key")
		fmt.Fprintf(&b, "kind: %s\napiVersion: kustomize.config.k8s.io/%s\n%s:\n- cm.yaml\n", kind, map[string]string{"Kustomization": "v1beta1", "Component": "v1alpha1"}[kind], resources)
		if i < folders-2 && rapid.Bool().Draw(t, "base") {
			fmt.Fprintf(&b, "- ../d%d\n", rapid.IntRange(i+1, folders-2).Draw(t, "which"))
		}
		for _, part := range []struct{ field, text string }{
			{"components", "- ../d4\n"},
			{"patches", "- path: patch.yaml\n"},
			{"patchesStrategicMerge", "- patch.yaml\n"},
			{"patchesJson6902", fmt.Sprintf("- {path: json.yaml, target: {version: v1, kind: ConfigMap, name: %s}}\n", name)},
			{"configMapGenerator", fmt.Sprintf("- {name: g%d, files: [file.txt, k=x.env], envs: [x.env]}\n", i)},
			{"secretGenerator", fmt.Sprintf("- {name: s%d, files: [file.txt]}\n", i)},
			{"transformers", "- labels.yaml\n- plugin.yaml\n"},
			{"transformers", fmt.Sprintf("- '{apiVersion: builtin, kind: PatchTransformer, metadata: {name: i}, path: inline.json, target: {kind: ConfigMap, name: %s}}'\n", name)},
			{"transformers", "- plugins\n"},
			{"generators", "- gen.yaml\n"},
			{"ConfigMapGenerator", fmt.Sprintf("- &a {name: h%d, files: [anchored.txt]}\n- {<<: *a, name: i%d}\n", i, i)},
			{"crds", "- crd.json\n"},
			{"configurations", "- conf.yaml\n"},
			{"replacements", "- path: replacement.yaml\n"},
		} {
			if part.field == "components" && i >= folders-1 {
				continue
			}
			if rapid.IntRange(0, 2).Draw(t, part.field) == 0 {
				fmt.Fprintf(&b, "%s:\n%s", part.field, part.text)
			}
		}
		tree[dir+"/"+rapid.SampledFrom(kustomizationNames).Draw(t, "name")] = b.String()
	}
	return tree
}

// TestEverythingKustomizeReads holds that whatever kustomize itself reads to
// build a folder is among that folder's files, and not simply everything.
func TestEverythingKustomizeReads(t *testing.T) {
	built, failed := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		contents := drawKustomizations(rt)
		disk := &tracingFS{FileSystem: filesys.MakeFsInMemory(), seen: map[string]bool{}}
		for name, data := range contents {
			if err := disk.WriteFile("/"+name, []byte(data)); err != nil {
				rt.Fatal(err)
			}
		}
		options := krusty.MakeDefaultOptions()
		options.LoadRestrictions = types.LoadRestrictionsNone
		if _, err := krusty.MakeKustomizer(options).Run(disk, "/d0"); err != nil {
			failed++ // what was read until then counts all the same
		} else {
			built++
		}
		x, err := Build(t.Context(), memoryTree(contents), []Reader{{ID: "d0", Sources: []Source{{Path: "d0"}}}})
		if err != nil {
			rt.Fatal(err)
		}
		files := x.Files("d0")
		for name := range disk.seen {
			if _, there := contents[name]; there && !slices.Contains(files, name) {
				rt.Errorf("kustomize read %s, which is not among %v", name, files)
			}
		}
		if slices.Contains(files, "d0/unused.yaml") {
			rt.Error("a file that nothing names is among the files")
		}
	})
	t.Logf("%d built, %d failed", built, failed)
	if built == 0 {
		t.Error("kustomize built none of them: the test means nothing")
	}
}
