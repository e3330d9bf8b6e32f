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
	Store    *store.Store
	Observer *facts.Observer
	Actor    *act.Actor
	Repos    []*Repository
	Clock    clock.WithTicker
	Log      *zap.Logger
	Metrics  Metrics
	Owner    string // this process; nobody else uses it
	Workers  int
	Keep     time.Duration // how long history is kept
}

// Metrics is told how runs, and the checks of people's pull requests, end.
type Metrics interface {
	Run(kind string, took time.Duration, err error)
	Check(took time.Duration, failed bool)
}

// Engine runs the keys. Run may be called once.
type Engine struct {
	o     Options
	repos map[string]*Repository
	limit *command.RateLimit

	checks chan struct{} // a place for each evaluation of a stranger's pull request

	mu     sync.Mutex
	apps   map[string]appSeen // by Argo CD and name: what was last heard
	active map[string]bool    // units for which even a mere reconciliation is news
	units  map[string]*sync.Mutex
	wakers map[string][]string // unit keys by application, from the last snapshots
	looked map[string]uint64   // repositories whose units this process has looked at, and their snapshot's turn then
	fails  map[string]Failure  // runs that failed last time, by key
	asked  map[string]bool     // revisions that were fetched for
	awaits map[string]string   // unit keys that wait for such a fetch, and of which repository
	broken map[string]string   // why pipeline files can't be used, by repository
	heard  map[string]bool     // keys about which something was heard, not yet in the store
	around bool                // what targets depend on besides Git may have changed
	hear   chan struct{}
	deaf   map[string]map[string]bool // by Argo CD: unit keys that were judged while it couldn't be asked
}

// New makes an engine.
func New(o Options) *Engine {
	if o.Workers == 0 {
		o.Workers = defaultWorkers
	}
	if o.Keep == 0 {
		o.Keep = defaultKeep
	}
	e := &Engine{o: o, repos: map[string]*Repository{}, limit: command.NewRateLimit(o.Clock.Now), checks: make(chan struct{}, checksAtOnce),
		apps: map[string]appSeen{}, active: map[string]bool{}, units: map[string]*sync.Mutex{}, wakers: map[string][]string{},
		looked: map[string]uint64{}, fails: map[string]Failure{}, asked: map[string]bool{}, awaits: map[string]string{}, broken: map[string]string{}, heard: map[string]bool{}, hear: make(chan struct{}, 1), deaf: map[string]map[string]bool{}}
	for _, r := range o.Repos {
		e.repos[r.ID] = r
	}
	return e
}

const (
	// defaultWorkers is how many keys run at once: they mostly wait for the forge.
	defaultWorkers = 8
	// defaultKeep is how long deliveries, events and the audit trail are kept.
	defaultKeep = 90 * 24 * time.Hour
)

// Start wakes everything that a fresh process must look at.
func (e *Engine) Start(ctx context.Context) error {
	var keys []string
	for _, r := range e.o.Repos {
		keys = append(keys, "repo:"+r.ID, "sweep:"+r.ID)
	}
	if err := e.o.Store.Wake(ctx, keys...); err != nil {
		return fmt.Errorf("wake the repositories: %w", err)
	}
	return nil
}

// handle runs one key and says when it wants to run again at the latest.
func (e *Engine) handle(ctx context.Context, key string) (time.Time, error) {
	kind, rest, _ := strings.Cut(key, ":")
	switch kind {
	case "repo":
		return e.withRepo(rest, func(r *Repository) (time.Time, error) { return e.repo(ctx, r) })
	case "sweep":
		return e.withRepo(rest, func(r *Repository) (time.Time, error) { return e.sweep(ctx, r) })
	case "merge":
		return e.withRepo(rest, func(r *Repository) (time.Time, error) { return e.merges(ctx, r) })
	case "pr":
		repo, number, ok := cutNumber(rest)
		if !ok {
			return time.Time{}, nil
		}
		return e.withRepo(repo, func(r *Repository) (time.Time, error) { return e.pull(ctx, r, number) })
	case "unit":
		u, ok := parseUnit(rest)
		if !ok {
			return time.Time{}, nil
		}
		return e.withRepo(u.Repo, func(r *Repository) (time.Time, error) { return e.unit(ctx, r, u) })
	}
	e.o.Log.Warn("a key of an unknown kind is dropped", zap.String("key", key))
	return time.Time{}, nil
}

