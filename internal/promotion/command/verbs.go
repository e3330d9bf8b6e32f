package command

import "slices"

// Verb is what a command does. Its text is stored, and spoken by comments, the API and the command
// line: it never changes.
type Verb string

// The verbs.
const (
	Help    Verb = "help"
	Status  Verb = "status"
	Diff    Verb = "diff"
	Why     Verb = "why"
	Hold    Verb = "hold"
	Unhold  Verb = "unhold"
	Promote Verb = "promote"
	Revert  Verb = "revert"
	Retry   Verb = "retry"
	Skip    Verb = "skip"
)

// form is what stands behind a verb.
type form int

const (
	bare            form = iota // nothing
	withEnvironment             // at most an environment
	withScope                   // a scope and a reason; a hold has an end too
	withReason
	withGate // a gate and a reason
)

// declaration is all that the rooms need of a verb: the grammar and the table of who may (here),
// help (prtext), the API, the pages and the audit trail (console), and the command line.
type declaration struct {
	verb    Verb
	form    form
	need    Need
	loosens bool // see Loosens

	usage, help string // a line of /liftlock help
	userHelp    string // the same on a person's own pull request; empty: it isn't for such

	onPromotion, onPipeline bool   // what the API and the pages can give it about
	title                   string // of the page that gives it, before what it is about
	short                   string // of the command line, where it has the verb as the API does
}

// declarations are in the order in which the audit trail lists the verbs. A new verb is a constant,
// an entry here, its place in helpOrder, and a case where the controller carries commands out.
var declarations = []declaration{
	{verb: Help, usage: "help", help: "this", userHelp: "this"},
	{verb: Status, usage: "status", help: "what each environment carries and how it is",
		userHelp: "what each environment carries of the components that it touches, and how it is"},
	{verb: Diff, usage: "diff", help: "what this pull request changes in files and in rendered manifests",
		userHelp: "what this change does to the rendered manifests of the targets that it touches"},
	{verb: Why, form: withEnvironment, usage: "why [environment]", help: "what a release waits for",
		userHelp: "what their releases wait for"},
	{verb: Hold, form: withScope, need: NeedWrite, usage: "hold [scope] [for 2h] [reverts] [reason]",
		help: "stop, `for` so long, `until 2027-01-03` or until somebody lifts it; the scope is `pr` (this pull request, the " +
			"default), `component`, `environment` or `pipeline`; those stop reverts only with `reverts`",
		onPromotion: true, onPipeline: true, title: "Hold", short: "Stop a component, an environment, a pipeline or one promotion"},
	{verb: Unhold, form: withScope, need: NeedApprover, loosens: true, usage: "unhold [scope]", help: "lift that hold",
		onPromotion: true, onPipeline: true, title: "Lift the hold on", short: "Lift a hold"},
	{verb: Promote, form: withEnvironment, need: NeedApprover, loosens: true, usage: "promote [environment]",
		help: "bring the newest verified release there: opens what waits for a person, brings back what was reverted, takes over " +
			"what was changed by hand",
		onPipeline: true, title: "Promote", short: "Open a promotion into an environment, also one that is diverged or opened by hand only"},
	{verb: Revert, form: withReason, need: NeedApprover, usage: "revert [reason]",
		help:        "open a pull request that takes the promotion back",
		onPromotion: true, title: "Revert", short: "Take a promotion back with a pull request of its own"},
	{verb: Retry, need: NeedWrite, loosens: true, usage: "retry",
		help:        "try again after a failure, or after this pull request was closed",
		userHelp:    "looks again at a head that isn't looked at any more; for those who may write",
		onPromotion: true, title: "Try again", short: "Try a promotion again after a failure or a close"},
	{verb: Skip, form: withGate, need: NeedBreakGlass, loosens: true, usage: "skip gate reason",
		help:        "let this promotion past one gate of the pipeline file, as it is and for four hours, on record",
		onPromotion: true, title: "Skip a gate of",
		short: "Let a promotion past one gate of its pipeline file, as it is and for four hours, on record"},
}

// The orders in which help lists the verbs: what only asks first, then what is given most.
var (
	helpOrder     = []Verb{Status, Why, Diff, Hold, Unhold, Promote, Revert, Skip, Retry, Help}
	userHelpOrder = []Verb{Diff, Status, Why, Retry, Help}
)

// find is a verb's declaration; of one that isn't declared, what nobody has by accident.
func (v Verb) find() declaration {
	if i := slices.IndexFunc(declarations, func(d declaration) bool { return d.verb == v }); i >= 0 {
		return declarations[i]
	}
	return declaration{verb: v, need: NeedBreakGlass, loosens: true}
}

func listVerbs(is func(declaration) bool) []Verb {
	var out []Verb
	for _, d := range declarations {
		if is(d) {
			out = append(out, d.verb)
		}
	}
	return out
}

// Verbs are all verbs, in the order in which the audit trail lists them.
func Verbs() []Verb { return listVerbs(func(declaration) bool { return true }) }

// OnPromotion are the verbs that the API, the pages and the command line give about a promotion.
func OnPromotion() []Verb { return listVerbs(func(d declaration) bool { return d.onPromotion }) }

// OnPipeline are the verbs that they give about a pipeline or a part of it.
func OnPipeline() []Verb { return listVerbs(func(d declaration) bool { return d.onPipeline }) }

// Needs is what a verb takes; an unknown verb takes what nobody has by accident.
func Needs(verb Verb) Need { return verb.find().need }

// Loosens says whether a verb lets happen what something would have kept from happening: for such a
// command it must be known whose word it is. A hold only restrains, a revert goes back to what was
// verified and passes the gates of its own, and the others only ask.
func Loosens(verb Verb) bool { return verb.find().loosens }

// Title is what a page that gives the verb is called, before what it is about.
func (v Verb) Title() string { return v.find().title }

// Short is what the command line says of the verb.
func (v Verb) Short() string { return v.find().short }

// TakesReason says that a reason may stand behind the verb.
func (v Verb) TakesReason() bool { return v.find().form >= withScope }

// IsPlain says that only a reason may stand behind the verb, so that a promotion is all that the
// command line needs besides.
func (v Verb) IsPlain() bool { return v.find().form == bare || v.find().form == withReason }

// HelpLine is a line of help: how a verb is said, and what it does.
type HelpLine struct{ Usage, Text string }

// ListHelp are the lines of help.
func ListHelp() []HelpLine {
	var out []HelpLine
	for _, v := range helpOrder {
		out = append(out, HelpLine{v.find().usage, v.find().help})
	}
	return out
}

// ListUserHelp are the lines of help on a person's own pull request.
func ListUserHelp() []HelpLine {
	var out []HelpLine
	for _, v := range userHelpOrder {
		out = append(out, HelpLine{v.find().usage, v.find().userHelp})
	}
	return out
}
