package api

import (
	"encoding/json"
	"time"

	"github.com/liftlock/liftlock/internal/wording"
)

// Error is every answer that isn't a success.
type Error struct {
	Error string `json:"error"`
}

// Pipelines answers GET /api/v1/pipelines.
type Pipelines struct {
	Pipelines []Pipeline `json:"pipelines"`
	Troubles  []Trouble  `json:"troubles,omitempty"`
}

// Pipeline is one pipeline of one repository. Components are left out of lists.
type Pipeline struct {
	Name         string   `json:"name"`
	Repository   string   `json:"repository"`   // "forge:owner/name"
	Environments []string `json:"environments"` // in the order of the pipeline
	// Graph are the environments with those right before each, in the same order; left out
	// where that isn't known yet.
	Graph      []PipelineEnvironment `json:"graph,omitempty"`
	Broken     string                `json:"broken,omitempty"` // file:line: why the file on the default branch can't be used
	Counts     Counts                `json:"counts"`
	Components []Component           `json:"components,omitempty"`
}

// PipelineEnvironment is where an environment is in its pipeline.
type PipelineEnvironment struct {
	Name   string   `json:"name"`
	After  []string `json:"after"` // those that must have verified a release before it comes here; empty: releases begin here
	Branch string   `json:"branch,omitempty"`
}

// Counts are how many components of a pipeline there are, and in how many of
// them something moves, waits or needs a person. One component may be in several.
type Counts struct {
	Components int `json:"components"`
	Moving     int `json:"moving"`
	Waiting    int `json:"waiting"`
	Attention  int `json:"attention"`
}

// Component is what is promoted as a unit, with all its environments.
type Component struct {
	Repository   string        `json:"repository"`
	Pipeline     string        `json:"pipeline"`
	Component    string        `json:"component"`
	At           time.Time     `json:"at"`            // when this last changed
	Tip          string        `json:"tip,omitempty"` // the tracked branch's head that it was judged on
	Broken       string        `json:"broken,omitempty"`
	Environments []Environment `json:"environments"`
	Holds        []Hold        `json:"holds,omitempty"` // on more than a pull request
}

// Hold is a person's stop.
type Hold struct {
	Scope       string    `json:"scope"`                 // component, environment or pipeline
	Environment string    `json:"environment,omitempty"` // the one that stands still; left out: all of them
	By          string    `json:"by"`
	Reason      string    `json:"reason,omitempty"`
	Reverts     bool      `json:"reverts,omitempty"` // reverts stand still too
	At          time.Time `json:"at"`
	Until       time.Time `json:"until,omitzero"` // left out: until somebody lifts it
}

// Environment is one step of the pipeline for one component.
type Environment struct {
	Environment string      `json:"environment"`
	After       []string    `json:"after,omitempty"` // as in PipelineEnvironment
	Branch      string      `json:"branch,omitempty"`
	State       string      `json:"state"` // of the release that is there
	Reason      string      `json:"reason"`
	Release     string      `json:"release,omitempty"` // its identity, 64 hex digits
	Name        string      `json:"name,omitempty"`    // the same for people
	Since       time.Time   `json:"since,omitzero"`    // when it landed
	VerifiedAt  time.Time   `json:"verifiedAt,omitzero"`
	Commit      string      `json:"commit,omitempty"` // that brought it
	LandedBy    string      `json:"landedBy,omitempty"`
	LandedIn    *Pull       `json:"landedIn,omitempty"` // the pull request that brought it
	Targets     []Target    `json:"targets,omitempty"`  // by name
	Incoming    *Incoming   `json:"incoming,omitempty"` // what wants to come in
	Revert      *OpenRevert `json:"undo,omitempty"`     // the open revert
	Why         []Reason    `json:"why,omitempty"`      // why nothing (more) happens
}

// Pull is a pull request of Liftlock's.
type Pull struct {
	Number int    `json:"number"`
	URL    string `json:"url,omitempty"`
}

// Noun is what people call it: a pull request, or a merge request on GitLab.
func (p *Pull) Noun() string { return wording.ForPage(p.URL, "pull request") }

// String is how people write it: #12, on GitLab !12.
func (p *Pull) String() string { return wording.PullName(p.Number, p.URL) }

