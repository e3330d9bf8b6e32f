package console

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
)

// TestCellsAtRestAndReverted holds that a component without a target in an environment is not in it, that what was reverted is
// marked with what to do, and that one of which nothing is open takes a line.
func TestCellsAtRestAndReverted(t *testing.T) {
	w := newTestConsole(t, nil)
	absent := promotion.EnvState{Environment: "prod", State: promotion.NotHere, Promotion: promotion.Idle, Reason: "batch is not in prod: no ApplicationSet generates a target for it there"}
	w.unit(testRepo, "shop", "batch", "", env("qa", promotion.Verified, "1", time.Hour, 1), absent)
	reverted := env("qa", promotion.Verified, "1", time.Hour, 1)
	reverted.Why = []promotion.Reason{{Code: "quarantined", Text: "2 was reverted from qa by #7; /liftlock promote qa brings it back"}}
	w.unit(testRepo, "shop", "web", "", reverted, env("prod", promotion.Verified, "1", time.Hour, 1))
	_, _, body := w.get("/")
	_, batch, _ := strings.Cut(body, `-shop-batch" class="quiet-row">`)
	batch, _, _ = strings.Cut(batch, "</tr>")
	if !strings.Contains(batch, ">not in prod</p>") || strings.Contains(batch, "unreadable") || strings.Contains(batch, "1/1 target") {
		t.Errorf("what is at rest has the row\n%s", batch)
	}
	for _, says := range []string{"quarantined</span> 2 was reverted from qa by #7; /liftlock promote qa brings it back", "A newer release comes by itself."} {
		if !strings.Contains(body, says) {
			t.Errorf("what was reverted isn't marked with %q", says)
		}
	}
	if _, _, page := w.get("/pipelines/shop/batch"); !strings.Contains(page, "batch is not in prod") {
		t.Errorf("the component's page says\n%s", page)
	}
}

// TestCountsAreWhole holds that a graph's box cuts no count, and that all of them are said in words.
func TestCountsAreWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var counts []string
		for i, n := range rapid.SliceOfN(rapid.IntRange(0, 100_000), 1, 10).Draw(t, "counts") {
			counts = append(counts, fmt.Sprintf("%d state%d", n, i))
		}
		lines := newCountLines("wait", rapid.SampledFrom([]string{"", "7 waiting:"}).Draw(t, "head"), counts)
		var shown []string
		for i, l := range lines {
			if len([]rune(l.Text)) > lineLength || i > 0 && l.Full != "" {
				t.Fatalf("the line %q", l.Text)
			}
			shown = append(shown, l.Text)
		}
		if got := strings.Join(shown, " "); got != lines[0].Full {
			t.Fatalf("shown is %q of %q", got, lines[0].Full)
		}
	})
}

// TestPageOfAnOpenPromotion holds that it has what moves from where to where, who made it, its targets, its gates, the
// rendered difference and the link to review. While the difference is being rendered, it has its link alone.
func TestPageOfAnOpenPromotion(t *testing.T) {
	w := newTestConsole(t, nil)
	w.seedEverything()
	_, _, body := w.get("/promotions/2")
	for _, says := range []string{"<dt>Moves</dt><dd>web <span class=\"rel\">1.4.2</span>", ">1.5.0</span> in prod</dd>", "<dt>Made by</dt><dd><b>grace</b>, in dev", "<dt>Reaches</dt><dd><span class=\"mono\">prod-a</span> <span class=\"muted\">on cluster-of-prod-a</span>",
		"<b>approvals</b>", " spec.template.spec.containers[name=web].image: registry.example/web:1.5.0", `href="/promotions/2/diff">All of it, by target</a>`, `<dt>Review</dt><dd><a href="https://git.example/acme/fleet/pulls/14"`} {
		if !strings.Contains(body, says) {
			t.Errorf("the page has no %q", says)
		}
	}
	w.rendered = func(store.Promotion) (*api.RenderedDiff, error) { return &api.RenderedDiff{Pending: true}, nil }
	if _, _, body := w.get("/promotions/5"); !strings.Contains(body, `href="/promotions/5/diff">See it, rendered now</a>`) || strings.Contains(body, "All of it, by target") {
		t.Errorf("while it is rendered the page says\n%s", body)
	}
}
