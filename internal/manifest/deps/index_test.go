package deps

import (
	"context"
	"io/fs"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func memoryTree(contents map[string]string) fstest.MapFS {
	out := fstest.MapFS{}
	for name, data := range contents {
		out[name] = &fstest.MapFile{Data: []byte(data)}
	}
	return out
}

func mustBuild(t *testing.T, fsys fs.FS, readers ...Reader) *Index {
	t.Helper()
	x, err := Build(context.Background(), fsys, readers)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// existingFiles leaves out files that are only read by their absence.
func existingFiles(fsys fs.FS, names []string) []string {
	var out []string
	for _, n := range names {
		if _, err := fs.Stat(fsys, n); err == nil {
			out = append(out, n)
		}
	}
	return out
}

var kustomizeFiles = map[string]string{
	"base/kustomization.yaml": `
resources: [deploy.yaml, "https://example.com/crd.yaml", ../more]
`,
	"base/deploy.yaml":        "kind: Deployment",
	"more/kustomization.yml":  "resources: [svc.yaml, ../base]", // a cycle: kustomize refuses it, the walk must end
	"more/svc.yaml":           "kind: Service",
	"more/unused.yaml":        "kind: Service",
	"component/Kustomization": "kind: Component\npatches: [{path: patch.yaml}, {patch: '[]'}]",
	"component/patch.yaml":    "x",
	"env/kustomization.yaml": `
resources: [../base, own.yaml, later.yaml]
components: [../component]
patches:
  - path: p1.yaml
patchesStrategicMerge:
  - p2.yaml
  - |-
    kind: Deployment
patchesJson6902: [{path: p3.yaml, target: {}}]
replacements: [{path: r.yaml}, {source: {}}]
configMapGenerator: [{name: a, files: [f.txt, key=g.txt], envs: [e.env], env: e2.env, literals: [a=b]}]
secretGenerator: [{name: a, files: [s.txt]}]
crds: [crd.json]
configurations: [conf.yaml]
openapi: {path: schema.json}
generators: [gen.yaml]
transformers: ["kind: X\npath: t.yaml\n"]
helmCharts: [{name: redis, valuesFile: hv.yaml, additionalValuesFiles: [hv2.yaml]}]
`,
	"env/own.yaml": "", "env/p1.yaml": "", "env/p2.yaml": "", "env/p3.yaml": "", "env/r.yaml": "",
	"env/f.txt": "", "env/g.txt": "", "env/e.env": "", "env/e2.env": "", "env/s.txt": "", "env/crd.json": "",
	"env/conf.yaml": "", "env/schema.json": "", "env/gen.yaml": "kind: Y\nfiles: [secret.enc.yaml]", "env/secret.enc.yaml": "",
	"env/t.yaml": "", "env/hv.yaml": "", "env/hv2.yaml": "",
	"env/charts/redis/Chart.yaml": "", "env/charts/redis/templates/x.yaml": "",
	"env/charts/other/Chart.yaml": "", "env/unused.yaml": "", "README.md": "",
}

func TestKustomize(t *testing.T) {
	fsys := memoryTree(kustomizeFiles)
	x := mustBuild(t, fsys, Reader{ID: "env", Sources: []Source{{Path: "env"}}})
	want := []string{}
	for name := range kustomizeFiles {
		switch name {
		case "env/unused.yaml", "README.md", "more/unused.yaml", "env/charts/other/Chart.yaml":
		default:
			want = append(want, name)
		}
	}
	slices.Sort(want)
	if d := cmp.Diff(want, existingFiles(fsys, x.Files("env"))); d != "" {
		t.Error(d)
	}
	if len(x.Problems()) > 0 {
		t.Error(x.Problems())
	}
	if d := cmp.Diff([]string{"https://example.com/crd.yaml"}, x.Remote("env")); d != "" {
		t.Error(d)
	}
	for name, want := range map[string]bool{
		"env/later.yaml":                   true, // named, not there yet
		"env/later.yaml/x":                 true, // or a folder of that name
		"env/kustomization.yml":            true, // a second kustomization is an error
		"env/charts/redis/templates/y.yml": true,
		"base/new.yaml":                    false,
		"env/unused.yaml":                  false,
		"envy/kustomization.yaml":          false,
	} {
		if got := x.Readers(name) != nil; got != want {
			t.Errorf("%s is read: %v, want %v", name, got, want)
		}
	}
}

func TestHelm(t *testing.T) {
	fsys := memoryTree(map[string]string{
		"chart/Chart.yaml":            "dependencies: [{name: lib, repository: file://../lib}, {name: r, repository: https://charts.example.com}]",
		"chart/values.yaml":           "",
		"chart/values-dev.yaml":       "",
		"chart/values-prod.yaml":      "",
		"chart/templates/a.yaml":      "{{ .Values.x }}",
		"chart/charts/sub/Chart.yaml": "",
		"lib/Chart.yaml":              "",
		"lib/templates/_h.tpl":        `{{ .Files.Get "data.txt" }}`,
		"lib/data.txt":                "",
		"values/dev.yaml":             "",
	})
	x := mustBuild(t, fsys,
		Reader{ID: "dev", Sources: []Source{{Path: "./chart/", ValueFiles: []string{"chart/values-dev.yaml", "values/dev.yaml"}}}},
		Reader{ID: "prod", Sources: []Source{{Path: "chart", ValueFiles: []string{"chart/values-prod.yaml"}}}})
	shared := []string{"chart/Chart.yaml", "chart/charts/sub/Chart.yaml", "chart/templates/a.yaml", "chart/values.yaml", "lib/Chart.yaml", "lib/data.txt", "lib/templates/_h.tpl"}
	for id, own := range map[string][]string{"dev": {"chart/values-dev.yaml", "values/dev.yaml"}, "prod": {"chart/values-prod.yaml"}} {
		want := append(own, shared...)
		slices.Sort(want)
		if d := cmp.Diff(want, existingFiles(fsys, x.Files(id))); d != "" {
			t.Errorf("%s: %s", id, d)
		}
	}
	got := x.AffectedReaders([]string{"chart/values-dev.yaml", "lib/new.txt", "nobody", "lib/new.txt"})
	if d := cmp.Diff(map[string][]string{"dev": {"chart/values-dev.yaml", "lib/new.txt"}, "prod": {"lib/new.txt"}}, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"https://charts.example.com"}, x.Remote("prod")); d != "" {
		t.Error(d)
	}
}

func TestDirectory(t *testing.T) {
	fsys := memoryTree(map[string]string{
		"d/a.yaml": "", "d/b.json": "", "d/notes.md": "", "d/sub/c.yml": "", "d/sub/skip.yaml": "",
		"j/x.jsonnet":       "local a = import 'lib/y.libsonnet'; // import 'no.jsonnet'\n[import /* so */ @\"../shared/z.jsonnet\", importstr 'd\\u0061ta.txt', importbin \"lib.bin\", { 'import': 'no.txt' }, |||\n  import 'no.libsonnet'\n|||]",
		"j/lib/y.libsonnet": "import 'deep.libsonnet'", "libs/deep.libsonnet": "", "libs/lib.bin": "", "libs/other": "", "shared/z.jsonnet": "", "j/data.txt": "import 'no.txt'", "j/no.txt": "",
	})
	cases := []struct {
		name   string
		source Source
		want   []string
	}{
		{"flat", Source{Path: "d"}, []string{"d/a.yaml", "d/b.json"}},
		{"recursive", Source{Path: "d", Recurse: true}, []string{"d/a.yaml", "d/b.json", "d/sub/c.yml", "d/sub/skip.yaml"}},
		{"include", Source{Path: "d", Recurse: true, Include: "{sub/*,*.json}"}, []string{"d/b.json", "d/sub/c.yml", "d/sub/skip.yaml"}},
		{"exclude", Source{Path: "d", Recurse: true, Exclude: "*skip*"}, []string{"d/a.yaml", "d/b.json", "d/sub/c.yml"}},
		{"bad glob takes all", Source{Path: "d", Include: "["}, []string{"d/a.yaml", "d/b.json", "d/notes.md", "d/sub/c.yml", "d/sub/skip.yaml"}},
		{"jsonnet imports", Source{Path: "j", Libs: []string{"libs"}}, []string{"j/data.txt", "j/lib/y.libsonnet", "j/x.jsonnet", "libs/deep.libsonnet", "libs/lib.bin", "shared/z.jsonnet"}},
		{"plugin takes all", Source{Path: "d", Layout: Anything}, []string{"d/a.yaml", "d/b.json", "d/notes.md", "d/sub/c.yml", "d/sub/skip.yaml"}},
		{"nothing there", Source{Path: "none"}, nil},
		{"the root", Source{Path: "."}, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			x := mustBuild(t, fsys, Reader{ID: "r", Sources: []Source{c.source}})
			if d := cmp.Diff(c.want, existingFiles(fsys, x.Files("r"))); d != "" {
				t.Error(d)
			}
			for _, n := range c.want {
				if len(x.Readers(n)) != 1 {
					t.Errorf("%s has readers %v", n, x.Readers(n))
				}
			}
		})
	}
	x := mustBuild(t, fsys, Reader{ID: "r", Sources: []Source{{Path: "d", Include: "*.yaml"}, {Path: "none"}}})
	for name, want := range map[string]bool{
		"d/new.yaml": true, "d/new.yml": false, "d/sub/new.yaml": false, "d/kustomization.yml": true, "d/Chart.yaml": true, "none/at/all": true,
	} {
		if got := x.Readers(name) != nil; got != want {
			t.Errorf("creating %s is noticed: %v, want %v", name, got, want)
		}
	}
}

