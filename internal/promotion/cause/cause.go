// Package cause is the one list of why a release doesn't move: the codes of the
// reasons that a decision gives, for programs, beside a sentence for people.
//
// A code is declared once, here, with what other rooms need of it. A new one is
// its line here and the place that gives it. A test holds that no other room
// spells a code. It knows nothing of what a decision is, so that those who only
// read its JSON can have it.
package cause

import "slices"

// Code is why something doesn't happen. Its text is stored and served by the API: it never changes.
type Code string

// The codes.
const (
	Baseline     Code = "baseline"    // it is there since before the pipeline
	Batch        Code = "batch"       // it is from before spec.batch became something else
	BatchMembers Code = "together"    // what came or moves along isn't ready
	Closed       Code = "closed"      // by a person
	Deployments  Code = "deployments" // they can't be shown on the forge
	Diverged     Code = "diverged"    // it was changed by hand
	Failing      Code = "failing"     // a step fails and is tried again
	HeadModified Code = "unsound"     // the branch isn't as Liftlock made it
	Hold         Code = "hold"
	Incomplete   Code = "incomplete" // a part of the release wouldn't come along
	Limit        Code = "limit"      // of open pull requests, or of components in one
	Manual       Code = "manual"     // it is opened or merged by a person
	NewerWaits   Code = "newer-waits"
	NoDiff       Code = "no-diff"
	DryRun       Code = "observe"
	NotHere      Code = "not-here" // the component has no target in the environment
	PipelineFile Code = "pipeline-file"
	Quarantined  Code = "quarantined" // it was taken back, or degraded
	Queued       Code = "queued"      // in the forge's merge queue
	Refused      Code = "refused"     // its edit
	RevertLimit  Code = "storm"       // so many reverts that everything holds
	Reverted     Code = "reverted"
	Reverting    Code = "reverting"
	Signatures   Code = "signatures" // they are missing
	Targets      Code = "targets"
	Unmanaged    Code = "foreign" // the branch has another account's work
	Unreadable   Code = "unreadable"
	Unverified   Code = "unverified" // by what is upstream
	Upstream     Code = "upstream"   // it can't be read
	UpToDate     Code = "up-to-date" // there is nothing newer
	Withdrawn    Code = "withdrawn"  // upstream took it back, or has something older
)

// stuck are the codes of what doesn't go away by itself: a person should look.
var stuck = []Code{Quarantined, Refused, Incomplete, Failing, HeadModified, Unmanaged}

// IsStuck says that what has this cause doesn't move and won't by itself.
func (c Code) IsStuck() bool { return slices.Contains(stuck, c) }
