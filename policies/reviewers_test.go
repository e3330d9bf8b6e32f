package policies

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestWantedReviewers tells from whom a review of the release r2 is requested.
func TestWantedReviewers(t *testing.T) {
	gate := func(count int, names ...string) Gate {
		a := &Approvals{Count: count}
		for _, n := range names {
			if strings.Contains(n, "/") {
				a.From.Teams = append(a.From.Teams, n)
			} else {
				a.From.Users = append(a.From.Users, n)
			}
		}
		return Gate{Approvals: a}
	}
	one := []Gate{gate(1, "ada", "grace", "acme/sre")}
	requested := func(release string, names ...string) ReviewRequests {
		return ReviewRequests{Release: release, Names: names}
	}
	review := func(user string, current bool, teams ...string) []Approval {
		return []Approval{{User: user, MayWrite: true, Current: current, Teams: teams}}
	}
	many := func(n int) (names []string) {
		for i := range n {
			names = append(names, fmt.Sprintf("u%02d", i))
		}
		return names
	}
	for name, c := range map[string]struct {
		gates        []Gate
		facts        Facts
		users, teams []string
	}{
		"whom it names":                           {one, Facts{}, []string{"ada", "grace"}, []string{"acme/sre"}},
		"anybody may":                             {[]Gate{gate(1)}, Facts{}, nil, nil},
		"code owners are the forge's to ask":      {[]Gate{{Approvals: &Approvals{Count: 1, From: From{Codeowners: true}}}}, Facts{FilesRead: true, Files: []OwnedFile{{Path: "a", Owners: []string{"ada"}}}}, nil, nil},
		"another gate":                            {[]Gate{{Freeze: &Freeze{}}}, Facts{}, nil, nil},
		"two gates, each person once":             {[]Gate{gate(1, "ada", "acme/sre"), gate(1, "Ada", "grace", "ACME/sre", "acme/web")}, Facts{}, []string{"ada", "grace"}, []string{"acme/sre", "acme/web"}},
		"a gate that passes":                      {[]Gate{gate(1, "ada", "grace")}, Facts{Approvals: review("ada", true)}, nil, nil},
		"only the gate that doesn't":              {[]Gate{gate(1, "ada", "ken"), gate(1, "grace")}, Facts{Approvals: review("ada", true)}, []string{"grace"}, nil},
		"teams only of the gate that doesn't":     {[]Gate{gate(1, "ada", "acme/web"), gate(1, "acme/sre")}, Facts{Approvals: review("ada", true)}, nil, []string{"acme/sre"}},
		"who reviewed the release before twice":   {one, Facts{ReviewRequests: requested("r1", "acme/sre", "ada", "grace"), Approvals: review("ada", false), Rejections: review("Ada", false)}, []string{"ada"}, nil},
		"who has approved":                        {[]Gate{gate(2, "ada", "grace")}, Facts{Approvals: review("ADA", true)}, []string{"grace"}, nil},
		"who asks for changes":                    {one, Facts{Rejections: review("ada", true)}, []string{"grace"}, []string{"acme/sre"}},
		"an author":                               {one, Facts{Authors: accounts("Ada")}, []string{"grace"}, []string{"acme/sre"}},
		"Liftlock's own account":                  {one, Facts{Bot: Account{Login: "grace"}}, []string{"ada"}, []string{"acme/sre"}},
		"authors that aren't known":               {one, Facts{AuthorsErr: "a push of nobody"}, nil, nil},
		"reviews that aren't known":               {one, Facts{ApprovalsErr: "503"}, nil, nil},
		"a team that can't be read":               {one, Facts{TeamsErr: map[string]string{"acme/sre": "403"}}, []string{"ada", "grace"}, []string{"acme/sre"}},
		"once":                                    {one, Facts{ReviewRequests: requested("r2", "acme/sre", "ada", "grace")}, nil, nil},
		"once for all releases":                   {one, Facts{ReviewRequests: requested("r1", "acme/sre", "ada", "grace")}, nil, nil},
		"who is named since":                      {one, Facts{ReviewRequests: requested("r2", "acme/sre", "Ada")}, []string{"grace"}, nil},
		"who approved the release before":         {one, Facts{ReviewRequests: requested("r1", "acme/sre", "ada", "grace"), Approvals: review("ada", false)}, []string{"ada"}, nil},
		"who asked for changes of it":             {one, Facts{ReviewRequests: requested("r1", "acme/sre", "ada", "grace"), Rejections: review("ada", false)}, []string{"ada"}, nil},
		"who reviewed it for a team":              {one, Facts{ReviewRequests: requested("r1", "acme/sre", "ada", "grace"), Approvals: review("ken", false, "acme/sre")}, []string{"ken"}, nil},
		"who reviewed it and isn't named":         {one, Facts{ReviewRequests: requested("r1", "acme/sre", "ada", "grace"), Approvals: review("ken", false)}, nil, nil},
		"who reviewed it and may not write":       {one, Facts{ReviewRequests: requested("r1", "acme/sre", "ada", "grace"), Approvals: []Approval{{User: "ada"}}}, nil, nil},
		"who reviewed it, once":                   {one, Facts{ReviewRequests: requested("r2", "acme/sre", "ada", "grace"), Approvals: review("ada", false)}, nil, nil},
		"who reviewed it and is an author by now": {one, Facts{ReviewRequests: requested("r1", "acme/sre", "ada", "grace"), Approvals: review("ada", false), Authors: accounts("ada")}, nil, nil},
		"who reviewed before any was requested":   {one, Facts{Approvals: review("ken", false, "acme/sre")}, []string{"ada", "grace"}, []string{"acme/sre"}},
		"who reviewed both":                       {[]Gate{gate(2, "ada", "grace")}, Facts{ReviewRequests: requested("r1", "ada", "grace"), Approvals: append(review("ada", false), review("ada", true)...)}, nil, nil},
		"at most 15":                              {[]Gate{gate(1, append(many(20), "acme/sre")...)}, Facts{}, many(14), []string{"acme/sre"}},
		"at most 15 with those who were asked":    {[]Gate{gate(1, append(many(20), "acme/sre")...)}, Facts{ReviewRequests: requested("r2", many(14)...)}, nil, []string{"acme/sre"}},
		"no more than 15 who reviewed it": {[]Gate{gate(20, many(20)...)}, Facts{ReviewRequests: requested("r1", many(15)...), Approvals: func() (all []Approval) {
			for _, n := range many(20) {
				all = append(all, review(n, false)...)
			}
			return all
		}()}, many(15), nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := WantedReviewers(c.gates, c.facts, "r2")
			if diff := cmp.Diff(Reviewers{Users: c.users, Teams: c.teams}, got); diff != "" {
				t.Errorf("wanted, got:\n%s", diff)
			}
			if got.IsEmpty() != (len(got.Names()) == 0) {
				t.Errorf("it is empty: %v, with %v", got.IsEmpty(), got.Names())
			}
		})
	}
}

