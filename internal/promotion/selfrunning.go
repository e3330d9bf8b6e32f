package promotion

import (
	"fmt"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/promotion/cause"
	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// selfRunningKinds run, renew, scale or wait for a volume by themselves, so that they fail at times
// of their own. A CronJob of Argo CD 3.2 and later is Degraded whenever its last run failed.
var selfRunningKinds = map[string][]string{
	"":                {"PersistentVolumeClaim"},
	"autoscaling":     {"HorizontalPodAutoscaler"},
	"batch":           {"CronJob", "Job"},
	"cert-manager.io": {"Certificate"},
}

// failsByItself says that the resource is of a kind that may fail without anybody's change.
func failsByItself(r verification.Resource) bool {
	return slices.Contains(selfRunningKinds[r.Group], r.Kind)
}

// mayFailByItself says that all that is degraded in the target is of such a kind, and none of
// it failed in the release's own sync.
func (t *Target) mayFailByItself() bool {
	bad := verification.Culprits(t.Unhealthy.Value)
	return t.Unhealthy.OK && len(bad) > 0 && len(t.Verdict.Culprits) == 0 &&
		!slices.ContainsFunc(bad, func(r verification.Resource) bool { return !failsByItself(r) })
}

// ruledOutSelfRunning finds out, where nothing but what runs by itself is degraded, whether the
// promotion changed it: if it didn't, or that can't be told, a person decides. A failure in the
// release's own sync is the release's, whatever kind it is of.
func (ev *evaluator) ruledOutSelfRunning(e *Env, st *EnvState) bool {
	degraded := e.degradedTargets()
	if slices.ContainsFunc(degraded, func(t *Target) bool { return !t.mayFailByItself() }) {
		return true
	}
	var why, changed []string
	for _, t := range degraded {
		bad := verification.Culprits(t.Unhealthy.Value)
		switch {
		case !t.ChangedObjects.OK && t.ChangedObjects.Err == "":
			ev.addAction(FactRequest{What: RequestChangedObjects, Environment: e.Name})
			return false
		case !t.ChangedObjects.OK:
			why = append(why, fmt.Sprintf("whether the promotion changed it can't be told: %s", t.ChangedObjects.Err))
		case filterChanged(t, bad) == nil:
			why = append(why, "the promotion didn't change it")
		default:
			changed = append(changed, fmt.Sprintf("%s in %s fails by itself at times, but is what #%d changed",
				formatResources(filterChanged(t, bad)), t.Name, e.Landed.Value.Pull))
			continue
		}
		why[len(why)-1] = fmt.Sprintf("all that is degraded in %s (%s) also fails by itself, and %s", t.Name, formatResources(bad),
			why[len(why)-1])
	}
	if changed == nil {
		ev.holdDegradation(e, st, cause.Hold, strings.Join(why[:min(len(why), maxEvidenceTargets)], "; ")+
			"; a person has to decide (/liftlock revert)", Unclear)
		return false
	}
	for _, answer := range changed[:min(len(changed), maxEvidenceTargets)] {
		ev.ruleOut(e, CheckSelfRunning, "%s", answer)
	}
	return true
}
