package deps_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/manifest/deps"
)

const (
	// components of a large repository, each of 20 files.
	components = 5_000
	// perChart: every how many components one is a chart of its own; the
	// others are kustomize overlays on a base.
	perChart = 5
)

var environments = []string{"dev", "qa", "stage", "prod"}

// benchmarkRepository is a bare repository of 100,000 files on disk, what reads it, and a
// second commit on top that changes 50 of them.
type benchmarkRepository struct {
	mirror  *git.Mirror
	bare    string
	first   string
	second  string
	readers []deps.Reader
}

// newBenchmarkRepository makes it, by fast-import, which takes seconds.
func newBenchmarkRepository(b *testing.B) *benchmarkRepository {
	b.Helper()
	l := &benchmarkRepository{bare: filepath.Join(b.TempDir(), "origin.git")}
	runProgram(b, nil, "git", "init", "--quiet", "--bare", "--initial-branch=main", l.bare)
	var s bytes.Buffer
	files := 0
	put := func(name, text string) {
		files++
		fmt.Fprintf(&s, "M 100644 inline %s\ndata %d\n%s\n", name, len(text), text)
	}
	fmt.Fprint(&s, "commit refs/heads/main\nmark :1\ncommitter a <a@example.com> 1700000000 +0000\ndata 3\nOne\n")
	for i := range components {
		dir := fmt.Sprintf("apps/team%02d/component%04d", i%50, i)
		for n := range 4 {
			put(fmt.Sprintf("%s/docs/%d.md", dir, n), fmt.Sprintf("# Notes %d of %d\n", n, i))
		}
		if i%perChart == 0 {
			l.chart(put, dir, i)
		} else {
			l.overlays(put, dir, i)
		}
	}
	if files != 100_000 {
		b.Fatalf("the repository has %d files", files)
	}
	fmt.Fprint(&s, "commit refs/heads/main\ncommitter a <a@example.com> 1700000001 +0000\ndata 3\nTwo\nfrom :1\n")
	for i := range 50 {
		put(fmt.Sprintf("apps/team%02d/component%04d/overlays/dev/kustomization.yaml", (i*97+1)%50, i*97+1-(i*97+1)%perChart+1), fmt.Sprintf("resources: [../../base]\nnamePrefix: p%d-\n", i))
	}
	runProgram(b, s.Bytes(), "git", "-C", l.bare, "fast-import", "--quiet")
	l.second = runProgram(b, nil, "git", "-C", l.bare, "rev-parse", "main")
	l.first = runProgram(b, nil, "git", "-C", l.bare, "rev-parse", "main^")
	m, err := git.Open(b.Context(), git.Options{Dir: filepath.Join(b.TempDir(), "mirror"), URL: "file://" + l.bare, Author: git.Ident{Name: "a", Email: "a@example.com"}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = m.Close() })
	if _, err := m.Fetch(b.Context()); err != nil {
		b.Fatal(err)
	}
	l.mirror = m
	return l
}

func (b *benchmarkRepository) overlays(put func(name, text string), dir string, i int) {
	put(dir+"/base/kustomization.yaml", "resources:\n- deployment.yaml\n- service.yaml\n")
	put(dir+"/base/deployment.yaml", fmt.Sprintf("apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: c%d\n", i))
	put(dir+"/base/service.yaml", fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata:\n  name: c%d\n", i))
	put(dir+"/README.md", fmt.Sprintf("Component %d\n", i))
	for _, env := range environments {
		put(dir+"/overlays/"+env+"/kustomization.yaml", fmt.Sprintf(`apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: %s
resources:
- ../../base
patches:
- path: patch.yaml
configMapGenerator:
- name: settings
  envs: [settings.env]
images:
- name: registry.example/c%d
  newTag: "1.%d.0"
`, env, i, i))
		put(dir+"/overlays/"+env+"/patch.yaml", fmt.Sprintf("kind: Deployment\nmetadata: {name: c%d}\nspec: {replicas: %d}\n", i, len(env)))
		put(dir+"/overlays/"+env+"/settings.env", fmt.Sprintf("ENVIRONMENT=%s\nNUMBER=%d\n", env, i))
		b.readers = append(b.readers, deps.Reader{
			ID: fmt.Sprintf("%s-c%d", env, i), Sources: []deps.Source{{Path: dir + "/overlays/" + env}},
			Extra: []string{dir + "/overlays/" + env + "/config.json"},
		})
	}
}

func (b *benchmarkRepository) chart(put func(name, text string), dir string, i int) {
	put(dir+"/Chart.yaml", fmt.Sprintf("apiVersion: v2\nname: c%d\nversion: 1.0.0\n", i))
	put(dir+"/values.yaml", fmt.Sprintf("replicas: 1\nimage: {repository: registry.example/c%d, tag: 1.0.0}\n", i))
	put(dir+"/README.md", fmt.Sprintf("Component %d\n", i))
	for n := range 8 {
		put(fmt.Sprintf("%s/templates/t%d.yaml", dir, n), fmt.Sprintf("kind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}-%d-%d\ndata:\n  image: {{ tpl .Values.image.tag . }}\n", i, n))
	}
	put(dir+"/templates/_helpers.tpl", "{{- define \"labels\" -}}\napp: {{ .Chart.Name }}\n{{- end }}\n")
	for _, env := range environments {
		put(dir+"/values-"+env+".yaml", fmt.Sprintf("replicas: %d\nimage: {tag: 1.%d.0}\n", len(env), i))
		b.readers = append(b.readers, deps.Reader{
			ID: fmt.Sprintf("%s-c%d", env, i), Sources: []deps.Source{{Path: dir, ValueFiles: []string{dir + "/values-" + env + ".yaml"}}},
		})
	}
}

func runProgram(b *testing.B, stdin []byte, program string, args ...string) string {
	b.Helper()
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null")
	cmd.Stdin = bytes.NewReader(stdin)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		b.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, stderr.String())
	}
	return strings.TrimSuffix(string(out), "\n")
}

