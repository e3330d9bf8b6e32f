package promotion

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/wording"
	"github.com/liftlock/liftlock/policies"
)

// Action is one thing to do. Actions carry what they were judged on.
type Action interface {
	// Describe says in a few words what is done; for logs and the timeline.
	Describe() string
	environment() string
}

// EnvironmentOf is the environment that an action is about.
func EnvironmentOf(a Action) string { return a.environment() }

// PullAction is an action on a pull request.
type PullAction interface {
	Action
	// Subject is the action's pull request, or the promotion that a revert to be opened undoes; 0
	// where there is none yet. members are the releases that it moves: at least one, except where a
	// pull request is closed because it moves nothing any more.
	Subject() (pull int, members []Member)
}

// The expensive facts.
const (
	RequestComposition    = "compose"
	RequestRestore        = "restore"
	RequestBlame          = "blame"
	RequestCulprits       = "culprits"
	RequestChangedObjects = "changed"
	RequestSyncRights     = "syncRights"
	RequestMergeability   = "mergeability"
)

// FactRequest asks for an expensive fact about an environment. As an action of a component it is
// about its own part, and the answer belongs to its Env. Among the shared actions it asks what
// moving the members at once changes, and the answer belongs to Facts.Compositions.
type FactRequest struct {
	What        string
	Environment string
	Release     string   // compose: the identity of what moves
	Members     []Member `json:",omitempty"` // compose: what moves
}

// Record writes down what was found out about what landed in an environment.
type Record struct {
	Environment, Release, Commit string
	Verified, Degraded           bool
	ByHand                       bool `json:",omitempty"` // a person put there what would have been promoted
}

// Open opens a promotion composed on Tip.
type Open struct {
	Environment string
	Release     string // the member's, or of a batch its BatchID
	Name        string
	Tip         string
	Members     []Member
	Batch       bool // as Pull.Batch
}

// Replace composes an open promotion anew: for a newer release, or on a newer
// tip for the same.
type Replace struct {
	Environment string
	Pull        int
	Head        string // what was judged; another head and nothing is done
	Release     string // as in Open
	Name        string
	Tip         string
	Why         string
	Members     []Member
	Batch       bool
}

// Close closes one of ours, marked as superseded so that it is no veto.
type Close struct {
	Environment string
	Pull        int
	Revert      bool
	Why         string
	Members     []Member
}

// Merge merges exactly Head. Judged while the tracked branch was at Tip.
type Merge struct {
	Environment string
	Pull        int
	Head, Tip   string
	Revert      bool
	Members     []Member
	// Behind says that the head isn't up to date with Tip, which the forge demands: it is
	// brought up to date, and merged another time. KeepApprovals says that this is to be done
	// so that the forge doesn't drop approvals.
	Behind, KeepApprovals bool `json:",omitempty"`
	// Attempt says that the forge says that it blocks the merge, and not why: it is sent it all
	// the same, for its answer.
	Attempt bool      `json:",omitempty"`
	Until   time.Time `json:",omitzero"` // from then on a gate doesn't pass any more, so it is judged again; zero: none is known to end
}

// OpenRevert opens the revert of a landed promotion.
type OpenRevert struct {
	Environment string
	Pull        int    // the promotion
	Release     string // the one that is taken back, of a batch its BatchID
	Commit      string // where it landed
	Tip         string
	Evidence    []Evidence // of each component that is degraded
	By          string     // who requested it; empty: the degradation
	Reason      string
	Members     []Member
	Batch       bool
}

// RecomposeRevert composes an open revert anew on a newer tip.
type RecomposeRevert struct {
	Environment string
	Pull        int
	Head        string
	Tip         string
	Members     []Member
}

// Refresh has Argo CD look at a target again.
type Refresh struct{ Environment, Target string }

// Sync has Argo CD sync a target to the branch's head that was judged, which holds what
// landed: nobody else's newer commit is rolled back.
type Sync struct{ Environment, Target, Tip string }

// RestartVerification starts the verification of what landed in an environment again, with
// another sync of the targets that Resync names.
type RestartVerification struct {
	Environment string
	Resync      []string `json:",omitempty"`
}

// RequestReviewers requests reviews of an open promotion on the forge. Done again it changes
// nothing for who hasn't answered yet.
type RequestReviewers struct {
	Environment string
	Pull        int
	Release     string // that they are requested for; of a batch its BatchID
	Reviewers   policies.Reviewers
}

// ResetEndpoints forgets what endpoints said of an open promotion, so that they are asked
// anew.
type ResetEndpoints struct {
	Environment string
	Pull        int
}

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
	Reply       bool `json:",omitempty"` // it is done, and leaves somebody something to do: the outcome is answered
}

