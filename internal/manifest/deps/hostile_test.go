package deps

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// packedChart is a chart's archive with one template.
func packedChart(t *testing.T, template string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	a := tar.NewWriter(z)
	if err := a.WriteHeader(&tar.Header{Name: "sub/templates/_x.tpl", Mode: 0o644, Size: int64(len(template))}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Write([]byte(template)); err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestPatternOfManyWays refuses an include pattern whose braces can be read in a billion ways: it is matched in the
// server's process, with each file's name.
func TestPatternOfManyWays(t *testing.T) {
	for pattern, refused := range map[string]bool{"{*.yaml,*.json}": false, strings.Repeat("{a,aa}", 26) + "x": true} {
		if p, err := compilePattern(pattern); (err != nil) != refused {
			t.Errorf("%s: %v, %v", pattern, p, err)
		}
	}
}

// TestHostileTrees holds that the walk ends, with a problem that names the
// file where something could not be followed.
func TestHostileTrees(t *testing.T) {
	chain := func(n int) map[string]string {
		out := map[string]string{"e/kustomization.yaml": "components: [../c0]"}
		for i := range n {
			out[fmt.Sprintf("c%d/kustomization.yaml", i)] = fmt.Sprintf("kind: Component\ncomponents: [../c%d]", i+1)
		}
		return out
	}
	cycle := map[string]string{"e/kustomization.yaml": "resources: [../f, ., ..]\ncomponents: [../e]", "f/kustomization.yaml": "bases: [../e]\ntransformers: [../e]", "kustomization.yaml": "generators: [e, f, .]"}
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for i := range 30 {
		bomb += fmt.Sprintf("b%d: &b%d [*%s,*%s,*%s,*%s,*%s,*%s,*%s]\n", i, i, previousFolder(i), previousFolder(i), previousFolder(i), previousFolder(i), previousFolder(i), previousFolder(i), previousFolder(i))
	}
	bomb += "resources: *b29\n"
	merges := "x0: &x0 {a: b}\n"
	for i := range 200 {
		merges += fmt.Sprintf("x%d: &x%d {<<: [*x%d,*x%d,*x%d,*x%d]}\n", i+1, i+1, i, i, i, i)
	}
	merges += "<<: *x200\n"
	var many strings.Builder
	many.WriteString("resources:\n")
	for i := range maxReferences + 10 {
		fmt.Fprintf(&many, "- f%d.yaml\n", i)
	}
	cases := []struct {
		name    string
		files   map[string]string
		links   map[string]string
		problem string // the file that must have one; "" for none
		reads   []string
	}{
		{name: "cycle of bases", files: cycle, reads: []string{"e/kustomization.yaml", "f/kustomization.yaml", "kustomization.yaml"}},
		{name: "10,000 nested components", files: chain(10_000), reads: []string{"c9999/kustomization.yaml"}},
		{name: "10,000 nested plugin folders", files: func() map[string]string {
			out := chain(10_000)
			out["e/kustomization.yaml"] = "transformers: [../c0]"
			return out
		}(), reads: []string{"c9999/kustomization.yaml"}},
		{name: "10 MB of YAML", files: map[string]string{"e/kustomization.yaml": "resources: [../other/x.yaml]\n" + strings.Repeat("#0123456\n", 10<<20/9), "other/x.yaml": ""}, problem: "e/kustomization.yaml", reads: []string{"other/x.yaml"}},
		{name: "more references than are followed", files: map[string]string{"e/kustomization.yaml": many.String(), "other/x.yaml": ""}, problem: "e/kustomization.yaml", reads: []string{"other/x.yaml"}},
		{name: "alias bomb", files: map[string]string{"e/kustomization.yaml": bomb}, problem: "e/kustomization.yaml"},
		{name: "merge bomb", files: map[string]string{"e/kustomization.yaml": merges, "x": ""}, problem: "e/kustomization.yaml", reads: []string{"x"}},
		{name: "invalid UTF-8", files: map[string]string{"e/kustomization.yaml": "resources: [\"\xff\xfe\"]", "e/x": ""}, problem: "e/kustomization.yaml", reads: []string{"e/x"}},
		{name: "deep nesting", files: map[string]string{"e/kustomization.yaml": "resources: " + strings.Repeat("[", 100_000), "e/x": ""}, problem: "e/kustomization.yaml", reads: []string{"e/x"}},
		{name: "not a mapping", files: map[string]string{"e/kustomization.yaml": "[a, b]", "e/x": ""}, problem: "e/kustomization.yaml", reads: []string{"e/x"}},
		{name: "link out of the tree", files: map[string]string{"e/kustomization.yaml": "resources: [l]"}, links: map[string]string{"e/l": "../../etc/passwd"}, problem: "e/kustomization.yaml", reads: []string{"e/l"}},
		{name: "absolute link", files: map[string]string{"e/kustomization.yaml": "resources: [l]"}, links: map[string]string{"e/l": "/etc/passwd"}, problem: "e/kustomization.yaml", reads: []string{"e/l"}},
		{name: "links in a circle", files: map[string]string{"e/kustomization.yaml": "resources: [a]"}, links: map[string]string{"e/a": "b", "e/b": "a"}, problem: "e/kustomization.yaml", reads: []string{"e/a", "e/b"}},
		{name: "link into itself", files: map[string]string{"e/kustomization.yaml": "resources: [a/x]"}, links: map[string]string{"e/a": "a/b"}, problem: "e/kustomization.yaml", reads: []string{"e/a"}},
		{name: "folder of links to itself", files: map[string]string{"e/kustomization.yaml": "components: [d]", "e/d/x": ""}, links: map[string]string{"e/d/1": ".", "e/d/2": "..", "e/d/3": "../d"}, reads: []string{"e/kustomization.yaml"}},
		{name: "very long link", files: map[string]string{"e/kustomization.yaml": "resources: [a]"}, links: map[string]string{"e/a": strings.Repeat("a/", 1<<20)}, problem: "e/kustomization.yaml", reads: []string{"e/a"}},
		{name: "broken Jsonnet", files: map[string]string{"e/x.jsonnet": "import 'a", "e/data": ""}, problem: "e/x.jsonnet", reads: []string{"e/data"}},
		{name: "Jsonnet that imports itself", files: map[string]string{"e/x.jsonnet": "import 'x.jsonnet'"}, reads: []string{"e/x.jsonnet"}},
		{name: "charts in a circle", files: map[string]string{"e/Chart.yaml": "dependencies: [{repository: file://../f}]", "f/Chart.yaml": "dependencies: [{repository: file://../e}]"}, reads: []string{"f/Chart.yaml"}},
		{name: "packed chart that lends files", files: map[string]string{"e/Chart.yaml": "", "e/charts/sub.tgz": packedChart(t, "{{ define \"x\" }}{{ .Files }}{{ end }}"), "e/any": ""}, reads: []string{"e/any"}},
		{name: "packed bomb", files: map[string]string{"e/Chart.yaml": "", "e/charts/sub.tgz": packedChart(t, strings.Repeat(" ", 2*maxUnpackedBytes)), "e/templates/x": "{{ tpl .Values.x . }}", "e/any": "", "e/values.yaml": "x: '{{ .Files }}'"}, reads: []string{"e/any"}},
		{name: "an archive that is none", files: map[string]string{"e/Chart.yaml": "", "e/charts/sub.tgz": "PK"}, reads: []string{"e/charts/sub.tgz"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			fsys := memoryTree(c.files)
			for l, to := range c.links {
				fsys[l] = &fstest.MapFile{Data: []byte(to), Mode: fs.ModeSymlink}
			}
			trees := []fs.FS{bulkMapFS{fsys}}
			if len(fsys) < 1000 { // MapFS lists a folder by looking at every file
				trees = append(trees, fsys)
			}
			for _, large := range trees {
				x := mustBuild(t, large, Reader{ID: "r", Sources: []Source{{Path: "e"}}})
				problems := x.Problems()
				named := slices.ContainsFunc(problems, func(p Problem) bool { return p.File == c.problem && p.Reader == "r" })
				if c.problem != "" && !named || c.problem == "" && len(problems) > 0 {
					t.Errorf("the problems are %.300v", problems)
				}
				for _, name := range c.reads {
					if !slices.Contains(x.Files("r"), name) {
						t.Errorf("%s isn't read", name)
					}
				}
			}
		})
	}
}

func previousFolder(i int) string {
	if i == 0 {
		return "a"
	}
	return fmt.Sprint("b", i-1)
}
