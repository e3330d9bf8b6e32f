package controller

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/appset/evaluate"
	"github.com/liftlock/liftlock/internal/controller/act"
	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/github"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/proc/sandbox"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/world/emulator"
	"github.com/liftlock/liftlock/internal/world/faulttest"
	"github.com/liftlock/liftlock/policies"
)

// fixture is a controller over a repository on a forge, a real store and an Argo CD. Every
// Application there is as the test says, healthy unless told otherwise. Nothing runs by itself: a
// test runs one key after the other.
type fixture struct {
	*Controller
	t     *testing.T
	forge userForge
	// emulated is the forge where it is the emulated one.
	emulated *emulator.Forge
	clock    *clocktesting.FakeClock
	repo     *Repository
	// newProcess makes what a process of its own has of the forge and of Git.
	newProcess func() (forge.Forge, *git.Mirror)

	calls  atomic.Int64 // to the forge
	mu     sync.Mutex
	health map[string]string // by Application
	// These are by the purposes of the driver's calls of a forge in memory: how many calls there
	// were, and how those end whose purpose has the words.
	callsOf map[string]int
	faults  map[string]error
	// injected has one call after the other fail while a test says so.
	injected faulttest.Faults
	// retryDelay is how long after a failing call what it was made for is done again.
	retryDelay time.Duration
	// revision is what Argo CD says that it compares with; empty: what is fetched.
	revision string

	beforeGet func(name string)    // of an Application; nil: nothing
	endpoints facts.EndpointSource // likewise
	argocdErr error                // why its Argo CD can't be asked
	metrics   facts.MetricSource   // what gates ask; nil: nobody is asked
	floor     *policies.Approvals  // what the server's file asks for; nil: nothing
}

const (
	repoName = "acme/fleet"
	bot      = "liftlock-bot"
	// maxRefBytes bounds what a pull request's head brings in these tests.
	maxRefBytes = 1 << 17
	manualQA    = "    - {name: qa, after: [dev], merge: manual, verify: " + quickly + "}\n"
	autoQA      = "    - {name: qa, after: [dev], merge: auto, verify: " + quickly + "}\n"
	quickly     = "{arriveWithin: 1m, timeout: 1m, healthyFor: 1s, watch: 10m, debounce: 1s}"
)

// worldAccess is who may do what in the repository.
var worldAccess = map[string]emulator.Permission{bot: emulator.Admin, "ada": emulator.Write, "grace": emulator.Write, "rita": emulator.Read, "linus": emulator.Write, "mallory": emulator.NoPermission}

var liftlockIdent = git.Ident{Name: "Liftlock", Email: "liftlock@example.org"}

// newFixture has components in dev and, as an environment after it, what the lines say, on a
// forge in memory.
func newFixture(t *testing.T, spec, after string, components ...string) *fixture {
	t.Helper()
	t.Parallel()
	return newMemoryFixture(t, spec, after, components...)
}

// newMemoryFixture is newFixture for a test that has several.
func newMemoryFixture(t *testing.T, spec, after string, components ...string) *fixture {
	t.Helper()
	w := &fixture{t: t, clock: clocktesting.NewFakeClock(time.Now()), health: map[string]string{}, callsOf: map[string]int{}, faults: map[string]error{}}
	f := newMemoryForge(t, w.clock.Now, worldAccess, w.beforeCall)
	w.must(f.addRepo(worldFiles(f.CloneURL(repoName), spec, after, components), worldAccess))
	w.forge = f
	w.newProcess = func() (forge.Forge, *git.Mirror) {
		return f.forge.As(bot), git.OpenMemory(f.remote, git.MemoryOptions{Author: liftlockIdent, Now: w.clock.Now, BeforeRemote: w.injected.BeforeRemote, AfterRemote: w.injected.AfterRemote})
	}
	w.begin(components)
	return w
}

