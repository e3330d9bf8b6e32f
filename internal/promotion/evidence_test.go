package promotion

import (
	"slices"
	"testing"

	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// TestRevertLeadsWithTheCause has the first line of a revert's evidence.
func TestRevertLeadsWithTheCause(t *testing.T) {
	web := verification.Resource{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web", Health: "Degraded", Message: "0 of 2 pods ready: ImagePullBackOff"}
	api := verification.Resource{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "api", Health: "Degraded", Message: "CrashLoopBackOff"}
	silent := verification.Resource{Kind: "Service", Namespace: "shop", Name: "web", Health: "Missing"}
	own := Sure([]Object{{"apps", "Deployment", "shop", "web"}})
	for _, c := range []struct {
		name      string
		unhealthy []verification.Resource
		changed   Known[[]Object]
		more      int // targets that are degraded too
		want      string
	}{
		{"a resource, in Argo CD's words", []verification.Resource{web}, Known[[]Object]{}, 0, "Deployment web: 0 of 2 pods ready: ImagePullBackOff (web-qa)"},
		{"one that the promotion changed", []verification.Resource{api, web}, own, 0, "Deployment web: 0 of 2 pods ready: ImagePullBackOff (web-qa; #5 changed it)"},
		{"none that it changed", []verification.Resource{api}, own, 0, "Deployment api: CrashLoopBackOff (web-qa)"},
		{"one about which something is said", []verification.Resource{silent, api}, Known[[]Object]{}, 0, "Deployment api: CrashLoopBackOff (web-qa)"},
		{"nothing is said", []verification.Resource{silent}, Known[[]Object]{}, 0, "Service web: it is Missing (web-qa)"},
		{"no resource is named", nil, Known[[]Object]{}, 0, "the sync of this commit ended Failed: the PreSync hook Job db-migrate: denied (web-qa)"},
		{"several targets", []verification.Resource{web}, Known[[]Object]{}, 2, "Deployment web: 0 of 2 pods ready: ImagePullBackOff (web-qa and 2 more of 4 targets)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := linearFacts()
			e := f.land("qa", "r2", ByPromotion, 5)
			f.verdict("qa", verification.Degraded, "the sync of this commit ended Failed: the PreSync hook Job db-migrate: denied")
			e.Targets[0].Unhealthy, e.Targets[0].ChangedObjects = Sure(c.unhealthy), c.changed
			for range c.more {
				e.Targets = append(e.Targets, e.Targets[0])
			}
			if c.more > 0 {
				e.Targets = append(e.Targets, Target{Name: "well"})
			}
			j := &evaluator{facts: f, spec: &f.Pipeline.Spec}
			if got := j.collectEvidence(e)[0]; got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
	f := linearFacts()
	e := f.land("qa", "r2", ByPromotion, 5)
	f.verdict("qa", verification.Degraded, "health is Degraded")
	e.Targets[0].Unhealthy = Unsure[[]verification.Resource]("403 Forbidden")
	got := (&evaluator{facts: f, spec: &f.Pipeline.Spec}).collectEvidence(e)
	if got[0] != "health is Degraded (web-qa)" || !slices.Contains(got, "web-qa: which of its resources are unhealthy is not known: 403 Forbidden") {
		t.Errorf("where it isn't known: %q", got)
	}
	if got := (&evaluator{}).describeCause(&Env{}); got != nil {
		t.Errorf("nothing is degraded: %q", got)
	}
}
