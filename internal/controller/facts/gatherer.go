package facts

import (
	"context"
	"crypto/sha256"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/cache"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/facts/effects"
	"github.com/liftlock/liftlock/internal/controller/facts/live"
	"github.com/liftlock/liftlock/internal/controller/facts/people"
	"github.com/liftlock/liftlock/internal/manifest/render"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/proc/sandbox"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
	"github.com/liftlock/liftlock/policies"
)

// Floor raises an environment's gates to what the server demands; it is given
// the environment's name and the pipeline's gates.
type Floor func(environment string, gates []policies.Gate) []policies.Gate

// Store is what is kept of units and pull requests. *store.Store is one.
type Store interface {
	pullStore
	recordStore
	record.Writer
	Arrivals(ctx context.Context, unit string) ([]store.Arrival, error)
	OlderArrivals(ctx context.Context, unit string, releases ...string) ([]store.Arrival, error)
	ArrivalsVersion(ctx context.Context, unit string) (int64, error)
	Observations(ctx context.Context, unit string) ([]store.Observation, error)
	PendingCommands(ctx context.Context, unit string) ([]store.PendingCommand, error)
	MergeQueue(ctx context.Context, repo string) ([]string, error)
}

// Options are the gatherers' parts. All are required but Caches, Log, Floor, Metrics, Endpoints and Images;
// who only takes snapshots needs no Store and no Sandbox either.
type Options struct {
	Store      Store
	Resolver   *appset.Resolver
	ArgoCDs    map[string]branch.ArgoCD // by the name in the server's file
	MainArgoCD string                   // for targets that name none
	Generators appset.Generators        // that ask the network and may
	Repos      []*branch.Repository     // all that are tracked: what generators may read of each other
	Sandbox    *sandbox.Runner          // for what strangers wrote
	Renderer   render.Renderer          // of what is on our own branches; nil: this process
	Externals  *branch.ExternalFiles    // that renderings may read besides the tracked repositories; nil: none
	Floor      Floor
	Metrics    MetricSource       // nil: no server is asked
	Endpoints  EndpointSource     // nil: no endpoint is asked
	Images     people.ImageSource // nil: no image is looked into
	// IgnoreUnlinkedAuthors lets releases be approved of which some author belongs to no
	// account on the forge, and so might be the approver.
	IgnoreUnlinkedAuthors bool
	Caches                *cache.Group // that the gatherers' caches are shown by
	// KnownInputs puts into a resolver's input all that is known beside Git: where
	// there is no server whose Argo CDs are asked. nil: what ArgoCDs and Repos say.
	KnownInputs func(in *appset.Input)
	Now         func() time.Time
	Log         *zap.Logger
	// MaxAge is how long facts about an open pull request may be used without any news of it. It is
	// also the longest time between two looks that counts for a soak: twice the time between two
	// sweeps.
	MaxAge time.Duration
	// EditTimeout is how long an edit may be judged; nil: 30 seconds.
	EditTimeout func() time.Duration
	// OnDisagree is told of a target that its Argo CD renders otherwise than Liftlock; nil: nothing
	// is.
	OnDisagree func(argocd, target, how string)
	// Resolving is told which commit of a repository is about to be resolved, for the case that
	// this is the process's end; done, that it is over. nil: nothing is. Its error is why the
	// commit is left alone.
	Resolving func(repo, commit string) (done func(), err error)
}

// Gatherer gathers facts about units: it joins what the gatherers know of Git, the
// targets, Argo CD, the forge and the store. It is safe for concurrent use.
type Gatherer struct {
	opts Options

	ArgoCDs   *branch.ArgoCDs
	Health    *live.HealthClock
	Releases  *branch.ReleaseReader
	Targets   *branch.TargetGatherer
	History   *branch.GitGatherer
	PullCache *pullGatherer
	Reviews   *people.ReviewGatherer
	Teams     *people.TeamGatherer
	Rules     *ruleGatherer
	Authors   *people.AuthorGatherer
	Live      *live.Gatherer
	Effects   *effects.Gatherer
	Records   *recordGatherer
	Changes   *effects.ChangeGatherer

	arrivals    *cache.Cache[string, *rememberedArrivals] // by unit
	older       *cache.Cache[string, olderArrivals]       // by unit
	resetTips   *cache.Cache[string, bool]                // that branches were reset to, by repository, branch and commit
	arrivalRows branch.DecodedRows[arrivalData]
	explained   *cache.Cache[string, string] // by environment: the last landed commit that the pull requests were read again for
	mergedByUs  *cache.Cache[string, bool]   // of merged pull requests of which a list doesn't say who merged them

	unfetchedHeads *cache.Cache[string, time.Time] // by repository and commit: when one was tried and couldn't be had
}

