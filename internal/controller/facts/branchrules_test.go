package facts

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/store"
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
			pullDetail{hasReviews: true, hasChecks: true, reviews: []forge.Review{approved("liftlock-bot")}, checks: []forge.Check{check("x", forge.CheckPassed, "success"), check("y", forge.CheckSkipped, "skipped")}},
			`ruleset "a": needs 1 approval, code owners among them; ruleset "b": check "z" is missing`},
		{"of two checks with one name the one that failed counts", []forge.RuleSet{{Name: "s", Checks: []string{"x"}}},
			pullDetail{hasChecks: true, checks: []forge.Check{check("x", forge.CheckPassed, "success"), check("x", forge.CheckFailed, "timed_out")}}, `s: check "x" ended with timed_out`},
		{"any check", []forge.RuleSet{{Name: "s", AnyChecks: true}}, pullDetail{hasChecks: true, checks: []forge.Check{check("x", forge.CheckPending, "running")}}, `s: check "x" is running`},
		{"no check at all", []forge.RuleSet{{Name: "s", AnyChecks: true}}, pullDetail{hasChecks: true}, "s: no pipeline succeeded"},
		{"who may only read asks for changes", []forge.RuleSet{{Name: "s", Approvals: 1}}, pullDetail{hasReviews: true, reviews: []forge.Review{approved("grace"), {User: "eve", Rejected: true, MayWrite: new(bool)}}}, ""},
		{"a rejection where no approval is needed", []forge.RuleSet{{Name: "s"}}, pullDetail{hasReviews: true, reviews: []forge.Review{{User: "grace", Rejected: true}}}, ""},
		{"who may only read approves", []forge.RuleSet{{Name: "s", Approvals: 1}}, pullDetail{hasReviews: true, reviews: []forge.Review{{User: "eve", Approved: true, MayWrite: new(bool)}}}, "s: needs 1 approval"},
		{"behind", []forge.RuleSet{{Name: "s", UpToDate: true}}, pullDetail{pr: forge.PullRequest{Base: "main", Mergeable: forge.MergeableBehind}}, "s: the branch isn't up to date with main"},
		{"what wasn't read is no reason", []forge.RuleSet{{Name: "s", Approvals: 2, Checks: []string{"x"}}}, pullDetail{hasReviews: true, reviewsErr: "no", hasChecks: true, checksErr: "no"}, ""},
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

// unreadableRules is a forge whose rules can't be read.
type unreadableRules struct {
	forge.Forge
	err error
}

func (f unreadableRules) Rules(context.Context, forge.Repo, string) (*forge.BranchRules, error) {
	return nil, f.err
}

// TestRulesChanged: what can't be read for a reason that passes is no change of the rules.
func TestRulesChanged(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	pulls, _, r := newCachedPulls(t, now)
	o := &ruleGatherer{now: func() time.Time { return now }, store: pulls.store.(*store.Store), unreadSince: map[string]time.Time{}}
	p := &OpenPull{PR: &forge.PullRequest{Number: 7, Base: "main"}, judgedBy: &readRules{Rules: &forge.BranchRules{}}}
	for kind, passes := range map[error]bool{forge.ErrRetryable: true, forge.ErrRateLimited: true, forge.ErrForbidden: false} {
		r.Forge = unreadableRules{err: &forge.Error{Op: "read the rules", Kind: kind}}
		changed, err := o.RulesChanged(t.Context(), r, p)
		if errors.Is(err, kind) != passes || changed == passes {
			t.Errorf("%v: changed %t, %v", kind, changed, err)
		}
	}
}
