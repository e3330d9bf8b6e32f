package prtext

import (
	"time"

	"github.com/liftlock/liftlock/internal/promotion"
)

// Input is what a pull request's texts are made from.
type Input struct {
	// Members are the components that it moves: usually one. Batch says that it is the
	// pull request of all that are ready (batch: environment), maybe of one only; then
	// Release and Name are theirs together.
	Members     []Member
	Batch       bool
	Actions     []promotion.Action // what was decided of pull requests
	Environment string
	Revert      bool
	Number      int // 0 before it is opened

	Release string // the identity that moves in; a revert: the one that is taken back
	Name    string // the same for people
	Changes []Change
	Reached []Target // what the change reaches
	// UnaffectedCounts counts the pipeline's targets that provably don't read any changed
	// file, by environment; UnaffectedErr says why that could not be worked out.
	UnaffectedCounts map[string]int
	UnaffectedErr    string

	// UnchangedTargets are targets outside the environment that read a changed file too and
	// are shown to stay as they are.
	UnchangedTargets []Target
	// Rendered says what happens to the manifests of the targets that it is for;
	// RenderedErr says why that could not be worked out. Neither: not asked for.
	Rendered    []Rendered
	RenderedErr string

	Ungated      string               // of a promotion that is merged: by whom, past which gates; empty: past none
	RevertedPull int                  // a revert: the promotion that it takes back
	Evidence     []promotion.Evidence // a revert: what speaks against the release, of each component
	By           string               // a revert: who asked for it; empty: the degradation
	Reason       string               // a revert: the reason that was given

	ConsoleURL   string // the console's address of this component, empty without an externalURL
	DiffURL      string // the console's address of the whole rendered difference, empty likewise
	BodyMarker   string // the hidden mark that the body must carry as it is
	BareCommands bool   // commands: bare
	Now          time.Time
}

// Change is a field that moves, a row in the body's table.
type Change struct {
	Component            string // whose it is, in a batch
	File, Path, Old, New string
	Line                 int
}

// Member is a component that moves, with the facts and the decision that it was last
// evaluated by.
type Member struct {
	promotion.Member
	Facts    *promotion.ComponentFacts
	Decision *promotion.ComponentDecision
	// Commits says what made its release, by source environment; CommitsErr why that could not be
	// read. A revert has neither.
	Commits    []ReleaseCommits
	CommitsErr string
}

// Target is a target as the body names it.
type Target struct {
	Name, Component, Environment, Cluster string
	Fields                                []string // of its Application that change
	CreatedOnly                           bool     // its ApplicationSet is changed, and never updates Applications
	// the revision that it follows instead of the branch that is merged into; empty: it follows that
	Follows string
}

// Page is everything that Liftlock writes on a pull request.
type Page struct {
	Title   string
	Body    string
	Comment string // the one comment that is kept up to date
	Notice  string // what the comment asks of a person, which is told at once; "" where nobody is asked
	Labels  []string
	Status  Status
}

// Status is the commit status "liftlock".
type Status struct {
	State       string // pending, success, failure or error
	Description string // at most 140 characters, the forges' smallest limit
}
