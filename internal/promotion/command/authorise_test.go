package command

import (
	"strings"
	"testing"
)

func TestAuthorise(t *testing.T) {
	callers := map[string]Person{
		"stranger":             {Login: "eve", Permission: None},
		"reader":               {Login: "eve", Permission: Read},
		"approver, reads only": {Login: "eve", Permission: Read, Approver: true},
		"writer":               {Login: "eve", Permission: Write},
		"admin":                {Login: "eve", Permission: Admin},
		"approver":             {Login: "eve", Permission: Write, Approver: true},
		"viewer":               {Login: "ci", Role: RoleViewer, Permission: Admin, Approver: true},
		"operator":             {Login: "ci", Role: RoleOperator},
		"approving operator":   {Login: "ci", Role: RoleOperator, Approver: true},
		"breakglass":           {Login: "ci", Role: RoleBreakGlass},
		"odd role":             {Login: "ci", Role: "root", Permission: Admin},
		"nobody":               {Permission: Admin, Approver: true, BreakGlass: true},
		"on call":              {Login: "eve", Permission: Write, BreakGlass: true},
		"on call, reads only":  {Login: "eve", Permission: Read, BreakGlass: true},
		"on call by a token":   {Login: "ci", Role: RoleOperator, BreakGlass: true},
	}
	read := []Verb{Help, Status, Diff, Why}
	write := []Verb{Hold, Retry}
	approve := []Verb{Unhold, Promote, Revert}
	for name, want := range map[string]struct{ read, write, approve, gated, glass, skip bool }{
		"stranger":             {},
		"reader":               {read: true},
		"approver, reads only": {read: true},
		"writer":               {read: true, write: true, approve: true},
		"admin":                {read: true, write: true, approve: true},
		"approver":             {read: true, write: true, approve: true, gated: true},
		"viewer":               {read: true},
		"operator":             {read: true, write: true, approve: true},
		"approving operator":   {read: true, write: true, approve: true, gated: true},
		"breakglass":           {read: true, write: true, approve: true, gated: true, glass: true, skip: true},
		"on call":              {read: true, write: true, approve: true, skip: true},
		"on call, reads only":  {read: true},
		"on call by a token":   {read: true, write: true, approve: true},
		"odd role":             {},
		"nobody":               {},
	} {
		check := func(verbs []Verb, gate, want bool) {
			t.Helper()
			for _, v := range verbs {
				err := Authorise(Command{Verb: v}, callers[name], gate)
				if (err == nil) != want {
					t.Errorf("%s, %s, gate %v: %v, want allowed %v", name, v, gate, err, want)
				}
				if err != nil && callers[name].Login != "" && !strings.Contains(err.Error(), callers[name].Login) {
					t.Errorf("%s, %s: %v doesn't say who", name, v, err)
				}
			}
		}
		for _, gate := range []bool{false, true} {
			check(read, gate, want.read)
			check(write, gate, want.write)
			check([]Verb{"", "nonsense"}, gate, want.glass)
			check([]Verb{Skip}, gate, want.skip)
		}
		check(approve, false, want.approve)
		check(approve, true, want.gated)
	}
}

// TestOwnHoldsAreLifted holds that a person with write access lifts their own holds behind an
// approvals gate, and nothing else there.
func TestOwnHoldsAreLifted(t *testing.T) {
	for _, c := range []struct {
		name    string
		who     Person
		gated   bool
		allowed string // of the verbs that take an approver there
		ownOnly bool
	}{
		{"who set them", Person{Login: "eve", Permission: Write, Holds: true}, true, "unhold", true},
		{"who set them and may not write any more", Person{Login: "eve", Permission: Read, Holds: true}, true, "", true},
		{"who set none", Person{Login: "eve", Permission: Write}, true, "", true},
		{"who set them, without a gate", Person{Login: "eve", Permission: Write, Holds: true}, false, "promote revert unhold", false},
		{"an approver who set them", Person{Login: "eve", Permission: Write, Approver: true, Holds: true}, true, "promote revert unhold", false},
		{"an operator's token", Person{Login: "ci", Role: RoleOperator, Holds: true}, true, "unhold", true},
		{"a token for emergencies", Person{Login: "ci", Role: RoleBreakGlass}, true, "promote revert unhold", false},
	} {
		var allowed []string
		for _, verb := range []Verb{Promote, Revert, Unhold} {
			if Authorise(Command{Verb: verb}, c.who, c.gated) == nil {
				allowed = append(allowed, string(verb))
			}
		}
		if got := strings.Join(allowed, " "); got != c.allowed {
			t.Errorf("%s may give %q, want %q", c.name, got, c.allowed)
		}
		if got := LiftsOwnOnly(c.who, c.gated); got != c.ownOnly {
			t.Errorf("%s lifts their own only: %t", c.name, got)
		}
	}
}

// TestRefusalNamesPermission holds that who is refused reads what the forge says.
func TestRefusalNamesPermission(t *testing.T) {
	for may, want := range map[Permission]string{
		None: "eve may not give /liftlock hold: it takes the permission to write to the repository (the forge says: none)",
		Read: "eve may not give /liftlock hold: it takes the permission to write to the repository (the forge says: read)",
	} {
		if err := Authorise(Command{Verb: Hold}, Person{Login: "eve", Permission: may}, false); err == nil || err.Error() != want {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if Write.String() != "write" || Admin.String() != "admin" {
		t.Errorf("the others are %s and %s", Write, Admin)
	}
}

// TestRefusalNamesOthers holds that who is refused reads who may.
func TestRefusalNamesOthers(t *testing.T) {
	for want, c := range map[string]struct {
		verb Verb
		who  Person
	}{
		"eve may not give /liftlock promote here: the environment has an approvals gate, so it takes somebody whose approval counts there: ada, grace": {Promote, Person{Others: "ada, grace"}},
		"eve may not give /liftlock promote here: the environment has an approvals gate, so it takes somebody whose approval counts there":             {Promote, Person{}},
		"eve may not give /liftlock skip: it takes somebody whom the pipeline's breakGlass names: acme/oncall":                                         {Skip, Person{Others: "acme/oncall"}},
	} {
		c.who.Login, c.who.Permission = "eve", Write
		if err := Authorise(Command{Verb: c.verb}, c.who, true); err == nil || err.Error() != want {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestEveryVerbHasItsNeed(t *testing.T) {
	for _, v := range Verbs() {
		if (Needs(v) == NeedBreakGlass) != (v == Skip) {
			t.Errorf("%s needs %d", v, Needs(v))
		}
	}
}
