package policies

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestApprovalsFrom tells whose approval counts, for how long, and what keeps it waiting
// all the same.
func TestApprovalsFrom(t *testing.T) {
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	by := func(user string, teams ...string) Approval {
		return Approval{User: user, MayWrite: true, Current: true, At: now.Add(-time.Hour), Teams: teams}
	}
	sre := Approvals{Count: 1, From: From{Teams: []string{"acme/sre"}}}
	sreOrAda := Approvals{Count: 1, From: From{Teams: []string{"acme/sre"}, Users: []string{"ada"}}}
	owners := Approvals{Count: 1, From: From{Codeowners: true}}
	strict := Approvals{Count: 1, From: From{Codeowners: true, Strict: true}}
	ownersOrAda := Approvals{Count: 1, From: From{Codeowners: true, Users: []string{"ada"}}}
	no := false
	unvetoed := Approvals{Count: 1, Veto: &no}
	aged := Approvals{Count: 1, MaxAge: 2 * time.Hour}
	web, api := OwnedFile{Path: "apps/web.yaml", Owners: []string{"grace", "acme/web"}}, OwnedFile{Path: "apps/api.yaml", Owners: []string{"linus"}}
	nobodys := OwnedFile{Path: "README.md"}
	of := func(files ...OwnedFile) Facts { return Facts{Files: files, FilesRead: true} }
	with := func(f Facts, approvals ...Approval) Facts { f.Approvals = approvals; return f }
	rejecting := func(f Facts, rejections ...Approval) Facts { f.Rejections = rejections; return f }
	for name, c := range map[string]struct {
		gate   Approvals
		facts  Facts
		want   Outcome
		reason string
		until  time.Duration
	}{
		"somebody of the team":                   {sre, with(Facts{}, by("ada", "Acme/SRE")), Pass, "1 of 1 approval (ada)", 0},
		"somebody of another team":               {sre, with(Facts{}, by("ada", "acme/web")), Wait, "0 of 1 approval; waiting for 1 more from acme/sre; approvals by people who aren't asked don't count (ada)", 0},
		"a team's name is no login":              {sre, with(Facts{}, by("acme/sre")), Wait, "0 of 1 approval; waiting for 1 more from acme/sre; approvals by people who aren't asked don't count (acme/sre)", 0},
		"of the team or by name":                 {sreOrAda, with(Facts{}, by("ada")), Pass, "1 of 1 approval (ada)", 0},
		"a team that can't be read":              {sreOrAda, with(Facts{TeamsErr: map[string]string{"acme/sre": "403"}}, by("ada")), Wait, "who is in the team acme/sre can't be read: 403", 0},
		"another team that can't be read":        {sreOrAda, with(Facts{TeamsErr: map[string]string{"acme/web": "403"}}, by("ada")), Pass, "1 of 1 approval (ada)", 0},
		"an owner":                               {owners, with(of(web), by("grace")), Pass, "1 of 1 approval (grace)", 0},
		"of an owning team":                      {owners, with(of(web), by("ken", "acme/web")), Pass, "1 of 1 approval (ken)", 0},
		"no owner":                               {owners, with(of(web), by("linus")), Wait, "0 of 1 approval; waiting for 1 more from the owners of the changed files; no owner approved apps/web.yaml (grace, acme/web); approvals by people who aren't asked don't count (linus)", 0},
		"one file of two":                        {owners, with(of(web, api), by("grace")), Wait, "1 of 1 approval (grace); no owner approved apps/api.yaml (linus)", 0},
		"each file by one of its owners":         {owners, with(of(web, api), by("grace"), by("linus")), Pass, "2 approvals, 1 needed (grace, linus)", 0},
		"an author who owns it":                  {owners, func() Facts { f := with(of(web), by("grace")); f.Authors = accounts("grace"); return f }(), Wait, "0 of 1 approval; waiting for 1 more from the owners of the changed files; no owner approved apps/web.yaml (grace, acme/web); authors of the release don't count (grace)", 0},
		"a file that nobody owns":                {owners, with(of(web, nobodys), by("grace")), Pass, "1 of 1 approval (grace)", 0},
		"only such files":                        {owners, with(of(nobodys), by("linus")), Pass, "1 of 1 approval (linus)", 0},
		"a file that nobody owns, strictly":      {strict, with(of(web, nobodys), by("grace")), Wait, "1 of 1 approval (grace); CODEOWNERS names nobody for README.md", 0},
		"a named person instead of an owner":     {ownersOrAda, with(of(web, api), by("ada")), Pass, "1 of 1 approval (ada)", 0},
		"owners that can't be told":              {owners, with(Facts{FilesErr: "no CODEOWNERS"}, by("grace")), Wait, "who owns the changed files can't be told: no CODEOWNERS", 0},
		"owners that nobody read":                {owners, with(Facts{}, by("grace")), Wait, "who owns the changed files isn't read yet", 0},
		"an owning team that can't be read":      {owners, with(Facts{Files: []OwnedFile{web}, FilesRead: true, TeamsErr: map[string]string{"acme/web": "403"}}, by("grace")), Wait, "who is in the team acme/web can't be read: 403", 0},
		"somebody asks for changes":              {Approvals{Count: 1}, rejecting(with(Facts{}, by("ada")), by("grace")), Wait, "1 of 1 approval (ada); changes are asked for by grace, until that review is dismissed", 0},
		"on an older diff":                       {Approvals{Count: 1}, rejecting(with(Facts{}, by("ada")), Approval{User: "grace", MayWrite: true}), Wait, "1 of 1 approval (ada); changes are asked for by grace, until that review is dismissed", 0},
		"somebody who may not write does":        {Approvals{Count: 1}, rejecting(with(Facts{}, by("ada")), Approval{User: "rita", Current: true}), Pass, "1 of 1 approval (ada)", 0},
		"somebody who isn't asked does":          {sre, rejecting(with(Facts{}, by("ada", "acme/sre")), by("grace")), Pass, "1 of 1 approval (ada)", 0},
		"the bot does":                           {Approvals{Count: 1}, rejecting(with(Facts{Bot: Account{Login: "bot"}}, by("ada")), by("bot")), Pass, "1 of 1 approval (ada)", 0},
		"and that doesn't count":                 {unvetoed, rejecting(with(Facts{}, by("ada")), by("grace")), Pass, "1 of 1 approval (ada)", 0},
		"young enough":                           {aged, with(Facts{}, by("ada")), Pass, "1 of 1 approval (ada)", time.Hour},
		"too old":                                {aged, with(Facts{}, Approval{User: "ada", MayWrite: true, Current: true, At: now.Add(-2 * time.Hour)}), Wait, "0 of 1 approval; waiting for 1 more from people who may write to the repository; older than maxAge, and to be given again: ada", 0},
		"two reviews, the newest counts":         {aged, with(Facts{}, Approval{User: "ada", MayWrite: true, Current: true, At: now.Add(-90 * time.Minute)}, by("ada")), Pass, "1 of 1 approval (ada)", time.Hour},
		"in whatever order":                      {aged, with(Facts{}, by("ada"), Approval{User: "ada", MayWrite: true, Current: true, At: now.Add(-90 * time.Minute)}), Pass, "1 of 1 approval (ada)", time.Hour},
		"until the first of two is too old":      {Approvals{Count: 2, MaxAge: 2 * time.Hour}, with(Facts{}, by("ada"), Approval{User: "grace", MayWrite: true, Current: true, At: now.Add(-90 * time.Minute)}, by("linus")), Pass, "3 approvals, 2 needed (ada, grace, linus)", 30 * time.Minute},
		"no owner, of the last that nobody owns": {owners, with(of(api, nobodys), by("ada")), Wait, "0 of 1 approval; waiting for 1 more from the owners of the changed files; no owner approved apps/api.yaml (linus); approvals by people who aren't asked don't count (ada)", 0},
		"only such files, strictly":              {strict, with(of(nobodys), by("linus")), Wait, "0 of 1 approval; waiting for 1 more from the owners of the changed files; CODEOWNERS names nobody for README.md; approvals by people who aren't asked don't count (linus)", 0},
		"only such files, and a named person":    {ownersOrAda, with(of(nobodys), by("linus")), Wait, "0 of 1 approval; waiting for 1 more from the owners of the changed files, ada; approvals by people who aren't asked don't count (linus)", 0},
		"somebody without a name asks":           {Approvals{Count: 1}, rejecting(with(Facts{}, by("ada")), by("")), Pass, "1 of 1 approval (ada)", 0},
		"nobody knows when":                      {aged, with(Facts{}, Approval{User: "ada", MayWrite: true, Current: true}), Wait, "0 of 1 approval; waiting for 1 more from people who may write to the repository; older than maxAge, and to be given again: ada", 0},
	} {
		t.Run(name, func(t *testing.T) {
			c.facts.Now = now
			got := (&Gate{Approvals: &c.gate}).Evaluate(c.facts)
			if got.Outcome != c.want || got.Reason != c.reason {
				t.Errorf("it says %s: %s\nwant    %s: %s", got.Outcome, got.Reason, c.want, c.reason)
			}
			if want := now.Add(c.until); c.until != 0 && !got.Until.Equal(want) || c.until == 0 && !got.Until.IsZero() {
				t.Errorf("it may change at %s", got.Until)
			}
		})
	}
}

