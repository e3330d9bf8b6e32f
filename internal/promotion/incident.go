package promotion

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/promotion/cause"
	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// incidentClockSkew is how much earlier than the forge's merge time another target may have become
// unhealthy and still count for the same window. The two times come from different clocks.
const incidentClockSkew = time.Minute

// incidentAftermath is how long after another target recovered, besides debounce, what is
// degraded may still be degraded by the same: they don't all recover at once.
const incidentAftermath = time.Minute

// broughtTarget says that an incident is about a target that the same pull request moved.
func (l *Landed) broughtTarget(incident *ClusterIncident, env string) bool {
	return incident.Environment == env && slices.ContainsFunc(l.Members, func(p Member) bool { return p.Component == incident.Component })
}

// ruledOutIncident finds out whether the promotion changed the degraded targets, where targets that
// it didn't touch became unhealthy on the same cluster too. If it changed them, it is to blame all
// the same. If it didn't, or that can't be told, a person decides.
func (ev *evaluator) ruledOutIncident(e *Env, st *EnvState) bool {
	var blamed []string
	for _, t := range e.degradedTargets() {
		w := ev.findClusterIncident(e, t)
		if w == nil {
			if w, until := ev.awaitsIncident(e, t); w != nil {
				ev.holdDegradation(e, st, cause.Hold, fmt.Sprintf("%s on the same cluster (%s), which this promotion didn't touch, has just "+
					"stopped being Healthy without a change of its own: whether that lasts is known at %s", w.Target, w.Cluster,
					until.UTC().Format(time.RFC3339)), Unclear)
				ev.recheckAt(until)
				return false
			}
			continue
		}
		bad, but := verification.Culprits(t.Unhealthy.Value), ""
		switch {
		case w.Component == ev.facts.Unit.Component && ev.runsFormerRelease(w, e):
			ev.holdDegradation(e, st, cause.Hold, fmt.Sprintf("%s, which still has what %s had before this promotion, became unwell too: an "+
				"incident is likely; a person has to decide (/liftlock revert)", w.Target, e.Name), LikelyIncident)
			return false
		case !t.Unhealthy.OK:
			but = fmt.Sprintf("which resources of %s are degraded is not known: %s", t.Name, t.Unhealthy.Err)
		case len(bad) == 0:
			but = fmt.Sprintf("Argo CD doesn't say which resources of %s are degraded", t.Name)
		case !t.ChangedObjects.OK && t.ChangedObjects.Err == "":
			ev.addAction(FactRequest{What: RequestChangedObjects, Environment: e.Name})
			return false
		case !t.ChangedObjects.OK:
			but = fmt.Sprintf("whether the promotion changed what is degraded in %s can't be told: %s", t.Name, t.ChangedObjects.Err)
		case filterChanged(t, bad) == nil:
			but = fmt.Sprintf("what is degraded in %s (%s) is nothing that the promotion changed", t.Name, formatResources(bad))
		default:
			blamed = append(blamed, fmt.Sprintf("%s, which #%d didn't touch, became unwell too, but what is degraded in %s (%s) is what "+
				"#%[2]d changed", w.Target, e.Landed.Value.Pull, t.Name, formatResources(filterChanged(t, bad))))
			continue
		}
		ev.holdDegradation(e, st, cause.Hold, fmt.Sprintf("%s on the same cluster (%s), which this promotion didn't touch, became unwell "+
			"too, and %s: an incident is likely; a person has to decide (/liftlock revert)", w.Target, w.Cluster, but), LikelyIncident)
		return false
	}
	if blamed == nil {
		blamed = []string{fmt.Sprintf("no target that #%d didn't touch became unwell in the same window", e.Landed.Value.Pull)}
	}
	for _, answer := range blamed[:min(len(blamed), maxEvidenceTargets)] {
		ev.ruleOut(e, CheckIncident, "%s", answer)
	}
	return true
}

