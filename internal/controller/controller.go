package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	"k8s.io/utils/clock"

	"github.com/liftlock/liftlock/internal/controller/act"
	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/internal/store"
)

// Repository is a tracked repository with how it is looked after.
type Repository struct {
	*facts.Repository
	PollInterval  time.Duration
	SweepInterval time.Duration
	Hook          *forge.Hook // nil: hooks aren't managed
}

// Options are the engine's parts. All are required but Metrics.
type Options struct {
	Store     *store.Store
	Gatherer  *facts.Gatherer
	Actor     *act.Actor
	Repos     []*Repository
	Clock     clock.WithTicker
	Log       *zap.Logger
	Metrics   Metrics
	Owner     string // this process; nobody else uses it
	Workers   int
	Retention time.Duration // how long history is kept
}

// Metrics is told how runs, and the checks of people's pull requests, end.
type Metrics interface {
	Run(kind string, took time.Duration, err error)
	Check(took time.Duration, failed bool)
}

// Controller runs the keys. Run may be called once.
type Controller struct {
	opts       Options
	reposByID  map[string]*Repository
	queryLimit *command.RateLimit

	checkSlots chan struct{} // a place for each evaluation of a stranger's pull request

	mu               sync.Mutex
	appStates        map[string]appState // by Argo CD and name: what was last heard
	activeUnits      map[string]bool     // units for which even a mere reconciliation is news
	unitLocks        map[string]*sync.Mutex
	unitsByApp       map[string][]string // unit keys by application, from the last snapshots
	seenGenerations  map[string]uint64   // repositories whose units this process has looked at, and their snapshot's turn then
	failingRuns      map[string]Failure  // runs that failed last time, by key
	fetchedRevisions map[string]bool     // revisions that were fetched for
	awaitingFetch    map[string]string   // unit keys that wait for such a fetch, and of which repository
	pipelineErrs     map[string]string   // why pipeline files can't be used, by repository
	pendingWakes     map[string]bool     // keys about which something was heard, not yet in the store
	inputsChanged    bool                // what targets depend on besides Git may have changed
	wakeSignal       chan struct{}
	unreachable      map[string]map[string]bool // by Argo CD: unit keys that were judged while it couldn't be asked
}

