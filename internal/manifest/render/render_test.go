package render

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/manifest/deps"
)

func objectNames(m *Manifests) string {
	var out []string
	for _, o := range m.Objects {
		out = append(out, o.Kind+" "+o.Name)
	}
	return strings.Join(out, ", ")
}

func configMapNamed(name string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\n"
}

func TestDirectory(t *testing.T) {
	contents := map[string]string{
		"d/a.yaml": configMapNamed("a") + "---\n" + configMapNamed("a2"), "d/b.yml": configMapNamed("b"), "d/c.json": `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}}`,
		"d/list.yaml":    "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: l1}}\n- {apiVersion: v1, kind: Secret, metadata: {name: l2}}\n",
		"d/nothing.yaml": "apiVersion: v1\nkind: List\nitems:\n", "d/values.yaml": "image: x\n", "d/empty.yaml": "# nothing\n", "d/README.md": "x", "d/broken-but-no-manifest.yaml": "{{ x }}",
		"d/sub/e.yaml": configMapNamed("e"), "d/linked.yaml": "-> ../shared/f.yaml", "shared/f.yaml": configMapNamed("f"), "d/link-to-folder.yaml": "-> ../shared", "d/dead.yaml": "-> nowhere",
		"d/bom.yaml": "\xef\xbb\xbf" + configMapNamed("bom"), "d/utf16.yaml": "\xff\xfek\x00i\x00n\x00d\x00:\x00 \x00X\x00",
		"bad/x.yaml": "apiVersion: v1\nkind: [\nmetadata: x", "two/x.json": `{"kind":"A"} {"kind":"B"}`,
	}
	const all = "ConfigMap a, ConfigMap a2, ConfigMap b, ConfigMap bom, ConfigMap c, ConfigMap f, ConfigMap l1, Secret l2, X "
	for _, tt := range []struct{ name, path, options, want, wantErr string }{
		{name: "plain", path: "d", want: all},
		{name: "recurse", path: "d", options: `{"directory":{"recurse":true}}`, want: strings.Replace(all, "ConfigMap f", "ConfigMap e, ConfigMap f", 1)},
		{name: "include", path: "d", options: `{"directory":{"recurse":true,"include":"*e.yaml"}}`, want: "ConfigMap e"},
		{name: "include alternatives", path: "d", options: `{"directory":{"include":"{a,b}.y*"}}`, want: "ConfigMap a, ConfigMap a2, ConfigMap b"},
		{name: "exclude", path: "d", options: `{"directory":{"exclude":"*.y*ml"}}`, want: "ConfigMap c"},
		{name: "no glob", path: "d", options: `{"directory":{"include":"["}}`, wantErr: "directory.include"},
		{name: "broken", path: "bad", wantErr: "bad/x.yaml: a manifest is not valid YAML"},
		{name: "two JSON objects", path: "two", wantErr: "two/x.json: it has more than one JSON object"},
		{name: "two kinds of options", path: "d", options: `{"directory":{},"helm":{}}`, wantErr: "more than one kind"},
		{name: "plugin", path: "d", options: `{"plugin":{"name":"x"}}`, wantErr: "can't be rendered (d): plugin x"},
		{name: "some plugin", path: "d", options: `{"plugin":{}}`, wantErr: "can't be rendered (d): a config management plugin"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, err := Render(context.Background(), memoryTree(contents), singleSource(tt.path, tt.options))
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
					t.Errorf("the error is %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := objectNames(m); got != tt.want {
				t.Error(cmp.Diff(tt.want, got))
			}
			s := deps.Source{Path: "d", Recurse: strings.Contains(tt.options, "recurse")}
			checkReadsKnown(t, contents, m, s)
		})
	}
}

