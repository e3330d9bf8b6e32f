package promotion

import (
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// TestConverge holds that with adopt: converge a verified release that a source has had since
// before the pipeline moves to where another one is. Nothing else of the kind moves.
func TestConverge(t *testing.T) {
	// dev carries r2, qa and prod r1, all of it since before the pipeline.
	differing := func(change func(f *ComponentFacts)) *ComponentFacts {
		f := linearFacts()
		f.Pipeline.Spec.Adopt = pipeline.AdoptConverge
		f.land("dev", "r2", ByBaseline, 0)
		if change != nil {
			change(f)
		}
		return f
	}
	open := []string{"open a promotion of r2 into qa"}
	for name, c := range map[string]decisionCase{
		"it isn't verified": {facts: differing(func(f *ComponentFacts) { f.verdict("dev", verification.Soaking, "healthy for a moment") }), env: "qa", promo: Idle,
			why: "dev has not verified r2, which it carries since before the pipeline came in: web-dev: healthy for a moment"},
		"it is verified":  {facts: differing(func(f *ComponentFacts) { f.verified("dev").composed("qa", "r2") }), env: "qa", want: open, promo: Waiting},
		"it is the same":  {facts: differing(func(f *ComponentFacts) { f.verified("dev").land("qa", "r2", ByBaseline, 0) }), env: "qa", promo: Idle},
		"adopt: baseline": {facts: differing(func(f *ComponentFacts) { f.Pipeline.Spec.Adopt = pipeline.AdoptBaseline; f.verified("dev") }), env: "qa", promo: Idle, why: "adopt: baseline"},
		"from the middle": {facts: differing(func(f *ComponentFacts) {
			f.verified("dev").land("qa", "r3", ByBaseline, 0)
			f.verified("qa").composed("qa", "r2")
		}), env: "prod", want: open, promo: Idle,
			why: "qa carries r3 since before the pipeline came in, and no environment before it verified that"},
		"over a person's change": {facts: differing(func(f *ComponentFacts) { f.verified("dev").land("qa", "r3", ByPerson, 0) }), env: "qa", promo: Idle, why: "by hand"},
	} {
		t.Run(name, func(t *testing.T) { c.check(t) })
	}
	f := differing(func(f *ComponentFacts) {
		f.verified("dev").composed("qa", "r2")
		f.env("dev").Landed.Value.At = noon.Add(-48 * time.Hour)
	})
	d := decideAlone(t, *f)
	if got := d.Env("qa").ReadySince; !got.Equal(noon.Add(-48 * time.Hour)) {
		t.Errorf("it is ready since %s: what has differed for longest comes first", got)
	}
}
