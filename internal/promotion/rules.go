package promotion

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/liftlock/liftlock/policies"
)

// MergeBehind and MergeBlocked are the forge's words for a merge that rules of its own stop:
// the head must contain its base's tip first, or something else is missing.
const (
	MergeBehind  MergeState = "behind"
	MergeBlocked MergeState = "blocked"
)

// RuleReport says which of the forge's own rules keep a pull request from being merged.
type RuleReport struct {
	Read     bool     `json:"read,omitempty"`     // they were read; else Err says why not, or nobody tried
	Err      string   `json:"err,omitempty"`      // why they can't be read
	Unmet    []string `json:"unmet,omitempty"`    // what is missing for sure, by rule
	Unsure   []string `json:"unsure,omitempty"`   // what else they demand, of which it can't be told whether it is met, by rule
	Hidden   string   `json:"hidden,omitempty"`   // what Liftlock's account doesn't see of them
	Bypassed bool     `json:"bypassed,omitempty"` // Liftlock's account may merge past one of them, or it can't be told; it doesn't
	// OnlyRunning says that what is missing for sure are checks that haven't ended, or begun.
	OnlyRunning bool `json:"onlyRunning,omitempty"`
	// UnreadSince is since when they can't be read; zero: they were, or nobody tried.
	UnreadSince time.Time `json:"unreadSince,omitzero"`
	// DropsApprovals says that the forge drops approvals with every push but one that only
	// brings the branch up to date.
	DropsApprovals bool `json:"dropsApprovals,omitempty"`
}

// MergeRefusal is the forge's answer to a merge that it was sent all the same.
type MergeRefusal struct {
	Why string    `json:"why"`
	At  time.Time `json:"at"`
	// NotifiedSince says that something was heard of the pull request since.
	NotifiedSince bool `json:"notifiedSince,omitempty"`
}

// SentUpdate says that the forge was sent to bring a head up to date, which it does later.
type SentUpdate struct {
	At    time.Time `json:"at"` // the last time
	Tries int       `json:"tries"`
}

const (
	// updateInterval is how long the forge is given to bring a branch up to date, before it is
	// sent that again.
	updateInterval = time.Minute
	// maxUpdateTries is how often it is sent that, before the branch is composed anew instead.
	maxUpdateTries = 3
)

// mergeAttemptInterval is how often a merge is sent at the most that the forge says it blocks.
const mergeAttemptInterval = 10 * time.Minute

// Describe says what is in the way, by the rules' names; empty where they don't tell.
func (r *RuleReport) Describe() string {
	if len(r.Unmet) > 0 {
		return strings.Join(r.Unmet, "; ")
	}
	var parts []string
	if len(r.Unsure) > 0 {
		parts = append(parts, "one of its rules, and which one it doesn't say: "+strings.Join(r.Unsure, "; "))
	}
	if r.Hidden != "" {
		parts = append(parts, "Liftlock doesn't see "+r.Hidden)
	}
	if r.Err != "" {
		parts = append(parts, "its rules can't be read: "+r.Err)
	}
	return strings.Join(parts, "; ")
}

// isBehindAlone says that a pull request could be merged if its branch were up to date, and that it
// is this one's turn to be. A revert doesn't wait its turn. Its head is ours: other heads are never
// merged.
func (p *Pull) isBehindAlone(gates []policies.Result, revert bool, now time.Time) bool {
	isItsTurn := revert || p.UpdatedFirst == 0
	if p.Mergeable != MergeBehind || !isItsTurn || p.isBeingUpdated(now) {
		return false
	}
	return !p.lacksMore() && othersPass(gates)
}

// lacksMore says that the forge demands more of a pull request than that it is up to date and that
// its checks end. Bringing it up to date wouldn't make it ready.
func (p *Pull) lacksMore() bool {
	return p.Rules.Read && len(p.Rules.Unmet) > 0 && !p.Rules.OnlyRunning
}

// isBeingUpdated says that the forge was sent to bring the head up to date just now.
func (p *Pull) isBeingUpdated(now time.Time) bool {
	return p.SentUpdate != nil && now.Before(p.SentUpdate.At.Add(updateInterval))
}

// keepsApprovals says that a branch is to be brought up to date so that the forge doesn't drop
// approvals that there are, where the forge hasn't failed to.
func (p *Pull) keepsApprovals() bool {
	return p.Rules.DropsApprovals && p.hasApproval() && (p.SentUpdate == nil || p.SentUpdate.Tries < maxUpdateTries)
}

// hasApproval says that somebody who may write approved the pull request as it is: the forge asks no more.
func (p *Pull) hasApproval() bool {
	return slices.ContainsFunc(p.Review.Approvals, func(a policies.Approval) bool { return a.Current && a.MayWrite })
}

// isBlockedWrongly says that the forge says that it blocks a merge, and no known rule of its own
// explains it, while every gate passes. Then the merge is sent, and the refusal has the words. It
// is never so where Liftlock's account may merge past a rule, or doesn't see all of them: the merge
// might pass rules that keep others from merging. Nor is it where the merge would join the forge's
// merge queue again, which dropped the pull request.
func (p *Pull) isBlockedWrongly(gates []policies.Result, now time.Time) bool {
	if p.Mergeable != MergeBlocked || p.Draft || p.isDropped() {
		return false
	}
	seen := p.Rules.Read && p.Rules.Hidden == "" && !p.Rules.Bypassed
	if !seen || len(p.Rules.Unmet) > 0 || !othersPass(gates) {
		return false
	}
	return p.Refusal == nil || p.Refusal.NotifiedSince && !now.Before(p.Refusal.At.Add(mergeAttemptInterval))
}

// othersPass says that all gates pass but the one of the forge's own opinion.
func othersPass(gates []policies.Result) bool {
	return !slices.ContainsFunc(gates, func(g policies.Result) bool { return g.Outcome != policies.Pass && g.Gate != GateMergeable })
}

// behindReason says what becomes of a pull request that isn't up to date with its base; manual
// says that a person merges it.
func (p *Pull) behindReason(manual, revert bool, now time.Time) string {
	why := "it isn't up to date with the branch that it is merged into, which the forge demands"
	if manual {
		// Nobody knows when its turn comes, and a push costs a run of the checks.
		return why + "; bring it up to date there before you merge it"
	}
	if p.lacksMore() {
		return why + "; it is brought up to date once the forge's other rules are met: " + p.Rules.Describe()
	}
	if p.isBeingUpdated(now) {
		return why + "; the forge was sent to bring it up to date, and does it in a moment"
	}
	if p.UpdatedFirst != 0 && !revert {
		return fmt.Sprintf("%s; #%d is brought up to date and merged first", why, p.UpdatedFirst)
	}
	return why + "; it is brought up to date once every other gate passes and its turn has come"
}

// blockedReason says why the forge doesn't let a pull request be merged.
func (p *Pull) blockedReason() string {
	word := cmp.Or(p.MergeNote, string(p.Mergeable))
	if p.Refusal != nil && len(p.Rules.Unmet) == 0 {
		return "the forge blocks the merge: " + p.Refusal.Why
	}
	if p.Draft {
		return "it is a draft; mark it as ready for review to have it merged"
	}
	why := p.Rules.Describe()
	switch {
	case why == "":
		return "the forge blocks the merge: " + word
	case word == string(p.Mergeable): // says nothing that the rules don't
		return "the forge blocks the merge by " + why
	}
	return "the forge blocks the merge (" + word + ") by " + why
}
