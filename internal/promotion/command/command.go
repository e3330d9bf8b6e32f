package command

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/liftlock/liftlock/internal/wording"
)

// The scopes of a hold.
const (
	ScopePR          = "pr"
	ScopeComponent   = "component"
	ScopeEnvironment = "environment"
	ScopePipeline    = "pipeline"
)

// maxReason is how long a reason may be, in characters: it is shown on one line
// of a table and kept in a file on the state branch.
const maxReason = 300

const (
	day     = 24 * time.Hour
	maxHold = 366 * day
)

// minSkipReason is how long the reason of a skip must be, in characters.
const minSkipReason = 10

// gateName is the form of a gate's kind, as the pipeline file spells it.
var gateName = regexp.MustCompile(`^[a-z][a-zA-Z]{0,40}$`)

// Command is one command. Only what its verb takes is set.
type Command struct {
	Verb        Verb   `json:"verb"`
	Scope       string `json:"scope,omitempty"`       // hold, unhold
	Environment string `json:"environment,omitempty"` // why, promote; empty: the one that the pull request is about
	Gate        string `json:"gate,omitempty"`        // skip
	Reverts     bool   `json:"reverts,omitempty"`     // hold: reverts too
	Reason      string `json:"reason,omitempty"`      // hold, unhold, revert, skip; one line

	// A hold's end: so long after the command was given, or at a time; neither: when
	// somebody lifts it.
	For   time.Duration `json:"for,omitempty"`
	Until time.Time     `json:"until,omitzero"`
}

var scopes = []string{ScopePR, ScopeComponent, ScopeEnvironment, ScopePipeline}

// environmentName is PRODUCT's form of a name.
var environmentName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)

// Check says what is wrong with a command that didn't come through Parse, so
// that the API takes nothing that a comment couldn't say; nil when nothing is.
func (c Command) Check() error {
	switch {
	case !slices.Contains(Verbs(), c.Verb):
		return unknownVerb(c.Verb)
	case c.Gate != "" && c.Verb != Skip:
		return fmt.Errorf("/liftlock %s takes no gate", c.Verb)
	case c.Verb == Skip && !gateName.MatchString(c.Gate):
		return fmt.Errorf("/liftlock skip takes a gate's name, as in /liftlock skip soak the fix can't wait; %q is none",
			truncateWord(c.Gate))
	case c.Scope != "" && c.Verb != Hold && c.Verb != Unhold:
		return fmt.Errorf("/liftlock %s takes no scope", c.Verb)
	case c.Scope != "" && !slices.Contains(scopes, c.Scope):
		return fmt.Errorf("/liftlock %s can't have the scope %q; it is one of %s", c.Verb, truncateWord(c.Scope),
			strings.Join(scopes, ", "))
	case c.Reverts && c.Verb != Hold:
		return fmt.Errorf("/liftlock %s takes no reverts", c.Verb)
	case (c.For != 0 || !c.Until.IsZero()) && c.Verb != Hold:
		return fmt.Errorf("/liftlock %s takes no end", c.Verb)
	case c.For != 0 && !c.Until.IsZero():
		return errors.New("a hold has one end: say for or until, not both")
	case c.For < 0 || c.For > maxHold:
		return fmt.Errorf("a hold lasts up to %d days; without for and until it lasts until somebody lifts it", maxHold/day)
	case c.Environment != "" && !environmentName.MatchString(c.Environment):
		return fmt.Errorf("%q can't be an environment: names have lower-case letters, digits and dashes", truncateWord(c.Environment))
	case utf8.RuneCountInString(c.Reason) > maxReason:
		return fmt.Errorf("the reason of /liftlock %s is too long; it takes %d characters", c.Verb, maxReason)
	case c.Reason != oneLine(c.Reason):
		return errors.New("a reason is one line of visible characters")
	case c.Verb == Skip && utf8.RuneCountInString(c.Reason) < minSkipReason:
		return fmt.Errorf("/liftlock skip takes a reason of at least %d characters behind the gate's name, for those who ask why later",
			minSkipReason)
	}
	return nil
}

// Describe is the canonical form of a command for the audit trail and the logs.
// The reason isn't part of it: the trail keeps it beside.
func Describe(c Command) string {
	words := []string{string(c.Verb)}
	for _, w := range []string{c.Scope, c.Environment, c.Gate} {
		if w != "" {
			words = append(words, oneLine(w))
		}
	}
	if c.For != 0 {
		words = append(words, "for", c.For.String())
	}
	if !c.Until.IsZero() {
		words = append(words, "until", c.Until.Format(time.RFC3339))
	}
	if c.Reverts {
		words = append(words, "reverts")
	}
	return strings.Join(words, " ")
}

// Comment is a command as a comment says it, without its reason. Where the pull request that
// the comment is on says which environment is meant, that is left out.
func Comment(c Command) string {
	words := []string{Prefix, string(c.Verb), c.Scope}
	if c.Verb == Promote || c.Verb == Why {
		words = append(words, c.Environment)
	}
	words = append(words, c.Gate)
	if c.For != 0 {
		words = append(words, "for", c.For.String())
	}
	if !c.Until.IsZero() {
		words = append(words, "until", c.Until.Format(time.RFC3339))
	}
	if c.Reverts {
		words = append(words, "reverts")
	}
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " ")
}

// End is when a hold that is given at a time ends; zero: when somebody lifts it. The error
// is for its author: that is over.
func (c Command) End(given time.Time) (time.Time, error) {
	end := c.Until
	if c.For != 0 {
		end = given.Add(c.For)
	}
	if !end.IsZero() && !end.After(given) {
		return time.Time{}, fmt.Errorf("%s is over; nothing is held", end.UTC().Format(time.RFC3339))
	}
	if end.Sub(given) > maxHold {
		return time.Time{}, fmt.Errorf("a hold lasts up to %d days; without for and until it lasts until somebody lifts it", maxHold/day)
	}
	return end, nil
}

// oneLine keeps what can be seen of a text, with single spaces.
func oneLine(s string) string {
	s = strings.ToValidUTF8(s, "")
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}

// truncateWord keeps a refused word from filling the answer.
func truncateWord(s string) string { return wording.ClipRunes(oneLine(s), 41) }
