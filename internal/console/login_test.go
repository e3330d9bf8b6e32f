package console

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/console/login"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/world/logintest"
)

// loginConsole is a console that people log in to, at an identity provider of the test's.
type loginConsole struct {
	*testConsole
	idp    *logintest.Provider
	server *httptest.Server
	passed atomic.Int64 // how long after now it is
}

func (l *loginConsole) advance(d time.Duration) { l.passed.Add(int64(d)) }
func (l *loginConsole) clock() time.Time        { return now.Add(time.Duration(l.passed.Load())) }

// newLoginConsole serves one by TLS; its commands are authorised as the controller does.
func newLoginConsole(t testing.TB, change func(*Options)) *loginConsole {
	t.Helper()
	w := &loginConsole{testConsole: openTestConsole(t), server: httptest.NewUnstartedServer(nil)}
	w.url = "https://" + w.server.Listener.Addr().String()
	w.idp = logintest.New(t, w.clock)
	provider, err := login.New(login.Options{Issuer: w.idp.URL, ClientID: logintest.ClientID, ClientSecret: logintest.ClientSecret, RedirectURL: w.url + "/login/callback",
		Scopes: []string{"openid", "profile"}, GroupsClaim: "groups", AccountClaims: map[string]string{"hub": "nickname"}, Now: w.clock})
	w.must(err)
	o := &w.options
	o.Now, o.ExternalURL = w.clock, w.url
	o.Login = &Login{Provider: provider, Accounts: map[string]string{"hub": "nickname"}, Idle: time.Hour, Lifetime: 12 * time.Hour,
		Roles: map[string][]string{command.RoleViewer: {AnyGroup}, command.RoleOperator: {"sre"}, command.RoleBreakGlass: {"oncall"}}}
	o.Command = func(ctx context.Context, o Command) (string, error) {
		if err := command.Authorise(o.Grammar(), command.Person{Login: o.By, Role: o.Role}, false); err != nil {
			return "", &Refusal{err.Error()}
		}
		return w.command(ctx, o)
	}
	if change != nil {
		change(o)
	}
	h, err := New(*o)
	w.must(err)
	w.server.Config.Handler = WithSecurityHeaders(h)
	w.server.StartTLS()
	t.Cleanup(w.server.Close)
	return w
}

// webBrowser is a browser's cookies and how it follows redirects.
type webBrowser struct {
	*http.Client
	t    testing.TB
	w    *loginConsole
	last *url.URL // where the last page is
}

func (l *loginConsole) newBrowser(t testing.TB) *webBrowser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	l.must(err)
	return &webBrowser{Client: &http.Client{Transport: l.server.Client().Transport, Jar: jar}, t: t, w: l}
}

// loggedIn is a browser of somebody with some groups.
func (l *loginConsole) loggedIn(t testing.TB, name string, groups ...string) *webBrowser {
	t.Helper()
	l.idp.With(func(p *logintest.Provider) {
		p.User = logintest.User{Subject: "sub-" + name, Name: name, Groups: groups}
	})
	b := l.newBrowser(t)
	if status, body := b.open("/login?return=/account"); status != 200 || !strings.Contains(body, "<h1>"+name) {
		t.Fatalf("%s can't log in: %d at %s\n%s", name, status, b.last, body)
	}
	return b
}

func (w *webBrowser) do(r *http.Request) (int, string) {
	w.t.Helper()
	if r.Header.Get("Accept") == "" {
		r.Header.Set("Accept", "text/html")
	}
	resp, err := w.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	w.last = resp.Request.URL
	return resp.StatusCode, string(body)
}

// open opens a page of the console, with all redirects.
func (w *webBrowser) open(path string) (int, string) {
	w.t.Helper()
	r, err := http.NewRequest(http.MethodGet, w.w.url+path, nil)
	w.w.must(err)
	return w.do(r)
}

var formToken = regexp.MustCompile(`name="token" value="([^"]+)"`)

// send posts a form as the page at an address would, after change.
func (w *webBrowser) send(page, to string, fields url.Values, change func(*http.Request, url.Values)) (int, string) {
	w.t.Helper()
	_, body := w.open(page)
	if m := formToken.FindStringSubmatch(body); m != nil {
		fields.Set("token", m[1])
	} else {
		w.t.Fatalf("%s has no form:\n%s", page, body)
	}
	r, err := http.NewRequest(http.MethodPost, w.w.url+to, nil)
	w.w.must(err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", w.w.url)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if change != nil {
		change(r, fields)
	}
	raw := fields.Encode()
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader(raw)), int64(len(raw))
	return w.do(r)
}

