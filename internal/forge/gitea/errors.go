package gitea

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/liftlock/liftlock/internal/forge"
)

// readMessage reads the server's words out of a refusal.
func readMessage(_ *http.Response, body []byte) string {
	var said struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(body, &said) != nil {
		return string(body)
	}
	return said.Message
}

// refine says which scope a token lacks, and what 423 is.
func refine(e *forge.Error, _ *http.Response) {
	if e.Status == http.StatusLocked { // the repository is archived
		e.Kind = forge.ErrForbidden
	}
	if _, scopes, ok := strings.Cut(e.Message, "required scope(s):"); ok && e.Kind == forge.ErrForbidden {
		e.Hint = "the token needs the scope " + strings.TrimSpace(scopes)
	}
}
