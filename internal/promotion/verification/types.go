package verification

import "time"

// App is one Argo CD Application reduced to what a verdict needs.
type App struct {
	ArgoCD    string // name of the Argo CD instance in the server's file
	Namespace string
	Name      string
	UID       string
	CreatedAt time.Time `json:",omitzero"` // by the API server's clock

	Sources     []Source // spec.source or spec.sources, in order
	SourceList  bool     `json:",omitempty"` // it is spec.sources, however many
	Destination Destination
	Project     string `json:",omitempty"`
	AutoSync    bool   // spec.syncPolicy.automated is set
	SelfHeal    bool   `json:",omitempty"` // and undoes changes in the cluster
	// Ignored is spec.ignoreDifferences as JSON, bounded; RespectsIgnored: what it names isn't synced either.
	Ignored         string `json:",omitempty"`
	RespectsIgnored bool   `json:",omitempty"`
	OwnedBySet      string // name of the owning ApplicationSet, empty when plain
	Deleting        bool
	// Labels are the object's own, bounded: people find Applications by them, no verdict does.
	Labels map[string]string `json:",omitempty"`

	SyncStatus     string   // Synced, OutOfSync, Unknown or empty
	Revisions      []string // status.sync.revision or .revisions, one a source; shorter when Argo CD has said nothing yet
	ComparedToSpec bool     // status.sync.comparedTo equals the spec's sources and destination
	Health         string   // Healthy, Progressing, Degraded, Suspended, Missing, Unknown or empty
	HealthMessage  string
	HealthSince    time.Time // zero where this Argo CD doesn't report lastTransitionTime
	ReconciledAt   time.Time // zero when never reconciled; only ever compared for having changed

	RefreshPending bool // the refresh annotation is set
	// the ReconciledAt with which the last refresh annotation that was seen set went away; zero: none seen
	// (see TrackRefresh)
	RefreshedAt  time.Time
	Pending      bool // .operation is set: a sync was asked for and has not begun
	Operation    *Operation
	Deployed     []Deployment // the last few, newest first
	MarkedFor    string       `json:",omitempty"` // the pipeline that an annotation lets sync the Application
	Hydration    *Hydration   // nil without a source hydrator
	HydratedPath string       // with a source hydrator: the folder of the sync branch that the Application deploys
	HydratedRepo string       `json:",omitempty"` // the repository of that branch; empty: that of Sources
	// HydratedFrom is what the source hydrator says it made, and from what. It has said so of
	// commits that don't have it (argo-cd#25190).
	HydratedFrom []HydratedCommit `json:",omitempty"`
	// the last commit that the hydrator compared, whether or not it changed a manifest; from 3.5 on
	ComparedDry  string `json:",omitempty"`
	Conditions   []Condition
	Unhealthy    []Resource // resources whose health is neither Healthy nor empty
	HealthInTree bool       `json:",omitempty"` // the health of resources is kept outside the Application: Unhealthy says nothing
	Unchecked    Unchecked  `json:",omitzero"`  // resources of which Argo CD can't tell how they are
	// UncheckedKnown says that Unchecked is known although HealthInTree, and UncheckedError why
	// it can't be told for the moment.
	UncheckedKnown bool `json:",omitempty"`
	// Inconclusive names an analysis that ended without a result, where it is known from the
	// resource tree only; empty: there is none, or it wasn't read.
	Inconclusive   string       `json:",omitempty"`
	UncheckedError string       `json:",omitempty"`
	Differences    []Difference `json:",omitempty"` // resources that are OutOfSync, the worst first, bounded
	Differing      int          `json:",omitempty"` // how many are
	SetStep        SetStep      `json:",omitzero"`  // its turn in its ApplicationSet's RollingSync
	Children       []ChildRef   `json:",omitempty"` // the Applications among its resources that are to stay, bounded
	// Images are those of the pods that Argo CD sees below the Application's resources, those of
	// init containers too. There are none where it sees no pod, or more of them than are kept.
	Images []string `json:",omitempty"`
}

// Unchecked are resources of kinds that aren't Kubernetes's own and that Argo CD has no health
// check for: they count as healthy as soon as they are applied. Where the health of
// resources is kept outside the Application it isn't known which they are.
type Unchecked struct {
	Total int
	Kinds []string `json:",omitempty"` // each once, sorted, bounded
}

