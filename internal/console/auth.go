package console

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/liftlock/liftlock/internal/promotion/command"
)

// authenticator knows the tokens. It keeps their digests only.
type authenticator struct{ holders []tokenHolder }

type tokenHolder struct {
	name, role string
	digest     [sha256.Size]byte
}

// roleRanks order the roles.
var roleRanks = map[string]int{command.RoleViewer: 1, command.RoleOperator: 2, command.RoleBreakGlass: 3}

func newAuthenticator(tokens []Token) (*authenticator, error) {
	a := &authenticator{}
	for _, t := range tokens {
		switch {
		case t.Name == "":
			return nil, errors.New("an API token has no name")
		case t.Secret == "" && len(t.Digest) != sha256.Size:
			return nil, fmt.Errorf("the API token %s is empty", t.Name)
		case roleRanks[t.Role] == 0:
			return nil, fmt.Errorf("the API token %s has the role %q; there are viewer, operator and breakglass", t.Name, t.Role)
		}
		h := tokenHolder{t.Name, t.Role, sha256.Sum256([]byte(t.Secret))}
		if t.Digest != nil {
			copy(h.digest[:], t.Digest)
		}
		a.holders = append(a.holders, h)
	}
	return a, nil
}

// findHolder says whose token it is; nil when no holder has it. It takes the same time whichever
// token matches, and however much of one does.
func (a *authenticator) findHolder(secret string) *tokenHolder {
	digest := sha256.Sum256([]byte(secret))
	var found *tokenHolder
	for i := range a.holders {
		if subtle.ConstantTimeCompare(digest[:], a.holders[i].digest[:]) == 1 {
			found = &a.holders[i]
		}
	}
	return found
}

// findReader says who reads: the holder of a token, given as a Bearer or, because
// that is what browsers can give, as the password of any user.
func (a *authenticator) findReader(r *http.Request) *tokenHolder {
	secret := ""
	if _, password, ok := r.BasicAuth(); ok {
		secret = password
	} else if scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " "); strings.EqualFold(scheme, "Bearer") {
		secret = strings.TrimSpace(token)
	}
	if secret == "" {
		return nil
	}
	return a.findHolder(secret)
}

// tokenSubject begins the subject of who has logged in with an API token. The token's name follows.
const tokenSubject = "liftlock:token:"

// proofFor ties a session to the token that it was begun with. Whoever reads it in the database,
// and has not the session's own secret, can't try tokens against it.
func (t *tokenHolder) proofFor(secret string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(t.digest[:])
	return "token " + hex.EncodeToString(mac.Sum(nil))
}

// findSessionHolder finds the token that a session was begun with; nil when it was withdrawn.
func (a *authenticator) findSessionHolder(secret, proof string) *tokenHolder {
	for i := range a.holders {
		if hmac.Equal([]byte(a.holders[i].proofFor(secret)), []byte(proof)) {
			return &a.holders[i]
		}
	}
	return nil
}

// mayReadAll says whether a request may read, and all there is.
func (se *server) mayReadAll(r *http.Request) bool {
	holder := se.auth.findReader(r)
	var u *user
	if holder == nil {
		var err error
		if u, err = se.findUser(nil, r); err != nil {
			u = nil
		}
	}
	return (!se.opts.ReadToken || holder != nil || u != nil) && se.readingOf(holder, u).readsAll()
}

// readersOnly lets those pass who may read. A browser is led to the login, or, where nobody
// logs in, has to ask its user for a token.
func (se *server) readersOnly(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		holder := se.auth.findReader(r)
		if holder != nil && (se.opts.ReadToken || len(se.access.rules) > 0) {
			next(w, se.withReader(r, holder, nil))
			return
		}
		u, err := se.findUser(w, r)
		switch {
		case err != nil && se.opts.ReadToken:
			se.writeError(w, r, err)
		case u != nil:
			next(w, se.withReader(r, nil, u))
		case !se.opts.ReadToken:
			next(w, se.withReader(r, nil, nil)) // the records can't be read, perhaps; then the page says so
		default:
			se.refuseReader(w, r)
		}
	}
}

// streamReadersOnly is readersOnly for an answer that lasts. It is no use of a session, and
// ends from time to time where somebody reads by one, so that one that is over reads no more.
func (se *server) streamReadersOnly(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		holder, rules := se.auth.findReader(r), len(se.access.rules) > 0
		if holder != nil || !se.opts.ReadToken && !rules {
			next(w, se.withReader(r, holder, nil))
			return
		}
		u, err := se.findUser(nil, r)
		switch {
		case err != nil:
			se.writeError(w, r, err)
		case u == nil && se.opts.ReadToken:
			se.refuseReader(w, r)
		case u == nil:
			next(w, se.withReader(r, nil, nil))
		default:
			ctx, cancel := context.WithTimeout(r.Context(), se.opts.Recheck)
			defer cancel()
			next(w, se.withReader(r.WithContext(ctx), nil, u))
		}
	}
}

// refuseReader answers who may not read.
func (se *server) refuseReader(w http.ResponseWriter, r *http.Request) {
	status, text := http.StatusUnauthorized, "reading needs one of the server's API tokens: in the header \"Authorization: Bearer "+
		"TOKEN\", or as the password of any user"
	if len(se.auth.holders) == 0 && se.opts.Login == nil {
		status, text = http.StatusForbidden, "reading needs a token, and this server has none; add one under api.tokens in the server's "+
			"file, or set readAccess: open"
	}
	if strings.HasPrefix(r.URL.Path, "/api/") {
		if status == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", `Bearer realm="liftlock"`)
		}
		writeErrorf(w, status, "%s", text)
		return
	}
	if se.opts.Login != nil && (r.Header.Get("Sec-Fetch-Mode") != "" || strings.Contains(r.Header.Get("Accept"), "text/html")) {
		se.leadToLogin(w, r) // a browser; programs are told of tokens
		return
	}
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Basic realm="liftlock", charset="UTF-8"`)
	}
	http.Error(w, text, status)
}

// peerOf is the address that a request's connection comes from.
func peerOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// requireRole lets the holder of a token with at least the role pass; anybody else
// gets the answer, and nil comes back.
func (a *authenticator) requireRole(w http.ResponseWriter, r *http.Request, role string) *tokenHolder {
	if len(a.holders) == 0 {
		writeErrorf(w, http.StatusForbidden, "this server has no API tokens, so its API only reads; add one under api.tokens in the "+
			"server's file")
		return nil
	}
	scheme, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || secret == "" {
		w.Header().Set("WWW-Authenticate", `Bearer realm="liftlock"`)
		writeErrorf(w, http.StatusUnauthorized, "a command needs the header \"Authorization: Bearer TOKEN\" with one of the server's API "+
			"tokens")
		return nil
	}
	h := a.findHolder(strings.TrimSpace(secret))
	if h == nil {
		w.Header().Set("WWW-Authenticate", `Bearer realm="liftlock", error="invalid_token"`)
		writeErrorf(w, http.StatusUnauthorized, "the token is none of this server's API tokens")
		return nil
	}
	if roleRanks[h.role] < roleRanks[role] {
		writeErrorf(w, http.StatusForbidden, "the token %s has the role %s; this needs %s", h.name, h.role, role)
		return nil
	}
	return h
}