// New makes an engine.
func New(o Options) *Controller {
	if o.Workers == 0 {
		o.Workers = defaultWorkers
	}
	if o.Retention == 0 {
		o.Retention = defaultRetention
	}
	e := &Controller{opts: o, reposByID: map[string]*Repository{}, queryLimit: command.NewRateLimit(o.Clock.Now), checkSlots: make(chan struct{}, maxConcurrentChecks),
		appStates: map[string]appState{}, activeUnits: map[string]bool{}, unitLocks: map[string]*sync.Mutex{}, unitsByApp: map[string][]string{},
		seenGenerations: map[string]uint64{}, failingRuns: map[string]Failure{}, fetchedRevisions: map[string]bool{}, awaitingFetch: map[string]string{}, pipelineErrs: map[string]string{}, pendingWakes: map[string]bool{}, wakeSignal: make(chan struct{}, 1), unreachable: map[string]map[string]bool{}}
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
func (e *Controller) Start(ctx context.Context) error {
	var keys []string
	for _, r := range e.opts.Repos {
		keys = append(keys, "repo:"+r.ID, "sweep:"+r.ID)
	}
	if err := e.opts.Store.Wake(ctx, keys...); err != nil {
		return fmt.Errorf("wake the repositories: %w", err)
	}
	return nil
}

// handleKey runs one key and says when it wants to run again at the latest.
func (e *Controller) handleKey(ctx context.Context, key string) (time.Time, error) {
	kind, rest, _ := strings.Cut(key, ":")
	switch kind {
	case "repo":
		return e.withRepo(rest, func(r *Repository) (time.Time, error) { return e.runRepo(ctx, r) })
	case "sweep":
		return e.withRepo(rest, func(r *Repository) (time.Time, error) { return e.runSweep(ctx, r) })
	case "merge":
		return e.withRepo(rest, func(r *Repository) (time.Time, error) { return e.runMergeQueue(ctx, r) })
	case "pr":
		repo, number, ok := splitPullKey(rest)
		if !ok {
			return time.Time{}, nil
		}
		return e.withRepo(repo, func(r *Repository) (time.Time, error) { return e.runPull(ctx, r, number) })
	case "unit":
		u, ok := parseUnit(rest)
		if !ok {
			return time.Time{}, nil
		}
		return e.withRepo(u.Repo, func(r *Repository) (time.Time, error) { return e.runUnit(ctx, r, u) })
	}
	e.opts.Log.Warn("a key of an unknown kind is dropped", zap.String("key", key))
	return time.Time{}, nil
}

// withRepo drops keys of repositories that the server's file no longer names.
func (e *Controller) withRepo(id string, f func(*Repository) (time.Time, error)) (time.Time, error) {
	r, ok := e.reposByID[id]
	if !ok {
		return time.Time{}, nil
	}
	return f(r)
}

func parseUnit(s string) (promotion.Unit, bool) {
	p := strings.Split(s, "|")
	if len(p) != 3 {
		return promotion.Unit{}, false
	}
	return promotion.Unit{Repo: p[0], Pipeline: p[1], Component: p[2]}, true
}

func splitPullKey(s string) (repo string, number int, ok bool) {
	i := strings.LastIndexByte(s, '#')
	if i < 0 {
		return "", 0, false
	}
	if _, err := fmt.Sscanf(s[i+1:], "%d", &number); err != nil {
		return "", 0, false
	}
	return s[:i], number, true
}

// PullKey is the wake key of a pull request.
func PullKey(repo string, number int) string { return facts.PullKey(repo, number) }

// RepoKey is the wake key of a repository.
func RepoKey(repo string) string { return "repo:" + repo }

// lockUnit keeps a unit's own run and its merge apart in this process.
func (e *Controller) lockUnit(name string) func() {
	e.mu.Lock()
	m, ok := e.unitLocks[name]
	if !ok {
		m = &sync.Mutex{}
		e.unitLocks[name] = m
	}
	e.mu.Unlock()
	m.Lock()
	return m.Unlock
}

// appState is what was last heard of an Application, without the time of its
// last reconciliation.
type appState struct{ digest string }

// AppChanged is told of every change that the watch reports, and wakes the units
// that the Application belongs to. A mere reconciliation only interests a unit
// that is being verified.
func (e *Controller) AppChanged(a verification.App, deleted bool) {
	e.opts.Gatherer.RecordApp(a, deleted)
	name := a.ArgoCD + "/" + a.Name
	quiet := a
	quiet.ReconciledAt = time.Time{}
	quiet.RefreshedAt = time.Time{}
	quiet.Operation = nil // its address, which is all that %+v shows of it in here, is news every time
	seen := appState{digest: fmt.Sprintf("%+v %+v %t", quiet, a.Operation, deleted)}
	e.mu.Lock()
	same := e.appStates[name] == seen
	e.appStates[name] = seen
	var keys []string
	for _, k := range e.unitsByApp[name] {
		if !same || e.activeUnits[k] {
			keys = append(keys, k)
		}
	}
	e.mu.Unlock()
	e.queueWakes(keys)
}

// InputsChanged is told that something changed that targets depend on besides
// Git: a live ApplicationSet, a project, a cluster, what is written into an
// Application. It wakes the repositories whose targets were resolved from it.
func (e *Controller) InputsChanged() {
	e.mu.Lock()
	e.inputsChanged = true
	e.mu.Unlock()
	e.signalWakes()
}

// ArgoCDReachable is told that an Argo CD can be asked again, and wakes the units that
// were judged while it couldn't be.
func (e *Controller) ArgoCDReachable(argocd string) {
	e.mu.Lock()
	keys := slices.Collect(maps.Keys(e.unreachable[argocd]))
	delete(e.unreachable, argocd)
	e.mu.Unlock()
	e.queueWakes(keys)
}

// recordUnreachable remembers which Argo CDs could not be asked for a unit.
func (e *Controller) recordUnreachable(c *facts.Evaluation) {
	key := facts.WakeKey(c.Facts.Unit) // a component that travels with others passes it on
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, keys := range e.unreachable {
		delete(keys, key)
	}
	for _, name := range c.UnreachableArgoCDs {
		if e.unreachable[name] == nil {
			e.unreachable[name] = map[string]bool{}
		}
		e.unreachable[name][key] = true
	}
}

// queueWakes notes keys to wake.
func (e *Controller) queueWakes(keys []string) {
	if len(keys) == 0 {
		return
	}
	e.mu.Lock()
	for _, k := range keys {
		e.pendingWakes[k] = true
	}
	e.mu.Unlock()
	e.signalWakes()
}

func (e *Controller) signalWakes() {
	select {
	case e.wakeSignal <- struct{}{}:
	default:
	}
}

// storeWakes writes the wakes of what was heard from Argo CD to the store: the
// watch doesn't wait for a commit, and a burst of changes is one of them.
func (e *Controller) storeWakes(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.wakeSignal:
		}
		e.mu.Lock()
		keys := slices.Collect(maps.Keys(e.pendingWakes))
		inputsChanged := e.inputsChanged
		clear(e.pendingWakes)
		e.inputsChanged = false
		e.mu.Unlock()
		if inputsChanged {
			for _, repo := range e.opts.Gatherer.Outdated(ctx) {
				keys = append(keys, RepoKey(repo))
			}
		}
		if err := e.opts.Store.Wake(ctx, sortedStrings(keys)...); err != nil && ctx.Err() == nil {
			e.opts.Log.Error("news of Argo CD could not be noted; the sweep finds it", zap.Int("keys", len(keys)), zap.Error(err))
		}
	}
}

