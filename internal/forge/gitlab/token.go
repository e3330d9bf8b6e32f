package gitlab

import (
	"context"
	"net/http"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
)

// TokenExpiry is when the token ends; the zero time where it doesn't, or where GitLab has
// nothing to say of it: an OAuth token, or a version before 15.5.
func (d *Driver) TokenExpiry(ctx context.Context) (time.Time, error) {
	op := "read until when the token is good"
	var token struct {
		ExpiresAt string `json:"expires_at"`
	}
	_, err := d.call(ctx, op, http.MethodGet, nil, &token, "personal_access_tokens", "self")
	switch status := statusOf(err); {
	case status == http.StatusNotFound, status == http.StatusForbidden:
		return time.Time{}, nil
	case err != nil:
		return time.Time{}, err
	case token.ExpiresAt == "":
		return time.Time{}, nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} { // a day, as its pages show it, or a time, as its description says
		if end, err := time.Parse(layout, token.ExpiresAt); err == nil {
			return end, nil
		}
	}
	return time.Time{}, &forge.Error{Op: op, Kind: forge.ErrInvalid, Message: "GitLab says a time that can't be read"}
}
