package console

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
)

var pictures = flag.String("pictures", "", "a folder for screenshots of the pages")

// browser starts a headless Chromium, or skips the test where there is none.
func browser(t *testing.T) context.Context {
	t.Helper()
	var found string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "headless_shell"} {
		if p, err := exec.LookPath(name); err == nil {
			found = p
			break
		}
	}
	if found == "" {
		t.Skip("no Chromium is installed (chromium, chromium-browser or google-chrome on the PATH): the pages are not tried in a browser")
	}
	profile, err := os.MkdirTemp("", "liftlock-browser-")
	if err != nil {
		t.Fatal(err)
	}
	// Not t.TempDir: Chromium's helpers may write for a moment after its end, and a
	// file that comes back is no failure of the pages.
	t.Cleanup(func() { _ = os.RemoveAll(profile) })
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(found), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.UserDataDir(profile), chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.WindowSize(1280, 900))
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, opts...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx, chromedp.WithErrorf(func(string, ...any) {})) // a newer Chromium's events are unknown to it; what fails comes back as an error
	t.Cleanup(cancel)
	if err := chromedp.Run(ctx); err != nil {
		t.Skipf("Chromium at %s doesn't start here: %v", found, err)
	}
	return ctx
}

// overflow is how much of a page sticks out of its window, in pixels.
const overflow = `document.documentElement.scrollWidth - document.documentElement.clientWidth`

// pageName is what is there when a page is: what says that it is live, on those that are.
func pageName(page string) string {
	if page == "differences" || page == "diff" {
		return "main h1"
	}
	return "#live"
}

func TestPagesFitTheirWindows(t *testing.T) {
	ctx := browser(t)
	w := newTestConsole(t, nil)
	w.seed()
	w.seedAudit()
	w.compared = func(repo, pipeline string) (*api.Differences, error) { return differencesFixture(repo, pipeline), nil }
	w.rendered = func(store.Promotion) (*api.RenderedDiff, error) { return renderedDiff(false), nil }
	w.troubles = []api.Trouble{{Part: "pipeline file of hub:acme/data", Message: `.liftlock.yaml:14: spec.environments[1].afer: unknown key; did you mean "after"?`, Since: before(7 * time.Minute)}}
	for name, path := range map[string]string{"home": "/", "pipeline": "/pipelines/shop", "component": "/pipelines/shop/web", "compare": "/pipelines/shop/web/compare", "promotions": "/promotions", "audit": "/audit", "audit-bad": "/audit?since=yesterday&actor=ada", "promotion": "/promotions/3", "revert": "/promotions/4", "open": "/promotions/2", "differences": "/differences/shop", "diff": "/promotions/2/diff"} {
		for _, size := range []struct {
			name          string
			width, height int64
		}{{"wide", 1280, 900}, {"phone", 390, 844}} {
			for _, scheme := range []string{"light", "dark"} {
				var out int
				var shot []byte
				err := chromedp.Run(ctx,
					chromedp.EmulateViewport(size.width, size.height),
					emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
					chromedp.Navigate(w.url+path), chromedp.WaitVisible(pageName(name)), chromedp.Evaluate(overflow, &out))
				if err == nil && *pictures != "" {
					err = chromedp.Run(ctx, chromedp.FullScreenshot(&shot, 100))
				}
				if err != nil {
					t.Fatalf("%s %s %s: %v", name, size.name, scheme, err)
				}
				if out > 0 {
					t.Errorf("%s sticks out of a %s window by %d pixels", path, size.name, out)
				}
				if *pictures != "" {
					if err := os.WriteFile(filepath.Join(*pictures, strings.Join([]string{name, size.name, scheme}, "-")+".png"), shot, 0o644); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
}

func TestPageFollowsWhatHappens(t *testing.T) {
	ctx := browser(t)
	w := newTestConsole(t, func(o *Options) { o.Poll = 20 * time.Millisecond })
	w.seed()
	err := chromedp.Run(ctx, chromedp.Navigate(w.url+"/"), chromedp.WaitVisible(`//p[@id="live" and text()="Live"]`), chromedp.WaitVisible("#c-hub\\:acme\\/fleet-shop-search .busy"))
	if err != nil {
		t.Fatal(err)
	}
	// A change that no event tells of.
	w.unit(testRepo, "shop", "search", "", env("dev", promotion.Verified, "0.31.0", 0, 1), env("qa", promotion.Verified, "0.30.4", 48*time.Hour, 2), env("prod", promotion.Verified, "0.30.4", 26*time.Hour, 3))
	if err := chromedp.Run(ctx, chromedp.WaitNotPresent("#c-hub\\:acme\\/fleet-shop-search .busy")); err != nil {
		t.Fatalf("the change didn't reach the page: %v", err)
	}
	// An event; its text must stay text.
	w.event("web", "prod", "merged", 14, 0, `<img src=x onerror="document.title='broken in'"> #14 merged`)
	var title, found string
	if err := chromedp.Run(ctx, chromedp.WaitVisible(`//ol[@class="timeline"]/li[contains(., "onerror")]`), chromedp.Title(&title)); err != nil {
		t.Fatalf("the event didn't reach the page: %v", err)
	}
	if strings.Contains(title, "broken in") {
		t.Error("text from outside ran as a script")
	}
	// Find as you type.
	if err := chromedp.Run(ctx, chromedp.SendKeys("#q", "cart"), chromedp.WaitNotPresent("#c-hub\\:acme\\/fleet-shop-web"), chromedp.WaitVisible("#c-hub\\:acme\\/fleet-shop-cart"), chromedp.Location(&found)); err != nil {
		t.Fatalf("the filter doesn't work: %v", err)
	}
	if !strings.HasSuffix(found, "/?q=cart") {
		t.Errorf("the address is %s", found)
	}
}
