package appset

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/singleflight"

	"github.com/liftlock/liftlock/internal/cache"
	"github.com/liftlock/liftlock/internal/pipeline"
)

// Input is what a pipeline's targets at one commit depend on.
type Input struct {
	Pipeline *pipeline.Pipeline
	Tree     fs.FS  // the commit's files
	Revision string // the commit, in full; empty: not a commit, nothing is kept
	Branch   string // the branch it is the head of: what generators' `revision` may say besides HEAD
	// Branches are other branches of this repository at commits of the caller's
	// choice, by their names; those that aren't here Other is asked for.
	Branches map[string]ExternalRef
	RepoURLs []string // how manifests may name this repository

	// Clusters are all that the Argo CD knows; the in-cluster one is added
	// if it isn't among them. nil: not known. Then destinations are not
	// checked, and sets that ask for clusters are a problem.
	Clusters []Cluster
	// Placements are what clusterDecisionResource generators read where there is no connection to Argo CD's
	// cluster; nil: not known.
	Placements *Placements
	// Projects are the names of all AppProjects; nil: not known, not checked.
	Projects []string
	// Globbing is how the controller matches git file generators' paths;
	// empty means GlobbingGit, its default.
	Globbing string
	// Version is the Argo CD's.
	Version Version
	// ArgoCDs are the Argo CDs of which other things are known than the four
	// fields above say, by the name that the pipeline's entries use. Those that
	// are not here are as the fields above say.
	ArgoCDs map[string]ArgoCD
	// Main is the name of the Argo CD that an entry without one means.
	Main string
	// Live is what is known of the running Argo CDs' objects; nil: no connection.
	Live *Live
	// Generators are those that ask the network and may.
	Generators Generators
	// OpenExternal gives other repositories and revisions to git generators. It names
	// what it refuses in its error; nil refuses all.
	OpenExternal func(ctx context.Context, repoURL, revision string) (*ExternalRef, error)
	// Scope is what the sets may read besides this repository; nil: everything. A set that
	// reads more is a problem, which says nothing but what the set asks for.
	Scope *Scope
	// Build makes the manifests that entries have built; nil: nothing is built.
	Build ManifestBuilder
	// Manifests asks for Target.Application.
	Manifests bool
}

// Options of a Resolver. The zero value is usable.
type Options struct {
	Log       *zap.Logger      // default: none
	Timeout   time.Duration    // for one ApplicationSet; default one minute
	CacheSize int              // how many target sets are kept by what they were resolved from; default 32
	Caches    *cache.Group     // where the caches are counted; default: nowhere
	Now       func() time.Time // the clock of what the network said; default time.Now
}

const (
	defaultTimeout   = time.Minute
	defaultCacheSize = 32
)

// Resolver resolves ApplicationSets. It is safe for concurrent use.
type Resolver struct {
	log     *zap.Logger
	timeout time.Duration
	// slots bound the generators that run at once. The library can't be
	// interrupted, so one that runs past its time keeps its slot until it
	// ends: a bomb costs a slot, not the process.
	slots          chan struct{}
	targetSets     *cache.Cache[string, *TargetSet]
	setCache       *cache.Cache[string, *setResults]
	targetLists    *cache.Cache[string, *targetList] // by pipeline
	generatorCache *generatorCache
	calls          singleflight.Group // by what a target set is resolved from
}