// withRepo drops keys of repositories that the server's file no longer names.
func (e *Engine) withRepo(id string, f func(*Repository) (time.Time, error)) (time.Time, error) {
	r, ok := e.repos[id]
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

func cutNumber(s string) (repo string, number int, ok bool) {
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
func (e *Engine) lockUnit(name string) func() {
	e.mu.Lock()
	m, ok := e.units[name]
	if !ok {
		m = &sync.Mutex{}
		e.units[name] = m
	}
	e.mu.Unlock()
	m.Lock()
	return m.Unlock
}

// appSeen is what was last heard of an Application, without the time of its
// last reconciliation.
type appSeen struct{ digest string }

// AppChanged is told of every change that the watch reports, and wakes the units
// that the Application belongs to. A mere reconciliation only interests a unit
// that is being verified.
func (e *Engine) AppChanged(a verification.App, deleted bool) {
	e.o.Observer.NoteApp(a, deleted)
	name := a.ArgoCD + "/" + a.Name
	quiet := a
	quiet.ReconciledAt = time.Time{}
	quiet.RefreshedAt = time.Time{}
	quiet.Operation = nil // its address, which is all that %+v shows of it in here, is news every time
	seen := appSeen{digest: fmt.Sprintf("%+v %+v %t", quiet, a.Operation, deleted)}
	e.mu.Lock()
	same := e.apps[name] == seen
	e.apps[name] = seen
	var keys []string
	for _, k := range e.wakers[name] {
		if !same || e.active[k] {
			keys = append(keys, k)
		}
	}
	e.mu.Unlock()
	e.heardOf(keys)
}

// AroundChanged is told that something changed that targets depend on besides
// Git: a live ApplicationSet, a project, a cluster, what is written into an
// Application. It wakes the repositories whose targets were resolved from it.
func (e *Engine) AroundChanged() {
	e.mu.Lock()
	e.around = true
	e.mu.Unlock()
	e.listen()
}

// ArgoCDBack is told that an Argo CD can be asked again, and wakes the units that
// were judged while it couldn't be.
func (e *Engine) ArgoCDBack(argocd string) {
	e.mu.Lock()
	keys := slices.Collect(maps.Keys(e.deaf[argocd]))
	delete(e.deaf, argocd)
	e.mu.Unlock()
	e.heardOf(keys)
}

// noteDeaf remembers which Argo CDs could not be asked for a unit.
func (e *Engine) noteDeaf(c *facts.Case) {
	key := facts.Key(c.Facts.Unit) // a component that travels with others passes it on
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, keys := range e.deaf {
		delete(keys, key)
	}
	for _, name := range c.Unreached {
		if e.deaf[name] == nil {
			e.deaf[name] = map[string]bool{}
		}
		e.deaf[name][key] = true
	}
}

// heardOf notes keys to wake.
func (e *Engine) heardOf(keys []string) {
	if len(keys) == 0 {
		return
	}
	e.mu.Lock()
	for _, k := range keys {
		e.heard[k] = true
	}
	e.mu.Unlock()
	e.listen()
}

func (e *Engine) listen() {
	select {
	case e.hear <- struct{}{}:
	default:
	}
}

// wakeHeard writes the wakes of what was heard from Argo CD to the store: the
// watch doesn't wait for a commit, and a burst of changes is one of them.
func (e *Engine) wakeHeard(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.hear:
		}
		e.mu.Lock()
		keys := slices.Collect(maps.Keys(e.heard))
		around := e.around
		clear(e.heard)
		e.around = false
		e.mu.Unlock()
		if around {
			for _, repo := range e.o.Observer.Outdated(ctx) {
				keys = append(keys, RepoKey(repo))
			}
		}
		if err := e.o.Store.Wake(ctx, sorted(keys)...); err != nil && ctx.Err() == nil {
			e.o.Log.Error("news of Argo CD could not be noted; the sweep finds it", zap.Int("keys", len(keys)), zap.Error(err))
		}
	}
}

// setWakers notes which units an Application's change wakes.
func (e *Engine) setWakers(s *facts.Snapshot) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for name, keys := range e.wakers {
		kept := keys[:0]
		for _, k := range keys {
			if !strings.HasPrefix(k, "unit:"+s.Repo.ID+"|") {
				kept = append(kept, k)
			}
		}
		e.wakers[name] = kept
	}
	for _, p := range s.Pipelines {
		for _, u := range p.Units {
			for _, env := range u.Envs {
				for i := range env.Targets {
					name := e.o.Observer.ArgoCDOf(&env.Targets[i]) + "/" + env.Targets[i].Name
					if key := facts.Key(s.Runner(u.Unit)); !slices.Contains(e.wakers[name], key) {
						e.wakers[name] = append(e.wakers[name], key)
					}
				}
			}
		}
	}
}

// retryDelay is when a failed run is tried again: soon at first, then ever more
// rarely; a forge's own word about when comes before it.
func retryDelay(fails int) time.Duration {
	d := retryFirst
	for range min(fails, 16) {
		d *= 2
		if d >= retryLast {
			return retryLast
		}
	}
	return d
}

const (
	retryFirst = time.Second
	retryLast  = 5 * time.Minute
	// heldBack bounds how long a failed run keeps off what wakes its key: long
	// enough that a busy cluster doesn't repeat a refused call all the time, short
	// enough for a person who has mended the cause.
	heldBack = 10 * time.Second
)

// moved says that a run ended because the world moved: look again at once.
func moved(err error) bool {
	return errors.Is(err, act.ErrMoved) || errors.Is(err, forge.ErrConflict) || errors.Is(err, git.ErrLeaseLost)
}

// SweepKey is the wake key of a repository's sweep.
func SweepKey(repo string) string { return "sweep:" + repo }

// Broken says, by repository, why the pipeline files on the tracked branch can't
// be used, as of the last look.
func (e *Engine) Broken() map[string]string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return maps.Clone(e.broken)
}

// ClusterTroubles says, by a clusters file's path, why it can't be used.
func (e *Engine) ClusterTroubles() map[string]string { return e.o.Observer.ClusterTroubles() }

// Failure is a run that failed and is tried again.
type Failure struct {
	Since time.Time // when it failed first
	Err   string    // how it failed last
	Again time.Time // when it is tried again
}

// Failing are the runs that failed last time, by key: what a person may have to
// see to.
func (e *Engine) Failing() map[string]Failure {
	e.mu.Lock()
	defer e.mu.Unlock()
	return maps.Clone(e.fails)
}

// noteRun remembers a failure and forgets it when the key runs well again.
func (e *Engine) noteRun(key string, err error, again time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err == nil {
		delete(e.fails, key)
		return
	}
	f, ok := e.fails[key]
	if !ok {
		f.Since = e.o.Clock.Now()
	}
	f.Err, f.Again = err.Error(), again
	e.fails[key] = f
}
