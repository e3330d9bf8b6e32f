package policies

import (
	"fmt"
	"strings"
)

// maxName bounds a login and the name of a team, which become part of an address.
const maxName = 200

// CheckLogin says what is wrong with a login as people write it; nil: nothing.
func CheckLogin(text string) error {
	if text == "" || len(text) > maxName || strings.ContainsAny(text, " \t\r\n@/,") {
		return fmt.Errorf("%.80q is not a login; write it without @ and spaces", text)
	}
	return nil
}

// ParseTeam reads a team as people write it: acme/sre. The error says what is wrong with it.
func ParseTeam(text string) (organisation, name string, err error) {
	organisation, name, ok := strings.Cut(text, "/")
	isPair := ok && !strings.Contains(name, "/")
	areNames := strings.Trim(organisation, ".") != "" && strings.Trim(name, ".") != ""
	if !isPair || !areNames || len(text) > maxName || strings.ContainsAny(text, " \t\r\n@,?#%\\") {
		return "", "", fmt.Errorf("%.80q is not a team; write organisation/team, like acme/sre, without @", text)
	}
	return organisation, name, nil
}
