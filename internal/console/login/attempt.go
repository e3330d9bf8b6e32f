package login

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

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

// AttemptLifetime is how long a login may take.
const AttemptLifetime = 10 * time.Minute

// maxAttempt bounds an attempt's text, which has to fit a cookie.
const maxAttempt = 3 << 10

// sealedAttempt is an attempt as it is in a cookie, beside its signature.
type sealedAttempt struct {
	*Attempt
	Until int64 `json:"u"` // in Unix time
}

// deriveAttemptKeys derives the keys that attempts are signed with from secrets that every replica
// has: the browser may come back to another one. The first signs, all are believed.
func deriveAttemptKeys(secrets []string, issuer, clientID string) ([][]byte, error) {
	var keys [][]byte
	for _, secret := range secrets {
		key, err := hkdf.Key(sha256.New, []byte(secret), nil, "liftlock login attempt v1\x00"+issuer+"\x00"+clientID, sha256.Size)
		if err != nil {
			return nil, fmt.Errorf("derive the key that signs logins' cookies: %w", err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

func signAttempt(key []byte, body string) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(body))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// SealAttempt is an attempt as a cookie has it: signed, and good for AttemptLifetime.
func (p *Provider) SealAttempt(a *Attempt) string {
	raw, err := json.Marshal(sealedAttempt{a, p.opts.Now().Add(AttemptLifetime).Unix()})
	if err != nil {
		panic(err) // texts and a number
	}
	body := base64.RawURLEncoding.EncodeToString(raw)
	return body + "." + signAttempt(p.attemptKeys[0], body)
}

// OpenAttempt reads what SealAttempt wrote, here or in another replica. The text came from a
// browser: it may be anything, and nothing of it is read before its signature fits. The error
// is a *RefusedError.
func (p *Provider) OpenAttempt(text string) (*Attempt, error) {
	body, signature, ok := strings.Cut(text, ".")
	if !ok || len(text) > maxAttempt {
		return nil, newRefusal("the login's cookie is none of this server's. Log in again")
	}
	signed := slices.ContainsFunc(p.attemptKeys, func(key []byte) bool {
		return hmac.Equal([]byte(signature),
			[]byte(signAttempt(key, body)))
	})
	if !signed {
		return nil, newRefusal("the login's cookie is none of this server's. Log in again")
	}
	raw, err := base64.RawURLEncoding.DecodeString(body)
	sealed := sealedAttempt{Attempt: &Attempt{}}
	if err == nil {
		err = json.Unmarshal(raw, &sealed)
	}
	switch a := sealed.Attempt; {
	case err != nil, a == nil, a.State == "" || a.Nonce == "" || a.Verifier == "":
		return nil, newRefusal("the login's cookie is incomplete. Log in again")
	case p.opts.Now().Unix() >= sealed.Until:
		return nil, newRefusal("this login was begun more than %d minutes ago. Log in again", int(AttemptLifetime.Minutes()))
	}
	return sealed.Attempt, nil
}
