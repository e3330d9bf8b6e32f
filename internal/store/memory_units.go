package store

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"
	"time"
)

// The orders of units and commands, beside that of their keys.
const (
	unitsByPlace     = 1
	commandsBySource = 1
	commandsWaiting  = 2
	queueByUnit      = 1
)

func newMemoryUnits() memoryTable[Unit] {
	return newMemoryTable(
		memoryOrder[Unit]{compare: func(a, b *Unit) int { return strings.Compare(a.Key, b.Key) }},
		memoryOrder[Unit]{compare: func(a, b *Unit) int {
			return cmp.Or(strings.Compare(a.Pipeline, b.Pipeline), strings.Compare(a.Component, b.Component), strings.Compare(a.Key, b.Key))
		}})
}

func (mt *memoryTx) putUnit(_ context.Context, u Unit) (changed bool, err error) {
	if old := mt.tables.units.find(&u); old != nil && old.Digest == u.Digest {
		return false, nil
	}
	u.UpdatedAt, u.Data = storedTime(u.UpdatedAt), copyPayload(u.Data)
	mt.tables.units.put(&u)
	return true, nil
}

func (mt *memoryTx) deleteUnit(_ context.Context, key string) error {
	mt.tables.units.remove(&Unit{Key: key})
	var observed []*Observation
	for o := range mt.tables.observationsOf(key) {
		observed = append(observed, o)
	}
	mt.tables.observations.removeAll(observed)
	var queued []*memoryQueued
	for q := range takeWhile(mt.tables.queue.from(queueByUnit, &memoryQueued{unit: key}),
		func(q *memoryQueued) bool { return q.unit == key }) {
		queued = append(queued, q)
	}
	mt.tables.queue.removeAll(queued)
	return nil
}

func (m memoryReader) Units(ctx context.Context, f UnitFilter) (out []Unit, err error) {
	tables, err := m.tables(ctx)
	if err != nil {
		return nil, err
	}
	for u := range tables.units.allBy(unitsByPlace) {
		if chosen(f.Repo, u.Repo) && chosen(f.Pipeline, u.Pipeline) && (f.Contains == "" || strings.Contains(string(u.Data), f.Contains)) {
			found := u.copy()
			if f.WithoutData {
				found.Data = nil
			}
			out = append(out, found)
		}
	}
	return out, nil
}

func (m memoryReader) Unit(ctx context.Context, key string) (Unit, bool, error) {
	tables, err := m.tables(ctx)
	if err != nil {
		return Unit{}, false, err
	}
	u := tables.units.find(&Unit{Key: key})
	if u == nil {
		return Unit{}, false, nil
	}
	return u.copy(), true, nil
}

func (u *Unit) copy() Unit {
	out := *u
	out.Data = copyPayload(u.Data)
	return out
}

// chosen says whether a row has what a filter asks for, which is anything when it is
// the zero value.
func chosen[T comparable](want, have T) bool { return want == *new(T) || want == have }

func newMemoryObservations() memoryTable[Observation] {
	return newMemoryTable(memoryOrder[Observation]{compare: func(a, b *Observation) int {
		return cmp.Or(strings.Compare(a.Unit, b.Unit), strings.Compare(a.Environment, b.Environment), strings.Compare(a.Target, b.Target))
	}})
}

func (mt *memoryTx) putObservation(_ context.Context, o Observation) error {
	if old := mt.tables.observations.find(&o); old != nil && string(old.Data) == string(o.Data) {
		return nil
	}
	o.Data = copyPayload(o.Data)
	mt.tables.observations.put(&o)
	return nil
}

func (mt *memoryTx) deleteObservation(_ context.Context, unit, environment, target string) error {
	mt.tables.observations.remove(&Observation{Unit: unit, Environment: environment, Target: target})
	return nil
}

func (m *memoryTables) observationsOf(unit string) iter.Seq[*Observation] {
	return takeWhile(m.observations.from(byKey, &Observation{Unit: unit}), func(o *Observation) bool { return o.Unit == unit })
}

func (m memoryReader) Observations(ctx context.Context, unit string) (out []Observation, err error) {
	tables, err := m.tables(ctx)
	if err != nil {
		return nil, err
	}
	for o := range tables.observationsOf(unit) {
		found := *o
		found.Data = copyPayload(o.Data)
		out = append(out, found)
	}
	return out, nil
}

func newMemoryCommands() memoryTable[PendingCommand] {
	return newMemoryTable(
		memoryOrder[PendingCommand]{compare: func(a, b *PendingCommand) int { return cmp.Compare(a.ID, b.ID) }},
		memoryOrder[PendingCommand]{compare: func(a, b *PendingCommand) int { return strings.Compare(a.Source, b.Source) },
			wants: func(a *PendingCommand) bool { return a.Source != "" }},
		memoryOrder[PendingCommand]{compare: func(a, b *PendingCommand) int {
			return cmp.Or(strings.Compare(a.Unit, b.Unit), cmp.Compare(a.ID, b.ID))
		}, wants: (*PendingCommand).waits})
}

func (p *PendingCommand) waits() bool { return p.DoneAt.IsZero() }

func (mt *memoryTx) addPendingCommand(_ context.Context, a PendingCommand) (id int64, err error) {
	mt.tables.last.command++
	if a.Source != "" {
		if known := mt.tables.commands.findBy(commandsBySource, &a); known != nil {
			return known.ID, nil
		}
	}
	a.ID, a.At, a.DoneAt = mt.tables.last.command, storedTime(a.At), storedTime(a.DoneAt)
	mt.tables.commands.put(&a)
	return a.ID, nil
}

