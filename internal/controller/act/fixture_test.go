package act

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/faulttest"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/internal/store"
)

const (
	bot     = "liftlock-bot"
	repoURL = "https://git.example/acme/fleet.git"
	console = "https://liftlock.example"
)

// fixture is an actor over real facts: a repository in memory with a mirror, a real
// store, and a forge and an Argo CD in memory. Nothing runs by itself.
type fixture struct {
	t        *testing.T
	remote   *git.MemoryRemote
	now      time.Time
	faults   faulttest.Faults
	forge    *fakeForge
	argocd   *fakeArgoCD
	metrics  fakeMetrics
	logs     *observer.ObservedLogs // warnings
	store    *store.Store
	repo     *facts.Repository
	gatherer *facts.Gatherer
	actor    *Actor
	batch    bool
	names    []string // of the components
	images   facts.ImageSource

	beforePush   func()
	away         bool // the remote, so that no call of it arrives
	refusePushes bool
}

// kindsOfBatch are the two ways in which a pipeline's components move.
var kindsOfBatch = map[string]struct {
	spec       string
	components []string
}{
	"one component": {"", []string{"web"}},
	"several":       {"  batch: environment\n", []string{"api", "web"}},
}

// eachKind runs a test for a pipeline whose one component moves alone and for one
// whose two move together.
func eachKind(t *testing.T, test func(w *fixture)) {
	t.Helper()
	t.Parallel()
	for name, k := range kindsOfBatch {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(newFixture(t, k.spec, k.components...))
		})
	}
}

// eachKindAndStore is eachKind over a store in memory, as the other tests have it, and
// over SQLite.
func eachKindAndStore(t *testing.T, test func(w *fixture)) {
	t.Helper()
	eachKind(t, test)
	for name, k := range kindsOfBatch {
		t.Run(name+" over SQLite", func(t *testing.T) {
			t.Parallel()
			test(newSQLiteFixture(t, k.spec, k.components...))
		})
	}
}

// newSQLiteFixture is newFixture over SQLite, of which each statement may fail.
func newSQLiteFixture(t *testing.T, spec string, components ...string) *fixture {
	t.Helper()
	return newFixtureOver(t, func(o store.Options) (*store.Store, error) {
		return store.Open(t.Context(), "sqlite://"+filepath.Join(t.TempDir(), "liftlock.db"), o)
	}, spec, components...)
}

// newFixture has components in dev and qa, all at 1.0.0.
func newFixture(t *testing.T, spec string, components ...string) *fixture {
	t.Helper()
	return newFixtureOver(t, func(o store.Options) (*store.Store, error) { return store.OpenMemory(o), nil }, spec, components...)
}

func newFixtureOver(t *testing.T, open func(store.Options) (*store.Store, error), spec string, components ...string) *fixture {
	t.Helper()
	w := &fixture{t: t, remote: git.NewMemoryRemote(), now: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC), names: components, batch: strings.Contains(spec, "batch")}
	m := git.OpenMemory(w.remote, git.MemoryOptions{Author: git.Ident{Name: "Liftlock", Email: "liftlock@example.org"},
		Now: func() time.Time { return w.now }, BeforeRemote: w.beforeRemote, AfterRemote: w.faults.AfterRemote})
	var err error
	w.store, err = open(store.Options{Now: func() time.Time { return w.now }, Intercept: w.faults.Intercept, InterceptStatement: w.faults.InterceptStatement})
	w.must(err)
	t.Cleanup(func() { _ = w.store.Close() })
	marks, err := facts.NewMarkSigner([]byte("a secret of the server's"))
	w.must(err)
	w.forge, w.argocd = newFakeForge(w), &fakeArgoCD{w: w}
	w.repo = &facts.Repository{ID: "hub:acme/fleet", Name: forge.Repo{Owner: "acme", Name: "fleet"}, Forge: w.forge, ForgeRef: "hub", Branch: "main", Mirror: m, URLs: []string{repoURL}, BotLogin: bot, Marks: marks}
	w.commit("Overlays", w.initialFiles(spec))
	w.start()
	return w
}