// Target is one Argo CD Application with the verdict about what landed.
type Target struct {
	Name   string    `json:"name"`
	State  string    `json:"state"`
	Reason string    `json:"reason"`
	Since  time.Time `json:"since,omitzero"`
	// Which Application it is; left out where that isn't known yet.
	ArgoCD         string `json:"argocd,omitempty"`
	Application    string `json:"application,omitempty"` // with its namespace, "argocd/web-qa"
	ApplicationSet string `json:"applicationSet,omitempty"`
	Cluster        string `json:"cluster,omitempty"`
	URL            string `json:"url,omitempty"` // of its page in Argo CD
	// Untold says that nobody has been able to tell for so long how it is that a person
	// should look why.
	Untold bool `json:"untold,omitempty"`
	// Drift is how it differs from Git although that was synced to it. Nothing is done
	// about it. Absent: it doesn't, or that can't be told.
	Drift *Drift `json:"drift,omitempty"`
}

// Drift is how a target differs from what was synced to it.
type Drift struct {
	Since     time.Time         `json:"since"`
	Text      string            `json:"text"`                // the same for people
	Resources []DriftedResource `json:"resources,omitempty"` // the worst of them first, at most 20
	Total     int               `json:"total"`               // how many there are
	SelfHeal  bool              `json:"selfHeal"`            // Argo CD is to undo it by itself
	AutoSync  bool              `json:"autoSync"`            // the sync of a newer commit undoes it, and needs nobody
}

// DriftedResource is one resource that isn't in the cluster as Git says it.
type DriftedResource struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	How       string `json:"how"` // missing, different, extra, or out of sync where no more is told
}

// Incoming is the release that wants to come into an environment.
type Incoming struct {
	State      string    `json:"state"` // waiting, open, held or closed
	Release    string    `json:"release,omitempty"`
	Name       string    `json:"name,omitempty"`
	ReadySince time.Time `json:"readySince,omitzero"`
	Pull       *Pull     `json:"pull,omitempty"` // nil: none yet
	Gates      []Gate    `json:"gates,omitempty"`
}

// OpenRevert is an open revert.
type OpenRevert struct {
	Pull  Pull   `json:"pull"`
	Gates []Gate `json:"gates,omitempty"`
}

// Gate is a gate's answer.
type Gate struct {
	Gate    string    `json:"gate"`
	Outcome string    `json:"outcome"` // pass, wait or fail
	Reason  string    `json:"reason"`
	Who     []string  `json:"who,omitempty"`  // who can change it
	Until   time.Time `json:"until,omitzero"` // when it may change by itself
	// SkippedBy is who had it pass by /liftlock skip; left out where it answers itself.
	SkippedBy string `json:"skippedBy,omitempty"`
}

// Reason is why something doesn't happen.
type Reason struct {
	Code string    `json:"code"` // stable, for programs
	Text string    `json:"text"`
	Who  string    `json:"who,omitempty"`
	When time.Time `json:"when,omitzero"`
}

// Promotions answers GET /api/v1/promotions, newest first.
type Promotions struct {
	Promotions []Promotion `json:"promotions"`
	// Next is the `before` of the next page; 0 on the last one.
	Next int64 `json:"next,omitempty"`
}

// Promotion is one release moving into one environment, or back out of it.
type Promotion struct {
	ID          int64     `json:"id"`
	Kind        string    `json:"kind"` // promotion or revert
	Repository  string    `json:"repository"`
	Pipeline    string    `json:"pipeline"`
	Component   string    `json:"component"`
	Environment string    `json:"environment"`
	Release     string    `json:"release,omitempty"` // a revert's: the one that is taken back
	Name        string    `json:"name,omitempty"`
	Pull        *Pull     `json:"pull,omitempty"`
	State       string    `json:"state"`
	CreatedAt   time.Time `json:"createdAt"`
	UpdatedAt   time.Time `json:"updatedAt"`

	// Detail is left out of lists.
	Detail *PromotionDetail `json:"detail,omitempty"`
}

