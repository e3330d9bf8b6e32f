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
	"net"
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

// Login is how people log in to the console: with one of the API tokens and, where there is one, at
// an identity provider.
type Login struct {
	Provider *login.Provider // nil: with tokens only
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
	secret string       // what the browser sends
	token  *tokenHolder // that the session was begun with; nil: at the identity provider
}

// By is who a user is, as of actorOf.
func (u *user) By() string { return actorOf(u.Name) }

// accountOn is a user's login on a repository's forge; empty: it isn't known, or isn't used.
func (se *server) accountOn(u *user, repo string) string {
	forge, _, _ := strings.Cut(repo, ":")
	if se.opts.Login.Accounts[forge] == "" {
		return ""
	}
	return u.Accounts[forge]
}

// digestUser is digestSubject of a session's subject.
func (se *server) digestUser(subject string) string {
	if strings.HasPrefix(subject, tokenSubject) || se.opts.Login.Provider == nil {
		return digestSubject("", subject)
	}
	return digestSubject(se.opts.Login.Provider.Issuer(), subject)
}

// digestSubject tells a user from others of that name in a hold, which everybody reads. It is a
// digest of the provider's subject, and of the provider.
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
	if l.Idle <= 0 || l.Lifetime <= 0 {
		return errors.New("log in: how long sessions last is required")
	}
	if l.Provider != nil && external.Host == "" {
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

// findUser finds whose session a request has; nil: it has none. With w it also says that the
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
	u := &user{BrowserSession: s, secret: cookie.Value}
	role := se.findRole(u)
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

// findRole finds the role that a session's user has by now; empty: none. A token that was withdrawn,
// or has another role by now, ends its sessions.
func (se *server) findRole(u *user) string {
	if !strings.HasPrefix(u.Subject, tokenSubject) {
		return se.opts.Login.roleOf(u.Groups)
	}
	if u.token = se.auth.findSessionHolder(u.secret, u.Attempt); u.token == nil || u.token.role != u.Role {
		return ""
	}
	return u.token.role
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
		out := &user{BrowserSession: u.BrowserSession, secret: u.secret}
		out.Role = role
		return out, nil
	}
	se.opts.Log.Info("a session has another role", zap.String("name", u.Name), zap.String("subject", u.Subject), zap.String("was", u.Role),
		zap.String("role", role))
	out := &user{BrowserSession: u.BrowserSession, secret: secret}
	out.Role = role
	setCookie(w, sessionCookie, secret, u.ExpiresAt.Sub(se.opts.Now()))
	return out, nil
}

// startSession begins a session with a secret, of which who it is has been filled in; false where the
// login was used for one before. Whatever session the browser had is over: nobody goes on in one that
// was there before.
func (se *server) startSession(w http.ResponseWriter, r *http.Request, secret string, b store.BrowserSession) (bool, error) {
	old, err := se.findUser(nil, r)
	if err != nil {
		return false, err
	}
	now, added := se.opts.Now(), false
	b.ID, b.Token, b.Client = rand.Text(), digestToken(secret), se.opts.Client(r)
	b.StartedAt, b.SeenAt, b.ExpiresAt = now, now, now.Add(se.opts.Login.Lifetime)
	err = se.opts.Store.Tx(r.Context(), "startSession", func(tx *store.Tx) (err error) {
		added, err = tx.AddBrowserSession(r.Context(), b)
		if err != nil || !added {
			return err
		}
		if old != nil {
			if _, err := tx.EndBrowserSession(r.Context(), old.ID); err != nil {
				return err
			}
		}
		return tx.AddAudit(r.Context(), se.sessionAudit(auditLogin, actorOf(b.Name), "the console as "+b.Role, b.Subject, carriedOut,
			loginSource(b.Attempt)))
	})
	if err != nil || !added {
		return false, err
	}
	se.opts.Log.Info("somebody logged in to the console", zap.String("name", b.Name), zap.String("subject", b.Subject),
		zap.String("role", b.Role))
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

// originFor is where people reach the server, as the browser that sends a request names it. Without
// externalURL that is where the request came to, on this machine only: a name that a stranger points
// here is none of ours.
func (se *server) originFor(r *http.Request) string {
	if se.origin != "" {
		return se.origin
	}
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return ""
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return originOf(&url.URL{Scheme: scheme, Host: r.Host})
}

// strangeForm is what a post is answered that is none of our own pages'.
const strangeForm = "This was not sent by a page of this console, so nothing was done. Open the page again and try once more."

// checkOrigin says why a post comes from no page of ours.
func (se *server) checkOrigin(r *http.Request) error {
	origin, site := se.originFor(r), r.Header.Get("Sec-Fetch-Site")
	if origin != "" && r.Header.Get("Origin") == origin && (site == "" || site == "same-origin") {
		return nil
	}
	se.opts.Log.Warn("a post of another site was refused", zap.String("origin", r.Header.Get("Origin")), zap.String("path", r.URL.Path),
		zap.String("expected", origin))
	if origin == "" {
		return apiErrorf(http.StatusForbidden, "%s The server knows no address of its own: externalURL in its file says it.", strangeForm)
	}
	return apiErrorf(http.StatusForbidden, "%s The server knows itself as %s.", strangeForm, origin)
}

// checkForm says why a post is none of our own pages'.
func (se *server) checkForm(r *http.Request, u *user) error {
	if err := se.checkOrigin(r); err != nil {
		return err
	}
	if u == nil {
		return apiErrorf(http.StatusUnauthorized, "You are not logged in any more, so nothing was done. Log in and try once more.")
	}
	if !hmac.Equal([]byte(r.PostFormValue("token")), []byte(u.formToken())) {
		return apiErrorf(http.StatusForbidden, "%s", strangeForm)
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

// leadToLogin sends a browser to the login, and back to where it wanted to go. A request of a
// page's script is refused instead: it can't log anybody in.
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
