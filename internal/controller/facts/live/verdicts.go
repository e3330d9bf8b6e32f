package live

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/appset/isolation"
	"github.com/liftlock/liftlock/internal/cache"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
)

// Store is what is kept of targets and of how they were. *store.Store is one.
type Store interface {
	record.ReadWriter
	Unit(ctx context.Context, key string) (store.Unit, bool, error)
}

// Gatherer says how targets are: the verdicts about what landed, how they were
// before, and what is unhealthy elsewhere.
type Gatherer struct {
	Argocds  *branch.ArgoCDs
	Health   *HealthClock
	Memories branch.DecodedRows[verification.Memory]
	Releases *branch.ReleaseReader
	Store    Store

	Repos    *branch.TrackedRepositories
	Renderer *isolation.Renderer
	Hydrated *cache.Cache[[sha256.Size]byte, string] // why hydrated manifests don't have what landed; empty: they do
}

// targetLook is one look at the targets of an environment of a component.
type targetLook struct {
	ctx      context.Context
	c        *branch.ComponentBasis
	env      *promotion.Env
	memories []store.Observation
	trees    treesBudget
	out      Judged
}

// Judged is what is known of the targets of an environment of a component, and of the
// Applications below them.
type Judged struct {
	Targets            []promotion.Target
	Children           []ChildTarget
	Observations       []store.Observation          // verification memories that changed
	UnreachableArgoCDs []string                     // that can't be asked about the targets
	Labels             map[string]map[string]string // of the targets' Applications as they were seen last, by the targets' ID
	// by the repository's ID: what Argo CD reports and Git doesn't know yet, mostly revisions
	FetchRequests map[string][]string
	RetryAt       time.Time // when what failed is looked for again; zero: nothing did
}

// requestFetch asks for a repository to be fetched, once for what it is for.
func (j *Judged) requestFetch(r *branch.Repository, because string) {
	if j.FetchRequests == nil {
		j.FetchRequests = map[string][]string{}
	}
	j.FetchRequests[r.ID] = append(j.FetchRequests[r.ID], because)
}

// rememberLabels notes the labels of a target's Application.
func (j *Judged) rememberLabels(id string, labels map[string]string) {
	if len(labels) == 0 {
		return
	}
	if j.Labels == nil {
		j.Labels = map[string]map[string]string{}
	}
	j.Labels[id] = labels
}

// JudgeTargets gives an environment's targets, and the Applications below them, their
// verdicts about what landed.
func (ga *Gatherer) JudgeTargets(ctx context.Context, c *branch.ComponentBasis, env *promotion.Env, at *branch.ResolvedEnv,
	memories []store.Observation) Judged {
	l, isDone := &targetLook{ctx: ctx, c: c, env: env, memories: memories}, map[string]bool{}
	defer l.trees.stop()
	for i := range at.Targets {
		label := ga.Argocds.TargetLabel(at, &at.Targets[i])
		isDone[label] = ga.judgeTarget(l, at, &at.Targets[i], label, false)
	}
	ga.judgeChildren(l, at, isDone)
	return l.out
}

func (ga *Gatherer) NewTarget(t *appset.Target, label string) promotion.Target {
	return promotion.Target{Name: label, ID: ga.Argocds.TargetName(t), ArgoCD: ga.Argocds.ArgoCDOf(t), Cluster: ga.Argocds.ClusterOf(t),
		Namespace: t.DestNS}
}

// unjudged is the verdict about a target that can't be judged yet.
func unjudged(state verification.State, why string) verification.Verdict {
	return verification.Verdict{State: state, Reason: why, DriftUntold: why}
}

