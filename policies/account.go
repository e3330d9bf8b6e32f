package policies

import "cmp"

// Account is an account on the forge.
type Account struct {
	ID    int64  // stays when the login is changed; 0: not known
	Login string // forges compare it without regard to case
}

// Matches says whether two are the same account, or may be: a login that another account
// has by now is still taken for its first owner's.
func (a Account) Matches(b Account) bool {
	return a.ID != 0 && a.ID == b.ID || sameLogin(a.Login, b.Login)
}

// Compare sorts accounts by their logins, and those of one login by their numbers.
func (a Account) Compare(b Account) int {
	return cmp.Or(cmp.Compare(a.Login, b.Login), cmp.Compare(a.ID, b.ID))
}