// PromotionDetail is what is known of one promotion beyond its row.
type PromotionDetail struct {
	Title    string   `json:"title,omitempty"`    // the pull request's
	Evidence []string `json:"evidence,omitempty"` // a revert's: what speaks against the release
	// Records are what Evidence says in words, one for each component that is degraded; also
	// of a promotion that is taken back, or that degraded and is left to people.
	Records []Evidence `json:"records,omitempty"`
	By      string     `json:"by,omitempty"`     // a revert's: who asked for it; empty: the degradation
	Reason  string     `json:"reason,omitempty"` // the reason that was given
	// Reverts is the promotion that a revert takes back, RevertedBy the revert
	// that takes a promotion back; nil where there is none on record.
	Reverts    *Related `json:"reverts,omitempty"`
	RevertedBy *Related `json:"revertedBy,omitempty"`
	// Current says that the release of this promotion is what the environment
	// carries now, through it; then Targets are about it.
	Current bool     `json:"current"`
	Gates   []Gate   `json:"gates,omitempty"` // while it is open
	Why     []Reason `json:"why,omitempty"`   // while it is open
	Targets []Target `json:"targets,omitempty"`
	// Cause says in one sentence why it is as it is: what degraded, what it waits for; left
	// out where nothing says so.
	Cause string `json:"cause,omitempty"`
	// Merge is who merged it, and by what it was judged then; nil where it wasn't merged, or
	// that isn't on record.
	Merge    *AuditEntry `json:"merge,omitempty"`
	MergedAt time.Time   `json:"mergedAt,omitzero"`
	// Commit is as which it landed, with its page and that of what it brought; left out
	// where that isn't known.
	Commit     string `json:"commit,omitempty"`
	CommitURL  string `json:"commitURL,omitempty"`
	CompareURL string `json:"compareURL,omitempty"`
	// Audit is what people asked for on it and what came of that, and its merge, newest
	// first, at most 50.
	Audit []AuditEntry `json:"audit,omitempty"`
	// Timelines are the changes of the targets' states and health, while Current.
	Timelines []Timeline `json:"timelines,omitempty"`
	Events    []Event    `json:"events"` // oldest first, at most 200
}

// Related is another promotion.
type Related struct {
	ID   int64 `json:"id"`
	Pull *Pull `json:"pull,omitempty"`
}

// Timeline is what happened to one target since the release reached it.
type Timeline struct {
	Target  string        `json:"target"`
	Changes []StateChange `json:"marks"` // oldest first
}

// StateChange is one change of a target's state or health.
type StateChange struct {
	At    time.Time `json:"at"`
	State string    `json:"state"`
	Note  string    `json:"note,omitempty"`
}

// Overview answers GET /api/v1/overview: what stands still, what has drifted, what was taken
// back, and how well releases are delivered.
type Overview struct {
	At       time.Time       `json:"at"`
	Held     []HeldRelease   `json:"held"`              // the longest held first, at most 200
	Drifted  []DriftedTarget `json:"drifted"`           // the longest drifted first, at most 200
	Reverts  []Promotion     `json:"reverts"`           // of the last 30 days, newest first, at most 200
	Delivery *Delivery       `json:"delivery"`          // of the last 30 days; null: DeliveryError says why
	LeftOut  int             `json:"leftOut,omitempty"` // how many more there are than the first two lists show

	DeliveryError string `json:"deliveryError,omitempty"`
}

// HeldRelease is what a person's hold is on, or a release that is held in its pull request.
type HeldRelease struct {
	Repository  string `json:"repository"`
	Pipeline    string `json:"pipeline"`
	Component   string `json:"component,omitempty"`   // left out: all of them
	Environment string `json:"environment,omitempty"` // left out: all of them
	Pull        *Pull  `json:"pull,omitempty"`        // the held pull request
	Hold        *Hold  `json:"hold,omitempty"`        // left out where only the pull request says that it is held
	Reason      string `json:"reason,omitempty"`      // then: what its gates say
}

// DriftedTarget is a target that differs from what was synced to it.
type DriftedTarget struct {
	Repository  string `json:"repository"`
	Pipeline    string `json:"pipeline"`
	Component   string `json:"component"`
	Environment string `json:"environment"`
	Target      Target `json:"target"`
}

// Delivery is how well releases were delivered, by what the records of arrivals say: of each
// environment of a component, the newest 50.
type Delivery struct {
	Days []DeliveryDay `json:"days"` // the oldest first, each from midnight in UTC
	// Of all days; a time is left out where nothing tells it. The median is of what was
	// verified, and of what was degraded and is verified again.
	Changes       int     `json:"changes"`
	Failures      int     `json:"failures"`
	LeadMedian    float64 `json:"leadMedian,omitempty"`    // in seconds
	RestoreMedian float64 `json:"restoreMedian,omitempty"` // in seconds
}

// DeliveryDay is what came in by promotions on one day.
type DeliveryDay struct {
	Day           time.Time `json:"day"`
	Changes       int       `json:"changes"`  // that have got a verdict
	Failures      int       `json:"failures"` // of these, that were degraded
	LeadMedian    float64   `json:"leadMedian,omitempty"`
	RestoreMedian float64   `json:"restoreMedian,omitempty"`
}