// judgeTarget adds a target with its verdict; true when it is done with what landed. A child has
// its parent's release as soon as the parent is done.
func (ga *Gatherer) judgeTarget(l *targetLook, at *branch.ResolvedEnv, t *appset.Target, label string, isChild bool) bool {
	c, env := l.c, l.env
	out := ga.NewTarget(t, label)
	app, appErr := ga.Argocds.FindApp(t)
	now := ga.Health.now() // not when the look began: a slow one would count as time in which it was so
	if name := ga.Argocds.ArgoCDOf(t); appErr != nil && !slices.Contains(l.out.UnreachableArgoCDs, name) {
		l.out.UnreachableArgoCDs = append(l.out.UnreachableArgoCDs, name)
	}
	l.out.rememberLabels(out.ID, ga.Argocds.LabelsOf(t))
	if !env.Release.OK || !env.Landed.OK {
		out.Verdict = unjudged(verification.Unclear, "what should be there can't be read")
		l.out.Targets = append(l.out.Targets, out)
		return false
	}
	e := verification.Expect{Commit: env.Landed.Value.Commit, Release: env.Release.Value.ID, Landed: c.Facts.Now,
		Limits: ga.verificationLimits(env.Spec.Verify, t)}
	for _, a := range env.History {
		if a.Commit == e.Commit && a.Release == e.Release {
			e.Landed = a.At
		}
	}
	if appErr != nil {
		e.Unreachable = appErr.Error()
	}
	e.Generated = GeneratedSpec(at, t, c.Contents[e.Release], app)
	var rel []verification.Relation
	if app != nil {
		if name := c.Pipeline.Metadata.Name; t.ApplicationSet == "" && app.MarkedFor != name {
			e.Unmarked = name
		}
		e.Window = ga.Argocds.ClosedWindow(t, app, now)
		out.NotHealthy = !verification.WasHealthy(app)
		rel, e.NotHydrated = ga.revisionRelations(l, at, t, app, app.Revisions, isChild)
		if app.Operation != nil {
			e.OperationRel, _ = ga.revisionRelations(l, at, t, app, app.Operation.Revisions, isChild)
			e.DeployedBefore = app.NeedsHistory() && ga.wasDeployedBefore(l, at, t, app, isChild)
		}
		if HasNoLocalSource(t) && (isChild || e.Generated != nil && e.Generated.Carries) {
			rel = []verification.Relation{verification.Holds} // as soon as its sources are the generated ones
		}
	}
	next := ga.judgeWithMemory(l, t, e, app, rel, now, &out)
	if out.Verdict.State == verification.Degraded {
		out.LastSync = lastSyncOf(app)
	}
	out.Timeline, out.Unhealthy = next.Timeline, ga.unhealthyAtFirst(t, app, &out.Verdict)
	l.out.Targets = append(l.out.Targets, out)
	return !next.Done.IsZero() && next.UndoneSince.IsZero()
}

// judgeWithMemory gives a target its verdict of how it was seen at a time, by what was
// remembered of it, and keeps what is to be remembered.
func (ga *Gatherer) judgeWithMemory(l *targetLook, t *appset.Target, e verification.Expect, app *verification.App,
	rel []verification.Relation, now time.Time, out *promotion.Target) verification.Memory {
	c := l.c
	var mem verification.Memory
	name := ga.Argocds.TargetName(t)
	known := slices.IndexFunc(l.memories, func(m store.Observation) bool { return m.Environment == l.env.Name && m.Target == name })
	if known >= 0 {
		var err error
		if mem, err = ga.Memories.Decode(l.memories[known].Data); err != nil {
			mem = verification.Memory{} // an unreadable memory is none: the clock starts again
		}
	}
	verdict, next := verification.Judge(e, app, rel, mem, now)
	if full := ga.lookForAbsent(l, t, app, &verdict, &next); full != nil {
		app = full
		verdict, next = verification.Judge(e, app, rel, mem, ga.Health.now())
	}
	if full := ga.lookForInconclusive(l, t, app, &verdict, &next); full != nil {
		app = full
		verdict, next = verification.Judge(e, app, rel, mem, ga.Health.now())
	}
	if full := ga.lookForUnchecked(l, t, app, &e, &verdict); full != nil {
		app = full
		verdict, next = verification.Judge(e, app, rel, mem, ga.Health.now())
	}
	if e.Images = ga.landedImages(l, t, out.Name, app, &verdict, &mem); e.Images != nil {
		verdict, next = verification.Judge(e, app, rel, mem, ga.Health.now())
	}
	if e.Running = ga.runningImages(l, t, app, &verdict, &next, now); e.Running != nil {
		verdict, next = verification.Judge(e, app, rel, mem, ga.Health.now())
	}
	ga.showUnchecked(t, app, &verdict)
	out.Verdict = verdict
	if follower := ga.Argocds.ByName[ga.Argocds.ArgoCDOf(t)].Follower; follower != nil && app != nil && IsBeingVerified(verdict.State) {
		until := now
		if verdict.Next.After(now) {
			until = verdict.Next
		}
		follower.Follow(app.Namespace, app.Name, until.Add(FollowedAfter))
	}
	if !reflect.DeepEqual(mem, next) {
		data, err := json.Marshal(next)
		if err != nil {
			panic(err) // plain data always marshals
		}
		l.out.Observations = append(l.out.Observations, store.Observation{Unit: wake.UnitName(c.Facts.Unit), Environment: l.env.Name,
			Target: name,
			Data:   data})
	}
	return next
}

