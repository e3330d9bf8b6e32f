package promotion

import (
	"slices"
	"strings"
	"time"
)

// findCommand finds a person's command that waits for this environment; the oldest first.
func (j *evaluator) findCommand(verb, env string) *PendingCommand {
	return j.findFirstCommand(func(a *PendingCommand) bool { return a.Verb == verb && a.Environment == env })
}

// findUnboundCommand is a command that is not about any release yet.
func (j *evaluator) findUnboundCommand(verb, env string) *PendingCommand {
	return j.findFirstCommand(func(a *PendingCommand) bool { return a.Verb == verb && a.Environment == env && a.Release == "" })
}

// findBoundCommand is a command that is in force for a release.
func (j *evaluator) findBoundCommand(verb, env, release string) *PendingCommand {
	return j.findFirstCommand(func(a *PendingCommand) bool {
		return a.Verb == verb && a.Environment == env && a.Release != "" && a.Release == release
	})
}

// findOtherBoundCommand is a command that is in force for another release than this one.
func (j *evaluator) findOtherBoundCommand(verb, env, release string) *PendingCommand {
	return j.findFirstCommand(func(a *PendingCommand) bool {
		return a.Verb == verb && a.Environment == env && a.Release != "" && a.Release != release
	})
}

func (j *evaluator) findFirstCommand(is func(*PendingCommand) bool) *PendingCommand {
	for i := range j.facts.PendingCommands {
		if a := &j.facts.PendingCommands[i]; !j.finished[a.ID] && is(a) {
			return a
		}
	}
	return nil
}

// isOlderThan says that a command was written before something happened, so that it can't be
// about that. One of which it isn't known when it was written, or none, isn't.
func (a *PendingCommand) isOlderThan(happened time.Time) bool {
	return a != nil && !a.At.IsZero() && a.At.Before(happened)
}

// finishCommand answers a command, if there is one.
func (j *evaluator) finishCommand(a *PendingCommand, done bool, outcome string) {
	if a != nil {
		j.finish(a, FinishCommand{Done: done, Outcome: outcome})
	}
}

// finish answers a command with all that there is to say of how it ended.
func (j *evaluator) finish(a *PendingCommand, end FinishCommand) {
	j.finished[a.ID] = true
	end.Environment, end.ID = a.Environment, a.ID
	j.addAction(end)
}

// bindCommand ties a command to a release, for the rest of this decision too.
func (j *evaluator) bindCommand(a *PendingCommand, release string) {
	j.addAction(BindCommand{Environment: a.Environment, ID: a.ID, Release: release})
	a.Release = release
}

// finishLeftoverCommands answers commands that nothing else does: for environments that
// the pipeline doesn't have, or into which nothing is promoted.
func (j *evaluator) finishLeftoverCommands() {
	for i := range j.facts.PendingCommands {
		a := &j.facts.PendingCommands[i]
		if j.finished[a.ID] {
			continue
		}
		e := j.facts.findEnv(a.Environment)
		switch {
		case e == nil:
			j.finishCommand(a, false, "this component has no environment "+a.Environment)
		case a.Verb != "promote" && a.Verb != "revert" && a.Verb != "retry":
			j.finishCommand(a, false, "there is no command "+a.Verb)
		case e.Source() && a.Verb != "retry":
			j.finishCommand(a, false, a.Environment+" is a source environment: releases arrive there by commits, not by promotions")
		}
	}
}

// Requesters are the logins of those whose commands promote a release into an environment,
// as far as the store has them, sorted.
func (f *ComponentFacts) Requesters(env, release string) []string {
	var out []string
	for _, k := range f.PendingCommands {
		if k.Verb == "promote" && k.Environment == env && (k.Release == "" || k.Release == release) {
			out = append(out, k.By)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// requesterSeparator can be in nobody's login.
const requesterSeparator = ", "

// RequestersTrailer writes requesters as a commit's trailer has them; "" for none.
func RequestersTrailer(logins []string) string { return strings.Join(logins, requesterSeparator) }

// ParseRequesters reads what RequestersTrailer wrote.
func ParseRequesters(trailer string) []string {
	if trailer == "" {
		return nil
	}
	return strings.Split(trailer, requesterSeparator)
}