// changeWaiting changes a command that waits; one that doesn't stays as it is.
func (m *memoryTables) changeWaiting(id int64, change func(*PendingCommand)) {
	if old := m.commands.find(&PendingCommand{ID: id}); old != nil && old.waits() {
		changed := *old
		change(&changed)
		m.commands.put(&changed)
	}
}

func (mt *memoryTx) finishPendingCommand(_ context.Context, id int64, at time.Time, outcome string) error {
	mt.tables.changeWaiting(id, func(a *PendingCommand) { a.DoneAt, a.Outcome = storedTime(at), outcome })
	return nil
}

func (mt *memoryTx) bindPendingCommand(_ context.Context, id int64, release string) error {
	mt.tables.changeWaiting(id, func(a *PendingCommand) { a.Release = release })
	return nil
}

func (m memoryReader) PendingCommands(ctx context.Context, unit string) (out []PendingCommand, err error) {
	tables, err := m.tables(ctx)
	if err != nil {
		return nil, err
	}
	for a := range takeWhile(tables.commands.from(commandsWaiting, &PendingCommand{Unit: unit}),
		func(a *PendingCommand) bool { return a.Unit == unit }) {
		out = append(out, *a)
	}
	return out, nil
}

// memoryQueued is a unit that wants to merge.
type memoryQueued struct {
	repo, unit string
	number     int64
}

func newMemoryQueue() memoryTable[memoryQueued] {
	return newMemoryTable(
		memoryOrder[memoryQueued]{compare: func(a, b *memoryQueued) int {
			return cmp.Or(strings.Compare(a.repo, b.repo), cmp.Compare(a.number, b.number))
		}},
		memoryOrder[memoryQueued]{compare: func(a, b *memoryQueued) int {
			return cmp.Or(strings.Compare(a.unit, b.unit), strings.Compare(a.repo, b.repo))
		}})
}

// findQueued finds a unit's entry; nil when it has none.
func (m *memoryTables) findQueued(repo, unit string) *memoryQueued {
	return m.queue.findBy(queueByUnit, &memoryQueued{repo: repo, unit: unit})
}

func (mt *memoryTx) enqueueMerge(_ context.Context, repo, unit string) error {
	if mt.tables.findQueued(repo, unit) == nil {
		mt.tables.last.queued++
		mt.tables.queue.put(&memoryQueued{repo: repo, unit: unit, number: mt.tables.last.queued})
	}
	return nil
}

func (mt *memoryTx) dequeueMerge(_ context.Context, repo, unit string) error {
	if q := mt.tables.findQueued(repo, unit); q != nil {
		mt.tables.queue.remove(q)
	}
	return nil
}

func (m memoryReader) MergeQueue(ctx context.Context, repo string) (units []string, err error) {
	tables, err := m.tables(ctx)
	if err != nil {
		return nil, err
	}
	for q := range takeWhile(tables.queue.from(byKey, &memoryQueued{repo: repo}), func(q *memoryQueued) bool { return q.repo == repo }) {
		units = append(units, q.unit)
	}
	return units, nil
}

func newMemoryRecords() memoryTable[Record] {
	return newMemoryTable(memoryOrder[Record]{compare: func(a, b *Record) int { return a.compare(b.RecordKey) }})
}

func (mt *memoryTx) putRecord(_ context.Context, r Record) error {
	mt.tables.records.put(&Record{RecordKey: r.RecordKey, Data: copyPayload(r.Data)})
	return nil
}

func (mt *memoryTx) deleteRecord(_ context.Context, key RecordKey) error {
	mt.tables.records.remove(&Record{RecordKey: key})
	return nil
}

func (mt *memoryTx) deletePullRecords(_ context.Context, repo string, pull int, kinds []string) error {
	for _, kind := range kinds {
		f := RecordFilter{Kind: kind, Repo: repo, Pull: pull}
		for _, r := range slices.Collect(f.choose(mt.tables)) {
			mt.tables.records.remove(r)
		}
	}
	return nil
}

// choose finds the records that the filter chooses, in their order.
func (rf *RecordFilter) choose(tables *memoryTables) iter.Seq[*Record] {
	all := tables.records.from(byKey, &Record{RecordKey: RecordKey{Kind: rf.Kind, Repo: rf.Repo, Pull: rf.Pull}})
	if rf.Kind == "" {
		all = tables.records.from(byKey, &Record{})
	}
	return func(yield func(*Record) bool) {
		for r := range all {
			inKind, inRepo, inPull := rf.Kind == "" || r.Kind == rf.Kind, rf.Repo == "" || r.Repo == rf.Repo, rf.Pull == 0 ||
				r.Pull == rf.Pull
			if !inKind || rf.Kind != "" && !inRepo {
				return // nothing behind it is chosen
			}
			if inRepo && inPull && strings.HasPrefix(r.Name, rf.NamePrefix) && !yield(r) {
				return
			}
		}
	}
}

func (m memoryReader) Record(ctx context.Context, key RecordKey) ([]byte, bool, error) {
	tables, err := m.tables(ctx)
	if err != nil {
		return nil, false, err
	}
	found := tables.records.find(&Record{RecordKey: key})
	if found == nil {
		return nil, false, nil
	}
	return copyPayload(found.Data), true, nil
}

func (m memoryReader) Records(ctx context.Context, f RecordFilter) ([]Record, error) {
	tables, err := m.tables(ctx)
	if err != nil {
		return nil, err
	}
	var out []Record
	for r := range f.choose(tables) {
		out = append(out, Record{RecordKey: r.RecordKey, Data: copyPayload(r.Data)})
	}
	return out, nil
}
