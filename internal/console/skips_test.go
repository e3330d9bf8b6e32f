package console

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
)

// TestSkipsAreShown holds that a skipped gate is shown for 30 days. It is counted on the pages of
// all pipelines and of its own, and named on the page of each component that it let past.
func TestSkipsAreShown(t *testing.T) {
	w := newTestConsole(t, nil)
	for _, component := range []string{"web", "api", "mail"} {
		w.unit(testRepo, "shop", component, "", env("dev", promotion.Verified, "1", time.Hour, 1))
	}
	w.unit(testRepo, "lake", "etl", "", env("dev", promotion.Verified, "1", time.Hour, 1))
	w.must(w.store.Tx(t.Context(), "record", func(tx *store.Tx) error {
		_, err := tx.PutPromotion(t.Context(), store.Promotion{Unit: testRepo + "|shop|api", Repo: testRepo, Pipeline: "shop", Component: "api", Environment: "qa", Kind: promotion.KindPromotion, Pull: 9, State: promotion.Opened})
		return err
	}))
	for i, a := range []store.Audit{
		{At: before(29 * 24 * time.Hour), Subject: testRepo + "|shop|web #7 skip soak", Reason: "the first outage"},
		{At: before(31 * 24 * time.Hour), Subject: testRepo + "|shop|web #6 skip window", Reason: "long ago"},
		{At: before(time.Hour), Subject: testRepo + "|shop|web #7 skip checks", Reason: "by nobody who may", Outcome: "refused: it takes breakGlass"},
		{At: before(time.Hour), Subject: testRepo + "|shop|batch #9 skip window", Reason: "the second outage"},
	} {
		a.Actor, a.Via, a.Verb, a.Source, a.Environment = "ada", "comment", "skip", fmt.Sprint(i), "qa"
		if a.Outcome == "" {
			a.Outcome = carriedOut
		}
		w.must(w.store.AddAudit(t.Context(), a))
	}
	const first, second = "the first outage", "the second outage"
	for path, want := range map[string][]string{
		"/":                    {">2 gates were skipped</a>", `verb=skip`},
		"/pipelines/shop":      {">2 gates were skipped</a>", "pipeline=shop"},
		"/pipelines/lake":      nil,
		"/pipelines/shop/web":  {first, "<b>skip soak</b> in qa by ada"},
		"/pipelines/shop/api":  {second},
		"/pipelines/shop/mail": nil,
	} {
		_, _, body := w.get(path)
		for _, text := range append(want, "skipped in the last 30 days", first, second, "long ago", "by nobody who may", "were skipped") {
			is := strings.Contains(body, text)
			expected := false
			for _, x := range want {
				expected = expected || strings.Contains(x, text) || x == text
			}
			if text == "skipped in the last 30 days" {
				expected = strings.Contains(path, "/web") || strings.Contains(path, "/api")
			}
			if is != expected {
				t.Errorf("%s has %q: %t", path, text, is)
			}
		}
	}
}
