package promotion

import (
	"github.com/liftlock/liftlock/internal/wording"
)

// Release is a release as far as a decision needs it: which one it is and what people call it. Its
// content belongs to the overlay.
type Release struct {
	ID   string `json:"id"`   // 64 hex digits; empty: nothing is carried
	Name string `json:"name"` // for people: the values of its fields
}

// String is the release's name, for messages.
func (r Release) String() string {
	if r.Name == "" {
		return wording.Short(r.ID)
	}
	return r.Name
}
