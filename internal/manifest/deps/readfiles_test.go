package deps

import (
	"io/fs"
	"slices"
	"testing"
	"testing/fstest"
)

// TestReadFiles is what is read and what isn't, kind by kind.
func TestReadFiles(t *testing.T) {
	overlay := map[string]string{
		"apps/dev/kustomization.yaml": "resources: [../base]", "apps/dev/extra.yaml": "", "apps/base/kustomization.yaml": "", "apps/base/x.yaml": "", "common/c.yaml": "", "common/d/kustomization.yaml": "resources: [e.yaml]",
		"common/d/e.yaml": "", "common/d/f.yaml": "", "other/x.yaml": "",
	}
	with := func(m map[string]string, more ...string) map[string]string {
		out := map[string]string{}
		for k, v := range m {
			out[k] = v
		}
		for i := 0; i < len(more); i += 2 {
			out[more[i]] = more[i+1]
		}
		return out
	}
	options := Source{Path: "apps/dev", Options: []string{"apps/dev/.options.yaml"}}
	cases := []struct {
		name   string
		files  map[string]string
		links  map[string]string
		source Source
		reads  []string
		not    []string
	}{
		{"options that are not there", overlay, nil, options, []string{"apps/dev/.options.yaml"}, []string{"apps/dev/extra.yaml", "common/c.yaml"}},
		{
			"options", with(overlay, "apps/dev/.options.yaml", "helm: {valueFiles: [../../common/c.yaml, /other/x.yaml, $ref/other/y.yaml]}\nkustomize: {components: [../../common/d]}"), nil, options,
			[]string{"apps/dev/extra.yaml", "apps/dev/new", "apps/base/kustomization.yaml", "common/c.yaml", "other/x.yaml", "other/y.yaml", "common/d/e.yaml"}, []string{"common/d/f.yaml", "apps/base/x.yaml"},
		},
		{"the last name decides: a chart", map[string]string{"a/kustomization.yaml": "", "a/zChart.yaml": "", "a/templates/x": ""}, nil, Source{Path: "a"}, []string{"a/templates/x", "a/values.yaml"}, []string{"a/x.yaml"}},
		{"the last name decides: a kustomization", map[string]string{"a/kustomization.yaml": "", "a/Chart.yaml": "", "a/templates/x": ""}, nil, Source{Path: "a"}, []string{"a/zChart.yaml"}, []string{"a/templates/x", "a/x.yaml"}},
		{"keys in any case, twice", map[string]string{"a/Kustomization": "RESOURCES: [x.yaml]\nresources: [y.yaml]\nresources: [z.yaml]\nPatches: [{PATH: p.yaml}]"}, nil, Source{Path: "a"}, []string{"a/x.yaml", "a/y.yaml", "a/z.yaml", "a/p.yaml"}, nil},
		{"merge keys and aliases", map[string]string{"a/kustomization.yaml": "configMapGenerator:\n- &g {files: &f [x.txt]}\n- <<: *g\n- {envs: *f}\n<<: {resources: [y.yaml]}"}, nil, Source{Path: "a"}, []string{"a/x.txt", "a/y.yaml"}, nil},
		{
			"inline plugins", map[string]string{"a/kustomization.yaml": "generators: ['{kind: ConfigMapGenerator, files: [k=x.txt]}']\ntransformers: [\"kind: F\\nannotations: {f: \\\"exec: {path: ./run.sh}\\\\nx: y\\\"}\"]"}, nil, Source{Path: "a"},
			[]string{"a/x.txt", "a/run.sh"}, []string{"a/y.txt"},
		},
		{
			"plugin configurations", map[string]string{"a/kustomization.yaml": "generators: [g.yaml]\ntransformers: [t]", "a/g.yaml": "kind: HelmChartInflationGenerator\nname: redis\n---\nfiles: [k=x.txt, sub]", "a/t/kustomization.yaml": "resources: [p.yaml]", "a/t/p.yaml": "path: ../q.yaml", "a/sub/y": "", "a/charts/redis/Chart.yaml": "", "q.yaml": ""}, nil, Source{Path: "a"},
			[]string{"a/x.txt", "a/sub/y", "a/sub/new", "a/charts/redis/templates/x", "a/t/p.yaml", "q.yaml"}, []string{"a/t/q.yaml", "a/charts/other/Chart.yaml"},
		},
		{
			"charts in a kustomization", map[string]string{"a/kustomization.yaml": "helmGlobals: {chartHome: ../charts}\nhelmCharts: [{name: redis, version: 1.0.0, repo: https://charts.example.com}]"}, nil, Source{Path: "a"},
			[]string{"charts/redis/x", "charts/redis-1.0.0/redis/x"}, []string{"charts/other/x"},
		},
		{"a folder without a kustomization", map[string]string{"a/kustomization.yaml": "resources: [../b]", "b/x.yaml": ""}, nil, Source{Path: "a"}, []string{"b/kustomization.yml"}, []string{"b/x.yaml"}},
		{"a base that is missing", map[string]string{"a/kustomization.yaml": "resources: [../b/c]"}, nil, Source{Path: "a"}, []string{"b/c", "b/c/kustomization.yaml", "b"}, []string{"b/d", "bc"}},
		{"a base in a file's place", map[string]string{"a/kustomization.yaml": "resources: [../b/c]", "b": "a file, or a submodule"}, nil, Source{Path: "a"}, []string{"b"}, nil},
		{"links are followed as a kernel does", map[string]string{"a/kustomization.yaml": "resources: [l]", "x/y/z/deep": "", "x/y/file.yaml": "", "file.yaml": ""}, map[string]string{"a/l": "d/../file.yaml", "a/d": "../x/y/z"}, Source{Path: "a"}, []string{"a/l", "a/d", "x/y/file.yaml"}, []string{"a/file.yaml", "file.yaml"}},
		{"a source that is a link", map[string]string{"real/dev/kustomization.yaml": "resources: [../base/x.yaml]", "real/base/x.yaml": ""}, map[string]string{"envs": "real"}, Source{Path: "envs/dev"}, []string{"envs", "real/base/x.yaml", "real/dev/kustomization.yaml"}, []string{"envs2"}},
		{"a kustomization that is a link", map[string]string{"shared/kustomization.yaml": "resources: [x.yaml]", "a/x.yaml": "", "shared/x.yaml": ""}, map[string]string{"a/kustomization.yaml": "../shared/kustomization.yaml"}, Source{Path: "a"}, []string{"a/x.yaml", "shared/kustomization.yaml"}, []string{"shared/x.yaml"}},
		{"globs of values", map[string]string{"a/Chart.yaml": "", "v/dev/a.yaml": "", "v/x/y/b.yaml": "", "w/q/other": ""}, nil, Source{Path: "a", ValueGlobs: []string{"v/dev/*.yaml", "v/x/**/*.yaml", "w/*/[a-c].yaml"}},
			[]string{"v/dev/a.yaml", "v/dev/new.yaml", "v/x/y/b.yaml", "v/x/new.yaml", "v/x/deep/er/new.yaml", "w/q/b.yaml", "w/may-be-a-link", "v"}, []string{"v/dev/a.yml", "v/dev/deep/a.yaml", "v/qa/a.yaml", "w/q/d.yaml", "w/q/r/a.yaml"}},
		{"a glob from the root", map[string]string{"a/Chart.yaml": ""}, nil, Source{Path: "a", ValueGlobs: []string{"**/values.yaml"}}, []string{"values.yaml", "x/y/values.yaml"}, nil},
		{"values by a glob that use .Files", map[string]string{"a/Chart.yaml": "", "a/templates/x": "{{ tpl .Values.x . }}", "v/a.yaml": "x: '{{ .Files.Get 1 }}'"}, nil, Source{Path: "a", ValueGlobs: []string{"v/*"}}, []string{"a/any"}, nil},
		{"a glob through links", map[string]string{"a/Chart.yaml": "", "real/a.yaml": ""}, map[string]string{"v/l": "../real", "l": "v"}, Source{Path: "a", ValueGlobs: []string{"l/*/*.yaml"}}, []string{"l", "v/l", "real/a.yaml", "real/new.yaml", "v/x/new.yaml"}, []string{"v/x/new.yml"}},
		{"templates that use .Files", map[string]string{"a/Chart.yaml": "", "a/templates/x": "{{ .Files.Get \"x\" }}", "a/values-prod.yaml": ""}, nil, Source{Path: "a"}, []string{"a/values-prod.yaml", "a/new"}, nil},
		{"words that look like it", map[string]string{"a/Chart.yaml": "", "a/templates/x": "{{ .Values.extraFiles }}{{ tpl .Values.x . }}", "a/values-prod.yaml": "x: '{{ .Files }}'"}, nil, Source{Path: "a"}, nil, []string{"a/values-prod.yaml"}},
		{"values that use .Files", map[string]string{"a/Chart.yaml": "", "a/templates/x": "{{ tpl .Values.x . }}", "v.yaml": "x: '{{ .Files.Get 1 }}'"}, nil, Source{Path: "a", ValueFiles: []string{"v.yaml"}}, []string{"a/any"}, nil},
		{"options in place that use .Files", map[string]string{"a/Chart.yaml": "", "a/templates/x": "{{ tpl .Values.x . }}"}, nil, Source{Path: "a", InlineReadsFiles: true}, []string{"a/any"}, nil},
		{"the same without tpl", map[string]string{"a/Chart.yaml": "", "a/templates/x": "{{ .Values.x }}"}, nil, Source{Path: "a", InlineReadsFiles: true}, nil, []string{"a/any"}},
		{"a plugin's overlay", overlay, nil, Source{Path: "apps/dev", Layout: Anything}, []string{"apps/dev/extra.yaml", "apps/base/kustomization.yaml"}, []string{"apps/base/x.yaml"}},
		{"a layout that isn't known", overlay, nil, Source{Path: "common", Layout: "cue"}, []string{"common/d/f.yaml", "common/new"}, []string{"apps/dev/extra.yaml"}},
		{"values that are missing", map[string]string{"a/Chart.yaml": ""}, nil, Source{Path: "a", ValueFiles: []string{"v/dev.yaml"}}, []string{"v/dev.yaml", "v/dev.yaml/x", "v"}, []string{"v/qa.yaml"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			fsys := memoryTree(c.files)
			for l, to := range c.links {
				fsys[l] = &fstest.MapFile{Data: []byte(to), Mode: fs.ModeSymlink}
			}
			for _, of := range []fs.FS{fsys, bulkMapFS{fsys}} {
				x := mustBuild(t, of, Reader{ID: "r", Sources: []Source{c.source}})
				if len(x.Problems()) > 0 {
					t.Error(x.Problems())
				}
				for _, name := range c.reads {
					if x.Readers(name) == nil {
						t.Errorf("%s isn't read; read are %q", name, x.Files("r"))
					}
				}
				for _, name := range c.not {
					if x.Readers(name) != nil {
						t.Errorf("%s is read", name)
					}
				}
			}
		})
	}
}

