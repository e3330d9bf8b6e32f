package console

import (
	"crypto/rand"
	"net/http"
	"net/url"
	"strings"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/store"
)

// tokenURL is where the form for a token is, which leads back to an address.
func (se *server) tokenURL(back string) string {
	return se.linkPrefix + "/login/token?" + url.Values{"return": {back}}.Encode()
}

// tokenBody is the body of the page with the form for a token. The token is never on it.
type tokenBody struct {
	Return string
	Failed string // why nobody was logged in; empty: nobody tried
}

// tokenPage takes GET /login/token.
func (se *server) tokenPage(w http.ResponseWriter, r *http.Request) {
	se.renderToken(w, r, http.StatusOK, tokenBody{Return: parseReturn(r.URL.Query().Get("return"))})
}

func (se *server) renderToken(w http.ResponseWriter, r *http.Request, status int, b tokenBody) {
	se.renderPage(w, r, status, "token", page{Title: "Log in", Still: true, Body: b})
}

// logInByToken takes POST /login/token. A session has the rights of its token, and ends with it.
func (se *server) logInByToken(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	if err := se.checkOrigin(r); err != nil {
		se.renderError(w, r, err)
		return
	}
	client, b := se.opts.Client(r), tokenBody{Return: parseReturn(r.PostFormValue("return"))}
	if err := se.redemptions.takeGuess(client); err != nil {
		se.opts.Log.Warn("more logins with tokens come than are looked at", zap.String("client", client))
		w.Header().Set("Retry-After", "10")
		b.Failed = "Too many logins come at once, from your address or in all. Try again in a moment."
		se.renderToken(w, r, http.StatusTooManyRequests, b)
		return
	}
	holder := se.auth.findHolder(strings.TrimSpace(r.PostFormValue("secret")))
	if holder == nil {
		const why = "the token is none of this server's API tokens"
		se.opts.Log.Warn("a login to the console was refused", zap.String("reason", why), zap.String("client", client))
		se.auditRefusedLogin(r.Context(), r, nil, nil, why)
		b.Failed = beginSentence(why)
		se.renderToken(w, r, http.StatusForbidden, b)
		return
	}
	secret := rand.Text()
	_, err := se.startSession(w, r, secret, store.BrowserSession{Attempt: holder.proofFor(secret), Subject: tokenSubject + holder.name,
		Name: "token " + holder.name, Role: holder.role})
	if err != nil {
		se.renderError(w, r, err)
		return
	}
	http.Redirect(w, r, se.linkPrefix+b.Return, http.StatusSeeOther)
}
