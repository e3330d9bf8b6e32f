package promotion

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/liftlock/liftlock/internal/wording"
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
	Candidate     string                `json:"candidate,omitempty"` // what would come next
	CandidateName string                `json:"coming,omitempty"`    // the same for people
	ReadySince    time.Time             `json:"readySince,omitzero"` // since when the candidate could have come
	Gates         []policies.Result     `json:"gates,omitempty"`     // of the open promotion
	RevertGates   []policies.Result     `json:"undoGates,omitempty"` // of the open revert
	Targets       map[string]TargetView `json:"targets,omitempty"`
	Pull          int                   `json:"pull,omitempty"` // open promotion
	Revert        int                   `json:"undo,omitempty"` // open revert
	LandedPull    int                   `json:"landedPull,omitempty"`
	LandedBy      string                `json:"landedBy,omitempty"`
	Commit        string                `json:"commit,omitempty"`
}

// TargetView is a target for people.
type TargetView struct {
	State  string    `json:"state"`
	Reason string    `json:"reason"`
	Since  time.Time `json:"since,omitzero"`
}

// Reason is why something doesn't happen, and who can change that.
type Reason struct {
	Code string    `json:"code"` // stable, for programs
	Text string    `json:"text"`
	Who  string    `json:"who,omitempty"`
	When time.Time `json:"when,omitzero"`
}

// Decision is what is to be done now, when to look again at the latest, and why.
type Decision struct {
	Actions []Action   `json:"-"`
	Next    time.Time  `json:"next,omitzero"`
	Envs    []EnvState `json:"envs"`
}

// Action is one thing to do. Actions carry what they were judged on.
type Action interface{ Describe() string }

// FactRequest asks for an expensive fact about an environment.
type FactRequest struct {
	What        string // compose, restore, blame, changed or together
	Environment string
	Release     string   // compose: which release's identity
	Members     []Member `json:"Passengers,omitempty"` // together: what moves in one pull request
}

// The expensive facts.
const (
	RequestComposition    = "compose"
	RequestRestore        = "restore"
	RequestBlame          = "blame"
	RequestChangedObjects = "changed"
	// RequestBatchComposition: what moving several components' releases at once changes.
	RequestBatchComposition = "together"
)

// Record writes down what was found out about what landed in an environment.
type Record struct {
	Environment, Release, Commit string
	Verified, Degraded           bool
}

// Open opens a promotion composed on Tip.
type Open struct {
	Environment string
	Release     string
	Name        string
	Tip         string
	CommandID   int64    `json:"Ask"`                  // the promote that it fulfils, 0 without one
	Members     []Member `json:"Passengers,omitempty"` // of a batch, which has no release of its own
}

// Replace composes an open promotion anew: for a newer release, or on a newer
// tip for the same.
type Replace struct {
	Environment string
	Pull        int
	Head        string // what was judged; another head and nothing is done
	Release     string
	Name        string
	Tip         string
	Why         string
	CommandID   int64    `json:"Ask"`
	Members     []Member `json:"Passengers,omitempty"` // of a batch
}

// Close closes one of ours, marked as superseded so that it is no veto.
type Close struct {
	Environment string
	Pull        int
	Revert      bool
	Why         string
	Members     []Member `json:"Passengers,omitempty"` // of a batch
}

// Merge merges exactly Head. Judged while the tracked branch was at Tip.
type Merge struct {
	Environment string
	Pull        int
	Head, Tip   string
	Revert      bool
	Members     []Member `json:"Passengers,omitempty"` // of a batch
}

// OpenRevert opens the way back of a landed promotion.
type OpenRevert struct {
	Environment string
	Pull        int    // the promotion
	Release     string // the one that is taken back
	Commit      string // where it landed
	Tip         string
	Evidence    []string // for people
	By          string   // who asked; empty: the degradation
	Reason      string
	CommandID   int64    `json:"Ask"`
	Members     []Member `json:"Passengers,omitempty"` // of a batch
}

// RecomposeRevert composes an open revert anew on a newer tip.
type RecomposeRevert struct {
	Environment string
	Pull        int
	Head        string
	Tip         string
	Members     []Member `json:"Passengers,omitempty"` // of a batch
}

// Refresh asks Argo CD to look at a target again; Sync to sync it.
type Refresh struct{ Environment, Target string }

// Sync asks Argo CD to sync a target to a commit.
type Sync struct{ Environment, Target, Commit string }

// RestartVerification starts the verification of what landed in an environment again.
type RestartVerification struct{ Environment string }

// LiftVeto takes a veto back: the closed pull request is marked as superseded.
type LiftVeto struct {
	Environment string
	Pull        int
}

// BindCommand ties a command to the release that it became about: it stays in force for
// that release and no other until it is answered.
type BindCommand struct {
	Environment string
	ID          int64
	Release     string
}

// FinishCommand answers a person's command.
type FinishCommand struct {
	Environment string
	ID          int64
	Done        bool
	Outcome     string
}

// EnvironmentOf is the environment that an action is about.
func EnvironmentOf(a Action) string {
	switch a := a.(type) {
	case FactRequest:
		return a.Environment
	case Record:
		return a.Environment
	case Open:
		return a.Environment
	case Replace:
		return a.Environment
	case Close:
		return a.Environment
	case Merge:
		return a.Environment
	case OpenRevert:
		return a.Environment
	case RecomposeRevert:
		return a.Environment
	case Refresh:
		return a.Environment
	case Sync:
		return a.Environment
	case RestartVerification:
		return a.Environment
	case LiftVeto:
		return a.Environment
	case BindCommand:
		return a.Environment
	case FinishCommand:
		return a.Environment
	}
	return ""
}

