package facts

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
)

// TestRevertsAreCounted counts our reverts of the last ten minutes, by environment and by cluster,
// of every component. Where the component itself is degraded, it counts those of the ten minutes
// before that.
func TestRevertsAreCounted(t *testing.T) {
	w := newStory(t, twoEnvs, []string{"dev", "qa"}, "api", "web")
	ev, _ := w.evaluate("web", false)
	c := ev.Components[0]
	now := c.Facts.Now
	put := func(number int, component, author string, ago time.Duration) {
		t.Helper()
		pr := forge.PullRequest{Number: number, Branch: promotion.RevertBranch("shop", "qa", component, "0123456789abcdef"), Base: "main", Author: author, State: forge.Open, CreatedAt: now.Add(-ago), UpdatedAt: now.Add(-ago)}
		w.must(w.store.Tx(w.ctx(), "put", func(tx *store.Tx) error { return tx.PutPulls(w.ctx(), w.o.PullCache.pullRow(w.repo, pr, nil, true)) }))
	}
	put(1, "web", storyBot, revertWindow)
	put(2, "api", storyBot, time.Minute)
	put(3, "gone", storyBot, 2*time.Minute)
	put(4, "api", "mallory", time.Minute)
	put(5, "api", storyBot, revertWindow+time.Second)
	used := func() promotion.Limits {
		t.Helper()
		l, err := w.o.Records.CountUsedLimits(w.ctx(), c)
		w.must(err)
		return l
	}
	want := promotion.Limits{OpenByOthers: map[string]int{}, QueuedAhead: map[string]int{}, RevertsByEnv: map[string]int{"qa": 3}, RevertsByCluster: map[string]int{"in-cluster": 2}, OldestRecentRevert: now.Add(-revertWindow)}
	if diff := cmp.Diff(want, used()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	qa := c.Env("qa")
	qa.History[0].MarkDegraded(now.Add(-time.Second))
	want.RevertsByEnv, want.RevertsByCluster, want.OldestRecentRevert = map[string]int{"qa": 4}, map[string]int{"in-cluster": 3}, now.Add(-revertWindow-time.Second)
	if diff := cmp.Diff(want, used()); diff != "" {
		t.Errorf("degraded a moment ago (-want +got):\n%s", diff)
	}
}

// TestDegradedSince says since when environments are degraded with what they carry, and of nothing that
// they carried before, or that can't be read.
func TestDegradedSince(t *testing.T) {
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	bad := promotion.Arrival{Commit: "c", Release: "r", VerifiedAt: at.Add(-time.Hour), DegradedAt: at}
	env := func(change func(e *promotion.Env)) promotion.Env {
		e := promotion.Env{Name: "qa", Release: promotion.Sure(promotion.Release{ID: "r"}), Landed: promotion.Sure(promotion.Landed{Commit: "c"}), History: []promotion.Arrival{bad}}
		change(&e)
		return e
	}
	for name, c := range map[string]struct {
		env  promotion.Env
		want bool
	}{
		"degraded":                  {env(func(*promotion.Env) {}), true},
		"well again":                {env(func(e *promotion.Env) { e.History[0].VerifiedAt = at.Add(time.Second) }), false},
		"of another commit":         {env(func(e *promotion.Env) { e.Landed.Value.Commit = "d" }), false},
		"of another release":        {env(func(e *promotion.Env) { e.Release.Value.ID = "s" }), false},
		"its release can't be read": {env(func(e *promotion.Env) { e.Release.OK = false }), false},
		"what landed can't be read": {env(func(e *promotion.Env) { e.Landed.OK = false }), false},
		"among others":              {env(func(e *promotion.Env) { e.History = []promotion.Arrival{{Commit: "d", Release: "r"}, bad} }), true},
	} {
		comp := &ComponentEvaluation{ComponentBasis: branch.ComponentBasis{Facts: promotion.ComponentFacts{Envs: []promotion.Env{{Name: "dev"}, c.env}}}}
		got := comp.degradedSince()
		if since, is := got["qa"]; is != c.want || is && !since.Equal(at) || len(got) > 1 {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestLimitsOfBatches counts open pull requests of other environments only where components move
// alone.
func TestLimitsOfBatches(t *testing.T) {
	for spec, want := range map[string]map[string]int{"": {"qa": 1}, "  batch: environment\n": {}} {
		w := newStory(t, spec+twoEnvs, []string{"dev", "qa"}, "api", "web")
		w.openPull("liftlock/shop/qa/api", "Promote", w.commitTo(storyBot, "liftlock/shop/qa/api", w.head("main"), "x", map[string]string{"x": "x"}), branch.Marker{Kind: promotion.KindPromotion, Release: release("a")})
		ev, _ := w.evaluate("web", false)
		for _, c := range ev.Components {
			if c.Facts.Unit.Component != "web" {
				continue
			}
			l, err := w.o.Records.CountUsedLimits(w.ctx(), c)
			if err != nil || len(l.OpenByOthers) != len(want) || l.OpenByOthers["qa"] != want["qa"] {
				t.Errorf("%q: open are %v, %v", spec, l.OpenByOthers, err)
			}
		}
	}
}
