package gateclient

import (
	"errors"
	"time"

	"github.com/liftlock/liftlock/policies"
)

// Call is one call of a server that was made for a gate, for metrics. All of its words are
// bounded: names of the server's file and constants.
type Call struct {
	Gate    string // the kind: http or metric
	Server  string // its name in the server's file
	Outcome string // one of the outcomes
	Took    time.Duration
}

// The outcomes of calls, besides those of gates, which endpoints answer with.
const (
	OutcomeAnswered  = "answered"  // a query has a value, or none
	OutcomeUndecided = "undecided" // an endpoint will say later
	OutcomeRefused   = "refused"   // the call was refused, or its answer is none
	OutcomeAway      = "away"      // there was no answer in time, or the server isn't well or wants a pause
	OutcomeGivenUp   = "given up"  // nobody waits for it any more
)

// outcomeOf is how a call ended that was answered so where there is no error.
func outcomeOf(err error, answered string) string {
	var failed *callError
	switch {
	case err == nil:
		return answered
	case errors.As(err, &failed) && failed.away:
		return OutcomeAway
	}
	return OutcomeRefused
}

// outcomeOfAnswer is how an endpoint answered.
func outcomeOfAnswer(a policies.EndpointAnswer) string {
	switch a.Outcome {
	case policies.Pass, policies.Wait, policies.Fail:
		return string(a.Outcome)
	}
	return OutcomeUndecided
}