// ChildRef names an Application that is a resource of another one.
type ChildRef struct{ Namespace, Name string }

// SetStep is an Application's turn in its ApplicationSet's RollingSync.
type SetStep struct {
	Status   string      // Waiting, Pending, Progressing or Healthy; empty: there is no RollingSync, or it isn't told
	Step     string      `json:",omitempty"` // from 1; -1: it is in none, so only people sync it
	Since    time.Time   `json:",omitzero"`
	NoUpdate bool        `json:",omitempty"` // its step's maxUpdate is 0: only people sync it
	WaitsFor *StepMember `json:",omitempty"` // while it is Waiting or Pending: the first that has to be Healthy before; nil: it isn't told
}

// StepMember is another Application of the same ApplicationSet.
type StepMember struct {
	Application, Step, Status string
	Health                    string    // empty: not known
	Since                     time.Time // since when it has the status
}

// isLeftOut says that the RollingSync never syncs the Application.
func (s *SetStep) isLeftOut() bool { return s.Step == "-1" || s.NoUpdate }

// Source is one source of an Application. Options stands for whatever else the
// source says: sources with equal Options say the same.
type Source struct {
	RepoURL, Path, Chart, TargetRevision, Ref string
	Options                                   string
}

// HydratedCommit is a commit of the source hydrator's with the one that it was made from.
type HydratedCommit struct{ Hydrated, Dry string }

// Hydration is the source hydrator's present or last run for an Application.
type Hydration struct {
	Phase   string // Hydrating, Hydrated or Failed
	Message string
	Dry     string // the commit it was made from, where it is known
}

// Destination is where an Application deploys to.
type Destination struct {
	Server, Name, Namespace string
}

// Operation is the running or last sync.
type Operation struct {
	Phase      string // Running, Terminating, Succeeded, Failed or Error
	Message    string
	Revisions  []string // what it synced, one a source
	StartedAt  time.Time
	FinishedAt time.Time // zero while it runs
	Retries    int64
	RetryLimit int64 // 0: none

	// The operation's author and subject; see IsWhole.
	By               string       `json:",omitempty"` // who asked for it, empty: Argo CD itself, or it isn't said
	Automated        bool         `json:",omitempty"` // Argo CD's own doing, or its ApplicationSet controller's
	DryRun           bool         `json:",omitempty"` // it applied nothing
	Local            bool         `json:",omitempty"` // it synced manifests from somebody's machine
	Partial          bool         `json:",omitempty"` // it synced some of the resources only
	SelfHealAttempts int64        `json:",omitempty"` // above 0: it undid a change in the cluster
	Results          []SyncResult `json:",omitempty"` // of its resources and hooks, the worst first, bounded
}

// SyncResult is what an operation came to for one resource or hook.
type SyncResult struct {
	Group, Kind, Namespace, Name string
	Status                       string `json:",omitempty"` // Synced, SyncFailed, Pruned or PruneSkipped; empty for most hooks
	Hook                         string `json:",omitempty"` // PreSync, PostSync, …; empty for a resource
	Phase                        string `json:",omitempty"` // a hook's, or a resource's in its wave: Running, Succeeded, Failed or Error
	Message                      string `json:",omitempty"`
}

// Deployment is a sync of a whole Application that succeeded.
type Deployment struct {
	Revisions []string // one a source
	At        time.Time
	OfSpec    bool `json:",omitempty"` // of the very sources that the Application has now
}

// Condition is one of an Application's conditions.
type Condition struct{ Type, Message string }

// Resource is one resource of an Application with its health.
type Resource struct {
	Group, Kind, Namespace, Name string
	Health, Message              string
	Descendants                  []Descendant `json:",omitempty"` // that aren't Healthy either, the most telling first, bounded
}

// Descendant is what a resource brought forth, such as a pod.
type Descendant struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Health  string `json:"health"`
	Reason  string `json:"reason,omitempty"` // such as ImagePullBackOff
	Message string `json:"message,omitempty"`
	// Images are a pod's, where it can't pull one of them and doesn't say which; bounded.
	Images []string `json:"images,omitempty"`
}

// Relation is how a revision that Argo CD reports stands to the commit that is
// being verified. The caller computes it from Git.
type Relation string

