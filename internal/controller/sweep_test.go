package controller

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
)

// TestSweepEvaluatesUnsettledUnits holds that every unit that may have to change by itself is evaluated, and a
// settled one isn't.
func TestSweepEvaluatesUnsettledUnits(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	settled := promotion.EnvState{Environment: "qa", State: promotion.Verified, Promotion: promotion.Idle, Since: now.Add(-2 * time.Hour)}
	for name, c := range map[string]struct {
		change func(*promotion.EnvState)
		want   bool
	}{
		"settled":                 {func(*promotion.EnvState) {}, false},
		"idle":                    {func(st *promotion.EnvState) { st.State = promotion.Idle }, false},
		"at its baseline":         {func(st *promotion.EnvState) { st.State = promotion.Baseline }, false},
		"changed by hand":         {func(st *promotion.EnvState) { st.State = promotion.Diverged }, false},
		"an open promotion":       {func(st *promotion.EnvState) { st.Pull = 4 }, true},
		"an open revert":          {func(st *promotion.EnvState) { st.Revert = 4 }, true},
		"something waits to come": {func(st *promotion.EnvState) { st.Promotion = promotion.Waiting }, true},
		"waits at an idle one":    {func(st *promotion.EnvState) { st.State, st.Promotion = promotion.Idle, promotion.Waiting }, true},
		"being verified":          {func(st *promotion.EnvState) { st.State = promotion.Verifying }, true},
		"degraded":                {func(st *promotion.EnvState) { st.State = promotion.Degraded }, true},
		"failed":                  {func(st *promotion.EnvState) { st.State = promotion.Failed }, true},
		"within its watch":        {func(st *promotion.EnvState) { st.Since = now.Add(-62 * time.Minute) }, true},
		"just out of its watch":   {func(st *promotion.EnvState) { st.Since = now.Add(-63 * time.Minute) }, false},
	} {
		st := settled
		c.change(&st)
		if got := isUnsettled(&st, time.Hour+3*time.Minute, now); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestSweepFindsRemovedRules holds that a sweep evaluates a unit when an environment of
// it, or its pipeline, was taken out of the rules, though it had nothing open. It doesn't evaluate
// a settled one.
func TestSweepFindsRemovedRules(t *testing.T) {
	for name, change := range map[string]func(rules string) string{
		"the environment is gone": func(rules string) string { return strings.Replace(rules, manualQA, "", 1) },
		"the pipeline is gone":    func(rules string) string { return strings.Replace(rules, "name: shop", "name: other", 1) },
		"nothing is gone":         func(rules string) string { return rules + "# more\n" },
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, "", manualQA, "web")
			w.must(w.run(wake.ForUnit(w.unit("web"))))
			rules, _, err := w.forge.File(repoName, "main", ".liftlock.yaml")
			w.must(err)
			_, err = w.forge.CommitAs(repoName, "linus", "main", "Rules", map[string]string{".liftlock.yaml": change(rules)}, kustomizationOf("web", "qa"))
			w.must(err)
			w.runRepository()
			w.clock.Step(time.Hour) // its watch is over
			w.dropDue()
			w.must(w.run(wake.ForSweep(w.repo.ID)))
			if due, want := w.takeDue(), name != "nothing is gone"; slices.Contains(due, wake.ForUnit(w.unit("web")).String()) != want {
				t.Errorf("the sweep wakes %q", due)
			}
		})
	}
}

// TestClosedPullsWaitAfterALostStore holds that pull requests that were closed a while ago are read
// after everything else when the store is empty. There may be hundreds, and one may be open.
func TestClosedPullsWaitAfterALostStore(t *testing.T) {
	w := newFixture(t, "", manualQA, "api", "web")
	p := w.openOne("web", "2.0.0", "web")
	w.must(w.forge.ClosePull(repoName, p.Number, "ada"))
	w.clock.Step(time.Hour)
	open := w.openOne("api", "2.0.0", "api")
	st, err := store.Open(t.Context(), "sqlite://"+filepath.Join(t.TempDir(), "liftlock.db"), store.Options{Now: w.clock.Now})
	w.must(err)
	t.Cleanup(func() { _ = st.Close() })
	w.addProcess(st, "me again")
	w.must(w.opts.Gatherer.PullCache.RefreshPullRequests(t.Context(), w.repo.Repository))
	claims, err := st.Claim(t.Context(), "others", 1000)
	w.must(err)
	var keys []string
	for _, c := range claims {
		keys = append(keys, fmt.Sprintf("%s %d", c.Key, c.Urgency))
	}
	want := []string{fmt.Sprintf("%s %d", wake.ForPull(w.repo.ID, open.Number), store.Normal), fmt.Sprintf("%s %d", wake.ForPull(w.repo.ID, p.Number), store.Background)}
	if !slices.Equal(keys, want) {
		t.Errorf("due are %q, wanted %q", keys, want)
	}
}
