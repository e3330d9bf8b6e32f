package evaluate

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/manifest/render"
	"github.com/liftlock/liftlock/internal/proc/sandbox"
)

// renderPool is a pool of this test binary.
func renderPool(t testing.TB, l sandbox.Limits) PoolRenderer {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if l.Memory == 0 {
		l.Memory = renderMemory
	}
	if raceDetector { // its own bookkeeping passes any limit
		l.Memory = 1 << 46
	}
	p := sandbox.NewPool(sandbox.PoolOptions{Program: program, Args: []string{Command, PoolArgument}, Limits: l})
	t.Cleanup(p.Close)
	return PoolRenderer{Pool: p}
}

// identified is a tree whose contents have identities, as Git's have.
func identified(tree fstest.MapFS) render.Tree {
	var mu sync.Mutex
	known := map[string]string{}
	var identify func(name string) (string, error)
	identify = func(name string) (string, error) {
		if id, ok := known[name]; ok {
			return id, nil
		}
		info, err := fs.Lstat(tree, name)
		if errors.Is(err, fs.ErrNotExist) {
			return "", nil
		} else if err != nil {
			return "", err
		}
		h := sha256.New()
		if info.IsDir() {
			entries, err := fs.ReadDir(tree, name)
			if err != nil {
				return "", err
			}
			for _, e := range entries {
				id, err := identify(path.Join(name, e.Name()))
				if err != nil {
					return "", err
				}
				fmt.Fprintf(h, "%q %s\n", e.Name(), id)
			}
		} else {
			h.Write(tree[name].Data)
		}
		known[name] = info.Mode().Type().String() + hex.EncodeToString(h.Sum(nil))
		return known[name], nil
	}
	return render.Tree{FS: tree, ID: func(name string) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		return identify(name)
	}}
}

func chartFiles(at, template string) fstest.MapFS {
	return fstest.MapFS{
		at + "/Chart.yaml":          {Data: []byte("apiVersion: v2\nname: c\nversion: 1.0.0\n")},
		at + "/templates/conf.yaml": {Data: []byte(template)},
	}
}

const honestTemplate = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\ndata: {a: b}\n"

func sourceAt(app, at string) render.Input {
	return render.Input{Application: app, Namespace: "shop", Sources: []render.Source{{RepoURL: "https://git.example/fleet", Path: at, InTree: true}}}
}

