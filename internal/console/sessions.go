package console

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/console/login"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/store"
)

// Login is how people log in to the console.
type Login struct {
	Provider *login.Provider
	// Roles are the groups that have each role, AnyGroup for everybody whom the provider
	// knows. Who has several has the highest.
	Roles map[string][]string
	// Accounts are the forges that users' logins are known of, with where from.
	Accounts map[string]string
	// Idle ends a session that isn't used for so long, Lifetime any; whose groups have
	// changed is known by the next login only.
	Idle, Lifetime time.Duration
}

// AnyGroup stands for everybody who can log in.
const AnyGroup = "*"

// The cookies. Their prefix keeps other hosts, and plain HTTP, from setting them ("Cookies:
// HTTP State Management Mechanism", RFC 6265bis, section 4.1.3.2).
const (
	sessionCookie = "__Host-liftlock"
	attemptCookie = "__Host-liftlock-login"
)

// seenInterval is how exactly it is kept when a session was used last.
const seenInterval = time.Minute

// user is who has a session.
type user struct {
	store.BrowserSession
	secret string // what the browser sends
}

// By is who a user is, as of actorOf.
func (u *user) By() string { return actorOf(u.Name) }

// accountOn is a user's login on a repository's forge; empty: it isn't known, or isn't looked at.
func (se *server) accountOn(u *user, repo string) string {
	forge, _, _ := strings.Cut(repo, ":")
	if se.opts.Login.Accounts[forge] == "" {
		return ""
	}
	return u.Accounts[forge]
}

// digestSubject is by whom a user is told from others of that name, where a hold is kept and
// everybody reads it: whom an identity provider knows, and which provider.
func digestSubject(issuer, subject string) string {
	sum := sha256.Sum256([]byte(issuer + "\x00" + subject))
	return hex.EncodeToString(sum[:16])
}

