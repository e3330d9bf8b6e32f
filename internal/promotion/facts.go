package promotion

import (
	"time"

	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/policies"
)

// Known is a fact that may be unknown. While it isn't OK a gate waits and
// nothing loosens; Err says why, empty when nobody has looked yet.
type Known[T any] struct {
	Value T      `json:"value"`
	OK    bool   `json:"ok"`
	Err   string `json:"err,omitempty"`
}

// Sure wraps a value that was read.
func Sure[T any](v T) Known[T] { return Known[T]{Value: v, OK: true} }

// Unsure wraps the reason why a value could not be read.
func Unsure[T any](why string) Known[T] { return Known[T]{Err: why} }

// Unit is what a decision is about: one component of one pipeline.
type Unit struct {
	Repo      string `json:"repo"` // "forge:owner/name"
	Pipeline  string `json:"pipeline"`
	Component string `json:"component"`
}

// Facts are everything that a decision about one unit is made from.
type Facts struct {
	Now              time.Time          `json:"now"`
	Unit             Unit               `json:"unit"`
	Pipeline         *pipeline.Pipeline `json:"pipeline"`         // the last good one
	PipelineErr      string             `json:"broken,omitempty"` // why the file on the default branch can't be used: file:line: reason
	Problems         []string           `json:"problems,omitempty"`
	Tip              string             `json:"tip"`  // the head of the tracked branch, which has the rules
	Envs             []Env              `json:"envs"` // topological: every environment after all its `after`
	Holds            []Hold             `json:"holds,omitempty"`
	HoldsErr         string             `json:"holdsErr,omitempty"` // why the holds can't be read: then nothing merges
	ClusterIncidents []ClusterIncident  `json:"weather,omitempty"`
	Limits           Limits             `json:"limits"`
	PendingCommands  []PendingCommand   `json:"asks,omitempty"`
}

// Hold is a person's stop on something larger than a pull request.
type Hold struct {
	Scope       string    `json:"scope"`                 // component, environment or pipeline
	Environment string    `json:"environment,omitempty"` // scope environment: which; scope component: empty, all of them
	By          string    `json:"by"`
	Reason      string    `json:"reason,omitempty"`
	At          time.Time `json:"at"`
}

// ClusterIncident is another unit's target that became unwell.
type ClusterIncident struct {
	Cluster string    `json:"cluster"`
	Target  string    `json:"target"`
	Since   time.Time `json:"since"` // by our clock
	// Whose it is, where that is a component of this pipeline.
	Component   string `json:"component,omitempty"`
	Environment string `json:"environment,omitempty"`
}

// Limits are what is in use of the pipeline's limits, this unit not counted
// where it says so.
type Limits struct {
	OpenByOthers   map[string]int `json:"openElsewhere,omitempty"` // by environment: open promotions of other components
	QueuedAhead    map[string]int `json:"ahead,omitempty"`         // by environment: other components that have waited longer for a place
	MergesLastHour int            `json:"mergesLastHour"`
	OldestMerge    time.Time      `json:"oldestMerge,omitzero"` // of those
	// Reverts opened within 10 minutes, this unit's too; where this unit is
	// degraded, those since 10 minutes before it became so, so that a storm stays
	// one when time passes and a person is asked once.
	RevertsByEnv       map[string]int `json:"revertsByEnv,omitempty"`
	RevertsByCluster   map[string]int `json:"revertsByCluster,omitempty"` // likewise, by cluster
	OldestRecentRevert time.Time      `json:"oldestRevertInTen,omitzero"`
}

// PendingCommand is a person's command that waits to take effect.
type PendingCommand struct {
	ID          int64     `json:"id"`
	Verb        string    `json:"verb"` // promote, revert or retry
	Environment string    `json:"environment"`
	Release     string    `json:"release,omitempty"` // identity it was given for; empty: whatever is there when it is judged
	By          string    `json:"by"`
	Reason      string    `json:"reason,omitempty"`
	At          time.Time `json:"at"`
}