func TestSources(t *testing.T) {
	contents := map[string]string{
		"a/x.yaml": configMapNamed("x") + "data: {from: a}\n", "b/x.yaml": configMapNamed("x") + "data: {from: b}\n", "b/y.yaml": configMapNamed("y"),
		"both/Chart.yaml": "apiVersion: v2\nname: c\nversion: 1.0.0\n", "both/kustomization.yaml": "resources: [z.yaml]\n", "both/z.yaml": configMapNamed("z"),
		"img/kustomization.yaml": "resources: [d.yaml]\nimages: [{name: web, newTag: '1'}]\n", "img/d.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{image: web}, {image: side}]}\n",
		"img/.argocd-source.yaml": "kustomize: {images: ['web:2', 'side:2']}\n", "img/.argocd-source-web.yaml": "kustomize: {images: ['web:3']}\npath: /etc\n",
		"img2/.argocd-source-web.yaml": "- x\n", "img2/x.yaml": configMapNamed("x"),
	}
	here := func(path string) Source { return Source{Path: path, InTree: true} }
	for _, tt := range []struct {
		name    string
		sources []Source
		want    string
		wantErr string
	}{
		{name: "none", want: ""},
		{name: "one that is only there for its name", sources: []Source{{Ref: "values", InTree: true}}, want: ""},
		{name: "the last one counts", sources: []Source{here("a"), here("b")}, want: `"from":"b"`},
		{name: "in this order", sources: []Source{here("b"), here("a")}, want: `"from":"a"`},
		{name: "kustomize before Helm", sources: []Source{here("both")}, want: `"name":"z"`},
		{name: "parameter overrides", sources: []Source{here("img")}, want: `[{"image":"web:3"},{"image":"side"}]`},
		{name: "overrides that are none", sources: []Source{here("img2")}, wantErr: "img2/.argocd-source-web.yaml: it is no mapping"},
		{name: "elsewhere", sources: []Source{here("a"), {RepoURL: "https://git.example/other", Path: "x"}}, wantErr: "can't be rendered (x): the source is in another repository or revision: https://git.example/other"},
		{name: "a chart", sources: []Source{{RepoURL: "https://charts.example", Chart: "redis"}}, wantErr: "can't be rendered (redis): the chart redis comes from a Helm repository: https://charts.example"},
		{name: "options that are none", sources: []Source{{Path: "a", InTree: true, Options: []byte(`[]`)}}, wantErr: "the source's options"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, err := Render(context.Background(), memoryTree(contents), Input{Application: "web", Sources: tt.sources})
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
					t.Errorf("the error is %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := objectLines(m); !strings.Contains(got, tt.want) || tt.want == "" && got != "" {
				t.Errorf("%s has no %s", got, tt.want)
			}
		})
	}
}

func TestKustomizeOptionErrors(t *testing.T) {
	contents := map[string]string{"d/kustomization.yaml": "resources: [x.yaml]\ncommonLabels: {a: b}\n", "d/x.yaml": configMapNamed("x"), "p/x.yaml": configMapNamed("x")}
	silenceLogs(t)
	for _, tt := range []struct{ name, path, options, want string }{
		{name: "a label that is there", path: "d", options: `{"commonLabels":{"a":"c"}}`, want: "the label a is already in the kustomization"},
		{name: "an image without a tag", path: "d", options: `{"images":["web"]}`, want: `the image "web" has no new name, tag or digest`},
		{name: "replicas", path: "d", options: `{"replicas":[{"name":"x","count":"1.5"}]}`, want: `"1.5" is no number`},
		{name: "a component that isn't there", path: "d", options: `{"components":["../gone"]}`, want: "the component ../gone is not there"},
		{name: "a component elsewhere", path: "d", options: `{"components":["https://git.example/c"]}`, want: "a component is outside the repository: https://git.example/c"},
		{name: "no kustomization", path: "p", options: `{"namePrefix":"x"}`, want: "there is no kustomization"},
		{name: "a patch elsewhere", path: "d", options: `{"patches":[{"path":"https://git.example/p"}]}`, want: "refers to what is outside the repository: https://git.example/p"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Render(context.Background(), memoryTree(contents), singleSource(tt.path, `{"kustomize":`+tt.options+"}"))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("the error is %v", err)
			}
		})
	}
	m := mustRender(t, contents, singleSource("d", `{"kustomize":{"patches":[{"patch":"[{\"op\":\"add\",\"path\":\"/data\",\"value\":{\"k\":\"v\"}}]","target":{"kind":"ConfigMap"},"options":{"allowNameChange":true}}]}}`))
	if got := objectLines(m); !strings.Contains(got, `"data":{"k":"v"}`) {
		t.Errorf("without the patch: %s", got)
	}
}

// mapContentID are the identities of a map's files and folders.
func mapContentID(contents map[string]string) ContentID {
	tree := memoryTree(contents)
	return func(p string) (string, error) {
		h := sha256.New()
		err := fs.WalkDir(tree, p, func(name string, d fs.DirEntry, err error) error {
			fmt.Fprintf(h, "%s %q\n", name, contents[name])
			return err
		})
		if errors.Is(err, fs.ErrNotExist) {
			return "", nil
		}
		return string(h.Sum(nil)), err
	}
}

