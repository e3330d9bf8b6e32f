package console

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/world/logintest"
)

// The secrets of the tokens that people log in with here.
const (
	viewerSecret     = "viewer-4f1d"
	operatorSecret   = "operator-77c2"
	breakGlassSecret = "breakglass-9e0a"
)

// newTokenConsole is one that people log in to with tokens alone.
func newTokenConsole(t testing.TB, change func(*Options)) *loginConsole {
	t.Helper()
	return newLoginConsole(t, func(o *Options) {
		o.Login = &Login{Idle: time.Hour, Lifetime: 12 * time.Hour}
		o.Tokens = []Token{{Name: "reader", Role: command.RoleViewer, Secret: viewerSecret}, {Name: "ci", Role: command.RoleOperator, Secret: operatorSecret}, {Name: "oncall", Role: command.RoleBreakGlass, Secret: breakGlassSecret}}
		if change != nil {
			change(o)
		}
	})
}

// enter sends the form for a token as its page would, after change.
func (w *webBrowser) enter(secret, back string, change func(*http.Request)) (int, string) {
	w.t.Helper()
	raw := url.Values{"secret": {secret}, "return": {back}}.Encode()
	r, err := http.NewRequest(http.MethodPost, w.w.url+"/login/token", strings.NewReader(raw))
	w.w.must(err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", w.w.url)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if change != nil {
		change(r)
	}
	return w.do(r)
}

func TestTokensLogIn(t *testing.T) {
	seen, logs := observer.New(zap.DebugLevel)
	w := newTokenConsole(t, func(o *Options) { o.ReadToken, o.Log = true, zap.New(seen) })
	w.seed()
	b := w.newBrowser(t)
	// A page leads to the form, and the form back to the page.
	status, body := b.open("/pipelines/shop?q=web")
	if status != 200 || b.last.Path != "/login/token" || !strings.Contains(body, `name="return" value="/pipelines/shop?q=web"`) || !strings.Contains(body, `type="password"`) {
		t.Fatalf("%d at %s\n%s", status, b.last, body)
	}
	status, body = b.enter(operatorSecret, "/pipelines/shop?q=web", nil)
	if status != 200 || b.last.RequestURI() != "/pipelines/shop?q=web" || !strings.Contains(body, "token ci <small>operator</small>") {
		t.Fatalf("%d at %s\n%s", status, b.last, body)
	}
	_, account := b.open("/account")
	if !strings.Contains(account, "Logged in with an API token") || !strings.Contains(account, "token ci (console)") || strings.Contains(account, "identity provider") {
		t.Errorf("the account's page:\n%s", account)
	}
	// It may what the token may, by the same path.
	if status, body := b.send("/act/promotions/2/hold", "/act/promotions/2/hold", url.Values{"reason": {"waits"}, "key": {"K1"}}, nil); status != 200 || !strings.Contains(body, "hold noted") {
		t.Fatalf("%d\n%s", status, body)
	}
	if got := w.commands[0]; got.By != "token ci (console)" || got.Role != command.RoleOperator || got.Via != "console" || got.Account != "" || got.Subject != digestSubject("", tokenSubject+"ci") {
		t.Errorf("it is given as %+v", got)
	}
	if _, body := b.open("/act/promotions/2/skip"); !strings.Contains(body, "it takes the role breakglass, and this is operator") {
		t.Errorf("what it may not do:\n%s", body)
	}
	viewer := w.newBrowser(t)
	viewer.enter(viewerSecret, "/", nil)
	if _, body := viewer.open("/act/promotions/2/hold"); !strings.Contains(body, "it takes the role operator, and this is viewer") {
		t.Errorf("a viewer:\n%s", body)
	}
	// Its cookie is as any other's, and the session's end is too.
	if len(b.cookie(sessionCookie)) < 20 {
		t.Error("it has no session")
	}
	b.send("/account", "/logout", url.Values{}, nil)
	if b.open("/"); b.last.Path != "/login/token" {
		t.Errorf("logged out it is at %s", b.last)
	}
	for _, secret := range []string{operatorSecret, viewerSecret} {
		for _, entry := range logs.All() {
			if strings.Contains(fmt.Sprint(entry.Message, entry.ContextMap()), secret) {
				t.Errorf("the log has the token: %v", entry)
			}
		}
		trail, err := w.store.AuditTrail(t.Context(), store.AuditFilter{}, 100)
		w.must(err)
		if strings.Contains(fmt.Sprintf("%+v", trail), secret) || strings.Contains(account+body, secret) {
			t.Errorf("the token is in the audit trail or on a page")
		}
	}
}

