package promotion

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// maxHolders bounds how many holds there are on the same.
const maxHolders = 50

// Holding is a hold with what tells its holder.
type Holding struct {
	Hold
	ByID int64  `json:"byID,omitempty"` // of the account By, which stays when its login is changed; 0: not known
	Via  string `json:"via,omitempty"`  // api: By is the name of one of its tokens; console: a user there; empty: somebody on the forge
	// Subject says with via console which user, as names there aren't unique: a digest of whom
	// the identity provider knows. Empty: not known, as of holds from before it was kept.
	Subject string `json:"subject,omitempty"`
}

// ViaConsole is the way of a hold by a user of the console.
const ViaConsole = "console"

// IsOf says whether an account set a hold. A person is known by the account's number, or by the
// login where the number isn't known of both. With via api it is a token by its name, with via
// console a user by the subject. A hold of the console without a subject belongs to no user.
func (h Holding) IsOf(by string, byID int64, via, subject string) bool {
	if h.Via != via {
		return false
	}
	if via == ViaConsole {
		return h.Subject != "" && h.Subject == subject
	}
	if h.ByID != 0 && byID != 0 {
		return h.ByID == byID
	}
	return h.By != "" && strings.EqualFold(h.By, by)
}

// isWeaker says that a hold ends before another does.
func (h Holding) isWeaker(than Holding) bool {
	return !h.Until.IsZero() && (than.Until.IsZero() || h.Until.Before(than.Until))
}

// ListActive lists the holds that aren't over.
func ListActive(all []Holding, now time.Time) []Holding {
	return slices.DeleteFunc(slices.Clone(all), func(h Holding) bool { return h.IsOver(now) })
}

// AddHold adds a hold to those of the same subject that stand. Each holder has one, and another one
// of reverts too, so that reverts are held no longer than was said for them. A second hold makes
// the first no weaker, so the later end counts. It holds from then on, so that an unhold that was
// given in between, and is only carried out later, doesn't lift it. Others' holds stay theirs.
func AddHold(active []Holding, h Holding) []Holding {
	out := slices.Clone(active)
	if i := slices.IndexFunc(out, func(s Holding) bool {
		return s.Reverts == h.Reverts &&
			s.IsOf(h.By, h.ByID, h.Via, h.Subject)
	}); i >= 0 {
		if h.ByID != 0 { // the login may be another one by now, or the number wasn't known
			out[i].By, out[i].ByID = h.By, h.ByID
		}
		if h.At.After(out[i].At) {
			out[i].At = h.At
		}
		if out[i].isWeaker(h) {
			out[i].Until = h.Until
		}
		return out
	}
	if out = append(out, h); len(out) <= maxHolders {
		return out
	}
	weakest := -1
	for i := range out {
		if !out[i].Reverts && (weakest < 0 || out[i].isWeaker(out[weakest])) {
			weakest = i
		}
	}
	if weakest < 0 {
		return active // all keep reverts too
	}
	return slices.Delete(out, weakest, weakest+1)
}

// FindStrongest finds the hold that lasts longest, of several the first; false when there is
// none.
func FindStrongest(holds []Holding) (strongest Holding, held bool) {
	for i, h := range holds {
		if i == 0 || strongest.isWeaker(h) {
			strongest = h
		}
	}
	return strongest, len(holds) > 0
}

// liftSlack is by how much a hold may be younger than the command that lifts it where different
// clocks stamp the two. The forge's stamps comments there, ours stamps commands by the API.
const liftSlack = time.Minute

// Lift says which holds somebody lifts. Its zero value lifts all.
type Lift struct {
	OwnOnly          bool   // those that By set, and no others
	By, Via, Subject string // as of a Holding
	ByID             int64  // likewise
	// Given is when the command was given, which may be long ago: it doesn't lift what was
	// given later. Zero: now.
	Given time.Time
}

// IsLate says that it was given so long ago that what isn't known to be older than it may
// have been set since.
func (l Lift) IsLate(now time.Time) bool {
	return !l.Given.IsZero() && now.After(l.Given.Add(liftSlack))
}

// Of are the holds that are left after the lift.
func (l Lift) Of(active []Holding) []Holding {
	return slices.DeleteFunc(slices.Clone(active), func(h Holding) bool {
		slack := liftSlack
		if h.Via == l.Via {
			slack = 0
		}
		isLater := !l.Given.IsZero() && h.At.After(l.Given.Add(slack))
		return !isLater && (!l.OwnOnly || h.IsOf(l.By, l.ByID, l.Via, l.Subject))
	})
}

// listHolds lists the holds that cover an environment, for people.
func (ev *evaluator) listHolds(e *Env) []string {
	var out []string
	for _, h := range ev.findHoldsOn(e) {
		out = append(out, ev.describeHold(h))
	}
	return out
}

// findHoldsOn finds the holds that cover an environment.
func (ev *evaluator) findHoldsOn(e *Env) []Hold {
	return slices.DeleteFunc(ev.activeHolds(), func(h Hold) bool { return h.Scope == "environment" && h.Environment != e.Name })
}

// describeHold says what a hold stops, who set it and what lifts it.
func (ev *evaluator) describeHold(h Hold) string {
	s := fmt.Sprintf("%s is on hold by %s since %s%s", holdSubject(h, ev.facts.Unit.Component), orSomebody(h.By),
		h.At.UTC().Format(time.RFC3339), untilText(h.Until))
	if h.Reason != "" {
		s += ": " + h.Reason
	}
	return s + "; /liftlock unhold " + h.Scope + " lifts it"
}

// briefHold is who holds, until when and why, as it follows "on hold".
func briefHold(by string, until time.Time, reason string, now time.Time) string {
	s := "by " + orSomebody(by)
	if !until.IsZero() {
		s += " until " + formatNear(until, now)
	}
	if reason != "" {
		s += ": " + reason
	}
	return s
}

// nearby is how far a time may be from now for its weekday to say which day it is.
const nearby = 6 * 24 * time.Hour

// formatNear is a time for a headline: "Mon 16:33 UTC", with its date where it isn't within days of now.
func formatNear(at, now time.Time) string {
	if away := at.Sub(now).Abs(); away > nearby {
		return at.UTC().Format("Mon 2006-01-02 15:04 UTC")
	}
	return at.UTC().Format("Mon 15:04 UTC")
}

// activeHolds lists the holds that haven't come to their end.
func (ev *evaluator) activeHolds() []Hold {
	var out []Hold
	for _, h := range ev.facts.Holds.Value {
		if !h.IsOver(ev.facts.Now) {
			out = append(out, h)
			ev.recheckAt(h.Until)
		}
	}
	return out
}

// untilText says when something ends; "" where it doesn't by itself.
func untilText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return " until " + t.UTC().Format(time.RFC3339)
}

func holdSubject(h Hold, component string) string {
	switch h.Scope {
	case "environment":
		return "environment " + h.Environment
	case "component":
		return "component " + component
	}
	return "the pipeline"
}
