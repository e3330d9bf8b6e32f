package backtest

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/promotion"
)

// script is what a trace says: what came from outside, and when, and what Liftlock did.
type script struct {
	unit     promotion.Unit
	start    time.Time
	absolute []timedState          // the states in which something changed that comes at its time
	landings map[string][]*landing // by environment, oldest first
	pulls    map[pullKey][]timedPull
	events   []*event // oldest first
	problems []string // what of the trace can't be followed
}

type timedState struct {
	at    time.Time
	state *State
}

// pullKey names the facts about a pull request, which are about what it moves.
type pullKey struct {
	env, release string
	revert       bool
}

type timedPull struct {
	at   time.Time
	pull *promotion.Pull
}

// landing is a release that came to an environment, with the verdicts about it since.
type landing struct {
	env      string
	release  promotion.Release
	landed   promotion.Landed
	at       time.Time // when it came, by the record
	verdicts []timedVerdict
}

// timedVerdict is how the targets were from a time on, by name, and why a degradation was left to
// people by what was found out about it.
type timedVerdict struct {
	at      time.Time
	targets map[string]*promotion.Target
	held    string
}

// eventKind says what happened to a pull request or an environment.
type eventKind string

const (
	eventLanded   eventKind = "landed" // by a person, or from before the pipeline
	eventOpened   eventKind = "opened"
	eventReplaced eventKind = "replaced"
	eventMerged   eventKind = "merged"
	eventClosed   eventKind = "closed" // by Liftlock
	eventVetoed   eventKind = "vetoed" // closed by a person
)

// event is something that happened: within from and until, the looks before and after.
type event struct {
	kind        eventKind
	env         string
	number      int // of the pull request, by the record; 0: none
	revert      bool
	release     string
	id          string // eventReplaced: of what moves in it from then on
	from, until time.Time
	landings    []*landing // by the group's components, nil where one isn't in it
	landing     *landing   // of the one component whose script has it
	members     []promotion.Member
	unit        string // the component, or of several at once promotion.BatchName
	joined      bool   // among a group's events already
	unexpected  bool   // nothing of the facts led to it, so that it comes at its time
}

// reader makes a script of a trace.
type reader struct {
	script
	last    time.Time
	current map[string]*landing // by environment
	open    map[int]string      // the release of the pull requests seen open, by number
	ids     map[int]string      // what they move
	ended   map[int]bool
	batch   map[int]bool // the pull requests that move several at once
}

// readScript reads a trace. An error says which change can't be read.
func readScript(t *Trace) (*script, error) {
	r := &reader{script: script{unit: t.Unit, landings: map[string][]*landing{}, pulls: map[pullKey][]timedPull{}},
		current: map[string]*landing{}, open: map[int]string{}, ids: map[int]string{}, ended: map[int]bool{}, batch: map[int]bool{}}
	before := &State{}
	for at, s := range t.States() {
		if s.err != nil {
			return nil, s.err
		}
		if r.start.IsZero() {
			r.start, r.last = at, at
		}
		r.readState(before, s.state, at)
		before, r.last = s.state, at
	}
	slices.SortStableFunc(r.events, func(a, b *event) int { return cmp.Or(a.from.Compare(b.from), a.until.Compare(b.until)) })
	return &r.script, nil
}

func (r *reader) readState(before, now *State, at time.Time) {
	changed := before.Rules != now.Rules || before.Broken != now.Broken || !slices.Equal(before.Problems, now.Problems) ||
		!reflect.DeepEqual(before.Holds, now.Holds)
	changed = changed || !sameKeys(before.Commands, now.Commands)
	for _, name := range sortedKeys(now.Envs) {
		e, was := now.Envs[name], before.Envs[name]
		if was == e {
			continue
		}
		if was == nil {
			was = &EnvironmentState{}
		}
		r.readLanding(name, was, e, at)
		r.readPulls(name, was, e, at)
		r.readVerdicts(name, was, e, at)
		changed = changed || differsAtItsTime(was, e)
	}
	if changed || at.Equal(r.start) {
		r.absolute = append(r.absolute, timedState{at, now})
	}
}

