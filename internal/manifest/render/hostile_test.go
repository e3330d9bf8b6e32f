package render

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"
)

// packChart packs a chart whose one file unpacks to size bytes.
func packChart(t testing.TB, size int) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, f := range []struct{ name, text string }{
		{"sub/Chart.yaml", "apiVersion: v2\nname: sub\nversion: 1.0.0\n"}, {"sub/big.txt", strings.Repeat("x", size)},
	} {
		if err := w.WriteHeader(&tar.Header{Name: f.name, Mode: 0o644, Size: int64(len(f.text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(f.text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// aliasBomb is YAML that is 10^depth nodes once its aliases are written out.
func aliasBomb(depth int) string {
	b := "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
	for i := 1; i < depth; i++ {
		b += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 10), ","))
	}
	return b
}

// doublingBases are kustomizations that each include the next one twice.
func doublingBases(depth int) map[string]string {
	out := map[string]string{"d/cm.yaml": configMap + "1\n", fmt.Sprintf("d/n%d/kustomization.yaml", depth): "resources: [cm.yaml]\n", fmt.Sprintf("d/n%d/cm.yaml", depth): configMap + "1\n"}
	for i := range depth {
		out[fmt.Sprintf("d/n%d/kustomization.yaml", i)] = fmt.Sprintf("resources: [../l%d, ../r%d]\n", i, i)
		out[fmt.Sprintf("d/l%d/kustomization.yaml", i)] = fmt.Sprintf("resources: [../n%d]\nnamePrefix: l\n", i+1)
		out[fmt.Sprintf("d/r%d/kustomization.yaml", i)] = fmt.Sprintf("resources: [../n%d]\nnamePrefix: r\n", i+1)
	}
	return out
}

func TestHostile(t *testing.T) {
	silenceLogs(t)
	chart := func(template string) map[string]string {
		return chartOf("{{ define \"r\" }}{{ include \"r\" . }}{{ end }}{{ define \"t\" }}{{ template \"t\" . }}{{ end }}"+template, "self: '{{ tpl .Values.self . }}'\n")
	}
	app := func(kustomization string, more ...string) map[string]string {
		out := map[string]string{"d/kustomization.yaml": kustomization, "d/cm.yaml": configMap + "1\n"}
		for i := 0; i+1 < len(more); i += 2 {
			out[more[i]] = more[i+1]
		}
		return out
	}
	many := map[string]string{}
	for i := range 25 {
		many[fmt.Sprintf("d/%02d.yaml", i)] = strings.Repeat("---\n"+configMap+"1\n", 1000)
	}
	for _, tt := range []struct {
		name, path string
		contents   map[string]string
		want       string // in the error
	}{
		{name: "long text", path: "c", contents: chart(`{{ repeat 1000000000 "x" }}`), want: ErrLimit.Error()},
		{name: "growing text", path: "c", contents: chart(`{{ $x := "xxxxxxxxxx" }}{{ range until 30 }}{{ $x = replace "x" "xxxxxxxxxx" $x }}{{ end }}{{ $x }}`), want: ErrLimit.Error()},
		{name: "doubled text", path: "c", contents: chart(`{{ $x := "xxxxxxxxxx" }}{{ range until 60 }}{{ $x = printf "%s%s" $x $x }}{{ end }}`), want: ErrLimit.Error()},
		{name: "doubled list", path: "c", contents: chart(`{{ $x := list 1 2 }}{{ range until 60 }}{{ $x = concat $x $x }}{{ end }}`), want: ErrLimit.Error()},
		{name: "indented text", path: "c", contents: chart(`{{ indent 1000000000 "x" }}`), want: ErrLimit.Error()},
		{name: "random text", path: "c", contents: chart(`{{ randAlphaNum 1000000000 }}`), want: ErrLimit.Error()},
		{name: "a long loop", path: "c", contents: chart(`{{ range until 20000000 }}{{ end }}`), want: ErrLimit.Error()},
		{name: "loops in loops", path: "c", contents: chart(`{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}`), want: ErrLimit.Error()},
		{name: "a loop that writes", path: "c", contents: chart(`{{ range until 1000000 }}` + strings.Repeat("x", 100) + `{{ end }}`), want: ErrLimit.Error()},
		{name: "include without end", path: "c", contents: chart(`{{ include "r" . }}`), want: ErrLimit.Error()},
		{name: "template without end", path: "c", contents: chart(`{{ template "t" . }}`), want: ErrLimit.Error()},
		{name: "tpl without end", path: "c", contents: chart(`{{ tpl .Values.self . }}`), want: ErrLimit.Error()},
		{name: "panic in a function", path: "c", contents: chart(`{{ slice (list 1) 5 }}{{ index (list) 3 }}`), want: "executing a template"},
		{name: "aliases in values", path: "c", contents: chartOf("", aliasBomb(8)), want: ErrLimit.Error()},
		{name: "aliases in a template's output", path: "c", contents: chartOf(aliasBomb(8), ""), want: ErrLimit.Error()},
		{name: "aliases in fromYaml", path: "c", contents: chartOf(`{{ fail (toString (get (fromYaml .Values.x) "Error")) }}`, "x: |\n  "+strings.ReplaceAll(aliasBomb(8), "\n", "\n  ")), want: ErrLimit.Error()},
		{name: "huge values", path: "c", contents: chartOf("", "x: "+strings.Repeat("y", MaxFileBytes)), want: ErrLimit.Error()},
		{name: "packed bomb", path: "c", contents: map[string]string{"c/Chart.yaml": "apiVersion: v2\nname: c\nversion: 1.0.0\n", "c/charts/sub.tgz": packChart(t, maxUnpackedBytes)}, want: ErrLimit.Error()},
		{name: "no packed chart", path: "c", contents: map[string]string{"c/Chart.yaml": "apiVersion: v2\nname: c\nversion: 1.0.0\n", "c/charts/sub.tgz": "PK"}, want: "c/charts/sub.tgz: it is no packed chart"},
		{name: "a chart that links to itself", path: "c", contents: map[string]string{"c/Chart.yaml": "apiVersion: v2\nname: c\nversion: 1.0.0\n", "c/files/loop": "-> ../files"}, want: ErrLimit.Error()},
		{name: "a chart that links out", path: "c", contents: map[string]string{"c/Chart.yaml": "apiVersion: v2\nname: c\nversion: 1.0.0\n", "c/x": "-> ../../etc/passwd"}, want: "the symbolic link c/x: it leads out of the repository"},
		{name: "a chart that links to nowhere", path: "c", contents: map[string]string{"c/Chart.yaml": "apiVersion: v2\nname: c\nversion: 1.0.0\n", "c/x": "-> y"}, want: "c/x: the symbolic link leads nowhere"},
		{name: "aliases in a resource", path: "d", contents: app("resources: [x.yaml]", "d/x.yaml", aliasBomb(9)), want: ErrLimit.Error()},
		{name: "aliases in a kustomization", path: "d", contents: app(aliasBomb(9)), want: ErrLimit.Error()},
		{name: "aliases in a patch", path: "d", contents: app("resources: [cm.yaml]\npatches:\n- target: {kind: ConfigMap}\n  patch: |\n    " + strings.ReplaceAll(aliasBomb(9), "\n", "\n    ")), want: ErrLimit.Error()},
		{name: "an alias within its anchor", path: "d", contents: app("resources: [x.yaml]", "d/x.yaml", "a: &a {b: *a}\n"), want: ErrLimit.Error()},
		{name: "a base that includes its user", path: "d", contents: app("resources: [b]", "d/b/kustomization.yaml", "resources: [..]"), want: "cycle"},
		{name: "bases that include one another", path: "d/n", contents: map[string]string{"d/n/kustomization.yaml": "resources: [../m]", "d/m/kustomization.yaml": "resources: [../n]"}, want: "cycle"},
		{name: "bases that double", path: "d/n0", contents: doublingBases(40), want: ErrLimit.Error()},
		{name: "a resource that links out", path: "d", contents: app("resources: [x.yaml]", "d/x.yaml", "-> /etc/passwd"), want: "leads out of the repository"},
		{name: "a resource outside", path: "d", contents: app("resources: [../../etc/passwd]"), want: "leads out of the repository"},
		{name: "a generator's file outside its folder", path: "d", contents: app("configMapGenerator: [{name: x, files: [../secret.txt]}]", "secret.txt", "x"), want: "is not in or below"},
		{name: "links in a circle", path: "d", contents: app("resources: [x.yaml]", "d/x.yaml", "-> y.yaml", "d/y.yaml", "-> x.yaml"), want: "symbolic links in a row"},
		{name: "an exec plugin", path: "d", contents: app("transformers: [x.yaml]", "d/x.yaml", "apiVersion: example.com/v1\nkind: Evil\nmetadata: {name: x, annotations: {config.kubernetes.io/function: 'exec: {path: ./x.sh}'}}\n"), want: "external plugins disabled"},
		{name: "a container plugin", path: "d", contents: app("generators: [x.yaml]", "d/x.yaml", "apiVersion: example.com/v1\nkind: Evil\nmetadata: {name: x, annotations: {config.kubernetes.io/function: 'container: {image: evil}'}}\n"), want: "external plugins disabled"},
		{name: "two kustomizations", path: "d", contents: app("resources: [cm.yaml]", "d/Kustomization", "resources: [cm.yaml]"), want: "multiple kustomization files"},
		{name: "objects without number", path: "d", contents: many, want: "more than 20000 objects"},
		{name: "aliases in a manifest", path: "d", contents: map[string]string{"d/x.yaml": "apiVersion: v1\nkind: X\nmetadata: {name: x}\n" + aliasBomb(8)}, want: ErrLimit.Error()},
		{name: "Jsonnet", path: "d", contents: map[string]string{"d/x.jsonnet": "{}"}, want: "can't be rendered (d): d/x.jsonnet is Jsonnet, which is not evaluated"},
		{name: "LFS", path: "d", contents: app("resources: [x.yaml]", "d/x.yaml", "version https://git-lfs.github.com/spec/v1\noid sha256:aa\nsize 1\n"), want: "can't be rendered (d): d/x.yaml is kept in Git LFS"},
		{name: "no folder", path: "d/cm.yaml", contents: app(""), want: "the source's path is no folder"},
		{name: "a path out of the tree", path: "../x", contents: app(""), want: "leads out of the repository"},
		{name: "invalid UTF-8", path: "d", contents: app("resources: [\"\xff\xfe\"]"), want: "kustomize"},
		{name: "invalid UTF-8 in a template", path: "c", contents: chartOf("{{ \xff }}", ""), want: "parsing a template"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			_, err := Render(ctx, memoryTree(tt.contents), singleSource(tt.path, ""))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("the error is %v", err)
			}
			if len(err.Error()) > maxMessageBytes+200 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
}

// TestStopsWithContext holds that a rendering that takes long ends when it
// is told to.
func TestStopsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, contents := range []map[string]string{
		chartOf(`{{ range until 1000000 }}{{ range until 10 }}{{ end }}{{ end }}`, ""),
		{"c/kustomization.yaml": "resources: [a.yaml]", "c/a.yaml": configMap + "1\n"},
	} {
		if _, err := Render(ctx, memoryTree(contents), singleSource("c", "")); !errors.Is(err, context.Canceled) {
			t.Errorf("the error is %v", err)
		}
	}
	e := newEngine(ctx)
	var err error
	for range 1000 {
		if _, err = e.countStep(); err != nil {
			break
		}
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a chart's loop goes on: %v", err)
	}
}

// failingTree is a tree that fails after some looks.
type failingTree struct {
	fs.FS
	left int
}

var errTreeFailed = errors.New("the repository is gone")

func (f *failingTree) isBroken() bool { f.left--; return f.left < 0 }

func (f *failingTree) Open(name string) (fs.File, error) {
	if f.isBroken() {
		return nil, errTreeFailed
	}
	return f.FS.Open(name)
}

func (f *failingTree) Lstat(name string) (fs.FileInfo, error) {
	if f.isBroken() {
		return nil, errTreeFailed
	}
	return fs.Lstat(f.FS, name)
}

func (f *failingTree) ReadLink(name string) (string, error) { return fs.ReadLink(f.FS, name) }

// TestTreeFails holds that no look that fails is taken for a file
// that isn't there.
func TestTreeFails(t *testing.T) {
	silenceLogs(t)
	for name, contents := range map[string]map[string]string{
		"kustomize": readArchive(t, "testdata/kustomize.txtar"), "chart": readArchive(t, "testdata/chart.txtar"), "folder": {"f/a.yaml": configMap + "1\n", "f/b.yaml": configMap + "2\n"},
	} {
		t.Run(name, func(t *testing.T) {
			in := singleSource(map[string]string{"kustomize": "overlays/prod", "chart": "charts/web", "folder": "f"}[name], "")
			want := mustRender(t, contents, in)
			failed := 0
			for left := range 2000 {
				m, err := Render(context.Background(), &failingTree{FS: memoryTree(contents), left: left}, in)
				if err == nil {
					if m.Digest != want.Digest {
						t.Fatalf("after %d looks the objects are others", left)
					}
					break
				}
				failed++
				if !strings.Contains(err.Error(), errTreeFailed.Error()) {
					t.Fatalf("after %d looks: %v", left, err)
				}
			}
			if failed == 0 {
				t.Error("it never failed")
			}
		})
	}
}
