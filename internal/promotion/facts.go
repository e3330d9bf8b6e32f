package promotion

import (
	"time"

	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion/command"
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

// Facts are everything that a decision is made from: the facts of one component, or,
// with batch: environment, of all components of the pipeline, at one time.
type Facts struct {
	Components []ComponentFacts `json:"components"`
	// Compositions answers the shared requests for compositions: by environment and BatchID.
	Compositions map[string]map[string]Composition `json:"compositions,omitempty"`
	// Deployments are what the forge shows of the environments, where the pipeline wants that.
	Deployments Deployments `json:"deployments,omitzero"`
}

// ComponentFacts are what is known of one component.
type ComponentFacts struct {
	Now              time.Time          `json:"now"`
	Unit             Unit               `json:"unit"`
	Pipeline         *pipeline.Pipeline `json:"pipeline"`         // the last good one
	PipelineErr      string             `json:"broken,omitempty"` // why the file on the default branch can't be used: file:line: reason
	Problems         []string           `json:"problems,omitempty"`
	Tip              string             `json:"tip"`   // the head of the tracked branch, which has the rules
	Envs             []Env              `json:"envs"`  // topological: every environment after all its `after`
	Holds            Known[[]Hold]      `json:"holds"` // while they can't be read nothing merges
	ClusterIncidents []ClusterIncident  `json:"clusterIncidents,omitempty"`
	Limits           Limits             `json:"limits"`
	PendingCommands  []PendingCommand   `json:"pendingCommands,omitempty"`
}

// Hold is a person's stop on something larger than a pull request.
type Hold struct {
	Scope       string    `json:"scope"`                 // component, environment or pipeline
	Environment string    `json:"environment,omitempty"` // scope environment: which; scope component: empty, all of them
	By          string    `json:"by"`
	Reason      string    `json:"reason,omitempty"`
	Reverts     bool      `json:"reverts,omitempty"` // reverts stand still too
	At          time.Time `json:"at"`                // when it was given, which may be long before it was set
	Until       time.Time `json:"until,omitzero"`    // zero: until somebody lifts it
}

// IsOver says whether a hold has come to its end.
func (h Hold) IsOver(now time.Time) bool { return !h.Until.IsZero() && !now.Before(h.Until) }

// ClusterIncident is another unit's target that became unhealthy, or one of this unit's
// own in another environment.
type ClusterIncident struct {
	ID      string `json:"id,omitempty"` // the Application's name across Argo CDs
	Cluster string `json:"cluster"`
	Target  string `json:"target"`
	// Unsettled says that it is Progressing or Unknown without having changed itself, not
	// Degraded or Missing: that counts only when it lasts.
	Unsettled bool      `json:"unsettled,omitempty"`
	Health    string    `json:"health,omitempty"` // Argo CD's word
	Since     time.Time `json:"since"`            // by our clock
	Until     time.Time `json:"until,omitzero"`   // when it had recovered, a short while ago; zero: it hasn't
	// Component names the component, where it is one of this pipeline.
	Component   string `json:"component,omitempty"`
	Environment string `json:"environment,omitempty"`
	// RevisionChanged says that it was synced, or made, just before; nil: that can't be told.
	RevisionChanged *bool `json:"revisionChanged,omitempty"`
}

// Limits are what is in use of the pipeline's limits, this unit not counted
// where it says so.
type Limits struct {
	OpenByOthers   map[string]int `json:"openByOthers,omitempty"` // by environment: open promotions of other components
	QueuedAhead    map[string]int `json:"ahead,omitempty"`        // by environment: other components that have waited longer for a place
	MergesLastHour int            `json:"mergesLastHour"`
	OldestMerge    time.Time      `json:"oldestMerge,omitzero"` // of those
	// promotions that joined the forge's merge queue, or whose merge was asked for, within that hour, this
	// unit's too, and that aren't known to have landed
	QueuedMerges []QueuedMerge `json:"queuedMerges,omitempty"`
	// Reverts opened within 10 minutes, this unit's too. Where this unit is degraded, they are
	// those since 10 minutes before it became so: the limit stays reached when time passes and a
	// person is called once.
	RevertsByEnv       map[string]int `json:"revertsByEnv,omitempty"`
	RevertsByCluster   map[string]int `json:"revertsByCluster,omitempty"` // likewise, by cluster
	OldestRecentRevert time.Time      `json:"oldestRevertInTen,omitzero"`
}

// QueuedMerge is a promotion that Liftlock had join the forge's merge queue.
type QueuedMerge struct {
	Pull int       `json:"pull"`
	At   time.Time `json:"at"` // when it joined
}

// PendingCommand is a person's command that waits to take effect.
type PendingCommand struct {
	ID          int64        `json:"id"`
	Verb        command.Verb `json:"verb"` // promote, revert or retry
	Environment string       `json:"environment"`
	Release     string       `json:"release,omitempty"` // identity it was given for; empty: whatever is there when it is judged
	By          string       `json:"by"`
	ByID        int64        `json:"byID,omitempty"` // of the account; 0: not known
	Reason      string       `json:"reason,omitempty"`
	At          time.Time    `json:"at"`
}

// How a release came to be in an environment.
const (
	ByBaseline  = "baseline"  // before the pipeline (or this part of it) came in
	ByPromotion = "promotion" // a promotion of ours that was merged
	ByRevert    = "revert"    // a revert of ours that was merged
	ByPerson    = "person"    // a commit of somebody's: an arrival in a source environment, a divergence elsewhere
	// a person's commit to what would have been promoted there: no divergence, and no promotion that could be
	// taken back
	ByHand = "hand"
)

// Landed is the commit that brought an environment's carried fields to where they are.
type Landed struct {
	Commit string    `json:"commit"`
	Parent string    `json:"parent,omitempty"` // first parent
	At     time.Time `json:"at"`               // the forge's merge time for our own, else the commit's time
	By     string    `json:"by"`
	Pull   int       `json:"pull,omitempty"`   // ByPromotion, ByRevert
	Author string    `json:"author,omitempty"` // ByPerson: the commit's author, or who merged ModifiedPull, for people
	// ModifiedPull is, ByPerson, the pull request of ours by which it came, with something else than
	// what was composed.
	ModifiedPull int `json:"modifiedPull,omitempty"`
	// ResetFrom is, ByPerson, what the release is called that is gone since somebody reset the branch to
	// this commit.
	ResetFrom string `json:"resetFrom,omitempty"`
	// Batch and Members are what its pull request moved, as in Pull.
	Batch   bool     `json:"batch,omitempty"`
	Members []Member `json:"members,omitempty"`
}

// Arrival is a release that was, or is, in an environment.
type Arrival struct {
	Seq     int64     `json:"seq"` // rises with every arrival in this unit
	Release string    `json:"release"`
	Name    string    `json:"name"`
	Commit  string    `json:"commit"`
	By      string    `json:"by"`
	Author  string    `json:"author,omitempty"` // ByPerson: the commit's author, for people
	Pull    int       `json:"pull,omitempty"`   // ByPromotion, ByRevert
	At      time.Time `json:"at"`
	// When it was last verified and last degraded. The later one is in force. MarkVerified and
	// MarkDegraded see to it that this is the last verdict, whatever the clocks that stamped them.
	VerifiedAt time.Time `json:"verifiedAt,omitzero"`
	DegradedAt time.Time `json:"degradedAt,omitzero"`
	// WithdrawnAt is when an earlier release took its place, a person's change was followed by
	// another release, or its commit went from the branch; zero: none of that.
	WithdrawnAt time.Time `json:"withdrawnAt,omitzero"`
	// Soak is for how long it was verified without a break.
	Soak Soak `json:"soak,omitzero"`
}

// verdictStep is the least time between two verdicts on an arrival: what the store
// still keeps apart.
const verdictStep = time.Microsecond

// MarkVerified says that the arrival is verified from now on, and not before its last verdict: a
// clock may be behind the one that gave that verdict.
func (a *Arrival) MarkVerified(now time.Time) { a.VerifiedAt = later(now, a.DegradedAt) }

// MarkDegraded says that it is degraded from now on.
func (a *Arrival) MarkDegraded(now time.Time) { a.DegradedAt = later(now, a.VerifiedAt) }

func later(now, than time.Time) time.Time {
	if now.After(than) {
		return now
	}
	return than.Add(verdictStep)
}

// IsDegraded says that it is degraded, and wasn't verified since.
func (a *Arrival) IsDegraded() bool {
	return !a.DegradedAt.IsZero() && !a.DegradedAt.Before(a.VerifiedAt)
}

// IsVerified says that it is verified, and wasn't degraded since.
func (a *Arrival) IsVerified() bool { return !a.VerifiedAt.IsZero() && !a.IsDegraded() }

// isReverted says of an arrival, by its place in the history, that a revert has taken its release
// back since. Earlier findings about it no longer speak for it.
func (e *Env) isReverted(i int) bool {
	for k := 1; k <= i; k++ {
		if e.History[k].Release == e.History[i].Release && e.History[k-1].By == ByRevert {
			return true
		}
	}
	return false
}

// Env is one environment of the unit.
type Env struct {
	Name         string               `json:"name"`
	Branch       string               `json:"branch"` // that its release is read from and its pull requests are merged into
	Tip          string               `json:"tip"`    // the head of that branch; empty: there is no such branch
	Spec         pipeline.Environment `json:"spec"`
	Gates        []policies.Gate      `json:"gates,omitempty"` // the spec's, raised to the server's floor
	Floor        []policies.Gate      `json:"floor,omitempty"` // the server's alone
	Release      Known[Release]       `json:"now"`
	Fields       FieldState           `json:"fields,omitempty"`
	FieldsReason string               `json:"fieldsReason,omitempty"` // FieldsMixed: which disagree, where
	Landed       Known[Landed]        `json:"landed"`
	Targets      []Target             `json:"targets,omitempty"`
	// SyncWindows are Argo CD's for each target, where a gate goes by them.
	SyncWindows []policies.TargetWindow `json:"syncWindows,omitempty"`
	Open        *Pull                   `json:"open,omitempty"`   // our open promotion
	Revert      *Pull                   `json:"revert,omitempty"` // our open revert
	// BatchPull is the open batch pull request that this component is no member of.
	BatchPull *Pull `json:"batchPull,omitempty"`
	// WrongKind is an open promotion of ours with this component that is of the other
	// kind than spec.batch says by now.
	WrongKind *Pull `json:"wrongKind,omitempty"`
	// The branch of promotions into here, and that of a revert of what is there now.
	BranchState        BranchState `json:"branchState,omitempty"`
	BranchReason       string      `json:"branchReason,omitempty"`
	RevertBranchState  BranchState `json:"revertBranchState,omitempty"`
	RevertBranchReason string      `json:"revertBranchReason,omitempty"`
	// MissingSignatures says that the forge merges only signed commits into the branch, why ours
	// aren't, and what to do; empty: it isn't known to keep ours from being merged.
	MissingSignatures string                 `json:"missingSignatures,omitempty"`
	PastPulls         []PastPull             `json:"past,omitempty"`        // ours that are no longer open, newest first
	History           []Arrival              `json:"history,omitempty"`     // newest first
	Compositions      map[string]Composition `json:"composed,omitempty"`    // by the identity of a release that may come here
	Restore           Known[Composition]     `json:"restore"`               // of what is there now
	HasNoTarget       bool                   `json:"hasNoTarget,omitempty"` // the ApplicationSets generate none of the component here
	RevertedReleases  []string               `json:"reverted,omitempty"`    // short releases that a revert commit on the branch names
}

// Source says that releases arrive here from outside.
func (e *Env) Source() bool { return e.Spec.IsSource() }

// isChangedByHand says that a person put there what is there, past the environments before it.
// Where releases arrive from outside that is as it should be.
func (e *Env) isChangedByHand() bool { return e.Landed.Value.By == ByPerson && !e.Source() }

// Target is one target of an environment with the verdict about what landed.
type Target struct {
	Name       string               `json:"name"`         // unique in its environment
	ID         string               `json:"id,omitempty"` // its name across Argo CDs
	ArgoCD     string               `json:"argocd,omitempty"`
	Cluster    string               `json:"cluster"`
	Namespace  string               `json:"namespace,omitempty"` // where it is deployed to; empty: its manifests say
	LastSync   *SyncInfo            `json:"lastSync,omitempty"`  // the Application's, while the target is degraded
	Verdict    verification.Verdict `json:"verdict"`
	NotHealthy bool                 `json:"notHealthy,omitempty"` // Argo CD calls it something else than Healthy
	// Unhealthy are its resources that aren't Healthy, as far as Argo CD says; where it is
	// degraded, the answer to RequestCulprits. Not known is something else than none.
	Unhealthy Known[[]verification.Resource] `json:"unhealthy"`
	Timeline  []verification.StateChange     `json:"timeline,omitempty"`
	// HealthyBefore: was a degraded one well just before the promotion was merged? Not OK
	// when that evidence is gone; then the degradation is left to a person.
	HealthyBefore Known[bool] `json:"healthyBefore"`
	// SyncBarred says why Liftlock may not ask for a sync by what Argo CD allows it, and what to
	// do about it; empty: it may. The answer to RequestSyncRights.
	SyncBarred Known[string] `json:"syncBarred,omitzero"`
	// ChangedSince are commits other than the landed one that changed what the target
	// reads since; the answer to RequestBlame.
	ChangedSince Known[[]string] `json:"changedSince"`
	// ChangedObjects are the target's objects that what landed may have made unhealthy: those
	// that it changed, and those that use one of them; the answer to RequestChangedObjects.
	ChangedObjects Known[[]Object] `json:"changedObjects"`
	// BroughtImages are those of the images that its pods can't pull which what landed brought,
	// or may have kept from being pulled; known as ChangedObjects is.
	BroughtImages []string `json:"broughtImages,omitempty"`
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
	inNamespace := o.Namespace == r.Namespace || r.Namespace == ""
	return o.Group == r.Group && o.Kind == r.Kind && o.Name == r.Name && inNamespace
}

// MergesByItself says whether Liftlock merges promotions into the environment, or reverts there,
// once all their gates pass; otherwise a person does.
func (e *Env) MergesByItself(revert bool) bool {
	if revert {
		return e.Spec.OnDegraded.Action == pipeline.OnDegradedRevertAndMerge
	}
	return e.Spec.Merge != pipeline.Manual
}

// Pull is one of our open pull requests.
type Pull struct {
	Number    int       `json:"number"`
	URL       string    `json:"url,omitempty"`
	Head      string    `json:"head"`
	HeadSince time.Time `json:"headSince,omitzero"` // since when that is known to be its head; zero: that isn't known
	// the identity its head carries (a revert: the one it takes back; only its short form where its promotion
	// isn't known)
	Release         string        `json:"release"`
	DeclaredRelease Known[string] `json:"declaredRelease"` // the release that its description says we put there
	Name            string        `json:"name"`
	CreatedAt       time.Time     `json:"createdAt"`
	UpdatedAt       time.Time     `json:"updatedAt,omitzero"`
	Held            bool          `json:"held,omitempty"`     // the label liftlock/hold
	HeldUntil       time.Time     `json:"heldUntil,omitzero"` // when that is lifted by itself; zero: never
	HeldBy          string        `json:"heldBy,omitempty"`   // who holds it for longest; empty: nobody by a command
	HoldReason      string        `json:"holdReason,omitempty"`
	HeadState       HeadState     `json:"headState,omitempty"`
	HeadReason      string        `json:"headReason,omitempty"` // HeadModified: why
	Queued          bool          `json:"queued,omitempty"`     // in the forge's merge queue, or else set to merge by itself
	// when Liftlock had this head join that queue; zero: it didn't, took it out since, or it isn't known
	JoinedQueueAt time.Time  `json:"joinedQueueAt,omitzero"`
	Stale         bool       `json:"stale,omitempty"` // the files it edits changed on its base since, or it conflicts
	Mergeable     MergeState `json:"mergeable,omitempty"`
	MergeNote     string     `json:"mergeNote,omitempty"`
	// nobody has read Mergeable since something was heard of it: RequestMergeability reads it
	MergeUnread bool `json:"mergeUnread,omitempty"`
	Draft       bool `json:"draft,omitempty"`
	// of the forge's own, where it says that some keep it from being merged
	Rules   RuleReport    `json:"rules,omitzero"`
	Refusal *MergeRefusal `json:"refusal,omitempty"` // of this head, which the forge blocks; nil: none was sent
	// another pull request whose turn it is to be brought up to date; 0: none
	UpdatedFirst int         `json:"updatedFirst,omitempty"`
	SentUpdate   *SentUpdate `json:"sentUpdate,omitempty"` // of this head, to bring it up to date; nil: the forge wasn't sent it
	// others of the repository are merged before it: until its turn comes each of them has the forge compute
	// anew whether it can be merged
	AwaitsTurn bool `json:"awaitsTurn,omitempty"`
	// since when MergeUnknown is the answer for this head and its branch's tip; zero: UpdatedAt
	UncomputedSince time.Time      `json:"uncomputedSince,omitzero"`
	Review          policies.Facts `json:"review"`               // what gates are evaluated over; Now is filled in by Decide
	Skips           []Skip         `json:"skips,omitempty"`      // of this very head and release
	Diverged        bool           `json:"diverged,omitempty"`   // Restore refused: the reverted fields changed since
	Incomplete      string         `json:"incomplete,omitempty"` // of a promotion, as of a Composition
	EffectFacts
	// Batch says that it is the pull request of all components of its pipeline that are
	// ready (batch: environment), maybe of one only. Then Members are what moves in it; in
	// a component's own pull request they may be left out.
	Batch       bool       `json:"batch,omitempty"`
	Members     []Member   `json:"members,omitempty"`
	Reach       ReachState `json:"reach,omitempty"` // if it were merged now
	ReachReason string     `json:"reachReason,omitempty"`
}

// PastPull is one of our pull requests that is no longer open.
type PastPull struct {
	Number int  `json:"number"`
	Revert bool `json:"revert,omitempty"`
	// full identity; for a revert, and where the head is gone, maybe only its short form; empty: unknown
	Release    string `json:"release,omitempty"`
	Merged     bool   `json:"merged,omitempty"`     // into the environment's branch
	Superseded bool   `json:"superseded,omitempty"` // closed by us, or forgiven by /liftlock retry
	// OnOtherBranch says that a revert was merged into another branch than the environment's.
	// Nothing landed, and the release that it was to take back stays in quarantine. For a promotion
	// it is as if we had closed it.
	OnOtherBranch bool `json:"onOtherBranch,omitempty"`
	// Unrequested says that a person merged the promotion and nobody who may had asked for its release:
	// it lifts no quarantine and no veto. It is known only where there is one that it could lift.
	Unrequested bool      `json:"unrequested,omitempty"`
	At          time.Time `json:"at"` // merged or closed
	Commit      string    `json:"commit,omitempty"`
	By          string    `json:"by,omitempty"`
}