// Why answers GET /api/v1/why.
type Why struct {
	Repository   string           `json:"repository"`
	Pipeline     string           `json:"pipeline"`
	Component    string           `json:"component"`
	At           time.Time        `json:"at"`
	Environments []EnvironmentWhy `json:"environments"`
	Troubles     []Trouble        `json:"troubles,omitempty"`
}

// EnvironmentWhy is why one environment is as it is.
type EnvironmentWhy struct {
	Text string `json:"text"` // the same in words, several lines
	// Evidence is what a degradation that is left to people was judged by.
	Evidence *Evidence `json:"evidence,omitempty"`
	Environment
}

// Comparison answers GET /api/v1/pipelines/{name}/compare: what one environment
// of a component has that another hasn't.
type Comparison struct {
	Repository string `json:"repository"`
	Pipeline   string `json:"pipeline"`
	Component  string `json:"component"`
	From       string `json:"from"`
	To         string `json:"to"`
	// Common is the newest release that both have had; nil when none is on record.
	Common *ArrivedRelease  `json:"common,omitempty"`
	Behind []ArrivedRelease `json:"behind"` // what From got after that, newest first
	Ahead  []ArrivedRelease `json:"ahead"`  // what To got after that, newest first
	Fields []FieldChange    `json:"fields"` // the carried fields whose values differ now
	// Unknown says which environment's release isn't known now, and why; then
	// there is nothing else.
	Unknown string `json:"unknown,omitempty"`
}

// EnvironmentComparison answers GET /api/v1/pipelines/{name}/apart: two environments of a
// pipeline over all its components.
type EnvironmentComparison struct {
	Repository string                `json:"repository"`
	Pipeline   string                `json:"pipeline"`
	From       string                `json:"from"`
	To         string                `json:"to"`
	Equal      int                   `json:"equal"`     // components that carry the same release in both
	Different  []ComponentDifference `json:"different"` // the rest, what came into From first at the front
}

// ComponentDifference is a component that two environments don't carry alike, or of which that
// isn't known.
type ComponentDifference struct {
	Component string         `json:"component"`
	From      CarriedRelease `json:"from"`
	To        CarriedRelease `json:"to"`
	Incoming  *Incoming      `json:"incoming,omitempty"` // what wants to come into To; nil: nothing does
}

// CarriedRelease is what an environment carries.
type CarriedRelease struct {
	Release string    `json:"release,omitempty"`
	Name    string    `json:"name,omitempty"`
	State   string    `json:"state"`
	Since   time.Time `json:"since,omitzero"`
	Unknown string    `json:"unknown,omitempty"` // why it isn't known
}

// ArrivedRelease is a release that came into an environment.
type ArrivedRelease struct {
	Release    string    `json:"release"`
	Name       string    `json:"name"`
	Commit     string    `json:"commit"` // that brought it
	At         time.Time `json:"at"`     // when it was first seen there
	By         string    `json:"by"`     // baseline, person, promotion or revert
	Who        string    `json:"who,omitempty"`
	Pull       *Pull     `json:"pull,omitempty"`
	VerifiedAt time.Time `json:"verifiedAt,omitzero"`
	DegradedAt time.Time `json:"degradedAt,omitzero"`
}

// FieldChange is one carried field in two environments; a value is nil where there is
// no such field.
type FieldChange struct {
	Kind string  `json:"kind"`
	File string  `json:"file"` // relative to the environments' own folders
	Path string  `json:"path,omitempty"`
	From *string `json:"from"`
	To   *string `json:"to"`
}

// Event is something that happened. It is also the data of an event of the
// stream GET /api/v1/events, whose id is Seq.
type Event struct {
	Seq         int64           `json:"seq"`
	At          time.Time       `json:"at"`
	Kind        string          `json:"kind"`
	Repository  string          `json:"repository,omitempty"`
	Pipeline    string          `json:"pipeline,omitempty"`
	Component   string          `json:"component,omitempty"`
	Environment string          `json:"environment,omitempty"`
	Pull        *Pull           `json:"pull,omitempty"`
	Message     string          `json:"message"`
	Data        json.RawMessage `json:"data,omitempty"`
}