// TestDistinctOwners holds that with distinct each gate's own people own the changed files.
func TestDistinctOwners(t *testing.T) {
	owners := func(count int) *Approvals {
		return &Approvals{Count: count, Distinct: true, From: From{Codeowners: true}}
	}
	anybody, ken := &Approvals{Count: 1, Distinct: true}, &Approvals{Count: 1, Distinct: true, From: From{Users: []string{"ken"}}}
	files := func(owners ...[]string) (out []OwnedFile) {
		for i, o := range owners {
			out = append(out, OwnedFile{Path: fmt.Sprintf("f%d", i), Owners: o})
		}
		return out
	}
	many := make([][]string, 40)
	var crowd []string
	for i := range many {
		crowd = append(crowd, fmt.Sprintf("p%d", i))
		many[i] = []string{crowd[i], fmt.Sprintf("p%d", (i+1)%40)}
	}
	var halves [][]string // every five of ten: two gates take six each
	for set := range 1 << 10 {
		if bits.OnesCount(uint(set)) == 5 {
			var half []string
			for i := range 10 {
				if set>>i&1 == 1 {
					half = append(half, crowd[i])
				}
			}
			halves = append(halves, half)
		}
	}
	for name, c := range map[string]struct {
		gates []*Approvals
		files []OwnedFile
		by    []string
		want  string // empty: they pass
	}{
		"both own a file, one would count twice":  {[]*Approvals{owners(1), anybody}, files([]string{"ada"}, []string{"grace"}), []string{"ada", "grace"}, "one more owner"},
		"a third is there":                        {[]*Approvals{owners(1), anybody}, files([]string{"ada"}, []string{"grace"}), []string{"ada", "grace", "ken"}, ""},
		"one owns both":                           {[]*Approvals{owners(1), anybody}, files([]string{"ada"}, []string{"ADA", "grace"}), []string{"ada", "grace"}, ""},
		"two gates of owners":                     {[]*Approvals{owners(1), owners(1)}, files([]string{"ada", "grace"}), []string{"ada", "grace"}, ""},
		"two gates of owners, and only one owner": {[]*Approvals{owners(1), owners(1)}, files([]string{"ada"}, []string{"ada", "grace"}), []string{"ada", "grace"}, "one more owner"},
		"the first choice is asked by name too":   {[]*Approvals{owners(1), ken}, files([]string{"ken", "ada"}), []string{"ada", "ken"}, ""},
		"a named person instead of an owner":      {[]*Approvals{{Count: 1, Distinct: true, From: From{Codeowners: true, Users: []string{"ken"}}}, anybody}, files([]string{"ada"}), []string{"grace", "ken"}, ""},
		"nobody owns anything":                    {[]*Approvals{owners(1), anybody}, files(nil), []string{"ada", "grace"}, ""},
		"more places than people":                 {[]*Approvals{owners(2), anybody}, files([]string{"ada"}), []string{"ada", "grace"}, "of them approved"},
		"a crowd":                                 {[]*Approvals{owners(1), owners(1)}, files(many...), crowd, ""},
		"a crowd that is one too few":             {[]*Approvals{owners(1), owners(1), ken}, files(append(slices.Clone(many), []string{"ken"})...), append(slices.Clone(crowd), "ken"), "one more owner"},
		"more ways than are tried":                {[]*Approvals{owners(1), owners(1)}, files(halves...), crowd[:10], "too many ways"},
		"three gates in a ring of owners":         {[]*Approvals{owners(1), owners(1), owners(1)}, files(many...), crowd, "one more owner"},
	} {
		t.Run(name, func(t *testing.T) {
			f := Facts{ApprovalGates: c.gates, FilesRead: true, Files: c.files}
			for _, user := range c.by {
				f.Approvals = append(f.Approvals, Approval{User: user, MayWrite: true, Current: true})
			}
			passes, said := true, ""
			for _, g := range c.gates {
				r := (&Gate{Approvals: g}).Evaluate(f)
				passes, said = passes && r.Outcome == Pass, said+r.Reason+"\n"
			}
			if passes != (c.want == "") || !strings.Contains(said, c.want) {
				t.Errorf("they pass: %t, and say %s", passes, said)
			}
		})
	}
}

