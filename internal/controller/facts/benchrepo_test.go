package facts

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/argocd"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/git"
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

// benchRepo is a bare repository and what reads it.
type benchRepo struct {
	b     *testing.B
	bare  string
	head  string
	count int // of commits since
}

func newBenchRepo(b *testing.B) *benchRepo {
	b.Helper()
	w := &benchRepo{b: b, bare: filepath.Join(b.TempDir(), "fleet.git")}
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
func (b *benchRepo) git(dir string, stdin []byte, args ...string) string {
	b.b.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(stdin)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		b.b.Fatalf("git %v: %v\n%s", args, err, stderr.String())
	}
	return strings.TrimSpace(string(out))
}

// cloneOrigin is the repository once more, so that what one side pushes costs the
// other nothing.
func (b *benchRepo) cloneOrigin() string {
	b.b.Helper()
	dir := filepath.Join(b.b.TempDir(), "origin.git")
	b.git(b.b.TempDir(), nil, "clone", "-q", "--bare", "--no-hardlinks", b.bare, dir)
	return dir
}

// importStream is what fast-import makes a commit of, with one file changed.
func (b *benchRepo) importStream(branch, parent, file, text string) []byte {
	return fmt.Appendf(nil, "commit refs/heads/%s\nauthor a <a@example.com> 1700000000 +0000\ncommitter a <a@example.com> 1700000000 +0000\ndata 7\nPromote\nfrom %s\nM 100644 inline %s\ndata %d\n%s\n",
		branch, parent, file, len(text), text)
}

// changedComponent is the component that pushes and promotions are about.
func (b *benchRepo) changedComponent() (name, dev, qa string) {
	i := *benchComponents / 2
	return fmt.Sprintf("c%04d", i), benchRoot(i, "dev") + "/kustomization.yaml", benchRoot(i, "qa") + "/kustomization.yaml"
}

// push gives its dev another tag, as a build job would.
func (b *benchRepo) push(tag string) {
	b.b.Helper()
	b.count++
	name, file, _ := b.changedComponent()
	b.git(b.bare, b.importStream("main", b.head, file, benchOverlay(name, "dev", tag)), "fast-import", "--quiet")
	b.head = b.git(b.bare, nil, "rev-parse", "refs/heads/main")
}

// newRepository opens a mirror of a bare repository, fetched already.
func (b *benchRepo) newRepository(bare string) *branch.Repository {
	b.b.Helper()
	dir := filepath.Join(b.b.TempDir(), "mirror.git")
	r := b.openRepository(bare, dir)
	if _, err := r.Mirror.Fetch(b.b.Context()); err != nil {
		b.b.Fatal(err)
	}
	return r
}

func (b *benchRepo) openRepository(bare, dir string) *branch.Repository {
	b.b.Helper()
	m, err := git.Open(b.b.Context(), git.Options{Dir: dir, URL: "file://" + bare, Author: git.Ident{Name: "a", Email: "a@example.com"}})
	if err != nil {
		b.b.Fatal(err)
	}
	b.b.Cleanup(func() { _ = m.Close() })
	return &branch.Repository{ID: "hub:acme/fleet", Branch: "main", Mirror: m, URLs: []string{"https://git.example/acme/fleet.git"}}
}

func (b *benchRepo) newGatherer(repos ...*branch.Repository) *Gatherer {
	hub := &fakeArgoCD{clustersErr: argocd.ErrClustersOff}
	return New(Options{Resolver: appset.New(appset.Options{}), MainArgoCD: "hub", Repos: repos, Now: time.Now,
		ArgoCDs: map[string]branch.ArgoCD{"hub": {Apps: hub, Live: hub, Namespace: "argocd"}}})
}

func (b *benchRepo) takeSnapshot(o *Gatherer, r *branch.Repository) *branch.Snapshot {
	b.b.Helper()
	s, err := o.Targets.Snapshot(b.b.Context(), r)
	if err != nil {
		b.b.Fatal(err)
	}
	if p := s.Pipeline("shop"); p == nil || len(p.Problems) > 0 || len(p.Units) != *benchComponents {
		b.b.Fatalf("the snapshot has other units than it should: %+v %v", s.PipelineErr, s.Pipelines)
	}
	return s
}

// stopwatch measures besides the time the processor's: of this process and of
// the programs that it ran and that have ended. On a busy machine that is what
// can be compared.
type stopwatch struct {
	b           *testing.B
	used, since time.Duration
}

func newStopwatch(b *testing.B) *stopwatch {
	s := &stopwatch{b: b}
	s.since = s.now()
	return s
}

func (s *stopwatch) now() time.Duration {
	s.b.Helper()
	var sum time.Duration
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if err := syscall.Getrusage(who, &u); err != nil {
			s.b.Fatal(err)
		}
		sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return sum
}

func (s *stopwatch) stop() {
	s.b.StopTimer()
	s.used += s.now() - s.since
}

func (s *stopwatch) start() {
	s.since = s.now()
	s.b.StartTimer()
}

// report says the processor's time of an operation.
func (s *stopwatch) report() {
	s.used += s.now() - s.since
	s.b.ReportMetric(float64(s.used.Microseconds())/1000/float64(s.b.N), "cpu-ms/op")
}