// Trouble is what keeps Liftlock, or a part of it, from its work.
type Trouble struct {
	Part    string    `json:"part"`    // "argocd hub", "pipeline file of hub:acme/fleet"
	Message string    `json:"message"` // a broken pipeline file: file:line: reason
	Since   time.Time `json:"since,omitzero"`
}

// PipelineCommand is the body of POST /api/v1/pipelines/{name}/{promote,hold,unhold}.
type PipelineCommand struct {
	Repository  string `json:"repository,omitempty"` // needed only where several repositories have a pipeline of this name
	Component   string `json:"component,omitempty"`
	Environment string `json:"environment,omitempty"`
	// Scope of a hold: component, environment or pipeline. It follows from what
	// is named; a pipeline's hold must say it.
	Scope   string `json:"scope,omitempty"`
	Reverts bool   `json:"reverts,omitempty"` // hold: reverts stand still too
	For     string `json:"for,omitempty"`     // hold: how long, such as 2h or 3d
	Until   string `json:"until,omitempty"`   // hold: until a date (when it begins in UTC) or a time with its offset
	Reason  string `json:"reason,omitempty"`
}

// PromotionCommand is the body of POST /api/v1/promotions/{id}/{hold,unhold,retry,revert,skip};
// it may be left out.
type PromotionCommand struct {
	Gate   string `json:"gate,omitempty"`  // skip: which
	Head   string `json:"head,omitempty"`  // skip: the commit that it is about, or its first 7 digits or more; where the pull request's head is another, it is refused
	For    string `json:"for,omitempty"`   // hold: as in PipelineCommand
	Until  string `json:"until,omitempty"` // hold: as in PipelineCommand
	Reason string `json:"reason,omitempty"`
}

// AuditTrail answers GET /api/v1/audit: what people and tokens asked for, and what was
// merged by which gates, newest first.
type AuditTrail struct {
	Entries []AuditEntry `json:"entries"`
	Next    int64        `json:"next,omitempty"` // before, for the next page; 0: there is none
}

// AuditEntry is one command, carried out or refused, or one merge.
type AuditEntry struct {
	ID      int64     `json:"id"`
	At      time.Time `json:"at"`
	Actor   string    `json:"actor"`            // login, the API token's name, or a user of the console; of a merge, who merged
	Via     string    `json:"via"`              // comment, api or console; of a merge server (Liftlock merged) or forge (a person did)
	Verb    string    `json:"verb"`             // hold, promote, …, or merge
	Subject string    `json:"subject"`          // repository|pipeline|component #pull and the command in full
	Reason  string    `json:"reason,omitempty"` // of a merge, what each gate answered, on one line
	Outcome string    `json:"outcome"`          // taken; refused: or failed: and why; begun and when, while it is carried out; of a merge merged, and as which commit

	// The one environment that it was about; left out where that was none or several.
	Environment string `json:"environment,omitempty"`

	// What the subject is made of. Pipeline and Component are empty where it was about
	// more than one, or given on a person's own pull request.
	Repository string `json:"repository,omitempty"`
	Pipeline   string `json:"pipeline,omitempty"`
	Component  string `json:"component,omitempty"`
	Pull       *Pull  `json:"pull,omitempty"`
	Command    string `json:"command,omitempty"` // "hold environment prod"

	// Merge is by what a merge was judged; left out of commands.
	Merge *AuditedMerge `json:"merge,omitempty"`
}

// AuditedMerge is by what one component's part of a merge was judged.
type AuditedMerge struct {
	Kind    string `json:"kind"`              // promotion or revert
	Release string `json:"release,omitempty"` // that moved, or was taken back
	Head    string `json:"head"`              // the pull request's, which was merged
	Tip     string `json:"tip,omitempty"`     // the head of the branch into which, when it was judged
	Commit  string `json:"commit,omitempty"`  // as which it landed
	// JudgedAt is when the gates gave their answers: at the merge, or, where a person merged,
	// when the component was last looked at before; left out where nobody had looked.
	JudgedAt time.Time `json:"judgedAt,omitzero"`
	// Inputs is the sha256 of the facts that they were evaluated over; left out where those
	// weren't kept, such as of a merge by a person.
	Inputs string `json:"inputs,omitempty"`
	Gates  []Gate `json:"gates"`
}

// CommandReply answers a command that was taken.
type CommandReply struct {
	Text string `json:"answer"`
}

