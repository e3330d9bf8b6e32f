package facts

import (
	"context"
	"crypto/sha256"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/cache"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/manifest/render"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/internal/sandbox"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
	"github.com/liftlock/liftlock/internal/wording"
	"github.com/liftlock/liftlock/policies"
)

// Repository is one tracked repository with everything that reaches it.
type Repository struct {
	ID       string // "forge:owner/name"
	Name     forge.Repo
	Forge    forge.Forge
	ForgeRef string // the forge's name in the server's file
	// ForgeType is the forge's type in the server's file, by which its CODEOWNERS is read;
	// empty: github.
	ForgeType string
	Branch    string // the tracked branch
	Mirror    *git.Mirror
	URLs      []string // by which manifests may name it
	BotLogin  string   // our own login there
	BotID     int64    // our own account; it stays when the login is changed
	Former    []FormerAccount
	Number    int64 // its own on the forge, which no other has; 0: not known
	Marks     MarkSigner
	// Unsigned says why the forge takes our commits for unsigned, and what to do; empty: they are
	// signed, or who made this doesn't care.
	Unsigned string
	// SignedByForge says that the forge, a forge.CommitSigner, commits what we push.
	SignedByForge bool
}

// Words is one of Liftlock's texts in the words of the repository's forge.
func (r *Repository) Words(text string) string { return wording.ForForge(r.ForgeType, text) }

// IsOurs says whether an account is our own, also under another login.
func (r *Repository) IsOurs(login string, id int64) bool {
	return r.bot().Matches(policies.Account{ID: id, Login: login})
}

// isCommittedByUs says whether a commit names us as who committed it or, where the forge commits for
// us, as its author. Anybody can write that: what doesn't is somebody's and left alone, what does is
// proven by nothing.
func (r *Repository) isCommittedByUs(c *git.CommitInfo) bool {
	us := r.Mirror.Committer()
	if signer, ok := r.Forge.(forge.CommitSigner); ok && r.SignedByForge && signer.IsSigner(c.Committer.Email) {
		return strings.EqualFold(c.Author.Email, us.Email)
	}
	return c.Committer == us
}

// bot is our own account.
func (r *Repository) bot() policies.Account {
	return policies.Account{ID: r.BotID, Login: r.BotLogin}
}

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
	ArgoCDs    map[string]ArgoCD // by the name in the server's file
	MainArgoCD string            // for targets that name none
	Generators appset.Generators // that ask the network and may
	Repos      []*Repository     // all that are tracked: what generators may read of each other
	Sandbox    *sandbox.Runner   // for what strangers wrote
	Renderer   render.Renderer   // of what is on our own branches; nil: this process
	Externals  *ExternalFiles    // that renderings may read besides the tracked repositories; nil: none
	Floor      Floor
	Metrics    MetricSource   // nil: no server is asked
	Endpoints  EndpointSource // nil: no endpoint is asked
	Images     ImageSource    // nil: no image is looked into
	// IgnoreUnlinkedAuthors lets releases be approved of which some author belongs to no
	// account on the forge, and so might be the approver.
	IgnoreUnlinkedAuthors bool
	Caches                *cache.Group // that the gatherers' caches are shown by
	// KnownInputs puts into a resolver's input all that is known beside Git: where
	// there is no server whose Argo CDs are asked. nil: what ArgoCDs and Repos say.
	KnownInputs func(in *appset.Input)
	Now         func() time.Time
	Log         *zap.Logger
	// MaxAge is how long what was read of an open pull request may be used when
	// nothing was heard of it, and the longest time between two looks that counts for a
	// soak: twice the time between two sweeps.
	MaxAge time.Duration
	// EditTimeout is how long an edit may be judged; nil: 30 seconds.
	EditTimeout func() time.Duration
	// OnDisagree hears of a target that its Argo CD renders otherwise than Liftlock; nil: nobody does.
	OnDisagree func(argocd, target, how string)
	// Resolving is told which commit of a repository is about to be resolved, for the case that
	// this is the process's end; done, that it is over. nil: nobody is. Its error is why the commit is left alone.
	Resolving func(repo, commit string) (done func(), err error)
}

