package facts

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts/people"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
	"github.com/liftlock/liftlock/policies"
)

// TestReportRules holds what people read of the forge's own rules.
func TestReportRules(t *testing.T) {
	check := func(name string, state forge.CheckState, word string) forge.Check {
		return forge.Check{Name: name, State: state, Word: word}
	}
	approved := func(who string) forge.Review { return forge.Review{User: who, Approved: true} }
	for _, c := range []struct {
		name string
		sets []forge.RuleSet
		d    pullDetail
		want string
	}{
		{"no rules", nil, pullDetail{}, ""},
		{"two sets", []forge.RuleSet{{Name: `ruleset "a"`, Approvals: 1, CodeOwners: true}, {Name: `ruleset "b"`, Checks: []string{"x", "y", "z"}}},
			pullDetail{reviews: people.Reviews{Read: true, All: []forge.Review{approved("liftlock-bot")}}, checks: people.Checks{Read: true, All: []forge.Check{check("x", forge.CheckPassed, "success"), check("y", forge.CheckSkipped, "skipped")}}},
			`ruleset "a": needs 1 approval, code owners among them; ruleset "b": check "z" is missing`},
		{"of two checks with one name the one that failed counts", []forge.RuleSet{{Name: "s", Checks: []string{"x"}}},
			pullDetail{checks: people.Checks{Read: true, All: []forge.Check{check("x", forge.CheckPassed, "success"), check("x", forge.CheckFailed, "timed_out")}}}, `s: check "x" ended with timed_out`},
		{"any check", []forge.RuleSet{{Name: "s", AnyChecks: true}}, pullDetail{checks: people.Checks{Read: true, All: []forge.Check{check("x", forge.CheckPending, "running")}}}, `s: check "x" is running`},
		{"no check at all", []forge.RuleSet{{Name: "s", AnyChecks: true}}, pullDetail{checks: people.Checks{Read: true}}, "s: no pipeline succeeded"},
		{"who may only read asks for changes", []forge.RuleSet{{Name: "s", Approvals: 1}}, pullDetail{reviews: people.Reviews{Read: true, All: []forge.Review{approved("grace"), {User: "eve", Rejected: true, MayWrite: new(bool)}}}}, ""},
		{"a rejection where no approval is needed", []forge.RuleSet{{Name: "s"}}, pullDetail{reviews: people.Reviews{Read: true, All: []forge.Review{{User: "grace", Rejected: true}}}}, ""},
		{"who may only read approves", []forge.RuleSet{{Name: "s", Approvals: 1}}, pullDetail{reviews: people.Reviews{Read: true, All: []forge.Review{{User: "eve", Approved: true, MayWrite: new(bool)}}}}, "s: needs 1 approval"},
		{"behind", []forge.RuleSet{{Name: "s", UpToDate: true}}, pullDetail{pr: forge.PullRequest{Base: "main", Mergeable: forge.MergeableBehind}}, "s: the branch isn't up to date with main"},
		{"what wasn't read is no reason", []forge.RuleSet{{Name: "s", Approvals: 2, Checks: []string{"x"}}}, pullDetail{reviews: people.Reviews{Read: true, Err: "no"}, checks: people.Checks{Read: true, Err: "no"}}, ""},
		{"who approves may write for sure, and one approval is too few", []forge.RuleSet{{Name: "s", Approvals: 2}}, pullDetail{reviews: people.Reviews{Read: true, All: []forge.Review{{User: "grace", Approved: true, MayWrite: new(true)}, {User: "eve"}}}}, "s: needs 2 approvals and has 1"},
		{"as many approvals as it needs", []forge.RuleSet{{Name: "s", Approvals: 2}}, pullDetail{reviews: people.Reviews{Read: true, All: []forge.Review{approved("grace"), approved("ada")}}}, ""},
		{"reviews that nobody read", []forge.RuleSet{{Name: "s", Approvals: 2}}, pullDetail{}, ""},
		{"up to date, as it needs to be", []forge.RuleSet{{Name: "s", UpToDate: true}}, pullDetail{pr: forge.PullRequest{Base: "main", Mergeable: forge.MergeableBlocked}}, ""},
		{"behind, which nobody minds", []forge.RuleSet{{Name: "s"}}, pullDetail{pr: forge.PullRequest{Base: "main", Mergeable: forge.MergeableBehind}}, ""},
		{"any check, and all passed", []forge.RuleSet{{Name: "s", AnyChecks: true}}, pullDetail{checks: people.Checks{Read: true, All: []forge.Check{check("x", forge.CheckPassed, "success"), check("y", forge.CheckSkipped, "skipped")}}}, ""},
		{"another check failed", []forge.RuleSet{{Name: "s", Checks: []string{"x"}}}, pullDetail{checks: people.Checks{Read: true, All: []forge.Check{check("y", forge.CheckFailed, "failure"), check("x", forge.CheckPassed, "success")}}}, ""},
		{"commits that are signed", []forge.RuleSet{{Name: "s", SignedMerges: true}}, pullDetail{}, "one of its rules, and which one it doesn't say: s: the forge itself signs the merge"},
		{"what can't be told", []forge.RuleSet{{Name: "s", CodeOwners: true, TeamReviews: true, LastPushApproval: true, Threads: true, Signatures: true, LinearHistory: true, Deployments: []string{"a", "b"}, Mergers: []string{"ada"}, Others: []string{"workflows"}}}, pullDetail{},
			"one of its rules, and which one it doesn't say: s: code owners approve, the teams that it names approve, somebody else than who pushed last approves, all conversations are resolved, all commits are signed, no merge commits, it was deployed to a, b, merged by ada, workflows"},
	} {
		t.Run(c.name, func(t *testing.T) {
			report := reportRules(&readRules{Rules: &forge.BranchRules{Sets: c.sets}}, &c.d, policies.Account{Login: "liftlock-bot"}, "")
			if got := report.Describe(); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
	if report := reportRules(&readRules{Rules: &forge.BranchRules{Hidden: "the rest"}}, &pullDetail{}, policies.Account{}, ""); report.Describe() != "Liftlock doesn't see the rest" {
		t.Errorf("hidden: %+v", report)
	}
	signed := []forge.RuleSet{{Name: "s", Signatures: true}}
	if report := reportRules(&readRules{Rules: &forge.BranchRules{Sets: signed}}, &pullDetail{}, policies.Account{}, "ours aren't"); report.Describe() != "s: all commits must be signed, and ours aren't" || report.OnlyRunning {
		t.Errorf("unsigned: %+v", report)
	}
	if report := reportRules(&readRules{Err: "forbidden"}, &pullDetail{}, policies.Account{}, ""); report.Describe() != "its rules can't be read: forbidden" {
		t.Errorf("unread: %+v", report)
	}
}

// TestRulesThatOnlyWait tells what comes about by itself, by checks that run still and by bringing the
// branch up to date, from what somebody has to do.
func TestRulesThatOnlyWait(t *testing.T) {
	checks, approvals := forge.RuleSet{Name: "checks", Checks: []string{"x"}}, forge.RuleSet{Name: "approvals", Approvals: 1}
	state := func(s forge.CheckState) []forge.Check { return []forge.Check{{Name: "x", State: s, Word: string(s)}} }
	for name, c := range map[string]struct {
		sets []forge.RuleSet
		d    pullDetail
		want bool
	}{
		"a check runs":                    {[]forge.RuleSet{checks}, pullDetail{checks: people.Checks{Read: true, All: state(forge.CheckPending)}}, true},
		"a check hasn't begun":            {[]forge.RuleSet{checks}, pullDetail{checks: people.Checks{Read: true}}, true},
		"a check failed":                  {[]forge.RuleSet{checks}, pullDetail{checks: people.Checks{Read: true, All: state(forge.CheckFailed)}}, false},
		"any check failed":                {[]forge.RuleSet{{Name: "any", AnyChecks: true}}, pullDetail{checks: people.Checks{Read: true, All: state(forge.CheckFailed)}}, false},
		"nothing is missing":              {[]forge.RuleSet{checks}, pullDetail{checks: people.Checks{Read: true, All: state(forge.CheckPassed)}}, false},
		"an approval is missing, too":     {[]forge.RuleSet{approvals, checks}, pullDetail{reviews: people.Reviews{Read: true}, checks: people.Checks{Read: true}}, false},
		"of one set an approval":          {[]forge.RuleSet{{Name: "both", Approvals: 1, Checks: []string{"x"}}}, pullDetail{reviews: people.Reviews{Read: true}, checks: people.Checks{Read: true}}, false},
		"it is behind":                    {[]forge.RuleSet{{Name: "strict", UpToDate: true}}, pullDetail{pr: forge.PullRequest{Mergeable: forge.MergeableBehind}}, true},
		"signatures, which ours have not": {[]forge.RuleSet{checks, {Name: "signed", Signatures: true}}, pullDetail{checks: people.Checks{Read: true}}, false},
	} {
		if report := reportRules(&readRules{Rules: &forge.BranchRules{Sets: c.sets}}, &c.d, policies.Account{}, "they aren't signed"); report.OnlyRunning != c.want || !report.Read {
			t.Errorf("%s: %+v", name, report)
		}
	}
}

// TestRulesAsAWhole holds what is so as soon as one of the rules says so.
func TestRulesAsAWhole(t *testing.T) {
	since := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		set             forge.RuleSet
		bypassed, drops bool
	}{
		"no more":                    {},
		"Liftlock may bypass it":     {set: forge.RuleSet{Bypassed: true}, bypassed: true},
		"whether it may isn't known": {set: forge.RuleSet{MaybeBypassed: true}, bypassed: true},
		"it drops approvals":         {set: forge.RuleSet{DropsApprovals: true}, drops: true},
	} {
		for i := range 2 { // whichever comes first
			sets := []forge.RuleSet{{Name: "another"}, {Name: "another"}}
			sets[i] = c.set
			report := reportRules(&readRules{Rules: &forge.BranchRules{Sets: sets}, since: since}, &pullDetail{}, policies.Account{}, "they aren't signed")
			if report.Bypassed != c.bypassed || report.DropsApprovals != c.drops || !report.UnreadSince.Equal(since) || len(report.Unmet) > 0 {
				t.Errorf("%s: %+v", name, report)
			}
		}
	}
	if report := reportRules(&readRules{Err: "forbidden", since: since}, &pullDetail{}, policies.Account{}, ""); report.Read || report.OnlyRunning || !report.UnreadSince.Equal(since) {
		t.Errorf("what can't be read is %+v", report)
	}
}

// TestIsStopped asks for the forge's rules only where they are what keeps a merge back.
func TestIsStopped(t *testing.T) {
	for name, c := range map[string]struct {
		change func(pr *forge.PullRequest)
		want   bool
	}{
		"blocked":           {func(pr *forge.PullRequest) {}, true},
		"behind":            {func(pr *forge.PullRequest) { pr.Mergeable = forge.MergeableBehind }, true},
		"it can be merged":  {func(pr *forge.PullRequest) { pr.Mergeable = forge.MergeableYes }, false},
		"it conflicts":      {func(pr *forge.PullRequest) { pr.Mergeable = forge.MergeableDirty }, false},
		"it isn't known":    {func(pr *forge.PullRequest) { pr.Mergeable = forge.MergeableUnknown }, false},
		"it was merged":     {func(pr *forge.PullRequest) { pr.State = forge.Merged }, false},
		"it is in a queue":  {func(pr *forge.PullRequest) { pr.Queue = forge.Queued }, false},
		"it is a draft yet": {func(pr *forge.PullRequest) { pr.Draft = true }, false},
	} {
		pr := forge.PullRequest{State: forge.Open, Queue: forge.NotQueued, Mergeable: forge.MergeableBlocked}
		c.change(&pr)
		if got := isStopped(&pr); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// unreadableRules is a forge whose rules can't be read.
type unreadableRules struct {
	forge.Forge
	err error
}

func (u unreadableRules) Rules(context.Context, forge.Repo, string) (*forge.BranchRules, error) {
	return nil, u.err
}

// TestRulesChanged: what can't be read for a reason that passes is no change of the rules.
func TestRulesChanged(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	pulls, _, r := newCachedPulls(t, now)
	o := &ruleGatherer{now: func() time.Time { return now }, store: pulls.store.(*store.Store), unreadSince: map[record.InRepository]time.Time{}}
	p := &OpenPull{PR: &forge.PullRequest{Number: 7, Base: "main"}, judgedBy: &readRules{Rules: &forge.BranchRules{}}}
	for kind, passes := range map[error]bool{forge.ErrRetryable: true, forge.ErrRateLimited: true, forge.ErrForbidden: false} {
		r.Forge = unreadableRules{err: &forge.Error{Op: "read the rules", Kind: kind}}
		changed, err := o.RulesChanged(t.Context(), r, p)
		if errors.Is(err, kind) != passes || changed == passes {
			t.Errorf("%v: changed %t, %v", kind, changed, err)
		}
	}
}
