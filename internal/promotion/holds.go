package promotion

import (
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

// IsOf says whether somebody set a hold: a person by their account's number, or by their login where
// it isn't known of both, or with via api a token by its name, or with via console a user by the
// subject. One of the console without is nobody's.
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

// AddHold adds a hold to those of the same that stand. Each holder has one, and another one of
// reverts too, so that reverts are held no longer than that was said of them: who holds again
// makes it no weaker, so that the later end counts, and holds from then on, so that an unhold
// that was given in between, and is only carried out later, doesn't lift it. What others hold
// stays theirs.
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

// liftSlack is by how much a hold may be younger than the command that lifts it where the
// two are stamped by different clocks: the forge's for what is written there, ours for what
// comes by the API.
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

// Of are the holds that stand after it.
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
