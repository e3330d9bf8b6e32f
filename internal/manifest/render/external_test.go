package render

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// packFiles packs a chart as `helm package` does.
func packFiles(t testing.TB, name string, files map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	archive := tar.NewWriter(zipped)
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if err := archive.WriteHeader(&tar.Header{Name: name + "/" + file, Mode: 0o644, Size: int64(len(files[file]))}); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(files[file])); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(archive.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// worldOf is other repositories and charts as an opener gives them.
type worldOf map[External]fs.FS

func (w worldOf) open(_ context.Context, e External) (Tree, error) {
	tree, is := w[e]
	if !is {
		return Tree{}, fmt.Errorf("%s isn't listed", e.RepoURL)
	}
	return Tree{FS: tree, ID: treeContentID(tree.(fstest.MapFS)), Revision: "c0ffee"}, nil
}

const webChart = "apiVersion: v2\nname: web\nversion: 1.2.0\n"

// webTemplate shows what a chart was given.
const webTemplate = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Release.Name }}'}\ndata: {tag: '{{ .Values.tag }}', size: '{{ .Values.size }}', chart: '{{ .Chart.Version }}', ref: '{{ .Values.ref }}'}\n"

// TestExternals renders what is made of other repositories and of charts.
func TestExternals(t *testing.T) {
	chart := map[string]string{"Chart.yaml": webChart, "values.yaml": "tag: none\nsize: small\n", "prod.yaml": "size: large\n", "templates/c.yaml": webTemplate}
	inFolder := map[string]string{}
	for name, text := range chart {
		inFolder["charts/web/"+name] = text
	}
	packed := fstest.MapFS{PackedChart: {Data: packFiles(t, "web", chart)}}
	umbrella := memoryTree(map[string]string{"envs/qa/values.yaml": "tag: of-here\n", "own/Chart.yaml": "apiVersion: v2\nname: own\nversion: 0.1.0\ndependencies: [{name: web, version: ^1.0.0, repository: 'https://charts.example/stable'}]\n",
		"own/Chart.lock":             "dependencies: [{name: web, version: 1.2.0, repository: 'https://charts.example/stable'}]\ndigest: x\ngenerated: '2020-01-01T00:00:00Z'\n",
		"own/values.yaml":            "web: {tag: of-umbrella}\n",
		"base/kustomization":         "",
		"overlay/kustomization.yaml": "resources:\n- https://git.example/acme/bases//web?ref=v1\n- https://git.example/acme/bases.git/second?ref=v1&timeout=90s\nnamePrefix: qa-\n",
		"nested/kustomization.yaml":  "resources: ['https://git.example/acme/outer//on?ref=v2']\n",
		"raw/kustomization.yaml":     "resources: ['https://raw.example/acme/bases/main/x.yaml']\n",
		"here/Chart.yaml":            webChart, "here/templates/c.yaml": webTemplate})
	bases := memoryTree(map[string]string{"web/kustomization.yaml": "resources: [m.yaml, ../shared]\n", "web/m.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n",
		"shared/kustomization.yaml": "resources: [s.yaml]\n", "shared/s.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shared}\n",
		"second/kustomization.yaml": "resources: [s.yaml]\n", "second/s.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: second}\n"})
	world := worldOf{
		{RepoURL: "https://git.example/acme/charts", Revision: "v1"}: memoryTree(inFolder),
		{RepoURL: "https://git.example/acme/values", Revision: "main"}: memoryTree(map[string]string{"qa.yaml": "tag: of-elsewhere\n",
			"web/kustomization.yaml": "resources: [m.yaml]\n", "web/m.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain}\n"}),
		{RepoURL: "https://charts.example/stable", Chart: "web", Revision: "1.2.0"}: packed,
		{RepoURL: "registry.example/charts", Chart: "web", Revision: "1.2.0"}:       packed,
		{RepoURL: "https://git.example/acme/bases", Revision: "v1"}:                 bases,
		{RepoURL: "https://git.example/acme/bases.git", Revision: "v1"}:             bases,
		{RepoURL: "https://git.example/acme/outer", Revision: "v2"}:                 memoryTree(map[string]string{"on/kustomization.yaml": "resources: ['https://git.example/acme/bases//second?ref=v1']\n"}),
	}
	const valuesHere = `{"helm": {"valueFiles": ["$own/envs/qa/values.yaml"]}}`
	tests := []struct {
		name    string
		sources []Source
		want    []string // in the objects' JSON
		fails   string
	}{
		{"chart elsewhere, values here", []Source{{RepoURL: "https://git.example/acme/charts", TargetRevision: "v1", Path: "charts/web", Options: []byte(valuesHere)}, {InTree: true, Ref: "own"}}, []string{`"tag":"of-here"`, `"size":"small"`}, ""},
		{"chart here, values elsewhere", []Source{{InTree: true, Path: "here", Options: []byte(`{"helm": {"valueFiles": ["$far/qa.yaml"]}}`)}, {RepoURL: "https://git.example/acme/values", TargetRevision: "main", Ref: "far"}}, []string{`"tag":"of-elsewhere"`}, ""},
		{"values of a source that gives manifests", []Source{{InTree: true, Path: "here", Options: []byte(`{"helm": {"valueFiles": ["$far/qa.yaml"]}}`)}, {RepoURL: "https://git.example/acme/values", TargetRevision: "main", Ref: "far", Path: "web"}}, []string{`"tag":"of-elsewhere"`, `"name":"plain"`}, ""},
		{"chart of a Helm repository, values here and its own", []Source{{RepoURL: "https://charts.example/stable", Chart: "web", TargetRevision: "1.2.0", Options: []byte(`{"helm": {"valueFiles": ["prod.yaml", "$own/envs/qa/values.yaml"]}}`)}, {InTree: true, Ref: "own"}}, []string{`"tag":"of-here"`, `"size":"large"`, `"chart":"1.2.0"`}, ""},
		{"chart of a registry", []Source{{RepoURL: "registry.example/charts", Chart: "web", TargetRevision: "1.2.0"}}, []string{`"tag":"none"`}, ""},
		{"dependency of a chart here, at the lock's version", []Source{{InTree: true, Path: "own"}}, []string{`"tag":"of-umbrella"`, `"chart":"1.2.0"`}, ""},
		{"remote bases", []Source{{InTree: true, Path: "overlay"}}, []string{`"name":"qa-web"`, `"name":"qa-shared"`, `"name":"qa-second"`}, ""},
		{"remote base of a remote base", []Source{{InTree: true, Path: "nested"}}, []string{`"name":"second"`}, ""},
		{"overlay elsewhere", []Source{{RepoURL: "https://git.example/acme/bases", TargetRevision: "v1", Path: "web", Options: []byte(`{"kustomize": {"nameSuffix": "-1"}}`)}}, []string{`"name":"web-1"`, `"name":"shared-1"`}, ""},
		{"its commit in parameters", []Source{{RepoURL: "https://git.example/acme/charts", TargetRevision: "v1", Path: "charts/web", Options: []byte(`{"helm": {"parameters": [{"name": "ref", "value": "$ARGOCD_APP_REVISION"}]}}`)}}, []string{`"ref":"c0ffee"`}, ""},
		{"not listed", []Source{{RepoURL: "https://git.example/acme/vault", TargetRevision: "v1", Path: "x"}}, nil, "the source is in another repository or revision: https://git.example/acme/vault isn't listed"},
		{"another version", []Source{{RepoURL: "https://charts.example/stable", Chart: "web", TargetRevision: "9.0.0"}}, nil, "the chart web comes from a Helm repository: https://charts.example/stable isn't listed"},
		{"a file of the web", []Source{{InTree: true, Path: "raw"}}, nil, "refers to what is outside the repository: https://raw.example"},
		{"out of the other repository", []Source{{RepoURL: "https://git.example/acme/charts", TargetRevision: "v1", Path: "../x"}}, nil, "leads out of the repository"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			memo := NewMemo(MemoOptions{Bytes: 1 << 20, External: world.open})
			m, err := memo.Render(t.Context(), umbrella, treeContentID(umbrella.(fstest.MapFS)), Input{Application: "a", Namespace: "n", Revision: "f00", Sources: tt.sources})
			if tt.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tt.fails) {
					t.Fatalf("got %v; want %q", err, tt.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			all := ""
			for _, o := range m.Objects {
				all += string(o.JSON) + "\n"
			}
			for _, want := range tt.want {
				if !strings.Contains(all, want) {
					t.Errorf("no %s in\n%s", want, all)
				}
			}
		})
	}
}

