package promotion

// Release is a release as far as a decision needs it: which one it is and what
// people call it. What it carries is the overlay's business.
type Release struct {
	ID   string `json:"id"`   // 64 hex digits; empty: nothing is carried
	Name string `json:"name"` // for people: the values of its fields
}

// String is the release's name, for messages.
func (r Release) String() string {
	if r.Name == "" {
		return Short(r.ID)
	}
	return r.Name
}

// Short is the first 12 hex digits of a release's identity or of a commit.
func Short(id string) string {
	if len(id) > 12 {
		return id[:12]
	}
	return id
}
