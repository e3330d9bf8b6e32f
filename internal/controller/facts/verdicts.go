package facts

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/appset/history"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/internal/store"
)

// targets fills in an environment's targets with their verdicts about what landed.
func (o *Observer) targets(c *Case, env *promotion.Env, at *EnvAt, memories []store.Observation) {
	for i := range at.Targets {
		t := &at.Targets[i]
		out := promotion.Target{Name: t.Name, Cluster: ClusterOf(t)}
		app, appErr := o.app(t)
		if name := o.ArgoCDOf(t); appErr != nil && !slices.Contains(c.Unreached, name) {
			c.Unreached = append(c.Unreached, name)
		}
		if !env.Release.OK || !env.Landed.OK {
			out.Verdict = verification.Verdict{State: verification.Unclear, Reason: "what should be there can't be read"}
			env.Targets = append(env.Targets, out)
			continue
		}
		e := verification.Expect{Commit: env.Landed.Value.Commit, Release: env.Release.Value.ID, Landed: c.Facts.Now, Limits: o.limitsOf(env.Spec.Verify, t)}
		for _, a := range env.History {
			if a.Commit == e.Commit && a.Release == e.Release {
				e.Landed = a.At
			}
		}
		if appErr != nil {
			e.Unreachable = appErr.Error()
		}
		e.Generated = generated(at, t, c.Contents[e.Release], app)
		var rel []verification.Relation
		if app != nil {
			out.Unhealthy = app.Unhealthy
			rel = o.relations(c, env, at, t, app.Revisions)
			if app.Operation != nil {
				e.OperationRel = o.relations(c, env, at, t, app.Operation.Revisions)
			}
			if nothingHere(t) && e.Generated != nil && e.Generated.Carries {
				rel = []verification.Relation{verification.Holds} // as soon as its sources are the generated ones
			}
		}
		var mem verification.Memory
		name := ArgoName(o, t)
		for _, m := range memories {
			if m.Environment == env.Name && m.Target == name {
				if err := json.Unmarshal(m.Data, &mem); err != nil {
					mem = verification.Memory{} // an unreadable memory is none: the clock starts again
				}
			}
		}
		out.Verdict, mem = verification.Judge(e, app, rel, mem, c.Facts.Now)
		out.Timeline = mem.Timeline
		data, err := json.Marshal(mem)
		if err != nil {
			panic(err) // plain data always marshals
		}
		c.Memories = append(c.Memories, store.Observation{Unit: UnitName(c.Facts.Unit), Environment: env.Name, Target: name, Data: data})
		env.Targets = append(env.Targets, out)
	}
}

// ArgoName is a target's name across Argo CDs.
func ArgoName(o *Observer, t *appset.Target) string {
	return o.ArgoCDOf(t) + "/" + t.Namespace + "/" + t.Name
}

// ClusterOf is the cluster that a target deploys to.
func ClusterOf(t *appset.Target) string {
	return verification.Destination{Name: t.Cluster, Server: t.Server}.Cluster()
}

func (o *Observer) limitsOf(v pipeline.Verify, t *appset.Target) verification.Limits {
	return verification.Limits{
		ArriveWithin: v.ArriveWithin.AsDuration(), Timeout: v.Timeout.AsDuration(), HealthyFor: v.HealthyFor.AsDuration(), Watch: v.Watch.AsDuration(), Debounce: v.Debounce.AsDuration(),
		Trigger: v.Sync == "trigger", NoRefresh: o.o.ArgoCDs[o.ArgoCDOf(t)].NoRefresh,
	}
}

// relations says how revisions that Argo CD reports, one a source, stand to what
// landed; only for the sources that lie in this repository.
func (o *Observer) relations(c *Case, env *promotion.Env, at *EnvAt, t *appset.Target, revisions []string) []verification.Relation {
	var out []verification.Relation
	for i, s := range t.Sources {
		if !s.Here {
			continue
		}
		if i >= len(revisions) {
			return nil
		}
		rel := o.relation(c, env, at, revisions[i])
		if r := c.Snapshot.Repo; t.Hydration != nil && (rel == verification.Before || rel == verification.Unresolved) {
			if dry := dryOf(r.Mirror.Tree(revisions[i]), t.Hydration.Path, r.URLs); dry != "" {
				rel = o.relation(c, env, at, dry)
			}
		}
		out = append(out, rel)
	}
	return out
}

