package facts

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
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
)

// argocdGatherer says how targets are: the verdicts about what landed, how they were
// before, and what is unhealthy elsewhere.
type argocdGatherer struct {
	argocds  *argoCDs
	health   *healthClock
	memories decodedRows[verification.Memory]
	releases *releaseReader
	store    record.ReadWriter

	repos    *trackedRepositories
	renderer *isolation.Renderer
	hydrated *cache.Cache[[sha256.Size]byte, string] // why hydrated manifests don't have what landed; empty: they do
}

// targetLook is one look at the targets of an environment of a component.
type targetLook struct {
	ctx      context.Context
	c        *ComponentEvaluation
	env      *promotion.Env
	memories []store.Observation
	trees    treesBudget
}

// judgeTargets fills in an environment's targets, and the Applications below them, with
// their verdicts about what landed.
func (ag *argocdGatherer) judgeTargets(ctx context.Context, c *ComponentEvaluation, env *promotion.Env, at *ResolvedEnv,
	memories []store.Observation) {
	l, isDone := &targetLook{ctx: ctx, c: c, env: env, memories: memories}, map[string]bool{}
	defer l.trees.stop()
	for i := range at.Targets {
		label := ag.argocds.TargetLabel(at, &at.Targets[i])
		isDone[label] = ag.judgeTarget(l, at, &at.Targets[i], label, false)
	}
	ag.judgeChildren(l, at, isDone)
}

func (ag *argocdGatherer) newTarget(t *appset.Target, label string) promotion.Target {
	return promotion.Target{Name: label, ID: ag.argocds.TargetName(t), ArgoCD: ag.argocds.ArgoCDOf(t), Cluster: ag.argocds.ClusterOf(t),
		Namespace: t.DestNS}
}

// unjudged is the verdict about a target that can't be judged yet.
func unjudged(state verification.State, why string) verification.Verdict {
	return verification.Verdict{State: state, Reason: why, DriftUntold: why}
}

// judgeTarget adds a target with its verdict; true when it is done with what landed. What a
// child has through its parent it has as soon as that one is done.
func (ag *argocdGatherer) judgeTarget(l *targetLook, at *ResolvedEnv, t *appset.Target, label string, isChild bool) bool {
	c, env := l.c, l.env
	out := ag.newTarget(t, label)
	app, appErr := ag.argocds.findApp(t)
	now := ag.health.now() // not when the look began: a slow one would count as time in which it was so
	if name := ag.argocds.ArgoCDOf(t); appErr != nil && !slices.Contains(c.UnreachableArgoCDs, name) {
		c.UnreachableArgoCDs = append(c.UnreachableArgoCDs, name)
	}
	c.rememberLabels(out.ID, ag.argocds.labelsOf(t))
	if !env.Release.OK || !env.Landed.OK {
		out.Verdict = unjudged(verification.Unclear, "what should be there can't be read")
		env.Targets = append(env.Targets, out)
		return false
	}
	e := verification.Expect{Commit: env.Landed.Value.Commit, Release: env.Release.Value.ID, Landed: c.Facts.Now,
		Limits: ag.verificationLimits(env.Spec.Verify, t)}
	for _, a := range env.History {
		if a.Commit == e.Commit && a.Release == e.Release {
			e.Landed = a.At
		}
	}
	if appErr != nil {
		e.Unreachable = appErr.Error()
	}
	e.Generated = generatedSpec(at, t, c.contents[e.Release], app)
	var rel []verification.Relation
	if app != nil {
		if name := c.Pipeline.Metadata.Name; t.ApplicationSet == "" && app.MarkedFor != name {
			e.Unmarked = name
		}
		e.Window = ag.argocds.closedWindow(t, app, now)
		out.NotHealthy = !verification.WasHealthy(app)
		rel, e.NotHydrated = ag.revisionRelations(l, at, t, app, app.Revisions, isChild)
		if app.Operation != nil {
			e.OperationRel, _ = ag.revisionRelations(l, at, t, app, app.Operation.Revisions, isChild)
			e.DeployedBefore = app.NeedsHistory() && ag.wasDeployedBefore(l, at, t, app, isChild)
		}
		if hasNoLocalSource(t) && (isChild || e.Generated != nil && e.Generated.Carries) {
			rel = []verification.Relation{verification.Holds} // as soon as its sources are the generated ones
		}
	}
	next := ag.judgeWithMemory(l, t, e, app, rel, now, &out)
	if out.Verdict.State == verification.Degraded {
		out.LastSync = lastSyncOf(app)
	}
	out.Timeline, out.Unhealthy = next.Timeline, ag.unhealthyAtFirst(t, app, &out.Verdict)
	env.Targets = append(env.Targets, out)
	return !next.Done.IsZero() && next.UndoneSince.IsZero()
}

