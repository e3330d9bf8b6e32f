package sim

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/promotion/verification"
)

const (
	healthy     = "Healthy"
	progressing = "Progressing"
	degraded    = "Degraded"
	synced      = "Synced"
	outOfSync   = "OutOfSync"
)

// app is an Application with what runs in its cluster.
type app struct {
	target   target
	state    verification.App  // as the API server has it
	health   string            // as it is in the cluster
	stale    bool              // the API server's health is from before the last sync
	shown    time.Time         // since when it no longer is, of the last time that it was
	tag      string            // what Argo CD says is deployed
	runs     [workloads]string // what each workload's pods have: the same, unless something pins it
	pinned   [workloads]bool   // what is synced doesn't come to that one's pods
	turn     int               // counts deployments: what was planned for an earlier one doesn't happen
	incident bool              // its cluster is unwell
	compared bool              // a comparison is planned
}

// argocd is an Argo CD with its Applications, as they are; each process has its own view.
type argocd struct {
	sim  *Simulation
	apps []*app
}

func newArgoCD(sim *Simulation) *argocd {
	a := &argocd{sim: sim}
	head, _ := sim.remote.Head(trunk)
	for _, p := range sim.scenario.targets() {
		x := &app{target: p, tag: sim.tagAt(head, p), health: healthy, state: verification.App{ArgoCD: "hub", Namespace: "argocd",
			Name: p.appName(), UID: p.appName() + "-1",
			Sources:     []verification.Source{{RepoURL: cloneURL, Path: p.folder(), TargetRevision: trunk}},
			Destination: verification.Destination{Server: clusterURL, Namespace: "shop"},
			AutoSync:    true, SyncStatus: synced, Revisions: []string{head}, ComparedToSpec: true, Health: healthy,
			HealthSince: sim.now.Add(-time.Hour), ReconciledAt: sim.now}}
		a.rollOut(x)
		a.apps = append(a.apps, x)
		sim.noteHealth(x)
		a.reconcileEver(x)
	}
	return a
}

// rarestComparison is how long it takes at most until an Application is compared again.
const rarestComparison = 210 * time.Second

// reconcileEver compares an Application every few minutes, whatever happens.
func (a *argocd) reconcileEver(x *app) {
	a.sim.after(a.sim.between(150*time.Second, rarestComparison), func() {
		a.compare(x)
		a.reconcileEver(x)
	})
}

// noticePush lets Applications be compared soon after a push, as a webhook does.
func (a *argocd) noticePush() {
	for _, x := range a.apps {
		a.compareSoon(x, a.sim.between(time.Second, 40*time.Second))
	}
}

func (a *argocd) compareSoon(x *app, d time.Duration) {
	if x.compared {
		return
	}
	x.compared = true
	a.sim.after(d, func() {
		x.compared = false
		a.compare(x)
	})
}

// compare is one reconciliation.
func (a *argocd) compare(x *app) {
	sim := a.sim
	if sim.now.Before(sim.away[theGit]) {
		return
	}
	head, _ := sim.remote.Head(trunk)
	s := &x.state
	s.Revisions, s.ReconciledAt, s.RefreshPending = []string{head}, sim.now, false
	s.SyncStatus = synced
	a.showHealth(x)
	if sim.tagAt(head, x.target) != x.tag {
		s.SyncStatus = outOfSync
		if op := s.Operation; op == nil || !op.FinishedAt.IsZero() {
			sim.after(a.untilSync(), func() { a.sync(x) })
		}
	}
	a.publish(x)
}

// untilSync is how long a comparison that finds something to sync waits before it does:
// mostly not at all.
func (a *argocd) untilSync() time.Duration {
	if a.sim.chance.IntN(4) > 0 {
		return a.sim.between(10*time.Millisecond, 100*time.Millisecond)
	}
	return a.sim.between(time.Second, 10*time.Second)
}

// sync deploys what the branch has.
func (a *argocd) sync(x *app) {
	sim, s := a.sim, &x.state
	head, _ := sim.remote.Head(trunk)
	if op := s.Operation; op != nil && op.FinishedAt.IsZero() || sim.tagAt(head, x.target) == x.tag {
		return
	}
	s.Operation = &verification.Operation{Phase: "Running", Revisions: []string{head}, StartedAt: sim.now}
	a.publish(x)
	lasts, early := sim.between(2*time.Second, 15*time.Second), sim.chance.IntN(4) == 0
	if early { // what is in the cluster is compared before the sync is over, and while it ends once more
		sim.after(lasts-sim.between(100*time.Millisecond, time.Second), func() { a.showCompared(x, head) })
	}
	sim.after(lasts, func() {
		op := *s.Operation
		op.Phase, op.FinishedAt = "Succeeded", sim.now
		s.Operation = &op
		tag := sim.tagAt(head, x.target)
		sim.report("Argo CD deploys %s of %s", tag, x.target)
		sim.leave(x)
		x.tag = tag
		sim.arrive(x)
		if x.health != healthy {
			x.pinned = [workloads]bool{}
		}
		if a.rollOut(x); !slices.Contains(x.pinned[:], false) {
			sim.report("%s runs %s all the same", x.target, x.runs)
			sim.noteHealth(x)
			a.publish(x)
			a.compareSoon(x, sim.between(0, 2*time.Second))
			return
		}
		x.turn++
		x.stale = early
		a.setHealth(x, progressing)
		a.publish(x)
		a.deployed(x, x.turn)
		if x.stale {
			sim.after(sim.between(0, 2*time.Second), func() {
				if x.stale {
					a.showCompared(x, head)
				}
			})
		} else {
			a.compareSoon(x, sim.between(0, 2*time.Second))
		}
	})
}

