package store

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"
)

// The orders of the history, beside that of its numbers.
const (
	arrivalsBySeq     = 1
	arrivalsByCommit  = 2
	auditBySource     = 1
	eventsOnce        = 1
	eventsByPull      = 2
	eventsByPlace     = 3
	promotionsByPull  = 1
	promotionsByPlace = 2
)

func newMemoryDeliveries() memoryTable[Delivery] {
	return newMemoryTable(memoryOrder[Delivery]{compare: func(a, b *Delivery) int {
		return cmp.Or(strings.Compare(a.Forge, b.Forge), strings.Compare(a.ID, b.ID))
	}})
}

func (mt *memoryTx) addDelivery(_ context.Context, d Delivery) (fresh bool, err error) {
	if mt.tables.deliveries.find(&d) != nil {
		return false, nil
	}
	d.ReceivedAt, d.Keys, d.Records = storedTime(d.ReceivedAt), nil, nil // nobody asks for them
	mt.tables.deliveries.put(&d)
	return true, nil
}

func (m memoryReader) HasDelivery(ctx context.Context, forge, id string) (bool, error) {
	tables, err := m.tables(ctx)
	if err != nil {
		return false, err
	}
	return tables.deliveries.find(&Delivery{Forge: forge, ID: id}) != nil, nil
}

func newMemoryArrivals() memoryTable[Arrival] {
	return newMemoryTable(
		memoryOrder[Arrival]{compare: func(a, b *Arrival) int {
			return cmp.Or(strings.Compare(a.Unit, b.Unit), strings.Compare(a.Environment, b.Environment),
				strings.Compare(a.Commit, b.Commit), strings.Compare(a.Release, b.Release))
		}},
		memoryOrder[Arrival]{compare: func(a, b *Arrival) int {
			return cmp.Or(strings.Compare(a.Unit, b.Unit),
				cmp.Compare(a.Seq, b.Seq))
		}},
		memoryOrder[Arrival]{compare: func(a, b *Arrival) int {
			return cmp.Or(strings.Compare(a.Commit, b.Commit), strings.Compare(a.Unit, b.Unit), cmp.Compare(a.Seq, b.Seq))
		}})
}

func (m memoryReader) UnitsArrivedBy(ctx context.Context, commit string, limit int) (out []string, err error) {
	tables, err := m.tables(ctx)
	if err != nil {
		return nil, err
	}
	rows := takeWhile(tables.arrivals.from(arrivalsByCommit, &Arrival{Commit: commit}), func(a *Arrival) bool { return a.Commit == commit })
	for a := range rows {
		if n := len(out); n > 0 && out[n-1] == a.Unit {
			continue
		}
		if out = append(out, a.Unit); len(out) == clampLimit(limit) {
			break
		}
	}
	return out, nil
}

// arrivalsOf are a unit's, the newest first.
func (m *memoryTables) arrivalsOf(unit string) iter.Seq[*Arrival] {
	return takeWhile(m.arrivals.downFrom(arrivalsBySeq, &Arrival{Unit: unit, Seq: neverDue}),
		func(a *Arrival) bool { return a.Unit == unit })
}

func (mt *memoryTx) putArrival(_ context.Context, a Arrival) (seq int64, err error) {
	a.Seq = 1
	if old := mt.tables.arrivals.find(&a); old != nil {
		a.Seq = old.Seq
	} else if newest := firstOf(mt.tables.arrivalsOf(a.Unit)); newest != nil {
		a.Seq = newest.Seq + 1
	}
	a.At, a.VerifiedAt, a.DegradedAt, a.WithdrawnAt, a.Data = storedTime(a.At), storedTime(a.VerifiedAt), storedTime(a.DegradedAt),
		storedTime(a.WithdrawnAt), copyPayload(a.Data)
	mt.tables.arrivals.put(&a)
	mt.raiseVersion(arrivalsScope(a.Unit))
	return a.Seq, nil
}