// indexApplications notes which units an Application's change wakes.
func (e *Controller) indexApplications(s *facts.Snapshot) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for name, keys := range e.unitsByApp {
		kept := keys[:0]
		for _, k := range keys {
			if !strings.HasPrefix(k, "unit:"+s.Repo.ID+"|") {
				kept = append(kept, k)
			}
		}
		e.unitsByApp[name] = kept
	}
	for _, p := range s.Pipelines {
		for _, u := range p.Units {
			for _, env := range u.Envs {
				for i := range env.Targets {
					name := e.opts.Gatherer.ArgoCDOf(&env.Targets[i]) + "/" + env.Targets[i].Name
					if key := facts.WakeKey(s.RunsAs(u.Unit)); !slices.Contains(e.unitsByApp[name], key) {
						e.unitsByApp[name] = append(e.unitsByApp[name], key)
					}
				}
			}
		}
	}
}

// retryDelay is when a failed run is tried again: soon at first, then ever more
// rarely; a forge's own word about when comes before it.
func retryDelay(fails int) time.Duration {
	d := minRetryDelay
	for range min(fails, 16) {
		d *= 2
		if d >= maxRetryDelay {
			return maxRetryDelay
		}
	}
	return d
}

const (
	minRetryDelay = time.Second
	maxRetryDelay = 5 * time.Minute
	// maxHoldOff bounds how long a failed run keeps off what wakes its key: long
	// enough that a busy cluster doesn't repeat a refused call all the time, short
	// enough for a person who has mended the cause.
	maxHoldOff = 10 * time.Second
)

// isStale says that a run ended because the world moved: look again at once.
func isStale(err error) bool {
	return errors.Is(err, act.ErrStale) || errors.Is(err, forge.ErrConflict) || errors.Is(err, git.ErrLeaseLost)
}

// SweepKey is the wake key of a repository's sweep.
func SweepKey(repo string) string { return "sweep:" + repo }

// PipelineErrors says, by repository, why the pipeline files on the tracked branch can't
// be used, as of the last look.
func (e *Controller) PipelineErrors() map[string]string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return maps.Clone(e.pipelineErrs)
}

// ClusterFileProblems says, by a clusters file's path, why it can't be used.
func (e *Controller) ClusterFileProblems() map[string]string {
	return e.opts.Gatherer.ClusterFileProblems()
}

// Failure is a run that failed and is tried again.
type Failure struct {
	Since   time.Time // when it failed first
	Err     string    // how it failed last
	RetryAt time.Time // when it is tried again
}

// FailingRuns are the runs that failed last time, by key: what a person may have to
// see to.
func (e *Controller) FailingRuns() map[string]Failure {
	e.mu.Lock()
	defer e.mu.Unlock()
	return maps.Clone(e.failingRuns)
}

// recordRun remembers a failure and forgets it when the key runs well again.
func (e *Controller) recordRun(key string, err error, again time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err == nil {
		delete(e.failingRuns, key)
		return
	}
	f, ok := e.failingRuns[key]
	if !ok {
		f.Since = e.opts.Clock.Now()
	}
	f.Err, f.RetryAt = err.Error(), again
	e.failingRuns[key] = f
}