// countingTree notes which contents are read.
type countingTree struct {
	*git.Tree
	ids []string
}

func (c *countingTree) ReadBlobs(ctx context.Context, ids []string, limit int64, do func(int, []byte, error) error) error {
	c.ids = append(c.ids, ids...)
	return c.Tree.ReadBlobs(ctx, ids, limit, do)
}

func (c *countingTree) ReadFile(name string) ([]byte, error) {
	return nil, fmt.Errorf("%s is read by itself: %w", name, fs.ErrInvalid)
}

// BenchmarkIndex is the index of a repository of 100,000 files, beside git's
// listing of it and reading of the files that had to be parsed.
func BenchmarkIndex(b *testing.B) {
	l := newBenchmarkRepository(b)
	seen := &countingTree{Tree: l.mirror.Tree(l.first)}
	x, err := deps.Build(b.Context(), seen, l.readers)
	if err != nil || len(x.Problems()) > 0 {
		b.Fatal(err, x.Problems()[:1])
	}
	ids := []byte(strings.Join(seen.ids, "\n") + "\n")
	b.Run("git", func(b *testing.B) {
		for b.Loop() {
			runProgram(b, nil, "git", "-C", l.bare, "ls-tree", "-r", l.first)
			runProgram(b, ids, "git", "-C", l.bare, "cat-file", "--batch")
		}
		b.ReportMetric(float64(len(seen.ids)), "files-read")
	})
	b.Run("liftlock", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := deps.Build(b.Context(), l.mirror.Tree(l.first), l.readers); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(len(l.readers)), "readers")
	})
}

// BenchmarkAffectedReaders is a push of 50 changed files mapped to their readers,
// beside git diff-tree.
func BenchmarkAffectedReaders(b *testing.B) {
	l := newBenchmarkRepository(b)
	x, err := deps.Build(b.Context(), l.mirror.Tree(l.first), l.readers)
	if err != nil {
		b.Fatal(err)
	}
	changes, err := l.mirror.Changed(b.Context(), l.first, l.second)
	if err != nil || len(changes) != 50 {
		b.Fatal(len(changes), err)
	}
	var changed []string
	for _, c := range changes {
		changed = append(changed, c.Path)
	}
	var want []string
	for _, c := range changed {
		want = append(want, x.Readers(c)...)
	}
	slices.Sort(want)
	b.Run("git", func(b *testing.B) {
		for b.Loop() {
			runProgram(b, nil, "git", "-C", l.bare, "diff-tree", "-r", l.first, l.second)
		}
	})
	b.Run("liftlock", func(b *testing.B) {
		for b.Loop() {
			if got := x.AffectedReaders(changed); len(got) != len(slices.Compact(want)) {
				b.Fatalf("%d readers are touched", len(got))
			}
		}
	})
}

// BenchmarkUpdate brings the index up to date with a push of 50 changed files.
func BenchmarkUpdate(b *testing.B) {
	l := newBenchmarkRepository(b)
	x, err := deps.Build(b.Context(), l.mirror.Tree(l.first), l.readers)
	if err != nil {
		b.Fatal(err)
	}
	changes, err := l.mirror.Changed(b.Context(), l.first, l.second)
	if err != nil {
		b.Fatal(err)
	}
	var changed []string
	for _, c := range changes {
		changed = append(changed, c.Path)
	}
	for b.Loop() {
		if _, err := x.Update(b.Context(), l.mirror.Tree(l.second), l.readers, changed); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkMemory is what an index of 10,000 readers holds.
func BenchmarkMemory(b *testing.B) {
	l := newBenchmarkRepository(b)
	held := func() float64 {
		runtime.GC()
		runtime.GC() // what finalizers kept
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc) / (1 << 20)
	}
	var x *deps.Index
	for b.Loop() {
		x = nil
		before := held()
		var err error
		if x, err = deps.Build(b.Context(), l.mirror.Tree(l.first), l.readers[:10_000]); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(held()-before, "MB-held")
	}
	runtime.KeepAlive(x)
}
