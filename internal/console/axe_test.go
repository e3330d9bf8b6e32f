package console

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/store"
)

// axeVersion is the rules' that pages are held against.
const axeVersion = "4.10.3"

// loadAxe reads axe-core, which npm brings, or skips the test where it can't.
func loadAxe(t *testing.T) string {
	t.Helper()
	npm, err := exec.LookPath("npm")
	if err != nil {
		t.Skip("npm isn't installed: the pages are not held against axe-core's rules")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dir := t.TempDir()
	c := exec.CommandContext(ctx, npm, "install", "--prefix", dir, "--no-audit", "--no-fund", "--ignore-scripts", "--prefer-offline", "axe-core@"+axeVersion)
	if out, err := c.CombinedOutput(); err != nil {
		t.Skipf("npm can't bring axe-core %s: the pages are not held against its rules: %v\n%.500s", axeVersion, err, out)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func awaitPromise(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }

// axeViolation is what axe-core says of a page.
type axeViolation struct {
	ID, Help, Impact string
	Nodes            []struct{ HTML, FailureSummary string }
}

// everyPage are addresses of all kinds of pages over what seed, forked and their kin put.
func everyPage() map[string]string {
	return map[string]string{"home": "/", "filtered": "/?q=cart&show=attention", "nothing": "/?q=none", "label-bad": "/?label=team+in+(&q=cart", "pipeline": "/pipelines/shop", "forked": "/pipelines/forked", "forked-component": "/pipelines/forked/web", "component": "/pipelines/shop/web", "compare": "/pipelines/shop/web/compare", "apart": "/apart/shop",
		"promotions": "/promotions", "overview": "/overview", "audit": "/audit", "audit-bad": "/audit?since=yesterday&actor=ada", "promotion": "/promotions/3", "revert": "/promotions/4", "open": "/promotions/2", "differences": "/differences/shop", "diff": "/promotions/2/diff", "missing": "/pipelines/none"}
}

// seedEverything puts something for every page into the store.
func (tc *testConsole) seedEverything() {
	tc.t.Helper()
	tc.teams = map[string]string{"web": "shop", "cart": "shop", "mail": "comms", "search": "shop", "ingest": "data"}
	tc.seed()
	tc.seedAudit()
	tc.mergedCart()
	tc.forked()
	tc.compared = func(repo, pipeline string) (*api.Differences, error) { return differencesFixture(repo, pipeline), nil }
	tc.rendered = func(store.Promotion) (*api.RenderedDiff, error) { return renderedDiff(false), nil }
	tc.troubles = []api.Trouble{{Part: "pipeline file of hub:acme/data", Message: `.liftlock.yaml:14: spec.environments[1].afer: unknown key; did you mean "after"?`, Since: before(7 * time.Minute)}}
}

// axe-core finds nothing on any page, in either look, on a screen and on a phone, with
// everything unfolded.
func TestPagesAreAccessible(t *testing.T) {
	ctx := browser(t)
	axe := loadAxe(t)
	w := newTestConsole(t, nil)
	w.seedEverything()
	pages := everyPage()
	for _, alike := range []string{"filtered", "pipeline", "forked-component", "audit-bad"} {
		delete(pages, alike) // of others that have all that is on them
	}
	for name, path := range pages {
		if err := chromedp.Run(ctx, chromedp.Navigate(w.url+path), chromedp.WaitReady("main")); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		checkAccessible(t, ctx, axe, name)
	}
}

// checkAccessible holds the page that a browser has open against axe-core's rules.
func checkAccessible(t *testing.T, ctx context.Context, axe, name string) {
	t.Helper()
	err := chromedp.Run(ctx, chromedp.Evaluate(`document.querySelectorAll("details").forEach((d) => d.setAttribute("open", ""))`, nil), chromedp.Evaluate(axe+"; 0", nil))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	for rules, look := range map[string]pageLook{
		"": {"wide", 1440, 1000, "light"},
		`, runOnly: ["color-contrast", "link-in-text-block", "scrollable-region-focusable"]`: {"phone", 390, 844, "dark"}, // what a window and a look change
	} {
		var raw string
		err := chromedp.Run(ctx, look.emulate(),
			chromedp.Evaluate(`axe.run(document, {resultTypes: ["violations"]`+rules+`}).then((r) => JSON.stringify(r.violations))`, &raw, awaitPromise))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var found []axeViolation
		if err := json.Unmarshal([]byte(raw), &found); err != nil {
			t.Fatal(err)
		}
		for _, v := range found {
			var where []string
			for _, n := range v.Nodes[:min(len(v.Nodes), 3)] {
				where = append(where, fmt.Sprintf("%.200s\n    %s", n.HTML, strings.ReplaceAll(n.FailureSummary, "\n", "\n    ")))
			}
			t.Errorf("%s, %s, %s: %s (%s, %d times): %s\n    %s", name, look.name, look.scheme, v.ID, v.Impact, len(v.Nodes), v.Help, strings.Join(where, "\n    "))
		}
	}
}
