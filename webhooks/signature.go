package webhooks

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
)

// decodeSignature reads a hexadecimal HMAC-SHA256.
func decodeSignature(s string) ([]byte, bool) {
	if len(s) != hex.EncodedLen(sha256.Size) {
		return nil, false
	}
	sum, err := hex.DecodeString(s)
	return sum, err == nil
}

// verifySignature says whether sum is the body's HMAC under one of the secrets. Every
// secret is tried, whichever fits, and each comparison takes constant time: how
// long it takes says nothing about a secret or about which one is in use.
func verifySignature(secrets [][]byte, body, sum []byte) bool {
	matches := 0
	for _, secret := range secrets {
		mac := hmac.New(sha256.New, secret)
		mac.Write(body)
		matches |= subtle.ConstantTimeCompare(mac.Sum(nil), sum)
	}
	return matches == 1
}