func TestProblemsWiden(t *testing.T) {
	cases := []struct {
		name  string
		files map[string]string
		link  [2]string
		read  string // must be read
	}{
		{name: "broken kustomization", files: map[string]string{"e/kustomization.yaml": "resources: [", "e/x": ""}, read: "e/x"},
		{name: "wrong type", files: map[string]string{"e/kustomization.yaml": "resources: {a: b}", "e/x": ""}, read: "e/x"},
		{name: "leaves the tree", files: map[string]string{"e/kustomization.yaml": "resources: [../../x]"}, read: "e/kustomization.yaml"},
		{name: "broken chart", files: map[string]string{"e/Chart.yaml": "dependencies: [", "e/x": ""}, read: "e/x"},
		{name: "chart dependency leaves the tree", files: map[string]string{"e/Chart.yaml": "dependencies: [{repository: file://../../x}]", "e/x": ""}, read: "e/x"},
		{name: "link leaves the tree", files: map[string]string{"e/kustomization.yaml": "resources: [l.yaml]"}, link: [2]string{"e/l.yaml", "../../x"}, read: "e/l.yaml"},
		{name: "link to itself", files: map[string]string{"e/kustomization.yaml": "resources: [l]"}, link: [2]string{"e/l", "l/below"}, read: "e/kustomization.yaml"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			fsys := memoryTree(c.files)
			if c.link[0] != "" {
				fsys[c.link[0]] = &fstest.MapFile{Data: []byte(c.link[1]), Mode: fs.ModeSymlink}
			}
			x := mustBuild(t, fsys, Reader{ID: "r", Sources: []Source{{Path: "e"}}})
			if len(x.Problems()) == 0 || x.Problems()[0].Reader != "r" {
				t.Errorf("problems: %v", x.Problems())
			}
			if !slices.Contains(x.Files("r"), c.read) {
				t.Errorf("reads %v, not %s", x.Files("r"), c.read)
			}
		})
	}
}

