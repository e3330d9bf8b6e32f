package promotion

import (
	"fmt"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/promotion/cause"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/internal/wording"
)

// unpulledImages are the images that the target's pods can't pull, where that is its only known
// fault. There are none where there is, or may be, another.
func (t *Target) unpulledImages() []string {
	if !t.Unhealthy.OK || len(t.Verdict.Culprits) > 0 {
		return nil
	}
	var out []string
	for _, r := range verification.Culprits(t.Unhealthy.Value) {
		images, ok := verification.UnpulledImages(r)
		if !ok {
			return nil
		}
		out = append(out, images...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// UnpulledImages are the images that the target's pods can't pull, as far as that is known.
func (t *Target) UnpulledImages() []string {
	var out []string
	for _, r := range t.Unhealthy.Value {
		images, _ := verification.UnpulledImages(r)
		out = append(out, images...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// ruledOutImagePulls finds out, where nothing is wrong but that images can't be pulled, whether
// the promotion has to do with one of them. If it hasn't, their registry, or what is allowed
// there, is where to look, and a person decides. Where that can't be told, a new image that isn't
// there is the likelier explanation, and the promotion is to blame as it is otherwise.
func (ev *evaluator) ruledOutImagePulls(e *Env, st *EnvState) bool {
	degraded := e.degradedTargets()
	if slices.ContainsFunc(degraded, func(t *Target) bool { return t.unpulledImages() == nil }) {
		return true
	}
	var why, brought []string
	for _, t := range degraded {
		switch {
		case !t.ChangedObjects.OK && t.ChangedObjects.Err == "":
			ev.addAction(FactRequest{What: RequestChangedObjects, Environment: e.Name})
			return false
		case !t.ChangedObjects.OK:
			return true
		case len(t.BroughtImages) > 0:
			brought = append(brought, fmt.Sprintf("%s can't pull %s, which #%d brought or may have kept from being pulled", t.Name,
				wording.JoinFew(t.BroughtImages, maxNamedTargets), e.Landed.Value.Pull))
		default:
			why = append(why, fmt.Sprintf("all that is wrong with %s is that %s can't be pulled, which #%d didn't change", t.Name,
				wording.JoinFew(t.unpulledImages(), maxNamedTargets), e.Landed.Value.Pull))
		}
	}
	if brought == nil {
		ev.holdDegradation(e, st, cause.Hold, strings.Join(why[:min(len(why), maxEvidenceTargets)], "; ")+
			"; a person has to decide (/liftlock revert)", LikelyIncident)
		return false
	}
	for _, answer := range brought[:min(len(brought), maxEvidenceTargets)] {
		ev.ruleOut(e, CheckImagePull, "%s", answer)
	}
	return true
}
