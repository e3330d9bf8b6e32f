package console

import (
	"fmt"
	"html"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
)

// TestRunningImagesAreShown shows what the targets ran when a promotion was verified. It shows that while
// its release is there, and by its record once the environment has moved on. Unreported images
// aren't made up.
func TestRunningImagesAreShown(t *testing.T) {
	w := newTestConsole(t, nil)
	w.seed()
	w.event("web", "qa", "verified", 8, 26*time.Hour, "1.4.3 is verified in qa")
	record := promotion.VerifiedRuns{Ran: []promotion.TargetRuns{{Target: "qa-a", Runs: *webRuns()}}}
	for _, component := range []string{"web", "cart"} { // a batch's other member isn't what is asked for
		_, err := w.store.AddEvents(t.Context(), store.Event{At: before(25 * time.Hour), Repo: testRepo, Pipeline: "shop", Component: component, Environment: "qa", Pull: 8,
			Kind: "verified", Message: "1.4.3 is verified in qa", Data: mustJSON(record), IdempotencyKey: component})
		w.must(err)
		record = promotion.VerifiedRuns{}
	}
	former := w.promotion("web", "qa", "promotion", "1.4.3", "verified", 8, 27*time.Hour)
	unseen := w.promotion("web", "qa", "promotion", "1.4.2", "verified", 7, 28*time.Hour)
	read := func(id int64) *api.PromotionDetail {
		return readJSON[api.Promotion](w, "/api/v1/promotions/"+fmt.Sprint(id)).Detail
	}
	runs := *buildRuns(webRuns())
	listed := api.Runs{At: before(70 * time.Minute), Images: []api.RunningImage{{Image: "registry.example/web:1.5.0", Landed: true}}}
	for _, c := range []struct {
		name string
		id   int64
		want []api.TargetRuns
	}{
		{"what is there now", 1, []api.TargetRuns{{Target: "qa-a", Runs: runs}, {Target: "qa-b", Runs: listed}}},
		{"what was there before", former, []api.TargetRuns{{Target: "qa-a", Runs: runs}}},
		{"without a record", unseen, nil},
	} {
		if diff := cmp.Diff(c.want, read(c.id).Ran); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
	short := "sha256:" + releaseID("web")[:12]
	for path, want := range map[string][]string{
		"/promotions/1":                     {"What ran when it was verified", "<code>registry.example/web:1.5.0</code>", short, "3 pods since", "and 1 other image", "digest isn't reported"},
		"/promotions/" + fmt.Sprint(former): {"What ran when it was verified", short},
		"/pipelines/shop/web":               {"<code>registry.example/web:1.5.0</code>", short, "digest isn't reported"},
		"/promotions/" + fmt.Sprint(unseen): {"has moved on"},
	} {
		_, _, raw := w.get(path)
		for _, v := range want {
			if !strings.Contains(html.UnescapeString(raw), v) {
				t.Errorf("%s has no %q", path, v)
			}
		}
	}
	if _, _, raw := w.get("/promotions/" + fmt.Sprint(unseen)); strings.Contains(raw, "What ran") {
		t.Error("the page shows what ran though nobody knows")
	}
	why := readJSON[api.Why](w, "/api/v1/why?pipeline=shop&component=web&environment=qa")
	text := why.Environments[0].Text
	for _, v := range []string{
		"\nqa-a ran registry.example/web:1.5.0 (" + short + ", 3 pods since 2026-03-02T07:41:00Z) and 1 other image, seen 2026-03-02T07:50:00Z",
		"\nqa-b ran registry.example/web:1.5.0 (digest isn't reported), seen 2026-03-02T07:50:00Z",
	} {
		if !strings.Contains(text, v) {
			t.Errorf("why says\n%s\nand not %q", text, v)
		}
	}
	var many api.Environment
	for range 7 {
		many.Targets = append(many.Targets, api.Target{Name: "t", Runs: &listed})
	}
	if text := many.Explain(); !strings.HasSuffix(text, "\nand 2 targets more, which -o json lists") || strings.Count(text, "t ran ") != 5 {
		t.Errorf("of seven targets is said\n%s", text)
	}
}