func TestRemotes(t *testing.T) {
	x := mustBuild(t, memoryTree(map[string]string{
		"a/kustomization.yaml": `
resources: ["https://github.com/acme/fleet//base?ref=v1", "git@example.com:acme/x.git", github.com/acme/y, "ssh://git@example.com/z", here.yaml, "odd?ref=1.yaml", ./github.com/local]
patches: [{path: "https://example.com/patch.yaml"}]
helmCharts: [{name: redis, repo: "oci://example.com/charts"}]
`,
		"a/odd?ref=1.yaml": "", "a/github.com/local/kustomization.yaml": "",
	}), Reader{ID: "r", Sources: []Source{{Path: "a"}}})
	want := []string{"git@example.com:acme/x.git", "github.com/acme/y", "https://example.com/patch.yaml", "https://github.com/acme/fleet//base?ref=v1", "oci://example.com/charts", "ssh://git@example.com/z"}
	if got := x.Remote("r"); !slices.Equal(got, want) {
		t.Errorf("remote are %q", got)
	}
	for _, name := range []string{"a/odd?ref=1.yaml", "a/github.com/local/kustomization.yaml"} {
		if x.Readers(name) == nil {
			t.Errorf("%s isn't read", name)
		}
	}
	if x.Remote("nobody") != nil {
		t.Error("nobody reads something")
	}
}