func TestRefusedTokenLogins(t *testing.T) {
	w := newTokenConsole(t, nil)
	w.seed()
	b := w.newBrowser(t)
	for name, c := range map[string]struct {
		secret string
		change func(*http.Request)
		status int
		want   string
	}{
		"a guess":                 {"guess-1234", nil, http.StatusForbidden, "none of this server&#39;s API tokens"},
		"nothing":                 {"", nil, http.StatusForbidden, "none of this server&#39;s API tokens"},
		"of another site":         {operatorSecret, func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }, http.StatusForbidden, "not sent by a page of this console"},
		"of no page":              {operatorSecret, func(r *http.Request) { r.Header.Del("Origin") }, http.StatusForbidden, "not sent by a page of this console"},
		"of another site's frame": {operatorSecret, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, http.StatusForbidden, "not sent by a page of this console"},
	} {
		status, body := b.enter(c.secret, "/", c.change)
		if status != c.status || !strings.Contains(body, c.want) || b.cookie(sessionCookie) != "" || c.secret != "" && strings.Contains(body, c.secret) {
			t.Errorf("%s is answered with %d\n%s", name, status, body)
		}
	}
	if trail, err := w.store.AuditTrail(t.Context(), store.AuditFilter{Verb: auditLogin}, 10); err != nil || len(trail) == 0 || trail[0].Actor != unknownActor || !strings.HasPrefix(trail[0].Outcome, "refused: ") {
		t.Errorf("on record is %+v, %v", trail, err)
	}
	if _, body := b.enter(operatorSecret, "//evil.example/", nil); !strings.Contains(body, "token ci") || b.last.Host != strings.TrimPrefix(w.url, "https://") {
		t.Errorf("it leads to %s", b.last)
	}
	// Guessing is bounded, by address.
	last := 0
	for range redemptionsOfClient + 1 {
		last, _ = w.newBrowser(t).enter("guess", "/", nil)
	}
	if last != http.StatusTooManyRequests {
		t.Errorf("the last of many guesses is answered with %d", last)
	}
	w.advance(time.Minute)
	if status, _ := w.newBrowser(t).enter(operatorSecret, "/", nil); status != 200 {
		t.Errorf("a minute later: %d", status)
	}
}

// A session ends with its token, with the role that it had, and with its time.
func TestWithdrawnTokensEndTheirSessions(t *testing.T) {
	w := newTokenConsole(t, func(o *Options) { o.ReadToken = true })
	w.seed()
	b := w.newBrowser(t)
	b.enter(operatorSecret, "/", nil)
	reads := func(tokens ...Token) bool {
		t.Helper()
		o := w.options
		o.Tokens = tokens
		h, err := New(o)
		w.must(err)
		r := httptest.NewRequest(http.MethodGet, "/account", nil)
		r.AddCookie(&http.Cookie{Name: sessionCookie, Value: b.cookie(sessionCookie)})
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		return rec.Code == 200
	}
	for name, c := range map[string]struct {
		token Token
		want  bool
	}{
		"as it was":      {Token{Name: "ci", Role: command.RoleOperator, Secret: operatorSecret}, true},
		"another secret": {Token{Name: "ci", Role: command.RoleOperator, Secret: "another"}, false},
		"another role":   {Token{Name: "ci", Role: command.RoleBreakGlass, Secret: operatorSecret}, false},
		"withdrawn":      {Token{Name: "reader", Role: command.RoleViewer, Secret: viewerSecret}, false},
	} {
		if got := reads(c.token); got != c.want {
			t.Errorf("%s: it reads: %t", name, got)
		}
	}
	w.advance(time.Hour)
	if b.open("/account"); b.last.Path != "/login/token" {
		t.Errorf("an hour without use later it is at %s", b.last)
	}
}

