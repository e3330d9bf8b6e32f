package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	"k8s.io/utils/clock"

	"github.com/liftlock/liftlock/internal/cache"
	"github.com/liftlock/liftlock/internal/cache/lock"
	"github.com/liftlock/liftlock/internal/controller/act"
	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/internal/store"
)

// Repository is a tracked repository with how it is looked after.
type Repository struct {
	*branch.Repository
	PollInterval  time.Duration
	SweepInterval time.Duration
	Hook          *forge.Hook // nil: hooks aren't managed
	Onboard       bool        // it is proposed a pipeline file while it has none
	// DiscoverInterval is how often new tags and versions are looked for.
	DiscoverInterval time.Duration
}

// Options are the controller's parts. All are required but Metrics, Caches, Propose and Versions, and those whose zero
// value is explained.
type Options struct {
	Store     *store.Store
	Gatherer  *facts.Gatherer
	Actor     *act.Actor
	Repos     []*Repository
	Awaited   []string // repositories of the server's file that are reached later: AddRepository
	Clock     clock.WithTicker
	Log       *zap.Logger
	Metrics   Metrics
	Owner     string // this process; nobody else uses it
	Workers   int
	Lease     time.Duration // of the store's claims; 0: store.DefaultLease
	Retention time.Duration // how long history is kept
	Caches    *cache.Group  // for metrics; nil: nobody asks
	Propose   Propose       // nil: no repository is proposed a pipeline file
	Versions  Versions      // nil: nothing is discovered
}

// Metrics is told how runs, and the checks of people's pull requests, end, which gates are skipped, and
// how long what came in by itself took from when it was first seen to its commit.
type Metrics interface {
	Run(kind string, took time.Duration, err error)
	Check(took time.Duration, failed bool)
	Skipped(pipeline, environment, gate string)
	Discovered(pipeline, environment string, took time.Duration)
}

// Controller runs the keys. Run may be called once.
type Controller struct {
	opts       Options
	queryLimit *command.RateLimit

	// units keeps a unit's own run and its merge, which run under different keys, apart in
	// this process. Between processes the store's slots and the forge's compare-and-swap do.
	units lock.Keyed[promotion.Unit]

	checkSlots *checkSlots // a place for each evaluation of a stranger's pull request

	claims  *runningClaims
	stepped int // claims of Step so far

	apps          *applicationIndex
	pending       *pendingWakes
	slow          slowRuns
	failures      failingRuns
	fetchRequests *fetchRequests
	fresh         *freshness
	archived      *restingRepos
	replaced      *restingRepos

	mu        sync.Mutex
	reposByID map[string]*Repository // nil: not reached yet
	// repositories whose units this process has evaluated, and their snapshot's turn then
	seenGenerations map[string]uint64
	lastLooks       map[string]repositoryLook // by repository
	staleMerges     map[string]int            // by unit: how often in a row a merge came too early
	pipelineErrs    map[string]string         // why pipeline files can't be used, by repository
	emptyPipelines  map[PipelineID]string     // why those have no component that have none
}

// New makes a controller.
func New(o Options) *Controller {
	if o.Workers == 0 {
		o.Workers = defaultWorkers
	}
	if o.Lease == 0 {
		o.Lease = store.DefaultLease
	}
	if o.Retention == 0 {
		o.Retention = defaultRetention
	}
	e := &Controller{opts: o, reposByID: map[string]*Repository{}, queryLimit: command.NewRateLimit(o.Clock.Now),
		checkSlots: newCheckSlots(o.Clock.Now),
		apps:       newApplicationIndex(), pending: newPendingWakes(), claims: newRunningClaims(), archived: newRestingRepos(),
		replaced: newRestingRepos(), fetchRequests: newFetchRequests(o.Caches), fresh: newFreshness(o.Owner),
		failures:        failingRuns{now: o.Clock.Now, byKey: map[string]Failure{}},
		seenGenerations: map[string]uint64{}, lastLooks: map[string]repositoryLook{}, staleMerges: map[string]int{},
		pipelineErrs: map[string]string{}, emptyPipelines: map[PipelineID]string{}}
	for _, id := range o.Awaited {
		e.reposByID[id] = nil
	}
	for _, r := range o.Repos {
		e.reposByID[r.ID] = r
	}
	return e
}