// bombs are what somebody with the right to write one folder of the tracked branch can commit as
// a chart's template. No check in the same process stops all of them.
var chartBombs = map[string]struct{ template, cause string }{ // cause: what it dies of; "": it fails somehow; *: or not
	"printf's width":               {`{{ $f := repeat 4000 "%1000000d" }}{{ printf $f 1 }}`, ""},
	"printf's width by index":      {`{{ $f := repeat 4000 "%[1]1000000d" }}{{ printf $f 1 }}`, ""},
	"a doubled list as JSON":       {`{{ $l := list "a" }}{{ range until 40 }}{{ $l = list $l $l }}{{ end }}{{ toJson $l }}`, "memory|CPU time"},
	"a doubled list as YAML":       {`{{ $l := list "a" }}{{ range until 40 }}{{ $l = list $l $l }}{{ end }}{{ toYaml $l }}`, ""},
	"a doubled list printed":       {`{{ $l := list "a" }}{{ range until 40 }}{{ $l = list $l $l }}{{ end }}{{ print $l }}`, ""},
	"a doubled list emitted":       {`{{ $l := list "a" }}{{ range until 40 }}{{ $l = list $l $l }}{{ end }}{{ $l }}`, ""},
	"a doubled dict copied":        {`{{ $l := dict "a" "b" }}{{ range until 40 }}{{ $l = dict "x" $l "y" $l }}{{ end }}{{ $c := deepCopy $l }}`, ""},
	"an expression that refers":    {`{{ $s := repeat 200000 "a" }}{{ regexReplaceAll "a" $s $s }}`, "memory|CPU time"},
	"an expression that repeats":   {`{{ $s := repeat 100000 "a" }}{{ regexReplaceAll "^.*$" $s (repeat 100000 "${0}") }}`, "memory|CPU time"},
	"wrapping":                     {`{{ wrapWith 1 (repeat 100000 "x") (repeat 100000 "y") }}`, "memory|CPU time"},
	"a dict in itself as JSON":     {`{{ $d := dict }}{{ $_ := set $d "a" $d }}{{ toJson $d }}`, "*"},
	"a dict in itself printed":     {`{{ $d := dict }}{{ $_ := set $d "a" $d }}{{ print $d }}`, "stack overflow"},
	"a dict in itself as YAML":     {`{{ $d := dict }}{{ $_ := set $d "a" $d }}{{ toYaml $d }}`, "*"},
	"a dict in itself as TOML":     {`{{ $d := dict }}{{ $_ := set $d "a" $d }}{{ toToml $d }}`, "stack overflow|memory|CPU time"},
	"a list of itself compared":    {`{{ $d := dict }}{{ $_ := set $d "a" $d }}{{ $e := dict }}{{ $_ := set $e "a" $e }}{{ if deepEqual $d $e }}x{{ end }}`, "*"},
	"passwords":                    {`{{ range until 2000 }}{{ $x := derivePassword 1 "long" "p" "u" "s" }}{{ end }}`, "CPU time"},
	"long lists that are split":    {`{{ $s := repeat 16000000 "," }}{{ range until 200 }}{{ $x := splitList "," $s }}{{ end }}`, ""},
	"400 texts of 16 MB":           {`{{ $l := list }}{{ range $i := until 400 }}{{ $l = append $l (repeat 16000000 (printf "%d" (mod $i 10))) }}{{ end }}`, "memory|CPU time"},
	"a text of a million elements": {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: [{{ repeat 1500000 \"0,\" }}0]\n", "values|CPU time|memory"},
}

// TestChartBombs renders each bomb between two honest targets of the same batch. The process that
// asks lives on and keeps no memory. The reason names folder and cause, and the honest targets are
// right.
func TestChartBombs(t *testing.T) {
	r := renderPool(t, sandbox.Limits{CPU: time.Second, Time: time.Minute, Answer: renderAnswer})
	goroutines := runtime.NumGoroutine()
	before := liveHeap()
	for name, bomb := range chartBombs {
		tree := chartFiles("charts/evil", bomb.template)
		for file, f := range chartFiles("charts/honest", honestTemplate) {
			tree[file] = f
		}
		at := identified(tree)
		jobs := []render.Job{{Tree: at, Input: sourceAt("first", "charts/honest")}, {Tree: at, Input: sourceAt("evil", "charts/evil")}, {Tree: at, Input: sourceAt("last", "charts/honest")}}
		out, err := r.RenderAll(t.Context(), jobs)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, i := range []int{0, 2} {
			if out[i].Err != nil || len(out[i].Manifests.Objects) != 1 || out[i].Manifests.Objects[0].Name != jobs[i].Input.Application {
				t.Errorf("%s: the honest target %d: %+v", name, i, out[i])
			}
		}
		err = out[1].Err
		var died *render.Died
		switch {
		case bomb.cause == "*": // Go's encoder or comparison knows this one, or it dies
		case err == nil:
			t.Errorf("%s: no error", name)
		case bomb.cause != "" && (!errors.As(err, &died) || !regexp.MustCompile(bomb.cause).MatchString(err.Error())):
			t.Errorf("%s: %v, want one that died of %s", name, err, bomb.cause)
		case errors.As(err, &died) && !strings.HasPrefix(err.Error(), "rendering charts/evil died: "):
			t.Errorf("%s: %v", name, err)
		}
		t.Logf("%s: %v", name, err)
	}
	if now := liveHeap(); now > before+32<<20 {
		t.Errorf("%d MB live before, %d MB after", before>>20, now>>20)
	}
	if n := runtime.NumGoroutine(); n > goroutines+20 {
		t.Errorf("%d goroutines before, %d after", goroutines, n)
	}
}

// liveHeap is what live objects take.
func liveHeap() uint64 {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.HeapAlloc
}

// manyTargets are small targets of all layouts in one tree.
func manyTargets(n int, layouts ...string) (fstest.MapFS, []render.Input) {
	if len(layouts) == 0 {
		layouts = []string{"kustomize", "helm", "plain"}
	}
	const deploy = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  replicas: 1\n  selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n    spec: {containers: [{name: web, image: web, envFrom: [{configMapRef: {name: conf}}]}]}\n"
	const service = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selector: {app: web}, ports: [{port: 80}]}\n"
	tree := fstest.MapFS{}
	put := func(name, text string) { tree[name] = &fstest.MapFile{Data: []byte(text)} }
	put("base/kustomization.yaml", "resources: [deploy.yaml, svc.yaml]\nconfigMapGenerator: [{name: conf, literals: [a=b]}]\n")
	put("base/deploy.yaml", deploy)
	put("base/svc.yaml", service)
	put("chart/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n")
	put("chart/values.yaml", "replicas: 1\nimage: {tag: '1'}\n")
	put("chart/templates/_h.tpl", "{{- define \"labels\" }}app: {{ .Release.Name }}{{ end }}")
	put("chart/templates/deploy.yaml", "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {{ .Release.Name }}\n  labels: {{- include \"labels\" . | nindent 4 }}\nspec:\n  replicas: {{ .Values.replicas }}\n  template: {spec: {containers: [{name: web, image: \"web:{{ .Values.image.tag }}\"}]}}\n")
	put("chart/templates/svc.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: {{ .Release.Name }}}\nspec: {ports: [{port: 80}]}\n")
	var in []render.Input
	for i := range n {
		dir := fmt.Sprintf("apps/%04d", i)
		one := sourceAt(fmt.Sprintf("web-%04d", i), dir)
		switch layouts[i%len(layouts)] {
		case "kustomize":
			put(dir+"/kustomization.yaml", fmt.Sprintf("resources: [../../base]\nnamespace: n%d\nimages: [{name: web, newTag: '%d'}]\npatches: [{path: p.yaml}]\n", i, i))
			put(dir+"/p.yaml", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, annotations: {a: b}}\n")
		case "helm":
			put(dir+"/values.yaml", fmt.Sprintf("image: {tag: '%d'}\n", i))
			one.Sources[0].Path, one.Sources[0].Options = "chart", []byte(fmt.Sprintf(`{"helm":{"valueFiles":["/%s/values.yaml"]}}`, dir))
		case "plain":
			put(dir+"/all.yaml", deploy+"---\n"+service)
		}
		in = append(in, one)
	}
	return tree, in
}

func jobsOf(tree render.Tree, in []render.Input) []render.Job {
	jobs := make([]render.Job, len(in))
	for i := range in {
		jobs[i] = render.Job{Tree: tree, Input: in[i]}
	}
	return jobs
}

// workersOf are the processes that a test binary has started.
func workersOf(t *testing.T) (pids []int) {
	t.Helper()
	files, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, _ := os.ReadFile(file) // a thread may be gone
		for _, word := range strings.Fields(string(data)) {
			if pid, err := strconv.Atoi(word); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// TestKilledRenderers kills workers at random while targets are rendered: every result is the one
// of this process.
func TestKilledRenderers(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the children of a process are listed on Linux alone")
	}
	tree, in := manyTargets(1000)
	at := identified(tree)
	want, err := render.InProcess{}.RenderAll(t.Context(), jobsOf(at, in))
	if err != nil {
		t.Fatal(err)
	}
	r := renderPool(t, sandbox.Limits{})
	const chunk = 25
	chunks := make(chan int, len(in)/chunk)
	for i := range cap(chunks) {
		chunks <- i * chunk
	}
	close(chunks)
	got := make([]render.Outcome, len(in))
	var callers sync.WaitGroup
	var finished, killed atomic.Int32
	for range 2 {
		callers.Go(func() {
			for from := range chunks {
				out, err := r.RenderAll(t.Context(), jobsOf(at, in[from:from+chunk]))
				for errors.Is(err, context.DeadlineExceeded) { // chance hit one job at each try: RenderAll says so, and callers come again
					out, err = r.RenderAll(t.Context(), jobsOf(at, in[from:from+chunk]))
				}
				if err != nil {
					t.Error(err)
					return
				}
				copy(got[from:], out)
				if pids := workersOf(t); finished.Add(1)%4 == 0 && len(pids) > 0 && syscall.Kill(pids[rand.IntN(len(pids))], syscall.SIGKILL) == nil {
					killed.Add(1)
				}
			}
		})
	}
	callers.Wait()
	if killed.Load() == 0 {
		t.Error("no worker was killed")
	}
	for i := range want {
		if d := cmp.Diff(want[i].Manifests, got[i].Manifests); d != "" || want[i].Err != nil || got[i].Err != nil {
			t.Fatalf("%s: %v, %v\n%s", in[i].Application, want[i].Err, got[i].Err, d)
		}
	}
	t.Logf("%d workers were killed", killed.Load())
}

// TestOutcomesOfWorkers holds that errors come over as what they are.
func TestOutcomesOfWorkers(t *testing.T) {
	tree := chartFiles("charts/broken", "{{ fail \"no\" }}")
	for file, f := range chartFiles("charts/loop", `{{ range until 1000000 }}{{ range until 1000000 }}{{ end }}{{ end }}`) {
		tree[file] = f
	}
	tree["remote/kustomization.yaml"] = &fstest.MapFile{Data: []byte("resources: ['https://git.example/other//base?ref=v1']\n")}
	tree["link"] = &fstest.MapFile{Data: []byte("charts/broken"), Mode: fs.ModeSymlink}
	tree["out"] = &fstest.MapFile{Data: []byte("../out"), Mode: fs.ModeSymlink}
	var jobs []render.Job
	other := identified(fstest.MapFS{"plain/a.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")}})
	branch := sourceAt("branch", "plain")
	branch.Sources[0].Branch, branch.Branches = "env/qa", map[string]render.Tree{"env/qa": other}
	at := identified(tree)
	for _, p := range []string{"charts/broken", "charts/loop", "remote", "link", "out", "nothing", "../x"} {
		jobs = append(jobs, render.Job{Tree: at, Input: sourceAt("a", p)})
	}
	jobs = append(jobs, render.Job{Tree: at, Input: branch})
	want, err := render.InProcess{}.RenderAll(t.Context(), jobs)
	if err != nil {
		t.Fatal(err)
	}
	got, err := renderPool(t, sandbox.Limits{}).RenderAll(t.Context(), jobs)
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		var u, v *render.Unrenderable
		text := func(err error) string { return fmt.Sprint(err) }
		if text(want[i].Err) != text(got[i].Err) || errors.As(want[i].Err, &u) != errors.As(got[i].Err, &v) ||
			errors.Is(want[i].Err, render.ErrLimit) != errors.Is(got[i].Err, render.ErrLimit) || cmp.Diff(u, v) != "" {
			t.Errorf("%s: in this process %v, in a worker %v", jobs[i].Input.Sources[0].Path, want[i].Err, got[i].Err)
		}
		if d := cmp.Diff(want[i].Manifests, got[i].Manifests); d != "" {
			t.Errorf("%s: %s", jobs[i].Input.Sources[0].Path, d)
		}
	}
}