func (f FactRequest) environment() string         { return f.Environment }
func (r Record) environment() string              { return r.Environment }
func (o Open) environment() string                { return o.Environment }
func (r Replace) environment() string             { return r.Environment }
func (c Close) environment() string               { return c.Environment }
func (m Merge) environment() string               { return m.Environment }
func (o OpenRevert) environment() string          { return o.Environment }
func (r RecomposeRevert) environment() string     { return r.Environment }
func (r Refresh) environment() string             { return r.Environment }
func (s Sync) environment() string                { return s.Environment }
func (r RestartVerification) environment() string { return r.Environment }
func (r RequestReviewers) environment() string    { return r.Environment }
func (r ResetEndpoints) environment() string      { return r.Environment }
func (l LiftVeto) environment() string            { return l.Environment }
func (b BindCommand) environment() string         { return b.Environment }
func (f FinishCommand) environment() string       { return f.Environment }

func (o Open) Subject() (int, []Member)            { return 0, o.Members }
func (r Replace) Subject() (int, []Member)         { return r.Pull, r.Members }
func (c Close) Subject() (int, []Member)           { return c.Pull, c.Members }
func (m Merge) Subject() (int, []Member)           { return m.Pull, m.Members }
func (o OpenRevert) Subject() (int, []Member)      { return o.Pull, o.Members }
func (r RecomposeRevert) Subject() (int, []Member) { return r.Pull, r.Members }

func (f FactRequest) Describe() string { return "look: " + f.What + " in " + f.Environment }

func (r Record) Describe() string {
	w := "verified"
	switch {
	case r.Degraded:
		w = "degraded"
	case r.ByHand:
		w = "put there by hand, as it would have been promoted,"
	}
	return fmt.Sprintf("record %s %s in %s", wording.Short(r.Release), w, r.Environment)
}

func (o Open) Describe() string {
	return fmt.Sprintf("open a promotion of %s into %s", o.Name, o.Environment)
}

func (r Replace) Describe() string {
	return fmt.Sprintf("compose #%d anew for %s: %s", r.Pull, r.Name, r.Why)
}

func (c Close) Describe() string { return fmt.Sprintf("close #%d: %s", c.Pull, c.Why) }

func (m Merge) Describe() string {
	switch {
	case m.Behind:
		return fmt.Sprintf("bring #%d up to date with %s, to be merged into %s", m.Pull, wording.Short(m.Tip), m.Environment)
	case m.Attempt:
		return fmt.Sprintf("try to merge #%d into %s at %s, which the forge says it blocks", m.Pull, m.Environment, wording.Short(m.Head))
	}
	return fmt.Sprintf("merge #%d into %s at %s", m.Pull, m.Environment, wording.Short(m.Head))
}

func (o OpenRevert) Describe() string {
	return fmt.Sprintf("open a revert of #%d in %s", o.Pull, o.Environment)
}

func (r RecomposeRevert) Describe() string { return fmt.Sprintf("compose revert #%d anew", r.Pull) }

func (r Refresh) Describe() string { return "refresh " + r.Target }

func (s Sync) Describe() string { return "sync " + s.Target + " to " + wording.Short(s.Tip) }

func (r RestartVerification) Describe() string {
	text := "verify " + r.Environment + " again"
	if len(r.Resync) > 0 {
		text += " with another sync of " + strings.Join(r.Resync, ", ")
	}
	return text
}

// Describe says it in a few words.
func (r RequestReviewers) Describe() string {
	return fmt.Sprintf("request reviews of #%d from %s", r.Pull, strings.Join(r.Reviewers.Names(), ", "))
}

// Describe says it in a few words.
func (r ResetEndpoints) Describe() string {
	return fmt.Sprintf("have the endpoints of #%d answer anew", r.Pull)
}

func (l LiftVeto) Describe() string { return fmt.Sprintf("forgive the closed #%d", l.Pull) }

func (b BindCommand) Describe() string {
	return fmt.Sprintf("bind %d to %s in %s", b.ID, wording.Short(b.Release), b.Environment)
}

// Describe says it in a few words.
func (f FinishCommand) Describe() string {
	reply := ""
	if f.Reply {
		reply = ", and reply"
	}
	return fmt.Sprintf("answer %d%s: %s", f.ID, reply, f.Outcome)
}

// actionList writes actions as JSON, each under its kind, so that a decision can be
// kept as a golden and read by people.
type actionList []Action

// MarshalJSON implements json.Marshaler.
func (al actionList) MarshalJSON() ([]byte, error) {
	out := make([]map[string]Action, len(al))
	for i, a := range al {
		out[i] = map[string]Action{reflect.TypeOf(a).Name(): a}
	}
	return json.Marshal(out)
}
