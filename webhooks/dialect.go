package webhooks

import (
	"fmt"
	"net/http"
	"time"
)

// dialect is how one forge signs and labels its deliveries.
type dialect struct {
	name         string
	delivery     func(h http.Header, body []byte) string // the delivery's identity; empty when there is none
	eventName    func(http.Header) string                // the forge's name of the event; empty when there is none
	authenticate authenticator
	checkSecret  func([]byte) error // nil: any will do
	forms        bool               // form-encoded bodies are signed as they are sent, so they can be verified
	contentTypes []string           // that are taken besides application/json
	// tokenParameter is the parameter of the address that may have what else is in Authorization; empty: none may.
	tokenParameter string
	acknowledge    bool // an authentic delivery that can't be read isn't refused
	parse          payloadParser
}

// authenticator says by a delivery's headers whether it may be authentic; if so, what it
// returns says it by the body.
type authenticator func(h http.Header, secrets [][]byte, now time.Time) (verifyBody, bool)

// verifyBody says whether a body is its sender's.
type verifyBody func(body []byte) bool

// headerValue gives a header's value; empty when it is missing.
func headerValue(name string) func(http.Header, []byte) string {
	return func(h http.Header, _ []byte) string { return h.Get(name) }
}

// signedBody authenticates by the HMAC-SHA256 of the body in hexadecimal that signature
// gives; empty when there is none.
func signedBody(signature func(http.Header) string) authenticator {
	return func(h http.Header, secrets [][]byte, _ time.Time) (verifyBody, bool) {
		sum, ok := decodeSignature(signature(h))
		return func(body []byte) bool { return verifySignature(secrets, body, sum) }, ok
	}
}

// dialectOf finds a forge type's dialect.
func dialectOf(forgeType string) (dialect, error) {
	switch forgeType {
	case GitHub:
		return github, nil
	case Gitea:
		return gitea, nil
	case GitLab:
		return gitlab, nil
	case Registry:
		return containerRegistry, nil
	default:
		return dialect{}, fmt.Errorf("webhooks of forge type %q are not supported yet (known: %s, %s, %s)", forgeType, GitHub,
			Gitea, GitLab)
	}
}
