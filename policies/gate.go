package policies

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Gate is one entry of an environment's gates. Exactly one key is set.
type Gate struct {
	// Reviews on the forge.
	Approvals *Approvals `yaml:"approvals" json:"approvals,omitempty"`
	// Recurring times in which it may merge.
	Window *Window `yaml:"window" json:"window,omitempty"`
	// Several windows, one of which must be open.
	Windows Windows `yaml:"windows" json:"windows,omitempty"`
	// A time in which it may not merge.
	Freeze *Freeze `yaml:"freeze" json:"freeze,omitempty"`
	// The release was verified before for a while.
	Soak *Soak `yaml:"soak" json:"soak,omitempty"`
	// The environment's targets don't differ from Git.
	Settled *Settled `yaml:"settled" json:"settled,omitempty"`
	// Commit statuses and check runs.
	Checks *Checks `yaml:"checks" json:"checks,omitempty"`
	// A condition in CEL.
	Expression *Expression `yaml:"expression" json:"expression,omitempty"`
	// A Prometheus query, for a while.
	Metric *Metric `yaml:"metric" json:"metric,omitempty"`
	// The answer of your own server.
	HTTP *HTTP `yaml:"http" json:"http,omitempty"`
}

// GateName is a gate's kind as the pipeline file spells it, or what else a promotion can wait for.
type GateName string

// The kinds.
const (
	GateApprovals  GateName = "approvals"
	GateWindow     GateName = "window"
	GateWindows    GateName = "windows"
	GateFreeze     GateName = "freeze"
	GateSoak       GateName = "soak"
	GateSettled    GateName = "settled"
	GateChecks     GateName = "checks"
	GateExpression GateName = "expression"
	GateMetric     GateName = "metric"
	GateHTTP       GateName = "http"
)

// GateWords is what is said to people of what waits at a gate. Empty: the gate speaks for itself.
type GateWords struct {
	WaitsFor   string // in a few words
	Remedy     string // what helps where it waits
	FailRemedy string // what helps where it fails
}

// kind is one kind of gate. A new one is a constant, a key of Gate, a line of kinds, and a file of
// its own with its meaning.
type kind struct {
	name  GateName
	of    func(*Gate) evaluator // nil where the gate doesn't set the kind
	words GateWords
}

// kinds are in the order in which problems and the reference name them.
var kinds = []kind{
	{GateApprovals, func(g *Gate) evaluator { return orNil(g.Approvals, g.Approvals != nil) },
		GateWords{Remedy: "a review by somebody who may write and is no author of the release"}},
	{GateWindow, func(g *Gate) evaluator { return orNil(g.Window, g.Window != nil) },
		GateWords{WaitsFor: "its window", Remedy: byItself}},
	{GateWindows, func(g *Gate) evaluator { return orNil(g.Windows, g.Windows != nil) },
		GateWords{WaitsFor: "one of its windows", Remedy: byItself}},
	{GateFreeze, func(g *Gate) evaluator { return orNil(g.Freeze, g.Freeze != nil) },
		GateWords{WaitsFor: "the end of a freeze", Remedy: byItself}},
	{GateSoak, func(g *Gate) evaluator { return orNil(g.Soak, g.Soak != nil) },
		GateWords{WaitsFor: "its soak", Remedy: "by itself, while the environment before stays well"}},
	{GateSettled, func(g *Gate) evaluator { return orNil(g.Settled, g.Settled != nil) },
		GateWords{WaitsFor: "its targets to be as Git says", Remedy: "a sync of the targets, or a commit with what was changed in them"}},
	{GateChecks, func(g *Gate) evaluator { return orNil(g.Checks, g.Checks != nil) },
		GateWords{WaitsFor: "checks on its head", Remedy: "the checks, when they pass",
			FailRemedy: "the checks, when they run again and pass; or another release"}},
	{GateExpression, func(g *Gate) evaluator { return orNil(g.Expression, g.Expression != nil) },
		GateWords{WaitsFor: "its expression", Remedy: "another release, or a change of what the expression asks for"}},
	{GateMetric, func(g *Gate) evaluator { return orNil(g.Metric, g.Metric != nil) }, GateWords{}},
	{GateHTTP, func(g *Gate) evaluator { return orNil(g.HTTP, g.HTTP != nil) }, GateWords{}},
}

const byItself = "by itself"

// orNil keeps a nil of a kind's own type from being taken for one that is set.
func orNil(e evaluator, isSet bool) evaluator {
	if isSet {
		return e
	}
	return nil
}

// Kinds are the keys of which a gate has exactly one.
func Kinds() []GateName {
	names := make([]GateName, len(kinds))
	for i, k := range kinds {
		names[i] = k.name
	}
	return names
}

// Words are what is said of what waits at a gate of a kind; of another name, nothing.
func (g GateName) Words() GateWords {
	for _, k := range kinds {
		if k.name == g {
			return k.words
		}
	}
	return GateWords{}
}

// Outcome is a gate's answer.
type Outcome string

// The outcomes. Wait can become Pass by itself or by somebody's doing; Fail
// can't without a change of the pull request or the rules.
const (
	Pass Outcome = "pass"
	Wait Outcome = "wait"
	Fail Outcome = "fail"
)

// MaxClockAhead is how far ahead of now the time of a fact may be that loosens something. It may
// have been gathered a moment later, or by another's clock. A fact of a later time was noted by a
// wrong clock, and would count for as long as that was ahead.
const MaxClockAhead = 5 * time.Minute

// isAhead says that a time was noted by a clock that was wrong.
func isAhead(at, now time.Time) bool { return at.After(now.Add(MaxClockAhead)) }