// TestExternalsRenderedAgain holds that a rendering is kept until what it was made of is another.
func TestExternalsRenderedAgain(t *testing.T) {
	here := memoryTree(map[string]string{"overlay/kustomization.yaml": "resources: ['https://git.example/acme/bases//web?ref=main']\n"})
	at := External{RepoURL: "https://git.example/acme/bases", Revision: "main"}
	base := func(name string) fs.FS {
		return memoryTree(map[string]string{"web/kustomization.yaml": "resources: [m.yaml]\n", "web/m.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\n", "other.txt": name})
	}
	world := worldOf{at: base("first")}
	counting := &countingRenderer{}
	memo := NewMemo(MemoOptions{Bytes: 1 << 20, External: world.open, Renderer: counting})
	name := func() string {
		t.Helper()
		m, err := memo.Render(t.Context(), here, treeContentID(here.(fstest.MapFS)), Input{Application: "a", Sources: []Source{{InTree: true, Path: "overlay"}}})
		if err != nil {
			t.Fatal(err)
		}
		return m.Objects[0].Name
	}
	for _, step := range []struct {
		at, want string
		rendered int
	}{{"first", "first", 2}, {"first", "first", 2}, {"second", "second", 4}, {"second", "second", 4}} {
		world[at] = base(step.at)
		if got := name(); got != step.want || counting.jobs > step.rendered {
			t.Errorf("with the base at %s: %s, after %d renderings; want %s, after at most %d", step.at, got, counting.jobs, step.want, step.rendered)
		}
	}
}

