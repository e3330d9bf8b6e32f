package backtest

import (
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion"
)

// carryOut does what Decide wanted; e is how the record has it, nil where it has nothing or isn't
// followed.
func (g *group) carryOut(key requestKey, r *request, e *event) {
	switch a := r.action.(type) {
	case promotion.Open:
		g.open(&pullModel{env: a.Environment, members: slices.Clone(a.Members), batch: a.Batch}, e)
	case promotion.OpenRevert:
		g.open(&pullModel{env: a.Environment, revert: true, members: slices.Clone(a.Members), batch: a.Batch}, e)
	case promotion.Replace:
		if p := g.findPull(a.Pull); p != nil {
			g.replace(p, a.Members)
		}
	case promotion.Close:
		if p := g.findPull(a.Pull); p != nil {
			g.end(p, promotion.PastPull{Superseded: true}, a.Why)
		}
	case promotion.Merge:
		if p := g.findPull(a.Pull); p != nil {
			g.merge(p, r.manual, e)
		}
	}
	for _, u := range g.units {
		u.answerCommands(key.env)
	}
}

// force does what happened although nothing wanted it.
func (g *group) force(e *event) {
	p := g.openIn(e.env, e.revert, e.unit)
	switch e.kind {
	case eventOpened:
		if p != nil {
			return
		}
		g.open(&pullModel{env: e.env, revert: e.revert, members: g.membersOf(e), batch: e.unit == promotion.BatchName}, e)
	case eventReplaced:
		if p != nil {
			g.replace(p, g.membersOf(e))
		}
	case eventClosed:
		if p != nil {
			g.end(p, promotion.PastPull{Superseded: true}, "")
		}
	case eventMerged:
		if p == nil {
			p = &pullModel{env: e.env, revert: e.revert, members: g.membersOf(e), batch: e.unit == promotion.BatchName}
			g.open(p, nil)
		}
		g.merge(p, true, e)
	}
}

// membersOf are whom the pull request of what happened moves.
func (g *group) membersOf(e *event) []promotion.Member {
	if len(e.members) > 0 {
		return slices.Clone(e.members)
	}
	m := promotion.Member{Release: e.release}
	for i, u := range g.units {
		if len(g.units) == 1 || e.landings[i] != nil {
			m.Component = u.script.unit.Component
		}
	}
	return []promotion.Member{m}
}

// open opens a pull request.
func (g *group) open(p *pullModel, e *event) {
	g.numbers++
	p.number, p.open, p.createdAt = g.numbers, true, g.now
	g.pulls = append(g.pulls, p)
	number := 0
	if e != nil {
		number = e.number
	}
	for i := range p.members {
		m := &p.members[i]
		if u := g.unit(m.Component); u != nil {
			u.bind(m.CommandID, m.Release)
			p.outcomes = append(p.outcomes, g.outcomeOf(u, p, *m, number))
		}
	}
	if p.revert {
		g.usage.addRevert(g.now, p.env)
	} else {
		g.usage.addOpen(g.now, p.env, 1)
	}
}

func (g *group) outcomeOf(u *unitModel, p *pullModel, m promotion.Member, number int) *outcome {
	o := &outcome{unit: u.script.unit.Component, env: p.env, revert: p.revert, release: m.Release, name: u.nameOf(m),
		number: number, opened: g.now}
	g.outcomes = append(g.outcomes, o)
	return o
}

// replace puts other releases into an open pull request.
func (g *group) replace(p *pullModel, members []promotion.Member) {
	for _, o := range p.outcomes {
		if m, in := promotion.FindMember(members, o.unit); !in || m.Release != o.release {
			o.ended, o.end = g.now, EndSuperseded
		}
	}
	was := p.outcomes
	p.outcomes, p.members = nil, slices.Clone(members)
	for _, m := range members {
		u := g.unit(m.Component)
		if u == nil {
			continue
		}
		u.bind(m.CommandID, m.Release)
		i := slices.IndexFunc(was, func(o *outcome) bool { return o.unit == m.Component && o.release == m.Release })
		if i >= 0 {
			p.outcomes = append(p.outcomes, was[i])
			continue
		}
		p.outcomes = append(p.outcomes, g.outcomeOf(u, p, m, 0))
	}
}

