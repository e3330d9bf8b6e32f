package promotion

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/policies"
)

// findCommand finds a person's command that waits for this environment; the oldest first.
func (ev *evaluator) findCommand(verb command.Verb, env string) *PendingCommand {
	return ev.findFirstCommand(func(a *PendingCommand) bool { return a.Verb == verb && a.Environment == env })
}

// findUnboundCommand is a command that is not about any release yet.
func (ev *evaluator) findUnboundCommand(verb command.Verb, env string) *PendingCommand {
	return ev.findFirstCommand(func(a *PendingCommand) bool { return a.Verb == verb && a.Environment == env && a.Release == "" })
}

// findBoundCommand is a command that is in force for a release.
func (ev *evaluator) findBoundCommand(verb command.Verb, env, release string) *PendingCommand {
	return ev.findFirstCommand(func(a *PendingCommand) bool {
		return a.Verb == verb && a.Environment == env && a.Release != "" && a.Release == release
	})
}

// findOtherBoundCommand is a command that is in force for another release than this one.
func (ev *evaluator) findOtherBoundCommand(verb command.Verb, env, release string) *PendingCommand {
	return ev.findFirstCommand(func(a *PendingCommand) bool {
		return a.Verb == verb && a.Environment == env && a.Release != "" && a.Release != release
	})
}

func (ev *evaluator) findFirstCommand(is func(*PendingCommand) bool) *PendingCommand {
	for i := range ev.facts.PendingCommands {
		if a := &ev.facts.PendingCommands[i]; !ev.finished[a.ID] && is(a) {
			return a
		}
	}
	return nil
}

// isOlderThan says that a command was written before something happened, so that it can't be
// about that. One of which it isn't known when it was written, or none, isn't.
func (p *PendingCommand) isOlderThan(happened time.Time) bool {
	return p != nil && !p.At.IsZero() && p.At.Before(happened)
}

// finishCommand answers a command, if there is one.
func (ev *evaluator) finishCommand(a *PendingCommand, done bool, outcome string) {
	if a != nil {
		ev.finish(a, FinishCommand{Done: done, Outcome: outcome})
	}
}

// finish answers a command with all that there is to say of how it ended.
func (ev *evaluator) finish(a *PendingCommand, end FinishCommand) {
	ev.finished[a.ID] = true
	end.Environment, end.ID = a.Environment, a.ID
	ev.addAction(end)
}

// bindCommand ties a command to a release, for the rest of this decision too.
func (ev *evaluator) bindCommand(a *PendingCommand, release string) {
	ev.addAction(BindCommand{Environment: a.Environment, ID: a.ID, Release: release})
	a.Release = release
}

// finishLeftoverCommands answers commands that nothing else does: for environments that
// the pipeline doesn't have, or into which nothing is promoted.
func (ev *evaluator) finishLeftoverCommands() {
	for i := range ev.facts.PendingCommands {
		a := &ev.facts.PendingCommands[i]
		if ev.finished[a.ID] {
			continue
		}
		e := ev.facts.findEnv(a.Environment)
		switch {
		case e == nil:
			ev.finishCommand(a, false, "this component has no environment "+a.Environment)
		case a.Verb != command.Promote && a.Verb != command.Revert && a.Verb != command.Retry:
			ev.finishCommand(a, false, "there is no command "+string(a.Verb))
		case e.Source() && a.Verb != command.Retry:
			ev.finishCommand(a, false, a.Environment+" is a source environment: releases arrive there by commits, not by promotions")
		}
	}
}

// Requesters are the accounts of those whose commands promote a release into an environment,
// as far as the store has them, sorted.
func (c *ComponentFacts) Requesters(env, release string) []policies.Account {
	var out []policies.Account
	for _, k := range c.PendingCommands {
		if k.Verb == command.Promote && k.Environment == env && (k.Release == "" || k.Release == release) {
			out = append(out, policies.Account{ID: k.ByID, Login: k.By})
		}
	}
	slices.SortFunc(out, policies.Account.Compare)
	return slices.Compact(out)
}

const (
	// requesterSeparator can't be in a login.
	requesterSeparator = ", "
	// These stand around the number of a requester's account. After a # it would be taken for a
	// reference to an issue.
	requesterIDBefore, requesterIDAfter = " (id ", ")"
)

// FormatRequester writes a requester as the store and a commit's trailer have them: the login
// and, where it is known, the account's number.
func FormatRequester(a policies.Account) string {
	if a.ID == 0 {
		return a.Login
	}
	return a.Login + requesterIDBefore + strconv.FormatInt(a.ID, 10) + requesterIDAfter
}

// ParseRequester reads what FormatRequester wrote, and a login alone, as it was written before
// the number was.
func ParseRequester(text string) policies.Account {
	if rest, ok := strings.CutSuffix(text, requesterIDAfter); ok {
		if i := strings.LastIndex(rest, requesterIDBefore); i >= 0 {
			if id, err := strconv.ParseInt(rest[i+len(requesterIDBefore):], 10, 64); err == nil {
				return policies.Account{ID: id, Login: rest[:i]}
			}
		}
	}
	return policies.Account{Login: text}
}

// RequestersTrailer writes requesters as a commit's trailer has them; "" for none.
func RequestersTrailer(accounts []policies.Account) string {
	texts := make([]string, len(accounts))
	for i, a := range accounts {
		texts[i] = FormatRequester(a)
	}
	return strings.Join(texts, requesterSeparator)
}

// ParseRequesters reads what RequestersTrailer wrote.
func ParseRequesters(trailer string) []policies.Account {
	if trailer == "" {
		return nil
	}
	var out []policies.Account
	for text := range strings.SplitSeq(trailer, requesterSeparator) {
		out = append(out, ParseRequester(text))
	}
	return out
}