// judgeWithMemory gives a target its verdict of how it was seen at a time, by what was
// remembered of it, and keeps what is to be remembered.
func (ag *argocdGatherer) judgeWithMemory(l *targetLook, t *appset.Target, e verification.Expect, app *verification.App,
	rel []verification.Relation, now time.Time, out *promotion.Target) verification.Memory {
	c := l.c
	var mem verification.Memory
	name := ag.argocds.TargetName(t)
	known := slices.IndexFunc(l.memories, func(m store.Observation) bool { return m.Environment == l.env.Name && m.Target == name })
	if known >= 0 {
		var err error
		if mem, err = ag.memories.decode(l.memories[known].Data); err != nil {
			mem = verification.Memory{} // an unreadable memory is none: the clock starts again
		}
	}
	verdict, next := verification.Judge(e, app, rel, mem, now)
	if full := ag.lookForAbsent(l, t, app, &verdict, &next); full != nil {
		app = full
		verdict, next = verification.Judge(e, app, rel, mem, ag.health.now())
	}
	if full := ag.lookForInconclusive(l, t, app, &verdict, &next); full != nil {
		app = full
		verdict, next = verification.Judge(e, app, rel, mem, ag.health.now())
	}
	if full := ag.lookForUnchecked(l, t, app, &e, &verdict); full != nil {
		app = full
		verdict, next = verification.Judge(e, app, rel, mem, ag.health.now())
	}
	if e.Images = ag.landedImages(l, t, out.Name, app, &verdict, &mem); e.Images != nil {
		verdict, next = verification.Judge(e, app, rel, mem, ag.health.now())
	}
	if e.Running = ag.runningImages(l, t, app, &verdict, &next, now); e.Running != nil {
		verdict, next = verification.Judge(e, app, rel, mem, ag.health.now())
	}
	ag.showUnchecked(t, app, &verdict)
	out.Verdict = verdict
	if follower := ag.argocds.byName[ag.argocds.ArgoCDOf(t)].Follower; follower != nil && app != nil && isBeingVerified(verdict.State) {
		until := now
		if verdict.Next.After(now) {
			until = verdict.Next
		}
		follower.Follow(app.Namespace, app.Name, until.Add(followedAfter))
	}
	if !reflect.DeepEqual(mem, next) {
		data, err := json.Marshal(next)
		if err != nil {
			panic(err) // plain data always marshals
		}
		c.Observations = append(c.Observations, store.Observation{Unit: wake.UnitName(c.Facts.Unit), Environment: l.env.Name, Target: name,
			Data: data})
	}
	return next
}

// followedAfter is for how long a target under verification is still followed after the next
// look at it was due.
const followedAfter = time.Minute

