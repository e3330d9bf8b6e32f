package console

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/world/logintest"
)

// trail is the audit trail of logins, oldest first: who, what, about what, and what came of it.
func (l *loginConsole) trail() (out []string) {
	l.t.Helper()
	rows, err := l.store.AuditTrail(l.t.Context(), store.AuditFilter{Via: "console"}, 100)
	l.must(err)
	for i := range rows {
		about, _, _ := strings.Cut(rows[i].Subject, ", user ")
		out = append([]string{strings.Join([]string{rows[i].Actor, rows[i].Verb, about, rows[i].Outcome}, " | ")}, out...)
	}
	return out
}

// TestLoginsAreAudited holds that each login, logout, logout by another user and refusal is on
// record, once.
func TestLoginsAreAudited(t *testing.T) {
	w := newLoginConsole(t, func(o *Options) { o.Login.Roles[command.RoleViewer] = []string{"dev"} })
	w.seed()
	ada := w.loggedIn(t, "ada", "sre")
	ada.open("/login?return=/account") // the session before is over, and no logout
	grace := w.loggedIn(t, "grace", "oncall")
	s, _, err := w.store.BrowserSession(t.Context(), digestToken(ada.cookie(sessionCookie)))
	w.must(err)
	for range 2 {
		grace.send("/account", "/account/sessions/"+s.ID, url.Values{}, nil)
	}
	grace.send("/account", "/logout", url.Values{}, nil)
	w.comeAs(testRepo+"|shop|web #14 hold pr", "marketing")
	eve := w.newBrowser(t)
	eve.open("/login")
	w.comeAs("eve", "dev")
	w.idp.With(func(p *logintest.Provider) { p.Change = func(m map[string]any) { m["aud"] = "another" } })
	eve.open("/login")
	got := w.trail()
	want := []string{
		"ada (console) | login | the console as operator | taken",
		"ada (console) | login | the console as operator | taken",
		"grace (console) | login | the console as breakglass | taken",
		"grace (console) | logout | the session of ada | taken",
		"grace (console) | logout | the console | taken",
		testRepo + "|shop|web #14 hold pr (console) | login | the console | refused: none of their groups has a role",
	}
	if diff := cmp.Diff(want, got[:min(len(want), len(got))]); diff != "" {
		t.Errorf("on record (-want +got):\n%s", diff)
	}
	if n := len(want); len(got) != n+1 || !strings.HasPrefix(got[n], "unknown (console) | login | the console | refused: the ID token is not good") {
		t.Errorf("the token for another audience is on record as %q", got[n:])
	}
	rows, err := w.store.AuditTrail(t.Context(), store.AuditFilter{Actor: "ada (console)", Verb: auditLogin}, 1)
	w.must(err)
	if !strings.HasSuffix(rows[0].Subject, ", user "+digestSubject(w.idp.URL, "sub-ada")) {
		t.Errorf("which ada it was can't be told: %q", rows[0].Subject)
	}
	// The page and the API show and filter them; a name is no component.
	w.idp.With(func(p *logintest.Provider) { p.Change = nil })
	reader := w.loggedIn(t, "grace", "oncall")
	status, body := reader.open("/audit?verb=logout")
	if status != 200 || strings.Count(body, `role="row" id="a-`) != 2 || !strings.Contains(body, "the session of ada") {
		t.Errorf("the page of logouts: %d\n%s", status, body)
	}
	if _, body := reader.open("/api/v1/audit?repository=" + testRepo); strings.Contains(body, "marketing") || strings.Contains(body, `"pull":14`) {
		t.Errorf("a name counts as a component:\n%s", body)
	}
	if _, body := reader.open("/api/v1/audit?verb=login"); strings.Contains(body, `"repository"`) {
		t.Errorf("a name counts as a repository:\n%s", body)
	}
}

// Anybody can send forged answers: they don't fill the trail.
func TestForgedLoginsDontFillTheTrail(t *testing.T) {
	w := newLoginConsole(t, nil)
	b := w.newBrowser(t)
	for range 30 {
		b.open("/login/callback?state=forged&code=1")
	}
	if n := len(w.trail()); n == 0 || n > 5 {
		t.Errorf("%d of 30 are on record", n)
	}
	w.advance(time.Minute)
	b.open("/login/callback?state=forged&code=1")
	if n := len(w.trail()); n < 2 || n > 6 {
		t.Errorf("a minute later %d are on record", n)
	}
}