func TestMemo(t *testing.T) {
	silenceLogs(t)
	contents := readArchive(t, "testdata/kustomize.txtar")
	in := singleSource("overlays/prod", "")
	m := NewMemo(MemoOptions{Bytes: 1 << 20})
	renderChanged := func(change map[string]string, in Input) *Manifests {
		t.Helper()
		now := map[string]string{}
		for k, v := range contents {
			now[k] = v
		}
		for k, v := range change {
			now[k] = v
		}
		out, err := m.Render(context.Background(), memoryTree(now), mapContentID(now), in)
		if err != nil {
			t.Fatal(err)
		}
		if want := mustRender(t, now, in); want.Digest != out.Digest {
			t.Fatalf("the kept rendering is another one:\n%s", Diff(want, out).Text(TextLimit{}))
		}
		return out
	}
	first := renderChanged(nil, in)
	other := in
	other.Revision = "abc"
	moved := in
	moved.Namespace = "other"
	for _, tt := range []struct {
		name   string
		change map[string]string
		in     Input
		kept   bool
	}{
		{name: "the same", in: in, kept: true},
		{name: "another commit", in: other, kept: true},
		{name: "a file that isn't read", change: map[string]string{"overlays/old/patch.yaml": "x"}, in: in, kept: true},
		{name: "a file that is read", change: map[string]string{"overlays/prod/pw.env": "password=other\n"}, in: in},
		{name: "a file of the base", change: map[string]string{"base/app.conf": "other\n"}, in: in},
		{name: "a parameter override comes in", change: map[string]string{"overlays/prod/.argocd-source-web.yaml": "kustomize: {namePrefix: x}\n"}, in: in},
		{name: "another input", in: moved},
		{name: "and the first again", in: in, kept: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := renderChanged(tt.change, tt.in); (got == first) != tt.kept {
				t.Errorf("kept: %v", got == first)
			}
		})
	}
	t.Run("a rendering that names the commit", func(t *testing.T) {
		in := singleSource("overlays/prod", `{"kustomize":{"commonAnnotations":{"c":"$ARGOCD_APP_REVISION_SHORT"},"commonAnnotationsEnvsubst":true}}`)
		in.Revision = "0123456789"
		a := renderChanged(nil, in)
		in.Revision = "9876543210"
		if b := renderChanged(nil, in); a == b || !strings.Contains(objectLines(b), `"c":"9876543"`) {
			t.Error("it was kept for another commit")
		}
	})
	t.Run("bounded", func(t *testing.T) {
		m = NewMemo(MemoOptions{Bytes: 2 * first.estimateSize()})
		for i := range 50 {
			in.Namespace = fmt.Sprint(i)
			renderChanged(nil, in)
		}
		if s := m.renderings.Stats(); s.Entries == 0 || s.Entries > 3 || s.Bytes > int64(2*first.estimateSize()) || s.Evictions < 47 {
			t.Errorf("%+v are kept", s)
		}
	})
}

func TestConcurrently(t *testing.T) {
	silenceLogs(t)
	contents := readArchive(t, "testdata/kustomize.txtar")
	for k, v := range readArchive(t, "testdata/chart.txtar") {
		contents[k] = v
	}
	contents["schema/kustomization.yaml"], contents["schema/x.yaml"], contents["schema/s.json"] = "resources: [x.yaml]\nopenapi: {path: s.json}\n", configMapNamed("x"), `{"definitions":{}}`
	tree := memoryTree(contents)
	want := map[string]string{}
	for _, path := range []string{"overlays/prod", "charts/web", "schema"} {
		want[path] = mustRender(t, contents, singleSource(path, "")).Digest
	}
	var wg sync.WaitGroup
	for range 4 {
		for path := range want {
			wg.Go(func() {
				if m, err := Render(context.Background(), tree, singleSource(path, "")); err != nil || m.Digest != want[path] {
					t.Errorf("%s: %v", path, err)
				}
			})
		}
	}
	wg.Wait()
}