// FollowedAfter is for how long a target under verification is still followed after the next
// look at it was due.
const FollowedAfter = time.Minute

// IsBeingVerified says of a target that what its Application does next decides about the
// release.
func IsBeingVerified(s verification.State) bool {
	switch s {
	case verification.Syncing, verification.Refreshing, verification.Progressing, verification.Suspended, verification.Soaking:
		return true
	}
	return false
}

// lastSyncOf is an Application's last sync; nil where there was none.
func lastSyncOf(app *verification.App) *promotion.SyncInfo {
	if app == nil || app.Operation == nil {
		return nil
	}
	op := app.Operation
	return &promotion.SyncInfo{StartedAt: op.StartedAt, FinishedAt: op.FinishedAt, Phase: op.Phase, InitiatedBy: op.By, Message: op.Message}
}

func (ga *Gatherer) verificationLimits(v pipeline.Verify, t *appset.Target) verification.Limits {
	return verification.Limits{
		ArriveWithin: v.ArriveWithin.AsDuration(), Timeout: v.Timeout.AsDuration(), HealthyFor: v.HealthyFor.AsDuration(),
		Watch: v.Watch.AsDuration(), Debounce: v.Debounce.AsDuration(),
		QueueFor: v.QueueFor.AsDuration(), SuspendedFor: v.SuspendedFor.AsDuration(), SuspendedFails: v.Suspended == pipeline.SuspendedFail,
		RequireHealthChecks: !v.IgnoreMissingHealth, OtherImagesPass: v.Runs.Images == pipeline.RunsReported,
		Trigger: v.Sync == "trigger", NoRefresh: ga.Argocds.ByName[ga.Argocds.ArgoCDOf(t)].NoRefresh,
	}
}

// revisionRelations says how revisions that an Application reports, one a source, stand to what
// landed; only for the sources that lie in this repository. notHydrated says, of a hydrated
// one, what it lacks to be known to have that.
func (ga *Gatherer) revisionRelations(l *targetLook, at *branch.ResolvedEnv, t *appset.Target, app *verification.App, revisions []string,
	isChild bool) (out []verification.Relation, notHydrated string) {
	for i, s := range t.Sources {
		if !s.Here {
			continue
		}
		if i >= len(revisions) {
			return nil, ""
		}
		if t.Hydration == nil {
			out = append(out, ga.revisionRelation(l, at, revisions[i]))
			continue
		}
		rel, why := ga.hydratedRelation(l, at, t, app, revisions[i], isChild)
		out, notHydrated = append(out, rel), cmp.Or(notHydrated, why)
	}
	return out, notHydrated
}

// wasDeployedBefore says that an Application was synced as a whole to what landed before
// its last operation began. Both times are Argo CD's.
func (ga *Gatherer) wasDeployedBefore(l *targetLook, at *branch.ResolvedEnv, t *appset.Target, app *verification.App, isChild bool) bool {
	return slices.ContainsFunc(app.Deployed, func(d verification.Deployment) bool {
		if d.At.After(app.Operation.StartedAt) {
			return false
		}
		rel, _ := ga.revisionRelations(l, at, t, app, d.Revisions, isChild)
		return len(rel) > 0 && !slices.ContainsFunc(rel, func(r verification.Relation) bool { return r != verification.Holds })
	})
}

func (ga *Gatherer) revisionRelation(l *targetLook, at *branch.ResolvedEnv, rev string) verification.Relation {
	ctx := context.Background() // local Git only, bounded by its own deadline
	c, env := l.c, l.env
	landed := env.Landed.Value.Commit
	r := c.Snapshot.Repo
	if rev == landed {
		return verification.Holds
	}
	ok, err := r.Mirror.IsAncestor(ctx, landed, rev)
	switch {
	case errors.Is(err, git.ErrUnknownCommit):
		l.out.requestFetch(c.Snapshot.Repo, rev)
		return verification.Unresolved
	case err != nil:
		return verification.Unresolved
	case !ok:
		return verification.Before
	case ga.Releases.ReleaseIDAt(r, rev, c.Pipeline, at) == env.Release.Value.ID:
		return verification.Holds
	}
	return verification.Superseded
}