// TestDistinctApprovals holds that with distinct nobody counts in two gates, and that it
// passes where the people can be given to the gates.
func TestDistinctApprovals(t *testing.T) {
	gate := func(count int, users ...string) *Approvals {
		return &Approvals{Count: count, Distinct: true, From: From{Users: users}}
	}
	for name, c := range map[string]struct {
		gates []*Approvals
		by    []string
		want  bool
	}{
		"two for two":                            {[]*Approvals{gate(1), gate(1)}, []string{"ada", "grace"}, true},
		"one for two":                            {[]*Approvals{gate(1), gate(1)}, []string{"ada"}, false},
		"the one who is asked by name":           {[]*Approvals{gate(1), gate(1, "ada")}, []string{"ada", "grace"}, true},
		"all are asked by name in both":          {[]*Approvals{gate(1, "ada"), gate(1, "Ada", "grace")}, []string{"ada", "linus"}, false},
		"they must be moved on":                  {[]*Approvals{gate(1, "ada", "grace", "ken"), gate(1, "ada"), gate(1, "ada", "grace")}, []string{"ada", "grace", "ken"}, true},
		"more places than people":                {[]*Approvals{gate(2), gate(2)}, []string{"ada", "grace", "ken"}, false},
		"gates that aren't distinct":             {[]*Approvals{{Count: 1}, {Count: 1}}, []string{"ada"}, true},
		"a gate that isn't distinct is one, too": {[]*Approvals{gate(1), {Count: 1}}, []string{"ada"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := Facts{ApprovalGates: c.gates}
			for _, user := range c.by {
				f.Approvals = append(f.Approvals, Approval{User: user, MayWrite: true, Current: true})
			}
			passes := true
			for _, g := range c.gates {
				passes = passes && (&Gate{Approvals: g}).Evaluate(f).Outcome == Pass
			}
			if passes != c.want {
				t.Errorf("they pass: %t", passes)
			}
		})
	}
}

