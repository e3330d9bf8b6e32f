package plan

import (
	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/promotion"
)

// Plan is what would open, and what wouldn't. Lists are never nil.
type Plan struct {
	Subject     string     `json:"looked"` // what was planned, for people
	Commit      string     `json:"commit"`
	Assumptions []string   `json:"assumed"` // what is taken for granted, because Git can't tell
	Pipelines   []Pipeline `json:"pipelines"`
	// Problems kept something from being judged: with one, the answer is not all
	// there is. Notes should be known.
	Problems []appset.Problem `json:"problems"`
	Notes    []appset.Problem `json:"notes"`
}

// Pipeline is one pipeline's part: by environment as the pipeline orders them,
// then by component.
type Pipeline struct {
	Name       string      `json:"name"`
	DryRun     bool        `json:"observe,omitempty"` // mode: observe: nothing is opened, these are what would be
	Promotions []Promotion `json:"promotions"`
	Waiting    []Waiting   `json:"waiting"`
}

// Promotion is a pull request that would open.
type Promotion struct {
	Environment string             `json:"environment"`
	Branch      string             `json:"branch,omitempty"` // that the environment lives on, where it has its own
	Parts       []Part             `json:"parts"`            // one, or with batch: environment all that move together
	Changes     []fieldedit.Change `json:"changes"`
	Files       []File             `json:"files"`
	// Reached are the targets that it is for and that read these files; Unaffected are
	// others that read them and, as was proven, stay as they are.
	Reached    []string `json:"reaches"`
	Unaffected []string `json:"spares"`
	// Unreached are those of Reached that the merge doesn't reach: they follow something else than
	// the branch that is merged into, or their ApplicationSet never updates Applications.
	Unreached []Unreached `json:"unreached,omitempty"`
	// Applications are those of Reached that come out otherwise, as an edit of an ApplicationSet has them.
	Applications []Application `json:"applications,omitempty"`
	// ReachErr says why it can't be told of Applications; empty: it can.
	ReachErr string     `json:"reachErr,omitempty"`
	Rendered []Rendered `json:"rendered,omitempty"`
	// A required change that doesn't show in the rendered manifests of its targets has the pull
	// request wait.
	promotion.EffectFacts
}

// Application is the Application of a target that changes.
type Application struct {
	Target string             `json:"target"`
	Fields []ApplicationField `json:"fields"`
}

// ApplicationField is one of its fields, as text.
type ApplicationField struct {
	Path   string `json:"path"`
	Before string `json:"before"`
	After  string `json:"after"`
}

// Unreached is a target that a merge doesn't reach.
type Unreached struct {
	Target      string `json:"target"`
	Follows     string `json:"follows,omitempty"` // such as a tag
	CreatedOnly bool   `json:"createdOnly,omitempty"`
}

// Part is one component that a promotion moves.
type Part struct {
	Component string            `json:"component"`
	From      promotion.Release `json:"from"`
	To        promotion.Release `json:"to"`
}

// File is one file that changes.
type File struct {
	Path   string `json:"path"`
	Action string `json:"what"` // created, changed or deleted
	Diff   string `json:"diff"` // as git diff prints it
}

// Rendered is what a promotion does to one target's manifests.
type Rendered struct {
	Target  string `json:"target"`
	Spec    bool   `json:"spec,omitempty"` // the Application itself changes
	Summary string `json:"summary"`
	Diff    string `json:"diff,omitempty"` // secrets are hidden in it
	Why     string `json:"why,omitempty"`  // it isn't rendered
}

// Waiting is an environment of a component into which nothing would open.
type Waiting struct {
	Component   string             `json:"component"`
	Environment string             `json:"environment"`
	State       string             `json:"state"` // of what is there, as the API has it
	Release     *promotion.Release `json:"release,omitempty"`
	Candidate   *promotion.Release `json:"coming,omitempty"` // what would come next
	Why         []promotion.Reason `json:"why"`
}