// cookie is what the browser sends with a name; empty: nothing.
func (w *webBrowser) cookie(name string) string {
	u, _ := url.Parse(w.w.url)
	for _, c := range w.Jar.Cookies(u) {
		if c.Name == name {
			return c.Value
		}
	}
	return ""
}

func (w *webBrowser) setCookie(name, value string) {
	u, _ := url.Parse(w.w.url)
	w.Jar.SetCookies(u, []*http.Cookie{{Name: name, Value: value, Path: "/", Secure: true}})
}

// withoutRedirects does f with what a browser is answered first.
func (w *webBrowser) withoutRedirects(f func()) {
	w.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	defer func() { w.CheckRedirect = nil }()
	f()
}

func TestLoginLeadsBack(t *testing.T) {
	w := newLoginConsole(t, func(o *Options) { o.ReadToken = true })
	w.seed()
	b := w.newBrowser(t)
	if status, body := b.open("/pipelines/shop?q=web"); status != 200 || b.last.String() != w.url+"/pipelines/shop?q=web" || !strings.Contains(body, "ada <small>operator</small>") {
		t.Fatalf("%d at %s\n%s", status, b.last, body)
	}
	if b.cookie(attemptCookie) != "" {
		t.Error("the login's own cookie is left over")
	}
	// A client that doesn't show pages is told what it needs.
	for path, accept := range map[string]string{"/metrics": "*/*", "/api/v1/pipelines": "text/html", "/live": "text/event-stream"} {
		r, err := http.NewRequest(http.MethodGet, w.url+path, nil)
		w.must(err)
		r.Header.Set("Accept", accept)
		if status, _ := w.newBrowser(t).do(r); status != http.StatusUnauthorized {
			t.Errorf("%s without a login is answered with %d", path, status)
		}
	}
	// A token is as good as ever.
	if status, _, body := w.tlsGet("/api/v1/pipelines", bearer("see")); status != 200 || !strings.Contains(body, "shop") {
		t.Errorf("with a token: %d", status)
	}
}

func (l *loginConsole) tlsGet(path string, header map[string]string) (int, http.Header, string) {
	l.t.Helper()
	r, err := http.NewRequest(http.MethodGet, l.url+path, nil)
	l.must(err)
	for name, value := range header {
		r.Header.Set(name, value)
	}
	resp, err := l.server.Client().Do(r)
	l.must(err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	l.must(err)
	return resp.StatusCode, resp.Header, string(body)
}

// The cookies are kept from scripts, from other hosts and from other sites' posts.
func TestCookiesAreStrict(t *testing.T) {
	w := newLoginConsole(t, nil)
	b := w.newBrowser(t)
	var cookies []string
	b.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		cookies = append(cookies, r.Response.Header["Set-Cookie"]...)
		return nil
	}
	b.open("/login")
	want := map[string]string{attemptCookie: "Max-Age=600", sessionCookie: "Max-Age=43200"}
	for _, c := range cookies {
		name, _, _ := strings.Cut(c, "=")
		for _, part := range []string{"Path=/", "HttpOnly", "Secure", "SameSite=Lax"} {
			if !strings.Contains(c, part) {
				t.Errorf("%s has no %s: %s", name, part, c)
			}
		}
		if strings.Contains(c, "Domain") {
			t.Errorf("%s is for other hosts too: %s", name, c)
		}
		if part := want[name]; strings.Contains(c, part) {
			delete(want, name)
		}
	}
	if len(want) > 0 {
		t.Errorf("of %q these were not set: %v", cookies, want)
	}
	if s, ok, err := w.store.BrowserSession(t.Context(), b.cookie(sessionCookie)); ok || err != nil {
		t.Errorf("the token itself is in the store: %+v, %v", s, err)
	}
	if _, ok, err := w.store.BrowserSession(t.Context(), digestToken(b.cookie(sessionCookie))); !ok || err != nil {
		t.Errorf("its digest isn't: %v", err)
	}
}