func (mt *memoryTx) withdrawArrivals(_ context.Context, unit, environment string, above, below int64, at time.Time) error {
	var withdrawn []*Arrival
	for a := range mt.tables.arrivalsOf(unit) {
		if a.Environment == environment && a.Seq > above && a.Seq < below && a.WithdrawnAt.IsZero() {
			changed := *a
			changed.WithdrawnAt = storedTime(at)
			withdrawn = append(withdrawn, &changed)
		}
	}
	for _, a := range withdrawn {
		mt.tables.arrivals.put(a)
	}
	if withdrawn != nil {
		mt.raiseVersion(arrivalsScope(unit))
	}
	return nil
}

func (mt *memoryTx) updateArrivalData(_ context.Context, a Arrival) error {
	old := mt.tables.arrivals.find(&a)
	if old == nil {
		return nil
	}
	changed := *old
	changed.Data = copyPayload(a.Data)
	mt.tables.arrivals.put(&changed)
	mt.raiseVersion(arrivalsScope(a.Unit))
	return nil
}

func (m memoryReader) Arrivals(ctx context.Context, unit string) (out []Arrival, err error) {
	tables, err := m.tables(ctx)
	if err != nil {
		return nil, err
	}
	recent := map[string]int{}
	for a := range tables.arrivalsOf(unit) {
		if recent[a.Environment]++; recent[a.Environment] <= RecentArrivals {
			out = append(out, a.copied())
		}
	}
	return out, nil
}

func (m memoryReader) OlderArrivals(ctx context.Context, unit string, releases ...string) (out []Arrival, err error) {
	tables, err := m.tables(ctx)
	if err != nil {
		return nil, err
	}
	type arrivalOf struct{ environment, release string }
	recent, seen := map[string]int{}, map[arrivalOf]bool{}
	for a := range tables.arrivalsOf(unit) {
		key := arrivalOf{a.Environment, a.Release}
		if recent[a.Environment]++; recent[a.Environment] > RecentArrivals && !seen[key] && slices.Contains(releases, a.Release) {
			out = append(out, a.copied())
		}
		seen[key] = true
	}
	return out, nil
}

func (a *Arrival) copied() Arrival {
	found := *a
	found.Data = copyPayload(a.Data)
	return found
}

func newMemoryAudit() memoryTable[Audit] {
	return newMemoryTable(
		memoryOrder[Audit]{compare: func(a, b *Audit) int { return cmp.Compare(a.ID, b.ID) }},
		memoryOrder[Audit]{compare: func(a, b *Audit) int { return strings.Compare(a.Source, b.Source) },
			wants: func(a *Audit) bool { return a.Source != "" }})
}

func (mt *memoryTx) addAudit(_ context.Context, a Audit) (added bool, err error) {
	mt.tables.last.audit++
	if a.Source != "" && mt.tables.audit.findBy(auditBySource, &a) != nil {
		return false, nil
	}
	a.ID, a.At, a.Data = mt.tables.last.audit, storedTime(a.At), copyPayload(a.Data)
	mt.tables.audit.put(&a)
	return true, nil
}

func (mt *memoryTx) replaceAuditOutcome(_ context.Context, source, was, outcome string) (replaced bool, err error) {
	found := mt.tables.audit.findBy(auditBySource, &Audit{Source: source})
	if source == "" || found == nil || found.Outcome != was {
		return false, nil
	}
	changed := *found
	changed.Outcome = outcome
	mt.tables.audit.put(&changed)
	return true, nil
}

// chooses says that an entry is among those that are asked for. Times are compared as they are stored.
func (af *AuditFilter) chooses(a *Audit) bool {
	isGivenSo := chosen(af.Actor, a.Actor) && chosen(af.Via, a.Via) && chosen(af.Verb, a.Verb) && chosen(af.Source, a.Source)
	isAbout := chosen(af.Environment, a.Environment) && chosen(af.Subject, a.Subject) && hasOnePrefix(a.Subject, af.SubjectPrefixes)
	if !isGivenSo || !isAbout || a.At.Before(storedTime(af.Since)) {
		return false
	}
	isOlder := af.Before == 0 || a.ID < af.Before
	return isOlder && (af.Until.IsZero() || a.At.Before(storedTime(af.Until)))
}