// The relations. Holds: the revision is the commit or a descendant of it, and
// the carried fields there hold the release. Superseded: a descendant whose carried
// fields hold another release. Before: neither. Unresolved: Git doesn't know the
// revision (not fetched yet, or a source of another repository).
const (
	Holds      Relation = "holds"
	Superseded Relation = "moved"
	Before     Relation = "before"
	Unresolved Relation = "unresolved"
)

// SyncRequest is how a sync is asked for.
type SyncRequest struct {
	// Revisions are the commits to sync, one a source. An empty one stands for its targetRevision,
	// and no list for that of all sources. A chart or a hydrated source can be synced to nothing
	// else.
	Revisions []string
	Prune     Prune
	Reason    string // for people, shown with the operation
}

// Prune says whether a sync removes what Git no longer has.
type Prune string

// Auto prunes where the Application's automated policy says so, and otherwise not.
const (
	PruneAuto   Prune = "auto"
	PruneAlways Prune = "always"
	PruneNever  Prune = "never"
)

// Limits are the times of a verification, from the pipeline file.
type Limits struct {
	ArriveWithin, Timeout, HealthyFor, Watch, Debounce time.Duration
	QueueFor                                           time.Duration // 0: for ever
	SuspendedFor                                       time.Duration
	SuspendedFails                                     bool // suspended: fail
	RequireHealthChecks                                bool // ignoreMissingHealth: false
	OtherImagesPass                                    bool // runs.images: reported
	Trigger                                            bool // sync: trigger
	NoRefresh                                          bool // the server's refresh: off
}

// Expect is what is being verified on one target. Commit and Release are its
// identity; OperationRel and Unreachable are about one look only.
type Expect struct {
	Commit  string    // the commit that landed
	Release string    // the release's identity; part of what a Memory is about
	Landed  time.Time // by our own clock: when Liftlock first saw the commit on the branch
	Limits  Limits

	// OperationRel is how App.Operation.Revisions stand to Commit, restricted
	// and ordered like Judge's rel. It tells a sync of this commit from one of
	// another. Empty: there was no operation, or it names no revision; then an
	// operation whose revisions equal App.Revisions is taken to stand as those do.
	OperationRel []Relation

	// DeployedBefore says that a whole sync of the commit succeeded before the
	// Application's last operation began, by the Application's own history.
	DeployedBefore bool

	// Generated is how the target's ApplicationSet, or its plain manifest, wants its Application to
	// be. nil: there is neither, or what it generates is not known.
	Generated *Generated

	// NotHydrated says what the hydrated revision in App.Revisions lacks to be known to have
	// the commit. Empty: nothing, or nothing is hydrated, or nobody knows more than rel says.
	NotHydrated string

	// Images are those that the commit brought to the target's workloads which should have pods. None: it
	// brought none, or nobody knows, or it doesn't matter whether they run.
	Images []LandedImage

	// Running are the images that the target's pods have, with what is known of each. None: nobody read its pods.
	Running []RunningImage

	// Unreachable says why Argo CD can't be asked at this look (the watch is
	// broken, access is refused), so that App may be old or missing. Empty: it can.
	Unreachable string

	// Unmarked is the pipeline whose mark a plain Application lacks, so that Liftlock may
	// not sync it. Empty: it may.
	Unmarked string

	// Window is the sync window that keeps the target from being synced right now; nil:
	// there is none, or that isn't known.
	Window *Window
}

// Window is a closed sync window, or one that denies.
type Window struct {
	Project string    // the AppProject that has it
	Opens   time.Time // when syncs are possible again; zero: not within a year
}

// Generated is what an ApplicationSet generates for one target, as far as a
// verdict needs it.
type Generated struct {
	Set     string   // the ApplicationSet's name; empty for a plain manifest
	File    string   // where the plain manifest is; empty for a set
	Sources []Source // one for each of App.Sources
	// Carries says that the set generates from files with the release's fields (a generator's file,
	// the set's own manifest). So the target has the release only when its Application's sources
	// are these.
	Carries  bool
	Rolling  bool     // its strategy is RollingSync: the controller asks for the syncs, a step at a time
	NoUpdate bool     // applicationsSync is create-only or create-delete: the controller leaves an Application as it was created
	Ignored  []string // what ignoreApplicationDifferences leaves as it is, as the set says it
}

