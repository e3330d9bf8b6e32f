package rest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"sync"

	"github.com/liftlock/liftlock/internal/forge"
)

// Account remembers whose the credentials are, once that was read. It may be used concurrently.
type Account struct {
	mu    sync.Mutex
	known forge.User
}

// Read gives the account, by read where it isn't known yet.
func (a *Account) Read(read func() (forge.User, error)) (forge.User, error) {
	a.mu.Lock()
	known := a.known
	a.mu.Unlock()
	if known.Login != "" {
		return known, nil
	}
	found, err := read() // unlocked: a caller that waits for another's call may be canceled meanwhile
	if err != nil {
		return forge.User{}, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.known = found
	return found, nil
}

// FingerprintPrefix begins a secret's fingerprint.
const FingerprintPrefix = "Liftlock "

// Fingerprint tells the secrets of webhooks apart without giving them away, where a forge doesn't
// show them and something else of a webhook can be written.
func Fingerprint(secret string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("liftlock webhook secret"))
	return FingerprintPrefix + hex.EncodeToString(mac.Sum(nil)[:8])
}