func TestApprovalsProblems(t *testing.T) {
	for want, a := range map[string]*Approvals{
		"": {Count: 3, From: From{Users: []string{"ada"}, Teams: []string{"acme/sre"}}},
		"approvals.count: 3 approvals can't come from 2 people":                                           {Count: 3, From: From{Users: []string{"ada", "grace"}}},
		`approvals.from.teams[0]: "sre" is not a team; write organisation/team, like acme/sre, without @`: {Count: 1, From: From{Teams: []string{"sre"}}},
		`approvals.from.teams[1]: "ACME/sre" is given twice`:                                              {Count: 1, From: From{Teams: []string{"acme/sre", "ACME/sre"}}},
		"approvals.from.strict: is about codeowners; set that, or remove it":                              {Count: 1, From: From{Strict: true}},
		"approvals.maxAge: must not be shorter than 0; it is -1h0m0s":                                     {Count: 1, MaxAge: -time.Hour},
	} {
		problems := Problems((&Gate{Approvals: a}).Validate())
		if len(problems) == 0 && want != "" || len(problems) > 0 && problems[0].Error() != want {
			t.Errorf("%+v: %v, want %q", a, problems, want)
		}
	}
}

// drawFrom is whose approval counts, at random, with people and files that fit.
func drawFrom(t *rapid.T) From {
	pick := func(label string, from ...string) []string {
		return rapid.SliceOfNDistinct(rapid.SampledFrom(from), 0, 2, rapid.ID).Draw(t, label)
	}
	f := From{Users: pick("users", "ada", "grace"), Teams: pick("teams", "acme/sre", "acme/web"), Codeowners: rapid.Bool().Draw(t, "codeowners")}
	f.Strict = f.Codeowners && rapid.Bool().Draw(t, "strict")
	return f
}