// countingRenderer counts what is rendered.
type countingRenderer struct{ jobs int }

func (c *countingRenderer) RenderAll(ctx context.Context, jobs []Job) ([]Outcome, error) {
	c.jobs += len(jobs)
	return InProcess{}.RenderAll(ctx, jobs)
}

// TestParseRemoteBase takes references apart as kustomize does.
func TestParseRemoteBase(t *testing.T) {
	for ref, want := range map[string]string{
		"https://git.example/acme/bases//web?ref=v1":                        "https://git.example/acme/bases web v1",
		"https://git.example/acme/bases//web/on/?ref=v1":                    "https://git.example/acme/bases web/on v1",
		"https://git.example/acme/bases?version=v1":                         "https://git.example/acme/bases . v1",
		"https://git.example/acme/bases/web?ref=v1":                         "https://git.example/acme/bases web v1",
		"https://git.example/group/sub/bases.git/web?ref=v1":                "https://git.example/group/sub/bases.git web v1",
		"git::https://git.example/acme/bases.git?ref=v1":                    "https://git.example/acme/bases.git . v1",
		"git@git.example:acme/bases.git//web?ref=v1":                        "git@git.example:acme/bases.git web v1",
		"git@git.example:acme/bases/web?ref=v1":                             "git@git.example:acme/bases web v1",
		"ssh://git@git.example/acme/bases//web?ref=v1":                      "ssh://git@git.example/acme/bases web v1",
		"github.com/acme/bases/web?ref=v1":                                  "https://github.com/acme/bases web v1",
		"https://dev.example/org/project/_git/bases/web?ref=v1&timeout=90s": "https://dev.example/org/project/_git/bases web v1",
		"https://git.example/acme/bases//../x?ref=v1":                       "",
		"https://raw.example/acme/bases/main/x.yaml":                        "",
		"https://git.example/acme":                                          "",
		"file:///etc//x?ref=v1":                                             "",
	} {
		b, ok := parseRemoteBase(ref)
		got := fmt.Sprintf("%s %s %s", b.RepoURL, b.path, b.Revision)
		if ok != (want != "") || ok && got != want {
			t.Errorf("%s: %q, %v; want %q", ref, got, ok, want)
		}
	}
}