// TestBuildsShareAParsedSchema holds that no build reads kustomize's schema while another one has
// it parsed. The race detector sees that once in a hundred runs, and the process dies of it. A
// build that runs alone leaves the schema unparsed, and builds that run side by side find it
// parsed.
func TestBuildsShareAParsedSchema(t *testing.T) {
	silenceLogs(t)
	openAPILock.Lock()
	resetSchema()
	openAPILock.Unlock()
	tree := &hookedTree{memoryTree(map[string]string{
		"first/kustomization.yaml": "resources: [x.yaml]\n", "first/x.yaml": configMapNamed("first"),
		"second/kustomization.yaml": "resources: [x.yaml]\n", "second/x.yaml": configMapNamed("second"),
	}), map[string]func(){}}
	build := func(path string) {
		if _, err := Render(context.Background(), tree, singleSource(path, "")); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	seen := map[string]bool{}
	for _, path := range []string{"first", "second"} {
		tree.opened[path+"/x.yaml"] = func() { seen[path] = schemaParsed }
		build(path)
	}
	if seen["first"] || seen["second"] {
		t.Errorf("the schema was parsed for builds that run alone: %v", seen)
	}

	reached, goOn := make(chan struct{}), make(chan struct{})
	tree.opened["first/x.yaml"] = sync.OnceFunc(func() { close(reached); <-goOn })
	var wg sync.WaitGroup
	wg.Go(func() { build("first") })
	<-reached
	wg.Go(func() { build("second") })
	for deadline := time.Now().Add(time.Minute); sharedBuilds.Load() < 2; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("the second build never came")
		}
	}
	close(goOn)
	wg.Wait()
	if !seen["second"] {
		t.Error("a build ran beside another one although the schema wasn't parsed")
	}
}

// hookedTree calls a function when a file is opened.
type hookedTree struct {
	fs.FS
	opened map[string]func() // by path
}

func (h *hookedTree) Open(name string) (fs.File, error) {
	if f := h.opened[name]; f != nil {
		f()
	}
	return h.FS.Open(name)
}

// offlineTransport makes every request of the process fail the test.
type offlineTransport struct{ t testing.TB }

func (o offlineTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	o.t.Errorf("asked the network for %s", r.URL)
	return nil, errors.New("offline")
}

func disableNetwork(t testing.TB) {
	old := http.DefaultTransport
	http.DefaultTransport = offlineTransport{t}
	t.Cleanup(func() { http.DefaultTransport = old })
	t.Setenv("PATH", "/nonexistent") // no git either
}

// FuzzKustomization holds that no kustomization reaches the network, gives
// objects of another tree, or fails otherwise than by an error.
func FuzzKustomization(f *testing.F) {
	silenceLogs(f)
	disableNetwork(f)
	f.Add("resources: [x.yaml, ../base]\npatches: [{path: x.yaml}]", "kind: ConfigMap")
	f.Add("generators: [x.yaml]\ntransformers: ['kind: X']", "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: a}\nfiles: [x.yaml]")
	f.Add("resources: ['http://127.0.0.1:1/x']", "")
	f.Add("openapi: {path: x.yaml}", "{}")
	f.Fuzz(func(t *testing.T, kustomization, file string) {
		contents := map[string]string{"d/kustomization.yaml": kustomization, "d/x.yaml": file, "base/kustomization.yaml": "resources: [../d/y]", "base/x.yaml": file}
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		a, err := Render(ctx, memoryTree(contents), singleSource("d", ""))
		if errors.Is(err, context.DeadlineExceeded) {
			t.Fatal("it takes too long")
		}
		if err != nil {
			return
		}
		if b, err := Render(ctx, memoryTree(contents), singleSource("d", "")); err != nil || a.Digest != b.Digest {
			t.Fatalf("another rendering is another one: %v", err)
		}
	})
}

// FuzzChart is the same for charts.
func FuzzChart(f *testing.F) {
	silenceLogs(f)
	disableNetwork(f)
	for _, s := range templateSnippets {
		f.Add(s, "a: 1\nmap: {x: {y: 1}}\ntpl: '{{ . }}'", "{}")
	}
	f.Add(`{{ define "a" }}{{ template "a" }}{{ end }}{{ include "a" . }}`, "", `{"$ref":"#"}`)
	f.Fuzz(func(t *testing.T, template, values, schema string) {
		contents := chartOf(template, values)
		contents["c/values.schema.json"] = schema
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		a, err := Render(ctx, memoryTree(contents), singleSource("c", ""))
		if errors.Is(err, context.DeadlineExceeded) {
			t.Fatal("it takes too long")
		}
		if err != nil {
			return
		}
		if b, err := Render(ctx, memoryTree(contents), singleSource("c", "")); err != nil || a.Digest != b.Digest {
			t.Fatalf("another rendering is another one: %v", err)
		}
	})
}