// Differences answers GET /api/v1/pipelines/{name}/differences: where the
// Applications that the pipeline's ApplicationSets resolve to and the live ones part.
type Differences struct {
	Repository string       `json:"repository"`
	Pipeline   string       `json:"pipeline"`
	At         time.Time    `json:"at"`                 // when they were compared
	Commit     string       `json:"commit"`             // of the tracked branch
	Equal      int          `json:"equal"`              // how many Argo CD would leave alone
	Unexpected int          `json:"unexpected"`         // how many differences no policy explains
	Missing    []Difference `json:"missing"`            // resolved, but not live
	Extra      []Difference `json:"extra"`              // live and of one of the sets, but not resolved
	Different  []Difference `json:"different"`          // both, but not equal
	LeftOut    int          `json:"leftOut,omitempty"`  // how many more there are than the lists show
	Unsure     []string     `json:"unsure,omitempty"`   // ApplicationSets that can't be resolved, and are not compared
	Problems   []string     `json:"problems,omitempty"` // why
	Notes      []string     `json:"notes,omitempty"`    // what should be known of the rest, such as sets whose live Applications are used as they are
}

// Difference is one Application.
type Difference struct {
	ArgoCD         string            `json:"argocd"`
	Namespace      string            `json:"namespace"`
	Name           string            `json:"name"`
	ApplicationSet string            `json:"applicationSet,omitempty"`
	File           string            `json:"file,omitempty"`     // the set's manifest; empty for a live set
	Fields         []FieldDifference `json:"fields,omitempty"`   // what differs
	More           int               `json:"more,omitempty"`     // how many more fields differ
	Expected       string            `json:"expected,omitempty"` // why Argo CD leaves it so; empty where it should not
}

// FieldDifference is one field. A value is empty where there is none.
type FieldDifference struct {
	Path     string `json:"path"`
	Live     string `json:"live"`
	Resolved string `json:"resolved"`
}

// RenderedDiff answers GET /api/v1/promotions/{id}/diff: everything that the
// pull request changes of rendered manifests.
type RenderedDiff struct {
	ID          int64     `json:"id"`
	Kind        string    `json:"kind"` // promotion or revert
	Repository  string    `json:"repository"`
	Pipeline    string    `json:"pipeline"`
	Component   string    `json:"component"`
	Environment string    `json:"environment"`
	Release     string    `json:"release,omitempty"`
	Name        string    `json:"name,omitempty"`
	Pull        *Pull     `json:"pull,omitempty"`
	At          time.Time `json:"at"`     // when it was compared
	Before      string    `json:"before"` // the commits that were compared
	After       string    `json:"after"`
	Landed      bool      `json:"landed"` // it was merged: After is what landed, Before the commit before it
	Files       []string  `json:"files"`
	// Targets are those that it is for. The ones that change alike are one entry.
	Targets  []TargetsDiff `json:"targets"`
	Problems []string      `json:"problems,omitempty"` // what of the two commits can't be resolved
	LeftOut  int           `json:"leftOut,omitempty"`  // objects that are too much for one answer
	Pending  bool          `json:"pending,omitempty"`  // an Argo CD is still rendering some of it
}

// TargetsDiff is what changes for some targets, for all of them alike.
type TargetsDiff struct {
	Names   []string     `json:"names"`
	Spec    bool         `json:"spec,omitempty"`    // the Application itself changes too
	Summary string       `json:"summary,omitempty"` // e.g. "1 added, 2 changed"; empty: the manifests stay as they are
	Why     string       `json:"why,omitempty"`     // why the manifests can't be told
	Objects []ObjectDiff `json:"objects,omitempty"`
}

// ObjectDiff is one object that differs.
type ObjectDiff struct {
	Op         string      `json:"op"` // added, removed or changed
	APIVersion string      `json:"apiVersion"`
	Kind       string      `json:"kind"`
	Namespace  string      `json:"namespace,omitempty"`
	Name       string      `json:"name"`
	Was        string      `json:"was,omitempty"` // its name before, where only the hash in it changed
	Fields     []FieldDiff `json:"fields"`
	// Text is the same in the manner of a unified diff, long values cut.
	Text string `json:"-"`
}

// FieldDiff is one field that differs.
type FieldDiff struct {
	Path   string          `json:"path"`
	Op     string          `json:"op"` // added, removed, changed or reordered
	Old    json.RawMessage `json:"old,omitempty"`
	New    json.RawMessage `json:"new,omitempty"`
	Hidden bool            `json:"hidden,omitempty"` // it is secret: neither value is here
}