func TestForgedCallbacksAreRefused(t *testing.T) {
	w := newLoginConsole(t, nil)
	// begin opens the login up to the provider's answer.
	begin := func(b *webBrowser) *url.URL {
		t.Helper()
		var answer *url.URL
		b.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
			if strings.HasPrefix(r.URL.Path, "/login/callback") {
				answer = r.URL
				return http.ErrUseLastResponse
			}
			return nil
		}
		b.open("/login")
		b.CheckRedirect = nil
		if answer == nil {
			t.Fatal("the provider didn't answer")
		}
		return answer
	}
	refused := func(what string, b *webBrowser, path string) {
		t.Helper()
		status, body := b.open(path)
		if status != http.StatusForbidden || !strings.Contains(body, "You are not logged in") || b.cookie(sessionCookie) != "" {
			t.Errorf("%s is answered with %d:\n%s", what, status, body)
		}
	}
	b := w.newBrowser(t)
	q := begin(b).Query()
	q.Set("state", "other")
	refused("another state", b, "/login/callback?"+q.Encode())
	refused("the right state, once its login is over", b, "/login/callback?state="+q.Get("state"))

	victim, attacker := w.newBrowser(t), w.newBrowser(t)
	answer := begin(attacker)
	refused("an attacker's answer in a browser that began nothing", victim, answer.RequestURI())
	begin(victim)
	refused("an attacker's answer in a browser that began another login", victim, answer.RequestURI())

	// Played again with everything that the first had.
	b = w.newBrowser(t)
	answer = begin(b)
	attempt := b.cookie(attemptCookie)
	if status, _ := b.open(answer.RequestURI()); status != 200 || b.cookie(sessionCookie) == "" {
		t.Fatalf("the login itself is answered with %d", status)
	}
	again := w.newBrowser(t)
	again.setCookie(attemptCookie, attempt)
	refused("a login that is played again", again, answer.RequestURI())
	again.setCookie(attemptCookie, "garbage")
	refused("a broken cookie", again, answer.RequestURI())
	again.setCookie(attemptCookie, attempt)
	refused("a cancelled login", again, "/login/callback?error=access_denied&state="+answer.Query().Get("state"))
}

func TestOriginIsAsBrowsersWriteIt(t *testing.T) {
	for address, want := range map[string]string{
		"https://Liftlock.example.com:443/ops": "https://liftlock.example.com", "https://liftlock.example.com:8443": "https://liftlock.example.com:8443",
		"http://localhost:80": "http://localhost", "http://localhost:443": "http://localhost:443", "https://[::1]:443": "https://[::1]",
	} {
		u, err := url.Parse(address)
		if err != nil || originOf(u) != want {
			t.Errorf("%s has the origin %s, want %s (%v)", address, originOf(u), want, err)
		}
	}
}

