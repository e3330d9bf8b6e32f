package evaluate

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/proc/sandbox"
)

// set is an ApplicationSet with a list of one element, ready to be filled in.
func set(name, template, generators string) string {
	if generators == "" {
		generators = "[{list: {elements: [{a: x}]}}]"
	}
	return fmt.Sprintf(`apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: %s, namespace: argocd}
spec:
  goTemplate: true
  generators: %s
  template:
    metadata:
      name: x
      annotations:
        a: %s
    spec:
      project: default
      source: {repoURL: https://git.example/acme/fleet.git, path: apps/web/overlays/dev}
      destination: {server: https://kubernetes.default.svc, namespace: x}
`, name, generators, template)
}

func elements(n int, key string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "{%s: v%d},", key, i)
	}
	return "[" + b.String() + "]"
}

// aliases is a document of n levels, each ten times the one below.
func aliases(n int) string {
	var b strings.Builder
	b.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n")
	for i := 1; i <= n; i++ {
		one := fmt.Sprintf("*a%d", i-1)
		fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i, i, strings.Join(strings.Split(strings.Repeat(one+" ", 10), " ")[:10], ","))
	}
	return b.String()
}

// TestBombs evaluates trees that a stranger may write. Each comes to its end in time: as a problem
// of its set, with the other set's targets there, or as an evaluation that has none, by name.
func TestBombs(t *testing.T) {
	t.Parallel()
	limits := sandbox.Limits{CPU: 20 * time.Second, Time: 9 * time.Second}
	for name, files := range map[string]map[string]string{
		"a huge string":         {"argocd/b.yaml": set("b", `'{{ repeat 1000000000 "x" }}'`, "")},
		"endless ranges":        {"argocd/b.yaml": set("b", `'{{ range until 20000000 }}{{ range until 20000000 }}{{ end }}{{ end }}'`, "")},
		"ranges over a number":  {"argocd/b.yaml": set("b", `'{{ range 2000000000 }}{{ end }}'`, "")},
		"endless recursion":     {"argocd/b.yaml": set("b", `'{{ define "a" }}{{ template "a" . }}{{ end }}{{ template "a" . }}'`, "")},
		"a growing string":      {"argocd/b.yaml": set("b", `'{{ $s := "xxxxxxxxxxxxxxxx" }}{{ range until 40 }}{{ $s = print $s $s }}{{ end }}'`, "")},
		"a growing list":        {"argocd/b.yaml": set("b", `'{{ $s := list 1 2 3 4 5 6 7 8 }}{{ range until 40 }}{{ $s = concat $s $s }}{{ end }}'`, "")},
		"a wide format":         {"argocd/b.yaml": set("b", `'{{ printf "%1000000000d" 1 }}{{ printf "%*d" 1000000000 1 }}'`, "")},
		"a slow key":            {"argocd/b.yaml": set("b", `'{{ range until 10000 }}{{ genPrivateKey "rsa" }}{{ end }}'`, "")},
		"a matrix of 5,000²":    {"argocd/b.yaml": set("b", "x", "[{matrix: {generators: [{list: {elements: "+elements(5000, "a")+"}}, {list: {elements: "+elements(5000, "b")+"}}]}}]")},
		"a merge that panics":   {"argocd/b.yaml": set("b", "x", "[{merge: {mergeKeys: [name], generators: [{clusters: {values: {a: b}}}, {list: {elements: [{name: in-cluster, values: {a: c}}]}}]}}]")},
		"10 MB of YAML":         {"argocd/b.yaml": set("b", "x", "") + strings.Repeat("# nothing but words\n", 500_000)},
		"many documents":        {"argocd/b.yaml": strings.Repeat("---\n"+set("b", "x", ""), 6000)},
		"deep YAML":             {"argocd/b.yaml": strings.Repeat("[", 1_000_000)},
		"deep flow maps":        {"argocd/b.yaml": strings.Repeat("{a: ", 1_000_000)},
		"aliases in a set":      {"argocd/b.yaml": aliases(9) + set("b", "x", "")},
		"aliases below a set":   {"argocd/b.yaml": set("b", "x", "") + "  nonsense:\n    " + strings.ReplaceAll(aliases(9), "\n", "\n    ")},
		"aliases in generators": {"argocd/b.yaml": set("b", "x", "[{git: {repoURL: https://git.example/acme/fleet.git, revision: HEAD, files: [{path: bomb.yaml}]}}]"), "bomb.yaml": aliases(9)},
		"invalid UTF-8":         {"argocd/b.yaml": set("b\xff\xfe", "x", "")},
		"NUL bytes":             {"argocd/b.yaml": strings.Repeat("\x00", 1<<20)},
		"a name that climbs":    {"argocd/b.yaml": strings.Replace(set("b", "x", ""), "path: apps/web/overlays/dev", "path: ../../../etc", 1)},
		"bomb in a patch":       {"argocd/b.yaml": set("b", "x", "") + "  templatePatch: '{{ repeat 1000000000 \"x\" }}'\n"},
		"bomb in a selector":    {"argocd/b.yaml": set("b", "x", "[{list: {elements: [{a: x}]}, selector: {matchLabels: {'{{ repeat 1000000000 `x` }}': y}}}]")},
		"a kustomization bomb":  {"apps/web/base/kustomization.yaml": aliases(9)},
		"a deep kustomization":  {"apps/web/base/kustomization.yaml": "resources: " + strings.Repeat("[", 500_000)},
		"bases in a circle":     {"apps/web/base/kustomization.yaml": "resources: [../overlays/dev, ../overlays/prod, .]\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tree := shop()
			for file, text := range files {
				tree[file] = &fstest.MapFile{Data: []byte(text)}
			}
			in := shopInput(t)
			in.Clusters = []appset.Cluster{}
			w, err := InWorker(t.Context(), runner(t, limits), tree, in)
			if err != nil {
				var ended *sandbox.Error
				if !errors.As(err, &ended) || errors.Is(err, sandbox.ErrAnswer) {
					t.Errorf("got %v", err)
				}
				t.Log(err)
				return
			}
			part := w.Pipelines["shop"]
			if len(part.TargetSet.Targets) < 4 {
				t.Errorf("%d targets are left; problems %v", len(part.TargetSet.Targets), part.TargetSet.Problems)
			}
			if len(part.TargetSet.Problems)+len(part.Doubts) == 0 {
				t.Logf("it is harmless: %d targets", len(part.TargetSet.Targets))
			}
			for i, p := range part.TargetSet.Problems {
				t.Logf("problem %d of %d: %.300s", i+1, len(part.TargetSet.Problems), p)
				break
			}
			for i, d := range part.Doubts {
				t.Logf("doubt %d of %d: %s: %.300s", i+1, len(part.Doubts), d.File, d.Message)
				break
			}
		})
	}
}