func (m memoryReader) AuditTrail(ctx context.Context, f AuditFilter, limit int) (out []Audit, err error) {
	tables, err := m.tables(ctx)
	if err != nil {
		return nil, err
	}
	for a := range tables.audit.allDown() {
		if f.chooses(a) {
			found := *a
			found.Data = copyPayload(a.Data)
			if out = append(out, found); len(out) == clampLimit(limit) {
				break
			}
		}
	}
	return out, nil
}

// hasOnePrefix says that s begins with one of the prefixes, of which none allow anything.
func hasOnePrefix(s string, prefixes []string) bool {
	return len(prefixes) == 0 || slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(s, p) })
}

func newMemoryEvents() memoryTable[Event] {
	return newMemoryTable(
		memoryOrder[Event]{compare: func(a, b *Event) int { return cmp.Compare(a.Seq, b.Seq) }},
		memoryOrder[Event]{compare: func(a, b *Event) int { return strings.Compare(a.IdempotencyKey, b.IdempotencyKey) },
			wants: func(e *Event) bool { return e.IdempotencyKey != "" }},
		memoryOrder[Event]{compare: func(a, b *Event) int {
			return cmp.Or(strings.Compare(a.Repo, b.Repo), cmp.Compare(a.Pull, b.Pull), cmp.Compare(a.Seq, b.Seq))
		}},
		memoryOrder[Event]{compare: func(a, b *Event) int {
			return cmp.Or(strings.Compare(a.Pipeline, b.Pipeline), strings.Compare(a.Component, b.Component), cmp.Compare(a.Seq, b.Seq))
		}})
}

func (mt *memoryTx) addEvent(_ context.Context, e Event) (fresh bool, err error) {
	mt.tables.last.event++
	if e.IdempotencyKey != "" && mt.tables.events.findBy(eventsOnce, &e) != nil {
		return false, nil
	}
	e.Seq, e.At, e.Data = mt.tables.last.event, storedTime(e.At), copyPayload(e.Data)
	mt.tables.events.put(&e)
	return true, nil
}

func (m memoryReader) Events(ctx context.Context, f EventFilter) (out []Event, err error) {
	tables, err := m.tables(ctx)
	if err != nil {
		return nil, err
	}
	for e := range tables.findEvents(f) {
		if f.After > 0 && e.Seq <= f.After {
			if f.Newest {
				break
			}
			continue
		}
		isOfUnit := chosen(f.Repo, e.Repo) && chosen(f.Pipeline, e.Pipeline) && chosen(f.Component, e.Component)
		if isOfUnit && chosen(f.Environment, e.Environment) && chosen(f.Pull, e.Pull) {
			found := *e
			found.Data = copyPayload(e.Data)
			if out = append(out, found); len(out) == clampLimit(f.Limit) {
				break
			}
		}
	}
	return out, nil
}

// findEvents are events that a filter may choose, in the order that it asks for.
func (m *memoryTables) findEvents(f EventFilter) iter.Seq[*Event] {
	order, at, here := byKey, Event{}, func(*Event) bool { return true }
	switch {
	case f.Repo != "" && f.Pull != 0:
		order, at.Repo, at.Pull = eventsByPull, f.Repo, f.Pull
		here = func(e *Event) bool { return e.Repo == f.Repo && e.Pull == f.Pull }
	case f.Pipeline != "" && f.Component != "":
		order, at.Pipeline, at.Component = eventsByPlace, f.Pipeline, f.Component
		here = func(e *Event) bool { return e.Pipeline == f.Pipeline && e.Component == f.Component }
	}
	if f.Newest {
		at.Seq = neverDue
		return takeWhile(m.events.downFrom(order, &at), here)
	}
	at.Seq = max(f.After, 0)
	return takeWhile(m.events.from(order, &at), here)
}

