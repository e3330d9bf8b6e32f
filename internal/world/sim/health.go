package sim

import (
	"slices"
	"time"
)

// health is how a deployment has been.
type health struct {
	wellSince  time.Time     // zero: it isn't well
	longest    time.Duration // it was well at a stretch, before
	last       time.Duration // it was well, the last time
	wellUntil  time.Time     // and when that ended
	badSince   time.Time     // degraded; zero: it isn't
	wellSeen   bool          // since wellSince a process had nothing else to do
	badSeen    bool          // while it has been so for knownAfter a process had nothing else to do
	answered   bool          // a revert was opened while it has been so
	unanswered time.Time     // since when that landed elsewhere
	looked     bool          // a run has seen that it is so
	beside     bool          // something else turned degraded at about the same time
	left       time.Time     // it made way for another; zero: it is there
	wasBad     bool          // ever, by itself
}

// healthKeptFor is how long before a merge an observation still counts as the health just before
// it. It is less than the service's own time, as its runs are seldom exact to the second.
const healthKeptFor = 90 * time.Second

// endBad notes that it isn't degraded any more.
func (h *health) endBad() {
	h.badSince, h.badSeen, h.answered, h.looked, h.beside = time.Time{}, false, false, false, false
}

// noteHealth keeps how what is deployed has been.
func (sim *Simulation) noteHealth(x *app) {
	d := deployment{x.target, x.tag}
	h := sim.truth.health[d]
	if h == nil {
		h = &health{}
		sim.truth.health[d] = h
	}
	h.left = time.Time{}
	if all := sim.truth.landings[x.target]; x.health != healthy && len(all) > 0 && all[len(all)-1].tag != x.tag {
		all[len(all)-1].wasWell = false // unwell before the sync: a person has to decide
	}
	runs := x.runsAll() // what doesn't run is neither well nor unwell, whatever Argo CD says
	switch {
	case x.health == healthy && runs && h.wellSince.IsZero():
		h.wellSince = sim.now
	case x.health != healthy && !h.wellSince.IsZero():
		h.endWell(sim.now)
	}
	switch {
	case x.health != degraded || !runs:
		h.endBad()
	case h.badSince.IsZero():
		h.badSince = sim.now
		sim.noteBeside(x, h)
	}
	isBad := x.health != healthy && x.runsSome() && !x.incident // a part of it may be what is unwell
	h.wasBad = h.wasBad || isBad && sim.qualityOf(x.target, x.tag) != well
}

// noteBeside records for an app that turned degraded, and for others that did so just before, that
// they degraded together. Together they may pass for an incident, which holds the guilty one as
// well.
func (sim *Simulation) noteBeside(x *app, h *health) {
	for _, o := range sim.argocd.apps {
		other := sim.truth.health[deployment{o.target, o.tag}]
		if o != x && other != nil && !other.badSince.IsZero() && h.badSince.Sub(other.badSince) < answeredWithin {
			h.beside, other.beside = true, true
		}
	}
}

// badFor is for how long a deployment is degraded, or was when it made way for another, as
// far as a process had the time to find out.
func (sim *Simulation) badFor(d deployment) time.Duration {
	h := sim.truth.health[d]
	switch {
	case h == nil || h.badSince.IsZero() || !h.badSeen:
		return 0
	case !h.left.IsZero():
		return h.left.Sub(h.badSince)
	}
	return sim.now.Sub(h.badSince)
}

func (h *health) endWell(now time.Time) {
	h.last, h.wellUntil, h.wellSince, h.wellSeen = now.Sub(h.wellSince), now, time.Time{}, false
	h.longest = max(h.longest, h.last)
}

// isWellFor is for how long it is well now.
func (h *health) isWellFor(now time.Time) time.Duration {
	if h == nil || h.wellSince.IsZero() {
		return 0
	}
	return now.Sub(h.wellSince)
}

// wellFor is for how long a deployment was well at a stretch, as a process may see it:
// that it no longer is arrives a moment later.
func (sim *Simulation) wellFor(d deployment) time.Duration {
	h := sim.truth.health[d]
	switch {
	case h == nil:
		return 0
	case !h.wellSince.IsZero():
		return max(h.longest, sim.now.Sub(h.wellSince))
	}
	if unseen := sim.now.Sub(h.wellUntil); unseen <= slowestView {
		return max(h.longest, h.last+unseen)
	}
	return h.longest
}

// isSeenWell says whether a process had time to look since a target is healthy.
func (sim *Simulation) isSeenWell(p target) bool {
	return slices.ContainsFunc(sim.argocd.apps, func(x *app) bool {
		h := sim.truth.health[deployment{x.target, x.tag}]
		return x.target == p && h != nil && h.wellSeen
	})
}

// isWell says whether a target is healthy right now.
func (sim *Simulation) isWell(p target) bool {
	for _, x := range sim.argocd.apps {
		if x.target == p {
			return x.health == healthy
		}
	}
	return false
}

// hidesHealth says that the service may not know the health just before now. The Argo CD was away
// for longer than an earlier observation counts, with the time until a run comes.
func (sim *Simulation) hidesHealth() bool {
	return sim.away[theArgoCD].Add(lookedAtWithin).After(sim.now) && sim.now.Sub(sim.left[theArgoCD]) > healthKeptFor
}
