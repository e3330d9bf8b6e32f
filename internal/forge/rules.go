package forge

import (
	"slices"
	"time"
)

// BranchRules are what a forge itself demands before a pull request into a branch merges.
type BranchRules struct {
	Sets []RuleSet // those that are in force, in the forge's order; none: it demands nothing that is known
	// Hidden says what can't be read, and what would let it be; empty: all was read.
	Hidden string
}

// RuleSet is what one place demands of a branch: a ruleset, the branch's protection, or the
// settings of its project.
type RuleSet struct {
	Name string // for people, with what it is: ruleset "main"; branch protection
	// Bypassed says that the credentials may merge whatever the set demands.
	Bypassed bool
	// MaybeBypassed says that they may merge whatever a part of it demands, or that it can't be
	// told whether they may.
	MaybeBypassed bool

	Approvals        int      // approving reviews by people who may write
	CodeOwners       bool     // the changed files' owners approve too
	TeamReviews      bool     // teams that the set names review too
	LastPushApproval bool     // somebody else than who pushed last approves
	DropsApprovals   bool     // a push drops the approvals from before
	Threads          bool     // conversations are resolved
	Checks           []string // that must succeed on the head, by name
	AnyChecks        bool     // what runs on the head must succeed, whatever it is
	UpToDate         bool     // the head contains the base branch's tip
	Signatures       bool     // every commit is signed, and the forge verifies it
	SignedMerges     bool     // the forge signs its merge commits, whoever made the commits
	LinearHistory    bool     // no merge commits
	Deployments      []string // environments into which the head was deployed
	Methods          []string // of merging (merge, squash, rebase) that are allowed; none: all
	Mergers          []string // who alone may merge, in the forge's words; none: who may write
	Others           []string // what else it demands, in the forge's words
	Queue            *QueueRule
}

// QueueRule says that merges go through the forge's merge queue.
type QueueRule struct {
	Method  string        // merge, squash or rebase, whatever a pull request's merge wants; empty: what that wants
	Timeout time.Duration // how long its checks may take; zero: not known
}

// Queue is the rule that has merges go through the forge's queue; nil where there is none.
func (b *BranchRules) Queue() *QueueRule {
	for i := range b.Sets {
		if q := b.Sets[i].Queue; q != nil {
			return q
		}
	}
	return nil
}

// Any says whether a set that isn't bypassed demands something.
func (b *BranchRules) Any(demands func(*RuleSet) bool) bool {
	return slices.ContainsFunc(b.Sets, func(s RuleSet) bool { return !s.Bypassed && demands(&s) })
}

// IsMaybeBypassed says that the credentials may merge past a part of one of the sets, or that it
// can't be told.
func (b *BranchRules) IsMaybeBypassed() bool {
	return slices.ContainsFunc(b.Sets, func(s RuleSet) bool { return s.MaybeBypassed })
}

// IsBypassed says that the credentials may merge past one of the sets.
func (b *BranchRules) IsBypassed() bool {
	return slices.ContainsFunc(b.Sets, func(s RuleSet) bool { return s.Bypassed })
}
