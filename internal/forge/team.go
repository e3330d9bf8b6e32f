package forge

import "fmt"

// Team names a team of an organisation: acme/sre.
type Team struct {
	Organisation string
	Name         string // as it stands in addresses: GitHub's slug
}

// String is "organisation/name".
func (t Team) String() string { return t.Organisation + "/" + t.Name }

// MissingTeam is the error for a team that isn't there, or that the credentials don't see:
// that says nothing of whether somebody is in it.
func MissingTeam(t Team, op string) error {
	return &Error{Op: op, Kind: ErrNotFound, Message: fmt.Sprintf("there is no team %s, or Liftlock's account may not see it", t),
		Hint: "check its name, and that the account may read the organisation's members"}
}
