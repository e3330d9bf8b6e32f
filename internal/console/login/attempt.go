package login

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"golang.org/x/oauth2"
)

// Attempt is a login that a browser has begun. Its secrets stay with that browser.
type Attempt struct {
	State    string `json:"s"` // comes back with the provider's answer
	Nonce    string `json:"n"` // comes back in the ID token
	Verifier string `json:"v"` // PKCE's: proves that who redeems the code has begun the login
	Return   string `json:"r"` // where in the console the user wants to go
}

// NewAttempt begins a login that leads to an address.
func NewAttempt(returnTo string) *Attempt {
	return &Attempt{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), Return: returnTo}
}

// Matches says whether an answer's state is the attempt's.
func (a *Attempt) Matches(state string) bool {
	return a.State != "" && subtle.ConstantTimeCompare([]byte(a.State), []byte(state)) == 1
}

// Digest names the attempt where it is kept that it was used.
func (a *Attempt) Digest() string {
	sum := sha256.Sum256([]byte(a.State))
	return hex.EncodeToString(sum[:])
}

// maxAttempt bounds an attempt's text, which has to fit a cookie.
const maxAttempt = 3 << 10

// String is the attempt as a cookie has it.
func (a *Attempt) String() string {
	raw, err := json.Marshal(a)
	if err != nil {
		panic(err) // four texts
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

// ParseAttempt reads what String wrote. The text came from a browser: it may be anything.
func ParseAttempt(text string) (*Attempt, error) {
	if len(text) > maxAttempt {
		return nil, fmt.Errorf("the login's cookie is longer than %d bytes", maxAttempt)
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("read the login's cookie: %w", err)
	}
	var a Attempt
	if err := json.Unmarshal(raw, &a); err != nil {
		return nil, fmt.Errorf("read the login's cookie: %w", err)
	}
	if a.State == "" || a.Nonce == "" || a.Verifier == "" {
		return nil, fmt.Errorf("read the login's cookie: it is incomplete")
	}
	return &a, nil
}