// vanishing is a repository that is gone after some reads.
type vanishing struct {
	fs.FS
	after atomic.Int32
}

func (v *vanishing) Open(name string) (fs.File, error) {
	if v.after.Add(-1) < 0 {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("the repository is gone")}
	}
	return v.FS.Open(name)
}

// However far an evaluation gets, a repository that vanishes is said to.
func TestRepositoryVanishes(t *testing.T) {
	t.Parallel()
	said, whole := 0, 0
	for after := int32(0); whole == 0; after++ {
		tree := &vanishing{FS: shop()}
		tree.after.Store(after)
		w, err := InWorker(t.Context(), runner(t, sandbox.Limits{}), tree, shopInput(t))
		switch {
		case err != nil:
			if !strings.Contains(err.Error(), "the repository is gone") {
				t.Fatalf("after %d: %v", after, err)
			}
			said++
		case len(w.Pipelines["shop"].TargetSet.Problems) > 0:
			if p := fmt.Sprint(w.Pipelines["shop"].TargetSet.Problems); !strings.Contains(p, "the repository is gone") {
				t.Fatalf("after %d: %s", after, p)
			}
			said++
		case len(w.Pipelines["shop"].Doubts) > 0:
			said++
		default:
			whole++
			if len(w.Pipelines["shop"].TargetSet.Targets) != 4 {
				t.Fatalf("after %d: %d targets and not a word", after, len(w.Pipelines["shop"].TargetSet.Targets))
			}
		}
		if after > 200 {
			t.Fatal("it is never whole")
		}
	}
	if said < 5 {
		t.Errorf("only %d ends", said)
	}
}
