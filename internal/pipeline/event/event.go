// Package event is the one list of what can happen to a promotion: the kinds of events on the
// timeline, and the words by which a pipeline file notifies people.
//
// A kind is declared once, in kinds, with all that other rooms need of it. The store writes it, the
// notifier tells of it by its word, and the console shows it in its tone. The pipeline file's
// schema and reference list the words. So a new kind is its entry here and the call that writes it
// down; with a word of its own it is an entry in words too. A test holds that no other room spells
// a kind.
//
// This package knows only what a kind is, not when it happens or how it is sent.
package event

import "slices"

// Kind is what happened. Its text is stored and served by the API: it never changes.
type Kind string

// The kinds.
const (
	Opened       Kind = "opened"
	RevertOpened Kind = "revert-opened"
	Replaced     Kind = "replaced" // composed anew
	Updated      Kind = "updated"  // brought up to date with its base
	Queued       Kind = "queued"   // in the forge's merge queue
	Unqueued     Kind = "unqueued"
	Closed       Kind = "closed"
	Merged       Kind = "merged"
	Landed       Kind = "landed"   // by another account's commit
	Unjudged     Kind = "unjudged" // something else landed than was judged
	Ungated      Kind = "ungated"  // a person merged it past its gates
	Verified     Kind = "verified"
	Degraded     Kind = "degraded"
	Failed       Kind = "failed"
	Untold       Kind = "untold" // nobody has been able to tell for long how it is
	Held         Kind = "held"
	Waiting      Kind = "waiting" // for people
	Diverged     Kind = "diverged"
	Drifted      Kind = "drifted"
	Skipped      Kind = "skipped" // a gate
	Command      Kind = "command" // the end of one that a person gave
	Retry        Kind = "retry"
	Broken       Kind = "broken" // the pipeline file
	RevertLimit  Kind = "storm"  // so many reverts that everything holds
	Discovered   Kind = "discovered"
	Undiscovered Kind = "undiscovered" // something new is there, or may be, and can't come in
	Unsigned     Kind = "unsigned"     // an image that would come in isn't signed as it has to be
)

// Declaration is what the other rooms need of a kind.
type Declaration struct {
	Kind Kind
	Word string // by which people are told of it; empty: nobody is told
	Tone string // in the console: ok, busy, bad, undo, hand or quiet
}

var kinds = []Declaration{
	{Opened, "opened", "busy"},
	{RevertOpened, "reverted", "undo"},
	{Replaced, "", "busy"},
	{Updated, "", "quiet"},
	{Queued, "", "busy"},
	{Unqueued, "", "hand"},
	{Closed, "", "quiet"},
	{Merged, "merged", "ok"},
	{Landed, "", "quiet"},
	{Unjudged, "unjudged", "quiet"},
	{Ungated, "unjudged", "quiet"},
	{Verified, "verified", "ok"},
	{Degraded, "degraded", "bad"},
	{Failed, "failed", "quiet"},
	{Untold, "failed", "quiet"},
	{Held, "held", "quiet"},
	{Waiting, "waiting", "quiet"},
	{Diverged, "diverged", "quiet"},
	{Drifted, "drifted", "hand"},
	{Skipped, "skipped", "quiet"},
	{Command, "", "hand"},
	{Retry, "", "hand"},
	{Broken, "", "bad"},
	{RevertLimit, "limit", "quiet"},
	{Discovered, "discovered", "ok"},
	{Undiscovered, "failed", "hand"},
	{Unsigned, "unsigned", "bad"},
}

// Kinds are the declarations of all kinds.
func Kinds() []Declaration { return slices.Clone(kinds) }

// find is a kind's declaration; of one that isn't declared, a quiet one that nobody is told of.
func (k Kind) find() Declaration {
	if i := slices.IndexFunc(kinds, func(d Declaration) bool { return d.Kind == k }); i >= 0 {
		return kinds[i]
	}
	return Declaration{Kind: k, Tone: "quiet"}
}

// Word is by what people are told of the kind; empty: nobody is told of such.
func (k Kind) Word() string { return k.find().Word }

// Tone is how the console shows the kind.
func (k Kind) Tone() string { return k.find().Tone }

// Word is what a pipeline file's notifications call the events that people can be told of.
type Word struct {
	Word   string
	Urgent bool   // a person has to see to it
	Means  string // for the reference, where the word doesn't say it
}

var words = []Word{
	{"opened", false, ""},
	{"waiting", false, "for people at its gates"},
	{"merged", false, ""},
	{"verified", false, ""},
	{"degraded", true, ""},
	{"reverted", true, "a revert was opened"},
	{"failed", true, "a release never arrived, can't be verified, or a target's state is unknown for long; something new can't come in"},
	{"held", false, ""},
	{"diverged", false, ""},
	{"skipped", true, "a gate"},
	{"unjudged", true, "merged past the gates"},
	{"drifted", false, "a target was changed in the cluster"},
	{"limit", true, "so many reverts that everything holds"},
	{"discovered", false, "something new came into a source environment by itself"},
	{"unsigned", true, "a new image isn't signed"},
}

// Words are all words, in the order in which the reference lists them.
func Words() []Word { return slices.Clone(words) }

// WordNames are the words alone.
func WordNames() []string {
	names := make([]string, len(words))
	for i, w := range words {
		names[i] = w.Word
	}
	return names
}

// IsUrgent says that a person has to see to what a word tells of.
func IsUrgent(word string) bool {
	return slices.ContainsFunc(words, func(w Word) bool { return w.Word == word && w.Urgent })
}
