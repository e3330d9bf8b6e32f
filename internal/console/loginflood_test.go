package console

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/console/login"
	"github.com/liftlock/liftlock/internal/world/logintest"
)

// callback has a client's browser bring an answer to the console, with a cookie.
func (l *loginConsole) callback(client, cookie string, answer url.Values) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, "/login/callback?"+answer.Encode(), nil)
	r.RemoteAddr = client + ":40000"
	r.Header.Set("Accept", "text/html")
	if cookie != "" {
		r.AddCookie(&http.Cookie{Name: attemptCookie, Value: cookie})
	}
	rec := httptest.NewRecorder()
	l.server.Config.Handler.ServeHTTP(rec, r)
	return rec
}

// begin has a browser begin a login, and returns its cookie and the state.
func (l *loginConsole) begin(t testing.TB) (cookie, state string) {
	t.Helper()
	rec := httptest.NewRecorder()
	l.server.Config.Handler.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/login", nil))
	to, err := url.Parse(rec.Header().Get("Location"))
	l.must(err)
	for _, c := range rec.Result().Cookies() {
		if c.Name == attemptCookie {
			return c.Value, to.Query().Get("state")
		}
	}
	t.Fatalf("no login begins: %d", rec.Code)
	return "", ""
}

// tokenCalls is how often the provider was asked to redeem a code.
func (l *loginConsole) tokenCalls() (n int) {
	l.idp.With(func(p *logintest.Provider) { n = p.TokenCalls })
	return n
}

func TestForgedLoginAnswersMakeNoCalls(t *testing.T) {
	w := newLoginConsole(t, nil)
	cookie, state := w.begin(t)
	body, signature, _ := strings.Cut(cookie, ".")
	unsigned := base64.RawURLEncoding.EncodeToString([]byte(`{"s":"S","n":"N","v":"V","r":"/"}`))
	for name, c := range map[string]struct{ cookie, state string }{
		"no cookie":                       {"", state},
		"a cookie as it was once":         {unsigned, "S"},
		"a cookie with a made up signing": {unsigned + "." + signature, "S"},
		"no signature":                    {body, state},
		"another login's state":           {cookie, "S"},
		"no state":                        {cookie, ""},
	} {
		for range 50 {
			if rec := w.callback("192.0.2.1", c.cookie, url.Values{"state": {c.state}, "code": {"1"}}); rec.Code != http.StatusForbidden {
				t.Errorf("%s: %d", name, rec.Code)
			}
		}
		if n := w.tokenCalls(); n != 0 {
			t.Fatalf("%s: the provider was asked %d times", name, n)
		}
	}
	w.advance(login.AttemptLifetime)
	if rec := w.callback("192.0.2.1", cookie, url.Values{"state": {state}, "code": {"1"}}); rec.Code != http.StatusForbidden || w.tokenCalls() != 0 {
		t.Errorf("after its time: %d, %d calls", rec.Code, w.tokenCalls())
	}
	w.loggedIn(t, "ada", "sre") // whom nothing of it kept out
}

func TestLoginFloodIsBounded(t *testing.T) {
	w := newLoginConsole(t, nil)
	w.loggedIn(t, "ada", "sre") // so that it is known how the provider wants the secret
	before := w.tokenCalls()
	flood := func(client string, n int) (refused int) {
		for i := range n {
			cookie, state := w.begin(t)
			rec := w.callback(client, cookie, url.Values{"state": {state}, "code": {fmt.Sprint(i)}})
			if rec.Code == http.StatusTooManyRequests {
				if refused++; rec.Header().Get("Retry-After") == "" {
					t.Fatal("a refusal doesn't say when to try again")
				}
			}
		}
		return refused
	}
	// A code that is wrong costs up to two calls, by RFC 6749's two ways to say who the client is.
	const most = 2
	if refused := flood("192.0.2.1", 200); refused != 200-redemptionsOfClient || w.tokenCalls()-before > most*redemptionsOfClient {
		t.Errorf("of 200 from one address %d were refused, and the provider was asked %d times", refused, w.tokenCalls()-before)
	}
	w.loggedIn(t, "eve", "sre") // from another address, beside it
	for i := range 50 {
		flood(fmt.Sprintf("198.51.100.%d", i), 20)
	}
	if n := w.tokenCalls() - before; n > most*redemptionsOfAll {
		t.Errorf("from many addresses the provider was asked %d times", n)
	}
	w.advance(time.Minute)
	w.loggedIn(t, "grace", "oncall")
}

func TestAttemptIsRedeemedOnce(t *testing.T) {
	w := newLoginConsole(t, nil)
	cookie, state := w.begin(t)
	for i := range 10 {
		w.callback("192.0.2.1", cookie, url.Values{"state": {state}, "code": {fmt.Sprint(i)}})
	}
	if n := w.tokenCalls(); n > 2 {
		t.Errorf("one login asked the provider %d times", n)
	}
}
