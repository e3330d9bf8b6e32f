package promotion

import (
	"slices"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// TestOutdated composes anew what only waits for being up to date with its branch, when its turn to
// be merged has come, and nothing else.
func TestOutdated(t *testing.T) {
	behind := func(f *ComponentFacts) {
		for _, p := range []*Pull{f.env("qa").Open, f.env("qa").Revert} {
			if p != nil {
				p.Mergeable, p.MergeNote = MergeBehind, "need_rebase"
			}
		}
	}
	open := func() *ComponentFacts {
		f := linearFacts()
		f.land("dev", "r2", ByPerson, 0)
		return f.verified("dev").pull("qa", "r2").composed("qa", "r2").with(behind)
	}
	revert := func() *ComponentFacts {
		f := linearFacts()
		f.land("qa", "r2", ByPromotion, 5)
		return f.verdict("qa", verification.Degraded, "no replica is ready").openRevert("qa", "r2").with(behind)
	}
	update, updateRevert := []string{"compose #7 anew for r2: the forge merges only"}, []string{"compose revert #9 anew", "record"}
	for _, c := range []struct {
		name  string
		facts *ComponentFacts
		want  []string // the actions
		says  string   // its gate
	}{
		{"every other gate passes", open(), update, "it is composed anew when its turn"},
		{"what it changes isn't known on the new tip", open().with(func(f *ComponentFacts) { f.env("qa").Compositions = nil }), []string{"look: "}, ""},
		{"people merge", open().with(func(f *ComponentFacts) { f.env("qa").Spec.Merge = pipeline.Manual }), nil, "bring it up to date there before you merge it"},
		{"it is on hold", open().with(func(f *ComponentFacts) { f.env("qa").Open.Held = true }), nil, ""},
		{"upstream isn't well", open().verdict("dev", verification.Progressing, "progressing"), nil, ""},
		{"it is in the forge's queue", open().with(func(f *ComponentFacts) { f.env("qa").Open.Queued = true }), nil, ""},
		{"the limit of merges", open().with(func(f *ComponentFacts) { f.Limits.MergesLastHour = f.Pipeline.Spec.Limits.MergesPerHour }), nil, ""},
		{"blocked", open().with(func(f *ComponentFacts) { f.env("qa").Open.Mergeable = "blocked" }), nil, "need_rebase"},
		{"a revert", revert(), updateRevert, "it is composed anew when its turn"},
		{"a revert that people merge", revert().with(func(f *ComponentFacts) {
			f.env("qa").Spec.OnDegraded = pipeline.OnDegraded{Action: pipeline.OnDegradedRevert}
		}), updateRevert, ""},
		{"a revert on hold", revert().with(func(f *ComponentFacts) { f.env("qa").Revert.Held = true }), []string{"record"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := Decide(Facts{Components: []ComponentFacts{*c.facts}})
			if got := describeAll(slices.Concat(d.Actions, d.Components[0].Actions)); !slices.EqualFunc(got, c.want, strings.HasPrefix) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			for _, a := range d.Actions {
				switch a := a.(type) {
				case Replace:
					if !a.BeforeMerge || a.Tip != c.facts.env("qa").Tip {
						t.Errorf("it doesn't wait for its turn, or is of another tip: %+v", a)
					}
				case RecomposeRevert:
					if !a.BeforeMerge {
						t.Errorf("it doesn't wait for its turn: %+v", a)
					}
				}
			}
			st := d.Components[0].Env("qa")
			if gates := append(slices.Clone(st.Gates), st.RevertGates...); c.says != "" && (len(gates) == 0 || !strings.Contains(gates[0].Reason+gates[len(gates)-1].Reason, c.says)) {
				t.Errorf("it says %+v", gates)
			}
		})
	}
}

// TestOutdatedBatch composes a batch anew once all of it waits for nothing else.
func TestOutdatedBatch(t *testing.T) {
	who := makeMembers("web r2", "api r2")
	behind := func(p *Pull) { p.Mergeable = MergeBehind }
	fixture := func() batchFixture {
		return newBatchFixture("web", "api").arrived("web", "r2").arrived("api", "r2").openBatchPull("qa", who, behind)
	}
	compose := func(FactRequest) Composition { return Composition{Tip: fixture()["web"].env("qa").Tip} }
	isUpdate := func(a Action) bool {
		r, ok := a.(Replace)
		return ok && r.BeforeMerge && r.Batch && len(r.Members) == 2 && strings.Contains(r.Why, "up to date")
	}
	if _, d := fixture().facts(compose); !slices.ContainsFunc(d.Actions, isUpdate) {
		t.Errorf("all of it waits: %q", describeAll(d.Actions))
	}
	held := fixture().with("api", func(f *ComponentFacts) { f.verdict("dev", verification.Progressing, "progressing") })
	if _, d := held.facts(compose); slices.ContainsFunc(d.Actions, func(a Action) bool { _, ok := a.(Replace); return ok }) {
		t.Errorf("one of it waits for more: %q", describeAll(d.Actions))
	}
}
