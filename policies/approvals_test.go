package policies

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func approved(users ...string) []Approval {
	var all []Approval
	for _, u := range users {
		all = append(all, Approval{User: u, MayWrite: true, Current: true})
	}
	return all
}

func accounts(logins ...string) []Account {
	var all []Account
	for _, l := range logins {
		all = append(all, Account{Login: l})
	}
	return all
}

func TestApprovals(t *testing.T) {
	anybody := func(count int) Approvals { return Approvals{Count: count} }
	from := func(count int, users ...string) Approvals { return Approvals{Count: count, From: From{Users: users}} }
	const any1 = "people who may write to the repository"
	tests := map[string]struct {
		gate  Approvals
		facts Facts
		want  Result
	}{
		"nobody yet": {
			anybody(1), Facts{},
			Result{Outcome: Wait, Reason: "0 of 1 approval; waiting for 1 more from " + any1},
		},
		"enough": {
			anybody(2), Facts{Approvals: approved("grace", "ada")},
			Result{Outcome: Pass, Reason: "2 of 2 approvals (ada, grace)"},
		},
		"more than enough": {
			anybody(1), Facts{Approvals: approved("grace", "ada")},
			Result{Outcome: Pass, Reason: "2 approvals, 1 needed (ada, grace)"},
		},
		"one of two by name": {
			from(2, "ada", "grace", "linus"), Facts{Approvals: approved("ada")},
			Result{Outcome: Wait, Reason: "1 of 2 approvals (ada); waiting for 1 more from grace, linus", Who: []string{"grace", "linus"}},
		},
		"one person twice is one": {
			anybody(2), Facts{Approvals: approved("ada", "Ada")},
			Result{Outcome: Wait, Reason: "1 of 2 approvals (Ada); waiting for 1 more from " + any1},
		},
		"the author doesn't count": {
			anybody(1), Facts{Approvals: approved("ada"), Authors: accounts("ADA")},
			Result{Outcome: Wait, Reason: "0 of 1 approval; waiting for 1 more from " + any1 + "; authors of the release don't count (ada)"},
		},
		"the author doesn't count under another login": {
			anybody(1), Facts{Approvals: []Approval{{User: "ada-new", UserID: 7, MayWrite: true, Current: true}}, Authors: []Account{{ID: 7, Login: "ada"}}},
			Result{Outcome: Wait, Reason: "0 of 1 approval; waiting for 1 more from " + any1 + "; authors of the release don't count (ada-new)"},
		},
		"who has an author's former login doesn't count": {
			anybody(1), Facts{Approvals: []Approval{{User: "ada", UserID: 8, MayWrite: true, Current: true}}, Authors: []Account{{ID: 7, Login: "ada"}}},
			Result{Outcome: Wait, Reason: "0 of 1 approval; waiting for 1 more from " + any1 + "; authors of the release don't count (ada)"},
		},
		"one account under two logins is one": {
			anybody(2), Facts{Approvals: []Approval{{User: "ada-new", UserID: 7, MayWrite: true, Current: true}, {User: "ada", UserID: 7, MayWrite: true, Current: true}}},
			Result{Outcome: Wait, Reason: "1 of 2 approvals (ada); waiting for 1 more from " + any1},
		},
		"the bot doesn't count under another login": {
			anybody(1), Facts{Approvals: []Approval{{User: "lifter", UserID: 9, MayWrite: true, Current: true}}, Bot: Account{ID: 9, Login: "liftlock-bot"}},
			Result{Outcome: Wait, Reason: "0 of 1 approval; waiting for 1 more from " + any1},
		},
		"the bot doesn't count": {
			anybody(1), Facts{Approvals: approved("liftlock-bot"), Bot: Account{Login: "liftlock-bot"}},
			Result{Outcome: Wait, Reason: "0 of 1 approval; waiting for 1 more from " + any1},
		},
		"a nameless one doesn't count": {
			anybody(1), Facts{Approvals: approved("")},
			Result{Outcome: Wait, Reason: "0 of 1 approval; waiting for 1 more from " + any1},
		},
		"without write permission": {
			anybody(1), Facts{Approvals: []Approval{{User: "ada", Current: true}}},
			Result{Outcome: Wait, Reason: "0 of 1 approval; waiting for 1 more from " + any1 + "; approvals without write permission don't count (ada)"},
		},
		"asked by name but without write permission": {
			from(1, "ada"), Facts{Approvals: []Approval{{User: "ada", Current: true}}},
			Result{Outcome: Wait, Reason: "0 of 1 approval; waiting for 1 more from ada; approvals without write permission don't count (ada)", Who: []string{"ada"}},
		},
		"not asked": {
			from(1, "ada"), Facts{Approvals: approved("grace")},
			Result{Outcome: Wait, Reason: "0 of 1 approval; waiting for 1 more from ada; approvals by people who aren't asked don't count (grace)", Who: []string{"ada"}},
		},
		"on an older diff": {
			anybody(2), Facts{Approvals: []Approval{{User: "grace", MayWrite: true}, {User: "ada", MayWrite: true}}},
			Result{Outcome: Wait, Reason: "0 of 2 approvals; waiting for 2 more from " + any1 + "; 2 approvals were given on an older diff (ada, grace) and must be given again"},
		},
		"on an older diff and again": {
			anybody(1), Facts{Approvals: []Approval{{User: "ada", MayWrite: true}, {User: "ada", MayWrite: true, Current: true}, {User: "ada", MayWrite: true}}},
			Result{Outcome: Pass, Reason: "1 of 1 approval (ada)"},
		},
		"only the authors are asked": {
			from(1, "ada"), Facts{Authors: accounts("ada")},
			Result{Outcome: Wait, Reason: "0 of 1 approval; waiting for 1 more, but of those who are asked only 0 people can still approve: the release's authors and the bot don't count"},
		},
		"the bot is asked": {
			from(1, "ada", "liftlock-bot"), Facts{Bot: Account{Login: "Liftlock-Bot"}},
			Result{Outcome: Wait, Reason: "0 of 1 approval; waiting for 1 more from ada", Who: []string{"ada"}},
		},
		"too few are left": {
			from(2, "ada", "grace"), Facts{Authors: accounts("ada"), Bot: Account{Login: "x"}},
			Result{Outcome: Wait, Reason: "0 of 2 approvals; waiting for 2 more, but of those who are asked only 1 person can still approve: the release's authors and the bot don't count", Who: []string{"grace"}},
		},
		"approvals unknown": {
			from(1, "ada", "grace"), Facts{Approvals: approved("ada"), ApprovalsErr: "the forge can't answer now"},
			Result{Outcome: Wait, Reason: "the approvals can't be read: the forge can't answer now", Who: []string{"ada", "grace"}},
		},
		"authors unknown": {
			anybody(1), Facts{Approvals: approved("ada"), AuthorsErr: "no such commit"},
			Result{Outcome: Wait, Reason: "the release's authors, whose approval would not count, can't be told: no such commit"},
		},
		"several reasons": {
			from(2, "ada", "grace", "linus"),
			Facts{Approvals: append(approved("ada", "ken", "margaret"), Approval{User: "grace", MayWrite: true}), Authors: accounts("margaret")},
			Result{Outcome: Wait, Reason: "1 of 2 approvals (ada); waiting for 1 more from grace, linus; 1 approval was given on an older diff (grace) and must be given again; authors of the release don't count (margaret); approvals by people who aren't asked don't count (ken)", Who: []string{"grace", "linus"}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.want.Gate = "approvals"
			gate := Gate{Approvals: &test.gate}
			got := gate.Evaluate(test.facts)
			got.Brief = "" // TestApprovalsInBrief
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestAccountMatches holds that what isn't known of two accounts makes them no one person.
func TestAccountMatches(t *testing.T) {
	for name, test := range map[string]struct {
		a, b Account
		want bool
	}{
		"one account under two logins":   {Account{ID: 7, Login: "ada"}, Account{ID: 7, Login: "ada-new"}, true},
		"one login, in capitals too":     {Account{Login: "ada"}, Account{ID: 7, Login: "ADA"}, true},
		"a login that changed its owner": {Account{ID: 7, Login: "ada"}, Account{ID: 8, Login: "ada"}, true},
		"two accounts":                   {Account{ID: 7, Login: "ada"}, Account{ID: 8, Login: "grace"}, false},
		"no login is known":              {Account{ID: 7}, Account{ID: 8}, false},
		"nothing is known":               {Account{}, Account{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if test.a.Matches(test.b) != test.want || test.b.Matches(test.a) != test.want {
				t.Errorf("%v and %v are one: %t, want %t", test.a, test.b, !test.want, test.want)
			}
		})
	}
}

// TestCompareAccounts sorts accounts by their logins, and those of one login by their numbers.
func TestCompareAccounts(t *testing.T) {
	account := func(id int64, login string) Account { return Account{ID: id, Login: login} }
	sorted := []Account{account(9, "ada"), account(1, "grace"), account(2, "grace"), account(1<<62, "grace"), account(0, "linus")}
	for i := range sorted {
		for k := range sorted {
			if got, want := sorted[i].Compare(sorted[k]), min(max(i-k, -1), 1); (got < 0) != (want < 0) || (got > 0) != (want > 0) {
				t.Errorf("%+v and %+v compare as %d", sorted[i], sorted[k], got)
			}
		}
	}
}

func TestInvalidGateFails(t *testing.T) {
	for name, test := range map[string]struct {
		gate Gate
		name string
		want []Problem
	}{
		"no kind":       {Gate{}, "", []Problem{{"", "a gate has exactly one kind (" + joinNames(Kinds()) + "); this one has 0"}}},
		"no count":      {Gate{Approvals: &Approvals{}}, "approvals", []Problem{{"approvals.count", "must be at least 1; it is 0"}}},
		"a huge count":  {Gate{Approvals: &Approvals{Count: 101}}, "approvals", []Problem{{"approvals.count", "must be at most 100; it is 101"}}},
		"bad users":     {Gate{Approvals: &Approvals{Count: 1, From: From{Users: []string{"@ada", "", "a b", "ok", "OK"}}}}, "approvals", []Problem{{"approvals.from.users[0]", `"@ada" is not a login; write it without @ and spaces`}, {"approvals.from.users[1]", `"" is not a login; write it without @ and spaces`}, {"approvals.from.users[2]", `"a b" is not a login; write it without @ and spaces`}, {"approvals.from.users[4]", `"OK" is given twice`}}},
		"too few users": {Gate{Approvals: &Approvals{Count: 2, From: From{Users: []string{"ada"}}}}, "approvals", []Problem{{"approvals.count", "2 approvals can't come from 1 person"}}},
	} {
		t.Run(name, func(t *testing.T) {
			err := test.gate.Validate()
			if diff := cmp.Diff(test.want, Problems(err)); diff != "" {
				t.Errorf("the problems (-want +got):\n%s", diff)
			}
			got := test.gate.Evaluate(Facts{Approvals: approved("ada", "grace")})
			if got.Outcome != Fail || string(got.Gate) != test.name || got.Reason != "the gate is not valid: "+err.Error() {
				t.Errorf("the answer is %+v", got)
			}
		})
	}
	for _, count := range []int{1, maxApprovals} {
		valid := Gate{Approvals: &Approvals{Count: count}}
		if err := valid.Validate(); err != nil || Problems(err) != nil || valid.Name() != "approvals" {
			t.Errorf("a valid gate %s has the error %v", valid.Name(), err)
		}
	}
	few := Gate{Approvals: &Approvals{}}
	if err := few.Validate(); err.Error() != "approvals.count: must be at least 1; it is 0" {
		t.Errorf("a problem with a path says %q", err)
	}
	if got := Problems(fmt.Errorf("other")); len(got) != 1 || got[0].Error() != "other" {
		t.Errorf("another error is the problems %v", got)
	}
}

var (
	logins    = rapid.SampledFrom([]string{"ada", "Ada", "grace", "linus", "ken", "margaret", "liftlock-bot"})
	approvals = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Approval {
		return Approval{User: logins.Draw(t, "user"), MayWrite: rapid.Bool().Draw(t, "write"), Current: rapid.Bool().Draw(t, "current")}
	}), 0, 8)
	gates = rapid.Custom(func(t *rapid.T) Gate {
		users := rapid.SliceOfNDistinct(logins, 0, 4, strings.ToLower).Draw(t, "from")
		most := 3
		if len(users) > 0 {
			most = len(users)
		}
		return Gate{Approvals: &Approvals{Count: rapid.IntRange(1, most).Draw(t, "count"), From: From{Users: users}}}
	})
	factsOf = rapid.Custom(func(t *rapid.T) Facts {
		return Facts{Approvals: approvals.Draw(t, "approvals"), Authors: accounts(rapid.SliceOfN(logins, 0, 2).Draw(t, "authors")...), Bot: Account{Login: "liftlock-bot"}}
	})
)

// TestApprovalsHold holds that a gate passes exactly when enough distinct people approved this diff
// who may write, are asked, and are neither authors nor the bot. The order of the reviews never
// matters, and an unknown fact never passes.
func TestApprovalsHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		gate, facts := gates.Draw(t, "gate"), factsOf.Draw(t, "facts")
		mayNot, current := map[string]bool{}, map[string]bool{}
		for _, a := range facts.Approvals {
			user := strings.ToLower(a.User)
			mayNot[user] = mayNot[user] || !a.MayWrite
			current[user] = current[user] || a.Current
		}
		counted := 0
		for user := range current {
			same := func(u string) bool { return strings.ToLower(u) == user }
			wanted := len(gate.Approvals.From.Users) == 0 || slices.ContainsFunc(gate.Approvals.From.Users, same)
			if current[user] && !mayNot[user] && wanted && !slices.ContainsFunc(facts.Authors, func(a Account) bool { return same(a.Login) }) && user != "liftlock-bot" {
				counted++
			}
		}
		got := gate.Evaluate(facts)
		if want := counted >= gate.Approvals.Count; (got.Outcome == Pass) != want || got.Outcome == Fail || got.Reason == "" {
			t.Fatalf("%d people count, and the answer is %+v", counted, got)
		}
		shuffled := facts
		shuffled.Approvals = rapid.Permutation(facts.Approvals).Draw(t, "shuffled")
		if again := gate.Evaluate(shuffled); !cmp.Equal(again, got) {
			t.Fatalf("in another order the answer is %+v, not %+v", again, got)
		}
		for _, unknown := range []Facts{{Approvals: facts.Approvals, ApprovalsErr: "x"}, {Approvals: facts.Approvals, AuthorsErr: "x"}} {
			if got := gate.Evaluate(unknown); got.Outcome != Wait || !strings.Contains(got.Reason, "x") {
				t.Fatalf("an unknown fact gives %+v", got)
			}
		}
	})
}

