package backtest

import (
	"cmp"
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/promotion"
)

// requestKey names what Decide wants done: of each kind at most one in an environment at a time.
type requestKey struct {
	kind   eventKind
	unit   string // a component, or of several at once promotion.BatchName
	env    string
	revert bool
}

// attemptKey names what is counted apart: the same may be wanted several times.
type attemptKey struct {
	requestKey
	id string
}

// request is what Decide has wanted without a break since a time.
type request struct {
	action  promotion.PullAction
	id      string // of what moves
	since   time.Time
	due     time.Time // when it happens; zero: it isn't known to
	manual  bool      // a person does it
	attempt int
}

// delay is how long after Decide wanted it something happened.
type delay struct {
	took   time.Duration
	manual bool
	never  bool // it was wanted, and no more before it happened
}

type delayKey struct {
	attemptKey
	attempt int
}

// longRequest is for how long at the least something was wanted that should have happened.
const longRequest = 15 * time.Minute

// plan says when what Decide wants happens: when the record says it did, while delays are measured;
// after the measured delay otherwise.
type plan struct {
	measuring  bool
	delays     map[delayKey]delay
	usual      map[usualKey][]time.Duration
	mismatches []Mismatch
	guesses    int // for how many delays the record has nothing alike
}

type usualKey struct {
	kind   eventKind
	env    string
	manual bool
}

func newPlan() *plan {
	return &plan{measuring: true, delays: map[delayKey]delay{}, usual: map[usualKey][]time.Duration{}}
}

// freeze ends the measuring.
func (p *plan) freeze() {
	p.measuring = false
	for _, all := range p.usual {
		slices.Sort(all)
	}
}

func (p *plan) add(m Mismatch) {
	if p.measuring {
		p.mismatches = append(p.mismatches, m)
	}
}

// measure writes down how long a request took.
func (p *plan) measure(key requestKey, r *request, at time.Time) {
	if !p.measuring {
		return
	}
	took := max(at.Sub(r.since), 0)
	p.delays[delayKey{attemptKey{key, r.id}, r.attempt}] = delay{took: took, manual: r.manual}
	u := usualKey{key.kind, key.env, r.manual}
	p.usual[u] = append(p.usual[u], took)
}

// dueTime is when what was wanted happens; zero: never by itself. What the record has nothing of
// happens after the usual time there or, where that isn't known either, at once.
func (p *plan) dueTime(key requestKey, r *request) time.Time {
	if p.measuring {
		return time.Time{}
	}
	d, known := p.delays[delayKey{attemptKey{key, r.id}, r.attempt}]
	switch {
	case known && d.never:
		return time.Time{}
	case known && d.manual == r.manual:
		return r.since.Add(d.took)
	}
	if all := p.usual[usualKey{key.kind, key.env, r.manual}]; len(all) > 0 {
		return r.since.Add(all[len(all)/2])
	}
	if r.manual {
		p.guesses++
	}
	return r.since
}

// want adds what Decide wants to what it wanted before.
func (g *group) want(wanted map[requestKey]*request, a promotion.PullAction, manual bool) {
	_, members := a.Subject()
	r := &request{action: a, since: g.now, manual: manual}
	key := requestKey{env: promotion.EnvironmentOf(a)}
	switch a := a.(type) {
	case promotion.Open:
		key.kind, r.id, key.unit = eventOpened, a.Release, unitOf(members, a.Batch)
	case promotion.Replace:
		key.kind, r.id, key.unit = eventReplaced, a.Release, unitOf(members, a.Batch)
	case promotion.OpenRevert:
		key.kind, key.revert, r.id, key.unit = eventOpened, true, a.Release, unitOf(members, a.Batch)
	case promotion.Close:
		key.kind, key.revert = eventClosed, a.Revert
	case promotion.Merge:
		key.kind, key.revert = eventMerged, a.Revert
	default:
		return // composing a revert anew and leaving the queue change nothing here
	}
	if r.id == "" {
		number, _ := a.Subject()
		p := g.findPull(number)
		if p == nil {
			return
		}
		r.id, key.unit = p.id(), p.unit()
	}
	wanted[key] = r
}

// keepRequests goes on with what is still wanted, and drops what isn't.
func (g *group) keepRequests(wanted map[requestKey]*request) {
	for key, r := range g.requests {
		if w := wanted[key]; w == nil || w.id != r.id || w.manual != r.manual {
			g.drop(key, r)
			delete(g.requests, key)
		}
	}
	for key, w := range wanted {
		if r := g.requests[key]; r != nil {
			r.action = w.action
			continue
		}
		counted := attemptKey{key, w.id}
		w.attempt = g.attempts[counted]
		g.attempts[counted]++
		w.due = g.plan.dueTime(key, w)
		g.requests[key] = w
	}
}

