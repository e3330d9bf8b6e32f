package backtest

import (
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/promotion"
)

// group is what is decided together: one component, or all of a pipeline with batch: environment. It is
// a model of all that is outside of Decide, driven by the record.
type group struct {
	units     []*unitModel
	events    []*event
	cursor    int
	waiting   []*event // that have begun, and for which Decide hasn't asked yet
	now       time.Time
	next      time.Time // when Decide wants to look again
	decided   bool      // nothing changed since the last decision
	pulls     []*pullModel
	rules     *ruleSource
	usage     *usage
	usageSeen int   // the version of usage of the last decision
	plan      *plan // when what Decide wants happens
	numbers   int
	requests  map[requestKey]*request
	attempts  map[attemptKey]int
	outcomes  []*outcome
	joint     map[string]map[string]promotion.Composition
	decision  promotion.Decision
	// watch is called with each decision after which nothing more is to be done at once; nil: nobody is.
	watch func(promotion.Facts, promotion.Decision)
}

// pullModel is a pull request of ours.
type pullModel struct {
	number    int
	env       string
	revert    bool
	members   []promotion.Member
	createdAt time.Time
	open      bool
	batch     bool
	outcomes  []*outcome // by member
}

func (p *pullModel) has(component string) (promotion.Member, bool) {
	return promotion.FindMember(p.members, component)
}

// unit is whose it is: a component's, or of several at once promotion.BatchName.
func (p *pullModel) unit() string { return unitOf(p.members, p.batch) }

func unitOf(members []promotion.Member, batch bool) string {
	if batch || len(members) == 0 {
		return promotion.BatchName
	}
	return members[0].Component
}

// id is the identity of what a pull request moves: the release, or of a batch its BatchID.
func (p *pullModel) id() string { return subjectOf(p.members, p.batch) }

func subjectOf(members []promotion.Member, batch bool) string {
	if batch {
		return promotion.BatchID(members)
	}
	if len(members) == 0 {
		return ""
	}
	return members[0].Release
}

// run replays a group until a time.
func (g *group) run(until time.Time) {
	for {
		t := g.nextTime()
		if t.IsZero() || t.After(until) {
			g.finish(until)
			return
		}
		g.step(t)
	}
}

// nextTime is when something may be different; zero: never.
func (g *group) nextTime() time.Time {
	var next time.Time
	if !g.decided {
		next = g.now
	}
	next = earliest(next, g.next)
	if g.cursor < len(g.events) {
		next = earliest(next, g.events[g.cursor].from)
	}
	for _, e := range g.waiting {
		next = earliest(next, e.until)
	}
	for _, r := range g.requests {
		next = earliest(next, r.due)
	}
	for _, u := range g.units {
		next = earliest(next, u.nextTime())
	}
	if !next.IsZero() && next.Before(g.now) {
		return g.now
	}
	return next
}

// earliest is the earlier of two times; zero is never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// maxRounds bounds how often it is decided at one moment: each time something was done.
const maxRounds = 40

// step does what happens at a time, and decides until nothing more is to be done then.
func (g *group) step(t time.Time) {
	g.now = t
	if !g.next.IsZero() && !g.next.After(t) {
		g.next, g.decided = time.Time{}, false
	}
	for range maxRounds {
		for _, u := range g.units {
			if u.advance(g, t) {
				g.decided = false
			}
		}
		if g.applyEvents(t, true) || g.usage.version != g.usageSeen {
			g.decided = false
		}
		if !g.decided {
			g.decide()
			continue
		}
		if !g.applyEvents(t, false) && !g.carryOutDue(t) {
			return
		}
		g.decided = false
	}
	g.decided = true
	g.plan.add(Mismatch{At: t, Component: g.units[0].script.unit.Component, What: "it was decided over and over at one moment"})
}

// decide decides once, and does at once what is only written down.
func (g *group) decide() {
	g.decided, g.usageSeen = true, g.usage.version
	facts := promotion.Facts{Compositions: g.joint}
	var who []*unitModel
	for _, u := range g.units {
		if u.isActive {
			facts.Components = append(facts.Components, u.refresh(g))
			who = append(who, u)
		}
	}
	if len(who) == 0 {
		return
	}
	g.decision = promotion.Decide(facts)
	g.next = g.decision.Next
	for i, u := range who {
		d := &g.decision.Components[i]
		for _, a := range d.Actions {
			if u.write(g, a) {
				g.decided = false
			}
		}
		u.last, u.answers = d.Envs, d.Answers
	}
	wanted := map[requestKey]*request{}
	for _, a := range g.decision.Actions {
		switch a := a.(type) {
		case promotion.FactRequest:
			g.composeJointly(a)
			g.decided = false
		case promotion.PullAction:
			g.want(wanted, a, false)
		}
	}
	if g.decided {
		if g.watch != nil {
			g.watch(facts, g.decision)
		}
		g.wantManualMerges(wanted, who)
		g.keepRequests(wanted)
		for _, u := range who {
			u.keepObstacles()
		}
	}
}

// composeJointly answers what moving several at once changes.
func (g *group) composeJointly(r promotion.FactRequest) {
	if g.joint == nil {
		g.joint = map[string]map[string]promotion.Composition{}
	}
	if g.joint[r.Environment] == nil {
		g.joint[r.Environment] = map[string]promotion.Composition{}
	}
	g.joint[r.Environment][promotion.BatchID(r.Members)] = promotion.Composition{Tip: anyTip}
}

// wantManualMerges wants what a person would merge now.
func (g *group) wantManualMerges(wanted map[requestKey]*request, who []*unitModel) {
	for _, p := range g.pulls {
		if !p.open {
			continue
		}
		ready := true
		for _, u := range who {
			if _, in := p.has(u.script.unit.Component); in && !u.isReadyByHand(p) {
				ready = false
			}
		}
		if ready {
			g.want(wanted, promotion.Merge{Environment: p.env, Pull: p.number, Revert: p.revert, Members: p.members}, true)
		}
	}
}

// findPull finds a pull request by its number; nil where there is none.
func (g *group) findPull(number int) *pullModel {
	i := slices.IndexFunc(g.pulls, func(p *pullModel) bool { return p.number == number })
	if i < 0 {
		return nil
	}
	return g.pulls[i]
}

// openIn is the open pull request into an environment of a component, or of several at once; nil where
// there is none.
func (g *group) openIn(env string, revert bool, unit string) *pullModel {
	i := slices.IndexFunc(g.pulls, func(p *pullModel) bool { return p.open && p.env == env && p.revert == revert && p.unit() == unit })
	if i < 0 {
		return nil
	}
	return g.pulls[i]
}
