package facts

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
)

// TestRevertsAreCounted counts our reverts of the last ten minutes, by environment and by
// cluster, whosever component they are of; where the component itself is degraded, those of
// the ten minutes before that.
func TestRevertsAreCounted(t *testing.T) {
	w := newStory(t, twoEnvs, []string{"dev", "qa"}, "api", "web")
	ev, _ := w.evaluate("web", false)
	c := ev.Components[0]
	now := c.Facts.Now
	put := func(number int, component, author string, ago time.Duration) {
		t.Helper()
		pr := forge.PullRequest{Number: number, Branch: promotion.RevertBranch("shop", "qa", component, "0123456789abcdef"), Base: "main", Author: author, State: forge.Open, CreatedAt: now.Add(-ago), UpdatedAt: now.Add(-ago)}
		w.must(w.store.Tx(w.ctx(), "put", func(tx *store.Tx) error { return tx.PutPulls(w.ctx(), w.o.pullRow(w.repo, pr, nil, true)) }))
	}
	put(1, "web", storyBot, revertWindow)
	put(2, "api", storyBot, time.Minute)
	put(3, "gone", storyBot, 2*time.Minute)
	put(4, "api", "mallory", time.Minute)
	put(5, "api", storyBot, revertWindow+time.Second)
	used := func() promotion.Limits {
		t.Helper()
		l, err := w.o.CountUsedLimits(w.ctx(), c)
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
