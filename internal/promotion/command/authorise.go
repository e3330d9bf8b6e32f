package command

import (
	"fmt"
)

// Permission is what somebody may do in the repository, in rising order.
type Permission int

// The permissions. Their values are those of the forge drivers.
const (
	None Permission = iota
	Read
	Write
	Admin
)

// String names a permission for people.
func (p Permission) String() string {
	switch p {
	case Read:
		return "read"
	case Write:
		return "write"
	case Admin:
		return "admin"
	}
	return "none"
}

// Person is who gives a command: somebody on the forge, a holder of one of the API's tokens,
// or a user of the console.
type Person struct {
	Login      string
	Permission Permission // on the forge, as it says now; without a meaning when Role is set
	// Approver: the environment's approvals gate would count this person's
	// review. Where the gate lists people: one of them; where it lists nobody:
	// anyone who may write and is no author of the release.
	Approver bool
	// Holds: of an unhold, this person set one of each of the holds that it is about.
	Holds bool
	// BreakGlass: the pipeline's breakGlass names this person, or a team that has them.
	BreakGlass bool
	// Others are those who may give the command, for a refusal to name; empty: not known, or too many.
	Others string
	Role   string // an API token's or a user's in the console: viewer, operator or breakglass; empty: a person on the forge
}

// The roles of the API's tokens and of the console's users. An operator is what a person who may write is,
// and no approver unless Person.Approver says so; breakglass may do everything.
const (
	RoleViewer     = "viewer"
	RoleOperator   = "operator"
	RoleBreakGlass = "breakglass"
)

// Need is what a command takes, in rising order.
type Need int

// The needs. NeedApprover is NeedWrite where no approvals gate asks for more.
const (
	NeedRead Need = iota
	NeedWrite
	NeedApprover
	NeedBreakGlass
)

// Authorise says why somebody may not give a command; nil when they may.
// needApprover: an environment that the command is about has an approvals gate.
// The error is for the one who gave it.
func Authorise(c Command, who Person, needApprover bool) error {
	permission, approver := who.Permission, who.Approver
	switch who.Role {
	case "":
	case RoleViewer:
		permission, approver = Read, false
	case RoleOperator:
		permission = Write
	case RoleBreakGlass:
		permission, approver = Admin, true
	default:
		return fmt.Errorf("%s has the unknown role %q", who.Login, truncateWord(who.Role))
	}
	if who.Login == "" {
		return fmt.Errorf("/liftlock %s: who gives it is not known", c.Verb)
	}
	need := Needs(c.Verb)
	if need == NeedBreakGlass {
		switch {
		case who.Role == RoleBreakGlass:
			return nil
		case who.Role != "":
			return fmt.Errorf("%s may not give /liftlock %s: it takes the role breakglass, and this is %s", who.Login, c.Verb, who.Role)
		case permission < Write:
			return permissionError(c, who, "write to", permission)
		case c.Verb == Skip && who.BreakGlass:
			return nil
		}
		return fmt.Errorf("%s may not give /liftlock %s: it takes somebody whom the pipeline's breakGlass names%s", who.Login, c.Verb,
			who.othersPhrase())
	}
	if need == NeedRead {
		if permission >= Read {
			return nil
		}
		return permissionError(c, who, "read", permission)
	}
	if permission < Write {
		return permissionError(c, who, "write to", permission)
	}
	endsOwnHold := c.Verb == Unhold && who.Holds
	if need == NeedApprover && needApprover && !approver && !endsOwnHold {
		return fmt.Errorf("%s may not give /liftlock %s here: the environment has an approvals gate, so it takes somebody whose approval "+
			"counts there%s", who.Login, c.Verb, who.othersPhrase())
	}
	return nil
}

// othersPhrase names who may, where that is known.
func (p *Person) othersPhrase() string {
	if p.Others == "" {
		return ""
	}
	return ": " + p.Others
}

// LiftsOwnOnly says that somebody who may give an unhold lifts what they set themselves,
// and nothing that others did; needApprover is as in Authorise.
func LiftsOwnOnly(who Person, needApprover bool) bool {
	return needApprover && !who.Approver && who.Role != RoleBreakGlass
}

func permissionError(c Command, who Person, what string, has Permission) error {
	if who.Role != "" {
		return fmt.Errorf("%s may not give /liftlock %s: it takes the role %s, and this is %s", who.Login, c.Verb, RoleOperator, who.Role)
	}
	return fmt.Errorf("%s may not give /liftlock %s: it takes the permission to %s the repository (the forge says: %s)", who.Login,
		c.Verb, what, has)
}
