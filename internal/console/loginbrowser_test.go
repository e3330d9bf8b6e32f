package console

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/liftlock/liftlock/internal/world/logintest"
)

// comeAs has somebody else log in next.
func (l *loginConsole) comeAs(name string, groups ...string) {
	l.idp.With(func(p *logintest.Provider) {
		p.User = logintest.User{Subject: "sub-" + name, Name: name, Groups: groups}
	})
}

// Somebody logs in, holds, takes back and logs out, as they would with a mouse and a keyboard.
func TestConsoleIsUsedLoggedIn(t *testing.T) {
	ctx := browser(t)
	w := newLoginConsole(t, nil)
	w.seed()
	w.comeAs("ada", "sre")
	var title, refused string
	err := chromedp.Run(ctx, chromedp.Navigate(w.url+"/promotions/2"), chromedp.Click(`//nav/a[text()="Log in"]`), chromedp.WaitVisible(`//h1[text()="ada"]`),
		chromedp.Navigate(w.url+"/promotions/2"), chromedp.WaitVisible(`//nav/a[contains(., "ada")]`),
		chromedp.Click(`//summary[text()="More"]`), chromedp.Click(`//a[text()="Hold"]`), chromedp.WaitVisible(`//li[contains(., "#14 is not merged until the hold is lifted")]`),
		chromedp.SendKeys("#reason", "waits for the certificate\n"), // Enter sends the form
		chromedp.WaitVisible(`//h2[contains(., "Done")]`), chromedp.Click(`//a[text()="See what comes of it"]`), chromedp.WaitVisible(`//a[text()="Review #14"]`))
	if err != nil {
		t.Fatalf("the hold: %v", err)
	}
	if len(w.commands) != 1 || w.commands[0].Verb != "hold" || w.commands[0].Reason != "waits for the certificate" || w.commands[0].By != "ada (console)" {
		t.Fatalf("it is given as %+v", w.commands)
	}
	err = chromedp.Run(ctx, chromedp.Navigate(w.url+"/promotions/1"), chromedp.Click(`//summary[text()="Actions"]`), chromedp.Click(`//a[text()="Revert 1.5.0 in qa"]`), chromedp.WaitVisible(`//li[contains(., "takes web back to what it had in qa before #12")]`),
		chromedp.Click(`button.main`), chromedp.WaitVisible(`//h2[contains(., "Done")]`), chromedp.Title(&title))
	if err != nil || len(w.commands) != 2 || w.commands[1].Verb != "revert" || w.commands[1].Pull != 12 || !strings.HasPrefix(title, "Revert #12") {
		t.Fatalf("the revert: %v, %+v, %q", err, w.commands, title)
	}
	err = chromedp.Run(ctx, chromedp.Click(`//nav/a[contains(., "ada")]`), chromedp.Click(`//button[text()="Log out"]`), chromedp.WaitVisible(`//h1[text()="You are logged out"]`),
		chromedp.Navigate(w.url+"/"), chromedp.WaitVisible(`//nav/a[text()="Log in"]`))
	if err != nil {
		t.Fatalf("the logout: %v", err)
	}
	w.comeAs("eve")
	err = chromedp.Run(ctx, chromedp.Navigate(w.url+"/act/promotions/2/hold"), chromedp.WaitVisible(`button.main:disabled`), chromedp.Text("#refused", &refused))
	if err != nil || !strings.Contains(refused, "eve (console) may not give /liftlock hold: it takes the role operator, and this is viewer") {
		t.Fatalf("a viewer: %v, %q", err, refused)
	}
}

// All of it works without JavaScript.
func TestLoggedInWithoutScripts(t *testing.T) {
	ctx := browser(t)
	w := newLoginConsole(t, func(o *Options) { o.ReadToken = true })
	w.seed()
	w.comeAs("ada", "sre")
	err := chromedp.Run(ctx, emulation.SetScriptExecutionDisabled(true), chromedp.Navigate(w.url+"/pipelines/shop/web"), chromedp.WaitVisible(`//a[text()="Promote to qa"]`),
		chromedp.Click(`//a[text()="Promote to qa"]`), chromedp.WaitVisible(`button.main`), chromedp.Click(`button.main`), chromedp.WaitVisible(`//h2[contains(., "Done")]`))
	if err != nil || len(w.commands) != 1 || w.commands[0].Verb != "promote" || w.commands[0].Environment != "qa" {
		t.Fatalf("%v, %+v", err, w.commands)
	}
}

// TestOpenPageLeadsToTheLogin holds that a reader whose session ends is led to the login, by the
// open page itself.
func TestOpenPageLeadsToTheLogin(t *testing.T) {
	ctx := browser(t)
	w := newLoginConsole(t, func(o *Options) { o.ReadToken, o.Recheck = true, 100*time.Millisecond })
	w.seed()
	w.comeAs("ada", "sre")
	err := chromedp.Run(ctx, network.Enable(), chromedp.Navigate(w.url+"/"), chromedp.WaitVisible(`//nav/a[contains(., "ada")]`), chromedp.WaitVisible(`//p[@id="live" and text()="Live"]`))
	if err != nil {
		t.Fatal(err)
	}
	w.comeAs("grace", "sre")
	all, err := w.store.BrowserSessions(t.Context(), "", now.Add(-time.Hour))
	w.must(err)
	if _, err := w.store.EndBrowserSession(t.Context(), all[0].ID); err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Run(ctx, chromedp.WaitVisible(`//nav/a[contains(., "grace")]`)); err != nil {
		t.Fatalf("the page doesn't lead to the login: %v", err)
	}
}

// The pages of who has logged in fit their windows, and axe-core finds nothing on them.
func TestLoggedInPagesAreSound(t *testing.T) {
	ctx := browser(t)
	axe := loadAxe(t)
	w := newLoginConsole(t, nil)
	w.seed()
	w.comeAs("grace", "oncall")
	w.loggedIn(t, "ada-with-a-rather-long-name@engineering.example.com", "sre")
	w.comeAs("grace", "oncall")
	if err := chromedp.Run(ctx, chromedp.Navigate(w.url+"/login?return=/account"), chromedp.WaitVisible(`//h1[text()="grace"]`)); err != nil {
		t.Fatal(err)
	}
	check := func(name, path string) {
		t.Helper()
		if err := chromedp.Run(ctx, chromedp.Navigate(w.url+path), chromedp.WaitReady("main h1")); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		checkFit(t, ctx, name)
		checkAccessible(t, ctx, axe, name)
	}
	for name, path := range map[string]string{"account": "/account", "act-hold": "/act/promotions/2/hold", "act-skip": "/act/promotions/2/skip", "act-pipeline": "/act/pipelines/shop/hold?environment=prod",
		"act-component": "/pipelines/shop/web", "act-promotion": "/promotions/2", "act-on-pipeline": "/pipelines/shop", "logged-out": "/logged-out"} {
		check(name, path)
	}
	if err := chromedp.Run(ctx, chromedp.Navigate(w.url+"/act/promotions/2/hold"), chromedp.SendKeys("#for", "soon\n"), chromedp.WaitVisible(`//h2[contains(., "Nothing was done")]`)); err != nil {
		t.Fatal(err)
	}
	checkFit(t, ctx, "act-failed")
	checkAccessible(t, ctx, axe, "act-failed")
	w.comeAs("eve")
	check("login-of-a-viewer", "/login?return=/act/promotions/2/skip")
	w.idp.With(func(p *logintest.Provider) { p.Change = func(m map[string]any) { m["nonce"] = "another" } })
	check("login-refused", "/login")
}