// beforeRemote is what comes before the mirror calls the remote.
func (w *fixture) beforeRemote(ctx context.Context, op string) error {
	if op == "push" && w.beforePush != nil {
		w.beforePush()
	}
	switch {
	case w.away:
		return &git.Error{Op: op + " the remote", Kind: git.ErrNoRepository}
	case op == "push" && w.refusePushes:
		return &git.Error{Op: op + " to the remote", Kind: git.ErrRejected}
	}
	return w.faults.BeforeRemote(ctx, op)
}

// start begins a process's life: nothing is remembered but what the store has.
func (w *fixture) start() {
	now := func() time.Time { return w.now }
	core, logs := observer.New(zap.WarnLevel)
	w.logs = logs
	w.gatherer = facts.New(facts.Options{Store: w.store, Resolver: appset.New(appset.Options{}), MainArgoCD: "hub", Repos: []*facts.Repository{w.repo},
		ArgoCDs: map[string]facts.ArgoCD{"hub": {Apps: w.argocd, Namespace: "argocd", NoRefresh: true}}, Images: w.images, Now: now, MaxAge: time.Hour})
	w.actor = New(Options{Store: &faultyStore{w.store, &w.faults}, Gatherer: w.gatherer, ArgoCDs: map[string]ArgoCD{"hub": w.argocd}, Console: console, Now: now, Log: zap.New(core), Metrics: &w.metrics, Owner: "me"})
}