// clusterIncidents lists the targets, a unit's own and others', that are unhealthy, or
// were a while ago. children are the Applications below the unit's targets.
func (ga *Gatherer) clusterIncidents(p *branch.ResolvedPipeline, children []appset.Target) []promotion.ClusterIncident {
	unhealthy := ga.Health.unhealthy()
	if len(unhealthy) == 0 {
		return nil
	}
	whose := map[appKey]*appset.Target{}
	for i := range children {
		t := &children[i]
		whose[appKey{t.ArgoCD, t.Namespace, t.Name}] = t
	}
	for i := range p.TargetSet.Targets {
		t := &p.TargetSet.Targets[i]
		key := appKey{ga.Argocds.ArgoCDOf(t), t.Namespace, t.Name}
		if _, ok := unhealthy[key]; ok {
			whose[key] = t
		}
	}
	var out []promotion.ClusterIncident
	for key, span := range unhealthy { // not all Applications: every evaluation does this
		argo, ok := ga.Argocds.ByName[key.argocd]
		if !ok {
			continue
		}
		a, ok := argo.Apps.Get(key.namespace, key.name)
		if !ok || !a.HasBadHealth() && !a.TurnedByItself() && span.until.IsZero() { // the watch is about to report it
			continue
		}
		w := promotion.ClusterIncident{
			ID: key.argocd + "/" + key.namespace + "/" + key.name, Cluster: ga.Argocds.ClusterOfDestination(key.argocd,
				a.Destination), Target: a.Name,
			Since: span.since, Until: span.until, Unsettled: span.unsettled, Health: a.Health,
		}
		if span.until.IsZero() {
			w.RevisionChanged = a.TurnedByChange()
		}
		if t := whose[key]; t != nil {
			w.Component, w.Environment = t.Component, t.Environment
		}
		out = append(out, w)
	}
	slices.SortFunc(out, func(a, b promotion.ClusterIncident) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// HealthBeforeMerge is how targets were when their pull request was still open, by their names
// across Argo CDs.
type HealthBeforeMerge struct {
	At         time.Time            `json:"at"`
	Healthy    map[string]bool      `json:"healthy"`              // how each was when that was last known
	Unknown    map[string]time.Time `json:"unknown,omitempty"`    // since when that of a target isn't known; zero: it never was
	Components map[string]bool      `json:"components,omitempty"` // the components whose targets were judged
}

var HealthBefore = record.Declare[record.Pull, HealthBeforeMerge](record.Declaration{
	Name: "health-before", Owner: "controller/facts", Lifetime: record.UntilDropped,
	Doc: "The health of the targets before the pull request was merged. Without it, degraded targets count as not known to have been " +
		"healthy.",
})

// healthKeptFor is how long before a merge it may have stopped being known how a target was:
// what it was then still counts. It is longer than a watch takes to be begun again.
const healthKeptFor = 2 * time.Minute

// keepRecorded goes on with what an earlier record says of a target.
func (h *HealthBeforeMerge) keepRecorded(last *HealthBeforeMerge, id string) {
	if well, known := last.Healthy[id]; known {
		h.Healthy[id] = well
	}
	if since, unknown := last.Unknown[id]; unknown {
		h.Unknown[id] = since
	}
}

// FillHealthBefore fills in whether the degraded targets were healthy before the landed release was
// merged; no decision needs that of others. While a promotion is open, it also records their
// health: people may merge it at any moment, a batch's also just after this component came into it.
func (ga *Gatherer) FillHealthBefore(ctx context.Context, c *branch.ComponentBasis, env *promotion.Env, children []ChildTarget) error {
	if p := cmp.Or(env.Open, env.BatchPull); p != nil {
		if err := ga.recordHealthBefore(ctx, c, env, p, children); err != nil {
			return err
		}
	}
	l := env.Landed.Value
	isDegraded := func(t promotion.Target) bool { return t.Verdict.State == verification.Degraded }
	if l.By != promotion.ByPromotion || !slices.ContainsFunc(env.Targets, isDegraded) {
		return nil
	}
	b, ok, err := HealthBefore.Get(ctx, ga.Store, record.OfPull(c.Snapshot.Repo.ID, l.Pull))
	if err != nil {
		return err
	}
	for i := range env.Targets {
		t := &env.Targets[i]
		well, known := b.Healthy[t.ID]
		since, unknown := b.Unknown[t.ID]
		switch {
		case !isDegraded(*t):
		case !ok:
			t.HealthyBefore = promotion.Unsure[bool]("how it was before the merge was not recorded, or the record is lost")
		case !known && !b.Components[c.Facts.Unit.Component] && len(l.Members) > 0:
			t.HealthyBefore = promotion.Unsure[bool]("it came into the pull request just before the merge, and how it was before was not " +
				"recorded")
		case unknown && since.IsZero():
			t.HealthyBefore = promotion.Unsure[bool]("it had the release already when it was looked at for the first time")
		case unknown && (!known || l.At.Sub(since) > healthKeptFor):
			t.HealthyBefore = promotion.Unsure[bool]("how it was could not be told from " + since.UTC().Format(time.RFC3339) +
				" on, before the merge")
		case !known:
			t.HealthyBefore = promotion.Sure(true) // it did not exist: there was nothing to be unhealthy
		default:
			t.HealthyBefore = promotion.Sure(well)
		}
	}
	return nil
}

func (ga *Gatherer) recordHealthBefore(ctx context.Context, c *branch.ComponentBasis, env *promotion.Env, open *promotion.Pull,
	children []ChildTarget) error {
	at := c.Unit.Envs[env.Name]
	about := record.OfPull(c.Snapshot.Repo.ID, open.Number)
	last, ok, err := HealthBefore.Get(ctx, ga.Store, about)
	if err != nil {
		return err
	}
	component := c.Facts.Unit.Component
	now := HealthBeforeMerge{Healthy: map[string]bool{}, Unknown: map[string]time.Time{}, Components: map[string]bool{component: true}}
	if open.Batch { // the other members' targets are theirs to record
		maps.Copy(now.Healthy, last.Healthy)
		maps.Copy(now.Unknown, last.Unknown)
		maps.Copy(now.Components, last.Components)
	}
	targets := slices.Concat(at.Targets, TargetsOf(children))
	for i := range targets {
		t := &targets[i]
		id := ga.Argocds.TargetName(t)
		delete(now.Healthy, id)
		delete(now.Unknown, id)
		app, err := ga.Argocds.FindApp(t)
		switch {
		case err != nil:
			now.Unknown[id] = c.Facts.Now
			now.keepRecorded(&last, id)
		case app == nil:
		case !ga.isDeployed(ctx, c, at, env, t, app):
			now.Healthy[id] = verification.WasHealthy(app)
		case last.Components[component]:
			now.keepRecorded(&last, id)
		default:
			now.Unknown[id] = time.Time{}
		}
	}
	if ok && maps.Equal(last.Healthy, now.Healthy) && maps.Equal(last.Unknown, now.Unknown) && maps.Equal(last.Components, now.Components) {
		return nil
	}
	now.At = c.Facts.Now
	return HealthBefore.Put(ctx, ga.Store, about, now)
}

// isDeployed says that a target has the release of a pull request that we still take for open, or a
// commit that was not fetched yet. It was merged, and the target's present state says nothing of
// its state before. For a component that isn't known to be in a batch, any other release than the
// environment's counts as the batch's.
func (ga *Gatherer) isDeployed(ctx context.Context, c *branch.ComponentBasis, at *branch.ResolvedEnv, env *promotion.Env, t *appset.Target,
	app *verification.App) bool {
	for i, s := range t.Sources {
		if !s.Here || i >= len(app.Revisions) {
			continue
		}
		rev := app.Revisions[i]
		if into := ga.hydratedRepository(c.Snapshot.Repo, app); t.Hydration != nil && into != nil {
			if claims := hydrationClaims(ctx, into, c.Snapshot.Repo.URLs, app, rev); len(claims) > 0 {
				rev = claims[0]
			}
		}
		switch id := ga.Releases.ReleaseIDAt(c.Snapshot.Repo, rev, c.Pipeline, at); {
		case id == "", env.Open != nil && id == env.Open.Release, env.Open == nil && id != env.Release.Value.ID:
			return true
		}
	}
	return false
}