const (
	// defaultWorkers is how many keys run at once: they mostly wait for the forge.
	defaultWorkers = 8
	// defaultRetention is how long deliveries, events and the audit trail are kept.
	defaultRetention = 90 * 24 * time.Hour
)

// Start wakes everything that a fresh process must look at.
func (co *Controller) Start(ctx context.Context) error {
	keys := urgentKeys{}
	for _, r := range co.repositories() {
		keys.add(store.Normal, wake.ForRepository(r.ID))
		keys.add(store.Background, wake.ForSweep(r.ID))
		if co.opts.Versions != nil {
			keys.add(store.Background, wake.ForDiscovery(r.ID))
		}
		if r.Hook != nil {
			keys.add(store.Background, wake.ForHook(r.ID))
		}
	}
	if err := co.wakeAll(ctx, "start", keys); err != nil {
		return fmt.Errorf("wake the repositories: %w", err)
	}
	return nil
}

// AddRepository takes up a repository that has been reached only now, and looks again at
// all others: their targets may be generated from it.
func (co *Controller) AddRepository(ctx context.Context, r *Repository) error {
	co.opts.Gatherer.Targets.AddRepository(r.Repository)
	co.mu.Lock()
	co.reposByID[r.ID] = r
	co.mu.Unlock()
	return co.Start(ctx)
}

// repository finds one by its name; awaited: it is in the server's file and has not been
// reached yet.
func (co *Controller) repository(id string) (r *Repository, awaited bool) {
	co.mu.Lock()
	defer co.mu.Unlock()
	r, known := co.reposByID[id]
	return r, known && r == nil
}

// repositories are those that have been reached.
func (co *Controller) repositories() []*Repository {
	co.mu.Lock()
	defer co.mu.Unlock()
	out := make([]*Repository, 0, len(co.reposByID))
	for _, id := range slices.Sorted(maps.Keys(co.reposByID)) {
		if r := co.reposByID[id]; r != nil {
			out = append(out, r)
		}
	}
	return out
}

// errPutOff says that a key was not run, and when to try it: it has neither failed nor succeeded.
var errPutOff = errors.New("the run was put off")

// awaitedDelay is how long a key waits whose repository has not been reached yet.
const awaitedDelay = 5 * time.Second

// runKey runs one key and says when it wants to run again at the latest. Keys of
// repositories that the server's file no longer names are dropped.
func (co *Controller) runKey(ctx context.Context, key string) (time.Time, error) {
	k, ok := wake.Parse(key)
	if !ok {
		co.opts.Log.Warn("a key of an unknown kind is dropped", zap.String("key", key))
		return time.Time{}, nil
	}
	r, awaited := co.repository(k.Repository)
	switch {
	case awaited:
		return co.opts.Clock.Now().Add(awaitedDelay), errPutOff // another process may reach it
	case r == nil:
		return time.Time{}, nil
	}
	if co.slow.isHanging(k.Repository) {
		return co.opts.Clock.Now().Add(hangingDelay), errPutOff
	}
	return co.runUnlessReplaced(ctx, r, k)
}

// runOf runs a key of a repository.
func (co *Controller) runOf(ctx context.Context, r *Repository, k wake.Key) (time.Time, error) {
	switch k.Kind {
	case wake.Repository:
		return co.runRepo(ctx, r)
	case wake.Sweep:
		return co.runSweep(ctx, r)
	case wake.Hook:
		return co.runHook(ctx, r)
	case wake.MergeGroup:
		return co.runMergeGroup(ctx, r, k.Branch)
	case wake.Rules:
		return time.Time{}, co.runRules(ctx, r)
	case wake.Checks:
		return time.Time{}, co.runChecks(ctx, r, k.Commit)
	case wake.Source:
		return time.Time{}, co.runSource(ctx, r, k.Source)
	case wake.Merge:
		return co.runMergeQueue(ctx, r)
	case wake.Onboarding:
		return co.runOnboarding(ctx, r)
	case wake.Discovery:
		return co.runDiscovery(ctx, r)
	case wake.PullRequest:
		return co.runPull(ctx, r, k.Number)
	default:
		return co.runUnit(ctx, r, k.Unit())
	}
}