// formToken proves that a form is one of ours, made for this session. It is made of what
// only the browser has, so nothing is kept of it.
func (u *user) formToken() string {
	mac := hmac.New(sha256.New, []byte(u.secret))
	mac.Write([]byte("a form of the console"))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// digestToken is how a session's token is kept.
func digestToken(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// roleOf is the highest role that any of some groups has; empty: none.
func (l *Login) roleOf(groups []string) string {
	best := ""
	for role, named := range l.Roles {
		has := slices.ContainsFunc(named, func(g string) bool { return g == AnyGroup || slices.Contains(groups, g) })
		if has && roleRanks[role] > roleRanks[best] {
			best = role
		}
	}
	return best
}

// check says what is wrong with how people log in.
func (l *Login) check(external *url.URL) error {
	if l.Provider == nil || l.Idle <= 0 || l.Lifetime <= 0 {
		return errors.New("log in: a provider, and how long sessions last, are required")
	}
	if external.Host == "" {
		return errors.New("log in: externalURL is required; identity providers send browsers back there")
	}
	for role := range l.Roles {
		if roleRanks[role] == 0 {
			return fmt.Errorf("log in: there is no role %q", role)
		}
	}
	return nil
}

// originOf is an address's origin as browsers write it: in lower case, without the scheme's own
// port (RFC 6454, "Unicode Serialization of an Origin").
func originOf(u *url.URL) string {
	scheme, host := strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	if port, ok := map[string]string{"https": ":443", "http": ":80"}[scheme]; ok {
		host = strings.TrimSuffix(host, port)
	}
	return scheme + "://" + host
}

type userKey struct{}

// userOf is who makes a request; nil: nobody has logged in, or it wasn't looked for.
func userOf(ctx context.Context) *user {
	u, _ := ctx.Value(userKey{}).(*user)
	return u
}

// findUser finds whose session a request has; nil: nobody's. With w it also says that the
// session was used, and exchanges the token of one whose role is another by now.
func (se *server) findUser(w http.ResponseWriter, r *http.Request) (*user, error) {
	if se.opts.Login == nil {
		return nil, nil
	}
	cookie, err := r.Cookie(sessionCookie)
	if err != nil || cookie.Value == "" {
		return nil, nil
	}
	s, ok, err := se.opts.Store.BrowserSession(r.Context(), digestToken(cookie.Value))
	if err != nil {
		return nil, err
	}
	now := se.opts.Now()
	u := &user{s, cookie.Value}
	role := se.opts.Login.roleOf(s.Groups)
	hasEnded := !s.EndedAt.IsZero() || !now.Before(s.ExpiresAt) || now.Sub(s.SeenAt) >= se.opts.Login.Idle
	switch {
	case !ok || hasEnded || role == "":
		return nil, nil
	case w == nil:
		u.Role = role
		return u, nil
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		// The token of a form is of the session's token. While replicas that give other roles
		// take each other's place, what is posted isn't to lose its session.
		u.Role = role
	case role != s.Role:
		if u, err = se.rotateSession(w, r, u, role); u == nil || err != nil {
			return nil, err
		}
	}
	if now.Sub(s.SeenAt) >= seenInterval {
		if err := se.opts.Store.SeeBrowserSession(r.Context(), s.ID, now); err != nil {
			return nil, err
		}
	}
	return u, nil
}

// rotateSession gives a session another role, and with it another token: what was known of
// the old one is worth nothing. Where another request of the browser was faster, it goes on by
// what that one made of the session; nil: that is over.
func (se *server) rotateSession(w http.ResponseWriter, r *http.Request, u *user, role string) (*user, error) {
	secret := rand.Text()
	rotated, err := se.opts.Store.RotateBrowserSession(r.Context(), u.ID, digestToken(u.secret), digestToken(secret), role)
	if err != nil {
		return nil, err
	}
	if !rotated {
		live, err := se.opts.Store.BrowserSessions(r.Context(), u.Subject, se.opts.Now().Add(-se.opts.Login.Idle))
		if err != nil || !slices.ContainsFunc(live, func(s store.BrowserSession) bool { return s.ID == u.ID }) {
			return nil, err
		}
		out := &user{u.BrowserSession, u.secret}
		out.Role = role
		return out, nil
	}
	se.opts.Log.Info("a session has another role", zap.String("name", u.Name), zap.String("subject", u.Subject), zap.String("was", u.Role),
		zap.String("role", role))
	out := &user{u.BrowserSession, secret}
	out.Role = role
	setCookie(w, sessionCookie, secret, u.ExpiresAt.Sub(se.opts.Now()))
	return out, nil
}

// startSession makes a session of a login; false where the login was used for one before.
// Whatever session the browser had is over: nobody goes on in one that was there before.
func (se *server) startSession(w http.ResponseWriter, r *http.Request, a *login.Attempt, who *login.Identity, role string) (bool, error) {
	old, err := se.findUser(nil, r)
	if err != nil {
		return false, err
	}
	now, secret := se.opts.Now(), rand.Text()
	added := false
	err = se.opts.Store.Tx(r.Context(), "startSession", func(tx *store.Tx) (err error) {
		added, err = tx.AddBrowserSession(r.Context(), store.BrowserSession{
			ID: rand.Text(), Token: digestToken(secret), Attempt: a.Digest(), Subject: who.Subject, Name: who.Name, Role: role,
			Groups: who.Groups, Accounts: who.Accounts,
			Client: se.opts.Client(r), StartedAt: now, SeenAt: now, ExpiresAt: now.Add(se.opts.Login.Lifetime)})
		if err != nil || !added {
			return err
		}
		if old != nil {
			if _, err := tx.EndBrowserSession(r.Context(), old.ID); err != nil {
				return err
			}
		}
		return tx.AddAudit(r.Context(), se.sessionAudit(auditLogin, actorOf(who.Name), "the console as "+role, who.Subject, carriedOut,
			loginSource(a)))
	})
	if err != nil || !added {
		return false, err
	}
	se.opts.Log.Info("somebody logged in to the console", zap.String("name", who.Name), zap.String("subject", who.Subject),
		zap.String("role", role))
	setCookie(w, sessionCookie, secret, se.opts.Login.Lifetime)
	return true, nil
}

// setCookie sets a cookie that only this host is sent, by TLS, and no script reads. Lax: a
// link in a pull request leads to a page, and nothing that another site posts has it.
func setCookie(w http.ResponseWriter, name, value string, lifetime time.Duration) {
	http.SetCookie(w, &http.Cookie{Name: name, Value: value, Path: "/", MaxAge: max(int(lifetime.Seconds()), 1), Secure: true,
		HttpOnly: true, SameSite: http.SameSiteLaxMode})
}

func dropCookie(w http.ResponseWriter, name string) {
	http.SetCookie(w, &http.Cookie{Name: name, Path: "/", MaxAge: -1, Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode})
}

// checkForm says why a post is none of our own pages'.
func (se *server) checkForm(r *http.Request, u *user) error {
	const text = "This was not sent by a page of this console, so nothing was done. Open the page again and try once more."
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" || r.Header.Get("Origin") != se.origin {
		se.opts.Log.Warn("a post of another site was refused", zap.String("origin", r.Header.Get("Origin")), zap.String("path", r.URL.Path),
			zap.String("expected", se.origin))
		return apiErrorf(http.StatusForbidden, "%s The server knows itself as %s.", text, se.origin)
	}
	if u == nil {
		return apiErrorf(http.StatusUnauthorized, "You are not logged in any more, so nothing was done. Log in and try once more.")
	}
	if !hmac.Equal([]byte(r.PostFormValue("token")), []byte(u.formToken())) {
		return apiErrorf(http.StatusForbidden, "%s", text)
	}
	return nil
}

// usersOnly lets those pass who have logged in, and posts of our own pages. Others are led
// to the login.
func (se *server) usersOnly(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		u, err := se.findUser(w, r)
		if err != nil {
			se.renderError(w, r, err)
			return
		}
		if u != nil {
			r = se.withReader(r, nil, u)
		}
		switch {
		case r.Method == http.MethodGet && u == nil:
			se.leadToLogin(w, r)
			return
		case r.Method != http.MethodGet:
			r.Body = http.MaxBytesReader(w, r.Body, maxBody)
			if err := se.checkForm(r, u); err != nil {
				se.renderError(w, r, err)
				return
			}
		}
		next(w, r)
	}
}

// leadToLogin sends a browser to the login, and back to where it wanted to go. What a page's
// script asks for is refused instead: it can't log anybody in.
func (se *server) leadToLogin(w http.ResponseWriter, r *http.Request) {
	if mode := r.Header.Get("Sec-Fetch-Mode"); mode != "" && mode != "navigate" || r.Method != http.MethodGet {
		http.Error(w, "log in first", http.StatusUnauthorized)
		return
	}
	http.Redirect(w, r, se.loginURL(r.URL), http.StatusSeeOther)
}

// mayGive says why a user may not give a command, by the judge of all commands; nil where
// nothing is known against it. hasApprovals: an environment that it is about is known to have
// an approvals gate. Whether the approval of an account on the forge would count is known only
// once the command is given; empty: there is none.
func (u *user) mayGive(cmd command.Command, account string, hasApprovals bool) error {
	return command.Authorise(cmd, command.Person{Login: u.By(), Role: u.Role, Approver: account != ""}, hasApprovals)
}