// A session reads what access in the server's file leaves its token.
func TestTokenSessionsReadAsTheirTokens(t *testing.T) {
	w := newTokenConsole(t, func(o *Options) {
		o.ReadToken = true
		o.Readers = &Readers{Rules: []ReaderRule{{Repositories: []string{"acme/fleet"}, Tokens: []string{"ci"}}}}
	})
	w.seed()
	for secret, want := range map[string]bool{operatorSecret: true, viewerSecret: false} {
		b := w.newBrowser(t)
		b.enter(secret, "/", nil)
		if status, _ := b.open("/pipelines/shop"); (status == 200) != want {
			t.Errorf("with %s it is answered with %d", secret, status)
		}
	}
}

// Without externalURL a form is taken by this machine's own names, and by no other that leads here.
func TestOriginWithoutExternalURL(t *testing.T) {
	w := newTokenConsole(t, func(o *Options) { o.ExternalURL = "" })
	h, err := New(w.options)
	w.must(err)
	for host, want := range map[string]int{"127.0.0.1:8080": http.StatusSeeOther, "localhost:8080": http.StatusSeeOther, "[::1]:8080": http.StatusSeeOther, "rebound.example:8080": http.StatusForbidden, "10.0.0.7:8080": http.StatusForbidden} {
		r := httptest.NewRequest(http.MethodPost, "/login/token", strings.NewReader(url.Values{"secret": {operatorSecret}}.Encode()))
		r.Host = host
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", "http://"+host)
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		if rec.Code != want {
			t.Errorf("at %s it is answered with %d, want %d", host, rec.Code, want)
		}
	}
}

// Who has both an identity provider and tokens is led to the provider, and finds the form.
func TestTokensBesideAnIdentityProvider(t *testing.T) {
	w := newLoginConsole(t, func(o *Options) { o.Tokens = []Token{{Name: "ci", Role: command.RoleOperator, Secret: operatorSecret}} })
	w.seed()
	b := w.newBrowser(t)
	if _, body := b.open("/logged-out"); !strings.Contains(body, `href="/login/token?return=%2F"`) {
		t.Errorf("the form isn't found:\n%s", body)
	}
	if _, body := b.enter(operatorSecret, "/account", nil); !strings.Contains(body, "<h1>token ci</h1>") {
		t.Errorf("it is:\n%s", body)
	}
	// Nobody is a token because a provider says so.
	w.comeAs("eve", "sre")
	w.idp.With(func(p *logintest.Provider) { p.User.Subject = tokenSubject + "ci" })
	if status, body := w.newBrowser(t).open("/login"); status != http.StatusForbidden || !strings.Contains(body, "API token") {
		t.Errorf("somebody of a token's subject: %d\n%s", status, body)
	}
}

