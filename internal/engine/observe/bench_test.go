package observe

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/argocd"
	"github.com/liftlock/liftlock/internal/fleet"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/gitrepo"
	"github.com/liftlock/liftlock/internal/overlay"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/verification"
)

// The benchmarks run on a repository of the size that the numbers in
// docs/edits.md are for: overlays of 1,000 components in 4 environments, their
// bases, and other files.
var (
	benchFiles      = flag.Int("bench-files", 100_000, "files in the benchmarks' repository")
	benchComponents = flag.Int("bench-components", 1000, "components in it, each with four overlays")
)

var benchEnvs = []string{"dev", "qa", "stage", "prod"}

const benchPipeline = `apiVersion: liftlock.dev/v1alpha1
kind: Pipeline
metadata: {name: shop}
spec:
  applicationSets: [{path: "argocd/*.yaml"}]
  component: '{{ index .path.segments 1 }}'
  environment: '{{ .path.basename }}'
  carry: [{kustomizeImages: ["registry.example/*"]}]
  environments: [{name: dev}, {name: qa, after: [dev]}, {name: stage, after: [qa]}, {name: prod, after: [stage]}]
`

const benchSet = `apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: shop, namespace: argocd}
spec:
  goTemplate: true
  goTemplateOptions: [missingkey=error]
  generators:
    - git: {repoURL: "https://git.example/acme/fleet.git", revision: HEAD, directories: [{path: "apps/*/overlays/*"}]}
  template:
    metadata: {name: '{{ index .path.segments 1 }}-{{ .path.basename }}'}
    spec:
      project: default
      source: {repoURL: "https://git.example/acme/fleet.git", targetRevision: main, path: '{{ .path.path }}'}
      destination: {server: "https://kubernetes.default.svc", namespace: '{{ index .path.segments 1 }}-{{ .path.basename }}'}
`

// benchOverlay is a kustomization as teams write them.
func benchOverlay(component, env, tag string) string {
	return fmt.Sprintf(`apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: %[1]s-%[2]s
resources:
  - ../../base
commonLabels:
  env: %[2]s
replicas:
  - name: %[1]s
    count: 3
images:
  - name: registry.example/%[1]s
    newTag: %[3]s # the release
  - name: registry.example/sidecar
    newTag: 1.4.2
configMapGenerator:
  - name: settings
    behavior: merge
    literals:
      - LOG_LEVEL=info
      - REGION=eu-west-1
`, component, env, tag)
}

func benchRoot(component int, env string) string {
	return fmt.Sprintf("apps/c%04d/overlays/%s", component, env)
}

