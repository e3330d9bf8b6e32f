package backtest

import (
	"container/heap"
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion"
)

// Input is a record of one pipeline's components, read a component at a time.
type Input struct {
	Rules map[string]Rules // by digest: all that the traces name
	Units []promotion.Unit // no two with the same component
	// Read gives a component's trace, and may be called concurrently. Where components wait for each
	// other, all are in memory at once.
	Read func(ctx context.Context, u promotion.Unit) (*Trace, error)
	// Until is when the record was read.
	Until   time.Time
	Unknown []string // what the record doesn't have
}

// Input gives the record to Run.
func (r *Record) Input() Input {
	in := Input{Rules: r.Rules, Until: r.Until, Unknown: r.Unknown}
	byUnit := map[promotion.Unit]*Trace{}
	for i := range r.Traces {
		t := &r.Traces[i]
		in.Units = append(in.Units, t.Unit)
		byUnit[t.Unit] = t
		if n := len(t.Changes); n > 0 && r.Until.IsZero() && t.Changes[n-1].At.After(in.Until) {
			in.Until = t.Changes[n-1].At
		}
	}
	in.Read = func(_ context.Context, u promotion.Unit) (*Trace, error) { return byUnit[u], nil }
	return in
}

// Run says what changed rules would have made of what happened; with nil it replays the record by its
// own rules, and anything but Same is a mistake of the record. An error is Read's, the context's, or
// says what of a trace can't be read.
func Run(ctx context.Context, in Input, changed *pipeline.Pipeline) (*Report, error) {
	r := &runner{in: in, then: newRuleSource(in.Rules, nil), report: &Report{Until: in.Until, Counts: map[string]int{},
		Components: len(in.Units), Unknown: slices.Clone(in.Unknown)}}
	r.now = r.then
	if changed != nil {
		r.now = newRuleSource(in.Rules, changed)
	}
	if r.then.isBatched() || r.now.isBatched() {
		if err := r.runAll(ctx); err != nil {
			return nil, err
		}
		return r.finish(), nil
	}
	if err := r.runEach(ctx); err != nil {
		return nil, err
	}
	if reaches(r.usedThen, r.then.limits()) || reaches(r.usedNow, r.now.limits()) {
		unknown := in.Unknown
		r.report = &Report{Until: in.Until, Counts: map[string]int{}, Components: len(in.Units), Unknown: slices.Clone(unknown)}
		if err := r.runAll(ctx); err != nil {
			return nil, err
		}
	}
	return r.finish(), nil
}

// isBatched says that any of the rules move several components at once.
func (rs *ruleSource) isBatched() bool {
	for _, c := range rs.compiled {
		if c != nil && c.batched {
			return true
		}
	}
	return false
}

// limits are the least of all rules: openPerEnvironment, mergesPerHour and revertsPer10Minutes.
func (rs *ruleSource) limits() []int {
	out := []int{0, 0, 0}
	for _, c := range rs.compiled {
		if c == nil {
			continue
		}
		l := c.pipeline.Spec.Limits
		for i, n := range []int{l.OpenPerEnvironment, l.MergesPerHour, l.RevertsPer10Minutes} {
			if n > 0 && (out[i] == 0 || n < out[i]) {
				out[i] = n
			}
		}
	}
	return out
}

// runner runs replays.
type runner struct {
	in        Input
	then, now *ruleSource

	mutex             sync.Mutex
	report            *Report
	usedThen, usedNow []*usage
}

// read reads a component's script; nil where its trace is empty.
func (r *runner) read(ctx context.Context, u promotion.Unit) (*script, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	t, err := r.in.Read(ctx, u)
	if err != nil {
		return nil, fmt.Errorf("read the record of %s: %w", u.Component, err)
	}
	if t == nil || len(t.Changes) == 0 {
		return nil, nil
	}
	return readScript(t)
}

// runEach replays each component as if it were alone.
func (r *runner) runEach(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	units := make(chan promotion.Unit)
	var wait sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for u := range units {
				s, err := r.read(ctx, u)
				if err != nil {
					cancel(err)
					continue
				}
				if s != nil {
					r.replay([][]*script{{s}}, [][]*script{{s}})
				}
			}
		})
	}
	for _, u := range r.in.Units {
		select {
		case units <- u:
		case <-ctx.Done():
		}
	}
	close(units)
	wait.Wait()
	return context.Cause(ctx)
}

// runAll replays all components in one model.
func (r *runner) runAll(ctx context.Context) error {
	var all []*script
	for _, u := range r.in.Units {
		s, err := r.read(ctx, u)
		if err != nil {
			return err
		}
		if s != nil {
			all = append(all, s)
		}
	}
	if len(all) == 0 {
		return nil
	}
	r.replay(groupScripts(all, r.then), groupScripts(all, r.now))
	return nil
}

// groupScripts are the components by what is decided at once.
func groupScripts(all []*script, rules *ruleSource) [][]*script {
	if rules.isBatched() {
		return [][]*script{all}
	}
	var out [][]*script
	for _, s := range all {
		out = append(out, []*script{s})
	}
	return out
}