// AppChanged is told of every change that the watch reports, and wakes the units that the
// Application belongs to. Units that waited for it run at once, where the last Application that
// they wait for has come to rest. A mere reconciliation only concerns a unit that waits for it.
func (co *Controller) AppChanged(a verification.App, deleted bool) {
	co.opts.Gatherer.Health.RecordApp(a, deleted)
	id, name := applicationID{a.ArgoCD, a.Namespace, a.Name}, applicationName(a.ArgoCD, a.Name)
	keys, state := co.apps.keysOfChange(a, deleted, co.opts.Clock.Now())
	for _, k := range keys {
		how := wakeAfterBurst
		switch {
		case isBreaking(&a):
			how = wakeUrgently
		case co.apps.isAwaiting(k, name) && co.apps.isAwaitedSettled(k):
			how = wakeAtOnce
		}
		if state == "" {
			co.pending.add(false, how, k)
		} else {
			co.pending.addState(how, id, state, k)
		}
	}
}

// isBreaking says that an Application may have to be taken back.
func isBreaking(a *verification.App) bool {
	return a.HasBadHealth() || a.HasFailedSync()
}

// WindowsChanged is told that the sync windows that may be about some Applications are others,
// and wakes the units whose targets those are.
func (co *Controller) WindowsChanged(apps []verification.App) {
	for i := range apps {
		co.pending.add(false, wakeAfterBurst, co.apps.keysOfTarget(&apps[i])...)
	}
}

// InputsChanged is told that something changed that targets depend on besides
// Git: a live ApplicationSet, a project, a cluster, what is written into an
// Application. It wakes the repositories whose targets were resolved from it.
func (co *Controller) InputsChanged() { co.pending.add(true, wakeAfterBurst) }

// ArgoCDReachable is told that an Argo CD can be asked again, and wakes the units that
// were evaluated while it couldn't be.
func (co *Controller) ArgoCDReachable(argocd string) {
	co.pending.add(false, wakeAfterBurst, co.apps.takeUnreachable(argocd)...)
}

// storeWakes writes the wakes of what was heard from Argo CD to the store.
func (co *Controller) storeWakes(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-co.pending.notified:
		}
		if !co.storePending(ctx, co.wakePending) && !co.sleepFor(ctx, minRetryDelay) {
			return
		}
	}
}

// urgentKeys are keys to wake, by how urgent they are.
type urgentKeys map[store.Urgency][]wake.Key

func (uk urgentKeys) add(u store.Urgency, keys ...wake.Key) { uk[u] = append(uk[u], keys...) }

// wake wakes the keys at the transaction's end.
func (uk urgentKeys) wake(ctx context.Context, tx *store.Tx) error {
	for urgency, keys := range uk {
		if err := tx.WakeAs(ctx, urgency, wake.Strings(keys...)...); err != nil {
			return err
		}
	}
	return nil
}

// wakeAll wakes keys, all at once.
func (co *Controller) wakeAll(ctx context.Context, why string, keys urgentKeys) error {
	return co.opts.Store.Tx(ctx, why, func(tx *store.Tx) error { return keys.wake(ctx, tx) })
}