func TestApplyFloor(t *testing.T) {
	gate := func(count int, users ...string) Gate {
		return Gate{Approvals: &Approvals{Count: count, From: From{Users: users}}}
	}
	yes, no := true, false
	like := func(a Approvals) Gate { return Gate{Approvals: &a} }
	for name, test := range map[string]struct {
		gates []Gate
		floor *Approvals
		want  []Gate
	}{
		"no floor":                         {[]Gate{gate(1)}, nil, []Gate{gate(1)}},
		"no gates":                         {nil, gate(2).Approvals, []Gate{gate(2)}},
		"high enough":                      {[]Gate{gate(3)}, gate(2).Approvals, []Gate{gate(3)}},
		"high enough by fewer people":      {[]Gate{gate(2, "ada", "grace")}, gate(2).Approvals, []Gate{gate(2, "ada", "grace"), gate(2)}},
		"too low":                          {[]Gate{gate(1)}, gate(2).Approvals, []Gate{gate(2)}},
		"too low, by name":                 {[]Gate{gate(1, "ada")}, gate(2).Approvals, []Gate{gate(1, "ada"), gate(2)}},
		"a floor by name":                  {[]Gate{gate(3)}, gate(1, "ada").Approvals, []Gate{gate(3), gate(1, "ada")}},
		"a floor by the same names":        {[]Gate{gate(1, "Ada", "grace")}, gate(2, "grace", "ada").Approvals, []Gate{gate(2, "Ada", "grace")}},
		"the second gate is enough":        {[]Gate{gate(1), gate(2, "ada", "ken")}, gate(2).Approvals, []Gate{gate(2), gate(2, "ada", "ken")}},
		"as high":                          {[]Gate{gate(2)}, gate(2).Approvals, []Gate{gate(2)}},
		"a veto that is written out":       {[]Gate{like(Approvals{Count: 2, Veto: &yes})}, gate(2).Approvals, []Gate{like(Approvals{Count: 2, Veto: &yes})}},
		"without the floor's veto":         {[]Gate{like(Approvals{Count: 2, Veto: &no})}, gate(2).Approvals, []Gate{like(Approvals{Count: 2, Veto: &no}), gate(2)}},
		"a floor without a veto":           {[]Gate{gate(3)}, &Approvals{Count: 2, Veto: &no}, []Gate{gate(3)}},
		"a veto of fewer, and none needed": {[]Gate{gate(1, "ada")}, &Approvals{Count: 1, Veto: &no}, []Gate{gate(1, "ada")}},
		"distinct":                         {[]Gate{like(Approvals{Count: 2, Distinct: true})}, &Approvals{Count: 2, Distinct: true}, []Gate{like(Approvals{Count: 2, Distinct: true})}},
		"distinct where it needn't be":     {[]Gate{like(Approvals{Count: 2, Distinct: true})}, gate(2).Approvals, []Gate{like(Approvals{Count: 2, Distinct: true})}},
		"not distinct":                     {[]Gate{gate(2)}, &Approvals{Count: 2, Distinct: true}, []Gate{gate(2), like(Approvals{Count: 2, Distinct: true})}},
		"too low, and not distinct":        {[]Gate{gate(1)}, &Approvals{Count: 2, Distinct: true}, []Gate{gate(1), like(Approvals{Count: 2, Distinct: true})}},
		"young enough":                     {[]Gate{like(Approvals{Count: 2, MaxAge: time.Hour})}, &Approvals{Count: 2, MaxAge: time.Hour}, []Gate{like(Approvals{Count: 2, MaxAge: time.Hour})}},
		"not young enough":                 {[]Gate{like(Approvals{Count: 2, MaxAge: 2 * time.Hour})}, &Approvals{Count: 2, MaxAge: time.Hour}, []Gate{like(Approvals{Count: 2, MaxAge: 2 * time.Hour}), like(Approvals{Count: 2, MaxAge: time.Hour})}},
		"of any age":                       {[]Gate{gate(2)}, &Approvals{Count: 2, MaxAge: time.Hour}, []Gate{gate(2), like(Approvals{Count: 2, MaxAge: time.Hour})}},
		"too low, and younger than asked":  {[]Gate{like(Approvals{Count: 1, MaxAge: time.Hour})}, gate(2).Approvals, []Gate{like(Approvals{Count: 1, MaxAge: time.Hour}), gate(2)}},
		"a gate without a kind":            {[]Gate{{}}, gate(2).Approvals, []Gate{{}, gate(2)}},
		"the second gate can be raised":    {[]Gate{gate(1, "ada"), gate(1)}, gate(2).Approvals, []Gate{gate(1, "ada"), gate(2)}},
	} {
		t.Run(name, func(t *testing.T) {
			before := fmt.Sprint(test.gates)
			if diff := cmp.Diff(test.want, ApplyFloor(test.gates, test.floor)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if fmt.Sprint(test.gates) != before {
				t.Error("the gates were modified")
			}
		})
	}
}

// TestApplyFloorHolds: under a floor, the gates pass exactly when both they and the
// floor would pass.
func TestApplyFloorHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		own := rapid.SliceOfN(gates, 0, 3).Draw(t, "gates")
		floor := gates.Draw(t, "floor")
		facts := factsOf.Draw(t, "facts")
		passes := func(all []Gate) bool {
			return !slices.ContainsFunc(all, func(g Gate) bool { return g.Evaluate(facts).Outcome != Pass })
		}
		raised := ApplyFloor(own, floor.Approvals)
		if want := passes(own) && passes([]Gate{floor}); passes(raised) != want {
			t.Fatalf("%v raised to %v pass: %t, want %t", own, raised, !want, want)
		}
		if again := ApplyFloor(raised, floor.Approvals); !cmp.Equal(again, raised) {
			t.Fatalf("raised twice: %v and %v", raised, again)
		}
	})
}