func (o *Observer) relation(c *Case, env *promotion.Env, at *EnvAt, rev string) verification.Relation {
	ctx := context.Background() // local Git only, bounded by its own deadline
	landed := env.Landed.Value.Commit
	r := c.Snapshot.Repo
	if rev == landed {
		return verification.Holds
	}
	ok, err := r.Mirror.IsAncestor(ctx, landed, rev)
	switch {
	case errors.Is(err, git.ErrUnknownCommit):
		c.Unknown = append(c.Unknown, rev)
		return verification.Unresolved
	case err != nil:
		return verification.Unresolved
	case !ok:
		return verification.Before
	case o.idAt(r, rev, c.Pipeline, at) == env.Release.Value.ID:
		return verification.Holds
	}
	return verification.Superseded
}

// weather lists the other units' targets that are unwell.
func (o *Observer) weather(c *Case) []promotion.ClusterIncident {
	own := map[string]bool{}
	for _, e := range c.Unit.Envs {
		for i := range e.Targets {
			own[e.Targets[i].Name] = true
		}
	}
	o.mu.Lock()
	unwell := maps.Clone(o.unwell)
	o.mu.Unlock()
	if len(unwell) == 0 {
		return nil
	}
	whose := map[appKey]*appset.Target{}
	for i := range c.Pipeline.Fleet.Targets {
		t := &c.Pipeline.Fleet.Targets[i]
		whose[appKey{o.ArgoCDOf(t), t.Namespace, t.Name}] = t
	}
	var out []promotion.ClusterIncident
	for key, since := range unwell { // not all Applications: every component asks this at every look
		argo, ok := o.o.ArgoCDs[key.argocd]
		if own[key.name] || !ok {
			continue
		}
		a, ok := argo.Apps.Get(key.namespace, key.name)
		if !ok || a.Health != "Degraded" && a.Health != "Missing" {
			continue
		}
		w := promotion.ClusterIncident{Cluster: a.Destination.Cluster(), Target: a.Name, Since: since}
		if t := whose[key]; t != nil {
			w.Component, w.Environment = t.Component, t.Environment
		}
		out = append(out, w)
	}
	slices.SortFunc(out, func(a, b promotion.ClusterIncident) int { return strings.Compare(a.Target, b.Target) })
	return out
}

// beforeKey is where the store keeps how an environment's targets were before a merge.
func beforeKey(repo string, pull int) string {
	return "before|" + repo + "|" + strconv.Itoa(pull)
}

// beforeMerge is how targets were when their pull request was still open.
type beforeMerge struct {
	At    time.Time       `json:"at"`
	Well  map[string]bool `json:"well"`
	Noted map[string]bool `json:"noted,omitempty"` // the components whose targets were looked at
}

// before fills in whether the targets were well before what landed was merged,
// and, while a promotion is open, notes how they are: people may merge it at any
// moment.
func (o *Observer) before(ctx context.Context, c *Case, env *promotion.Env) error {
	if env.Open != nil {
		if err := o.noteBefore(ctx, c, env); err != nil {
			return err
		}
	}
	l := env.Landed.Value
	if l.By != promotion.ByPromotion {
		return nil
	}
	raw, ok, err := o.o.Store.State(ctx, beforeKey(c.Snapshot.Repo.ID, l.Pull))
	if err != nil {
		return err
	}
	var b beforeMerge
	if ok {
		if err := json.Unmarshal(raw, &b); err != nil {
			ok = false
		}
	}
	for i := range env.Targets {
		t := &env.Targets[i]
		well, known := b.Well[t.Name]
		switch {
		case !ok:
			t.HealthyBefore = promotion.Unsure[bool]("how it was before the merge was not recorded, or the record is lost")
		case !known && !b.Noted[c.Facts.Unit.Component] && len(l.Members) > 0:
			t.HealthyBefore = promotion.Unsure[bool]("it came into the pull request just before the merge, and how it was before was not recorded")
		case !known:
			t.HealthyBefore = promotion.Sure(true) // it did not exist: there was nothing to be unwell
		default:
			t.HealthyBefore = promotion.Sure(well)
		}
	}
	return nil
}