// TestRefusedReviewers holds that a gate which waits says from whom the forge takes no request.
func TestRefusedReviewers(t *testing.T) {
	a := Approvals{Count: 1, From: From{Users: []string{"ada", "zed"}, Teams: []string{"acme/sre"}}}
	f := Facts{ReviewRequests: ReviewRequests{Refused: []RefusedReviewer{{"zed", "Not a collaborator."}, {"ACME/sre", "no access"}, {"ken", "no access"}}}}
	want := "0 of 1 approval; waiting for 1 more from acme/sre, ada, zed; the forge takes no request for a review from zed (Not a collaborator), ACME/sre (no access); give them access or change the gate"
	if r := a.evaluate(f); r.Outcome != Wait || r.Reason != want {
		t.Errorf("%s: %s", r.Outcome, r.Reason)
	}
	f.Approvals = []Approval{{User: "ada", MayWrite: true, Current: true}}
	if r := a.evaluate(f); r.Outcome != Pass || !slices.Equal([]string{r.Reason}, []string{"1 of 1 approval (ada)"}) {
		t.Errorf("%s: %s", r.Outcome, r.Reason)
	}
	f.Approvals, a.From = nil, From{Users: []string{"ada"}}
	if r := a.evaluate(f); strings.Contains(r.Reason, "request") {
		t.Errorf("of others: %s", r.Reason)
	}
}
