package gitlab

import (
	"context"
	"net/http"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/forge/rest"
)

// ownToken is what GitLab says of the token that it is called with.
type ownToken struct {
	ExpiresAt string   `json:"expires_at"`
	Scopes    []string `json:"scopes"`
}

// TokenExpiry is when the token ends; the zero time where it doesn't, or where GitLab has
// nothing to say of it.
func (d *Driver) TokenExpiry(ctx context.Context) (time.Time, error) {
	token, err := d.readOwnToken(ctx)
	if err != nil || token == nil {
		return time.Time{}, err
	}
	return token.end()
}

const ownTokenOp = "read until when the token is good"

// readOwnToken reads what GitLab says of the token; nil where that is nothing: an OAuth token, or
// a version before 15.5. One whose scopes don't reach to read it has none to speak of.
func (d *Driver) readOwnToken(ctx context.Context) (*ownToken, error) {
	var token ownToken
	_, err := d.call(ctx, ownTokenOp, http.MethodGet, nil, &token, "personal_access_tokens", "self")
	switch status := rest.StatusOf(err); {
	case status == http.StatusForbidden && rest.ErrorOf(err).Hint == scopeHint:
		return &ownToken{}, nil
	case status == http.StatusNotFound, status == http.StatusForbidden:
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &token, nil
}

func (o *ownToken) end() (time.Time, error) {
	if o.ExpiresAt == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} { // a day, as its pages show it, or a time, as its description says
		if end, err := time.Parse(layout, o.ExpiresAt); err == nil {
			return end, nil
		}
	}
	return time.Time{}, &forge.Error{Op: ownTokenOp, Kind: forge.ErrInvalid, Message: "GitLab says a time that can't be read"}
}