// drop ends a request that didn't happen.
func (g *group) drop(key requestKey, r *request) {
	if !g.plan.measuring {
		return
	}
	g.plan.delays[delayKey{attemptKey{key, r.id}, r.attempt}] = delay{never: true, manual: r.manual}
	if r.manual || g.now.Sub(r.since) < longRequest {
		return
	}
	_, members := r.action.Subject()
	m := Mismatch{At: r.since, Environment: key.env, Release: r.id,
		What: "was to be " + string(key.kind) + ", and the record doesn't have that"}
	if len(members) > 0 {
		m.Component, m.Name = members[0].Component, cmp.Or(members[0].Name, members[0].Release)
	}
	g.plan.add(m)
}

// finish ends what is still wanted when the record ends.
func (g *group) finish(until time.Time) {
	g.now = until
	for key, r := range g.requests {
		g.drop(key, r)
	}
}

// carryOutDue does what is due; true when anything was.
func (g *group) carryOutDue(t time.Time) bool {
	var due []requestKey
	for key, r := range g.requests {
		if !r.due.IsZero() && !r.due.After(t) {
			due = append(due, key)
		}
	}
	slices.SortFunc(due, func(a, b requestKey) int {
		return cmp.Or(g.requests[a].due.Compare(g.requests[b].due), cmp.Compare(a.env, b.env), cmp.Compare(a.unit, b.unit),
			cmp.Compare(a.kind, b.kind))
	})
	for _, key := range due {
		r := g.requests[key]
		delete(g.requests, key)
		g.carryOut(key, r, nil)
	}
	return len(due) > 0
}

// applyEvents does what the record says happened until a time: what came from outside or, when that is
// decided on, what Liftlock did. True when anything did.
func (g *group) applyEvents(t time.Time, fromOutside bool) bool {
	for g.cursor < len(g.events) && !g.events[g.cursor].from.After(t) {
		g.waiting = append(g.waiting, g.events[g.cursor])
		g.cursor++
	}
	any := false
	var left []*event
	for _, e := range g.waiting {
		isOutside := e.kind == eventLanded || e.kind == eventVetoed
		if isOutside == fromOutside && g.applyEvent(e, t) {
			any = true
			continue
		}
		left = append(left, e)
	}
	g.waiting = left
	return any
}

// applyEvent does what happened; false: not yet.
func (g *group) applyEvent(e *event, t time.Time) bool {
	switch e.kind {
	case eventLanded:
		g.applyLanded(e)
		return true
	case eventVetoed:
		return g.applyVeto(e, t)
	}
	key := requestKey{e.kind, e.unit, e.env, e.revert}
	r := g.requests[key]
	if r != nil && g.isAbout(e, r) {
		g.plan.measure(key, r, t)
		delete(g.requests, key)
		g.carryOut(key, r, e)
		return true
	}
	if t.Before(e.until) {
		return false
	}
	if !e.unexpected {
		e.unexpected = true
		g.reportUnwanted(e, t)
	}
	if g.plan.measuring {
		e.from, e.until = t, t
	}
	g.force(e)
	return true
}

// isAbout says that what happened is what is wanted.
func (g *group) isAbout(e *event, r *request) bool {
	_, members := r.action.Subject()
	return len(members) > 1 || len(e.members) > 1 || promotion.SameRelease(r.id, short(e.release)) || r.id == e.release
}

func short(release string) string { return release[:min(len(release), 12)] }

// reportUnwanted says that something happened that Decide didn't want. What a person may have done by
// hand is nobody's fault.
func (g *group) reportUnwanted(e *event, t time.Time) {
	p := g.openIn(e.env, e.revert, e.unit)
	if e.kind == eventMerged && p != nil && g.mayMergeByHand(p) {
		return
	}
	m := Mismatch{At: t, Environment: e.env, Release: e.release, Pull: e.number,
		What: "was " + string(e.kind) + ", and nothing in the record wants that"}
	for i, u := range g.units {
		if e.landings[i] != nil || len(g.units) == 1 {
			m.Component = u.script.unit.Component
			m.Why = u.obstacleIn(e.env)
			break
		}
	}
	g.plan.add(m)
}