// newEmulatedFixture is one over HTTP and git's programs, for what is about those.
func newEmulatedFixture(t *testing.T, spec, after string, components ...string) *fixture {
	t.Helper()
	t.Parallel()
	w := &fixture{t: t, clock: clocktesting.NewFakeClock(time.Now()), health: map[string]string{}}
	f, err := emulator.NewForge(emulator.ForgeOptions{Dir: filepath.Join(t.TempDir(), "repositories"), Now: w.clock.Now})
	w.must(err)
	t.Cleanup(func() { _ = f.Close() })
	for login := range worldAccess {
		w.must(f.AddUser(login, "token-of-"+login, emulator.UserOptions{}))
	}
	w.must(f.CreateRepo(repoName, emulator.RepoOptions{Author: "linus", Message: "Overlays", Files: worldFiles(f.CloneURL(repoName), spec, after, components), Access: worldAccess}))
	w.forge, w.emulated = f, f
	w.newProcess = func() (forge.Forge, *git.Mirror) {
		driver, err := github.New(github.Options{URL: f.URL() + "/api/v3", Token: "token-of-" + bot, OnCall: func(string, int, time.Duration) { w.calls.Add(1) }})
		w.must(err)
		m, err := git.Open(t.Context(), git.Options{Dir: filepath.Join(t.TempDir(), "mirror"), URL: f.CloneURL(repoName), MaxRefBytes: maxRefBytes, Credentials: gitCredentials(driver), Author: liftlockIdent})
		w.must(err)
		t.Cleanup(func() { _ = m.Close() })
		return driver, m
	}
	w.begin(components)
	return w
}

// begin starts the fixture's first process, and has it look at the repository.
func (f *fixture) begin(components []string) {
	f.t.Helper()
	st, err := store.Open(f.t.Context(), "sqlite://"+filepath.Join(f.t.TempDir(), "liftlock.db"), store.Options{Now: f.clock.Now, Intercept: f.injected.Intercept, InterceptStatement: f.injected.InterceptStatement})
	f.must(err)
	f.t.Cleanup(func() { _ = st.Close() })
	f.addProcess(st, "me")
	f.runRepository()
	if s, err := f.opts.Gatherer.Targets.Snapshot(f.t.Context(), f.repo.Repository); err != nil || len(s.Pipelines) != 1 || len(s.Pipelines[0].Problems) > 0 || len(s.AllUnits()) != len(components) {
		f.t.Fatalf("the pipeline is not in force: %q %v %d, %v", s.PipelineErr, s.Pipelines[0].Problems, len(s.AllUnits()), err)
	}
}

// beforeCall counts the driver's calls of a forge in memory, and fails those that shall fail.
func (f *fixture) beforeCall(op string) error {
	f.calls.Add(1)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.callsOf[op]++
	for words, kind := range f.faults {
		if strings.Contains(op, words) {
			return &forge.Error{Op: op, Kind: kind, Message: "it shall fail"}
		}
	}
	if err := f.injected.Fail("forge: " + op); err != nil {
		return &forge.Error{Op: op, Kind: forge.ErrRetryable, Err: err}
	}
	return nil
}

// fail has the driver's calls fail that are for what the words say.
func (f *fixture) fail(words string, kind error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults[words] = kind
}

// failNothing ends all faults.
func (f *fixture) failNothing() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.faults)
}

// callsFor are how many of the driver's calls were for what the words say.
func (f *fixture) callsFor(words string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for op, count := range f.callsOf {
		if strings.Contains(op, words) {
			n += count
		}
	}
	return n
}

