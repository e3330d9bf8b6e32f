package webhooks

import (
	"fmt"
	"net/http"
)

// dialect is how one forge signs and labels its deliveries.
type dialect struct {
	name      string
	delivery  func(http.Header) string // the delivery's identity; empty when there is none
	eventName func(http.Header) string // the forge's name of the event; empty when there is none
	signature func(http.Header) string // the HMAC-SHA256 of the body in hexadecimal; empty when there is none
	forms     bool                     // form-encoded bodies are signed as they are sent, so they can be verified
	parse     payloadParser
}

// dialectOf finds a forge type's dialect.
func dialectOf(forgeType string) (dialect, error) {
	switch forgeType {
	case GitHub:
		return github, nil
	case Gitea:
		return gitea, nil
	default:
		return dialect{}, fmt.Errorf("webhooks of forge type %q are not supported yet (known: %s, %s)", forgeType, GitHub, Gitea)
	}
}