func (co *Controller) wakePending(ctx context.Context, wakes wakesByKind) error {
	now := co.opts.Clock.Now()
	return co.opts.Store.Tx(ctx, "notified", func(tx *store.Tx) error {
		for how, keys := range wakes {
			var err error
			if how.delay > 0 {
				err = tx.WakeAt(ctx, now.Add(how.delay), wake.Strings(keys...)...)
			} else {
				err = tx.WakeAs(ctx, how.urgency, wake.Strings(keys...)...)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// storePending writes what is pending. Keys that can't be written are kept: nothing else reports
// them again.
func (co *Controller) storePending(ctx context.Context, write func(context.Context, wakesByKind) error) bool {
	inputsChanged, keys := co.pending.take()
	wakes, err := co.withoutJudged(ctx, keys)
	if inputsChanged {
		for _, repo := range co.opts.Gatherer.Targets.Outdated(ctx) {
			wakes.add(wakeAfterBurst, wake.ForRepository(repo))
		}
	}
	if err == nil {
		err = write(ctx, wakes)
	}
	if err == nil {
		return true
	}
	co.pending.restore(inputsChanged, keys)
	if ctx.Err() == nil {
		urgent := 0
		for _, k := range keys {
			if k.how == wakeUrgently {
				urgent++
			}
		}
		co.opts.Log.Error("news of Argo CD, or of a refused delivery, could not be noted; trying again", zap.Int("urgent", urgent),
			zap.Int("others", len(keys)-urgent), zap.Error(err))
	}
	return false
}

// withoutJudged are the keys, by how they are to be woken, without those that were only to run for
// states of Applications that some process has judged.
func (co *Controller) withoutJudged(ctx context.Context, keys map[wake.Key]pendingKey) (wakesByKind, error) {
	out := wakesByKind{}
	for k, pending := range keys {
		if pending.states != nil {
			judged, err := co.wereJudged(ctx, k.Unit(), pending.digests())
			if err != nil {
				return out, err
			}
			if judged {
				continue
			}
		}
		out.add(pending.how, k)
	}
	return out, nil
}

// PipelineErrors says, by repository, why the pipeline files on the tracked branch can't
// be used, as of the last look.
func (co *Controller) PipelineErrors() map[string]string {
	co.mu.Lock()
	defer co.mu.Unlock()
	return maps.Clone(co.pipelineErrs)
}

// PipelineID names a pipeline of a repository.
type PipelineID struct{ Repo, Name string }

// EmptyPipelines says of the pipelines without a component why they have none, as of the last
// look.
func (co *Controller) EmptyPipelines() map[PipelineID]string {
	co.mu.Lock()
	defer co.mu.Unlock()
	return maps.Clone(co.emptyPipelines)
}

// NotificationRoutes says which events of a pipeline each channel is told of, by the rules
// in force; false: they can't be read now.
func (co *Controller) NotificationRoutes(ctx context.Context, repo, name string) (map[string][]string, bool) {
	r, awaited := co.repository(repo)
	if r == nil {
		return nil, !awaited
	}
	s, err := co.opts.Gatherer.Targets.Snapshot(ctx, r.Repository)
	if err != nil {
		return nil, false
	}
	routes := map[string][]string{}
	if p := s.Pipeline(name); p != nil {
		for _, n := range p.Spec.Notify {
			routes[n.To] = append(routes[n.To], n.On...)
		}
	}
	return routes, true
}

// PullURL is a pull request's address on the forge, as far as it was read before; else
// empty.
func (co *Controller) PullURL(ctx context.Context, repo string, number int) string {
	pr, err := co.opts.Gatherer.PullCache.KnownPull(ctx, repo, number)
	if err != nil || pr == nil {
		return ""
	}
	return pr.URL
}

// ClusterFileProblems says, by a clusters file's path, why it can't be used.
func (co *Controller) ClusterFileProblems() map[string]string {
	return co.opts.Gatherer.Targets.ClusterFileProblems()
}

// FailingRuns are the runs that failed last time, by key: what a person may have to
// see to.
func (co *Controller) FailingRuns() map[string]Failure { return co.failures.list() }

// DeploymentRefusals are the repositories of which the forge takes no deployments, by ID.
func (co *Controller) DeploymentRefusals() map[string]act.Refusal {
	return co.opts.Actor.DeploymentRefusals()
}
