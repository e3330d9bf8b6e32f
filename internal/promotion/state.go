package promotion

// FieldState says whether the overlays that have a component's carried fields in an
// environment agree about the release.
type FieldState string

// The states of carried fields.
const (
	FieldsAgree FieldState = ""
	FieldsMixed FieldState = "mixed"
)

// BranchState says whose a branch is that our pull requests use, or would use.
type BranchState string

// The states of such a branch.
const (
	BranchOurs      BranchState = "" // or there is none
	BranchUnmanaged BranchState = "unmanaged"
)

// HeadState says whether the head of one of our pull requests is what we compose.
type HeadState string

// The states of a head.
const (
	HeadComposed HeadState = ""
	HeadModified HeadState = "modified" // another account's work, or that can't be ruled out
)

// ReachState says which targets merging a pull request would change.
type ReachState string

// The states of a pull request's reach.
const (
	ReachEnvironment      ReachState = "" // provably none outside its environment
	ReachCrossEnvironment ReachState = "crossEnvironment"
	ReachUnknown          ReachState = "unknown"
)

// MergeState is the forge's word on whether a pull request can be merged.
type MergeState string

// The forge's words. One that isn't here blocks the merge.
const (
	MergeUntold  MergeState = ""
	MergeClean   MergeState = "yes"
	MergeUnknown MergeState = "unknown" // it is still computing
	MergeDirty   MergeState = "dirty"   // conflicts
)

// EditState says whether an edit can be made.
type EditState string

// The states of an edit.
const (
	EditPossible EditState = ""
	EditEmpty    EditState = "empty" // it would change nothing
	EditRefused  EditState = "refused"
)

// Composition is what an edit would be.
type Composition struct {
	Tip    string    `json:"tip"` // what it was composed on
	State  EditState `json:"state,omitempty"`
	Reason string    `json:"reason,omitempty"` // why it is refused
	Files  []string  `json:"files,omitempty"`
	// Incomplete says what was changed together with the release where it comes from, isn't carried and
	// isn't there yet; empty: nothing is known of that kind.
	Incomplete string `json:"incomplete,omitempty"`
	// RefusedByMember says of several components whose own part can't be made, and why.
	RefusedByMember map[string]string `json:"refusedByMember,omitempty"`
}

// Refuse says why the edit can't be made; an empty reason changes nothing.
func (c *Composition) Refuse(why string) {
	if why != "" {
		c.State, c.Reason = EditRefused, why
	}
}

// MarkModified says why the head is not what we compose. The first reason stays,
// and an empty one changes nothing.
func (p *Pull) MarkModified(why string) {
	if why != "" && p.HeadState != HeadModified {
		p.HeadState, p.HeadReason = HeadModified, why
	}
}

// MarkUnmanaged names another account's work on the branch of promotions into the environment; an
// empty reason changes nothing.
func (e *Env) MarkUnmanaged(why string) {
	if why != "" {
		e.BranchState, e.BranchReason = BranchUnmanaged, why
	}
}

// MarkRevertUnmanaged names another account's work on the branch that a revert of the present
// release would use; an empty reason changes nothing.
func (e *Env) MarkRevertUnmanaged(why string) {
	if why != "" {
		e.RevertBranchState, e.RevertBranchReason = BranchUnmanaged, why
	}
}

// MarkReach says why merging the pull request now would change targets outside its
// environment, or why that can't be told; an empty reason changes nothing.
func (p *Pull) MarkReach(state ReachState, why string) {
	if why != "" {
		p.Reach, p.ReachReason = state, why
	}
}