func TestSymbolicLinks(t *testing.T) {
	fsys := memoryTree(map[string]string{
		"real/base/kustomization.yaml": "resources: [x.yaml]",
		"real/base/x.yaml":             "",
		"env/kustomization.yaml":       "resources: [../base, l.yaml]",
		"other/file.yaml":              "",
	})
	fsys["base"] = &fstest.MapFile{Data: []byte("real/base"), Mode: fs.ModeSymlink}
	fsys["env/l.yaml"] = &fstest.MapFile{Data: []byte("../other/file.yaml"), Mode: fs.ModeSymlink}
	x := mustBuild(t, fsys, Reader{ID: "r", Sources: []Source{{Path: "env"}}})
	want := []string{"base", "env/kustomization.yaml", "env/l.yaml", "other/file.yaml", "real/base/kustomization.yaml", "real/base/x.yaml"}
	for _, n := range want {
		if len(x.Readers(n)) == 0 {
			t.Errorf("%s is not read; read are %v", n, x.Files("r"))
		}
	}
	if len(x.Problems()) > 0 {
		t.Error(x.Problems())
	}
}

func TestSharedAndExtra(t *testing.T) {
	fsys := memoryTree(kustomizeFiles)
	x := mustBuild(t, fsys,
		Reader{ID: "a", Sources: []Source{{Path: "base"}}, Extra: []string{"README.md", "gone.yaml"}},
		Reader{ID: "b", Sources: []Source{{Path: "base"}}, Extra: []string{"component", "env/charts"}},
		Reader{ID: "c"})
	for name, want := range map[string][]string{
		"base/deploy.yaml":            {"a", "b"},
		"README.md":                   {"a"},
		"gone.yaml":                   {"a"},
		"component/patch.yaml":        {"b"},
		"env/charts/other/Chart.yaml": {"b"},
		"env/charts/new":              {"b"},
		"env/own.yaml":                nil,
	} {
		if d := cmp.Diff(want, x.Readers(name)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	if x.Files("c") == nil || len(x.Files("c")) > 0 || x.Files("nobody") != nil {
		t.Error("a reader of nothing and no reader must differ")
	}
}

func TestBuildErrors(t *testing.T) {
	if _, err := Build(context.Background(), memoryTree(kustomizeFiles), []Reader{{ID: "a"}, {ID: "a"}}); err == nil {
		t.Error("two readers of one name must be refused")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Build(ctx, memoryTree(kustomizeFiles), []Reader{{ID: "a", Sources: []Source{{Path: "env"}}}}); err == nil {
		t.Error("an ended context must be an error")
	}
}