// FuzzReadOutcome reads what a worker might say: nothing ends this process, and what is taken
// can be compared and written again.
func FuzzReadOutcome(f *testing.F) {
	m, err := render.Render(context.Background(), chartFiles("c", honestTemplate), sourceAt("a", "c"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(appendOutcome(nil, m, nil))
	f.Add(appendOutcome(nil, nil, &render.Unrenderable{Source: "a", Reason: "b", Remote: []string{"c"}}))
	f.Add(appendOutcome(nil, nil, fmt.Errorf("much: %w", render.ErrLimit)))
	f.Add([]byte{saidManifests, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, said []byte) {
		out, err := readOutcome(said)
		if err != nil || out.Manifests == nil {
			return
		}
		again, err := readOutcome(appendOutcome(nil, out.Manifests, nil))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(out.Manifests, again.Manifests); d != "" {
			t.Error(d)
		}
		render.Diff(out.Manifests, again.Manifests).Affected(out.Manifests)
	})
}

// BenchmarkRenderer renders 1,000 targets of each layout here and in workers: what is between
// them is the price of workers that may die.
func BenchmarkRenderer(b *testing.B) {
	for _, layout := range []string{"kustomize", "helm", "plain"} {
		tree, in := manyTargets(1000, layout)
		jobs := jobsOf(identified(tree), in)
		for _, way := range []string{"process", "worker"} {
			b.Run(layout+"/in="+way, func(b *testing.B) {
				var r render.Renderer = render.InProcess{}
				if way == "worker" {
					r = renderPool(b, sandbox.Limits{})
				}
				for b.Loop() {
					out, err := r.RenderAll(b.Context(), jobs)
					if err != nil || out[0].Err != nil || out[len(out)-1].Err != nil {
						b.Fatal(err, out[0].Err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(len(in)), "µs/target")
			})
		}
	}
}

// packedChart is a chart of a repository, as it is fetched.
func packedChart(tb testing.TB, from fstest.MapFS) render.Tree {
	tb.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	archive := tar.NewWriter(zipped)
	for _, name := range slices.Sorted(maps.Keys(from)) {
		if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(from[name].Data))}); err != nil {
			tb.Fatal(err)
		}
		if _, err := archive.Write(from[name].Data); err != nil {
			tb.Fatal(err)
		}
	}
	if err := errors.Join(archive.Close(), zipped.Close()); err != nil {
		tb.Fatal(err)
	}
	return render.NewChartTree(out.Bytes(), "1.0.0")
}

// TestPoolRendersExternals renders charts of repositories, and trees of others, in workers.
func TestPoolRendersExternals(t *testing.T) {
	chart := packedChart(t, chartFiles("c", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {tag: '{{ .Values.tag }}', at: '{{ .Values.at }}'}\n"))
	folder := identified(chartFiles("charts/c", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {tag: '{{ .Values.tag }}', at: '{{ .Values.at }}'}\n"))
	folder.Revision = "c0ffee"
	memo := render.NewMemo(render.MemoOptions{Bytes: 1 << 20, Renderer: renderPool(t, sandbox.Limits{}), External: func(_ context.Context, e render.External) (render.Tree, error) {
		switch {
		case e == render.External{RepoURL: "https://charts.example", Chart: "c", Revision: "1.0.0"}:
			return chart, nil
		case e == render.External{RepoURL: "https://git.example/acme/charts", Revision: "v1"}:
			return folder, nil
		}
		return render.Tree{}, errors.New("it isn't listed")
	}})
	own := render.Source{InTree: true, Ref: "own"}
	options := []byte(`{"helm": {"valueFiles": ["$own/values.yaml"], "parameters": [{"name": "at", "value": "$ARGOCD_APP_REVISION"}]}}`)
	tree := identified(fstest.MapFS{"values.yaml": {Data: []byte("tag: of-here\n")}})
	var jobs []render.Job
	for _, s := range []render.Source{{RepoURL: "https://charts.example", Chart: "c", TargetRevision: "1.0.0", Options: options},
		{RepoURL: "https://git.example/acme/charts", Path: "charts/c", TargetRevision: "v1", Options: options}, {RepoURL: "https://git.example/acme/vault", Path: "x"}} {
		jobs = append(jobs, render.Job{Tree: tree, Input: render.Input{Application: "a", Revision: "f00", Sources: []render.Source{s, own}}})
	}
	out, err := memo.RenderAll(t.Context(), jobs)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{`"at":"1.0.0","tag":"of-here"`, `"at":"c0ffee","tag":"of-here"`, "another repository or revision: it isn't listed"} {
		got := fmt.Sprint(out[i].Err)
		if out[i].Err == nil {
			got = string(out[i].Manifests.Objects[0].JSON)
		}
		if !strings.Contains(got, want) {
			t.Errorf("%d: %s; want %s", i, got, want)
		}
	}
}

// BenchmarkExternalChart renders 1,000 targets of one chart in workers: in the repository, and of a
// chart repository.
func BenchmarkExternalChart(b *testing.B) {
	template := honestTemplate + strings.Repeat("---\n"+honestTemplate, 9)
	tree := chartFiles("charts/c", template)
	chart := packedChart(b, chartFiles("c", template))
	here := identified(tree)
	for _, way := range []string{"repository", "chart repository"} {
		b.Run("of="+way, func(b *testing.B) {
			var jobs []render.Job
			for i := range 1000 {
				s := render.Source{InTree: true, Path: "charts/c"}
				if way != "repository" {
					s = render.Source{RepoURL: "https://charts.example", Chart: "c", TargetRevision: "1.0.0"}
				}
				jobs = append(jobs, render.Job{Tree: here, Input: render.Input{Application: fmt.Sprint("app-", i), Sources: []render.Source{s}}})
			}
			pool := renderPool(b, sandbox.Limits{})
			for b.Loop() {
				memo := render.NewMemo(render.MemoOptions{Bytes: 1 << 28, Renderer: pool, External: func(context.Context, render.External) (render.Tree, error) { return chart, nil }})
				out, err := memo.RenderAll(b.Context(), jobs)
				if err != nil || out[0].Err != nil || out[len(out)-1].Err != nil {
					b.Fatal(err, out[0].Err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/1000, "µs/target")
		})
	}
}