// TestFloorsOfAnyKindHold is TestApplyFloorHolds for all that an approvals gate can say
// but distinct, which is about the other gates.
func TestFloorsOfAnyKindHold(t *testing.T) {
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	gate := rapid.Custom(func(t *rapid.T) Gate {
		veto := rapid.Bool().Draw(t, "veto")
		return Gate{Approvals: &Approvals{Count: rapid.IntRange(1, 2).Draw(t, "count"), From: drawFrom(t), Veto: &veto, MaxAge: time.Duration(rapid.IntRange(0, 2).Draw(t, "age")) * time.Hour}}
	})
	review := rapid.Custom(func(t *rapid.T) Approval {
		return Approval{User: rapid.SampledFrom([]string{"ada", "grace", "ken"}).Draw(t, "user"), MayWrite: true, Current: true,
			At:    now.Add(-time.Duration(rapid.IntRange(0, 3).Draw(t, "at")) * 45 * time.Minute),
			Teams: rapid.SampledFrom([][]string{nil, {"acme/sre"}, {"acme/web"}}).Draw(t, "in")}
	})
	passed := 0
	rapid.Check(t, func(t *rapid.T) {
		own, floor := rapid.SliceOfN(gate, 0, 2).Draw(t, "gates"), gate.Draw(t, "floor")
		facts := Facts{Now: now, Approvals: rapid.SliceOfNDistinct(review, 0, 3, func(a Approval) string { return a.User }).Draw(t, "approvals"), FilesRead: true}
		facts.Rejections = rapid.SliceOfN(review, 0, 1).Draw(t, "rejections")
		for range rapid.IntRange(0, 2).Draw(t, "files") {
			facts.Files = append(facts.Files, OwnedFile{Path: "x", Owners: rapid.SampledFrom([][]string{nil, {"ada"}, {"acme/web"}, {"ken", "grace"}}).Draw(t, "owners")})
		}
		passes := func(all []Gate) bool {
			return !slices.ContainsFunc(all, func(g Gate) bool { return g.Evaluate(facts).Outcome != Pass })
		}
		raised := ApplyFloor(own, floor.Approvals)
		want := passes(own) && passes([]Gate{floor})
		if passes(raised) != want {
			t.Fatalf("%v raised to %v pass: %t", own, raised, !want)
		}
		if want {
			passed++
		}
	})
	if passed == 0 {
		t.Error("none of them passed")
	}
}