// New makes a gatherer.
func New(o Options) *Gatherer {
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.Floor == nil {
		o.Floor = func(_ string, g []policies.Gate) []policies.Gate { return g }
	}
	argocds := &branch.ArgoCDs{ByName: o.ArgoCDs, Main: o.MainArgoCD}
	health := live.NewHealthClock(o.Now)
	releases := branch.NewReleaseReader(o.Caches)
	targets := branch.NewTargetGatherer(&branch.TargetOptions{Resolver: o.Resolver, Generators: o.Generators, Repos: o.Repos,
		Renderer: o.Renderer,
		Caches:   o.Caches, KnownInputs: o.KnownInputs, Resolving: o.Resolving, Now: o.Now, Log: o.Log}, argocds, releases)
	pulls := newPullGatherer(o.Store, o.Now, o.MaxAge, o.Caches)
	if o.Externals != nil && o.Externals.Given == nil {
		o.Externals.Tracked = targets.Repos.All
		if o.Store != nil {
			o.Externals.Pushed = o.Store
		}
	}
	teams := people.NewTeamGatherer(o.Store, o.Now, o.Caches)
	edits := effects.New(&effects.Options{Targets: targets, Pulls: pulls, Renderer: o.Renderer, Externals: o.Externals,
		EditTimeout: o.EditTimeout, OnDisagree: o.OnDisagree, Now: o.Now, Caches: o.Caches})
	history := branch.NewGitGatherer(releases, o.Store, o.Caches)
	authors := people.NewAuthorGatherer(history, o.Store, o.Now, o.IgnoreUnlinkedAuthors, o.Caches)
	authors.Images = o.Images
	return &Gatherer{
		opts:      o,
		ArgoCDs:   argocds,
		Health:    health,
		Releases:  releases,
		Targets:   targets,
		History:   history,
		PullCache: pulls,
		Reviews:   people.NewReviewGatherer(o.Store, teams, o.Now, o.Caches),
		Teams:     teams,
		Rules:     &ruleGatherer{now: o.Now, store: o.Store, unreadSince: map[record.InRepository]time.Time{}},
		Authors:   authors,
		Live: &live.Gatherer{Argocds: argocds, Health: health, Releases: releases, Store: o.Store,
			Memories: branch.NewDecodedRows(o.Caches, "verification_memories", func(*verification.Memory) {}),
			Repos:    &targets.Repos, Renderer: edits.Renderer, Hydrated: branch.NewCache[[sha256.Size]byte, string](o.Caches,
				"hydrated_manifests", branch.MaxEnvironments)},
		Effects:        edits,
		Records:        &recordGatherer{store: o.Store, pulls: pulls, argocds: argocds},
		Changes:        effects.NewChangeGatherer(targets, o.Sandbox, o.Externals),
		arrivals:       newRememberedArrivals(o.Caches),
		older:          newOlderArrivals(o.Caches),
		resetTips:      branch.NewCache[string, bool](o.Caches, "reset_branches", 1000),
		arrivalRows:    branch.NewDecodedRows(o.Caches, "arrival_rows", (*arrivalData).nameRelease),
		explained:      branch.NewCache[string, string](o.Caches, "explained_commits", branch.MaxEnvironments),
		mergedByUs:     branch.NewCache[string, bool](o.Caches, "mergers", branch.MaxEnvironments),
		unfetchedHeads: branch.NewCache[string, time.Time](o.Caches, "unfetched_heads", branch.MaxRepositories),
	}
}

// Gates are an environment's gates, raised to the server's floor.
func (ga *Gatherer) Gates(spec *pipeline.Environment) []policies.Gate {
	return ga.opts.Floor(spec.Name, spec.Gates)
}
