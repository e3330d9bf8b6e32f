package promotion

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/internal/wording"
)

// collectEvidence lists what speaks against the release, a line a fact; the first is the
// cause, as far as it is known.
func (j *evaluator) collectEvidence(e *Env) []string {
	out := j.describeCause(e)
	for _, t := range e.degradedTargets() {
		since := ""
		if !t.Verdict.Since.IsZero() {
			since = " since " + t.Verdict.Since.UTC().Format(time.RFC3339)
		}
		out = append(out, fmt.Sprintf("%s on %s: %s%s", t.Name, cmp.Or(t.Cluster, "its cluster"), t.Verdict.Reason, since))
		for _, u := range t.Unhealthy.Value {
			out = append(out, fmt.Sprintf("%s: %s %s is %s: %s", t.Name, u.Kind, u.Name, u.Health, cmp.Or(u.Message, "no message")))
		}
		if !t.Unhealthy.OK {
			out = append(out, fmt.Sprintf("%s: which of its resources are unhealthy is not known: %s", t.Name, cmp.Or(t.Unhealthy.Err, "nobody has looked")))
		}
		if w := j.findClusterIncident(e, t); w != nil && t.ChangedObjects.OK {
			if own := filterChanged(t, verification.Culprits(t.Unhealthy.Value)); own != nil {
				out = append(out, fmt.Sprintf("%s: %s on the same cluster became unwell too, but %s is what the promotion changed", t.Name, w.Target, formatResources(own)))
			}
		}
		for _, m := range t.Timeline {
			out = append(out, fmt.Sprintf("%s: %s %s %s", t.Name, m.At.UTC().Format(time.RFC3339), m.State, m.Note))
		}
	}
	return out
}

// describeCause names in one line what broke, and where: the resource that is unhealthy, of
// several one that the promotion changed, in Argo CD's words; else how the target's verdict
// came about. Nothing where no target is degraded.
func (j *evaluator) describeCause(e *Env) []string {
	bad := e.degradedTargets()
	if len(bad) == 0 {
		return nil
	}
	t := bad[0]
	where := t.Name
	if more := len(bad) - 1; more > 0 {
		where += fmt.Sprintf(" and %d more of %s", more, wording.Count(len(e.Targets), "target"))
	}
	what := t.Verdict.Reason
	if r, changed := findCulprit(t); r != nil {
		what = fmt.Sprintf("%s %s: %s", r.Kind, r.Name, cmp.Or(strings.TrimSpace(r.Message), "it is "+r.Health))
		if changed && e.Landed.Value.Pull > 0 {
			where += fmt.Sprintf("; #%d changed it", e.Landed.Value.Pull)
		}
	}
	return []string{fmt.Sprintf("%s (%s)", what, where)}
}

// findCulprit is the resource that makes a target degraded, of several one that the
// promotion changed, and of those one about which Argo CD says something. nil: Argo CD
// names none.
func findCulprit(t *Target) (r *verification.Resource, changed bool) {
	culprits := verification.Culprits(t.Unhealthy.Value)
	if t.ChangedObjects.OK {
		if own := filterChanged(t, culprits); own != nil {
			culprits, changed = own, true
		}
	}
	for i := range culprits {
		if culprits[i].Message != "" {
			return &culprits[i], changed
		}
	}
	if len(culprits) == 0 {
		return nil, false
	}
	return &culprits[0], changed
}
