package act

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/facts/people"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/world/faulttest"
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
	repo     *branch.Repository
	gatherer *facts.Gatherer
	actor    *Actor
	batch    bool
	names    []string // of the components
	images   people.ImageSource

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

// newFixture has components in dev and qa, all at 1.0.0.
func newFixture(t *testing.T, spec string, components ...string) *fixture {
	t.Helper()
	w := &fixture{t: t, remote: git.NewMemoryRemote(), now: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC), names: components, batch: strings.Contains(spec, "batch")}
	m := git.OpenMemory(w.remote, git.MemoryOptions{Author: git.Ident{Name: "Liftlock", Email: "liftlock@example.org"},
		Now: func() time.Time { return w.now }, BeforeRemote: w.beforeRemote, AfterRemote: w.faults.AfterRemote})
	w.store = store.OpenMemory(store.Options{Now: func() time.Time { return w.now }, Intercept: w.faults.Intercept, InterceptStatement: w.faults.InterceptStatement})
	t.Cleanup(func() { _ = w.store.Close() })
	marks, err := branch.NewMarkSigner([]byte("a secret of the server's"))
	w.must(err)
	w.forge, w.argocd = newFakeForge(w), &fakeArgoCD{w: w}
	w.repo = &branch.Repository{ID: "hub:acme/fleet", Name: forge.Repo{Owner: "acme", Name: "fleet"}, Forge: w.forge, ForgeRef: "hub", Branch: "main", Mirror: m, URLs: []string{repoURL}, BotLogin: bot, Marks: marks}
	w.commit("Overlays", w.initialFiles(spec))
	w.start()
	return w
}

// beforeRemote is what comes before the mirror calls the remote.
func (f *fixture) beforeRemote(ctx context.Context, op string) error {
	if op == "push" && f.beforePush != nil {
		f.beforePush()
	}
	switch {
	case f.away:
		return &git.Error{Op: op + " the remote", Kind: git.ErrNoRepository}
	case op == "push" && f.refusePushes:
		return &git.Error{Op: op + " to the remote", Kind: git.ErrRejected}
	}
	return f.faults.BeforeRemote(ctx, op)
}

// start begins a process's life: nothing is remembered but what the store has.
func (f *fixture) start() {
	now := func() time.Time { return f.now }
	core, logs := observer.New(zap.WarnLevel)
	f.logs = logs
	f.gatherer = facts.New(facts.Options{Store: f.store, Resolver: appset.New(appset.Options{}), MainArgoCD: "hub", Repos: []*branch.Repository{f.repo},
		ArgoCDs: map[string]branch.ArgoCD{"hub": {Apps: f.argocd, Namespace: "argocd", NoRefresh: true}}, Images: f.images, Now: now, MaxAge: time.Hour})
	f.actor = New(Options{Store: &faultyStore{f.store, &f.faults}, Gatherer: f.gatherer, ArgoCDs: map[string]ArgoCD{"hub": f.argocd}, Console: console, Now: now, Log: zap.New(core), Metrics: &f.metrics, Owner: "me"})
}

