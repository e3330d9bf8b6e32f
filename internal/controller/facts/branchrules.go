package facts

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/wording"
	"github.com/liftlock/liftlock/policies"
)

const (
	// rulesMaxAge is how long what a forge demands of a branch is remembered: events of a
	// change drop it before, and not every forge sends them.
	rulesMaxAge = time.Hour
	// unreadRulesMaxAge is how long it is remembered that it can't be read.
	unreadRulesMaxAge = 10 * time.Minute
	// unreadRulesRetry is when rules are read again that couldn't be for a reason that passes.
	unreadRulesRetry = time.Minute
)

// readRules is what was read of a branch's rules.
type readRules struct {
	Rules *forge.BranchRules `json:"rules,omitempty"`
	Err   string             `json:"err,omitempty"` // why they can't be read, where trying again at once can't help
	At    time.Time          `json:"at"`
	since time.Time          // since when they can't be read
	retry time.Time          // when they are read again, as why they can't be may pass; zero: once they are old
	cause error              // of retry; nil where that is zero
}

var branchRules = record.Declare[record.InRepository, readRules](record.Declaration{
	Name: "branch-rules", Owner: "controller/facts", Lifetime: record.UntilDropped,
	Doc: "What the forge demands of merges into the branch, as it was read last.",
})

// ForgetBranchRules forgets what the forge demands of merges into a repository's branches.
func ForgetBranchRules(ctx context.Context, tx *store.Tx, repo string) error {
	known, err := branchRules.List(ctx, tx, record.Within{Repo: repo})
	if err != nil {
		return err
	}
	for i := range known {
		if err := branchRules.Drop(ctx, tx, known[i].About); err != nil {
			return err
		}
	}
	return nil
}

// ruleGatherer knows what forges themselves demand before a merge.
type ruleGatherer struct {
	now   func() time.Time
	store record.ReadWriter
	mu    sync.Mutex
	// unreadSince is since when the rules of branches can't be read, by branch.
	unreadSince map[record.InRepository]time.Time
}

// addUnreadSince fills in since when rules can't be read, as far as this process knows.
func (rg *ruleGatherer) addUnreadSince(about record.InRepository, known *readRules) {
	rg.mu.Lock()
	defer rg.mu.Unlock()
	if known.Rules != nil {
		delete(rg.unreadSince, about)
		return
	}
	if rg.unreadSince[about].IsZero() {
		rg.unreadSince[about] = known.At
	}
	known.since = rg.unreadSince[about]
}

// branchRules is what the forge demands of a branch, as of an hour ago at the most.
func (rg *ruleGatherer) branchRules(ctx context.Context, r *branch.Repository, branch string) (*readRules, error) {
	about := record.OfBranch(r.ID, branch)
	stored, found, err := branchRules.Get(ctx, rg.store, about)
	if err != nil {
		return nil, err
	}
	if known := &stored; found {
		maxAge := rulesMaxAge
		if known.Rules == nil {
			maxAge = unreadRulesMaxAge
		}
		if rg.now().Sub(known.At) < maxAge {
			rg.addUnreadSince(about, known)
			return known, nil
		}
	}
	return rg.readRules(ctx, r, branch)
}

// RulesChanged reads anew what the forge demands of a pull request's base, and says whether that
// is something else than what the pull request was judged by. That they can't be read for a reason
// that passes is the forge's error, and says nothing of them.
func (rg *ruleGatherer) RulesChanged(ctx context.Context, r *branch.Repository, p *OpenPull) (bool, error) {
	now, err := rg.readRules(ctx, r, p.PR.Base)
	if err != nil {
		return false, err
	}
	if now.cause != nil {
		return false, now.cause
	}
	return p.judgedBy == nil || now.Err != p.judgedBy.Err || !reflect.DeepEqual(now.Rules, p.judgedBy.Rules), nil
}

// readRules reads what the forge demands of a branch and remembers it. Rules only explain, so they
// hold nothing else up: that they can't be read now is no error, and isn't remembered.
func (rg *ruleGatherer) readRules(ctx context.Context, r *branch.Repository, branch string) (known *readRules, err error) {
	about := record.OfBranch(r.ID, branch)
	known = &readRules{At: rg.now()}
	if known.Rules, err = r.Forge.Rules(ctx, r.Name, branch); err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		known.Rules, known.Err = nil, err.Error()
	}
	rg.addUnreadSince(about, known)
	if err != nil && forge.IsRetryable(err) {
		known.retry, known.cause = known.At.Add(unreadRulesRetry), err
		if after := forge.RetryAfter(err); after.After(known.retry) {
			known.retry = after
		}
		return known, nil
	}
	if known.Rules != nil && known.Rules.Queue() != nil {
		if err := MergesByQueue.Put(ctx, rg.store, record.Repository(r.ID), true); err != nil {
			return nil, err
		}
	}
	return known, branchRules.Put(ctx, rg.store, about, *known)
}

// isStopped says that the forge keeps a pull request from being merged by rules of its own.
func isStopped(pr *forge.PullRequest) bool {
	lacksSomething := pr.Mergeable == forge.MergeableBlocked || pr.Mergeable == forge.MergeableBehind
	return lacksSomething && pr.State == forge.Open && pr.Queue == forge.NotQueued && !pr.Draft
}