// addProcess makes the fixture run in a process of its own, with its own mirror, on a
// store that others may use too.
func (f *fixture) addProcess(st *store.Store, owner string) {
	f.t.Helper()
	driver, m := f.newProcess()
	_, err := m.Fetch(f.t.Context())
	f.must(err)
	var marks branch.MarkSigner
	if f.repo != nil {
		marks = f.repo.Marks
	}
	f.repo = &Repository{PollInterval: time.Hour, SweepInterval: time.Hour, Repository: &branch.Repository{ID: "hub:" + repoName, Name: forge.Repo{Owner: "acme", Name: "fleet"},
		Forge: driver, ForgeRef: "hub", Branch: "main", Mirror: m, URLs: []string{f.forge.CloneURL(repoName)}, BotLogin: bot, Marks: marks}}
	strangers, err := evaluate.NewRunner(sandbox.Limits{}, zap.NewNop())
	f.must(err)
	gatherer := facts.New(facts.Options{Store: st, Resolver: appset.New(appset.Options{}), Sandbox: strangers, MainArgoCD: "hub", Repos: []*branch.Repository{f.repo.Repository},
		ArgoCDs: map[string]branch.ArgoCD{"hub": {Apps: (*worldApps)(f), Namespace: "argocd", NoRefresh: true}}, Metrics: f.metrics, Endpoints: f.endpoints, Now: f.clock.Now, MaxAge: time.Hour,
		Floor: func(_ string, gates []policies.Gate) []policies.Gate { return policies.ApplyFloor(gates, f.floor) }})
	actor := act.New(act.Options{Store: st, Gatherer: gatherer, Now: f.clock.Now, Log: zap.NewNop(), Owner: owner, Console: "https://liftlock.example"})
	f.Controller = New(Options{Store: st, Gatherer: gatherer, Actor: actor, Repos: []*Repository{f.repo}, Clock: f.clock, Log: zap.NewNop(), Owner: owner})
}

func worldFiles(url, spec, after string, components []string) map[string]string {
	files := map[string]string{
		"argocd/shop.yaml": strings.ReplaceAll(`apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: shop, namespace: argocd}
spec:
  goTemplate: true
  generators: [{git: {repoURL: CLONE, revision: main, directories: [{path: apps/*/*}]}}]
  template:
    metadata: {name: '{{ index .path.segments 1 }}-{{ .path.basename }}'}
    spec:
      project: default
      source: {repoURL: CLONE, targetRevision: main, path: '{{ .path.path }}'}
      destination: {server: 'https://kubernetes.default.svc', namespace: shop}
`, "CLONE", url),
		".liftlock.yaml": `apiVersion: liftlock.dev/v1alpha1
kind: Pipeline
metadata: {name: shop}
spec:
  applicationSets: [{path: argocd/*.yaml}]
  component: '{{ index .path.segments 1 }}'
  environment: '{{ .path.basename }}'
  carry: [{kustomizeImages: ["registry.example/*"]}]
` + spec + `  environments:
    - {name: dev, verify: ` + quickly + "}\n" + after,
	}
	dev := "1.0.0"
	if strings.Contains(spec, "adopt: converge") {
		dev = "1.1.0" // something to adopt
	}
	for _, c := range components {
		files[kustomizationOf(c, "dev")], files[kustomizationOf(c, "qa")] = kustomization(c, dev), kustomization(c, "1.0.0")
	}
	return files
}

func kustomizationOf(component, env string) string {
	return "apps/" + component + "/" + env + "/kustomization.yaml"
}

func kustomization(component, tag string) string {
	return fmt.Sprintf("images:\n  - name: registry.example/%s\n    newTag: %q\n", component, tag)
}

// worldApps is the Argo CD of a world: all have what the branch has.
type worldApps fixture

