package api

import "time"

// Error is every answer that isn't a success.
type Error struct {
	Error string `json:"error"`
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
	Gate string `json:"gate,omitempty"` // skip: which
	// skip: the commit that it is about, or its first 7 digits or more; where the pull request's head is
	// another, it is refused
	Head   string `json:"head,omitempty"`
	For    string `json:"for,omitempty"`   // hold: as in PipelineCommand
	Until  string `json:"until,omitempty"` // hold: as in PipelineCommand
	Reason string `json:"reason,omitempty"`
}

// CommandReply answers a command that was taken.
type CommandReply struct {
	Text string `json:"answer"`
}

// AuditTrail answers GET /api/v1/audit: what people and tokens asked for, and what was
// merged by which gates, newest first.
type AuditTrail struct {
	Entries []AuditEntry `json:"entries"`
	Next    int64        `json:"next,omitempty"` // before, for the next page; 0: there is none
}

// AuditEntry is one command, carried out or refused, or one merge.
type AuditEntry struct {
	ID    int64     `json:"id"`
	At    time.Time `json:"at"`
	Actor string    `json:"actor"` // login, the API token's name, or a user of the console; of a merge, who merged
	Via   string    `json:"via"`   // comment, api or console; of a merge server (Liftlock merged) or forge (a person did)
	Verb  string    `json:"verb"`  // hold, promote, …, merge, login or logout
	// repository|pipeline|component #pull and the command in full; of a login, as what, and a digest of who
	Subject string `json:"subject"`
	Reason  string `json:"reason,omitempty"` // of a merge, what each gate answered, on one line
	// taken; refused: or failed: and why; begun and when, while it is carried out; of a merge merged, and as
	// which commit
	Outcome string `json:"outcome"`

	// The one environment that it was about; left out where that was none or several.
	Environment string `json:"environment,omitempty"`

	// The subject is made of these. Pipeline and Component are empty where it was about more than
	// one, or given on a person's own pull request.
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
	// JudgedAt is when the gates gave their answers: at the merge, or, where a person merged, at
	// the component's last evaluation before. It is left out where there was none.
	JudgedAt time.Time `json:"judgedAt,omitzero"`
	// Inputs is the sha256 of the facts that they were evaluated over; left out where those
	// weren't kept, such as of a merge by a person.
	Inputs string `json:"inputs,omitempty"`
	Gates  []Gate `json:"gates"`
}
