package console

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
)

const isLive = `//p[@id="live" and text()="Live"]`

// What somebody has open, written, chosen and stands on stays when the page is another one, and
// so does where it is scrolled to.
func TestUpdatesKeepTheReadersPlace(t *testing.T) {
	ctx := browser(t)
	w := newTestConsole(t, func(o *Options) { o.Poll = time.Hour })
	w.seedEverything()
	var before, after, text string
	err := chromedp.Run(ctx, chromedp.EmulateViewport(1280, 500), chromedp.Navigate(w.url+"/pipelines/shop/web"), chromedp.WaitVisible(isLive),
		chromedp.Evaluate(`document.querySelector("#carries-qa").open = true;
			document.querySelector('a[href="/promotions/2"]').focus();
			window.scrollTo(0, 300); String(window.scrollY)`, &before))
	if err != nil {
		t.Fatal(err)
	}
	w.event("web", "prod", "merged", 14, 0, "#14 merged")
	err = chromedp.Run(ctx, chromedp.WaitVisible(`//ol[@class="timeline"]/li[contains(., "#14 merged")]`),
		chromedp.Evaluate(`[document.querySelector("#carries-qa").open, document.activeElement.getAttribute("href"), window.scrollY].join(" ")`, &after))
	if err != nil || after != "true /promotions/2 "+before {
		t.Errorf("from %s it is %q: %v", before, after, err)
	}
	// A form that is half filled in, beside a list that moves.
	err = chromedp.Run(ctx, chromedp.Navigate(w.url+"/audit"), chromedp.WaitVisible(isLive), chromedp.SetValue(`[name=pipeline]`, "sho"), chromedp.SetValue(`[name=via]`, "api"),
		chromedp.SendKeys(`[name=actor]`, "ad"))
	if err != nil {
		t.Fatal(err)
	}
	w.must(w.store.AddAudit(t.Context(), store.Audit{At: now, Actor: "edsger", Via: "comment", Verb: "hold", Subject: testRepo + "|shop|web #14", Outcome: carriedOut, Source: "edsger"}))
	w.event("web", "prod", "merged", 14, 0, "#14 merged again")
	err = chromedp.Run(ctx, chromedp.WaitVisible(`//td/a[text()="edsger"]`), chromedp.KeyEvent("a"),
		chromedp.Evaluate(`["pipeline", "via", "actor"].map((n) => document.querySelector("[name=" + n + "]").value).join(" ")`, &text))
	if err != nil || text != "sho api ada" {
		t.Errorf("the form has %q: %v", text, err)
	}
}

// requestLog is how often each address was asked for.
type requestLog struct {
	mu   sync.Mutex
	seen map[string]int
	last map[string]int // the status of the last answer
}

func (l *requestLog) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		noted := &notedStatus{ResponseWriter: w, status: 200}
		defer func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.seen[r.URL.Path]++
			l.last[r.URL.Path] = noted.status
		}()
		next.ServeHTTP(noted, r)
	})
}

type notedStatus struct {
	http.ResponseWriter
	status int
}

func (n *notedStatus) WriteHeader(status int) {
	n.status = status
	n.ResponseWriter.WriteHeader(status)
}
func (n *notedStatus) Unwrap() http.ResponseWriter { return n.ResponseWriter }

func (l *requestLog) of(path string) (seen, status int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seen[path], l.last[path]
}

