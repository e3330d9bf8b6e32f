package policies

import "testing"

// TestApprovalsInBrief holds that a headline names who is waited for, and how many have approved.
func TestApprovalsInBrief(t *testing.T) {
	from := func(count int, f From) *Approvals { return &Approvals{Count: count, From: f} }
	several := From{Users: []string{"ada", "grace", "linus", "mary", "ken"}}
	for want, c := range map[string]struct {
		gate  *Approvals
		facts Facts
	}{
		"grace (0 of 1)":                           {from(1, From{Users: []string{"grace"}}), Facts{}},
		"grace (1 of 2)":                           {from(2, From{Users: []string{"ada", "grace"}}), Facts{Approvals: approved("ada")}},
		"ada, grace, linus and 2 more (0 of 2)":    {from(2, several), Facts{}},
		"1 approval (0 of 1)":                      {from(1, From{}), Facts{}},
		"2 approvals (1 of 3)":                     {from(3, From{}), Facts{Approvals: approved("ada")}},
		"acme/sre (0 of 2)":                        {from(2, From{Teams: []string{"acme/sre"}}), Facts{}},
		"the owners of the changed files (0 of 1)": {from(1, From{Codeowners: true}), Facts{FilesRead: true}},
		"grace, who asked for changes":             {from(1, several), Facts{Approvals: approved("ada"), Rejections: approved("grace")}},
		"":                                         {from(1, From{}), Facts{Approvals: approved("ada")}},
	} {
		r := (&Gate{Approvals: c.gate}).Evaluate(c.facts)
		if r.Brief != want {
			t.Errorf("%s: the headline waits for %q, want %q", r.Reason, r.Brief, want)
		}
	}
}