// benchManifest is what the rest of the repository is full of.
func benchManifest(i int) string {
	name, sum := fmt.Sprintf("service-%05d", i), sha256.Sum256([]byte{byte(i), byte(i >> 8), byte(i >> 16)})
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata:
  name: %[1]s
  labels: {app.kubernetes.io/name: %[1]s, app.kubernetes.io/part-of: platform, team: team-%03[2]d}
spec:
  replicas: %[3]d
  selector:
    matchLabels: {app.kubernetes.io/name: %[1]s}
  template:
    metadata:
      labels: {app.kubernetes.io/name: %[1]s}
      annotations: {checksum/config: %[4]x}
    spec:
      serviceAccountName: %[1]s
      containers:
        - name: main
          image: registry.example/platform/%[1]s@sha256:%[5]x
          ports: [{name: http, containerPort: 8080}]
          env:
            - {name: LISTEN, value: ":8080"}
            - {name: UPSTREAM, value: "http://%[1]s-db.team-%03[2]d.svc:5432"}
          resources:
            requests: {cpu: %[6]dm, memory: %[7]dMi}
            limits: {memory: %[7]dMi}
          readinessProbe:
            httpGet: {path: /healthz, port: http}
            periodSeconds: 5
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities: {drop: [ALL]}
`, name, i/100, 1+i%5, sum[:16], sum, 50+i%450, 64+i%960)
}

// benchWorld is a bare repository and what reads it.
type benchWorld struct {
	b     *testing.B
	bare  string
	head  string
	count int // of commits since
}

func newBenchWorld(b *testing.B) *benchWorld {
	b.Helper()
	w := &benchWorld{b: b, bare: filepath.Join(b.TempDir(), "fleet.git")}
	w.git(b.TempDir(), nil, "init", "-q", "--bare", "-b", "main", w.bare)
	var s bytes.Buffer
	s.WriteString("commit refs/heads/main\ncommitter a <a@example.com> 1700000000 +0000\ndata 4\nBase\n")
	files := 0
	add := func(name, text string) {
		files++
		fmt.Fprintf(&s, "M 100644 inline %s\ndata %d\n%s\n", name, len(text), text)
	}
	add(".liftlock.yaml", benchPipeline)
	add("argocd/shop.yaml", benchSet)
	for i := range *benchComponents {
		name := fmt.Sprintf("c%04d", i)
		add("apps/"+name+"/base/kustomization.yaml", "resources: [deployment.yaml]\n")
		add("apps/"+name+"/base/deployment.yaml", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: "+name+"}\nspec:\n  template:\n    spec:\n      containers:\n        - {name: web, image: registry.example/"+name+"}\n")
		for _, env := range benchEnvs {
			add(benchRoot(i, env)+"/kustomization.yaml", benchOverlay(name, env, fmt.Sprintf("1.%d.0", i)))
		}
	}
	for i := 0; files < *benchFiles; i++ {
		add(fmt.Sprintf("platform/team-%03d/service-%05d/deployment.yaml", i/100, i), benchManifest(i))
	}
	w.git(w.bare, s.Bytes(), "fast-import", "--quiet")
	w.head = w.git(w.bare, nil, "rev-parse", "refs/heads/main")
	return w
}

// git runs the installed git in a directory.
func (w *benchWorld) git(dir string, stdin []byte, args ...string) string {
	w.b.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(stdin)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		w.b.Fatalf("git %v: %v\n%s", args, err, stderr.String())
	}
	return strings.TrimSpace(string(out))
}

// copied is the repository once more, so that what one side pushes costs the
// other nothing.
func (w *benchWorld) copied() string {
	w.b.Helper()
	dir := filepath.Join(w.b.TempDir(), "origin.git")
	w.git(w.b.TempDir(), nil, "clone", "-q", "--bare", "--no-hardlinks", w.bare, dir)
	return dir
}

// stream is what fast-import makes a commit of, with one file changed.
func (w *benchWorld) stream(branch, parent, file, text string) []byte {
	return fmt.Appendf(nil, "commit refs/heads/%s\nauthor a <a@example.com> 1700000000 +0000\ncommitter a <a@example.com> 1700000000 +0000\ndata 7\nPromote\nfrom %s\nM 100644 inline %s\ndata %d\n%s\n",
		branch, parent, file, len(text), text)
}

// changed is the component that pushes and promotions are about.
func (w *benchWorld) changed() (name, dev, qa string) {
	i := *benchComponents / 2
	return fmt.Sprintf("c%04d", i), benchRoot(i, "dev") + "/kustomization.yaml", benchRoot(i, "qa") + "/kustomization.yaml"
}

// push gives its dev another tag, as a build job would.
func (w *benchWorld) push(tag string) {
	w.b.Helper()
	w.count++
	name, file, _ := w.changed()
	w.git(w.bare, w.stream("main", w.head, file, benchOverlay(name, "dev", tag)), "fast-import", "--quiet")
	w.head = w.git(w.bare, nil, "rev-parse", "refs/heads/main")
}

// repository opens a mirror of a bare repository, fetched already.
func (w *benchWorld) repository(bare string) *Repository {
	w.b.Helper()
	dir := filepath.Join(w.b.TempDir(), "mirror.git")
	r := w.reopened(bare, dir)
	if _, err := r.Mirror.Fetch(w.b.Context()); err != nil {
		w.b.Fatal(err)
	}
	return r
}

func (w *benchWorld) reopened(bare, dir string) *Repository {
	w.b.Helper()
	m, err := gitrepo.Open(w.b.Context(), gitrepo.Options{Dir: dir, URL: "file://" + bare, Author: gitrepo.Ident{Name: "a", Email: "a@example.com"}})
	if err != nil {
		w.b.Fatal(err)
	}
	w.b.Cleanup(func() { _ = m.Close() })
	return &Repository{ID: "hub:acme/fleet", Branch: "main", Mirror: m, URLs: []string{"https://git.example/acme/fleet.git"}}
}

func (w *benchWorld) observer(repos ...*Repository) *Observer {
	hub := &running{clErr: argocd.ErrClustersOff}
	return New(Options{Resolver: fleet.New(fleet.Options{}), MainArgoCD: "hub", Repos: repos, Now: time.Now,
		ArgoCDs: map[string]ArgoCD{"hub": {Apps: hub, Live: hub, Namespace: "argocd"}}})
}

func (w *benchWorld) snapshot(o *Observer, r *Repository) *Snapshot {
	w.b.Helper()
	s, err := o.Snapshot(w.b.Context(), r)
	if err != nil {
		w.b.Fatal(err)
	}
	if p := s.Pipeline("shop"); p == nil || len(p.Problems) > 0 || len(p.Units) != *benchComponents {
		w.b.Fatalf("the snapshot has other units than it should: %+v %v", s.Broken, s.Pipelines)
	}
	return s
}

// BenchmarkPromotion is one promotion composed, committed and pushed: by
// Liftlock, by git alone with the edit ready made, and by a script with a
// shallow clone.
func BenchmarkPromotion(b *testing.B) {
	w := newBenchWorld(b)
	name, _, file := w.changed()
	want := func(bare, branch string, i int) {
		b.Helper()
		if got := w.git(bare, nil, "show", branch+":"+file) + "\n"; got != benchOverlay(name, "qa", fmt.Sprintf("2.0.%d", i)) {
			b.Fatalf("pushed was\n%s", got)
		}
		if got := w.git(bare, nil, "diff", "--name-only", "main", branch); got != file {
			b.Fatalf("changed was %s", got)
		}
	}
	b.Run("git", func(b *testing.B) {
		w.b = b
		bare := w.copied()
		mirror := filepath.Join(b.TempDir(), "mirror.git")
		w.git(b.TempDir(), nil, "clone", "-q", "--bare", "--no-local", "file://"+bare, mirror)
		i := 0
		for b.Loop() {
			i++
			branch := fmt.Sprintf("promote/%d", i)
			w.git(mirror, w.stream(branch, w.head, file, benchOverlay(name, "qa", fmt.Sprintf("2.0.%d", i))), "fast-import", "--quiet")
			w.git(mirror, nil, "push", "-q", "file://"+bare, "refs/heads/"+branch+":refs/heads/"+branch)
		}
		want(bare, fmt.Sprintf("promote/%d", i), i)
	})
	b.Run("liftlock", func(b *testing.B) {
		w.b = b
		bare := w.copied()
		r := w.repository(bare)
		o := w.observer(r)
		s := w.snapshot(o, r)
		p := s.Pipeline("shop")
		unit := p.Units[name]
		i := 0
		for b.Loop() {
			i++
			branch := fmt.Sprintf("promote/%d", i)
			rel, err := o.readNow(r, s.Commit, p, unit.Envs["dev"])
			if err != nil {
				b.Fatal(err)
			}
			rel = benchRelease(rel, name, fmt.Sprintf("2.0.%d", i))
			edits, err := overlay.Compose(r.Mirror.Tree(s.Commit), unit.Envs["qa"].Overlay(p.Pipeline), rel, wholeFiles(b.Context(), r.Mirror, s.Commit))
			if err != nil {
				b.Fatal(err)
			}
			head, err := WriteEdits(b.Context(), r.Mirror, s.Commit, edits, "Promote\n")
			if err != nil {
				b.Fatal(err)
			}
			if err := r.Mirror.Push(b.Context(), gitrepo.PushSpec{Branch: branch, New: head}); err != nil {
				b.Fatal(err)
			}
		}
		want(bare, fmt.Sprintf("promote/%d", i), i)
	})
	b.Run("clone", func(b *testing.B) {
		w.b = b
		bare := w.copied()
		i := 0
		for b.Loop() {
			i++
			branch := fmt.Sprintf("promote/%d", i)
			work := filepath.Join(b.TempDir(), fmt.Sprint("work", i))
			w.git(b.TempDir(), nil, "clone", "-q", "--depth=1", "--no-tags", "file://"+bare, work)
			if err := os.WriteFile(filepath.Join(work, file), []byte(benchOverlay(name, "qa", fmt.Sprintf("2.0.%d", i))), 0o644); err != nil {
				b.Fatal(err)
			}
			w.git(work, nil, "commit", "-q", "-a", "-m", "Promote")
			w.git(work, nil, "push", "-q", "origin", "HEAD:refs/heads/"+branch)
			b.StopTimer()
			if err := os.RemoveAll(work); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
		want(bare, fmt.Sprintf("promote/%d", i), i)
	})
}

// benchRelease is a release with another tag of the component's image.
func benchRelease(rel overlay.Release, component, tag string) overlay.Release {
	out := overlay.Release{Fields: append([]overlay.Field(nil), rel.Fields...)}
	for i := range out.Fields {
		if out.Fields[i].Path == "images[registry.example/"+component+"].newTag" {
			out.Fields[i].Value = tag
		}
	}
	return out
}

// BenchmarkReleases is reading every release of the tracked branch: from a
// mirror that was just opened, as git gives the files' bytes and no more; and
// after a push that changed one of them.
func BenchmarkReleases(b *testing.B) {
	w := newBenchWorld(b)
	first := w.repository(w.bare)
	o := w.observer(first)
	s := w.snapshot(o, first)
	p := s.Pipeline("shop")
	b.Run("git", func(b *testing.B) {
		w.b = b
		for b.Loop() {
			w.readWithGit()
		}
	})
	b.Run("liftlock", func(b *testing.B) {
		w.b = b
		dir := filepath.Join(b.TempDir(), "mirror.git")
		r := w.reopened(w.bare, dir)
		if _, err := r.Mirror.Fetch(b.Context()); err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			b.StopTimer()
			r := w.reopened(w.bare, dir)
			o, unread := w.observer(r), *p
			b.StartTimer()
			if err := o.readAhead(b.Context(), &Snapshot{Repo: r, Commit: s.Commit}, &unread, nil); err != nil {
				b.Fatal(err)
			}
			w.readAll(o, r, s, &unread)
		}
	})
	b.Run("after a push", func(b *testing.B) {
		w.b = b
		last, name := s, fmt.Sprintf("c%04d", *benchComponents/2)
		for b.Loop() {
			b.StopTimer()
			tag := fmt.Sprintf("3.0.%d", w.count)
			w.push(tag)
			if _, err := first.Mirror.Fetch(b.Context()); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
			now := w.snapshot(o, first)
			if now == last {
				b.Fatal("the push was not seen")
			}
			got := w.readAll(o, first, now, now.Pipeline("shop"))
			b.StopTimer()
			if text := got[name+"|dev"].String(); !strings.Contains(text, tag) {
				b.Fatalf("read was %s, pushed %s", text, tag)
			}
			last = now
			b.StartTimer()
		}
	})
}

// readWithGit reads the overlays' bytes with git alone.
func (w *benchWorld) readWithGit() {
	w.b.Helper()
	var ids bytes.Buffer
	n := 0
	for line := range strings.SplitSeq(strings.TrimSuffix(w.git(w.bare, nil, "ls-tree", "-r", "-z", w.head), "\x00"), "\x00") {
		meta, name, _ := strings.Cut(line, "\t")
		if strings.HasPrefix(name, "apps/") && strings.Contains(name, "/overlays/") {
			ids.WriteString(strings.Fields(meta)[2] + "\n")
			n++
		}
	}
	if n != *benchComponents*len(benchEnvs) {
		w.b.Fatalf("%d overlays were listed", n)
	}
	cmd := exec.Command("git", "cat-file", "--batch", "--buffer")
	cmd.Dir, cmd.Stdin = w.bare, &ids
	out, err := cmd.StdoutPipe()
	if err != nil {
		w.b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		w.b.Fatal(err)
	}
	in := bufio.NewReaderSize(out, 256<<10)
	for range n {
		head, err := in.ReadString('\n')
		if err != nil {
			w.b.Fatal(err)
		}
		var id, kind string
		var size int
		if _, err := fmt.Sscan(head, &id, &kind, &size); err != nil || kind != "blob" {
			w.b.Fatal(head, err)
		}
		if _, err := io.ReadFull(in, make([]byte, size+1)); err != nil {
			w.b.Fatal(err)
		}
	}
	if err := cmd.Wait(); err != nil {
		w.b.Fatal(err)
	}
}

// readAll reads every release, by component and environment.
func (w *benchWorld) readAll(o *Observer, r *Repository, s *Snapshot, p *PipelineAt) map[string]overlay.Release {
	w.b.Helper()
	out := make(map[string]overlay.Release, len(p.Units)*len(benchEnvs))
	for component, u := range p.Units {
		for env, at := range u.Envs {
			rel, err := o.readNow(r, s.Commit, p, at)
			if err != nil || len(rel.Fields) != 2 {
				w.b.Fatal(component, env, rel, err)
			}
			out[component+"|"+env] = rel
		}
	}
	return out
}

// quietForge has no pull requests.
type quietForge struct{ forge.Forge }

func (quietForge) PullRequests(context.Context, forge.Repo, time.Time) ([]forge.PullRequest, error) {
	return nil, nil
}

// healthy is an Argo CD in which all Applications are well.
type healthy struct {
	running
	apps map[string]verification.App
}

func (h *healthy) Get(_, name string) (*verification.App, bool) {
	a, ok := h.apps[name]
	return &a, ok
}

func (h *healthy) List() []verification.App { return slices.Collect(maps.Values(h.apps)) }

// BenchmarkLooks is what follows a push that changed one file: every component
// is looked at, and judged.
func BenchmarkLooks(b *testing.B) {
	w := newBenchWorld(b)
	r := w.repository(w.bare)
	r.Forge, r.Me = quietForge{}, "liftlock"
	st, err := store.Open(b.Context(), "sqlite://"+filepath.Join(b.TempDir(), "liftlock.db"), store.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = st.Close() }()
	hub := &healthy{running: running{clErr: argocd.ErrClustersOff}, apps: map[string]verification.App{}}
	o := New(Options{Store: st, Resolver: fleet.New(fleet.Options{}), MainArgoCD: "hub", Repos: []*Repository{r}, Now: time.Now, MaxAge: time.Hour,
		ArgoCDs: map[string]ArgoCD{"hub": {Apps: hub, Live: &hub.running, Namespace: "argocd"}}})
	for _, t := range w.snapshot(o, r).Pipeline("shop").Fleet.Targets {
		hub.apps[t.Name] = verification.App{ArgoCD: "hub", Name: t.Name, Namespace: "argocd", Health: "Healthy", Revisions: []string{w.head},
			Destination: verification.Destination{Server: t.Server, Namespace: t.DestNS}}
	}
	look := func() {
		b.Helper()
		s := w.snapshot(o, r)
		for _, u := range s.AllUnits() {
			c, err := o.Facts(b.Context(), s, u, false)
			if err != nil {
				b.Fatal(err)
			}
			if d := promotion.Decide(c.Facts); len(d.Envs) != len(benchEnvs) {
				b.Fatal(d)
			}
		}
	}
	look() // what landed is found and written down
	for b.Loop() {
		b.StopTimer()
		w.push(fmt.Sprintf("4.0.%d", w.count))
		if _, err := r.Mirror.Fetch(b.Context()); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		look()
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(*benchComponents), "µs/component")
}
