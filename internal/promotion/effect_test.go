package promotion

import (
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/pipeline"
)

// TestEffect holds that what doesn't come to a target keeps a promotion from being merged, and what lets it all the same.
func TestEffect(t *testing.T) {
	tag := IneffectiveField{Target: "web-qa", Field: "image.tag", File: "charts/web/values-qa.yaml", Line: 1, OverriddenBy: "helm.parameters of the Application (argocd/web.yaml:19)"}
	skip := Skip{Gate: GateEffect, By: "ada", ByID: 7, Reason: "the outage of today", At: noon.Add(-time.Hour), Until: noon.Add(3 * time.Hour)}
	with := func(change func(e *Env), fields ...IneffectiveField) *ComponentFacts {
		f := gatedFacts()
		e := f.env("qa")
		e.Open.Ineffective = fields
		if change != nil {
			change(e)
		}
		return f
	}
	merge := []string{"merge #7 into qa at head"}
	unknown := tag
	unknown.OverriddenBy, unknown.Line = "", 0
	for name, c := range map[string]decisionCase{
		"everything comes": {facts: with(nil), want: merge},
		"one field doesn't": {facts: with(nil, tag),
			why: "effect wait image.tag (charts/web/values-qa.yaml:1) doesn't show in the rendered manifests of web-qa: helm.parameters of the Application (argocd/web.yaml:19) overrides it []"},
		"nobody knows why": {facts: with(nil, unknown), why: "image.tag (charts/web/values-qa.yaml) doesn't show in the rendered manifests of web-qa: something that isn't known overrides it, or nothing uses it"},
		"many don't":       {facts: with(nil, tag, tag, tag, tag, tag), why: "; 2 more fields likewise"},
		"nobody can tell": {facts: with(func(e *Env) { e.Open.Unrendered = []UnrenderedTarget{{"web-qa", "a plugin makes its manifests."}} }), want: merge,
			why: "effect pass whether it shows isn't known before the merge for web-qa (a plugin makes its manifests): the verification finds out"},
		"Argo CD ignores some": {facts: with(func(e *Env) {
			e.Open.Ignored = []IgnoredField{{Target: "web-qa", Object: "Deployment web", Path: "spec.replicas", By: "x.yaml:1"}, {Target: "web-qa", Object: "Deployment web", Managers: []string{"hpa"}, By: "Argo CD's settings"}}
			e.Open.Unrendered = []UnrenderedTarget{{"web-qa-2", "x"}}
		}), want: merge, why: "effect pass Argo CD ignores spec.replicas of Deployment web in web-qa (x.yaml:1), what hpa manages of Deployment web in web-qa (Argo CD's settings): " +
			"it says Synced whether that arrives or not; whether it shows isn't known before the merge for web-qa-2 (x)"},
		"of some nobody can tell": {facts: with(func(e *Env) {
			e.Open.Unrendered = []UnrenderedTarget{{"web-qa-2", "x"}, {"c", "x"}, {"d", "x"}, {"e", "x"}}
		}, tag), why: "overrides it; whether it shows isn't known before the merge for web-qa-2 (x), c (x), d (x), 1 more target"},
		"it is optional": {facts: with(func(e *Env) { e.Spec.Effect = pipeline.EffectOptional }, tag), want: merge},
		"somebody skipped it": {facts: with(func(e *Env) { e.Open.Skips = []Skip{skip} }, tag), want: merge, next: 3 * time.Hour,
			why: "effect pass skipped by ada until 2026-03-02T15:00:00Z: the outage of today (without that: image.tag"},
		"somebody skipped another": {facts: with(func(e *Env) {
			other := skip
			other.Gate = "soak"
			e.Open.Skips = []Skip{other}
		}, tag), why: "effect wait image.tag"},
		"a skip that doesn't count": {facts: with(func(e *Env) {
			gone := skip
			gone.Err = "ada left"
			e.Open.Skips = []Skip{gone}
		}, tag), why: "overrides it; the skip doesn't count: ada left"},
	} {
		t.Run(name, func(t *testing.T) {
			c.env, c.promo = "qa", Opened
			c.check(t)
		})
	}
}

// TestRevertsNeedNoEffect holds that a revert is never held because it changes nothing.
func TestRevertsNeedNoEffect(t *testing.T) {
	f := gatedFacts()
	e := f.env("qa")
	j := &evaluator{facts: f, spec: &f.Pipeline.Spec}
	e.Open.Ineffective = []IneffectiveField{{Target: "web-qa", Field: "image.tag", File: "v.yaml"}}
	for _, r := range j.evaluateGates(e, e.Open, true) {
		if r.Gate == GateEffect {
			t.Errorf("a revert is held: %+v", r)
		}
	}
}
