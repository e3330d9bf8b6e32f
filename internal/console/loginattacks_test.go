package console

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/world/logintest"
)

// No page of the login, the account or a confirmation is framed, kept or sent to another site.
func TestLoginPagesAreGuarded(t *testing.T) {
	w := newLoginConsole(t, nil)
	w.seed()
	ada := w.loggedIn(t, "ada", "sre")
	for _, path := range []string{"/login", "/login/callback?state=forged", "/logged-out", "/account", "/act/promotions/2/hold", "/act/pipelines/shop/hold", "/act/promotions/99/hold"} {
		r, err := http.NewRequest(http.MethodGet, w.url+path, nil)
		w.must(err)
		r.AddCookie(&http.Cookie{Name: sessionCookie, Value: ada.cookie(sessionCookie)})
		resp, err := w.server.Client().Transport.RoundTrip(r)
		w.must(err)
		resp.Body.Close()
		for name, part := range map[string]string{"X-Frame-Options": "DENY", "Content-Security-Policy": "frame-ancestors 'none'", "Cache-Control": "no-store", "Referrer-Policy": "same-origin",
			"X-Content-Type-Options": "nosniff", "Cross-Origin-Opener-Policy": "same-origin", "Strict-Transport-Security": "max-age="} {
			if got := resp.Header.Get(name); !strings.Contains(got, part) {
				t.Errorf("%s has %s: %q, want %q", path, name, got, part)
			}
		}
		if strings.Contains(resp.Header.Get("Content-Security-Policy"), "unsafe") || resp.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s lets scripts of others in: %v", path, resp.Header)
		}
	}
}

// A form is good for the session that it was made for alone: not for another of the same person's,
// nor for the one after the next login.
func TestFormsAreOfOneSession(t *testing.T) {
	w := newLoginConsole(t, nil)
	w.seed()
	desk, phone := w.loggedIn(t, "ada", "sre"), w.loggedIn(t, "ada", "sre")
	const page = "/act/promotions/2/hold"
	_, body := phone.open(page)
	others := formToken.FindStringSubmatch(body)[1]
	_, body = desk.open(page)
	earlier := formToken.FindStringSubmatch(body)[1]
	desk.open("/login") // a session of its own
	for name, token := range map[string]string{"of another session of theirs": others, "from before the login": earlier} {
		status, _ := desk.send(page, page, url.Values{"key": {"K1"}}, func(_ *http.Request, v url.Values) { v.Set("token", token) })
		if status != http.StatusForbidden || len(w.commands) != 0 {
			t.Errorf("the form %s: %d, %d commands", name, status, len(w.commands))
		}
	}
	if status, _ := desk.send(page, page, url.Values{"key": {"K1"}}, nil); status != http.StatusOK || len(w.commands) != 1 {
		t.Errorf("its own form: %d, %d commands", status, len(w.commands))
	}
}

// A user whose group was withdrawn at the provider keeps the role until the session is over, as the
// documentation says. From the next login on the user has none. The person on call ends it before.
func TestWithdrawnGroups(t *testing.T) {
	w := newLoginConsole(t, nil)
	w.seed()
	ada := w.loggedIn(t, "ada", "sre")
	w.idp.With(func(p *logintest.Provider) { p.User = logintest.User{Subject: "sub-ada", Name: "ada"} })
	isOperator := func() bool {
		_, body := ada.open("/")
		return strings.Contains(body, "ada <small>operator</small>")
	}
	for range 23 {
		w.advance(30 * time.Minute)
		if !isOperator() {
			t.Fatal("the session is over before its time")
		}
	}
	w.advance(30 * time.Minute)
	if isOperator() {
		t.Error("the role outlives the session")
	}
	if _, body := ada.open("/login"); !strings.Contains(body, "ada <small>viewer</small>") {
		t.Errorf("after the next login it is not what the provider says:\n%s", body)
	}
	// Ended by somebody on call, it is over with the next request, on any replica.
	eve, grace := w.loggedIn(t, "eve", "sre"), w.loggedIn(t, "grace", "oncall")
	s, _, err := w.store.BrowserSession(t.Context(), digestToken(eve.cookie(sessionCookie)))
	w.must(err)
	grace.send("/account", "/account/sessions/"+s.ID, url.Values{}, nil)
	if _, body := eve.open("/"); !strings.Contains(body, ">Log in</a>") || strings.Contains(body, "eve <small>") {
		t.Error("a session that was ended goes on")
	}
}