// end ends a pull request; how says how, and why why where that is known.
func (g *group) end(p *pullModel, how promotion.PastPull, why string) {
	p.open = false
	g.pulls = slices.DeleteFunc(g.pulls, func(o *pullModel) bool { return o == p })
	if !p.revert {
		g.usage.addOpen(g.now, p.env, -1)
	}
	how.Number, how.Revert, how.At = p.number, p.revert, g.now
	for _, m := range p.members {
		u := g.unit(m.Component)
		if u == nil {
			continue
		}
		if e := u.env(p.env); e != nil {
			past := how
			past.Release = m.Release
			e.addPast(past)
		}
	}
	for _, o := range p.outcomes {
		o.ended = g.now
		switch {
		case how.Merged:
			o.end = EndMerged
		case how.Superseded:
			o.end = EndSuperseded
		default:
			o.end = EndClosed
		}
		if why != "" {
			o.obstacle = why
		}
	}
}

// merge merges a pull request: what it moves lands.
func (g *group) merge(p *pullModel, byHand bool, e *event) {
	if !p.revert && !byHand {
		g.usage.addMerge(g.now)
	}
	for _, o := range p.outcomes {
		o.merged, o.manual = g.now, byHand
	}
	g.end(p, promotion.PastPull{Merged: true, Commit: p.commit()}, "")
	members := slices.Clone(p.members)
	for i := range members {
		members[i].CommandID = 0
	}
	for _, m := range p.members {
		u := g.unit(m.Component)
		if u == nil || u.env(p.env) == nil {
			continue
		}
		l := promotion.Landed{Commit: p.commit(), At: g.now, By: promotion.ByPromotion, Pull: p.number, Batch: p.batch, Members: members}
		var recorded *landing
		if e != nil {
			recorded = e.landings[g.index(u)]
			if recorded != nil && g.plan.measuring {
				recorded.at = g.now
			}
		}
		release := promotion.Release{ID: m.Release, Name: u.nameOf(m)}
		if p.revert {
			l.By, release = promotion.ByRevert, u.env(p.env).releaseBefore(m.Release)
		}
		u.land(g, u.env(p.env), release, l, recorded)
		u.env(p.env).outcome = p.find(m.Component)
	}
}

func (p *pullModel) find(component string) *outcome {
	i := slices.IndexFunc(p.outcomes, func(o *outcome) bool { return o.unit == component })
	if i < 0 {
		return nil
	}
	return p.outcomes[i]
}

// unit finds a component of the group; nil where the record has none of that name.
func (g *group) unit(component string) *unitModel {
	for _, u := range g.units {
		if u.script.unit.Component == component {
			return u
		}
	}
	return nil
}

func (g *group) index(u *unitModel) int { return slices.Index(g.units, u) }

// applyLanded has what a person put into an environment land there. A pull request of ours by which it
// came has ended by that.
func (g *group) applyLanded(e *event) {
	for i, l := range e.landings {
		if l == nil {
			continue
		}
		u := g.units[i]
		env := u.env(e.env)
		if env == nil {
			continue
		}
		if p := g.openIn(e.env, false, e.unit); e.number != 0 && p != nil {
			g.end(p, promotion.PastPull{Merged: true, Unrequested: true}, "somebody merged something else by it")
		}
		env.outcome = nil
		u.land(g, env, l.release, l.landed, l)
	}
}

// applyVeto closes a pull request as a person did: where it opens only later, as soon as it does.
// Where it was merged before, nothing is left to close.
func (g *group) applyVeto(e *event, t time.Time) bool {
	p := g.openIn(e.env, e.revert, e.unit)
	if p == nil || !p.moves(e.release) {
		if g.plan.measuring && !t.Before(e.until) {
			g.plan.add(Mismatch{At: t, Component: g.units[0].script.unit.Component, Environment: e.env, Release: e.release, Pull: e.number,
				What: "was closed by a person, and isn't open"})
			return true
		}
		return !g.plan.measuring && g.hasLanded(e)
	}
	if g.plan.measuring {
		e.from, e.until = t, t
	}
	g.end(p, promotion.PastPull{}, "a person closed it")
	return true
}

func (p *pullModel) moves(release string) bool {
	return slices.ContainsFunc(p.members, func(m promotion.Member) bool {
		return promotion.SameRelease(m.Release, short(release)) || m.Release == release
	})
}

// hasLanded says that a release has come to the environment.
func (g *group) hasLanded(e *event) bool {
	return slices.ContainsFunc(g.outcomes, func(o *outcome) bool {
		return o.env == e.env && o.release == e.release && o.revert == e.revert && !o.merged.IsZero()
	})
}

// mayMergeByHand says that people merge a pull request, by the rules.
func (g *group) mayMergeByHand(p *pullModel) bool {
	for _, m := range p.members {
		if u := g.unit(m.Component); u != nil && u.env(p.env) != nil {
			spec := &u.env(p.env).facts.Spec
			if p.revert {
				return spec.OnDegraded.Action != pipeline.OnDegradedRevertAndMerge
			}
			return spec.Merge == pipeline.Manual
		}
	}
	return false
}
