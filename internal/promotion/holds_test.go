package promotion

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// TestEverybodyHasAHold holds how holds on the same stand beside each other.
func TestEverybodyHasAHold(t *testing.T) {
	at := func(hours int) time.Time { return noon.Add(time.Duration(hours) * time.Hour) }
	hold := func(by string, until time.Time) Holding { return Holding{Hold: Hold{By: by, At: noon, Until: until}} }
	ada, grace := hold("ada", at(2)), hold("grace", at(1))
	stops := func(h Holding) Holding { h.Reverts = true; return h }
	token := ada
	token.Via = "api"
	again, behind := ada, ada
	again.At, behind.At = at(1), at(-1)
	for name, c := range map[string]struct {
		active []Holding
		add    Holding
		want   []Holding
	}{
		"the first":               {nil, ada, []Holding{ada}},
		"somebody else's":         {[]Holding{ada}, grace, []Holding{ada, grace}},
		"a token's of that name":  {[]Holding{ada}, token, []Holding{ada, token}},
		"one's own, for longer":   {[]Holding{ada, grace}, hold("Grace", at(3)), []Holding{ada, hold("grace", at(3))}},
		"one's own, for less":     {[]Holding{ada}, hold("ada", at(1)), []Holding{ada}},
		"one's own, for ever":     {[]Holding{ada}, hold("ada", time.Time{}), []Holding{hold("ada", time.Time{})}},
		"one's own, with an end":  {[]Holding{hold("ada", time.Time{})}, ada, []Holding{hold("ada", time.Time{})}},
		"one's own, set again":    {[]Holding{ada}, again, []Holding{again}},
		"by a clock far behind":   {[]Holding{ada}, behind, []Holding{ada}},
		"one's own, reverts too":  {[]Holding{ada}, stops(hold("ada", at(1))), []Holding{ada, stops(hold("ada", at(1)))}},
		"reverts for a while":     {[]Holding{hold("ada", time.Time{})}, stops(ada), []Holding{hold("ada", time.Time{}), stops(ada)}},
		"reverts for longer":      {[]Holding{ada, stops(hold("ada", at(1)))}, stops(hold("ada", at(3))), []Holding{ada, stops(hold("ada", at(3)))}},
		"beside one of nobody's":  {[]Holding{{Hold: Hold{Reverts: true}}}, Holding{}, []Holding{{Hold: Hold{Reverts: true}}, {}}},
		"reverts aren't let free": {[]Holding{stops(ada)}, ada, []Holding{stops(ada), ada}},
	} {
		before := slices.Clone(c.active)
		if got := AddHold(c.active, c.add); !slices.Equal(got, c.want) || !slices.Equal(c.active, before) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	var crowd []Holding
	for i := range maxHolders {
		crowd = append(crowd, hold(fmt.Sprintf("p%d", i), at(i+2)))
	}
	if got := AddHold(crowd, hold("late", at(9))); len(got) != maxHolders || slices.Contains(got, crowd[0]) || got[maxHolders-1].By != "late" {
		t.Errorf("who holds for the shortest stays: %+v", got)
	}
	if got := AddHold(crowd, grace); !slices.Equal(got, crowd) {
		t.Errorf("a short one takes the place of a longer one: %+v", got)
	}
	for i := range crowd {
		crowd[i].Reverts = true
	}
	if got := AddHold(crowd, hold("late", time.Time{})); !slices.Equal(got, crowd) {
		t.Errorf("one of reverts makes place: %+v", got)
	}
}

// TestConsoleHoldsAreTheUsers holds that a hold by the console belongs to the user with its
// subject, whatever the name: names there aren't unique.
func TestConsoleHoldsAreTheUsers(t *testing.T) {
	held := func(subject string) Holding {
		return Holding{Hold: Hold{By: "Ada"}, Via: ViaConsole, Subject: subject}
	}
	for name, c := range map[string]struct {
		hold             Holding
		by, via, subject string
		want             bool
	}{
		"the same user":                       {held("u1"), "Ada", ViaConsole, "u1", true},
		"the same user, by another name":      {held("u1"), "A. Lovelace", ViaConsole, "u1", true},
		"another user of that name":           {held("u1"), "Ada", ViaConsole, "u2", false},
		"of before subjects were kept":        {held(""), "Ada", ViaConsole, "", false},
		"somebody of that name on the forge":  {held("u1"), "Ada", "", "u1", false},
		"one of the forge, by a console user": {Holding{Hold: Hold{By: "Ada"}, Subject: "u1"}, "Ada", ViaConsole, "u1", false},
	} {
		if got := c.hold.IsOf(c.by, 0, c.via, c.subject); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestHoldsAreOfAccounts holds that a hold stays with the account that set it, whatever its login
// is by now, even if another account has the former one. Where an account isn't known the login
// says whose it is.
func TestHoldsAreOfAccounts(t *testing.T) {
	of := func(by string, id int64, via string) Holding {
		return Holding{Hold: Hold{By: by, At: noon}, ByID: id, Via: via}
	}
	for name, c := range map[string]struct {
		hold, who Holding
		want      bool
	}{
		"under another login":        {of("ada", 7, ""), of("lovelace", 7, ""), true},
		"who has the login by now":   {of("ada", 7, ""), of("ada", 8, ""), false},
		"set before it was known":    {of("ada", 0, ""), of("Ada", 8, ""), true},
		"who isn't known":            {of("ada", 7, ""), of("Ada", 0, ""), true},
		"neither by login nor by id": {of("ada", 7, ""), of("grace", 0, ""), false},
		"a token of that name":       {of("ada", 7, ""), of("ada", 0, "api"), false},
	} {
		if got := c.hold.IsOf(c.who.By, c.who.ByID, c.who.Via, ""); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
		lift := Lift{OwnOnly: true, By: c.who.By, ByID: c.who.ByID, Via: c.who.Via}
		if left := lift.Of([]Holding{c.hold}); (len(left) == 0) != c.want {
			t.Errorf("%s: %+v is left", name, left)
		}
		if got := len(AddHold([]Holding{c.hold}, c.who)); (got == 1) != c.want {
			t.Errorf("%s: of both there are %d", name, got)
		}
	}
	for name, before := range map[string]Holding{"its login is another one": of("ada", 7, ""), "it wasn't known": of("lovelace", 0, "")} {
		if got := AddHold([]Holding{before}, of("lovelace", 7, "")); !slices.Equal(got, []Holding{of("lovelace", 7, "")}) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := AddHold([]Holding{of("ada", 7, "")}, of("ada", 0, "")); !slices.Equal(got, []Holding{of("ada", 7, "")}) {
		t.Errorf("the account is forgotten: %+v", got)
	}
}

// TestLiftHolds holds which of several holds somebody lifts, and which is the strongest.
func TestLiftHolds(t *testing.T) {
	ada, grace := Holding{Hold: Hold{By: "ada", At: noon, Until: noon.Add(2 * time.Hour)}}, Holding{Hold: Hold{By: "grace", At: noon.Add(time.Hour), Until: noon.Add(3 * time.Hour)}}
	nobody := Holding{Hold: Hold{At: noon}}
	all := []Holding{ada, grace}
	for name, c := range map[string]struct {
		lift Lift
		from []Holding
		want []Holding
	}{
		"all":                         {Lift{}, all, nil},
		"one's own":                   {Lift{OwnOnly: true, By: "ADA"}, all, []Holding{grace}},
		"none of one's own":           {Lift{OwnOnly: true, By: "ken"}, all, all},
		"both of one's own":           {Lift{OwnOnly: true, By: "ada"}, []Holding{ada, grace, {Hold: Hold{By: "ada", At: noon, Reverts: true}}}, []Holding{grace}},
		"a token's of that name":      {Lift{OwnOnly: true, By: "ada", Via: "api"}, all, all},
		"nobody's, by nobody":         {Lift{OwnOnly: true}, []Holding{nobody}, []Holding{nobody}},
		"before the second":           {Lift{Given: noon.Add(30 * time.Minute)}, all, []Holding{grace}},
		"at the same time":            {Lift{Given: noon.Add(time.Hour)}, all, nil},
		"a moment before it":          {Lift{Given: noon.Add(time.Hour - 1)}, all, []Holding{grace}},
		"nearly at once, by a token":  {Lift{Via: "api", Given: noon.Add(59 * time.Minute)}, all, nil},
		"a moment too early for that": {Lift{Via: "api", Given: noon.Add(59*time.Minute - 1)}, all, []Holding{grace}},
	} {
		if got := c.lift.Of(c.from); !slices.Equal(got, c.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	again := ada
	again.At = noon.Add(time.Hour)
	if got := (Lift{Given: noon.Add(59 * time.Minute)}).Of(AddHold([]Holding{ada}, again)); !slices.Equal(got, []Holding{again}) {
		t.Errorf("an unhold that comes late lifts what was set again since: %+v", got)
	}
	for _, c := range []struct {
		holds []Holding
		want  Holding
	}{{nil, Holding{}}, {all, grace}, {[]Holding{grace, ada}, grace}, {[]Holding{ada, {Hold: Hold{By: "ken", Until: ada.Until}}}, ada}, {[]Holding{nobody, grace}, nobody}, {[]Holding{ada, nobody, {Hold: Hold{By: "ken"}}}, nobody}} {
		if got, held := FindStrongest(c.holds); got != c.want || held != (len(c.holds) > 0) {
			t.Errorf("of %+v: %+v, %t", c.holds, got, held)
		}
	}
	if got := ListActive(all, ada.Until); !slices.Equal(got, []Holding{grace}) || len(all) != 2 || all[0] != ada {
		t.Errorf("active: %+v of %+v", got, all)
	}
}