func (o *Observer) noteBefore(ctx context.Context, c *Case, env *promotion.Env) error {
	at := c.Unit.Envs[env.Name]
	key := beforeKey(c.Snapshot.Repo.ID, env.Open.Number)
	raw, ok, err := o.o.Store.State(ctx, key)
	if err != nil {
		return err
	}
	var last, now beforeMerge
	if ok && json.Unmarshal(raw, &last) != nil {
		ok, last = false, beforeMerge{}
	}
	now.Well, now.Noted = map[string]bool{}, map[string]bool{c.Facts.Unit.Component: true}
	if len(env.Open.Members) > 0 {
		maps.Copy(now.Well, last.Well) // the other passengers' targets are theirs to note
		maps.Copy(now.Noted, last.Noted)
	}
	for i := range at.Targets {
		t := &at.Targets[i]
		app, err := o.app(t)
		switch {
		case err != nil:
			now.Well[t.Name] = false // nobody can tell: never held for the promotion's doing
		case app != nil && o.deployedAlready(c, at, env.Open.Release, t, app):
			now.Well[t.Name] = last.Well[t.Name]
		case app != nil:
			now.Well[t.Name] = verification.WasHealthy(app)
		}
	}
	if ok && maps.Equal(last.Well, now.Well) && maps.Equal(last.Noted, now.Noted) {
		return nil
	}
	now.At = c.Facts.Now
	data, err := json.Marshal(now)
	if err != nil {
		panic(err) // plain data always marshals
	}
	return o.o.Store.PutState(ctx, key, data)
}

// deployedAlready says that a target has the release of a pull request that we still
// take for open, or a commit that was not fetched yet: it was merged, and how
// the target is now tells nothing of how it was before.
func (o *Observer) deployedAlready(c *Case, at *EnvAt, release string, t *appset.Target, app *verification.App) bool {
	for i, s := range t.Sources {
		if !s.Here || i >= len(app.Revisions) {
			continue
		}
		if id := o.idAt(c.Snapshot.Repo, app.Revisions[i], c.Pipeline, at); id == "" || id == release {
			return true
		}
	}
	return false
}

// revertCommits lists the releases that revert commits on the branch name and
// that nothing has brought back since: a restraint that outlives the store and
// the pull requests. A revert changes what landed, so the answer is remembered by that.
func (o *Observer) revertCommits(ctx context.Context, c *Case, env *promotion.Env, at *EnvAt) error {
	if env.Source() {
		return nil
	}
	u := c.Facts.Unit
	key := UnitName(u) + "|" + env.Name + "|" + env.Landed.Value.Commit
	o.mu.Lock()
	known, ok := o.reverted[key]
	o.mu.Unlock()
	if ok {
		env.RevertedReleases = known
		return nil
	}
	scope, err := fieldedit.NewScope(at.Overlay(c.Pipeline.Pipeline))
	if err != nil {
		return err
	}
	paths := scope.Paths()
	if paths != nil {
		paths = slices.Concat(at.Roots, paths) // what was carried when it was reverted may not be carried any more
	}
	log, err := c.Snapshot.Repo.Mirror.Log(ctx, git.LogQuery{From: env.Tip, Paths: paths, Grep: promotion.TrailerKind + ": ", Limit: deepest(scope)})
	if err != nil {
		return err
	}
	env.RevertedReleases = history.Reverted(log, u, env.Name)
	o.mu.Lock()
	o.reverted[key] = env.RevertedReleases
	o.mu.Unlock()
	return nil
}