// differsAtItsTime says that something of an environment changed that isn't about what landed.
func differsAtItsTime(a, b *EnvironmentState) bool {
	if a.Open != b.Open || a.Revert != b.Revert || !sameKeys(a.Edits, b.Edits) || !slices.Equal(a.SyncWindows, b.SyncWindows) {
		return true
	}
	x := []string{a.BranchReason, a.RevertBranchReason, a.MissingSignatures, a.Release.Err, a.Landed.Err, a.FieldsReason, string(a.Fields)}
	y := []string{b.BranchReason, b.RevertBranchReason, b.MissingSignatures, b.Release.Err, b.Landed.Err, b.FieldsReason, string(b.Fields)}
	return !slices.Equal(x, y) || a.HasNoTarget != b.HasNoTarget || a.Release.OK != b.Release.OK
}

func sameKeys[V comparable](a, b map[string]V) bool {
	if len(a) != len(b) {
		return false
	}
	for k := range a {
		if a[k] != b[k] {
			return false
		}
	}
	return true
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// within is a time of a forge's clock as the record's looks before and after allow it.
func (r *reader) within(t, seen time.Time) time.Time {
	if t.Before(r.last) {
		return r.last
	}
	if t.After(seen) {
		return seen
	}
	return t
}

// readLanding finds what came to an environment.
func (r *reader) readLanding(env string, was, e *EnvironmentState, at time.Time) {
	if !e.Release.OK || !e.Landed.OK {
		return
	}
	l := e.Landed.Value
	if c := r.current[env]; c != nil && c.landed.Commit == l.Commit && c.release.ID == e.Release.Value.ID {
		return
	}
	now := &landing{env: env, release: e.Release.Value, landed: l, at: at}
	first := r.current[env] == nil
	r.current[env] = now
	r.landings[env] = append(r.landings[env], now)
	isOurs := l.By == promotion.ByPromotion || l.By == promotion.ByRevert
	if first || !isOurs {
		r.add(&event{kind: eventLanded, env: env, number: l.ModifiedPull, release: now.release.ID, from: at, until: at, landing: now})
		return
	}
	now.at = r.within(l.At, at)
	release := now.release.ID
	if p := was.Revert; p != nil && p.Number == l.Pull {
		release = p.Release
	}
	r.ended[l.Pull], r.batch[l.Pull] = true, l.Batch
	if _, seen := r.open[l.Pull]; !seen {
		r.open[l.Pull] = release
		r.add(&event{kind: eventOpened, env: env, number: l.Pull, revert: l.By == promotion.ByRevert, release: release, from: r.last,
			until: now.at, members: l.Members})
	}
	r.add(&event{kind: eventMerged, env: env, number: l.Pull, revert: l.By == promotion.ByRevert, release: release,
		from: now.at, until: at, landing: now, members: l.Members})
}

func (r *reader) add(e *event) {
	e.unit = r.unit.Component
	if r.batch[e.number] {
		e.unit = promotion.BatchName
	}
	r.events = append(r.events, e)
}

// readPulls finds what became of an environment's pull requests.
func (r *reader) readPulls(env string, was, e *EnvironmentState, at time.Time) {
	begin := at.Equal(r.start)
	for _, p := range []*promotion.Pull{e.Open, e.Revert} {
		if p == nil || p == was.Open || p == was.Revert {
			continue
		}
		revert := p == e.Revert
		r.batch[p.Number] = p.Batch
		key := pullKey{env, p.Release, revert}
		r.pulls[key] = append(r.pulls[key], timedPull{at, p})
		_, seen := r.open[p.Number]
		id := p.Release
		if p.Batch {
			id = promotion.BatchID(p.Members)
		}
		before := r.ids[p.Number]
		r.open[p.Number], r.ids[p.Number] = p.Release, id
		event := &event{kind: eventOpened, env: env, number: p.Number, revert: revert, release: p.Release, from: r.last, until: at,
			members: p.Members, id: id}
		switch {
		case !seen && begin:
			event.unexpected = true
			r.add(event)
		case !seen:
			event.from = r.within(p.CreatedAt, at)
			r.add(event)
		case before != id:
			event.kind = eventReplaced
			r.add(event)
		}
	}
	for _, number := range sortedKeys(e.Past) {
		p := e.Past[number]
		if r.ended[p.Number] || begin {
			r.ended[p.Number] = true
			continue
		}
		r.ended[p.Number] = true
		r.readEnd(env, p, at)
	}
}

// readEnd finds how a pull request ended that brought nothing that was seen in the environment.
func (r *reader) readEnd(env string, p *promotion.PastPull, at time.Time) {
	release, seen := r.open[p.Number]
	if !seen {
		if was := r.last.Sub(p.At); was > 0 {
			return // of long ago, and only known now
		}
		release = p.Release
		r.add(&event{kind: eventOpened, env: env, number: p.Number, revert: p.Revert, release: release, from: r.last,
			until: r.within(p.At, at)})
	}
	end := &event{kind: eventVetoed, env: env, number: p.Number, revert: p.Revert, release: release, from: r.within(p.At, at), until: at}
	switch {
	case p.Merged && !p.Revert:
		end.kind = eventMerged
		end.landing = &landing{env: env, release: promotion.Release{ID: release}, at: end.from}
	case p.Merged:
		end.kind = eventClosed
		r.problems = append(r.problems, fmt.Sprintf("%s: what revert #%d brought back to %s was replaced before it was seen",
			r.unit.Component,
			p.Number, env))
	case p.Superseded, p.OnOtherBranch:
		end.kind = eventClosed
	}
	r.add(end)
}

// readVerdicts follows how the targets are.
func (r *reader) readVerdicts(env string, was, e *EnvironmentState, at time.Time) {
	l := r.current[env]
	if l == nil || len(l.verdicts) > 0 && sameKeys(was.Targets, e.Targets) && was.Held == e.Held {
		return
	}
	l.verdicts = append(l.verdicts, timedVerdict{at, e.Targets, e.Held})
}

// pullAt is what was known of a pull request with a key at a time: at its first look, where that was
// later; nil where there never was one.
func (s *script) pullAt(key pullKey, at time.Time) *promotion.Pull {
	all := s.pulls[key]
	if len(all) == 0 {
		return nil
	}
	i, _ := slices.BinarySearchFunc(all, at, func(p timedPull, t time.Time) int {
		if p.at.After(t) {
			return 1
		}
		return -1
	})
	return all[max(i-1, 0)].pull
}

// commandsIn are the commands of a state, the oldest first.
func commandsIn(s *State) []promotion.PendingCommand {
	var out []promotion.PendingCommand
	for _, k := range s.Commands {
		out = append(out, *k)
	}
	slices.SortFunc(out, func(a, b promotion.PendingCommand) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// arrivalsIn are an environment's arrivals, newest first.
func arrivalsIn(e *EnvironmentState) []promotion.Arrival {
	var out []promotion.Arrival
	for _, a := range e.Arrivals {
		out = append(out, *a)
	}
	slices.SortFunc(out, func(a, b promotion.Arrival) int { return cmp.Compare(b.Seq, a.Seq) })
	return out
}

// pastIn are an environment's pull requests that ended, newest first.
func pastIn(e *EnvironmentState) []promotion.PastPull {
	var out []promotion.PastPull
	for _, p := range e.Past {
		out = append(out, *p)
	}
	slices.SortFunc(out, func(a, b promotion.PastPull) int { return cmp.Or(b.At.Compare(a.At), cmp.Compare(b.Number, a.Number)) })
	return out
}