// isBeingVerified says of a target that what its Application does next decides about the
// release.
func isBeingVerified(s verification.State) bool {
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

func (ag *argocdGatherer) verificationLimits(v pipeline.Verify, t *appset.Target) verification.Limits {
	return verification.Limits{
		ArriveWithin: v.ArriveWithin.AsDuration(), Timeout: v.Timeout.AsDuration(), HealthyFor: v.HealthyFor.AsDuration(),
		Watch: v.Watch.AsDuration(), Debounce: v.Debounce.AsDuration(),
		QueueFor: v.QueueFor.AsDuration(), SuspendedFor: v.SuspendedFor.AsDuration(), SuspendedFails: v.Suspended == pipeline.SuspendedFail,
		RequireHealthChecks: !v.IgnoreMissingHealth, OtherImagesPass: v.Runs.Images == pipeline.RunsReported,
		Trigger: v.Sync == "trigger", NoRefresh: ag.argocds.byName[ag.argocds.ArgoCDOf(t)].NoRefresh,
	}
}

// revisionRelations says how revisions that an Application reports, one a source, stand to what
// landed; only for the sources that lie in this repository. notHydrated says, of a hydrated
// one, what it lacks to be known to have that.
func (ag *argocdGatherer) revisionRelations(l *targetLook, at *ResolvedEnv, t *appset.Target, app *verification.App, revisions []string,
	isChild bool) (out []verification.Relation, notHydrated string) {
	for i, s := range t.Sources {
		if !s.Here {
			continue
		}
		if i >= len(revisions) {
			return nil, ""
		}
		if t.Hydration == nil {
			out = append(out, ag.revisionRelation(l.c, l.env, at, revisions[i]))
			continue
		}
		rel, why := ag.hydratedRelation(l, at, t, app, revisions[i], isChild)
		out, notHydrated = append(out, rel), cmp.Or(notHydrated, why)
	}
	return out, notHydrated
}

// wasDeployedBefore says that an Application was synced as a whole to what landed before
// its last operation began. Both times are Argo CD's.
func (ag *argocdGatherer) wasDeployedBefore(l *targetLook, at *ResolvedEnv, t *appset.Target, app *verification.App, isChild bool) bool {
	return slices.ContainsFunc(app.Deployed, func(d verification.Deployment) bool {
		if d.At.After(app.Operation.StartedAt) {
			return false
		}
		rel, _ := ag.revisionRelations(l, at, t, app, d.Revisions, isChild)
		return len(rel) > 0 && !slices.ContainsFunc(rel, func(r verification.Relation) bool { return r != verification.Holds })
	})
}

func (ag *argocdGatherer) revisionRelation(c *ComponentEvaluation, env *promotion.Env, at *ResolvedEnv, rev string) verification.Relation {
	ctx := context.Background() // local Git only, bounded by its own deadline
	landed := env.Landed.Value.Commit
	r := c.Snapshot.Repo
	if rev == landed {
		return verification.Holds
	}
	ok, err := r.Mirror.IsAncestor(ctx, landed, rev)
	switch {
	case errors.Is(err, git.ErrUnknownCommit):
		c.requestFetch(c.Snapshot.Repo, rev)
		return verification.Unresolved
	case err != nil:
		return verification.Unresolved
	case !ok:
		return verification.Before
	case ag.releases.releaseIDAt(r, rev, c.Pipeline, at) == env.Release.Value.ID:
		return verification.Holds
	}
	return verification.Superseded
}

// clusterIncidents lists the targets, a unit's own and others', that are unhealthy, or
// were a while ago. children are the Applications below the unit's targets.
func (ag *argocdGatherer) clusterIncidents(p *ResolvedPipeline, children []appset.Target) []promotion.ClusterIncident {
	unhealthy := ag.health.unhealthy()
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
		key := appKey{ag.argocds.ArgoCDOf(t), t.Namespace, t.Name}
		if _, ok := unhealthy[key]; ok {
			whose[key] = t
		}
	}
	var out []promotion.ClusterIncident
	for key, span := range unhealthy { // not all Applications: every evaluation does this
		argo, ok := ag.argocds.byName[key.argocd]
		if !ok {
			continue
		}
		a, ok := argo.Apps.Get(key.namespace, key.name)
		if !ok || !a.HasBadHealth() && !a.TurnedByItself() && span.until.IsZero() { // the watch is about to report it
			continue
		}
		w := promotion.ClusterIncident{
			ID: key.argocd + "/" + key.namespace + "/" + key.name, Cluster: ag.argocds.clusterOf(key.argocd, a.Destination), Target: a.Name,
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

// healthBeforeMerge is how targets were when their pull request was still open, by their names
// across Argo CDs.
type healthBeforeMerge struct {
	At         time.Time            `json:"at"`
	Healthy    map[string]bool      `json:"healthy"`              // how each was when that was last known
	Unknown    map[string]time.Time `json:"unknown,omitempty"`    // since when that of a target isn't known; zero: it never was
	Components map[string]bool      `json:"components,omitempty"` // the components whose targets were looked at
}

var healthBefore = record.Declare[record.Pull, healthBeforeMerge](record.Declaration{
	Name: "health-before", Owner: "controller/facts", Lifetime: record.UntilDropped,
	Doc: "The health of the targets before the pull request was merged. Without it, degraded targets count as not known to have been " +
		"healthy.",
})

// healthKeptFor is how long before a merge it may have stopped being known how a target was:
// what it was then still counts. It is longer than a watch takes to be begun again.
const healthKeptFor = 2 * time.Minute

// keepRecorded goes on with what an earlier record says of a target.
func (h *healthBeforeMerge) keepRecorded(last *healthBeforeMerge, id string) {
	if well, known := last.Healthy[id]; known {
		h.Healthy[id] = well
	}
	if since, unknown := last.Unknown[id]; unknown {
		h.Unknown[id] = since
	}
}

// fillHealthBefore fills in whether the degraded targets were well before what landed was
// merged: of others nobody asks. And, while a promotion is open, notes how they are: people may merge it at any
// moment, a batch's also just after this component came into it.
func (ag *argocdGatherer) fillHealthBefore(ctx context.Context, c *ComponentEvaluation, env *promotion.Env) error {
	if p := cmp.Or(env.Open, env.BatchPull); p != nil {
		if err := ag.recordHealthBefore(ctx, c, env, p); err != nil {
			return err
		}
	}
	l := env.Landed.Value
	isDegraded := func(t promotion.Target) bool { return t.Verdict.State == verification.Degraded }
	if l.By != promotion.ByPromotion || !slices.ContainsFunc(env.Targets, isDegraded) {
		return nil
	}
	b, ok, err := healthBefore.Get(ctx, ag.store, record.OfPull(c.Snapshot.Repo.ID, l.Pull))
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

func (ag *argocdGatherer) recordHealthBefore(ctx context.Context, c *ComponentEvaluation, env *promotion.Env, open *promotion.Pull) error {
	at := c.Unit.Envs[env.Name]
	about := record.OfPull(c.Snapshot.Repo.ID, open.Number)
	last, ok, err := healthBefore.Get(ctx, ag.store, about)
	if err != nil {
		return err
	}
	component := c.Facts.Unit.Component
	now := healthBeforeMerge{Healthy: map[string]bool{}, Unknown: map[string]time.Time{}, Components: map[string]bool{component: true}}
	if open.Batch { // the other members' targets are theirs to record
		maps.Copy(now.Healthy, last.Healthy)
		maps.Copy(now.Unknown, last.Unknown)
		maps.Copy(now.Components, last.Components)
	}
	targets := slices.Concat(at.Targets, c.ChildTargets(env.Name))
	for i := range targets {
		t := &targets[i]
		id := ag.argocds.TargetName(t)
		delete(now.Healthy, id)
		delete(now.Unknown, id)
		app, err := ag.argocds.findApp(t)
		switch {
		case err != nil:
			now.Unknown[id] = c.Facts.Now
			now.keepRecorded(&last, id)
		case app == nil:
		case !ag.isDeployed(ctx, c, at, env, t, app):
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
	return healthBefore.Put(ctx, ag.store, about, now)
}

// isDeployed says that a target has the release of a pull request that we still
// take for open, or a commit that was not fetched yet: it was merged, and how
// the target is now says nothing of how it was before. What a batch would bring of a
// component that we don't know to be in it is anything but what the environment has.
func (ag *argocdGatherer) isDeployed(ctx context.Context, c *ComponentEvaluation, at *ResolvedEnv, env *promotion.Env, t *appset.Target,
	app *verification.App) bool {
	for i, s := range t.Sources {
		if !s.Here || i >= len(app.Revisions) {
			continue
		}
		rev := app.Revisions[i]
		if into := ag.hydratedRepository(c.Snapshot.Repo, app); t.Hydration != nil && into != nil {
			if claims := hydrationClaims(ctx, into, c.Snapshot.Repo.URLs, app, rev); len(claims) > 0 {
				rev = claims[0]
			}
		}
		switch id := ag.releases.releaseIDAt(c.Snapshot.Repo, rev, c.Pipeline, at); {
		case id == "", env.Open != nil && id == env.Open.Release, env.Open == nil && id != env.Release.Value.ID:
			return true
		}
	}
	return false
}
