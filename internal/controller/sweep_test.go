package controller

import (
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/promotion"
)

// TestWhatASweepLooksAt holds that whatever may have to become something else by itself is
// looked at, and what is settled isn't.
func TestWhatASweepLooksAt(t *testing.T) {
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