// New makes a resolver. The first one of a process takes the generator
// library's log over: it goes to that resolver's log, at debug level.
func New(o Options) *Resolver {
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	if o.CacheSize <= 0 {
		o.CacheSize = defaultCacheSize
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	redirectLibraryLogs(o.Log)
	return &Resolver{
		log: o.Log, timeout: o.Timeout,
		slots:          make(chan struct{}, max(2, runtime.GOMAXPROCS(0))),
		targetSets:     newTargetSetCache(o.Caches, o.CacheSize),
		setCache:       newSetCache(o.Caches),
		targetLists:    cache.New(o.Caches, cache.Options[string, *targetList]{Name: "appset-lists", Entries: maxTargetLists}),
		generatorCache: newGeneratorCache(o.Caches, o.Now),
	}
}

// Resolve turns the pipeline's ApplicationSets at a commit into targets. The problems say what is
// wrong with the files. The error is for an invalid call, and for a context that ended. The result
// is shared with later callers: read it, don't change it.
func (r *Resolver) Resolve(ctx context.Context, in Input) (*TargetSet, error) {
	if in.Pipeline == nil || in.Tree == nil {
		return nil, errors.New("resolving ApplicationSets: a pipeline and a tree are needed")
	}
	switch in.Globbing {
	case "":
		in.Globbing = GlobbingGit
	case GlobbingGit, GlobbingDoublestar:
	default:
		return nil, fmt.Errorf("resolving ApplicationSets: globbing is %q, wanted %s or %s", in.Globbing, GlobbingGit, GlobbingDoublestar)
	}
	if ctx.Err() != nil { // said in any case, however quick the answer would be
		return nil, fmt.Errorf("resolving the ApplicationSets of pipeline %s: %w", in.Pipeline.Name(), ctx.Err())
	}
	key, err := in.cacheKey()
	if err != nil {
		return nil, err
	}
	if key == "" {
		f, _, err := r.resolve(ctx, &in)
		return f, err
	}
	if f, ok := r.targetSets.Get(key); ok && f.externalsCurrent(ctx, in.OpenExternal) {
		return f, nil
	}
	// Another caller for the same waits for it meanwhile, and may stop waiting: each set has its
	// time, so it ends by itself.
	done := r.calls.DoChan(key, func() (any, error) {
		f, transient, err := r.resolve(context.WithoutCancel(ctx), &in)
		if err == nil && !transient {
			r.targetSets.Put(key, f)
		}
		return f, err
	})
	select {
	case out := <-done:
		f, _ := out.Val.(*TargetSet)
		return f, out.Err
	case <-ctx.Done():
		return nil, fmt.Errorf("resolving the ApplicationSets of pipeline %s: %w", in.Pipeline.Name(), ctx.Err())
	}
}

// setOutcome is what became of one set.
type setOutcome struct {
	targets   []Target
	problems  []Problem
	notes     []Problem
	failed    bool          // there are no targets because of the problems
	transient bool          // another try may answer differently
	refresh   time.Duration // when it may, if that is known
	scope     *setScope     // what it read elsewhere; nil: nothing
}

func (r *Resolver) resolve(ctx context.Context, in *Input) (f *TargetSet, transient bool, err error) {
	building, cancel := context.WithTimeout(ctx, r.timeout)
	sets, problems, transient := findSets(building, in)
	cancel()
	entries, plain, wrong := newPipelineEntries(ctx, in.Pipeline)
	problems = append(problems, wrong...)
	snaps := newSnapshots(in)
	c := &commit{tree: in.Tree, urls: in.RepoURLs, revision: in.Revision, branch: in.Branch, branches: in.Branches,
		openExternal: in.OpenExternal}

	outcomes := make([]setOutcome, len(sets)+len(plain))
	var wg sync.WaitGroup
	for i := range sets {
		wg.Go(func() {
			e := entries[sets[i].entry].withContext(ctx)
			snap := snaps[e.argocd]
			sets[i].words = sync.OnceValue(func() []string { return sets[i].templateWords(e) })
			sets[i].settleVersion(snap.argocd.Version)
			sets[i].refuseDropped(snap.argocd.Version, in.Live != nil)
			sets[i].applyController(snap.argocd.Policy)
			outcomes[i] = r.resolveSet(ctx, in, &sets[i], e, c, snap)
			outcomes[i].notes = append(sets[i].versionNotes(snap.argocd.Version), outcomes[i].notes...)
		})
	}
	for i := range plain {
		wg.Go(func() {
			outcomes[len(sets)+i] = r.resolveApplications(ctx, in, i, plain[i].withContext(ctx), c)
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return nil, false, fmt.Errorf("resolving the ApplicationSets of pipeline %s: %w", in.Pipeline.Name(), ctx.Err())
	}
	f = &TargetSet{Problems: problems, externals: c.externalCommits()}
	for i := range sets {
		s := &sets[i]
		f.sets = append(f.sets, knownSet{
			argocd: entries[s.entry].argocd, namespace: s.spec.Namespace, name: s.spec.Name, file: s.file,
			policy: s.policy, resolved: !outcomes[i].failed,
		})
	}
	var parts [][]Target
	for _, o := range outcomes {
		if len(o.targets) > 0 {
			parts = append(parts, o.targets)
		}
		f.Problems = append(f.Problems, o.problems...)
		f.Notes = append(f.Notes, o.notes...)
		if o.scope != nil {
			f.scopes = append(f.scopes, o.scope)
		}
		f.RefreshAfter = earliestNonZero(f.RefreshAfter, o.refresh)
		transient = transient || o.transient
	}
	key := ""
	if in.Revision != "" && !in.Manifests { // manifests are too large to be held on to
		key = strings.Join(append([]string{in.Pipeline.File, in.Pipeline.Name(), in.Branch}, in.RepoURLs...), "\x00")
	}
	all := r.assembleTargets(key, parts)
	if transient && in.builds() {
		f.RefreshAfter = earliestNonZero(f.RefreshAfter, liveRefresh)
	}
	f.Targets, f.Problems = all.targets, append(f.Problems, all.problems...)
	f.sortProblems()
	return f, transient, nil
}

// errTimedOut marks a set that ran out of time, which may be the machine's fault.
var errTimedOut = errors.New("not resolved in time")

// resolveSet resolves one set within its time.
func (r *Resolver) resolveSet(ctx context.Context, in *Input, s *appSet, e *pipelineEntry, c *commit, snap *snapshot) setOutcome {
	fail := func(err error) setOutcome {
		return setOutcome{failed: true, problems: []Problem{s.newProblem("", err.Error())}, transient: errors.Is(err, errTree) ||
			errors.Is(err, errTimedOut)}
	}
	slow := fmt.Errorf("%w: it took longer than %s; look for a template or a generator that grows without bound", errTimedOut, r.timeout)
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	if s.unknown != nil {
		return r.resolveLiveSet(ctx, in, s, e, c, snap)
	}
	if err := snap.checkGenerators(&s.spec); err != nil {
		return fail(err)
	}
	o, err := runInSlot(ctx, r.slots, func() setOutcome {
		access := r.newGeneratorAccess(ctx)
		o, err := r.generateTargets(ctx, in, s, e, c, snap, access)
		switch {
		case err != nil && access.scope.refusal() != nil:
			o = fail(access.scope.refusal()) // without what the library says around it
		case err != nil && ctx.Err() != nil:
			o = fail(slow)
		case err != nil:
			o = fail(err)
		}
		o.scope = o.scope.withKeys(access.scope.result())
		o.refresh = access.nextRefresh()
		o.transient = o.transient || o.refresh != 0
		return o
	})
	switch {
	case errors.Is(err, errNoSlot):
		return fail(fmt.Errorf("%w: no room to resolve it within %s, because other ApplicationSets take too long", errTimedOut, r.timeout))
	case err != nil:
		return fail(slow)
	}
	return o
}

var errNoSlot = errors.New("all slots are taken")

// runInSlot does work in one of some slots. When time is up it returns, and the work,
// which the library may not let end, keeps its slot until it does.
func runInSlot[T any](ctx context.Context, slots chan struct{}, work func() T) (out T, err error) {
	select {
	case slots <- struct{}{}:
	case <-ctx.Done():
		return out, errNoSlot
	}
	done := make(chan T, 1)
	go func() {
		defer func() { <-slots }()
		done <- work()
	}()
	select {
	case out = <-done:
		return out, nil
	case <-ctx.Done():
		return out, ctx.Err()
	}
}

// generateTargets gives a set's targets: those of another commit where nothing that
// the set depends on differs, and of the rest only what is new is made.
func (r *Resolver) generateTargets(ctx context.Context, in *Input, s *appSet, e *pipelineEntry, c *commit, snap *snapshot,
	access *generatorAccess) (setOutcome, error) {
	build := func(g *generatorRun) (setOutcome, error) {
		m := newTargetBuilder(in, s, e, c, g.cache)
		if err := g.runGenerators(r.log, s, m); err != nil {
			return setOutcome{}, err
		}
		g.cache.next.keepBuilt(slices.Clone(m.all))
		o := snap.validateTargets(s, m.all)
		o.scope = o.scope.withKeys(access.scope.result())
		return o, nil
	}
	if in.Revision == "" { // not a commit: nothing is known, and nothing is kept
		return build(newGeneratorRun(ctx, s, c, snap, access, newResultCache(&setResults{}, "")))
	}
	keys, err := newSetCacheKeys(in, s, e, snap)
	if err != nil {
		return setOutcome{}, err
	}
	last, ok := r.setCache.Get(keys.set)
	if !ok {
		last = &setResults{}
	}
	parts := newResultCache(last, keys.targets)
	g := newGeneratorRun(ctx, s, c, snap, access, parts)
	if last.outcome != nil && last.outcome.inputs == keys.outcome {
		changes := last.outcome.findChanges(g.repos)
		if changes.known && !changes.other && len(changes.files) > 0 {
			if o, ok := r.updateTargets(ctx, in, s, e, c, snap, access, last, keys, changes.files); ok {
				return o, nil
			}
		} else if changes.none() || last.outcome.repeatQueries(g.repos) {
			next := *last
			next.outcome = last.outcome.rebasedOn(g.repos)
			r.setCache.Put(keys.set, &next)
			return last.outcome.outcome, nil
		}
	}
	o, err := build(g)
	if err != nil {
		return setOutcome{}, err
	}
	if access.nextRefresh() == 0 {
		parts.next.outcome = parts.queries.toCachedOutcome(keys.outcome, g.repos, o)
	}
	parts.next.countEntries()
	r.setCache.Put(keys.set, parts.next)
	return o, nil
}

// newGeneratorAccess lets one set ask. Waiting for an answer is no work, so it gives up
// the set's slot meanwhile.
func (r *Resolver) newGeneratorAccess(ctx context.Context) *generatorAccess {
	return &generatorAccess{ctx: ctx, cache: r.generatorCache, waitIdle: func(wait func()) {
		<-r.slots
		defer func() { r.slots <- struct{}{} }()
		wait()
	}}
}