// How a release came to be in an environment.
const (
	ByBaseline  = "baseline"  // before the pipeline (or this part of it) came in
	ByPromotion = "promotion" // a promotion of ours that was merged
	ByRevert    = "revert"    // a revert of ours that was merged
	ByPerson    = "person"    // a commit of somebody's: an arrival in a source environment, a divergence elsewhere
)

// Landed is the commit that brought an environment's carried fields to where they are.
type Landed struct {
	Commit string    `json:"commit"`
	Parent string    `json:"parent,omitempty"` // first parent
	At     time.Time `json:"at"`               // the forge's merge time for our own, else the commit's time
	By     string    `json:"by"`
	Pull   int       `json:"pull,omitempty"` // ByPromotion, ByRevert
	Author string    `json:"who,omitempty"`  // ByPerson: the commit's author, for people
	// Members are all that its pull request moved, this component's too, where
	// that was one for several (batch: environment); none otherwise.
	Members []Member `json:"passengers,omitempty"`
}

// Arrival is a release that was, or is, in an environment.
type Arrival struct {
	Seq        int64     `json:"seq"` // rises with every arrival in this unit
	Release    string    `json:"release"`
	Name       string    `json:"name"`
	Commit     string    `json:"commit"`
	By         string    `json:"by"`
	Author     string    `json:"who,omitempty"`  // ByPerson: the commit's author, for people
	Pull       int       `json:"pull,omitempty"` // ByPromotion, ByRevert
	At         time.Time `json:"at"`
	VerifiedAt time.Time `json:"verifiedAt,omitzero"`
	DegradedAt time.Time `json:"degradedAt,omitzero"`
	// BlockedBy says which component that came by the same pull request keeps it from
	// moving on; empty: none. DecideBatch fills it in.
	BlockedBy string `json:"waits,omitempty"`
}

// Env is one environment of the unit.
type Env struct {
	Name    string               `json:"name"`
	Branch  string               `json:"branch"` // that its release is read from and its pull requests are merged into
	Tip     string               `json:"tip"`    // the head of that branch; empty: there is no such branch
	Spec    pipeline.Environment `json:"spec"`
	Gates   []policies.Gate      `json:"gates,omitempty"` // the spec's, raised to the server's floor
	Release Known[Release]       `json:"now"`
	Mixed   string               `json:"mixed,omitempty"` // its overlays disagree: which, where
	Landed  Known[Landed]        `json:"landed"`
	Targets []Target             `json:"targets,omitempty"`
	Open    *Pull                `json:"open,omitempty"` // our open promotion
	Revert  *Pull                `json:"undo,omitempty"` // our open revert
	// BatchPull is the open pull request of the pipeline's other components that this
	// one doesn't travel in (batch: environment).
	BatchPull *Pull `json:"train,omitempty"`
	// WrongKind is an open promotion of ours with this component that is of the other
	// kind than spec.batch says by now.
	WrongKind *Pull  `json:"stray,omitempty"`
	Unmanaged string `json:"foreign,omitempty"` // what of somebody else's stands on our promotion's branch
	// UnmanagedRevert is what of somebody else's stands on the branch that a revert
	// of what is there now would use.
	UnmanagedRevert  string                 `json:"foreignUndo,omitempty"`
	PastPulls        []PastPull             `json:"past,omitempty"`     // ours that are no longer open, newest first
	History          []Arrival              `json:"history,omitempty"`  // newest first
	Compositions     map[string]Composition `json:"composed,omitempty"` // answers to Look compose, by release identity
	Restore          Known[Composition]     `json:"restore"`            // the answer to Look restore
	RevertedReleases []string               `json:"reverted,omitempty"` // short releases that a revert commit on the branch names
}

// Source says that releases arrive here from outside.
func (e *Env) Source() bool { return e.Spec.IsSource() }