// Facts are what gates are evaluated over.
type Facts struct {
	Now       time.Time
	Approvals []Approval
	// ApprovalsErr says why the approvals could not be read; then the gate waits.
	ApprovalsErr string
	// Rejections are the standing reviews that ask for changes.
	Rejections []Approval
	// ReviewRequests are what reviews were requested on the forge.
	ReviewRequests ReviewRequests `json:",omitzero"`
	// Files are what the pull request changes with who owns it, where FilesRead says that
	// this was read; FilesErr says why it could not be.
	Files     []OwnedFile
	FilesRead bool
	FilesErr  string
	// TeamsErr says, by team in lower case, why it can't be read who is in it.
	TeamsErr map[string]string
	// ApprovalGates are all approvals gates that are asked.
	ApprovalGates []*Approvals
	// Authors of the release and Bot never count as approvers.
	Authors []Account
	// AuthorsErr says why the authors could not be read; then the gate waits.
	AuthorsErr string
	Bot        Account
	// Checks are those on the head, where ChecksRead says that they were read.
	Checks     []Check
	ChecksRead bool
	// ChecksErr says why the checks could not be read; then the gate waits.
	ChecksErr string
	// ReleaseChecks are those on the commits by which the release landed before, where a
	// gate goes by them.
	ReleaseChecks []ReleaseChecks `json:",omitempty"`
	// Soaked is for how long the release was verified in the environments before.
	Soaked []Soaked
	// SyncWindows are Argo CD's for each target of the environment, where a gate goes by them.
	SyncWindows []TargetWindow `json:",omitempty"`
	// Drift is how each target of the environment differs from Git.
	Drift []TargetDrift `json:",omitempty"`
	// Promotion is what expressions are asked about; nil: it isn't known.
	Promotion *Promotion
	// Metrics are what Prometheus servers answered.
	Metrics []MetricReading `json:",omitempty"`
	// Endpoints are what servers of one's own said.
	Endpoints []EndpointReading `json:",omitempty"`
}

// Result is a gate's answer with its reason.
type Result struct {
	Gate    GateName  `json:"gate"` // "approvals"
	Outcome Outcome   `json:"outcome"`
	Reason  string    `json:"reason"`          // for people
	Who     []string  `json:"who,omitempty"`   // who can change it
	Until   time.Time `json:"until,omitempty"` // when it may change by itself; zero: unknown
	// Next is when it is to be evaluated again, because what it goes by has moved on then; zero:
	// no earlier than Until. It is nothing for people: it moves on and on.
	Next time.Time `json:"next,omitzero"`
	// SkippedBy is who had it pass without being so; empty: it answers itself.
	SkippedBy string `json:"skippedBy,omitempty"`
	// Brief is what a gate that waits waits for, in so few words that they follow "waiting for" in a
	// headline: "grace (0 of 1)". Empty: the gate's words and its reason say it.
	Brief string `json:"brief,omitempty"`
}

// evaluator is one kind of gate.
type evaluator interface {
	kindName() GateName
	describe() string
	validate() []Problem
	evaluate(Facts) Result
}

// setKinds are the kinds that the gate sets; a valid gate sets exactly one.
func (g *Gate) setKinds() []evaluator {
	var set []evaluator
	for _, k := range kinds {
		if e := k.of(g); e != nil {
			set = append(set, e)
		}
	}
	return set
}

// Name is the gate's kind as the pipeline file spells it: "approvals"; "" when
// the gate sets none.
func (g *Gate) Name() GateName {
	if set := g.setKinds(); len(set) > 0 {
		return set[0].kindName()
	}
	return ""
}

// Describe says in a few words what the gate asks for, whatever is true now; "" when the
// gate sets no kind.
func (g *Gate) Describe() string {
	if set := g.setKinds(); len(set) > 0 {
		return set[0].describe()
	}
	return ""
}

// Evaluate answers for the gate. It never loosens on doubt: a fact that could
// not be read waits with the reason, and an invalid gate fails with it. Same
// gate, same facts, same answer; it may be called concurrently.
func (g *Gate) Evaluate(f Facts) Result {
	if err := g.Validate(); err != nil {
		return Result{Gate: g.Name(), Outcome: Fail, Reason: "the gate is not valid: " + err.Error()}
	}
	return g.setKinds()[0].evaluate(f)
}

func joinNames(names []GateName) string {
	texts := make([]string, len(names))
	for i, n := range names {
		texts[i] = string(n)
	}
	return strings.Join(texts, ", ")
}

// Problem is one thing that is wrong with a gate's settings.
type Problem struct {
	Path    string // inside the gate, "approvals.count"; "" for the gate as a whole
	Message string
}

// Error is "path: message".
func (p Problem) Error() string {
	if p.Path == "" {
		return p.Message
	}
	return p.Path + ": " + p.Message
}

// Validate checks the gate's settings. The error joins one [Problem] for each
// thing that is wrong; [Problems] takes it apart.
func (g *Gate) Validate() error {
	set := g.setKinds()
	if len(set) != 1 {
		return Problem{Message: fmt.Sprintf("a gate has exactly one kind (%s); this one has %d", joinNames(Kinds()), len(set))}
	}
	var errs []error
	for _, p := range set[0].validate() {
		errs = append(errs, p)
	}
	return errors.Join(errs...)
}

// Problems are the things that are wrong in an error of [Gate.Validate].
func Problems(err error) []Problem {
	switch e := err.(type) {
	case nil:
		return nil
	case Problem:
		return []Problem{e}
	case interface{ Unwrap() []error }:
		var all []Problem
		for _, inner := range e.Unwrap() {
			all = append(all, Problems(inner)...)
		}
		return all
	}
	return []Problem{{Message: err.Error()}}
}
