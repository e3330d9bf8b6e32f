// Package logintest is an OpenID Connect provider for tests: discovery, keys, and the code
// flow with PKCE over HTTP, as OpenID Connect Core 1.0 and RFC 7636 have them. A user logs in
// by being Provider.User; nobody is asked for a password.
package logintest

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"html"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// The client that the provider knows.
const (
	ClientID     = "liftlock"
	ClientSecret = "the client's secret"
)

// User is somebody who can log in.
type User struct {
	Subject string
	Name    string // the claim preferred_username; empty: none
	Groups  []string
}

// Provider is a running provider. Its fields may be changed between requests, under With.
type Provider struct {
	URL string
	// User is the next one to log in.
	User User
	// Change changes the claims of the next ID tokens; nil: nothing does.
	Change func(claims map[string]any)
	// Forge makes the ID token of its claims in another way; nil: it is signed by the
	// provider's key with RS256.
	Forge func(claims []byte) string
	// HidesGroups: groups are said at the userinfo endpoint only.
	HidesGroups bool
	// Away: every request fails.
	Away bool
	// TokenCalls is how often the token endpoint was called.
	TokenCalls int
	// Broken answers at paths with an error page instead.
	Broken map[string]string

	now   func() time.Time
	key   *rsa.PrivateKey
	keyID string
	mu    sync.Mutex
	codes map[string]*grant
}

// grant is what a code stands for.
type grant struct {
	challenge, redirect, nonce string
	user                       User
	used                       bool
}

// New starts a provider, which ends with the test; now is its clock.
func New(t testing.TB, now func() time.Time) *Provider {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p := &Provider{now: now, key: key, keyID: "1", codes: map[string]*grant{},
		User: User{Subject: "sub-ada", Name: "ada", Groups: []string{"sre"}}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.serveConfiguration)
	mux.HandleFunc("GET /keys", p.serveKeys)
	mux.HandleFunc("GET /auth", p.serveAuth)
	mux.HandleFunc("POST /token", p.serveToken)
	mux.HandleFunc("GET /userinfo", p.serveUserInfo)
	mux.HandleFunc("GET /logout", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(`<title>Logged out</title><a href="` + html.EscapeString(r.FormValue("post_logout_redirect_uri")) +
			`">back</a>`))
	})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.Away {
			http.Error(w, "away", http.StatusBadGateway)
			return
		}
		if page, broken := p.Broken[r.URL.Path]; broken {
			http.Error(w, page, http.StatusInternalServerError)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	p.URL = srv.URL
	return p
}

// With changes the provider between two requests.
func (p *Provider) With(change func(*Provider)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(p)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func (p *Provider) serveConfiguration(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]any{
		"issuer": p.URL, "authorization_endpoint": p.URL + "/auth", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
		"userinfo_endpoint": p.URL + "/userinfo", "end_session_endpoint": p.URL + "/logout",
		"id_token_signing_alg_values_supported": []string{"RS256"}, "response_types_supported": []string{"code"},
		"code_challenge_methods_supported": []string{"S256"},
	})
}

func (p *Provider) serveKeys(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: p.key.Public(), KeyID: p.keyID, Algorithm: "RS256",
		Use: "sig"}}})
}

func (p *Provider) serveAuth(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	isByCode := q.Get("client_id") == ClientID && q.Get("response_type") == "code"
	isProven := q.Get("code_challenge_method") == "S256" && q.Get("code_challenge") != ""
	if !isByCode || !isProven || !strings.Contains(" "+q.Get("scope")+" ", " openid ") {
		http.Error(w, "not a login by code with PKCE of the client "+ClientID, http.StatusBadRequest)
		return
	}
	code := rand.Text()
	p.codes[code] = &grant{challenge: q.Get("code_challenge"), redirect: q.Get("redirect_uri"), nonce: q.Get("nonce"), user: p.User}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {p.URL}}.Encode(),
		http.StatusFound)
}

func (p *Provider) serveToken(w http.ResponseWriter, r *http.Request) {
	p.TokenCalls++
	id, secret, ok := r.BasicAuth()
	if !ok {
		id, secret = r.FormValue("client_id"), r.FormValue("client_secret")
	} else if plain, err := url.QueryUnescape(secret); err == nil { // RFC 6749, section 2.3.1
		secret = plain
	}
	if id != ClientID || secret != ClientSecret {
		writeJSON(w, http.StatusUnauthorized, map[string]any{"error": "invalid_client"})
		return
	}
	g, sum := p.codes[r.FormValue("code")], sha256.Sum256([]byte(r.FormValue("code_verifier")))
	if g == nil || g.used || g.redirect != r.FormValue("redirect_uri") || g.challenge != base64.RawURLEncoding.EncodeToString(sum[:]) {
		writeJSON(w, http.StatusBadRequest, map[string]any{"error": "invalid_grant"})
		return
	}
	g.used = true
	claims := map[string]any{"iss": p.URL, "aud": ClientID, "sub": g.user.Subject, "nonce": g.nonce, "iat": p.now().Unix(),
		"exp": p.now().Add(5 * time.Minute).Unix()}
	if !p.HidesGroups {
		maps.Copy(claims, g.user.claims())
	}
	if p.Change != nil {
		p.Change(claims)
	}
	raw, err := json.Marshal(claims)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	token := ""
	if p.Forge != nil {
		token = p.Forge(raw)
	} else if token, err = p.Sign(raw); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{"access_token": "access " + r.FormValue("code"), "token_type": "Bearer", "expires_in": 300,
		"id_token": token})
}

func (u User) claims() map[string]any {
	out := map[string]any{"groups": u.Groups}
	if u.Name != "" {
		out["preferred_username"] = u.Name
	}
	return out
}

func (p *Provider) serveUserInfo(w http.ResponseWriter, r *http.Request) {
	g := p.codes[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer access ")]
	if g == nil {
		writeJSON(w, http.StatusUnauthorized, map[string]any{"error": "invalid_token"})
		return
	}
	claims := g.user.claims()
	claims["sub"] = g.user.Subject
	if p.Change != nil {
		p.Change(claims)
	}
	writeJSON(w, http.StatusOK, claims)
}

// Sign signs claims as the provider does.
func (p *Provider) Sign(claims []byte) (string, error) {
	return SignWith(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: p.key, KeyID: p.keyID}}, claims)
}

// RotateKey has the provider sign with a new key and forget the old one, with which old still
// signs. It is called under With.
func (p *Provider) RotateKey(t testing.TB, id string) (old func(claims []byte) (string, error)) {
	t.Helper()
	before := jose.JSONWebKey{Key: p.key, KeyID: p.keyID}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p.key, p.keyID = key, id
	return func(claims []byte) (string, error) {
		return SignWith(jose.SigningKey{Algorithm: jose.RS256, Key: before}, claims)
	}
}

// PublicKey is what everybody can read of the provider's key, as PEM has it.
func (p *Provider) PublicKey(t testing.TB) []byte {
	t.Helper()
	raw, err := x509.MarshalPKIXPublicKey(p.key.Public())
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: raw})
}

// SignWith makes an ID token of claims with any key.
func SignWith(key jose.SigningKey, claims []byte) (string, error) {
	s, err := jose.NewSigner(key, (&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		return "", err
	}
	signed, err := s.Sign(claims)
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}

// Unsigned makes an ID token of claims with the algorithm none.
func Unsigned(claims []byte) string {
	return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","typ":"JWT"}`)) + "." +
		base64.RawURLEncoding.EncodeToString(claims) + "."
}
