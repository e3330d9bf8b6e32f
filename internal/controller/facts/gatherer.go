package facts

import (
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/appset/history"
	"github.com/liftlock/liftlock/internal/appset/isolation"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/internal/sandbox"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/policies"
)

// Apps is what is needed of a watched Argo CD.
type Apps interface {
	// Get finds an Application; an empty namespace means any watched one.
	Get(namespace, name string) (*verification.App, bool)
	List() []verification.App
	// Ready says why the states may be out of date; nil when they aren't.
	Ready() error
}

// Repository is one tracked repository with everything that reaches it.
type Repository struct {
	ID       string // "forge:owner/name"
	Name     forge.Repo
	Forge    forge.Forge
	ForgeRef string // the forge's name in the server's file
	Branch   string // the tracked branch
	Mirror   *git.Mirror
	URLs     []string // by which manifests may name it
	BotLogin string   // our own login there
}

// Floor raises an environment's gates to what the server demands; it is given
// the environment's name and the pipeline's gates.
type Floor func(environment string, gates []policies.Gate) []policies.Gate

// Options are the observer's parts. All are required but Log and Floor.
type Options struct {
	Store      *store.Store
	Resolver   *appset.Resolver
	ArgoCDs    map[string]ArgoCD // by the name in the server's file
	MainArgoCD string            // for targets that name none
	Generators appset.Generators // that ask the network and may
	Repos      []*Repository     // all that are tracked: what generators may read of each other
	Sandbox    *sandbox.Runner   // for what strangers wrote
	Floor      Floor
	Now        func() time.Time
	Log        *zap.Logger
	// MaxAge is how long what was read of an open pull request may be used when
	// nothing was heard of it.
	MaxAge time.Duration
	// EditTimeout is how long an edit may be judged; nil: 30 seconds.
	EditTimeout func() time.Duration
}

// Gatherer gathers facts. It is safe for concurrent use.
type Gatherer struct {
	opts Options

	mu               sync.Mutex
	snapshots        map[string]*Snapshot
	buildLocks       map[string]*sync.Mutex
	pullDetails      map[string]*pullDetail // open pull requests as read from the forge
	origins          map[string]originMemo
	releaseChanges   map[string][]releaseChange // components that commits moved
	unhealthySince   map[appKey]time.Time       // since when an Application is unwell, by our clock
	permissions      map[string]permission
	commitAuthors    map[string][]string
	refusedMerges    map[string]refusal
	explainedCommits map[string]string     // by environment: the last landed commit that the pull requests were read again for
	revertedReleases map[string][]string   // releases that revert commits name, by environment and what landed
	seenMerges       map[string]mergeState // by repository, branch and commit: merges of ours
	cachedRepos      map[string]bool       // repositories whose list of pull requests was read in this process

	renderer       *isolation.Renderer
	judgements     map[judgementKey]*judgement
	pastRenderer   *isolation.Renderer // for what landed long ago
	inspectedHeads headCache

	parsedFiles  *fieldedit.ParseCache // files that many environments share
	readingCache readingCache
	clusterFiles clusterFiles
	applications applicationCache
}

type permission struct {
	level forge.Permission
	at    time.Time
}

// New makes an observer.
func New(o Options) *Gatherer {
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.Floor == nil {
		o.Floor = func(_ string, g []policies.Gate) []policies.Gate { return g }
	}
	return &Gatherer{
		opts:             o,
		snapshots:        map[string]*Snapshot{},
		buildLocks:       map[string]*sync.Mutex{},
		pullDetails:      map[string]*pullDetail{},
		origins:          map[string]originMemo{},
		releaseChanges:   map[string][]releaseChange{},
		unhealthySince:   map[appKey]time.Time{},
		permissions:      map[string]permission{},
		commitAuthors:    map[string][]string{},
		refusedMerges:    map[string]refusal{},
		explainedCommits: map[string]string{},
		revertedReleases: map[string][]string{},
		seenMerges:       map[string]mergeState{},
		cachedRepos:      map[string]bool{},
		renderer:         isolation.New(maxRendered),
		parsedFiles:      fieldedit.NewParseCache(maxParsed),
		pastRenderer:     isolation.New(maxPastRendered),
		judgements:       map[judgementKey]*judgement{},
	}
}

// Snapshot is what one commit of the tracked branch says, and where the
// environments' own branches are.
type Snapshot struct {
	Repo           *Repository
	Commit         string
	PipelineErr    string            // why the pipeline files at Commit can't be used: file:line: message
	PipelineCommit string            // the commit whose pipeline files are in force; Commit unless Broken
	BranchTips     map[string]string // the heads of the environments' own branches; "": there is no such branch
	Pipelines      []*ResolvedPipeline
	NoPipelines    bool // there is no pipeline file

	// Generation changes when targets changed although the commit is the same: another
	// repository, a cluster or a live object did. It counts within one process.
	Generation uint64
	inputs     resolveInputs
}