// A page on which nothing is another isn't changed, and is only asked about when something changes.
func TestUnchangedPageIsLeftAlone(t *testing.T) {
	ctx := browser(t)
	log := &requestLog{seen: map[string]int{}, last: map[string]int{}}
	w := openTestConsole(t)
	w.options.Poll = 10 * time.Millisecond
	w.serve(log.wrap)
	w.seed()
	if err := chromedp.Run(ctx, chromedp.Navigate(w.url+"/promotions"), chromedp.WaitVisible(isLive)); err != nil {
		t.Fatal(err)
	}
	reload := func(n int, status int) {
		t.Helper()
		w.unit(testRepo, "shop", "search", "", env("dev", promotion.Verified, strings.Repeat("1", n), 0, 1))
		waitFor(t, ctx, func() bool {
			seen, last := log.of("/promotions")
			return seen == n && last == status
		})
	}
	reload(2, 200) // its script doesn't know the tag that it came with
	if err := chromedp.Run(ctx, chromedp.Evaluate(`window.mutations = 0; new MutationObserver((all) => { mutations += all.length; }).observe(document.querySelector("main"), {subtree: true, childList: true, attributes: true, characterData: true})`, nil)); err != nil {
		t.Fatal(err)
	}
	reload(3, 304)
	reload(4, 304)
	var mutations int
	if err := chromedp.Run(ctx, chromedp.Evaluate(`window.mutations`, &mutations)); err != nil || mutations != 0 {
		t.Errorf("the page is changed %d times: %v", mutations, err)
	}
	if seen, _ := log.of("/promotions"); seen != 4 {
		t.Errorf("it is asked for %d times", seen)
	}
}

// waitFor waits until something is so, while the browser goes on.
func waitFor(t *testing.T, ctx context.Context, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !is(); {
		if time.Now().After(deadline) {
			t.Fatal("it didn't come to be")
		}
		var done bool
		if err := chromedp.Run(ctx, chromedp.Evaluate(`new Promise((f) => setTimeout(f, 20, true))`, &done, awaitPromise)); err != nil {
			t.Fatal(err)
		}
	}
}

// A page that nobody sees holds no connection; seen again, it has what happened meanwhile.
func TestHiddenPagesHoldNoStream(t *testing.T) {
	ctx := browser(t)
	log := &requestLog{seen: map[string]int{}, last: map[string]int{}}
	w := openTestConsole(t)
	w.options.Poll = time.Hour
	w.serve(log.wrap)
	w.seed()
	show := func(state string) chromedp.Action {
		return chromedp.Evaluate(`Object.defineProperty(document, "hidden", {value: `+state+`, configurable: true}); document.dispatchEvent(new Event("visibilitychange"))`, nil)
	}
	if err := chromedp.Run(ctx, chromedp.Navigate(w.url+"/"), chromedp.WaitVisible(isLive), show("true")); err != nil {
		t.Fatal(err)
	}
	waitFor(t, ctx, func() bool { seen, _ := log.of("/live"); return seen == 1 }) // noted when it has ended
	before, _ := log.of("/")
	w.event("web", "prod", "merged", 14, 0, "#14 merged meanwhile")
	if err := chromedp.Run(ctx, show("false"), chromedp.WaitVisible(`//li[contains(., "#14 merged meanwhile")]`), chromedp.WaitVisible(isLive)); err != nil {
		t.Fatal(err)
	}
	if after, _ := log.of("/"); after < before+1 || after > before+2 {
		t.Errorf("it is asked for %d times", after-before)
	}
}

// The keys lead from row to row and to the field, do nothing while somebody writes, and are listed.
func TestKeys(t *testing.T) {
	ctx := browser(t)
	axe := loadAxe(t)
	w := newTestConsole(t, nil)
	w.seed()
	var first, second, back, written string
	at := func(out *string) chromedp.Action {
		return chromedp.Evaluate(`document.activeElement.textContent`, out)
	}
	err := chromedp.Run(ctx, chromedp.Navigate(w.url+"/pipelines/shop"), chromedp.WaitVisible(isLive), chromedp.KeyEvent("j"), at(&first), chromedp.KeyEvent("j"), at(&second), chromedp.KeyEvent("k"), at(&back),
		chromedp.KeyEvent("?"), chromedp.WaitVisible(`#keys[open]`))
	if err != nil || first != "cart" || second != "mail" || back != "cart" {
		t.Errorf("it is on %s, %s and %s: %v", first, second, back, err)
	}
	checkAccessible(t, ctx, axe, "keys")
	err = chromedp.Run(ctx, chromedp.Click(`#keys button`), chromedp.WaitNotVisible(`#keys`), chromedp.Focus("#q"), chromedp.KeyEvent("j?"), chromedp.Value("#q", &written), chromedp.WaitNotVisible("#keys"))
	if err != nil || written != "j?" {
		t.Errorf("the field has %q: %v", written, err)
	}
}