// addRules fills in which of the forge's own rules keep a pull request from being merged, where
// some do.
func (rg *ruleGatherer) addRules(ctx context.Context, r *branch.Repository, p *OpenPull, d *pullDetail, bot policies.Account) error {
	if !isStopped(p.PR) {
		return nil
	}
	known, err := rg.branchRules(ctx, r, p.PR.Base)
	if err != nil {
		return fmt.Errorf("read what the forge demands of merges into %s: %w", p.PR.Base, err)
	}
	p.judgedBy = known
	p.Rules = reportRules(known, d, bot, r.Unsigned)
	return nil
}

// reportRules says which rules a head doesn't meet, as far as that can be told from its reviews
// and checks; unsigned is Repository.Unsigned.
func reportRules(known *readRules, d *pullDetail, bot policies.Account, unsigned string) promotion.RuleReport {
	report := promotion.RuleReport{Err: known.Err, UnreadSince: known.since}
	if known.Rules == nil {
		return report
	}
	report.Read, report.Hidden = true, known.Rules.Hidden
	report.Bypassed, report.OnlyRunning = known.Rules.IsBypassed() || known.Rules.IsMaybeBypassed(), true
	for i := range known.Rules.Sets {
		set := &known.Rules.Sets[i]
		unmet, ended := listUnmet(set, d, bot)
		if set.Signatures && unsigned != "" {
			unmet, ended = append(unmet, "all commits must be signed, and "+unsigned), true
		}
		if len(unmet) > 0 {
			report.Unmet = append(report.Unmet, set.Name+": "+strings.Join(unmet, "; "))
		}
		report.OnlyRunning = report.OnlyRunning && !ended
		report.DropsApprovals = report.DropsApprovals || set.DropsApprovals
		if open := listUnknown(set); len(open) > 0 {
			report.Unsure = append(report.Unsure, set.Name+": "+strings.Join(open, ", "))
		}
	}
	report.OnlyRunning = report.OnlyRunning && len(report.Unmet) > 0
	return report
}

// listUnmet lists what of a set a head lacks for sure; ended says that some of it doesn't come
// about by checks that run still.
func listUnmet(set *forge.RuleSet, d *pullDetail, bot policies.Account) (unmet []string, ended bool) {
	if set.Approvals > 0 && d.reviews.Read && d.reviews.Err == "" {
		given, against := 0, ""
		for _, v := range d.reviews.All {
			switch {
			case v.MayWrite != nil && !*v.MayWrite: // counts for nothing
			case v.Rejected:
				against = v.User
			case v.Approved && !bot.Matches(policies.Account{ID: v.UserID, Login: v.User}):
				given++
			}
		}
		switch {
		case against != "":
			unmet = append(unmet, against+" asked for changes")
		case given < set.Approvals:
			words := "needs " + wording.Count(set.Approvals, "approval")
			if given > 0 {
				words += fmt.Sprintf(" and has %d", given)
			}
			if set.CodeOwners {
				words += ", code owners among them"
			}
			unmet = append(unmet, words)
		}
	}
	ended = len(unmet) > 0
	if d.checks.Read && d.checks.Err == "" {
		missing, failed := listUnmetChecks(set, d.checks.All)
		unmet, ended = append(unmet, missing...), ended || failed
	}
	if set.UpToDate && d.pr.Mergeable == forge.MergeableBehind {
		unmet = append(unmet, "the branch isn't up to date with "+d.pr.Base)
	}
	return unmet, ended
}

// listUnmetChecks lists the required checks that didn't succeed, and says whether one failed. Among
// several with one name the worst counts.
func listUnmetChecks(set *forge.RuleSet, checks []forge.Check) (unmet []string, failed bool) {
	describe := func(c forge.Check) string {
		if c.State == forge.CheckPending {
			return fmt.Sprintf("check %q is %s", c.Name, c.Word)
		}
		failed = true
		return fmt.Sprintf("check %q ended with %s", c.Name, c.Word)
	}
	isPassed := func(c forge.Check) bool { return c.State == forge.CheckPassed || c.State == forge.CheckSkipped }
	for _, name := range set.Checks {
		of := func(c forge.Check) bool { return c.Name == name }
		if !slices.ContainsFunc(checks, of) {
			unmet = append(unmet, fmt.Sprintf("check %q is missing", name))
		} else if i := slices.IndexFunc(checks, func(c forge.Check) bool { return of(c) && !isPassed(c) }); i >= 0 {
			unmet = append(unmet, describe(checks[i]))
		}
	}
	if set.AnyChecks {
		switch i := slices.IndexFunc(checks, func(c forge.Check) bool { return !isPassed(c) }); {
		case len(checks) == 0:
			unmet = append(unmet, "no pipeline succeeded")
		case i >= 0:
			unmet = append(unmet, describe(checks[i]))
		}
	}
	return unmet, failed
}

// listUnknown lists what of a set can't be told from a pull request's reviews and checks.
func listUnknown(set *forge.RuleSet) []string {
	var open []string
	for _, demand := range []struct {
		is    bool
		words string
	}{
		{set.CodeOwners, "code owners approve"}, {set.TeamReviews, "the teams that it names approve"},
		{set.LastPushApproval, "somebody else than who pushed last approves"}, {set.Threads, "all conversations are resolved"},
		{set.Signatures, "all commits are signed"}, {set.SignedMerges, "the forge itself signs the merge"},
		{set.LinearHistory, "no merge commits"},
		{len(set.Deployments) > 0, "it was deployed to " + strings.Join(set.Deployments, ", ")},
		{len(set.Mergers) > 0, "merged by " + strings.Join(set.Mergers, ", ")},
	} {
		if demand.is {
			open = append(open, demand.words)
		}
	}
	return append(open, set.Others...)
}
