package console

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
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
		case t.Secret == "":
			return nil, fmt.Errorf("the API token %s is empty", t.Name)
		case roleRanks[t.Role] == 0:
			return nil, fmt.Errorf("the API token %s has the role %q; there are viewer, operator and breakglass", t.Name, t.Role)
		}
		a.holders = append(a.holders, tokenHolder{t.Name, t.Role, sha256.Sum256([]byte(t.Secret))})
	}
	return a, nil
}

// findHolder says whose token it is; nil when it is nobody's. It takes the same time
// whichever token matches, and however much of one does.
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

// requireRole lets the holder of a token with at least the role pass; anybody else
// gets the answer, and nil comes back.
func (a *authenticator) requireRole(w http.ResponseWriter, r *http.Request, role string) *tokenHolder {
	if len(a.holders) == 0 {
		writeErrorf(w, http.StatusForbidden, "this server has no API tokens, so its API only reads; add one under api.tokens in the server's file")
		return nil
	}
	scheme, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || secret == "" {
		w.Header().Set("WWW-Authenticate", `Bearer realm="liftlock"`)
		writeErrorf(w, http.StatusUnauthorized, "a command needs the header \"Authorization: Bearer TOKEN\" with one of the server's API tokens")
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
