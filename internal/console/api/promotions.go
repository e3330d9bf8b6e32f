package api

import (
	"encoding/json"
	"time"

	"github.com/liftlock/liftlock/internal/pipeline/event"
)

// Promotions answers GET /api/v1/promotions, newest first.
type Promotions struct {
	Promotions []Promotion `json:"promotions"`
	// Next is the `before` of the next page; 0 on the last one.
	Next int64 `json:"next,omitempty"`
}

// Promotion is one release moving into one environment, or back out of it.
type Promotion struct {
	ID          int64  `json:"id"`
	Kind        string `json:"kind"` // promotion or revert
	Repository  string `json:"repository"`
	Pipeline    string `json:"pipeline"`
	Component   string `json:"component"`
	Environment string `json:"environment"`
	Release     string `json:"release,omitempty"` // a revert's: the one that is taken back
	Name        string `json:"name,omitempty"`
	Pull        *Pull  `json:"pull,omitempty"`
	State       string `json:"state"`
	// Headline is where its pull request stands while it is open, as its commit status and comment say it.
	Headline  string    `json:"headline,omitempty"`
	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`

	// Detail is left out of lists.
	Detail *PromotionDetail `json:"detail,omitempty"`
}

// PromotionDetail is what is known of one promotion beyond its row.
type PromotionDetail struct {
	Title    string   `json:"title,omitempty"`    // the pull request's
	Evidence []string `json:"evidence,omitempty"` // a revert's: what speaks against the release
	// Records are what Evidence says in words, one for each component that is degraded. A promotion
	// that is reverted, or that degraded and is left to people, has them too.
	Records []Evidence `json:"records,omitempty"`
	By      string     `json:"by,omitempty"`     // a revert's: who asked for it; empty: the degradation
	Reason  string     `json:"reason,omitempty"` // the reason that was given
	// Reverts is the promotion that a revert takes back, RevertedBy the revert
	// that takes a promotion back; nil where there is none on record.
	Reverts    *Related `json:"reverts,omitempty"`
	RevertedBy *Related `json:"revertedBy,omitempty"`
	// Current says that the environment carries this promotion's release now, through it; then
	// Targets are about it.
	Current bool     `json:"current"`
	Gates   []Gate   `json:"gates,omitempty"` // while it is open
	Why     []Reason `json:"why,omitempty"`   // while it is open
	// From is what people call the release that the environment carries while it is open, Origin where its own
	// release began, and Reaches are the targets of the environment. Left out where that isn't known.
	From    string         `json:"from,omitempty"`
	Origin  *ReleaseOrigin `json:"origin,omitempty"`
	Reaches []Target       `json:"reaches,omitempty"`
	Targets []Target       `json:"targets,omitempty"`
	// Ran is what the targets were seen to run when the promotion was verified, by name; also
	// once the environment has moved on. Left out where nobody told.
	Ran []TargetRuns `json:"ran,omitempty"`
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

// ReleaseOrigin is where a release began: its first arrival in an environment without after.
type ReleaseOrigin struct {
	Environment string    `json:"environment"`
	By          string    `json:"by,omitempty"` // whose change brought it; left out where that isn't known
	Commit      string    `json:"commit"`
	CommitURL   string    `json:"commitURL,omitempty"`
	At          time.Time `json:"at"`
}

// TargetRuns is what one target was seen to run.
type TargetRuns struct {
	Target string `json:"target"`
	Runs
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

// Event is something that happened. It is also the data of an event of the
// stream GET /api/v1/events, whose id is Seq.
type Event struct {
	Seq         int64           `json:"seq"`
	At          time.Time       `json:"at"`
	Kind        event.Kind      `json:"kind"`
	Repository  string          `json:"repository,omitempty"`
	Pipeline    string          `json:"pipeline,omitempty"`
	Component   string          `json:"component,omitempty"`
	Environment string          `json:"environment,omitempty"`
	Pull        *Pull           `json:"pull,omitempty"`
	Message     string          `json:"message"`
	Data        json.RawMessage `json:"data,omitempty"`
}