// ResolvedPipeline is one pipeline with its targets.
type ResolvedPipeline struct {
	*pipeline.Pipeline
	TargetSet         *appset.TargetSet         // the targets in force, and what was wrong
	Problems          []string                  // why targets can't be resolved; the last good ones are in force meanwhile
	componentProblems history.ComponentProblems // the same, with whom it concerns
	Baseline          string                    // the commit that brought the pipeline, or the last of its carry entries
	Units             map[string]*ResolvedUnit
	readerIndexes     map[string]*lazyIndex // by branch
	locations         *locations
	readings          map[*ResolvedEnv]reading // of Units, at the commits of the snapshot; without what could not be read surely

	overlaysKey func() string // what the components that a commit moves depend on besides it
}

// ResolvedUnit is one component of a pipeline.
type ResolvedUnit struct {
	Unit promotion.Unit
	Envs map[string]*ResolvedEnv
}

// ResolvedEnv is one environment of a component.
type ResolvedEnv = history.Environment

// Pipeline finds a pipeline by name; nil when there is none.
func (s *Snapshot) Pipeline(name string) *ResolvedPipeline {
	for _, p := range s.Pipelines {
		if p.Name() == name {
			return p
		}
	}
	return nil
}

// Unit finds a unit; both are nil when the snapshot doesn't have it.
func (s *Snapshot) Unit(u promotion.Unit) (*ResolvedPipeline, *ResolvedUnit) {
	p := s.Pipeline(u.Pipeline)
	if p == nil {
		return nil, nil
	}
	return p, p.Units[u.Component]
}

// RunsAs is the unit under whose key a unit is judged: itself, or, where the
// components of its pipeline travel together, all of them as one.
func (s *Snapshot) RunsAs(u promotion.Unit) promotion.Unit {
	if p := s.Pipeline(u.Pipeline); p != nil && p.Spec.BatchesByEnvironment() {
		u.Component = promotion.BatchName
	}
	return u
}

// IsBatch says that a unit stands for all components of its pipeline.
func (s *Snapshot) IsBatch(u promotion.Unit) bool {
	p := s.Pipeline(u.Pipeline)
	return p != nil && p.Spec.BatchesByEnvironment() && u.Component == promotion.BatchName
}

// AllUnits lists the units of every pipeline.
func (s *Snapshot) AllUnits() []promotion.Unit {
	var out []promotion.Unit
	for _, p := range s.Pipelines {
		for _, u := range p.Units {
			out = append(out, u.Unit)
		}
	}
	return out
}

// appKey names an Application among all Argo CDs.
type appKey struct{ argocd, namespace, name string }

// RecordApp remembers since when an Application is unwell, by our clock. It is
// called with every change that the watch reports.
func (o *Gatherer) RecordApp(a verification.App, deleted bool) {
	key := appKey{a.ArgoCD, a.Namespace, a.Name}
	bad := !deleted && (a.Health == "Degraded" || a.Health == "Missing")
	o.mu.Lock()
	defer o.mu.Unlock()
	if !bad {
		delete(o.unhealthySince, key)
		return
	}
	if _, ok := o.unhealthySince[key]; !ok {
		since := o.opts.Now()
		if !a.HealthSince.IsZero() && a.HealthSince.Before(since) {
			since = a.HealthSince
		}
		o.unhealthySince[key] = since
	}
}

// findApp finds a target's Application; err says why its state can't be trusted.
func (o *Gatherer) findApp(t *appset.Target) (*verification.App, error) {
	name := t.ArgoCD
	if name == "" {
		name = o.opts.MainArgoCD
	}
	argo, ok := o.opts.ArgoCDs[name]
	if !ok {
		return nil, &unknownArgoCD{name: name, target: t.Name}
	}
	if err := argo.Apps.Ready(); err != nil {
		return nil, err
	}
	a, _ := argo.Apps.Get(t.Namespace, t.Name)
	return a, nil
}

type unknownArgoCD struct{ name, target string }

func (e *unknownArgoCD) Error() string {
	return "the server's file has no Argo CD named " + e.name + ", which " + e.target + " belongs to"
}

// ArgoCDOf is the name of the Argo CD that runs a target.
func (o *Gatherer) ArgoCDOf(t *appset.Target) string {
	if t.ArgoCD != "" {
		return t.ArgoCD
	}
	return o.opts.MainArgoCD
}

// MainArgoCD is the Argo CD of targets that name none.
func (o *Gatherer) MainArgoCD() string { return o.opts.MainArgoCD }

// lockSnapshot serialises the building of one repository's snapshot.
func (o *Gatherer) lockSnapshot(repo string) func() {
	o.mu.Lock()
	m, ok := o.buildLocks[repo]
	if !ok {
		m = &sync.Mutex{}
		o.buildLocks[repo] = m
	}
	o.mu.Unlock()
	m.Lock()
	return m.Unlock
}