func newMemoryPromotions() memoryTable[Promotion] {
	return newMemoryTable(
		memoryOrder[Promotion]{compare: func(a, b *Promotion) int { return cmp.Compare(a.ID, b.ID) }},
		memoryOrder[Promotion]{compare: func(a, b *Promotion) int {
			return cmp.Or(strings.Compare(a.Repo, b.Repo), cmp.Compare(a.Pull, b.Pull), strings.Compare(a.Unit, b.Unit))
		}, wants: func(p *Promotion) bool { return p.Pull > 0 }},
		memoryOrder[Promotion]{compare: func(a, b *Promotion) int {
			return cmp.Or(strings.Compare(a.Pipeline, b.Pipeline), strings.Compare(a.Component, b.Component), cmp.Compare(a.ID, b.ID))
		}})
}

// findByPull finds a unit's promotion with a pull request; nil when it has none.
func (m *memoryTables) findByPull(unit, repo string, pull int) *Promotion {
	return m.promotions.findBy(promotionsByPull, &Promotion{Unit: unit, Repo: repo, Pull: pull})
}

func (mt *memoryTx) updatePromotion(_ context.Context, p Promotion) (known bool, err error) {
	old := mt.tables.promotions.find(&p)
	if old == nil {
		return false, nil
	}
	if other := mt.tables.findByPull(p.Unit, p.Repo, p.Pull); other != nil && other.ID != p.ID {
		return false, fmt.Errorf("the promotion %d has its pull request", other.ID)
	}
	p.CreatedAt = old.CreatedAt
	mt.tables.writePromotion(p)
	return true, nil
}

func (mt *memoryTx) addPromotion(_ context.Context, p Promotion) (id int64, err error) {
	mt.tables.last.promotion++
	p.ID = mt.tables.last.promotion
	if old := mt.tables.findByPull(p.Unit, p.Repo, p.Pull); old != nil {
		p.ID, p.CreatedAt = old.ID, old.CreatedAt
	}
	mt.tables.writePromotion(p)
	return p.ID, nil
}

func (m *memoryTables) writePromotion(p Promotion) {
	p.CreatedAt, p.UpdatedAt, p.Data = storedTime(p.CreatedAt), storedTime(p.UpdatedAt), copyPayload(p.Data)
	m.promotions.put(&p)
}

func (p *Promotion) copy() Promotion {
	out := *p
	out.Data = copyPayload(p.Data)
	return out
}

func (m memoryReader) Promotions(ctx context.Context, f PromotionFilter) (out []Promotion, err error) {
	tables, err := m.tables(ctx)
	if err != nil {
		return nil, err
	}
	for p := range tables.findPromotions(f) {
		if f.chooses(p) {
			if out = append(out, p.copy()); len(out) == clampLimit(f.Limit) {
				break
			}
		}
	}
	return out, nil
}

func (pf *PromotionFilter) chooses(p *Promotion) bool {
	isOfUnit := chosen(pf.Repo, p.Repo) && chosen(pf.Pipeline, p.Pipeline) && chosen(pf.Component, p.Component) && chosen(pf.Unit, p.Unit)
	if !isOfUnit || !chosen(pf.Environment, p.Environment) || !chosen(pf.Kind, p.Kind) || !chosen(pf.Pull, p.Pull) {
		return false
	}
	isOlder := pf.Before == 0 || p.ID < pf.Before
	if !isOlder || !strings.HasPrefix(p.Release, pf.Release) {
		return false
	}
	isInState := len(pf.States) == 0 || slices.Contains(pf.States, p.State)
	return isInState && (len(pf.Pulls) == 0 || slices.Contains(pf.Pulls, p.Pull))
}