// replay replays components twice, and adds the differences to the report.
func (r *runner) replay(scriptsThen, scriptsNow [][]*script) {
	p := newPlan()
	then := r.runModel(scriptsThen, r.then, p, false)
	p.freeze()
	now := r.runModel(scriptsNow, r.now, p, true)
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.usedThen, r.usedNow = append(r.usedThen, then.groups[0].usage), append(r.usedNow, now.groups[0].usage)
	r.report.compare(then, now)
	r.report.Before.add(then)
	r.report.After.add(now)
	r.report.Mismatches = append(r.report.Mismatches, p.mismatches...)
	if p.guesses > 0 {
		r.report.Unknown = append(r.report.Unknown, "when people would have merged by hand, where they never did: it is taken as at once")
	}
	for _, scripts := range scriptsThen {
		for _, s := range scripts {
			r.report.Since = earliest(r.report.Since, s.start)
			r.report.Unknown = append(r.report.Unknown, s.problems...)
		}
	}
}

// runModel replays groups by rules; free says that what Liftlock did follows from them, and isn't taken
// from the record.
func (r *runner) runModel(scripts [][]*script, rules *ruleSource, p *plan, free bool) *replay {
	out, used := &replay{}, newUsage()
	for _, s := range scripts {
		out.groups = append(out.groups, newGroup(s, rules, used, p, free))
	}
	runGroups(out.groups, r.in.Until)
	for _, g := range out.groups {
		out.outcomes = append(out.outcomes, g.outcomes...)
	}
	return out
}

// runGroups replays groups that share limits, each moment in its order.
func runGroups(groups []*group, until time.Time) {
	if len(groups) == 1 {
		groups[0].run(until)
		return
	}
	queue := &groupQueue{}
	for _, g := range groups {
		queue.add(g)
	}
	for queue.Len() > 0 && !(*queue)[0].at.After(until) {
		at := (*queue)[0]
		at.group.step(at.at)
		if at.at = at.group.nextTime(); at.at.IsZero() {
			heap.Pop(queue)
			continue
		}
		heap.Fix(queue, 0)
	}
	for _, g := range groups {
		g.finish(until)
	}
}

// queuedGroup is a group with when it is looked at next.
type queuedGroup struct {
	at    time.Time
	group *group
}

// groupQueue is a heap of groups, the next first.
type groupQueue []*queuedGroup

func (gq groupQueue) Len() int           { return len(gq) }
func (gq groupQueue) Less(i, j int) bool { return gq[i].at.Before(gq[j].at) }
func (gq groupQueue) Swap(i, j int)      { gq[i], gq[j] = gq[j], gq[i] }
func (gq *groupQueue) Push(x any)        { *gq = append(*gq, x.(*queuedGroup)) }

// Pop implements heap.Interface.
func (gq *groupQueue) Pop() any {
	last := (*gq)[len(*gq)-1]
	*gq = (*gq)[:len(*gq)-1]
	return last
}

// add adds a group that something happens to.
func (gq *groupQueue) add(g *group) {
	if at := g.nextTime(); !at.IsZero() {
		heap.Push(gq, &queuedGroup{at, g})
	}
}

func newGroup(scripts []*script, rules *ruleSource, used *usage, p *plan, free bool) *group {
	g := &group{rules: rules, usage: used, plan: p, decided: true, requests: map[requestKey]*request{}, attempts: map[attemptKey]int{}}
	joint := map[jointKey]*event{}
	for i, s := range scripts {
		g.units = append(g.units, newUnitModel(s))
		for _, e := range s.events {
			isOutside := e.kind == eventLanded || e.kind == eventVetoed || e.unexpected
			if free && !isOutside {
				continue
			}
			own := e
			if e.unit == promotion.BatchName {
				if own = joinEvent(joint, e, len(scripts)); own.landings[i] == nil {
					own.landings[i] = e.landing
				}
				if own != e && own.joined {
					continue
				}
				own.joined = true
			} else {
				own.landings = make([]*landing, len(scripts))
				own.landings[i] = e.landing
			}
			g.events = append(g.events, own)
		}
	}
	slices.SortStableFunc(g.events, func(a, b *event) int { return a.from.Compare(b.from) })
	return g
}

// jointKey names what happened to a pull request of several.
type jointKey struct {
	kind   eventKind
	number int
	id     string
}

// joinEvent is what happened to a pull request of several, of which each one's record has its part.
func joinEvent(joint map[jointKey]*event, e *event, units int) *event {
	key := jointKey{e.kind, e.number, ""}
	if e.kind == eventReplaced {
		key.id = e.id
	}
	own := joint[key]
	if own == nil {
		own = e
		joint[key] = own
		own.landings, own.joined = make([]*landing, units), false
	}
	if e.until.Before(own.until) {
		own.until = e.until
	}
	return own
}

// finish is the report in order.
func (r *runner) finish() *Report {
	r.report.finish()
	return r.report
}
