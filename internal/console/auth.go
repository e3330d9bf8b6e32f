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

// authority knows the tokens. It keeps their digests only.
type authority struct{ tokens []holder }

type holder struct {
	name, role string
	digest     [sha256.Size]byte
}

// ranks order the roles.
var ranks = map[string]int{command.RoleViewer: 1, command.RoleOperator: 2, command.RoleBreakGlass: 3}

func newAuthority(tokens []Token) (*authority, error) {
	a := &authority{}
	for _, t := range tokens {
		switch {
		case t.Name == "":
			return nil, errors.New("an API token has no name")
		case t.Secret == "":
			return nil, fmt.Errorf("the API token %s is empty", t.Name)
		case ranks[t.Role] == 0:
			return nil, fmt.Errorf("the API token %s has the role %q; there are viewer, operator and breakglass", t.Name, t.Role)
		}
		a.tokens = append(a.tokens, holder{t.Name, t.Role, sha256.Sum256([]byte(t.Secret))})
	}
	return a, nil
}

// find says whose token it is; nil when it is nobody's. It takes the same time
// whichever token matches, and however much of one does.
func (a *authority) find(secret string) *holder {
	digest := sha256.Sum256([]byte(secret))
	var found *holder
	for i := range a.tokens {
		if subtle.ConstantTimeCompare(digest[:], a.tokens[i].digest[:]) == 1 {
			found = &a.tokens[i]
		}
	}
	return found
}

// demand lets the holder of a token with at least the role pass; anybody else
// gets the answer, and nil comes back.
func (a *authority) demand(w http.ResponseWriter, r *http.Request, role string) *holder {
	if len(a.tokens) == 0 {
		fail(w, http.StatusForbidden, "this server has no API tokens, so its API only reads; add one under api.tokens in the server's file")
		return nil
	}
	scheme, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || secret == "" {
		w.Header().Set("WWW-Authenticate", `Bearer realm="liftlock"`)
		fail(w, http.StatusUnauthorized, "a command needs the header \"Authorization: Bearer TOKEN\" with one of the server's API tokens")
		return nil
	}
	h := a.find(strings.TrimSpace(secret))
	if h == nil {
		w.Header().Set("WWW-Authenticate", `Bearer realm="liftlock", error="invalid_token"`)
		fail(w, http.StatusUnauthorized, "the token is none of this server's API tokens")
		return nil
	}
	if ranks[h.role] < ranks[role] {
		fail(w, http.StatusForbidden, "the token %s has the role %s; this needs %s", h.name, h.role, role)
		return nil
	}
	return h
}
