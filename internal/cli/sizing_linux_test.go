package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/console/client"
	"github.com/liftlock/liftlock/internal/world/argoemulator"
	"github.com/liftlock/liftlock/internal/world/emulator"
)

var sizingComponents = flag.Int("sizing", 3, "components of TestSizing, each in three environments")

// TestSizing has a server of its own process take one release of every component through three
// environments at once, and prints what that took of the machine. docs/sizing.md has figures.
func TestSizing(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for a real server")
	}
	t.Parallel()
	n := *sizingComponents
	w := newSizingWorld(t, n)
	server := w.startServer(t)
	w.await(t, n, "1.0.0", "baseline")
	t.Logf("%d components, %d Applications", n, 3*n)
	t.Logf("looked at once: %s", server.use(t))
	w.Forge.ResetCalls()
	began := time.Now()
	files := map[string]string{}
	for i := range n {
		files[sizingOverlay(i, "dev")] = sizingKustomization("1.1.0")
	}
	if _, err := w.Forge.CommitAs("acme/fleet", "linus", "main", "Release everything", files); err != nil {
		t.Fatal(err)
	}
	w.await(t, n, "1.1.0", "verified")
	t.Logf("%d promotions, all at once, in %s: %s", 2*n, time.Since(began).Round(time.Second), server.use(t))
	calls := awaitQuiet(t, w.Forge)
	t.Logf("%.1f calls of the forge's API a promotion, %s in the data folder", float64(calls)/float64(2*n), megabytes(folderSize(t, filepath.Join(w.dir, "data"))))
	logCallsByRoute(t, w.Forge, 2*n)
	// docs/sizing.md says what it takes alone, and where many are merged one after the other.
	most := 11.0
	if n == 1 {
		most = 9
	}
	if got := float64(calls) / float64(2*n); got > most {
		t.Errorf("a promotion takes %.1f calls of the forge's API, and %.0f must do", got, most)
	}
}

type sizingWorld struct {
	*emulator.Simulation
	dir, url string
}

func sizingOverlay(component int, environment string) string {
	return fmt.Sprintf("apps/app-%04d/overlays/%s/kustomization.yaml", component, environment)
}

func sizingKustomization(tag string) string {
	return "images:\n  - name: registry.example/app\n    newTag: " + tag + "\n"
}

const (
	sizingToken = "a-token-of-some-length"

	sizingPipeline = `apiVersion: liftlock.dev/v1alpha1
kind: Pipeline
metadata: {name: shop}
spec:
  applicationSets: [{path: argocd/shop.yaml}]
  component: '{{ index .path.segments 1 }}'
  environment: '{{ .path.basename }}'
  carry: [{kustomizeImages: ["registry.example/*"]}]
  limits: {openPerEnvironment: 1000, mergesPerHour: 10000}
  environments:
    - {name: dev, verify: {healthyFor: 100ms}}
    - {name: qa, after: [dev], merge: auto, verify: {healthyFor: 100ms}}
    - {name: prod, after: [qa], merge: auto, verify: {healthyFor: 100ms}}
`

	sizingServer = `listen: %[1]s
externalURL: http://%[1]s
dataDir: %[2]s/data
forges:
  - {name: hub, type: github, url: "%[3]s", auth: {token: a-token-of-the-bot}, webhookSecrets: [a-webhook-secret]}
repositories: [{forge: hub, name: acme/fleet, manageWebhooks: true}]
argocd: [{name: hub, kubernetes: {kubeconfig: %[2]s/kubeconfig, namespaces: [argocd]}}]
`
)

func newSizingWorld(t *testing.T, n int) *sizingWorld {
	t.Helper()
	dir := t.TempDir()
	sim, err := emulator.New(emulator.Options{Dir: filepath.Join(dir, "world"), Timings: argoemulator.FastTimings(), RateLimit: 1_000_000_000})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sim.Close(); err != nil {
			t.Error(err)
		}
	})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for login, token := range map[string]string{"acme": "a-token-of-acme", "linus": "a-token-of-linus", "liftlock": "a-token-of-the-bot"} {
		must(sim.Forge.AddUser(login, token, emulator.UserOptions{}))
	}
	set := strings.NewReplacer("REPO", sim.Forge.CloneURL("acme/fleet")).Replace(`apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: shop, namespace: argocd}
spec:
  goTemplate: true
  generators: [{git: {repoURL: REPO, revision: main, directories: [{path: apps/*/overlays/*}]}}]
  template:
    metadata: {name: '{{ index .path.segments 1 }}-{{ .path.basename }}'}
    spec:
      project: default
      source: {repoURL: REPO, targetRevision: main, path: '{{ .path.path }}'}
      destination: {server: https://kubernetes.default.svc, namespace: '{{ .path.basename }}'}
      syncPolicy: {automated: {}}
`)
	files := map[string]string{".liftlock.yaml": sizingPipeline, "argocd/shop.yaml": set}
	for i := range n {
		for _, env := range []string{"dev", "qa", "prod"} {
			files[sizingOverlay(i, env)] = sizingKustomization("1.0.0")
		}
	}
	must(sim.Forge.CreateRepo("acme/fleet", emulator.RepoOptions{Files: files, Author: "linus", Access: map[string]emulator.Permission{"liftlock": emulator.Admin, "linus": emulator.Write}}))
	for i := range n {
		for _, env := range []string{"dev", "qa", "prod"} {
			must(sim.ArgoCD.AddApplication(argoemulator.AppSpec{Name: fmt.Sprintf("app-%04d-%s", i, env), Repo: "acme/fleet", Path: filepath.Dir(sizingOverlay(i, env)), DestinationNamespace: env, ApplicationSet: "shop"}))
		}
	}
	must(sim.ArgoCD.WriteKubeconfig(filepath.Join(dir, "kubeconfig")))
	address, err := emulator.FreeAddress()
	must(err)
	must(os.WriteFile(filepath.Join(dir, "liftlock.yaml"), fmt.Appendf(nil, sizingServer, address, dir, sim.Forge.APIURL()), 0o600))
	return &sizingWorld{sim, dir, "http://" + address}
}