// findPromotions are promotions that a filter may choose, the newest first.
func (m *memoryTables) findPromotions(f PromotionFilter) iter.Seq[*Promotion] {
	switch {
	case f.Repo != "" && len(f.Pulls) > 0 && slices.Min(f.Pulls) > 0:
		return m.promotionsOfPulls(f.Repo, f.Pulls)
	case f.Pipeline != "" && f.Component != "":
		return takeWhile(m.promotions.downFrom(promotionsByPlace, &Promotion{Pipeline: f.Pipeline, Component: f.Component, ID: neverDue}),
			func(p *Promotion) bool { return p.Pipeline == f.Pipeline && p.Component == f.Component })
	}
	return m.promotions.allDown()
}

// promotionsOfPulls are those with pull requests, the newest first.
func (m *memoryTables) promotionsOfPulls(repo string, pulls []int) iter.Seq[*Promotion] {
	var found []*Promotion
	for _, pull := range slices.Compact(slices.Sorted(slices.Values(pulls))) {
		for p := range takeWhile(m.promotions.from(promotionsByPull, &Promotion{Repo: repo, Pull: pull}),
			func(p *Promotion) bool { return p.Repo == repo && p.Pull == pull }) {
			found = append(found, p)
		}
	}
	slices.SortFunc(found, func(a, b *Promotion) int { return cmp.Compare(b.ID, a.ID) })
	return slices.Values(found)
}

func (m memoryReader) Promotion(ctx context.Context, id int64) (Promotion, bool, error) {
	tables, err := m.tables(ctx)
	if err != nil {
		return Promotion{}, false, err
	}
	p := tables.promotions.find(&Promotion{ID: id})
	if p == nil {
		return Promotion{}, false, nil
	}
	return p.copy(), true, nil
}

func (m memoryReader) PromotionByPull(ctx context.Context, unit, repo string, pull int) (Promotion, bool, error) {
	tables, err := m.tables(ctx)
	if err != nil {
		return Promotion{}, false, err
	}
	p := tables.findByPull(unit, repo, pull)
	if p == nil {
		return Promotion{}, false, nil
	}
	return p.copy(), true, nil
}

// pruneRows goes through the whole table: it is done once in a while.
func (mt *memoryTx) pruneRows(_ context.Context, p prunableTable, before time.Time) (int64, error) {
	over := func(at time.Time) bool { return compareTimes(at, before) < 0 }
	tables := mt.tables
	switch p.name {
	case "deliveries":
		return pruneTable(&tables.deliveries, func(d *Delivery) bool { return over(d.ReceivedAt) }), nil
	case "events":
		return pruneTable(&tables.events, func(e *Event) bool { return over(e.At) }), nil
	case "audit":
		return pruneTable(&tables.audit, func(a *Audit) bool { return over(a.At) }), nil
	case "pending_commands":
		return pruneTable(&tables.commands, func(a *PendingCommand) bool { return !a.waits() && over(a.DoneAt) }), nil
	case "wakes":
		return pruneTable(&tables.wakes, func(w *memoryWake) bool { return !w.hasTime() && w.fails == 0 && w.ended < toMicros(before) }),
			nil
	case "browser_sessions":
		return pruneTable(&tables.sessions, func(b *BrowserSession) bool { return over(b.ExpiresAt) }), nil
	case "arrivals":
		return pruneTable(&tables.arrivals, func(a *Arrival) bool { return over(a.At) && tables.units.find(&Unit{Key: a.Unit}) == nil }),
			nil
	}
	return 0, fmt.Errorf("there is no table %q in memory", p.name)
}

// pruneTable deletes at most pruneAtOnce rows that are over.
func pruneTable[R any](t *memoryTable[R], isOver func(*R) bool) int64 {
	var over []*R
	for row := range t.allBy(byKey) {
		if len(over) == pruneAtOnce {
			break
		}
		if isOver(row) {
			over = append(over, row)
		}
	}
	t.removeAll(over)
	return int64(len(over))
}