// State is where one target is on the way.
type State string

// The states, in the order in which a target passes through them. Failed:
// never reached, not synced, or suspended past its time: a person is asked.
const (
	Absent      State = "absent"      // no such Application yet
	Arriving    State = "arriving"    // has not taken the commit yet
	Queued      State = "queued"      // it waits its turn, or for a sync window: the clock has not started
	Syncing     State = "syncing"     // has it, not done
	Refreshing  State = "refreshing"  // done, but the health may be about an older state
	Progressing State = "progressing" // fresh, not healthy yet
	Suspended   State = "suspended"
	Soaking     State = "soaking" // healthy, not yet for healthyFor
	Verified    State = "verified"
	Degraded    State = "degraded"
	Failed      State = "failed"
	Unclear     State = "unclear" // Argo CD can't tell: Unknown, ComparisonError, unreachable. Neither healthy nor unhealthy.
)

// Memory is what must be remembered between two looks at a target. It belongs
// to one Expect (commit and release) and one Application object; a Memory about
// another is discarded. It marshals to JSON. The zero Memory is the start. All
// times are the caller's clock, but for DoneReconciled, LastReconciled and
// HealthMark, which are Argo CD's and only ever compared with Argo CD's own.
type Memory struct {
	Commit, Release string
	UID             string        // the Application object's; another object starts again
	State           State         // at the last look
	Health          string        // at the last look
	Since           time.Time     // since when State holds
	Timeline        []StateChange // state and health changes, oldest first, bounded

	// Taking the commit.
	Arrival     time.Time // when the arriveWithin clock started; zero: not yet (queued, or Argo CD out of reach)
	Done        time.Time // when the commit was first seen taken and synced (2 and 3)
	QueuedSince time.Time `json:",omitzero"` // continuously waiting its turn since
	HeldUpAt    time.Time `json:",omitzero"` // when last seen queued or suspended
	UndoneSince time.Time // after Done: since when that no longer holds; zero: it does
	// when the operation began that was the last when the target was last seen done and not yet verified;
	// zero: there was none
	DoneWith        time.Time `json:",omitzero"`
	SyncRequestedAt time.Time // when a sync was last wanted
	SyncRequests    int       // how often in a row
	// RetriedAfter is when the operation began whose failure counts no longer, because a person
	// has another sync asked for; zero: there had been none. nil: nobody has, or it has begun.
	RetriedAfter *time.Time `json:",omitempty"`

	// Being sure that the health is about it.
	DoneReconciled     time.Time // the ReconciledAt that was seen with Done and no refresh pending; zero: not seen yet
	Reconciles         int       // how often ReconciledAt has changed since
	LastReconciled     time.Time
	RefreshRequestedAt time.Time // when a refresh was last wanted
	RefreshRequests    int       // how often in a row
	Fresh              bool      // a fresh state has been seen since Done

	// Being well.
	TimeoutFrom    time.Time // Done, moved forward by the time in which nobody could tell or the target was suspended
	PausedSince    time.Time // since when the timeout's clock stands still; zero: it runs
	HealthySince   time.Time // continuously healthy since; zero: not healthy
	HealthMark     time.Time // the HealthSince seen with it: another one means that it was unhealthy between two looks
	EverHealthy    bool
	BadSince       time.Time // continuously degraded or missing since
	NotReadySince  time.Time // continuously degraded, missing or progressing since
	SuspendedSince time.Time
	// since when another image than what landed has run in its place, without a break; zero: none is known to
	OthersSince     time.Time  `json:",omitzero"`
	UnclearSince    time.Time  `json:",omitzero"`  // since when nobody has been able to tell, without a break; zero: it can be told
	UnhealthyBefore bool       `json:",omitempty"` // Degraded or Missing when last seen before the sync of the commit began
	MissingBefore   bool       `json:",omitempty"` // Missing in a comparison with the commit before its sync began, and ever since
	SyncFailedSince time.Time  // the release's own sync ended Failed or Error
	SyncTried       bool       `json:",omitempty"` // a sync of the commit has failed, whatever came of a later one
	SyncFailure     string     `json:",omitempty"` // how that convicts the release; empty: it doesn't
	SyncCulprits    []Resource `json:",omitempty"` // what failed in it
	ErrorRetried    bool       `json:",omitempty"` // another sync was asked for after one that ended Error
	VerifiedAt      time.Time  // when it was first verified
	OtherImages     string     `json:",omitempty"` // which other image than what landed ran then; empty: none that is known
	Runs            *Runs      `json:",omitempty"` // what it was seen to run once it was verified; nil: nobody told
	// Habits are under which other names its cluster runs images; they stay from release to release.
	Habits []ImageHabit `json:",omitempty"`
	// Pins are the digests that ran for tags, of each repository the last; they stay from release to release.
	Pins       []ImagePin `json:",omitempty"`
	DegradedAt time.Time  // since when it is degraded; zero: it isn't, or was verified again since
	Unhealed   bool       // degraded by its health and not healthy since

	// Drift.
	SyncedWith string    `json:",omitempty"` // what it was compared with when last seen synced
	DriftSince time.Time `json:",omitzero"`
}

