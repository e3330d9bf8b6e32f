package api

import "time"

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
	// what should be known of the rest, such as sets whose live Applications are used as they are
	Notes []string `json:"notes,omitempty"`
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
