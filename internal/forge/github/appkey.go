package github

import (
	"bytes"
	"context"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v4"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/rest"
)

const (
	// maxKeyFile bounds the file of private keys; one takes less than 4 kB.
	maxKeyFile = 64 << 10

	// GitHub takes no JSON web token that ends more than ten minutes after its own time
	// ("Generating a JSON Web Token (JWT) for a GitHub App"). One is used for less than
	// jwtLifetime, and dated back against clocks that aren't quite the same.
	jwtLifetime  = 5 * time.Minute
	jwtReuse     = 4 * time.Minute
	jwtBackdated = time.Minute

	// maxSkew is how far the clocks may be apart before a token is made anew.
	maxSkew = 10 * time.Second
)

// appKeys sign for an App: JSON web tokens of RS256, dated by GitHub's clock as its answers show
// it. The file of keys is read again for every token, so that a key can be exchanged while Liftlock
// runs. Where it has several, the next one is tried when GitHub no longer knows one. It implements
// rest.Credentials.
type appKeys struct {
	file   string
	issuer string // the App's ID or its client ID
	now    func() time.Time

	mu      sync.Mutex
	content [sha256.Size]byte // of the file, as it was read
	keys    []*rsa.PrivateKey
	at      int           // the key that signs
	offset  time.Duration // GitHub's clock is ahead of ours
	value   string        // the header's value; empty: none was made
	dated   time.Duration // the offset that it was made with
	until   time.Time     // when the next one is made
}

func newAppKeys(file, issuer string, now func() time.Time) (*appKeys, error) {
	k := &appKeys{file: file, issuer: issuer, now: now}
	_, err := k.readFile()
	return k, err
}

// ValidateKeys says what is wrong with the content of a file of private keys; nil: it can be
// used.
func ValidateKeys(content []byte) error {
	_, err := parseKeys(content)
	return err
}

// readFile reads the keys; changed says that they aren't those that were read before. Callers
// hold mu, or are the only ones.
func (a *appKeys) readFile() (changed bool, err error) {
	f, err := os.Open(a.file)
	if err != nil {
		return false, fmt.Errorf("read the App's private key: %w", err)
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxKeyFile+1))
	if err != nil {
		return false, fmt.Errorf("read the App's private key: %w", err)
	}
	sum := sha256.Sum256(content)
	if a.keys != nil && sum == a.content {
		return false, nil
	}
	keys, err := parseKeys(content)
	if err != nil {
		return false, fmt.Errorf("read the App's private key in %s: %w", a.file, err)
	}
	a.keys, a.content, a.at = keys, sum, 0
	return true, nil
}

// parseKeys reads RSA keys in PEM, of PKCS#1 as GitHub makes them or PKCS#8. Errors show
// nothing of them.
func parseKeys(content []byte) ([]*rsa.PrivateKey, error) {
	if len(content) > maxKeyFile {
		return nil, fmt.Errorf("it is larger than %d bytes", maxKeyFile)
	}
	var keys []*rsa.PrivateKey
	for left := content; ; {
		var block *pem.Block
		if block, left = pem.Decode(left); block == nil {
			break
		}
		key, err := jwt.ParseRSAPrivateKeyFromPEM(pem.EncodeToMemory(block))
		if err != nil {
			return nil, fmt.Errorf("its block %d (%s) is no RSA private key: download one on the App's page", len(keys)+1,
				rest.ClipMessage(block.Type))
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, errors.New("there is no key in it: it must be a file in PEM, as the App's page gives it")
	}
	return keys, nil
}

// For gives a token, signed anew where there is none that can be used on.
func (a *appKeys) For(context.Context) (rest.Credential, error) {
	value, err := a.authorization()
	return rest.Credential{Value: value, Answered: func(resp *http.Response, body []byte) bool { return a.answered(value, resp, body) }},
		err
}

// authorization is the header's value.
func (a *appKeys) authorization() (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	if a.value != "" && now.Before(a.until) {
		return a.value, nil
	}
	// A file that can't be read now, while somebody writes it, is no reason to stop.
	if _, err := a.readFile(); err != nil && a.keys == nil {
		return "", &forge.Error{Op: "sign in as the App", Kind: forge.ErrUnauthorized, Message: err.Error(), Err: err}
	}
	forgeTime := now.Add(a.offset)
	signed, err := jwt.NewWithClaims(jwt.SigningMethodRS256, jwt.RegisteredClaims{
		Issuer: a.issuer, IssuedAt: jwt.NewNumericDate(forgeTime.Add(-jwtBackdated)),
		ExpiresAt: jwt.NewNumericDate(forgeTime.Add(jwtLifetime)),
	}).SignedString(a.keys[a.at])
	if err != nil {
		return "", &forge.Error{Op: "sign in as the App", Kind: forge.ErrUnauthorized, Message: "its private key can't sign", Err: err}
	}
	a.value, a.dated, a.until = "Bearer "+signed, a.offset, now.Add(jwtReuse)
	return a.value, nil
}

// answered learns GitHub's time from an answer. After a refusal another token is worth a try
// where this one was made by another time, or there is another key.
func (a *appKeys) answered(value string, resp *http.Response, body []byte) (renew bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if at, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		a.offset = at.Sub(a.now())
	}
	if resp.StatusCode != http.StatusUnauthorized {
		return false
	}
	if value != a.value {
		return true // another call has made another one meanwhile
	}
	a.value = ""
	if apart := a.offset - a.dated; apart > maxSkew || apart < -maxSkew {
		return true
	}
	if !bytes.Contains(body, []byte("could not be decoded")) && !bytes.Contains(body, []byte("not be found")) {
		return false
	}
	if changed, err := a.readFile(); err == nil && changed {
		return true
	}
	a.at = (a.at + 1) % len(a.keys)
	return len(a.keys) > 1
}