// One login makes one session also where the provider redeems a code twice.
func TestLoginIsGoodOnce(t *testing.T) {
	w := newLoginConsole(t, nil)
	h := &server{opts: w.options}
	h.opts.Client = peerOf
	once := store.BrowserSession{Attempt: login.NewAttempt("/").Digest(), Subject: "1", Name: "ada", Role: command.RoleViewer}
	for i, want := range []bool{true, false} {
		added, err := h.startSession(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/login/callback", nil), rand.Text(), once)
		if err != nil || added != want {
			t.Errorf("%d: %t, %v", i, added, err)
		}
	}
}

// TestSessionIsNotFixed holds that an attacker who plants a cookie has nothing of the session that
// begins then.
func TestSessionIsNotFixed(t *testing.T) {
	w := newLoginConsole(t, nil)
	b := w.newBrowser(t)
	b.setCookie(sessionCookie, "planted")
	if _, body := b.open("/login?return=/account"); !strings.Contains(body, "<h1>ada") || b.cookie(sessionCookie) == "planted" {
		t.Fatalf("the planted token %q lives on:\n%s", b.cookie(sessionCookie), body)
	}
	// A session that is there already is over at the next login.
	mallory := w.loggedIn(t, "mallory")
	planted := mallory.cookie(sessionCookie)
	b = w.newBrowser(t)
	b.setCookie(sessionCookie, planted)
	w.idp.With(func(p *logintest.Provider) { p.User = logintest.User{Subject: "sub-ada", Name: "ada"} })
	b.open("/login")
	if b.cookie(sessionCookie) == planted {
		t.Error("it goes on in the planted session")
	}
	mallory.withoutRedirects(func() {
		if status, _ := mallory.open("/account"); status != http.StatusSeeOther {
			t.Errorf("who planted it is answered with %d", status)
		}
	})
}

func TestLoginLeadsToThisSiteOnly(t *testing.T) {
	for raw, want := range map[string]string{
		"": "/", "/": "/", "/pipelines/shop?q=web&env=qa": "/pipelines/shop?q=web&env=qa", "/pipelines/a%2Fb": "/pipelines/a%2Fb", "/promotions/3#x": "/promotions/3",
		"https://evil.example.com/": "/", "//evil.example.com/": "/", `/\evil.example.com`: "/", `\\evil.example.com`: "/", "/%5Cevil.example.com": "/", "/%2Fevil.example.com": "/", "javascript:alert(1)": "/",
		"/\t/evil.example.com": "/", "evil.example.com": "/", "///evil.example.com": "/", "/login": "/", "/logout": "/", "http:/evil": "/", "/" + strings.Repeat("a", maxReturn): "/",
	} {
		if got := parseReturn(raw); got != want {
			t.Errorf("%q leads to %q, want %q", raw, got, want)
		}
	}
	w := newLoginConsole(t, nil)
	b := w.newBrowser(t)
	b.open("/login?return=" + url.QueryEscape("//evil.example.com/"))
	if b.last.Host != strings.TrimPrefix(w.url, "https://") || b.last.Path != "/" {
		t.Errorf("it leads to %s", b.last)
	}
}

// Behind a proxy that takes a prefix off, everything leads to addresses with it.
func TestLoginBehindAPrefix(t *testing.T) {
	w := newLoginConsole(t, nil)
	w.options.ExternalURL = "https://ops.example.com/liftlock"
	h, err := New(w.options)
	w.must(err)
	answerTo := func(r *http.Request) *httptest.ResponseRecorder {
		r.Header.Set("Accept", "text/html")
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		return rec
	}
	if to := answerTo(httptest.NewRequest(http.MethodGet, "/account", nil)).Header().Get("Location"); to != "/liftlock/login?return=%2Faccount" {
		t.Errorf("who isn't logged in is led to %s", to)
	}
	b := w.loggedIn(t, "ada", "sre")
	session := &http.Cookie{Name: sessionCookie, Value: b.cookie(sessionCookie)}
	r := httptest.NewRequest(http.MethodGet, "/account", nil)
	r.AddCookie(session)
	page := answerTo(r).Body.String()
	token := formToken.FindStringSubmatch(page)
	if token == nil || !strings.Contains(page, `action="/liftlock/logout"`) {
		t.Fatalf("the account's forms lead elsewhere:\n%s", page)
	}
	r = httptest.NewRequest(http.MethodPost, "/logout", strings.NewReader(url.Values{"token": {token[1]}}.Encode()))
	r.AddCookie(session)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", "https://ops.example.com")
	if rec := answerTo(r); rec.Code != http.StatusSeeOther || rec.Header().Get("Location") != "/liftlock/logged-out" {
		t.Errorf("the logout is answered with %d to %s", rec.Code, rec.Header().Get("Location"))
	}
}

func FuzzParseReturn(f *testing.F) {
	f.Add("/pipelines/shop?q=web")
	f.Add("//evil.example.com")
	f.Add(`/\evil`)
	f.Fuzz(func(t *testing.T, raw string) {
		to := parseReturn(raw)
		base, _ := url.Parse("https://liftlock.example.com/login/callback")
		u, err := base.Parse(strings.ReplaceAll(to, `\`, "/"))
		if err != nil || u.Host != "liftlock.example.com" || u.Scheme != "https" || strings.ContainsAny(to, "\r\n") {
			t.Errorf("%q leads to %q, which is %v, %v", raw, to, u, err)
		}
	})
}

func TestLoginNeedsRole(t *testing.T) {
	w := newLoginConsole(t, func(o *Options) { delete(o.Login.Roles, command.RoleViewer) })
	w.idp.With(func(p *logintest.Provider) {
		p.User = logintest.User{Subject: "1", Name: "eve", Groups: []string{"SRE", "sre ", "dev"}}
	})
	b := w.newBrowser(t)
	if status, body := b.open("/login"); status != http.StatusForbidden || !strings.Contains(body, "You are eve") || !strings.Contains(body, "SRE, dev") && !strings.Contains(body, "dev") || b.cookie(sessionCookie) != "" {
		t.Errorf("%d\n%s", status, body)
	}
}

func TestSessionsEnd(t *testing.T) {
	w := newLoginConsole(t, nil)
	lives := func(b *webBrowser) (out bool) {
		b.withoutRedirects(func() {
			status, _ := b.open("/account")
			out = status == 200
		})
		return out
	}
	idle := w.loggedIn(t, "ada", "sre")
	w.advance(59 * time.Minute)
	if !lives(idle) {
		t.Fatal("it is over before it was idle for an hour")
	}
	w.advance(59 * time.Minute)
	if !lives(idle) {
		t.Fatal("it is over although it was used")
	}
	w.advance(time.Hour)
	if lives(idle) {
		t.Error("it lives although it was idle")
	}
	old := w.loggedIn(t, "ada", "sre")
	for range 23 {
		w.advance(30 * time.Minute)
		if !lives(old) {
			t.Fatal("it is over although it was used all the time")
		}
	}
	w.advance(30 * time.Minute)
	if lives(old) {
		t.Error("it lives longer than any may")
	}
	out := w.loggedIn(t, "ada", "sre")
	copied := w.newBrowser(t)
	copied.setCookie(sessionCookie, out.cookie(sessionCookie))
	if status, body := out.send("/account", "/logout", url.Values{}, nil); status != 200 || out.last.Path != "/logged-out" || !strings.Contains(body, w.idp.URL+"/logout") {
		t.Errorf("after the logout: %d at %s\n%s", status, out.last, body)
	}
	if out.cookie(sessionCookie) != "" || lives(out) || lives(copied) {
		t.Error("the session lives after its logout")
	}
}

// A role that the server's file gives a group, or takes from it, counts at once, and the
// token from before is worth nothing.
func TestRoleChangesRotateSessions(t *testing.T) {
	w := newLoginConsole(t, nil)
	b := w.loggedIn(t, "ada", "sre")
	before := b.cookie(sessionCookie)
	w.options.Login.Roles[command.RoleBreakGlass] = []string{"sre"} // as after a restart with another file
	if _, body := b.open("/account"); !strings.Contains(body, "<small>breakglass</small>") {
		t.Fatalf("the new role doesn't count:\n%s", body)
	}
	if b.cookie(sessionCookie) == before {
		t.Error("the token is the same")
	}
	old := w.newBrowser(t)
	old.setCookie(sessionCookie, before)
	old.withoutRedirects(func() {
		if status, _ := old.open("/account"); status != http.StatusSeeOther {
			t.Errorf("the old token is answered with %d", status)
		}
	})
	w.options.Login.Roles = map[string][]string{command.RoleOperator: {"others"}}
	b.withoutRedirects(func() {
		if status, _ := b.open("/account"); status != http.StatusSeeOther {
			t.Errorf("without any role: %d", status)
		}
	})
}

// While replicas whose roles differ take each other's place, no user loses an input. When two
// requests at the same time exchange a token, neither is logged out.
func TestRoleChangesLoseNoSession(t *testing.T) {
	w := newLoginConsole(t, nil)
	w.seed()
	b := w.loggedIn(t, "ada", "sre")
	page := "/act/promotions/2/hold"
	before := b.cookie(sessionCookie)
	_, body := b.open(page)
	token := formToken.FindStringSubmatch(body)[1]
	w.options.Login.Roles[command.RoleBreakGlass] = []string{"sre"} // the next replica's
	r, err := http.NewRequest(http.MethodPost, w.url+page, strings.NewReader(url.Values{"token": {token}, "key": {"K1"}}.Encode()))
	w.must(err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", w.url)
	if status, body := b.do(r); status != 200 || len(w.commands) != 1 || w.commands[0].Role != command.RoleBreakGlass || b.cookie(sessionCookie) != before {
		t.Errorf("what is posted there: %d, commands %+v\n%s", status, w.commands, body)
	}
	c := &server{opts: w.options}
	s, _, err := w.store.BrowserSession(t.Context(), digestToken(before))
	w.must(err)
	get := httptest.NewRequest(http.MethodGet, "/", nil)
	first := httptest.NewRecorder()
	if u, err := c.rotateSession(first, get, &user{BrowserSession: s, secret: before}, command.RoleBreakGlass); err != nil || u == nil || len(first.Result().Cookies()) != 1 {
		t.Fatalf("it isn't exchanged: %v", err)
	}
	second := httptest.NewRecorder()
	if u, err := c.rotateSession(second, get, &user{BrowserSession: s, secret: before}, command.RoleBreakGlass); err != nil || u == nil || u.Role != command.RoleBreakGlass || len(second.Result().Cookies()) != 0 {
		t.Errorf("the slower one is %+v: %v", u, err)
	}
	_, err = w.store.EndBrowserSession(t.Context(), s.ID)
	w.must(err)
	if u, err := c.rotateSession(second, get, &user{BrowserSession: s, secret: before}, command.RoleBreakGlass); err != nil || u != nil {
		t.Errorf("one that is over goes on as %+v: %v", u, err)
	}
}

func TestSessionsAreListedAndEnded(t *testing.T) {
	w := newLoginConsole(t, nil)
	ada, eve, grace := w.loggedIn(t, "ada", "sre"), w.loggedIn(t, "eve"), w.loggedIn(t, "grace", "oncall")
	if _, body := ada.open("/account"); strings.Contains(body, "eve") || !strings.Contains(body, "(this one)") {
		t.Errorf("an operator sees others' sessions:\n%s", body)
	}
	s, _, err := w.store.BrowserSession(t.Context(), digestToken(eve.cookie(sessionCookie)))
	w.must(err)
	end := "/account/sessions/" + s.ID
	lives := func() bool {
		now, _, err := w.store.BrowserSession(t.Context(), s.Token)
		w.must(err)
		return now.EndedAt.IsZero()
	}
	ada.send("/account", end, url.Values{}, nil)
	if !lives() {
		t.Error("an operator ends somebody else's session")
	}
	if _, body := grace.open("/account"); !strings.Contains(body, "eve") || !strings.Contains(body, s.ID) {
		t.Errorf("breakglass doesn't see all sessions:\n%s", body)
	}
	grace.send("/account", end, url.Values{}, nil)
	if lives() {
		t.Error("it isn't ended")
	}
}

func TestCrossSitePostsAreRefused(t *testing.T) {
	w := newLoginConsole(t, nil)
	w.seed()
	b, other := w.loggedIn(t, "ada", "sre"), w.loggedIn(t, "eve", "sre")
	_, body := other.open("/act/promotions/2/hold")
	others := formToken.FindStringSubmatch(body)[1]
	for name, change := range map[string]func(*http.Request, url.Values){
		"another site": func(r *http.Request, _ url.Values) {
			r.Header.Set("Origin", "https://evil.example.com")
			r.Header.Set("Sec-Fetch-Site", "cross-site")
		},
		"another site, old browser": func(r *http.Request, _ url.Values) {
			r.Header.Set("Origin", "https://evil.example.com")
			r.Header.Del("Sec-Fetch-Site")
		},
		"another host of the domain": func(r *http.Request, _ url.Values) { r.Header.Set("Sec-Fetch-Site", "same-site") },
		"another port": func(r *http.Request, _ url.Values) {
			r.Header.Set("Origin", "https://127.0.0.1:1")
			r.Header.Del("Sec-Fetch-Site")
		},
		"plain HTTP": func(r *http.Request, _ url.Values) {
			r.Header.Set("Origin", strings.Replace(w.url, "https:", "http:", 1))
		},
		"no origin":             func(r *http.Request, _ url.Values) { r.Header.Del("Origin"); r.Header.Del("Sec-Fetch-Site") },
		"a sandboxed page":      func(r *http.Request, _ url.Values) { r.Header.Set("Origin", "null") },
		"no token":              func(_ *http.Request, v url.Values) { v.Del("token") },
		"somebody else's token": func(_ *http.Request, v url.Values) { v.Set("token", others) },
		"the token in the address": func(r *http.Request, v url.Values) {
			r.URL.RawQuery = "token=" + url.QueryEscape(v.Get("token"))
			v.Del("token")
		},
		"the session without a token": func(r *http.Request, v url.Values) { v.Set("token", b.cookie(sessionCookie)) },
		"a body without an end":       func(_ *http.Request, v url.Values) { v.Set("reason", strings.Repeat("x", maxBody)) },
		"no session":                  func(r *http.Request, _ url.Values) { b.Jar, _ = cookiejar.New(nil) },
	} {
		jar := b.Jar
		status, _ := b.send("/act/promotions/2/hold", "/act/promotions/2/hold", url.Values{}, change)
		b.Jar = jar
		if status != http.StatusForbidden && status != http.StatusUnauthorized || len(w.commands) > 0 {
			t.Errorf("%s: answered with %d, and %d commands came", name, status, len(w.commands))
		}
	}
	if status, body := b.send("/act/promotions/2/hold", "/act/promotions/2/hold", url.Values{}, nil); status != 200 || len(w.commands) != 1 {
		t.Errorf("our own page: %d, %d commands\n%s", status, len(w.commands), body)
	}
	// The API takes no cookie.
	if status, _ := b.send("/account", "/api/v1/promotions/2/hold", url.Values{}, nil); status != http.StatusUnauthorized {
		t.Errorf("a command at the API with a session is answered with %d", status)
	}
}

// A provider that is away keeps nobody out who is in, and says so to who isn't.
func TestProviderAwayLeavesSessions(t *testing.T) {
	w := newLoginConsole(t, func(o *Options) { o.ReadToken = true })
	w.seed()
	in, out := w.loggedIn(t, "ada", "sre"), w.newBrowser(t)
	w.idp.With(func(p *logintest.Provider) { p.Away = true })
	if status, body := in.open("/"); status != 200 || !strings.Contains(body, "shop") {
		t.Errorf("who has logged in: %d", status)
	}
	status, body := out.open("/")
	if status != http.StatusBadGateway && status != http.StatusServiceUnavailable {
		t.Errorf("who wants to: %d\n%s", status, body)
	}
	fresh := newLoginConsole(t, func(o *Options) { o.ReadToken = true })
	fresh.idp.With(func(p *logintest.Provider) { p.Away = true })
	if status, body := fresh.newBrowser(t).open("/"); status != http.StatusServiceUnavailable || !strings.Contains(body, "Nobody can log in now") || !strings.Contains(body, fresh.idp.URL) {
		t.Errorf("a server that never reached it: %d\n%s", status, body)
	}
	if status, _, _ := fresh.tlsGet("/", map[string]string{"Authorization": "Basic YW55Ym9keTpzZWU="}); status != 200 {
		t.Errorf("with a token: %d", status)
	}
}

// A page that is followed is not followed for longer than its reader may read.
func TestStreamsEndWithTheirSessions(t *testing.T) {
	w := newLoginConsole(t, func(o *Options) { o.ReadToken, o.Recheck = true, 50*time.Millisecond })
	w.seed()
	b := w.loggedIn(t, "ada", "sre")
	follow := func() int {
		r, err := http.NewRequest(http.MethodGet, w.url+"/live", nil)
		w.must(err)
		r.Header.Set("Accept", "text/event-stream")
		status, _ := b.do(r) // it ends by itself
		return status
	}
	if status := follow(); status != 200 {
		t.Fatalf("it is answered with %d", status)
	}
	s, _, err := w.store.BrowserSession(t.Context(), digestToken(b.cookie(sessionCookie)))
	w.must(err)
	if _, err := w.store.EndBrowserSession(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	if status := follow(); status != http.StatusUnauthorized {
		t.Errorf("once the session is ended: %d", status)
	}
}

func TestUsersActByTheSamePath(t *testing.T) {
	w := newLoginConsole(t, nil)
	w.seed()
	ada := w.loggedIn(t, "ada", "sre")
	if _, body := ada.open("/act/promotions/2/hold"); !strings.Contains(body, "#14 is not merged until") || !strings.Contains(body, "/liftlock hold pr") || !strings.Contains(body, "ada (console)") || strings.Contains(body, "disabled") {
		t.Errorf("it doesn't say what will happen:\n%s", body)
	}
	fields := url.Values{"reason": {"waits for the certificate"}, "for": {"2h"}, "key": {"K1"}}
	status, body := ada.send("/act/promotions/2/hold", "/act/promotions/2/hold", fields, nil)
	if status != 200 || !strings.Contains(body, "hold noted") || len(w.commands) != 1 {
		t.Fatalf("%d, %d commands\n%s", status, len(w.commands), body)
	}
	got := w.commands[0]
	want := Command{Repo: testRepo, Pipeline: "shop", Component: "web", Environment: "prod", Pull: 14, Verb: "hold", Scope: "pr", Reason: "waits for the certificate", For: 2 * time.Hour,
		By: "ada (console)", Subject: digestSubject(w.idp.URL, "sub-ada"), Role: "operator", Via: "console", Source: "console sub-ada K1"}
	if got != want {
		t.Errorf("it is given as\n%+v, want\n%+v", got, want)
	}
	for path, want := range map[string]string{
		"/act/pipelines/shop/hold":                                 "hold pipeline",
		"/act/pipelines/shop/hold?environment=prod":                "hold environment prod",
		"/act/pipelines/shop/unhold?component=web":                 "unhold component",
		"/act/pipelines/shop/promote?component=web&environment=qa": "promote qa",
		"/act/promotions/1/revert":                                 "revert qa",
		"/act/promotions/1/retry":                                  "retry qa",
	} {
		n := len(w.commands)
		if status, body := ada.send(path, path, url.Values{}, nil); status != 200 || len(w.commands) != n+1 {
			t.Errorf("%s: %d\n%s", path, status, body)
			continue
		}
		if got := command.Describe(w.commands[n].Grammar()); got != want {
			t.Errorf("%s gives %q, want %q", path, got, want)
		}
	}
	// Where it isn't known whether it was done, the key stays: sent again, it isn't done twice.
	w.refuse = errors.New("the database went away")
	status, body = ada.send("/act/promotions/2/hold", "/act/promotions/2/hold", url.Values{"key": {"K2"}}, nil)
	if status != http.StatusInternalServerError || !strings.Contains(body, "It isn't known whether it was done") || strings.Contains(body, "Nothing was done") || !strings.Contains(body, `name="key" value="K2"`) {
		t.Errorf("what failed: %d\n%s", status, body)
	}
	w.refuse = &Refusal{"it is frozen"}
	status, body = ada.send("/act/promotions/2/hold", "/act/promotions/2/hold", url.Values{"key": {"K2"}}, nil)
	if status != http.StatusConflict || !strings.Contains(body, "Nothing was done") || strings.Contains(body, `name="key" value="K2"`) {
		t.Errorf("what was refused: %d\n%s", status, body)
	}
	w.refuse = nil
	// A field that is filled in wrongly is named, and stays filled in.
	n := len(w.commands)
	if status, body := ada.send("/act/promotions/2/hold", "/act/promotions/2/hold", url.Values{"for": {"long"}, "reason": {"because"}}, nil); status != http.StatusBadRequest || !strings.Contains(body, "write it like 90m") || !strings.Contains(body, `value="because"`) {
		t.Errorf("%d\n%s", status, body)
	}
	for _, path := range []string{"/act/promotions/99/hold", "/act/promotions/2/promote", "/act/promotions/2/explode", "/act/pipelines/none/hold", "/act/pipelines/shop/hold?component=none", "/act/pipelines/shop/skip"} {
		if status, _ := ada.open(path); status != http.StatusNotFound {
			t.Errorf("%s is answered with %d", path, status)
		}
	}
	if len(w.commands) != n {
		t.Errorf("%d commands came of these", len(w.commands)-n)
	}
}

func TestRolesAreJudgedByTheCommand(t *testing.T) {
	w := newLoginConsole(t, nil)
	w.seed()
	eve, ada, grace := w.loggedIn(t, "eve"), w.loggedIn(t, "ada", "sre"), w.loggedIn(t, "grace", "oncall")
	for _, test := range []struct {
		who     *webBrowser
		path    string
		refused string // on the page; empty: nothing is
	}{
		{eve, "/act/promotions/2/hold", "eve (console) may not give /liftlock hold: it takes the role operator, and this is viewer"},
		{eve, "/act/promotions/1/revert", "it takes the role operator"},
		{eve, "/act/pipelines/shop/promote?component=web&environment=qa", "it takes the role operator"},
		{eve, "/act/promotions/2/skip", "it takes the role breakglass"},
		{ada, "/act/promotions/2/skip", "ada (console) may not give /liftlock skip: it takes the role breakglass"},
		{ada, "/act/promotions/2/hold", ""},
		{grace, "/act/promotions/2/skip", ""},
	} {
		status, body := test.who.open(test.path)
		if isRefused := strings.Contains(body, "disabled"); status != 200 || isRefused != (test.refused != "") || !strings.Contains(body, test.refused) {
			t.Errorf("%s: %d, refused %t, want %q\n%s", test.path, status, isRefused, test.refused, body)
		}
		n := len(w.commands)
		fields := url.Values{"gate": {"approvals"}, "reason": {"the fix can't wait"}}
		status, body = test.who.send(test.path, test.path, fields, nil)
		if test.refused == "" && (status != 200 || len(w.commands) != n+1) || test.refused != "" && (status != http.StatusConflict || len(w.commands) != n || !strings.Contains(body, test.refused)) {
			t.Errorf("%s, posted: %d, %d commands\n%s", test.path, status, len(w.commands)-n, body)
		}
	}
	if o := w.commands[len(w.commands)-1]; o.Verb != "skip" || o.Gate != "approvals" || o.Role != command.RoleBreakGlass || o.Reason != "the fix can't wait" {
		t.Errorf("the skip is given as %+v", o)
	}
	if status, body := grace.send("/act/promotions/2/skip", "/act/promotions/2/skip", url.Values{"gate": {"approvals"}, "reason": {"hm"}}, nil); status != http.StatusBadRequest || !strings.Contains(body, "at least 10 characters") {
		t.Errorf("a skip without a reason: %d\n%s", status, body)
	}
}

func TestLoginIsChecked(t *testing.T) {
	w := newLoginConsole(t, nil)
	for what, change := range map[string]func(*Options){
		"no address":      func(o *Options) { o.ExternalURL = "" },
		"no end":          func(o *Options) { l := *o.Login; l.Lifetime, o.Login = 0, &l },
		"an unknown role": func(o *Options) { l := *o.Login; l.Roles, o.Login = map[string][]string{"root": {"sre"}}, &l },
	} {
		o := w.options
		change(&o)
		if _, err := New(o); err == nil {
			t.Errorf("%s is taken", what)
		}
	}
	plain := newTestConsole(t, nil)
	plain.seed()
	w.seed()
	for _, path := range []string{"/login", "/account", "/act/promotions/2/hold"} {
		if status, _, _ := plain.get(path); status != http.StatusNotFound {
			t.Errorf("without a login %s is answered with %d", path, status)
		}
	}
	for _, path := range []string{"/", "/promotions/2", "/pipelines/shop", "/pipelines/shop/web"} {
		if _, _, body := plain.get(path); strings.Contains(body, "/act/") || strings.Contains(body, "/account") {
			t.Errorf("without a login %s leads there", path)
		}
		if _, _, body := w.tlsGet(path, nil); path != "/" && !strings.Contains(body, "/act/") {
			t.Errorf("with a login %s doesn't lead to what can be done", path)
		}
	}
}
