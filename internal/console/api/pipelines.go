package api

import (
	"time"

	"github.com/liftlock/liftlock/internal/promotion/cause"
	"github.com/liftlock/liftlock/internal/wording"
)

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

// Counts are how many components of a pipeline there are, and how many of them are how. A component is in
// exactly one of moving, waiting, held and broken, or nothing is open of it: these four add up to open.
type Counts struct {
	Components int `json:"components"`
	Open       int `json:"open"`      // something goes on or is to be done
	Moving     int `json:"moving"`    // it goes on by itself
	Waiting    int `json:"waiting"`   // it waits for a person to approve, merge or promote it
	Held       int `json:"held"`      // a person stopped it
	Broken     int `json:"broken"`    // something failed, was changed by hand, is stuck, or can't be told
	Attention  int `json:"attention"` // held and broken together
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
	// Available are versions that registries have and that don't come in, of an environment with discover: at most
	// 12. MoreAvailable is how many more there are.
	Available     []AvailableVersion `json:"available,omitempty"`
	MoreAvailable int                `json:"moreAvailable,omitempty"`
}

// AvailableVersion is a version that a registry has, and that doesn't come into an environment by itself.
type AvailableVersion struct {
	Name    string    `json:"name,omitempty"`    // of the image or the chart; left out: it is about all of them
	Version string    `json:"version,omitempty"` // a tag, a digest or a chart's version; left out: what there is isn't known
	Since   time.Time `json:"since"`             // when it was first seen, or since when nothing is known
	Reason  string    `json:"reason"`            // why it doesn't come in, or isn't known
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
	// Labels are the Application's, as it was seen last, at most 32.
	Labels map[string]string `json:"labels,omitempty"`
	// Untold says that nobody has been able to tell for so long how it is that a person
	// should look why.
	Untold bool `json:"untold,omitempty"`
	// Drift is how it differs from Git although that was synced to it. Nothing is done
	// about it. Absent: it doesn't, or that can't be told.
	Drift *Drift `json:"drift,omitempty"`
	// Runs is what it was seen to run when it was verified. Absent: it wasn't yet, or nobody told.
	Runs *Runs `json:"runs,omitempty"`
}

// Runs is what a target was seen to run when it was verified.
type Runs struct {
	At     time.Time      `json:"at"`
	Images []RunningImage `json:"images"`         // those that the release brought first, at most 20
	More   int            `json:"more,omitempty"` // how many more there are
	OfPods bool           `json:"ofPods"`         // its pods were read, not Argo CD's list of images alone
}

// RunningImage is an image that pods of a target have. What Argo CD doesn't report is left out.
type RunningImage struct {
	Image  string    `json:"image"`
	Digest string    `json:"digest,omitempty"` // of its name, or of what a container of the newest pod runs
	Pods   int       `json:"pods,omitempty"`
	Since  time.Time `json:"since,omitzero"` // when the oldest of these pods was made
	Landed bool      `json:"landed"`         // the release brought it
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
	// Headline is where its pull request stands, as its commit status and comment say it: "waiting for grace (0 of
	// 1)". Left out where that isn't known.
	Headline string `json:"headline,omitempty"`
	Gates    []Gate `json:"gates,omitempty"`
}

// OpenRevert is an open revert.
type OpenRevert struct {
	Pull     Pull   `json:"pull"`
	State    string `json:"state"`              // open or held
	Headline string `json:"headline,omitempty"` // as of an Incoming
	Gates    []Gate `json:"gates,omitempty"`
}

// Gate is a gate's answer.
type Gate struct {
	Gate    string    `json:"gate"`
	Outcome string    `json:"outcome"` // pass, wait or fail
	Reason  string    `json:"reason"`
	Who     []string  `json:"who,omitempty"`    // who can change it
	Person  bool      `json:"person,omitempty"` // it waits for a person, not for time or a machine
	Until   time.Time `json:"until,omitzero"`   // when it may change by itself
	// SkippedBy is who had it pass by /liftlock skip; left out where it answers itself.
	SkippedBy string `json:"skippedBy,omitempty"`
}

// Reason is why something doesn't happen.
type Reason struct {
	Code cause.Code `json:"code"` // stable, for programs
	Text string     `json:"text"`
	Who  string     `json:"who,omitempty"`
	When time.Time  `json:"when,omitzero"`
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

// Trouble is what keeps Liftlock, or a part of it, from its work.
type Trouble struct {
	Part    string    `json:"part"`    // "argocd hub", "pipeline file of hub:owner/name"
	Message string    `json:"message"` // a broken pipeline file: file:line: reason
	Since   time.Time `json:"since,omitzero"`

	// Repository is the one that it is about, and General says that it is about none and for every
	// reader. A trouble with neither is for those who may read all.
	Repository string `json:"-"`
	General    bool   `json:"-"`
}