// await waits until every component's release in prod is this one, in this state.
func (s *sizingWorld) await(t *testing.T, n int, release, state string) {
	t.Helper()
	c, err := client.New(s.url, sizingToken, "test")
	if err != nil {
		t.Fatal(err)
	}
	seen := ""
	deadline, tick := time.NewTimer(30*time.Minute), time.NewTicker(500*time.Millisecond)
	defer deadline.Stop()
	defer tick.Stop()
	for {
		p, err := c.Pipeline(t.Context(), "hub:acme/fleet", "shop")
		reached := 0
		if err != nil {
			seen = err.Error()
		} else {
			for i := range p.Components {
				for _, e := range p.Components[i].Environments {
					if e.Environment == "prod" && e.Name == release && e.State == state {
						reached++
					}
				}
			}
			seen = fmt.Sprintf("%d of %d components", reached, len(p.Components))
		}
		if reached == n {
			return
		}
		select {
		case <-deadline.C:
			t.Fatalf("prod doesn't get to %s %s: %s", release, state, seen)
		case <-tick.C:
		}
	}
}

// sizedServer is a server in a process of its own.
type sizedServer struct{ process *os.Process }

func (s *sizingWorld) startServer(t *testing.T) *sizedServer {
	t.Helper()
	c := exec.CommandContext(t.Context(), "liftlock", "serve", "--config", filepath.Join(s.dir, "liftlock.yaml"))
	var log bytes.Buffer
	c.Stderr = &log
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	c.WaitDelay = 10 * time.Second
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		var exit *exec.ExitError
		if err := c.Wait(); err != nil && !errors.As(err, &exit) && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("the server's log:\n%s", &log)
		}
	})
	return &sizedServer{c.Process}
}

// memory is a field of the process's status, as proc(5) names them, in bytes.
func (s *sizedServer) memory(t *testing.T, field string) int64 {
	t.Helper()
	status, err := os.Open(fmt.Sprintf("/proc/%d/status", s.process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	defer status.Close() // it is only read
	for lines := bufio.NewScanner(status); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ":")
		if kib, ok := strings.CutSuffix(strings.TrimSpace(value), " kB"); ok && name == field {
			n, err := strconv.ParseInt(kib, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n * 1024
		}
	}
	t.Fatalf("the status of process %d has no %s", s.process.Pid, field)
	return 0
}

// peak is the most memory of the process that was resident, in bytes.
func (s *sizedServer) peak(t *testing.T) int64 {
	t.Helper()
	return s.memory(t, "VmHWM")
}

// use is what the process has taken so far, git's processes included once they have ended.
func (s *sizedServer) use(t *testing.T) string {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	// The fields after the program's name, which may have spaces: utime, stime, cutime and
	// cstime are the 12th to the 15th, in hundredths of a second (proc(5)).
	_, after, _ := bytes.Cut(stat, []byte(") "))
	ticks := int64(0)
	for _, f := range strings.Fields(string(after))[11:15] {
		v, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		ticks += v
	}
	return fmt.Sprintf("%s resident, at most %s, %.1f s of processor time", megabytes(s.memory(t, "VmRSS")), megabytes(s.peak(t)), float64(ticks)/100)
}

func megabytes(n int64) string { return fmt.Sprintf("%.0f MB", float64(n)/1e6) }

func folderSize(t *testing.T, dir string) int64 {
	t.Helper()
	total := int64(0)
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the server goes on meanwhile
		}
		total += info.Size()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return total
}

// callsOfAPI is how often each route of the forge's API was called: without Git, and with whatever
// was answered by 304 or refused.
func callsOfAPI(f *emulator.Forge) map[string]int {
	calls := f.Calls()
	maps.DeleteFunc(calls, func(route string, _ int) bool { return strings.Contains(route, ".git") })
	return calls
}

// countCalls is how often the forge's API was called.
func countCalls(f *emulator.Forge) int {
	total := 0
	for _, n := range callsOfAPI(f) {
		total += n
	}
	return total
}

// quietTime is longer than an edit of a comment is put off.
const quietTime = 35 * time.Second

// awaitQuiet waits until the forge's API hasn't been called for quietTime, and gives how often it was.
func awaitQuiet(t *testing.T, f *emulator.Forge) int {
	t.Helper()
	deadline, tick := time.NewTimer(10*time.Minute), time.NewTicker(500*time.Millisecond)
	defer deadline.Stop()
	defer tick.Stop()
	calls, since := countCalls(f), time.Now()
	for {
		select {
		case <-deadline.C:
			t.Fatalf("the forge's API is still called, %d times by now", calls)
		case <-tick.C:
		}
		if n := countCalls(f); n != calls {
			calls, since = n, time.Now()
		} else if time.Since(since) > quietTime {
			return calls
		}
	}
}

// logCallsByRoute says which calls the promotions took, the most frequent first.
func logCallsByRoute(t *testing.T, f *emulator.Forge, promotions int) {
	t.Helper()
	calls := callsOfAPI(f)
	routes := slices.SortedFunc(maps.Keys(calls), func(a, b string) int {
		return cmp.Or(cmp.Compare(calls[b], calls[a]), cmp.Compare(a, b))
	})
	for _, route := range routes {
		t.Logf("%7.2f a promotion: %s", float64(calls[route])/float64(promotions), route)
	}
}
