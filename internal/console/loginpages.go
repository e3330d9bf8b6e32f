package console

import (
	"crypto/rand"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/console/login"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/store"
)

// maxReturn bounds the address that a login leads back to.
const maxReturn = 1 << 10

// loginURL is where the login begins that leads back to an address.
func (se *server) loginURL(back *url.URL) string {
	return se.linkPrefix + "/login?" + url.Values{"return": {back.RequestURI()}}.Encode()
}

// parseReturn reads where a login leads to: a page of this console, and nowhere else.
func parseReturn(raw string) string {
	u, err := url.Parse(raw)
	switch {
	case err != nil, len(raw) > maxReturn, u.Scheme != "" || u.Host != "" || u.User != nil || u.Opaque != "",
		!strings.HasPrefix(raw, "/") || strings.HasPrefix(raw, "//"), strings.ContainsAny(raw, "\\\t\r\n"),
		strings.HasPrefix(u.Path, "//") || strings.Contains(u.Path, `\`), // as browsers read it once it is unescaped
		strings.HasPrefix(u.Path, "/log"):                                // login, logout, logged-out
		return "/"
	}
	return (&url.URL{Path: u.Path, RawPath: u.RawPath, RawQuery: u.RawQuery}).String()
}

// loginBody is the body of a page about logging in that didn't work, or out.
type loginBody struct {
	Text       string
	Retry      string // where to log in; empty: that won't help
	Token      string // where to log in with a token; empty: Retry leads there, or that won't help
	EndSession string // where to log out of the provider too; empty: nowhere
}

func (se *server) renderLogin(w http.ResponseWriter, r *http.Request, status int, title string, b loginBody) {
	if se.opts.Login.Provider != nil && len(se.auth.holders) > 0 {
		b.Token = se.tokenURL("/")
	}
	se.renderPage(w, r, status, "login", page{Title: title, Still: true, Body: b})
}

// beginLogin takes GET /login and leads to the identity provider or, without one, to the form for a
// token.
func (se *server) beginLogin(w http.ResponseWriter, r *http.Request) {
	if se.opts.Login.Provider == nil {
		http.Redirect(w, r, se.tokenURL(parseReturn(r.URL.Query().Get("return"))), http.StatusSeeOther)
		return
	}
	a := login.NewAttempt(parseReturn(r.URL.Query().Get("return")))
	to, err := se.opts.Login.Provider.AuthURL(r.Context(), a)
	if err != nil {
		se.failLogin(w, r, a, err)
		return
	}
	setCookie(w, attemptCookie, se.opts.Login.Provider.SealAttempt(a), login.AttemptLifetime)
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// openAttempt finds the attempt whose answer a browser brings, and says why there is none; then it
// leads to the first page.
func (se *server) openAttempt(r *http.Request) (*login.Attempt, error) {
	cookie, err := r.Cookie(attemptCookie)
	if err != nil {
		return &login.Attempt{Return: "/"}, &login.RefusedError{Why: "the answer is not to the login that this browser began. Log in again"}
	}
	a, err := se.opts.Login.Provider.OpenAttempt(cookie.Value)
	if err != nil {
		return &login.Attempt{Return: "/"}, err
	}
	a.Return = parseReturn(a.Return)
	return a, nil
}

// finishLogin takes GET /login/callback, where the identity provider sends browsers back to. The
// provider is asked only of the answer to an attempt that the browser has, once, and not more
// often than the redemptions are let.
func (se *server) finishLogin(w http.ResponseWriter, r *http.Request) {
	a, err := se.openAttempt(r)
	dropCookie(w, attemptCookie)
	q := r.URL.Query()
	answer := login.AuthResponse{Code: q.Get("code"), State: q.Get("state"), Issuer: q.Get("iss"), Error: q.Get("error"),
		Description: q.Get("error_description")}
	if err == nil {
		err = se.opts.Login.Provider.CheckAnswer(a, answer)
	}
	if err == nil {
		err = se.redemptions.take(se.opts.Client(r), a.Digest())
	}
	var who *login.Identity
	if err == nil {
		who, err = se.opts.Login.Provider.Identify(r.Context(), a, answer)
	}
	if err != nil {
		se.failLogin(w, r, a, err)
		return
	}
	if strings.HasPrefix(who.Subject, tokenSubject) {
		se.failLogin(w, r, a, &login.RefusedError{Why: "a subject that begins with " + tokenSubject + " is an API token's"})
		return
	}
	role := se.opts.Login.roleOf(who.Groups)
	if role == "" {
		se.opts.Log.Warn("somebody who has no role tried to log in to the console", zap.String("name", who.Name),
			zap.String("subject", who.Subject), zap.Strings("groups", who.Groups))
		se.auditRefusedLogin(r.Context(), r, a, who, "none of their groups has a role")
		groups := "the identity provider names no groups of yours"
		if len(who.Groups) > 0 {
			groups = "your groups are " + strings.Join(who.Groups, ", ")
		}
		se.renderLogin(w, r, http.StatusForbidden, "You have no role here", loginBody{Retry: se.linkPrefix + "/login",
			Text: "You are " + who.Name + ", and " + groups + ": none of them has a role. Who runs this server gives roles under " +
				"oidc.roles in the server's file."})
		return
	}
	added, err := se.startSession(w, r, rand.Text(), store.BrowserSession{Attempt: a.Digest(), Subject: who.Subject, Name: who.Name,
		Role: role, Groups: who.Groups, Accounts: who.Accounts})
	switch {
	case err != nil:
		se.renderError(w, r, err)
	case !added:
		se.failLogin(w, r, a, &login.RefusedError{Why: "this login was used before. Log in again"})
	default:
		http.Redirect(w, r, se.linkPrefix+a.Return, http.StatusSeeOther)
	}
}

// beginSentence is a text that begins in upper case and ends with a full stop.
func beginSentence(text string) string {
	first, n := utf8.DecodeRuneInString(text)
	return strings.TrimRight(string(unicode.ToUpper(first))+text[n:], ".") + "."
}

// failLogin says why nobody was logged in.
func (se *server) failLogin(w http.ResponseWriter, r *http.Request, a *login.Attempt, err error) {
	retry := se.linkPrefix + "/login?" + url.Values{"return": {a.Return}}.Encode()
	var refused *login.RefusedError
	if errors.Is(err, errTooManyLogins) {
		se.opts.Log.Warn("more logins come than the identity provider is asked of", zap.String("client", se.opts.Client(r)))
		w.Header().Set("Retry-After", "10")
		se.renderLogin(w, r, http.StatusTooManyRequests, "Too many log in right now",
			loginBody{Retry: retry, Text: "Too many logins come at once, from your address or in all. Try again in a moment."})
		return
	}
	if errors.As(err, &refused) {
		se.opts.Log.Warn("a login to the console was refused", zap.String("reason", refused.Why), zap.String("client", se.opts.Client(r)))
		se.auditRefusedLogin(r.Context(), r, a, nil, refused.Why)
		se.renderLogin(w, r, http.StatusForbidden, "You are not logged in", loginBody{Text: beginSentence(refused.Why), Retry: retry})
		return
	}
	if r.Context().Err() != nil {
		return
	}
	se.opts.Log.Error("nobody can log in to the console now", zap.Error(err))
	w.Header().Set("Retry-After", "5")
	se.renderLogin(w, r, http.StatusServiceUnavailable, "Nobody can log in now", loginBody{Retry: retry,
		Text: "The identity provider " + se.opts.Login.Provider.Issuer() + " can't be reached; the server's log says why. Who has logged " +
			"in stays so, and commands work in pull requests and with API tokens."})
}

// logout takes POST /logout.
func (se *server) logout(w http.ResponseWriter, r *http.Request) {
	u := userOf(r.Context())
	if err := se.endAuditedSession(r.Context(), u, u.BrowserSession); err != nil {
		se.renderError(w, r, err)
		return
	}
	dropCookie(w, sessionCookie)
	http.Redirect(w, r, se.linkPrefix+"/logged-out", http.StatusSeeOther)
}

func (se *server) loggedOutPage(w http.ResponseWriter, r *http.Request) {
	b := loginBody{Text: "This browser has no session here any more.", Retry: se.linkPrefix + "/login"}
	if p := se.opts.Login.Provider; p != nil {
		b.EndSession = p.EndSessionURL(se.origin + se.linkPrefix + "/logged-out")
	}
	se.renderLogin(w, r, http.StatusOK, "You are logged out", b)
}

// accountBody is the body of the page about who has logged in.
type accountBody struct {
	*user
	Token    string // of its forms
	Sessions []store.BrowserSession
	All      bool // they are everybody's
}

// ByToken says that they have logged in with an API token.
func (a *accountBody) ByToken() bool { return a.token != nil }

// listSessions lists the sessions that a user may end: their own, or, with the highest role,
// everybody's.
func (se *server) listSessions(r *http.Request, u *user) (all []store.BrowserSession, everybody bool, err error) {
	subject := u.Subject
	if everybody = u.Role == command.RoleBreakGlass; everybody {
		subject = ""
	}
	all, err = se.opts.Store.BrowserSessions(r.Context(), subject, se.opts.Now().Add(-se.opts.Login.Idle).Add(time.Microsecond))
	return all, everybody, err
}

func (se *server) accountPage(w http.ResponseWriter, r *http.Request) {
	u := userOf(r.Context())
	all, everybody, err := se.listSessions(r, u)
	if err != nil {
		se.renderError(w, r, err)
		return
	}
	se.renderPage(w, r, http.StatusOK, "account", page{Title: "Your account", Nav: "account", Still: true,
		Body: &accountBody{u, u.formToken(), all, everybody}})
}

// endSession takes POST /account/sessions/{id}.
func (se *server) endSession(w http.ResponseWriter, r *http.Request) {
	u := userOf(r.Context())
	all, _, err := se.listSessions(r, u)
	if err != nil {
		se.renderError(w, r, err)
		return
	}
	for _, s := range all {
		if s.ID != r.PathValue("id") {
			continue
		}
		if err := se.endAuditedSession(r.Context(), u, s); err != nil {
			se.renderError(w, r, err)
			return
		}
		se.opts.Log.Info("a session was ended", zap.String("name", s.Name), zap.String("subject", s.Subject), zap.String("by", u.By()))
		break
	}
	http.Redirect(w, r, se.linkPrefix+"/account", http.StatusSeeOther)
}