func (f *fixture) initialFiles(spec string) map[string]string {
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
	for _, c := range f.names {
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

func (f *fixture) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// ctx is the test's context; while each call counts it may be over from some moment on.
func (f *fixture) ctx() context.Context {
	if f.faults.Deep {
		return f.faults.Context(f.t.Context())
	}
	return f.t.Context()
}

// commit commits files to main, as somebody else.
func (f *fixture) commit(message string, files map[string]string) string {
	f.t.Helper()
	f.now = f.now.Add(time.Minute)
	m := f.repo.Mirror
	old, ok, err := m.Head(f.ctx(), "main")
	f.must(err)
	spec := git.CommitSpec{Message: message, When: f.now, Author: &git.Ident{Name: "linus", Email: "linus@example.org"}}
	if ok {
		spec.Parents, spec.Base = []string{old}, old
	}
	for name, text := range files {
		spec.Files = append(spec.Files, git.FileWrite{Path: name, Content: []byte(text)})
	}
	head, err := m.Write(f.ctx(), spec)
	f.must(err)
	f.setRemoteHead("main", head)
	f.fetch()
	return head
}

// release gives dev of all components another tag.
func (f *fixture) release(tag string) {
	f.t.Helper()
	files := map[string]string{}
	for _, c := range f.names {
		files[kustomizationOf(c, "dev")] = kustomization(c, tag)
	}
	f.commit("Release "+tag, files)
}

func (f *fixture) unit(component string) promotion.Unit {
	return promotion.Unit{Repo: f.repo.ID, Pipeline: "shop", Component: component}
}

// key is the component that the pull request's branch is named after.
func (f *fixture) key() string {
	if f.batch {
		return promotion.BatchName
	}
	return f.names[0]
}

// evaluate looks at the unit, some time later.
func (f *fixture) evaluate() (*facts.Evaluation, *promotion.Decision) {
	f.t.Helper()
	f.now = f.now.Add(time.Second)
	s, err := f.gatherer.Targets.Snapshot(f.ctx(), f.repo)
	f.must(err)
	ev, d, err := f.gatherer.Evaluate(f.ctx(), s, f.unit(f.key()), true)
	f.must(err)
	return ev, d
}

// do does an action that a decision doesn't have, or has.
func (f *fixture) do(ev *facts.Evaluation, d *promotion.Decision, a promotion.Action) error {
	component := 0
	if _, pull := a.(promotion.PullAction); pull {
		component = -1
	}
	return f.doStep(ev, d, promotion.Step{Component: component, Action: a})
}

func (f *fixture) doStep(ev *facts.Evaluation, d *promotion.Decision, s promotion.Step) error {
	_, err := f.actor.Do(f.ctx(), ev, d, s)
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
func (f *fixture) verifyDev() {
	f.t.Helper()
	f.recordArrivals("dev", func(e *promotion.Env) promotion.Record {
		return promotion.Record{Environment: "dev", Release: e.Release.Value.ID, Commit: e.Landed.Value.Commit, Verified: true}
	})
}

func (f *fixture) recordArrivals(env string, record func(*promotion.Env) promotion.Record) {
	f.t.Helper()
	ev, d := f.evaluate()
	for i, c := range ev.Components {
		f.must(f.doStep(ev, d, promotion.Step{Component: i, Action: record(c.Env(env))}))
	}
}

// open has a release in dev promoted: its pull request is open.
func (f *fixture) open(tag string) int {
	f.t.Helper()
	f.evaluate() // what is there is the baseline
	f.release(tag)
	f.verifyDev()
	ev, d := f.evaluate()
	f.must(f.do(ev, d, decided[promotion.Open](f, d)))
	return len(f.forge.pulls)
}

// forgetOpening lets no opening have been interrupted.
func (f *fixture) forgetOpening() {
	f.t.Helper()
	s := subject{ev: &facts.Evaluation{Basis: branch.Basis{Unit: f.unit(f.key())}}, env: "qa"}
	f.must(f.store.Tx(f.ctx(), "test", func(tx *store.Tx) error { return tx.DeleteRecord(f.ctx(), openings.Key(s.opening())) }))
}

// hideRow has the store's row of a pull request tell of no component.
func (f *fixture) hideRow(number int) {
	f.t.Helper()
	row, _, err := f.store.Pull(f.ctx(), f.repo.ID, number)
	f.must(err)
	row.Component = ""
	f.must(f.store.Tx(f.ctx(), "test", func(tx *store.Tx) error { return tx.PutPulls(f.ctx(), row) }))
}

// events are the messages of a kind, or of any, oldest first.
func (f *fixture) events(kind string) []string {
	f.t.Helper()
	all, err := f.store.Events(f.ctx(), store.EventFilter{Limit: 1000})
	f.must(err)
	var out []string
	for _, e := range all {
		if kind == "" || string(e.Kind) == kind {
			out = append(out, e.Component+": "+e.Message)
		}
	}
	return out
}

// promotionOf is the row of a component's part in a pull request.
func (f *fixture) promotionOf(component string, pull int) store.Promotion {
	f.t.Helper()
	p, ok, err := f.store.PromotionByPull(f.ctx(), wake.UnitName(f.unit(component)), f.repo.ID, pull)
	f.must(err)
	if !ok {
		f.t.Fatalf("nothing is written down of #%d of %s", pull, component)
	}
	return p
}

// faultyStore is the store with faults.
type faultyStore struct {
	*store.Store
	faults *faulttest.Faults
}

func (f *faultyStore) Tx(ctx context.Context, name string, do func(*store.Tx) error) error {
	return f.faults.Pass("store: "+name, func() error { return f.Store.Tx(faulttest.Passed(ctx), name, do) })
}

func (f *faultyStore) Record(ctx context.Context, key store.RecordKey) (data []byte, ok bool, err error) {
	err = f.faults.Pass("store: record", func() error {
		data, ok, err = f.Store.Record(faulttest.Passed(ctx), key)
		return err
	})
	return data, ok, err
}

func (f *faultyStore) PutRecord(ctx context.Context, key store.RecordKey, data []byte) error {
	return f.faults.Pass("store: put record", func() error { return f.Store.PutRecord(faulttest.Passed(ctx), key, data) })
}

func (f *faultyStore) PendingCommands(ctx context.Context, unit string) (out []store.PendingCommand, err error) {
	err = f.faults.Pass("store: commands", func() error {
		out, err = f.Store.PendingCommands(faulttest.Passed(ctx), unit)
		return err
	})
	return out, err
}

func (f *faultyStore) TakeSlot(ctx context.Context, name, owner string, ttl time.Duration) (ok bool, err error) {
	err = f.faults.Pass("store: take "+name, func() error {
		ok, err = f.Store.TakeSlot(faulttest.Passed(ctx), name, owner, ttl)
		return err
	})
	return ok, err
}

func (f *faultyStore) CountSlots(ctx context.Context, prefix string) (n int, err error) {
	err = f.faults.Pass("store: count "+prefix, func() error {
		n, err = f.Store.CountSlots(faulttest.Passed(ctx), prefix)
		return err
	})
	return n, err
}

func (f *faultyStore) FreeSlot(ctx context.Context, name, owner string) error {
	return f.faults.Pass("store: free "+name, func() error { return f.Store.FreeSlot(faulttest.Passed(ctx), name, owner) })
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

func (f *fakeMetrics) Stage(environment, stage string, took time.Duration) {
	f.recorded = append(f.recorded, fmt.Sprintf("%s %s %s", environment, stage, took))
}

func (f *fakeMetrics) Delivered(pipeline, environment string, d promotion.Delivery) {
	f.recorded = append(f.recorded, fmt.Sprintf("%s/%s %+v", pipeline, environment, d))
}

func (f *fakeMetrics) Reverted(environment string) {
	f.recorded = append(f.recorded, "reverted "+environment)
}

// command gives a command about a component in qa.
func (f *fixture) command(component, verb, source string) int64 {
	f.t.Helper()
	var id int64
	f.must(f.store.Tx(f.ctx(), "command", func(tx *store.Tx) (err error) {
		id, err = tx.PutPendingCommand(f.ctx(), store.PendingCommand{Unit: wake.UnitName(f.unit(component)), Environment: "qa", Verb: verb, By: "linus", Reason: "it smells", Source: source, At: f.now})
		return err
	}))
	return id
}
