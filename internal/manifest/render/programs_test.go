package render

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// findProgram finds one of the programs that Argo CD itself runs. `make lab`
// builds them; where they aren't, the recorded answers have to do.
func findProgram(t testing.TB, name string) func(t testing.TB, dir string, args ...string) []byte {
	t.Helper()
	path := requireProgram(t, name)
	return func(t testing.TB, dir string, args ...string) []byte {
		t.Helper()
		cmd := exec.Command(path, args...)
		cmd.Dir = dir
		cmd.Env = []string{"PATH=/nonexistent", "HOME=" + t.TempDir()}
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s %s: %v", name, strings.Join(args, " "), err)
		}
		return out
	}
}

func TestHelmProgram(t *testing.T) {
	helm := findProgram(t, "helm")
	contents := readArchive(t, filepath.Join("testdata", "chart.txtar"))
	root := writeTree(t, contents)
	for _, tt := range []struct {
		name, options string
		args          []string
	}{
		{name: "defaults"},
		{name: "values", options: `{"helm":{"valueFiles":["../../env/prod.yaml"],"parameters":[{"name":"image.tag","value":"9"},{"name":"list","value":"{a,b}"},{"name":"s","value":"1,2","forceString":true}],"skipTests":true}}`,
			args: []string{"--values", "../../env/prod.yaml", "--set", "image.tag=9", "--set", "list={a,b}", "--set-string", `s=1\,2`, "--skip-tests"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := mustRender(t, contents, singleSource("charts/web", tt.options))
			args := append([]string{"template", ".", "--name-template", "web", "--namespace", "shop", "--include-crds", "--kube-version", DefaultKubeVersion}, tt.args...)
			want := yamlObjectLines(t, helm(t, filepath.Join(root, "charts/web"), args...))
			if d := cmp.Diff(want, objectLines(m)); d != "" {
				t.Error(d)
			}
			if len(m.Objects) == 0 {
				t.Error("no objects")
			}
		})
	}
}

// TestKustomizeProgram compares with what the repo server does: edits by the
// program, then a build by it.
func TestKustomizeProgram(t *testing.T) {
	kustomize := findProgram(t, "kustomize")
	contents := readArchive(t, filepath.Join("testdata", "kustomize.txtar"))
	for _, tt := range []struct {
		name, path, options string
		edits               [][]string
	}{
		{name: "plain", path: "overlays/prod"},
		{name: "link", path: "overlays/linked"},
		{name: "deprecated", path: "overlays/old"},
		{name: "names", path: "overlays/prod", options: `{"kustomize":{"namePrefix":"p-","nameSuffix":"-s","namespace":"other"}}`,
			edits: [][]string{{"set", "nameprefix", "--", "p-"}, {"set", "namesuffix", "--", "-s"}, {"set", "namespace", "--", "other"}}},
		{name: "images", path: "overlays/prod", options: `{"kustomize":{"images":["registry.example/web:9","sidecar=other/side@sha256:aa","*.x=y:z","log=*:2"]}}`,
			edits: [][]string{{"set", "image", "registry.example/web:9", "sidecar=other/side@sha256:aa", "*.x=y:z", "log=*:2"}}},
		{name: "replicas", path: "overlays/prod", options: `{"kustomize":{"replicas":[{"name":"web","count":"7"}]}}`,
			edits: [][]string{{"set", "replicas", "web=7"}}},
		{name: "labels", path: "overlays/prod", options: `{"kustomize":{"commonLabels":{"a":"$ARGOCD_APP_NAME","q":"\"true\""},"forceCommonLabels":true,"commonAnnotations":{"b":"1:2"}}}`,
			edits: [][]string{{"add", "label", "--force", "a:web", `q:"true"`}, {"add", "annotation", "b:1:2"}}},
		{name: "labels without selectors", path: "overlays/prod", options: `{"kustomize":{"commonLabels":{"a":"b"},"labelWithoutSelector":true}}`,
			edits: [][]string{{"add", "label", "--without-selector", "a:b"}}},
		{name: "components", path: "overlays/prod", options: `{"kustomize":{"components":["../../components/*"]}}`,
			edits: [][]string{{"add", "component", "../../components/*"}}},
		{name: "edits of deprecated fields", path: "overlays/old", options: `{"kustomize":{"images":["registry.example/web:9"]}}`,
			edits: [][]string{{"set", "image", "registry.example/web:9"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := writeTree(t, contents)
			for _, edit := range tt.edits {
				kustomize(t, filepath.Join(root, tt.path), append([]string{"edit"}, edit...)...)
			}
			want := yamlObjectLines(t, kustomize(t, root, "build", tt.path))
			m := mustRender(t, contents, singleSource(tt.path, tt.options))
			if d := cmp.Diff(want, objectLines(m)); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestUpstreamModules compares with the programs over every chart and kustomization
// that argo-cd and Helm have among their own tests.
func TestUpstreamModules(t *testing.T) {
	if !*longRun {
		t.Skip("takes a minute; -long runs it")
	}
	silenceLogs(t)
	helm, kustomize := requireProgram(t, "helm"), requireProgram(t, "kustomize")
	equal := 0
	for _, module := range []string{"github.com/argoproj/argo-cd/v2", "helm.sh/helm/v3"} {
		out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
		if err != nil {
			t.Fatal(err)
		}
		root := strings.TrimSpace(string(out))
		err = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !isKustomization(d.Name()) && d.Name() != "Chart.yaml" {
				return err
			}
			dir, err := filepath.Rel(root, filepath.Dir(p))
			if err != nil {
				return err
			}
			m, err := Render(context.Background(), os.DirFS(root), singleSource(dir, ""))
			var u *Unrenderable
			if err != nil && (errors.As(err, &u) || strings.Contains(err.Error(), "has no kind")) {
				return nil // theirs asks the network, or leaves it to Argo CD to complain
			}
			cmd := exec.Command(kustomize, "build", ".")
			if d.Name() == "Chart.yaml" {
				cmd = exec.Command(helm, "template", ".", "--name-template", "web", "--namespace", "shop", "--include-crds", "--kube-version", DefaultKubeVersion)
			}
			cmd.Dir, cmd.Env = filepath.Dir(p), []string{"PATH=/nonexistent", "HOME=" + t.TempDir()}
			theirs, theirErr := cmd.Output()
			switch {
			case err != nil && theirErr != nil:
			case err != nil:
				t.Errorf("%s/%s: %v", module, dir, err)
			case theirErr != nil:
				var exit *exec.ExitError
				if errors.As(theirErr, &exit) && strings.Contains(string(exit.Stderr), "missing in charts/ directory") {
					return nil // the repo server builds dependencies first
				}
				t.Errorf("%s/%s: theirs fails: %v", module, dir, theirErr)
			case len(m.Notes) > 0 || strings.Contains(dir, "app-parameters"):
				// Made-up values, and overrides that only the repo server applies.
			default:
				equal++
				if d := cmp.Diff(yamlObjectLines(t, theirs), objectLines(m)); d != "" {
					t.Errorf("%s/%s: %s", module, dir, d)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if equal < 100 {
		t.Errorf("only %d were compared", equal)
	}
}

func requireProgram(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed", name)
	}
	return path
}
