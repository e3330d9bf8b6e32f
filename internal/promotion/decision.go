package promotion

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/promotion/cause"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/policies"
)

// The states of a promotion or of a release in an environment.
const (
	Idle       = "idle"     // nothing to do: same release as upstream, or nothing newer
	Baseline   = "baseline" // was there before the pipeline; never moved by itself
	Waiting    = "waiting"  // a release would move, something keeps the pull request from opening
	Opened     = "open"
	Held       = "held"
	Verifying  = "verifying"
	Verified   = "verified"
	Degraded   = "degraded"
	Failed     = "failed"
	Reverting  = "reverting"
	Reverted   = "reverted"
	Closed     = "closed"   // by a person: a veto
	Diverged   = "diverged" // a person's own change: hands off
	Mixed      = "mixed"
	Unreadable = "unreadable"
	NotHere    = "not-here" // the component has no target in the environment
)

// EnvState is what the decision says of one environment.
type EnvState struct {
	Environment   string                `json:"environment"`
	State         string                `json:"state"`             // of the release that is there
	Promotion     string                `json:"promotion"`         // of the release that wants to come in; Idle when none
	Reason        string                `json:"reason"`            // one sentence about State
	Why           []Reason              `json:"why,omitempty"`     // why nothing (more) happens
	Release       string                `json:"release,omitempty"` // what is there
	Name          string                `json:"name,omitempty"`    // the same for people
	Since         time.Time             `json:"since,omitzero"`    // when it landed
	VerifiedAt    time.Time             `json:"verifiedAt,omitzero"`
	Candidate     string                `json:"candidate,omitempty"`     // what would come next
	CandidateName string                `json:"candidateName,omitempty"` // the same for people
	ReadySince    time.Time             `json:"readySince,omitzero"`     // since when the candidate could have come
	Gates         []policies.Result     `json:"gates,omitempty"`         // of the open promotion
	RevertGates   []policies.Result     `json:"revertGates,omitempty"`   // of the open revert
	Targets       map[string]TargetView `json:"targets,omitempty"`
	Pull          int                   `json:"pull,omitempty"`   // open promotion
	Revert        int                   `json:"revert,omitempty"` // open revert
	LandedPull    int                   `json:"landedPull,omitempty"`
	LandedBy      string                `json:"landedBy,omitempty"`
	Commit        string                `json:"commit,omitempty"`
	// Evidence is what a degradation that is left to people was judged by.
	Evidence *Evidence `json:"evidence,omitempty"`
}

// TargetView is a target for people.
type TargetView struct {
	State  string    `json:"state"`
	Reason string    `json:"reason"`
	Since  time.Time `json:"since,omitzero"`
	// Drift is how it differs from Git although that was synced to it; nothing is done
	// about it. nil: it doesn't, or that can't be told.
	Drift *Drift `json:"drift,omitempty"`
	// Untold says that nobody has been able to tell for so long how it is that a person
	// should look why.
	Untold bool `json:"untold,omitempty"`
	// Runs is what it was seen to run once it was verified; nil: it isn't, or nobody told.
	Runs *verification.Runs `json:"runs,omitempty"`
}

// UntoldTargets are the names, sorted, of the targets whose state has been unknown for so long that
// a person should find out why; none when there are none.
func (e *EnvState) UntoldTargets() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(e.Targets)), func(name string) bool { return !e.Targets[name].Untold })
}

// Drift is how a target differs from what was synced to it, as its verification found it.
type Drift = verification.Drift

// Runs is what a target was seen to run when it was verified; VerifiedRuns is that of an environment's, in the data of
// the event.
type (
	Runs         = verification.Runs
	RunningImage = verification.RunningImage
	TargetRuns   = verification.TargetRuns
	VerifiedRuns = verification.VerifiedRuns
)

// Unchecked are resources of a target that count as healthy without anybody knowing.
type Unchecked = verification.Unchecked

// Reason is why something doesn't happen, and who can change that.
type Reason struct {
	Code cause.Code `json:"code"` // stable, for programs
	Text string     `json:"text"`
	Who  string     `json:"who,omitempty"`
	When time.Time  `json:"when,omitzero"`
}

// Decision is what is to be done now, when to look again at the latest, and why.
type Decision struct {
	// Components are the components' own decisions, in the facts' order.
	Components []ComponentDecision `json:"components"`
	// Actions are what is done with pull requests, and what has to be known for it.
	Actions []Action  `json:"-"`
	Next    time.Time `json:"next,omitzero"`
	// Queued are the pull requests in the forge's merge queue that would be merged now and stay.
	Queued []int `json:"-"`
}

// ComponentDecision has the actions for one component alone, when to evaluate it again at the
// latest, and the state of each of its environments.
type ComponentDecision struct {
	Actions []Action `json:"-"`
	// Answers are to people whose command is carried out by what is done with a pull
	// request: given when that is done.
	Answers []FinishCommand `json:"answers,omitempty"`
	Next    time.Time       `json:"next,omitzero"`
	Envs    []EnvState      `json:"envs"`
}

// MarshalJSON writes the actions with their kind.
func (d Decision) MarshalJSON() ([]byte, error) {
	type plain Decision
	return json.Marshal(struct {
		Actions actionList `json:"actions"`
		plain
	}{d.Actions, plain(d)})
}

// MarshalJSON writes the actions with their kind.
func (c ComponentDecision) MarshalJSON() ([]byte, error) {
	type plain ComponentDecision
	return json.Marshal(struct {
		Actions actionList `json:"actions"`
		plain
	}{c.Actions, plain(c)})
}

// Step is an action in its place among all of a decision's.
type Step struct {
	Component int // whose own it is, an index of Components; -1: a pull request's
	Action    Action
}

// Steps are all actions in their order: the components' own first, then the pull requests, then the
// answers about those. Last come the requests for reviews and the forge's deployments, for which
// nothing else waits. An action that fails in an environment stops the later ones there: the
// component's own or, where a pull request couldn't be acted on, all of them.
func (d *Decision) Steps() []Step {
	var out, requests, deployments []Step
	for i := range d.Components {
		for _, a := range d.Components[i].Actions {
			if r, is := a.(RequestReviewers); is {
				if !d.closes(r.Pull) {
					requests = append(requests, Step{i, a})
				}
				continue
			}
			out = append(out, Step{i, a})
		}
	}
	for _, a := range d.Actions {
		if _, is := a.(SetDeployment); is {
			deployments = append(deployments, Step{-1, a})
			continue
		}
		out = append(out, Step{-1, a})
	}
	for i := range d.Components {
		for _, a := range d.Components[i].Answers {
			out = append(out, Step{i, a})
		}
	}
	return slices.Concat(out, requests, deployments)
}

// closes says that a pull request is to be closed. None has the number 0.
func (d *Decision) closes(pull int) bool {
	return slices.ContainsFunc(d.Actions, func(a Action) bool {
		c, _ := a.(Close)
		return c.Pull == pull
	})
}

// Env finds an environment's state by name; nil when there is none.
func (c *ComponentDecision) Env(name string) *EnvState {
	i := slices.IndexFunc(c.Envs, func(e EnvState) bool { return e.Environment == name })
	if i < 0 {
		return nil
	}
	return &c.Envs[i]
}