func (w *worldApps) Get(_, name string) (*verification.App, bool) {
	if w.beforeGet != nil {
		w.beforeGet(name)
	}
	head, _, err := w.repo.Mirror.Head(context.Background(), "main")
	if err != nil {
		return nil, false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.revision != "" {
		head = w.revision
	}
	health := w.health[name]
	if health == "" {
		health = "Healthy"
	}
	component, env, _ := strings.Cut(name, "-")
	return &verification.App{ArgoCD: "hub", Name: name, Namespace: "argocd", UID: name, SyncStatus: "Synced", ComparedToSpec: true, Health: health, Revisions: []string{head},
		ReconciledAt: w.clock.Now(), Sources: []verification.Source{{RepoURL: w.repo.URLs[0], Path: "apps/" + component + "/" + env, TargetRevision: "main"}},
		Destination: verification.Destination{Server: "https://kubernetes.default.svc", Namespace: "shop"}}, true
}

func (w *worldApps) List() []verification.App { return nil }
func (w *worldApps) Ready() error             { return w.argocdErr }

func (f *fixture) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// run runs a key once, some time later, or, where calls are to fail, until none did.
func (f *fixture) run(k wake.Key) error {
	f.t.Helper()
	f.clock.Step(2 * time.Second)
	return f.failCalls(k.String(), func() error { return f.runNow(k) })
}

// runNow runs a key. Time goes on whenever the run waits for it.
func (f *fixture) runNow(k wake.Key) error {
	f.t.Helper()
	done := make(chan error, 1)
	go func() {
		_, err := f.runKey(f.t.Context(), k.String())
		done <- err
	}()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-tick.C:
			if f.clock.HasWaiters() {
				f.clock.Step(firstMergeableDelay)
			}
		}
	}
}

func (f *fixture) runRepository() {
	f.t.Helper()
	f.must(f.run(wake.ForRepository(f.repo.ID)))
}

func (f *fixture) unit(component string) promotion.Unit {
	return promotion.Unit{Repo: f.repo.ID, Pipeline: "shop", Component: component}
}

// settle runs a unit and its repository's merges until something is so.
func (f *fixture) settle(component, what string, so func() bool) {
	f.t.Helper()
	for range 30 {
		for _, k := range []wake.Key{wake.ForUnit(f.unit(component)), wake.ForMerge(f.repo.ID)} {
			if err := f.run(k); err != nil && !isStale(err) {
				f.t.Fatalf("%s: %v", k, err)
			}
		}
		f.runRepository()
		if so() {
			return
		}
	}
	f.t.Fatalf("it never came to that: %s", what)
}

// release commits new images of components to dev.
func (f *fixture) release(tag string, components ...string) {
	f.t.Helper()
	files := map[string]string{}
	for _, c := range components {
		files[kustomizationOf(c, "dev")] = kustomization(c, tag)
	}
	_, err := f.forge.CommitAs(repoName, "linus", "main", "Release "+tag, files)
	f.must(err)
	f.runRepository()
}

// pulls are all pull requests, oldest first.
func (f *fixture) pulls() []emulator.PullRequest {
	f.t.Helper()
	out, err := f.forge.Pulls(repoName)
	f.must(err)
	return out
}

// openOne makes releases and waits for the one pull request that they lead to.
func (f *fixture) openOne(key, tag string, components ...string) emulator.PullRequest {
	f.t.Helper()
	f.must(f.run(wake.ForUnit(f.unit(key)))) // the baseline is written down
	before := len(f.pulls())
	f.release(tag, components...)
	f.settle(key, "a pull request is open", func() bool { return len(f.pulls()) > before })
	return f.pulls()[len(f.pulls())-1]
}

func (f *fixture) command(by string, pull int, component string, c command.Command) (string, error) {
	f.t.Helper()
	f.clock.Step(2 * time.Second)
	var reply string
	err := f.failCalls("/"+string(c.Verb), func() (err error) {
		reply, err = f.ExecuteCommand(f.t.Context(), Command{Unit: f.unit(component), Pull: pull, Command: c, By: by, Via: "comment", Source: fmt.Sprintf("test %d %s %s", pull, by, c.Verb)})
		return err
	})
	return reply, err
}

// gitCredentials are those that a driver has for the repository.
func gitCredentials(driver forge.Forge) git.Credentials {
	owner, name, _ := strings.Cut(repoName, "/")
	return func(ctx context.Context) (string, string, error) {
		return driver.GitAuth(ctx, forge.Repo{Owner: owner, Name: name})
	}
}

// signMarks has the server know its pull requests again by a secret of its own, as every server does.
func (f *fixture) signMarks() {
	marks, err := branch.NewMarkSigner([]byte("a secret of the server's, long enough"))
	f.must(err)
	f.repo.Marks = marks
}