// With the keyboard alone, on a phone's window and on a screen: log in, hold, promote, revert, and
// give nothing that the token may not.
func TestConsoleIsUsedByKeyboard(t *testing.T) {
	ctx := browser(t)
	axe := loadAxe(t)
	for _, look := range []pageLook{{"phone", 390, 844, "dark"}, {"wide", 1280, 900, "light"}} {
		w := newTokenConsole(t, func(o *Options) { o.ReadToken = true })
		w.seed()
		// press goes to what a selector names by the tab key, and presses Enter there.
		press := func(selector string) chromedp.Action {
			return chromedp.ActionFunc(func(ctx context.Context) error {
				for range 300 {
					var is bool
					if err := chromedp.Run(ctx, chromedp.KeyEvent(kb.Tab), chromedp.Evaluate(fmt.Sprintf("document.activeElement.matches(%q)", selector), &is)); err != nil {
						return err
					}
					if is {
						return chromedp.Run(ctx, chromedp.KeyEvent(kb.Enter))
					}
				}
				return fmt.Errorf("the keyboard doesn't lead to %s", selector)
			})
		}
		// sound holds that axe-core finds nothing on the page that is open, and goes on from its beginning.
		sound := func(name string) chromedp.Action {
			return chromedp.ActionFunc(func(context.Context) error {
				checkAccessible(t, ctx, axe, name)
				return chromedp.Run(ctx, look.emulate(), chromedp.Reload(), chromedp.WaitReady("main"), chromedp.Focus("#main", chromedp.ByQuery))
			})
		}
		if err := chromedp.Run(ctx, look.emulate(), chromedp.Navigate(w.url+"/promotions/2"), chromedp.WaitVisible("#secret")); err != nil {
			t.Fatal(err)
		}
		checkFit(t, ctx, "login-token")
		checkAccessible(t, ctx, axe, "login-token")
		err := chromedp.Run(ctx, look.emulate(), chromedp.Focus("#main", chromedp.ByQuery), press(`#secret`), chromedp.KeyEvent(operatorSecret+kb.Enter),
			chromedp.WaitVisible(`//a[text()="Review #14"]`), sound("open"), press("#more summary"), press(`a[href="/act/promotions/2/hold"]`), chromedp.WaitVisible("#reason"), sound("act"), press("button.main"), chromedp.WaitVisible(`//h2[contains(., "Done")]`),
			chromedp.Navigate(w.url+"/pipelines/shop/web"), press(`a[href*="/promote?"][href*="environment=prod"]`), chromedp.WaitVisible(`//h1[text()="Promote web to prod"]`), press("button.main"), chromedp.WaitVisible(`//h2[contains(., "Done")]`),
			chromedp.Navigate(w.url+"/promotions/1"), press("#more summary"), press(`a[href="/act/promotions/1/revert"]`), chromedp.WaitVisible("#reason"), press("button.main"), chromedp.WaitVisible(`//h2[contains(., "Done")]`))
		if err != nil {
			t.Fatalf("%s: %v, after %+v", look.name, err, w.commands)
		}
		var given []string
		for _, c := range w.commands {
			given = append(given, command.Describe(c.Grammar()))
		}
		if got := strings.Join(given, ", "); got != "hold pr prod, promote prod, revert qa" {
			t.Errorf("%s: it gives %s", look.name, got)
		}
		err = chromedp.Run(ctx, chromedp.Navigate(w.url+"/account"), press(`form[action="/logout"] button`), chromedp.WaitVisible(`//h1[text()="You are logged out"]`),
			chromedp.Navigate(w.url+"/act/promotions/2/hold"), chromedp.WaitVisible("#secret"), press("#secret"), chromedp.KeyEvent(viewerSecret+kb.Enter), chromedp.WaitVisible("button.main:disabled"))
		if err != nil || len(w.commands) != 3 {
			t.Errorf("%s: a viewer: %v, %+v", look.name, err, w.commands)
		}
	}
}

// A link with a token behind its # fills it in, sends it to no server, and leaves the login to whoever follows it.
func TestLinkWithAToken(t *testing.T) {
	ctx := browser(t)
	w := newTokenConsole(t, func(o *Options) { o.ReadToken = true })
	w.seed()
	var filled, focused, address string
	err := chromedp.Run(ctx, chromedp.Navigate(w.url+"/login/token?return=%2Faccount#token="+url.QueryEscape(operatorSecret)), chromedp.WaitVisible("#secret"), chromedp.Evaluate(`document.activeElement.textContent`, &focused), chromedp.Value("#secret", &filled), chromedp.Location(&address))
	if err != nil || filled != operatorSecret || focused != "Log in" || strings.Contains(address, "#") {
		t.Fatalf("at %s the form has %q, and the focus is on %q: %v", address, filled, focused, err)
	}
	if err := chromedp.Run(ctx, chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible(`//h1[text()="token ci"]`)); err != nil {
		t.Fatal(err)
	}
}