// StateChange is a change of a target's health or state, for the evidence.
type StateChange struct {
	At    time.Time
	State State
	Note  string
}

// Verdict is the answer about one target and one commit.
type Verdict struct {
	State  State
	Lapsed bool // Verified, but only from before: how it is right now can't be told
	// OtherImages says of one that was verified all the same which other image than what landed ran then.
	OtherImages string    `json:",omitempty"`
	Runs        *Runs     `json:",omitempty"` // what it was seen to run once it was verified; nil: it isn't, or nobody told
	Reason      string    // for people, one sentence
	Since       time.Time // since when the State holds; zero: unknown
	Next        time.Time // when the verdict changes at the latest if nothing is heard; zero: only on news
	Refresh     bool      // ask Argo CD for a refresh now
	Sync        bool      // ask Argo CD for a sync now (sync: trigger)
	// UnhealthyBefore says that the target was Degraded or Missing when last seen before the
	// sync of the commit began.
	UnhealthyBefore bool `json:",omitempty"`
	// OnlyMissingBefore says that UnhealthyBefore is known of nothing but that it has been
	// Missing ever since.
	OnlyMissingBefore bool `json:",omitempty"`
	// HeldUpAt is when the target was last seen queued or suspended: what it does after
	// that is news, however long ago the commit landed.
	HeldUpAt time.Time `json:",omitzero"`
	// Untold says that nobody has been able to tell how the target is for so long that a
	// person should look why: untoldTimeouts times the timeout.
	Untold bool   `json:",omitempty"`
	Drift  *Drift `json:",omitempty"` // nil: none, or it can't be told
	// RunsFormer says that it is known to run what was there before the commit still.
	RunsFormer bool `json:",omitempty"`
	// InSync says that it is known not to have drifted, and DriftUntold why it can't be told
	// whether it has.
	InSync      bool   `json:",omitempty"`
	DriftUntold string `json:",omitempty"`
	// Unchecked are the resources that count as healthy without anybody knowing.
	Unchecked Unchecked `json:",omitzero"`
	// UncheckedUnknown says that it isn't known which they are.
	UncheckedUnknown bool `json:",omitempty"`
	// Worsening says that the target will count as degraded, or have failed, at Next, unless something
	// changes until then. Progressing alone is no such sign.
	Worsening bool `json:",omitempty"`
	// Culprits are what failed in the sync of the commit, where that is what makes the
	// target degraded: resources and hooks that Argo CD needn't list as unhealthy.
	Culprits []Resource `json:",omitempty"`
	// Unsynced says that the target is Failed or Degraded for want of a sync of the commit that
	// succeeds. It is nil where another sync would mend nothing, or one is under way.
	Unsynced *Unsynced `json:",omitempty"`
}

// Unsynced is a target whose first sync of the commit failed or never began. An automated policy
// doesn't begin another one by itself.
type Unsynced struct {
	LastSync time.Time `json:",omitzero"`  // when the Application's last operation began; zero: there was none
	Barred   string    `json:",omitempty"` // why Liftlock may not ask for one; empty: it may, as far as its rights go
	// The retried sync's memory goes on with these, as Memory has them.
	SyncTried       bool `json:",omitempty"`
	UnhealthyBefore bool `json:",omitempty"`
	MissingBefore   bool `json:",omitempty"`
}
