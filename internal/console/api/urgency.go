package api

import (
	"slices"

	"github.com/liftlock/liftlock/internal/promotion/cause"
)

// Urgency is what a component asks of people. Each has exactly one.
type Urgency string

// The urgencies, the one that asks most first. A component has that of the environment that asks most.
const (
	UrgencyBroken  Urgency = "broken"  // something failed, was changed by hand, is stuck, or can't be read or told
	UrgencyHeld    Urgency = "held"    // a person stopped it
	UrgencyWaiting Urgency = "waiting" // it goes on when a person approves, merges or promotes it
	UrgencyMoving  Urgency = "moving"  // it goes on by itself
	UrgencyWell    Urgency = "well"    // nothing is open
)

// Urgencies are in their order.
var Urgencies = []Urgency{UrgencyBroken, UrgencyHeld, UrgencyWaiting, UrgencyMoving, UrgencyWell}

// Urgency is what the environment asks of people.
func (e *Environment) Urgency() Urgency {
	switch {
	case e.isBroken():
		return UrgencyBroken
	case e.isHeld():
		return UrgencyHeld
	case e.waitsForPerson():
		return UrgencyWaiting
	case e.Moving() || e.Waiting():
		return UrgencyMoving
	}
	return UrgencyWell
}

// Urgency is what the component asks of people.
func (c *Component) Urgency() Urgency {
	all := make([]Urgency, 0, len(c.Environments))
	for i := range c.Environments {
		all = append(all, c.Environments[i].Urgency())
	}
	for _, s := range Urgencies {
		if slices.Contains(all, s) {
			return s
		}
	}
	return UrgencyWell
}

// Add counts a component.
func (c *Counts) Add(s Urgency) {
	c.Components++
	if s != UrgencyWell {
		c.Open++
	}
	switch s {
	case UrgencyBroken:
		c.Broken++
	case UrgencyHeld:
		c.Held++
	case UrgencyWaiting:
		c.Waiting++
	case UrgencyMoving:
		c.Moving++
	}
	c.Attention = c.Broken + c.Held
}

// Sum adds another pipeline's counts.
func (c *Counts) Sum(o Counts) {
	c.Components, c.Open, c.Moving, c.Waiting = c.Components+o.Components, c.Open+o.Open, c.Moving+o.Moving, c.Waiting+o.Waiting
	c.Held, c.Broken, c.Attention = c.Held+o.Held, c.Broken+o.Broken, c.Attention+o.Attention
}

func (e *Environment) isBroken() bool {
	switch e.State {
	case "degraded", "failed", "diverged", "mixed", "unreadable":
		return true
	}
	if e.Stuck() != nil || slices.ContainsFunc(e.Targets, func(t Target) bool { return t.Untold }) {
		return true
	}
	return e.Revert != nil || slices.ContainsFunc(e.allGates(), func(g Gate) bool { return g.Outcome == "fail" })
}

// isHeld says that a person's hold keeps a release from coming in.
func (e *Environment) isHeld() bool {
	if e.Incoming == nil || e.Incoming.State == "closed" {
		return false
	}
	return e.Incoming.State == "held" || e.Incoming.Pull == nil && e.hasReason(cause.Hold)
}

// waitsForPerson says that a release comes in once somebody approves, merges or promotes it.
func (e *Environment) waitsForPerson() bool {
	if e.Incoming == nil || e.Incoming.State == "closed" {
		return false
	}
	return e.hasReason(cause.Manual) || slices.ContainsFunc(e.Incoming.Gates, func(g Gate) bool {
		return g.Person
	})
}

func (e *Environment) hasReason(code cause.Code) bool {
	return slices.ContainsFunc(e.Why, func(r Reason) bool { return r.Code == code })
}

// Attention says that a person should look: it is broken or held.
func (e *Environment) Attention() bool { return e.isBroken() || e.isHeld() }

// Stuck is why a release doesn't move and won't by itself; nil where nothing says so.
func (e *Environment) Stuck() *Reason {
	for i := range e.Why {
		if e.Why[i].Code.IsStuck() {
			return &e.Why[i]
		}
	}
	return nil
}

// Moving says that something is under way here: a release is being verified, or
// a pull request is open.
func (e *Environment) Moving() bool {
	return e.State == "verifying" || e.Revert != nil || e.Incoming != nil && e.Incoming.Pull != nil
}

// Waiting says that a release wants to come in and something stops it.
func (e *Environment) Waiting() bool {
	if e.Incoming == nil || e.Incoming.State == "closed" {
		return false
	}
	return len(e.WaitReasons()) > 0
}

func (e *Environment) allGates() []Gate {
	var out []Gate
	if e.Incoming != nil {
		out = append(out, e.Incoming.Gates...)
	}
	if e.Revert != nil {
		out = append(out, e.Revert.Gates...)
	}
	return out
}

// Attention says that a person should look at the component.
func (c *Component) Attention() bool {
	s := c.Urgency()
	return s == UrgencyBroken || s == UrgencyHeld
}