// rollOut gives the pods what is deployed, but for those that something pins.
func (a *argocd) rollOut(x *app) {
	x.state.Images = nil
	for i := range workloads {
		if !x.pinned[i] {
			x.runs[i] = x.tag
		}
		x.state.Images = append(x.state.Images, a.sim.scenario.imageOf(x.target.component, i, x.runs[i]))
	}
}

// runsAll says that each workload of a target runs what is deployed.
func (a *app) runsAll() bool {
	return !slices.ContainsFunc(a.runs[:], func(tag string) bool { return tag != a.tag })
}

// runsSome says that at least one of them does.
func (a *app) runsSome() bool { return slices.Contains(a.runs[:], a.tag) }

// pin keeps a target's workloads on their release for a while, whatever Argo CD syncs. A person
// overrode the live Application, a difference is ignored, or manifests come from a stale cache.
// Argo CD goes on to say Synced and Healthy.
func (a *argocd) pin(x *app, which [workloads]bool, d time.Duration) {
	a.sim.report("what runs in %s is pinned for %v: %v", x.target, d, which)
	x.pinned = which
	a.sim.after(d, func() { a.unpin(x) })
}

// unpin lets what is deployed come to the pods.
func (a *argocd) unpin(x *app) {
	x.pinned = [workloads]bool{}
	if x.runsAll() {
		return
	}
	a.sim.report("%s runs %s at last", x.target, x.tag)
	x.turn++
	a.rollOut(x)
	a.setHealth(x, progressing)
	a.publish(x)
	a.deployed(x, x.turn)
}

// showCompared ends a comparison that began before a sync had ended: it says of the commit what was
// seen before.
func (a *argocd) showCompared(x *app, head string) {
	x.state.Revisions, x.state.ReconciledAt, x.state.SyncStatus = []string{head}, a.sim.now, synced
	a.publish(x)
}

// deployed is what a release comes to in a target.
func (a *argocd) deployed(x *app, turn int) {
	sim := a.sim
	later := func(d time.Duration, health string) {
		sim.after(d, func() {
			if x.turn == turn {
				a.setHealth(x, health)
			}
		})
	}
	switch start := sim.between(3*time.Second, 30*time.Second); sim.qualityOf(x.target, x.tag) {
	case neverHealthy:
		later(sim.between(20*time.Second, 100*time.Second), degraded)
	case degradesLater:
		later(start, healthy)
		breaks := start + sim.between(10*time.Second, 4*time.Minute)
		if sim.faulty && sim.chance.IntN(4) == 0 { // what is heard of it can't be written down
			hiccup := sim.between(3*time.Second, 20*time.Second)
			sim.after(breaks, func() { sim.takeAway(theStore, hiccup) })
		}
		later(breaks, degraded)
	default:
		later(start, healthy)
	}
}

// setHealth sets what the release itself makes of its target; an incident hides it.
func (a *argocd) setHealth(x *app, health string) {
	if x.incident {
		health = degraded
	}
	if x.health == health {
		return
	}
	x.health = health
	if health != progressing {
		a.sim.report("%s turns %s", x.target, health)
	}
	a.sim.noteHealth(x)
	if !x.stale {
		a.showHealth(x)
		a.publish(x)
	}
}

// showHealth lets the API server have the health that there is.
func (a *argocd) showHealth(x *app) {
	if x.stale {
		x.stale, x.shown = false, a.sim.now
	}
	s := &x.state
	if s.Health == x.health {
		return
	}
	s.Health, s.HealthSince, s.Unhealthy = x.health, a.sim.now, nil
	if x.health == degraded {
		culprit := verification.Resource{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: x.target.component, Health: degraded,
			Message: "containers crash"}
		if x.incident {
			culprit.Kind, culprit.Name, culprit.Message = "StatefulSet", "database", "the node is gone"
		}
		s.Unhealthy = []verification.Resource{culprit}
	}
}

