package onboard

import "fmt"

// Pull is a pull request from the branch of proposals.
type Pull struct {
	Number  int
	Open    bool
	Merged  bool
	Ours    bool   // Liftlock opened it
	Retired bool   // Liftlock closed it: no person's "no"
	Author  string // for people
	Base    string
}

// State is how a repository stands to its proposal.
type State string

// The states.
const (
	Proposed State = "proposed" // the pull request is open
	Modified State = "modified" // it is open, and somebody pushed to its branch
	Declined State = "declined" // a person closed it
	Merged   State = "merged"   // it was merged
	Settled  State = "settled"  // there is a pipeline file
	Occupied State = "occupied" // somebody else's pull request, or commits, are on the branch
	Nothing  State = "nothing"  // there is nothing to propose
	Refused  State = "refused"  // the forge doesn't let Liftlock
)

// IsFinal says that nothing is opened any more, whatever the branch says.
func (s State) IsFinal() bool { return s == Declined || s == Merged }

// Facts is what a decision knows.
type Facts struct {
	Branch      string // the tracked one
	HasPipeline bool   // it has a pipeline file, also one that can't be used
	Pulls       []Pull // from the branch of proposals, of every state, newest first
	Head        string // of that branch; empty: there is none
	HeadIsOurs  bool   // the head is proven to be Liftlock's

	Key      string    // of what is proposed for now
	ShownKey string    // of what the open pull request was made for
	Proposal *Proposal // nil: it wasn't made
}

// Action is what to do.
type Action string

// The actions.
const (
	Leave   Action = "leave"
	Make    Action = "make" // make the proposal, and decide again
	Open    Action = "open"
	Update  Action = "update"  // push the file where it differs, and write the text
	Mention Action = "mention" // write into the text that somebody pushed
	Close   Action = "close"   // there is a pipeline file by now
)

// Decision is what to do, and what is so then.
type Decision struct {
	Action Action
	Pull   int    // what it is done to; 0: none yet
	State  State  // with Make: empty
	Why    string // for people; empty where the state says it
}

// Decide decides what to do about a repository's proposal.
func Decide(f *Facts) Decision {
	if p := f.find(func(p *Pull) bool { return p.Ours && p.Open }); p != nil {
		return decideOpen(f, p)
	}
	if f.HasPipeline {
		return Decision{Action: Leave, State: Settled, Pull: f.numberOfOurs()}
	}
	if p := f.find(func(p *Pull) bool { return p.Ours && !p.Retired }); p != nil {
		if p.Merged {
			return Decision{Action: Leave, Pull: p.Number, State: Merged}
		}
		return Decision{Action: Leave, Pull: p.Number, State: Declined}
	}
	if p := f.find(func(p *Pull) bool { return p.Open }); p != nil {
		return Decision{Action: Leave, State: Occupied, Why: fmt.Sprintf("#%d by %s is open from the branch that Liftlock would propose "+
			"from", p.Number, p.Author)}
	}
	switch {
	case f.Head != "" && !f.HeadIsOurs:
		return Decision{Action: Leave, State: Occupied, Why: "the branch that Liftlock would propose from has somebody else's commits: " +
			"delete it, or open a pull request from it"}
	case f.Proposal == nil:
		return Decision{Action: Make}
	case f.Proposal.Nothing != "":
		return Decision{Action: Leave, State: Nothing, Why: f.Proposal.Nothing}
	}
	return Decision{Action: Open, State: Proposed}
}

// decideOpen decides about the open pull request.
func decideOpen(f *Facts, p *Pull) Decision {
	switch {
	case f.HasPipeline:
		return Decision{Action: Close, Pull: p.Number, State: Settled}
	case f.Head != "" && !f.HeadIsOurs:
		return Decision{Action: Mention, Pull: p.Number, State: Modified}
	case f.Proposal == nil && f.Key == f.ShownKey && p.Base == f.Branch && f.Head != "":
		return Decision{Action: Leave, Pull: p.Number, State: Proposed}
	case f.Proposal == nil:
		return Decision{Action: Make, Pull: p.Number}
	case f.Proposal.Nothing != "":
		return Decision{Action: Leave, Pull: p.Number, State: Proposed, Why: "there is nothing to propose any more: " + f.Proposal.Nothing}
	}
	return Decision{Action: Update, Pull: p.Number, State: Proposed}
}

// find finds the newest pull request of a kind; nil where there is none.
func (f *Facts) find(is func(*Pull) bool) *Pull {
	for i := range f.Pulls {
		if is(&f.Pulls[i]) {
			return &f.Pulls[i]
		}
	}
	return nil
}

// numberOfOurs is the newest pull request of ours; 0: there is none.
func (f *Facts) numberOfOurs() int {
	if p := f.find(func(p *Pull) bool { return p.Ours }); p != nil {
		return p.Number
	}
	return 0
}
