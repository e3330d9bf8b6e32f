package forge

import (
	"fmt"
	"strings"
)

// Team names a team of an organisation: acme/sre.
type Team struct {
	Organisation string
	Name         string // as it stands in addresses: GitHub's slug
}

// String is "organisation/name".
func (t Team) String() string { return t.Organisation + "/" + t.Name }

// maxTeamName bounds a team's name, which becomes part of an address.
const maxTeamName = 200

// ParseTeam reads a team's name as people write it: acme/sre. The error says what is wrong
// with it.
func ParseTeam(text string) (Team, error) {
	organisation, name, ok := strings.Cut(text, "/")
	if !ok || organisation == "" || name == "" || len(text) > maxTeamName || strings.ContainsAny(name, "/") || strings.ContainsAny(text, " \t\r\n@,?#%\\") ||
		strings.Trim(organisation, ".") == "" || strings.Trim(name, ".") == "" {
		return Team{}, fmt.Errorf("%.80q is not a team; write organisation/team, like acme/sre, without @", text)
	}
	return Team{organisation, name}, nil
}

// MissingTeam is the error for a team that isn't there, or that the credentials don't see:
// that says nothing of whether somebody is in it.
func MissingTeam(t Team, op string) error {
	return &Error{Op: op, Kind: ErrNotFound, Message: fmt.Sprintf("there is no team %s, or Liftlock's account may not see it", t), Hint: "check its name, and that the account may read the organisation's members"}
}