// showsIncident says that every process could see, for a while, that a target turned unwell with
// the last incident. One that was unwell before, by another release, doesn't tell of it.
func (a *argocd) showsIncident(p target) bool {
	i := slices.IndexFunc(a.apps, func(x *app) bool { return x.target == p })
	if i < 0 || len(a.sim.incidents) == 0 {
		return false
	}
	s := a.apps[i].state
	return s.Health == degraded && !s.HealthSince.Before(a.sim.incidents[len(a.sim.incidents)-1].from) &&
		a.sim.now.Sub(s.HealthSince) > slowestView
}

// strike makes everything on the cluster unwell for a while.
func (a *argocd) strike(d time.Duration) {
	a.sim.report("an incident makes the whole cluster unwell for %v", d)
	a.sim.incidents = append(a.sim.incidents, span{a.sim.now, a.sim.now.Add(d)})
	for _, x := range a.apps {
		x.incident = true
		a.setHealth(x, degraded)
	}
	a.sim.after(d, func() {
		for _, x := range a.apps {
			x.incident = false
			x.turn++
			a.setHealth(x, progressing)
			a.deployed(x, x.turn)
		}
	})
}

// publish shows an Application's state to every process, each in its own time and in order.
func (a *argocd) publish(x *app) {
	for _, p := range a.sim.processes {
		if !p.dead {
			p.view.expect(x.state)
		}
	}
}

// view is what one process has seen of the Argo CD.
type view struct {
	sim     *Simulation
	process *process
	apps    map[string]verification.App
	coming  []arrival // in their order
}

// arrival is a state that a process will see.
type arrival struct {
	at    time.Time
	state verification.App
}

// slowestView is how long a state is on its way at most, while the Argo CD isn't away.
const slowestView = 5 * time.Second

// expect lets a state arrive.
func (v *view) expect(s verification.App) {
	at := v.sim.now.Add(v.sim.between(5*time.Millisecond, 50*time.Millisecond))
	if v.sim.chance.IntN(8) == 0 {
		at = v.sim.now.Add(v.sim.between(50*time.Millisecond, slowestView))
	}
	if until := v.sim.away[theArgoCD]; at.Before(until) {
		at = until
	}
	if n := len(v.coming); n > 0 && at.Before(v.coming[n-1].at) {
		at = v.coming[n-1].at
	}
	v.coming = append(v.coming, arrival{at, s})
	v.sim.after(at.Sub(v.sim.now), v.arrive)
}

// arrive lets the process see what has arrived by now.
func (v *view) arrive() {
	for len(v.coming) > 0 && !v.coming[0].at.After(v.sim.now) {
		s := v.coming[0].state
		v.coming = v.coming[1:]
		if v.process.dead {
			continue
		}
		v.see(s)
		if c := v.process.controller; c != nil {
			c.AppChanged(v.apps[s.Name], false)
			v.process.hasUpdate, v.sim.mayBeDue = true, true
		}
	}
}

// reconnect lets what the Argo CD's absence has held up arrive as soon as anything else does: it
// is back earlier than was planned.
func (v *view) reconnect() {
	latest := v.sim.now.Add(slowestView)
	for i := range v.coming {
		if v.coming[i].at.After(latest) {
			v.coming[i].at = latest
		}
	}
	v.sim.after(slowestView, v.arrive)
}

func (v *view) see(s verification.App) {
	var before *verification.App
	if was, ok := v.apps[s.Name]; ok {
		before = &was
	}
	v.apps[s.Name] = verification.TrackRefresh(before, s)
}

// Get finds an Application as this process has seen it.
func (v *view) Get(_, name string) (*verification.App, bool) {
	s, ok := v.apps[name]
	if s.Health == degraded {
		v.sim.noteLook(name)
	}
	return &s, ok
}

var errWatchBroken = errors.New("the watch is broken")

// Ready says that the watch is broken while the Argo CD is away.
func (v *view) Ready() error {
	if v.sim.now.Before(v.sim.away[theArgoCD]) {
		return errWatchBroken
	}
	return nil
}

// Refresh asks for a comparison.
func (v *view) Refresh(ctx context.Context, _, name string) error {
	return v.request(ctx, "refresh "+name, name, func(x *app) {
		x.state.RefreshPending = true
		v.sim.argocd.publish(x)
		d := v.sim.between(200*time.Millisecond, 5*time.Second)
		if v.sim.chance.IntN(8) == 0 {
			d = v.sim.between(30*time.Second, 2*time.Minute) // its queue is long
		}
		v.sim.argocd.compareSoon(x, d)
	})
}

// Sync asks for a sync.
func (v *view) Sync(ctx context.Context, _, name string, _ verification.SyncRequest) error {
	return v.request(ctx, "sync "+name, name, v.sim.argocd.sync)
}

func (v *view) request(ctx context.Context, op, name string, do func(*app)) error {
	if err := v.sim.reach(taskOf(ctx), theArgoCD, op, false); err != nil {
		return err
	}
	for _, x := range v.sim.argocd.apps {
		if strings.EqualFold(x.state.Name, name) {
			do(x)
		}
	}
	return v.sim.reach(taskOf(ctx), theArgoCD, op, true)
}