// Target is one target of an environment with the verdict about what landed.
type Target struct {
	Name      string                     `json:"name"`
	Cluster   string                     `json:"cluster"`
	Verdict   verification.Verdict       `json:"verdict"`
	Unhealthy []verification.Resource    `json:"unwell,omitempty"`
	Timeline  []verification.StateChange `json:"timeline,omitempty"`
	// HealthyBefore: was it well just before the promotion was merged? Not OK when
	// that evidence is gone; then a degradation asks a person.
	HealthyBefore Known[bool] `json:"wellBefore"`
	// ChangedSince are commits other than the landed one that changed what the target
	// reads since; the answer to Look blame.
	ChangedSince Known[[]string] `json:"touched"`
	// ChangedObjects are the target's objects that what landed may have made unwell: those
	// that it changed, and those that use one of them; the answer to Look changed.
	ChangedObjects Known[[]Object] `json:"changed"`
}

// Object names an object in a target's cluster. The namespace of one that its
// manifest leaves out is the target's, also where the object has none.
type Object struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// matchesResource says whether Argo CD's word is about this object.
func (o Object) matchesResource(r verification.Resource) bool {
	return o.Group == r.Group && o.Kind == r.Kind && o.Name == r.Name && (o.Namespace == r.Namespace || r.Namespace == "")
}

// Pull is one of our open pull requests.
type Pull struct {
	Number          int            `json:"number"`
	URL             string         `json:"url,omitempty"`
	Head            string         `json:"head"`
	Release         string         `json:"release"`           // the identity its head carries (a revert: the one it takes back; only its short form where its promotion isn't known)
	DeclaredRelease string         `json:"claimed,omitempty"` // the release that its description says we put there; empty: it says none
	Name            string         `json:"name"`
	CreatedAt       time.Time      `json:"createdAt"`
	UpdatedAt       time.Time      `json:"updatedAt,omitzero"`
	Held            bool           `json:"held,omitempty"`      // the label liftlock/hold
	HeadModified    string         `json:"unsound,omitempty"`   // why its head is not what we compose: somebody else's work
	Stale           bool           `json:"stale,omitempty"`     // the files it edits changed on its base since, or it conflicts
	Mergeable       string         `json:"mergeable,omitempty"` // the forge's word: yes, unknown, dirty, blocked, behind
	MergeNote       string         `json:"mergeNote,omitempty"`
	Review          policies.Facts `json:"review"`             // what gates are evaluated over; Now is filled in by Decide
	Diverged        bool           `json:"diverged,omitempty"` // Restore refused: the reverted fields changed since
	// Members are what moves in it where that are several components (batch:
	// environment); none in a pull request of one component's.
	Members []Member `json:"passengers,omitempty"`
	// RevertCause says why a revert of several components is wanted where it isn't this
	// one's doing. DecideBatch fills it in.
	RevertCause string `json:"wanted,omitempty"`
	// CrossEnvironment says why merging it now would change targets outside its
	// environment, or that this can't be told; empty: it provably doesn't.
	CrossEnvironment string `json:"beyond,omitempty"`
}

// PastPull is one of our pull requests that is no longer open.
type PastPull struct {
	Number     int       `json:"number"`
	Revert     bool      `json:"revert,omitempty"`
	Release    string    `json:"release,omitempty"` // full identity; for a revert, and where the head is gone, maybe only its short form; empty: unknown
	Merged     bool      `json:"merged,omitempty"`
	Superseded bool      `json:"superseded,omitempty"` // closed by us, or forgiven by /liftlock retry
	At         time.Time `json:"at"`                   // merged or closed
	Commit     string    `json:"commit,omitempty"`
	By         string    `json:"by,omitempty"`
}

// Composition is what an edit would be.
type Composition struct {
	Tip     string   `json:"tip"` // what it was composed on
	Empty   bool     `json:"empty,omitempty"`
	Refused string   `json:"refused,omitempty"` // why it can't be made
	Files   []string `json:"files,omitempty"`
}