// Gatherer gathers facts about units: it joins what the gatherers know of Git, the
// targets, Argo CD, the forge and the store. It is safe for concurrent use.
type Gatherer struct {
	opts Options

	*argoCDs
	*healthClock
	*releaseReader
	*targetGatherer
	*gitGatherer
	*pullGatherer
	*reviewGatherer
	*teamGatherer
	*ruleGatherer
	*authorGatherer
	*argocdGatherer
	*effectGatherer
	*recordGatherer
	*changeGatherer

	arrivals    *cache.Cache[string, *rememberedArrivals] // by unit
	older       *cache.Cache[string, olderArrivals]       // by unit
	resetTips   *cache.Cache[string, bool]                // that branches were reset to, by repository, branch and commit
	arrivalRows decodedRows[arrivalData]
	explained   *cache.Cache[string, string]           // by environment: the last landed commit that the pull requests were read again for
	composed    *cache.Cache[string, []fieldedit.Edit] // by commit, place and release
	moved       *cache.Cache[string, []movedRef]       // by place, commits and release
	mergedByUs  *cache.Cache[string, bool]             // of merged pull requests of which a list doesn't say who merged them

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
	argocds := &argoCDs{byName: o.ArgoCDs, main: o.MainArgoCD}
	health := newHealthClock(o.Now)
	releases := newReleaseReader(o.Caches)
	targets := newTargetGatherer(&o, argocds, releases)
	pulls := newPullGatherer(o.Store, o.Now, o.MaxAge, o.Caches)
	if o.Externals != nil && o.Externals.given == nil {
		o.Externals.tracked = targets.repos.all
		if o.Store != nil {
			o.Externals.pushed = o.Store
		}
	}
	effects := newEffectGatherer(targets, pulls, &o)
	authors := newAuthorGatherer(releases, o.Store, o.Now, o.IgnoreUnlinkedAuthors, o.Caches)
	authors.images = o.Images
	return &Gatherer{
		opts:           o,
		argoCDs:        argocds,
		healthClock:    health,
		releaseReader:  releases,
		targetGatherer: targets,
		gitGatherer:    newGitGatherer(releases, o.Caches),
		pullGatherer:   pulls,
		reviewGatherer: newReviewGatherer(o.Now, o.Caches),
		teamGatherer:   newTeamGatherer(o.Store, o.Now, o.Caches),
		ruleGatherer:   &ruleGatherer{now: o.Now, store: o.Store, unreadSince: map[record.InRepository]time.Time{}},
		authorGatherer: authors,
		argocdGatherer: &argocdGatherer{argocds: argocds, health: health, releases: releases, store: o.Store,
			memories: newDecodedRows(o.Caches, "verification_memories", func(*verification.Memory) {}),
			repos:    &targets.repos, renderer: effects.renderer, hydrated: newCache[[sha256.Size]byte, string](o.Caches,
				"hydrated_manifests", maxEnvironments)},
		effectGatherer: effects,
		recordGatherer: &recordGatherer{store: o.Store, pulls: pulls, argocds: argocds},
		changeGatherer: &changeGatherer{targets: targets, sandbox: o.Sandbox, externals: o.Externals},
		arrivals:       newRememberedArrivals(o.Caches),
		older:          newOlderArrivals(o.Caches),
		resetTips:      newCache[string, bool](o.Caches, "reset_branches", 1000),
		arrivalRows:    newDecodedRows(o.Caches, "arrival_rows", (*arrivalData).nameRelease),
		explained:      newCache[string, string](o.Caches, "explained_commits", maxEnvironments),
		composed:       newComposedParts(o.Caches),
		moved:          newMovedRefs(o.Caches),
		mergedByUs:     newCache[string, bool](o.Caches, "mergers", maxEnvironments),
		unfetchedHeads: newCache[string, time.Time](o.Caches, "unfetched_heads", maxRepositories),
	}
}

// maxRepositories bounds the repositories of a server, and more than bounds those that
// there are.
const maxRepositories = 10_000

// maxEnvironments bounds what is remembered of each environment of each component:
// past it the ones that were looked at longest ago are worked out again.
const maxEnvironments = 50_000

// newCache makes a cache that is bounded by entries alone: of small values.
func newCache[K comparable, V any](group *cache.Group, name string, entries int) *cache.Cache[K, V] {
	return cache.New(group, cache.Options[K, V]{Name: name, Entries: entries})
}