// Describe says in a few words what is done; for logs and the timeline.
func (a FactRequest) Describe() string { return "look: " + a.What + " in " + a.Environment }

// Describe says in a few words what is done.
func (a Record) Describe() string {
	w := "verified"
	if a.Degraded {
		w = "degraded"
	}
	return fmt.Sprintf("record %s %s in %s", wording.Short(a.Release), w, a.Environment)
}

// Describe says in a few words what is done.
func (a Open) Describe() string {
	return fmt.Sprintf("open a promotion of %s into %s", a.Name, a.Environment)
}

// Describe says in a few words what is done.
func (a Replace) Describe() string {
	return fmt.Sprintf("compose #%d anew for %s: %s", a.Pull, a.Name, a.Why)
}

// Describe says in a few words what is done.
func (a Close) Describe() string { return fmt.Sprintf("close #%d: %s", a.Pull, a.Why) }

// Describe says in a few words what is done.
func (a Merge) Describe() string {
	return fmt.Sprintf("merge #%d into %s at %s", a.Pull, a.Environment, wording.Short(a.Head))
}

// Describe says in a few words what is done.
func (a OpenRevert) Describe() string {
	return fmt.Sprintf("open a revert of #%d in %s", a.Pull, a.Environment)
}

// Describe says in a few words what is done.
func (a RecomposeRevert) Describe() string {
	return fmt.Sprintf("compose revert #%d anew", a.Pull)
}

// Describe says in a few words what is done.
func (a Refresh) Describe() string { return "refresh " + a.Target }

// Describe says in a few words what is done.
func (a Sync) Describe() string { return "sync " + a.Target + " to " + wording.Short(a.Commit) }

// Describe says in a few words what is done.
func (a RestartVerification) Describe() string { return "verify " + a.Environment + " again" }

// Describe says in a few words what is done.
func (a LiftVeto) Describe() string { return fmt.Sprintf("forgive the closed #%d", a.Pull) }

// Describe says in a few words what is done.
func (a BindCommand) Describe() string {
	return fmt.Sprintf("bind %d to %s in %s", a.ID, wording.Short(a.Release), a.Environment)
}

// Describe says in a few words what is done.
func (a FinishCommand) Describe() string { return fmt.Sprintf("answer %d: %s", a.ID, a.Outcome) }

// MarshalJSON writes the actions with their kind, so that a decision can be
// kept as a golden and read by people.
func (d Decision) MarshalJSON() ([]byte, error) {
	type plain Decision
	acts, err := marshalActions(d.Actions)
	if err != nil {
		return nil, err
	}
	return json.Marshal(struct {
		Actions []map[string]any `json:"actions"`
		plain
	}{acts, plain(d)})
}

// marshalActions are actions as JSON objects, each under its kind.
func marshalActions(actions []Action) ([]map[string]any, error) {
	acts := make([]map[string]any, 0, len(actions))
	for _, a := range actions {
		raw, err := json.Marshal(a)
		if err != nil {
			return nil, fmt.Errorf("marshal %T: %w", a, err)
		}
		var m map[string]any
		if err := json.Unmarshal(raw, &m); err != nil {
			return nil, fmt.Errorf("marshal %T: %w", a, err)
		}
		acts = append(acts, map[string]any{actionKind(a): m})
	}
	return acts, nil
}

// actionKind is the name under which an action is written in JSON. The names are
// kept: decisions that were written down before must stay comparable.
func actionKind(a Action) string {
	switch a.(type) {
	case FactRequest:
		return "Look"
	case Record:
		return "Record"
	case Open:
		return "Open"
	case Replace:
		return "Replace"
	case Close:
		return "Close"
	case Merge:
		return "Merge"
	case OpenRevert:
		return "OpenRevert"
	case RecomposeRevert:
		return "RestoreUndo"
	case Refresh:
		return "Refresh"
	case Sync:
		return "Sync"
	case RestartVerification:
		return "Forget"
	case LiftVeto:
		return "Forgive"
	case BindCommand:
		return "Bind"
	case FinishCommand:
		return "FinishAsk"
	}
	return fmt.Sprintf("%T", a)
}

// Env finds an environment's state by name; nil when there is none.
func (d *Decision) Env(name string) *EnvState {
	for i := range d.Envs {
		if d.Envs[i].Environment == name {
			return &d.Envs[i]
		}
	}
	return nil
}

// PullOf is the pull request that an action is about; for a revert that is to be
// opened, the promotion that it takes back. 0 where it is about none yet.
func PullOf(a Action) int {
	switch a := a.(type) {
	case Replace:
		return a.Pull
	case Close:
		return a.Pull
	case Merge:
		return a.Pull
	case OpenRevert:
		return a.Pull
	case RecomposeRevert:
		return a.Pull
	case LiftVeto:
		return a.Pull
	}
	return 0
}

// MembersOf are the components that an action moves together; none where it
// is about one component's own.
func MembersOf(a Action) []Member {
	switch a := a.(type) {
	case FactRequest:
		return a.Members
	case Open:
		return a.Members
	case Replace:
		return a.Members
	case Close:
		return a.Members
	case Merge:
		return a.Members
	case OpenRevert:
		return a.Members
	case RecomposeRevert:
		return a.Members
	}
	return nil
}