// findClusterIncident is a target that the promotion didn't touch and that became unhealthy after
// the promotion landed. It is on a target's cluster or, with the release before, in another
// environment. It is nil when there is none. One that has recovered counts for a while, after which
// this is decided again.
func (ev *evaluator) findClusterIncident(e *Env, t *Target) *ClusterIncident {
	for i := range ev.facts.ClusterIncidents {
		w := &ev.facts.ClusterIncidents[i]
		over := w.Until.Add(incidentAftermath + e.Spec.Verify.Debounce.AsDuration())
		switch {
		case !ev.speaksForIncident(w, e, t), !w.Until.IsZero() && !over.After(ev.facts.Now):
		case w.Unsettled && lastsUntil(w, e).After(cmp.Or(w.Until, ev.facts.Now)): // it hasn't lasted
		default:
			if !w.Until.IsZero() {
				ev.recheckAt(over)
			}
			return w
		}
	}
	return nil
}

// speaksForIncident says that another target's trouble may have to do with a target's degradation.
// It is on the same cluster and has nothing of the promotion's release, or it is the same component
// with the release before, in any environment. And its trouble didn't begin before the merge.
func (ev *evaluator) speaksForIncident(w *ClusterIncident, e *Env, t *Target) bool {
	switch {
	case w.Since.Before(e.Landed.Value.At.Add(-incidentClockSkew)):
		return false
	case w.Component == ev.facts.Unit.Component:
		return ev.runsFormerRelease(w, e) || w.Cluster == t.Cluster && ev.hasOtherRelease(w.Environment, e)
	}
	return w.Cluster == t.Cluster && !e.Landed.Value.broughtTarget(w, e.Name)
}

// lastsUntil is how long another target that only isn't settled must be so to count.
func lastsUntil(w *ClusterIncident, e *Env) time.Time {
	return w.Since.Add(e.Spec.Verify.Debounce.AsDuration())
}

// awaitsIncident is when it becomes known whether another target's trouble lasts, which turned
// Progressing or Unknown before the target degraded; zero when there is none. It is never later
// than a debounce after the degradation. findClusterIncident finds one that has lasted already, and
// comes first.
func (ev *evaluator) awaitsIncident(e *Env, t *Target) (*ClusterIncident, time.Time) {
	for i := range ev.facts.ClusterIncidents {
		w := &ev.facts.ClusterIncidents[i]
		if w.Unsettled && w.Until.IsZero() && !w.Since.After(t.Verdict.Since) && ev.speaksForIncident(w, e, t) {
			return w, lastsUntil(w, e)
		}
	}
	return nil, time.Time{}
}

// hasOtherRelease says that an environment is known to have something else than another.
func (ev *evaluator) hasOtherRelease(name string, e *Env) bool {
	u := ev.facts.findEnv(name)
	return u != nil && u.Release.OK && u.Release.Value.ID != e.Release.Value.ID
}

// runsFormerRelease says that a target of this component runs an environment's release before its
// last promotion. It is in another environment, or in this one, where the promotion hasn't come to
// it yet.
func (ev *evaluator) runsFormerRelease(w *ClusterIncident, e *Env) bool {
	if w.Environment != e.Name {
		return ev.hasFormerRelease(w.Environment, e)
	}
	return slices.ContainsFunc(e.Targets, func(t Target) bool {
		return t.ID == w.ID && t.Verdict.RunsFormer
	})
}

// hasFormerRelease says that an environment has what another had before its last promotion.
func (ev *evaluator) hasFormerRelease(name string, e *Env) bool {
	u := ev.facts.findEnv(name)
	if u == nil || !u.Release.OK {
		return false
	}
	former := e.formerRelease()
	return former != "" && u.Release.Value.ID == former
}

// formerRelease is what an environment had before what it has; empty when that isn't known.
func (e *Env) formerRelease() string {
	for i := range e.History {
		if a := &e.History[i]; a.Release != e.Release.Value.ID {
			return a.Release
		}
	}
	return ""
}