func (w *fixture) initialFiles(spec string) map[string]string {
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
`, "CLONE", repoURL),
		".liftlock.yaml": `apiVersion: liftlock.dev/v1alpha1
kind: Pipeline
metadata: {name: shop}
spec:
  applicationSets: [{path: argocd/*.yaml}]
  component: '{{ index .path.segments 1 }}'
  environment: '{{ .path.basename }}'
  carry: [{kustomizeImages: ["registry.example/*"]}]
` + spec + `  environments:
    - {name: dev}
    - {name: qa, after: [dev], merge: auto}
`,
	}
	for _, c := range w.names {
		for _, env := range []string{"dev", "qa"} {
			files[kustomizationOf(c, env)] = kustomization(c, "1.0.0")
		}
	}
	return files
}

func kustomizationOf(component, env string) string {
	return "apps/" + component + "/" + env + "/kustomization.yaml"
}

func kustomization(component, tag string) string {
	return fmt.Sprintf("images:\n  - name: registry.example/%s\n    newTag: %q\n", component, tag)
}

func (w *fixture) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// ctx is the test's context; while each call counts it may be over from some moment on.
func (w *fixture) ctx() context.Context {
	if w.faults.Deep {
		return w.faults.Context(w.t.Context())
	}
	return w.t.Context()
}

// commit commits files to main, as somebody else.
func (w *fixture) commit(message string, files map[string]string) string {
	w.t.Helper()
	w.now = w.now.Add(time.Minute)
	m := w.repo.Mirror
	old, ok, err := m.Head(w.ctx(), "main")
	w.must(err)
	spec := git.CommitSpec{Message: message, When: w.now, Author: &git.Ident{Name: "linus", Email: "linus@example.org"}}
	if ok {
		spec.Parents, spec.Base = []string{old}, old
	}
	for name, text := range files {
		spec.Files = append(spec.Files, git.FileWrite{Path: name, Content: []byte(text)})
	}
	head, err := m.Write(w.ctx(), spec)
	w.must(err)
	w.setRemoteHead("main", head)
	w.fetch()
	return head
}

// release gives dev of all components another tag.
func (w *fixture) release(tag string) {
	w.t.Helper()
	files := map[string]string{}
	for _, c := range w.names {
		files[kustomizationOf(c, "dev")] = kustomization(c, tag)
	}
	w.commit("Release "+tag, files)
}

func (w *fixture) unit(component string) promotion.Unit {
	return promotion.Unit{Repo: w.repo.ID, Pipeline: "shop", Component: component}
}

// key is the component that the pull request's branch is named after.
func (w *fixture) key() string {
	if w.batch {
		return promotion.BatchName
	}
	return w.names[0]
}

// evaluate looks at the unit, some time later.
func (w *fixture) evaluate() (*facts.Evaluation, *promotion.Decision) {
	w.t.Helper()
	w.now = w.now.Add(time.Second)
	s, err := w.gatherer.Snapshot(w.ctx(), w.repo)
	w.must(err)
	ev, d, err := w.gatherer.Evaluate(w.ctx(), s, w.unit(w.key()), true)
	w.must(err)
	return ev, d
}

// do does an action that a decision doesn't have, or has.
func (w *fixture) do(ev *facts.Evaluation, d *promotion.Decision, a promotion.Action) error {
	component := 0
	if _, pull := a.(promotion.PullAction); pull {
		component = -1
	}
	return w.doStep(ev, d, promotion.Step{Component: component, Action: a})
}

func (w *fixture) doStep(ev *facts.Evaluation, d *promotion.Decision, s promotion.Step) error {
	_, err := w.actor.Do(w.ctx(), ev, d, s)
	return err
}

// decided is the first action of a kind in a decision.
func decided[A promotion.Action](w *fixture, d *promotion.Decision) A {
	w.t.Helper()
	for _, s := range d.Steps() {
		if a, ok := s.Action.(A); ok {
			return a
		}
	}
	var none A
	w.t.Fatalf("there is no %T among %v; %+v", none, d.Steps(), d.Components[0].Envs)
	return none
}

// verifyDev writes down that what dev has is verified.
func (w *fixture) verifyDev() {
	w.t.Helper()
	w.recordArrivals("dev", func(e *promotion.Env) promotion.Record {
		return promotion.Record{Environment: "dev", Release: e.Release.Value.ID, Commit: e.Landed.Value.Commit, Verified: true}
	})
}

func (w *fixture) recordArrivals(env string, record func(*promotion.Env) promotion.Record) {
	w.t.Helper()
	ev, d := w.evaluate()
	for i, c := range ev.Components {
		w.must(w.doStep(ev, d, promotion.Step{Component: i, Action: record(c.Env(env))}))
	}
}

// open has a release in dev promoted: its pull request is open.
func (w *fixture) open(tag string) int {
	w.t.Helper()
	w.evaluate() // what is there is the baseline
	w.release(tag)
	w.verifyDev()
	ev, d := w.evaluate()
	w.must(w.do(ev, d, decided[promotion.Open](w, d)))
	return len(w.forge.pulls)
}

// forgetOpening lets no opening have been interrupted.
func (w *fixture) forgetOpening() {
	w.t.Helper()
	s := subject{ev: &facts.Evaluation{Unit: w.unit(w.key())}, env: "qa"}
	w.must(w.store.Tx(w.ctx(), "test", func(tx *store.Tx) error { return tx.DeleteRecord(w.ctx(), openings.Key(s.opening())) }))
}

// hideRow has the store's row of a pull request tell of no component.
func (w *fixture) hideRow(number int) {
	w.t.Helper()
	row, _, err := w.store.Pull(w.ctx(), w.repo.ID, number)
	w.must(err)
	row.Component = ""
	w.must(w.store.Tx(w.ctx(), "test", func(tx *store.Tx) error { return tx.PutPulls(w.ctx(), row) }))
}

// events are the messages of a kind, or of any, oldest first.
func (w *fixture) events(kind string) []string {
	w.t.Helper()
	all, err := w.store.Events(w.ctx(), store.EventFilter{Limit: 1000})
	w.must(err)
	var out []string
	for _, e := range all {
		if kind == "" || e.Kind == kind {
			out = append(out, e.Component+": "+e.Message)
		}
	}
	return out
}

// promotionOf is the row of a component's part in a pull request.
func (w *fixture) promotionOf(component string, pull int) store.Promotion {
	w.t.Helper()
	p, ok, err := w.store.PromotionByPull(w.ctx(), wake.UnitName(w.unit(component)), w.repo.ID, pull)
	w.must(err)
	if !ok {
		w.t.Fatalf("nothing is written down of #%d of %s", pull, component)
	}
	return p
}

// faultyStore is the store with faults.
type faultyStore struct {
	*store.Store
	faults *faulttest.Faults
}

func (s *faultyStore) Tx(ctx context.Context, name string, do func(*store.Tx) error) error {
	return s.faults.Pass("store: "+name, func() error { return s.Store.Tx(faulttest.Passed(ctx), name, do) })
}

func (s *faultyStore) Record(ctx context.Context, key store.RecordKey) (data []byte, ok bool, err error) {
	err = s.faults.Pass("store: record", func() error {
		data, ok, err = s.Store.Record(faulttest.Passed(ctx), key)
		return err
	})
	return data, ok, err
}

func (s *faultyStore) PutRecord(ctx context.Context, key store.RecordKey, data []byte) error {
	return s.faults.Pass("store: put record", func() error { return s.Store.PutRecord(faulttest.Passed(ctx), key, data) })
}

func (s *faultyStore) PendingCommands(ctx context.Context, unit string) (out []store.PendingCommand, err error) {
	err = s.faults.Pass("store: commands", func() error {
		out, err = s.Store.PendingCommands(faulttest.Passed(ctx), unit)
		return err
	})
	return out, err
}

func (s *faultyStore) TakeSlot(ctx context.Context, name, owner string, ttl time.Duration) (ok bool, err error) {
	err = s.faults.Pass("store: take "+name, func() error {
		ok, err = s.Store.TakeSlot(faulttest.Passed(ctx), name, owner, ttl)
		return err
	})
	return ok, err
}

func (s *faultyStore) CountSlots(ctx context.Context, prefix string) (n int, err error) {
	err = s.faults.Pass("store: count "+prefix, func() error {
		n, err = s.Store.CountSlots(faulttest.Passed(ctx), prefix)
		return err
	})
	return n, err
}

func (s *faultyStore) FreeSlot(ctx context.Context, name, owner string) error {
	return s.faults.Pass("store: free "+name, func() error { return s.Store.FreeSlot(faulttest.Passed(ctx), name, owner) })
}

// fakeArgoCD has what the branch has, healthy, and remembers what it was asked for.
type fakeArgoCD struct {
	w        *fixture
	health   string
	requests []string
}

func (f *fakeArgoCD) Get(_, name string) (*verification.App, bool) {
	component, env, _ := strings.Cut(name, "-")
	health := "Healthy"
	if env == "qa" && f.health != "" {
		health = f.health
	}
	return &verification.App{ArgoCD: "hub", Name: name, Namespace: "argocd", UID: name, SyncStatus: "Synced", ComparedToSpec: true, Health: health, Revisions: []string{f.w.remoteHead("main")},
		ReconciledAt: f.w.now, Sources: []verification.Source{{RepoURL: repoURL, Path: "apps/" + component + "/" + env, TargetRevision: "main"}},
		Destination: verification.Destination{Server: "https://kubernetes.default.svc", Namespace: "shop"}}, true
}

func (f *fakeArgoCD) Ready() error { return nil }

func (f *fakeArgoCD) Refresh(_ context.Context, namespace, name string) error {
	return f.w.faults.Pass("argocd: refresh", func() error {
		f.requests = append(f.requests, "refresh "+namespace+"/"+name)
		return nil
	})
}

func (f *fakeArgoCD) Sync(_ context.Context, namespace, name string, request verification.SyncRequest) error {
	return f.w.faults.Pass("argocd: sync", func() error {
		f.requests = append(f.requests, fmt.Sprintf("sync %s/%s to %s, prune %s: %s", namespace, name, strings.Join(request.Revisions, " "), request.Prune, request.Reason))
		return nil
	})
}

// fakeMetrics is what the metrics were told.
type fakeMetrics struct{ recorded []string }

func (m *fakeMetrics) Stage(environment, stage string, took time.Duration) {
	m.recorded = append(m.recorded, fmt.Sprintf("%s %s %s", environment, stage, took))
}

func (m *fakeMetrics) Delivered(pipeline, environment string, d promotion.Delivery) {
	m.recorded = append(m.recorded, fmt.Sprintf("%s/%s %+v", pipeline, environment, d))
}

func (m *fakeMetrics) Reverted(environment string) {
	m.recorded = append(m.recorded, "reverted "+environment)
}

// command gives a command about a component in qa.
func (w *fixture) command(component, verb, source string) int64 {
	w.t.Helper()
	var id int64
	w.must(w.store.Tx(w.ctx(), "command", func(tx *store.Tx) (err error) {
		id, err = tx.PutPendingCommand(w.ctx(), store.PendingCommand{Unit: wake.UnitName(w.unit(component)), Environment: "qa", Verb: verb, By: "linus", Reason: "it smells", Source: source, At: w.now})
		return err
	}))
	return id
}
