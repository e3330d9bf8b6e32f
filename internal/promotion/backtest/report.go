package backtest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/policies"
)

// How a pull request ended in a replay; empty: it didn't.
const (
	EndMerged     = "merged"
	EndSuperseded = "superseded" // by a newer release, or closed because it may not come
	EndClosed     = "closed"     // by a person
)

// outcome is what became of a release that a pull request was to bring to an environment.
type outcome struct {
	unit, env, release, name string
	number                   int // of the pull request, by the record; 0: it has none
	opened, merged, ended    time.Time
	verified, degraded       time.Time
	end                      string
	manual                   bool // a person merged it
	revert                   bool
	obstacle                 string
}

// What other rules make of a past promotion.
const (
	ResultSame    = "same"
	ResultEarlier = "earlier"
	ResultLater   = "later"
	ResultNever   = "never"   // it wouldn't have been merged
	ResultPending = "pending" // it would still be open when the record ends
	ResultNew     = "new"     // it wasn't merged then
)

// Difference is a promotion, or a revert, that would have gone another way.
type Difference struct {
	Component   string    `json:"component"`
	Environment string    `json:"environment"`
	Release     string    `json:"release"`
	Name        string    `json:"name,omitempty"`
	Pull        int       `json:"pull,omitempty"` // by the record; 0: there was none
	Revert      bool      `json:"revert,omitempty"`
	Result      string    `json:"result"`        // earlier, later, never, pending, new
	Then        time.Time `json:"then,omitzero"` // when it was merged; zero: it wasn't
	Now         time.Time `json:"now,omitzero"`  // when it would have been; zero: it wouldn't
	Seconds     int64     `json:"seconds,omitempty"`
	Why         string    `json:"why,omitempty"` // what made the difference, as the gates said then
	Degraded    bool      `json:"degraded,omitempty"`
	// Unknown says that the record has no verdicts or reviews of this release there, so that the usual
	// ones were taken.
	Unknown bool `json:"unknown,omitempty"`
}

// Stopped is a release that degraded and that wouldn't have come to an environment that it came to.
type Stopped struct {
	Component   string    `json:"component"`
	Environment string    `json:"environment"` // that it wouldn't have come to
	Release     string    `json:"release"`
	Name        string    `json:"name,omitempty"`
	DegradedIn  string    `json:"degradedIn"`
	DegradedAt  time.Time `json:"degradedAt"`
	Why         string    `json:"why,omitempty"`
}

// Mismatch is something that the record can't explain: a mistake of the record or of the replay.
type Mismatch struct {
	At          time.Time `json:"at"`
	Component   string    `json:"component"`
	Environment string    `json:"environment,omitempty"`
	Release     string    `json:"release,omitempty"`
	Name        string    `json:"name,omitempty"`
	Pull        int       `json:"pull,omitempty"`
	What        string    `json:"what"`
	Why         string    `json:"why,omitempty"` // what kept it, by the replay
}

// Summary is how all went.
type Summary struct {
	Merges        int     `json:"merges"`
	MergesPerWeek float64 `json:"mergesPerWeek"`
	LeadMedian    int64   `json:"leadMedian"`   // seconds from the arrival in a source environment to a last one
	LeadP90       int64   `json:"leadP90"`      // likewise; 0 where nothing came there
	Approvals     int     `json:"approvals"`    // that the gates asked for, of what was merged
	MergedByHand  int     `json:"mergedByHand"` // by people
	Degraded      int     `json:"degraded"`     // promotions after which a target degraded
	Reverts       int     `json:"reverts"`      // that were merged
	leads         []int64
}

// MaxDifferences bounds how many differences a report lists; all are counted.
const MaxDifferences = 5000

// Report is what other rules would have made of what happened.
type Report struct {
	Since       time.Time      `json:"since,omitzero"`
	Until       time.Time      `json:"until,omitzero"`
	Components  int            `json:"components"`
	Before      Summary        `json:"before"`
	After       Summary        `json:"after"`
	Counts      map[string]int `json:"counts"`                // promotions by result
	Differences []Difference   `json:"differences,omitempty"` // by time; the first MaxDifferences
	Stopped     []Stopped      `json:"stopped,omitempty"`
	HeldWell    int            `json:"heldWell"` // promotions that went well, and would be later or not at all
	Mismatches  []Mismatch     `json:"mismatches,omitempty"`
	Unknown     []string       `json:"unknown,omitempty"` // what the record doesn't have
}

type outcomeKey struct {
	unit, env, release string
	revert             bool
	nth                int
}

// byKey finds outcomes that were merged or, where none of that release was, that weren't.
func byKey(all []*outcome) map[outcomeKey]*outcome {
	out := map[outcomeKey]*outcome{}
	nth := map[outcomeKey]int{}
	for _, o := range all {
		if o.merged.IsZero() {
			continue
		}
		key := outcomeKey{o.unit, o.env, o.release, o.revert, 0}
		nth[key]++
		out[outcomeKey{o.unit, o.env, o.release, o.revert, nth[key]}] = o
	}
	for _, o := range all {
		if key := (outcomeKey{o.unit, o.env, o.release, o.revert, 1}); out[key] == nil || out[key].merged.IsZero() {
			out[key] = o // the last one speaks
		}
	}
	return out
}

// compare adds how two replays of components differ: by the recorded rules, and by others.
func (r *Report) compare(then, now *replay) {
	was, is := byKey(then.outcomes), byKey(now.outcomes)
	for key, o := range was {
		if !o.merged.IsZero() {
			r.compareOne(then, now, o, is[key], key)
		}
	}
	for key, o := range is {
		if old := was[key]; !o.merged.IsZero() && (old == nil || old.merged.IsZero()) {
			d := differenceOf(o, ResultNew)
			d.Now, d.Unknown = o.merged, now.isUnknown(o)
			if old != nil {
				d.Why, d.Pull = old.obstacle, old.number
			}
			r.Counts[ResultNew]++
			r.Differences = append(r.Differences, d)
		}
	}
}

// onlyWhileOpen are the gates that go by what people and servers say of an open pull request: what they
// would have said later, if it had stayed open, isn't known.
var onlyWhileOpen = []policies.GateName{policies.GateApprovals, policies.GateChecks, policies.GateMetric, policies.GateHTTP}

func differenceOf(o *outcome, result string) Difference {
	return Difference{Component: o.unit, Environment: o.env, Release: o.release, Name: o.name, Pull: o.number, Revert: o.revert,
		Result:   result,
		Degraded: !o.degraded.IsZero()}
}

// compareOne compares a promotion that was merged with what becomes of it; now is nil where nothing
// does.
func (r *Report) compareOne(then, now *replay, was, is *outcome, key outcomeKey) {
	d := differenceOf(was, ResultSame)
	d.Then = was.merged
	switch {
	case is == nil:
		d.Result, d.Why = ResultNever, now.obstacleOf(key)
	case is.merged.IsZero():
		d.Result = ResultNever
		if is.end == "" {
			d.Result = ResultPending
		}
		d.Why = cmp.Or(is.obstacle, now.obstacleOf(key))
	default:
		d.Now, d.Seconds = is.merged, int64(is.merged.Sub(was.merged)/time.Second)
		switch by := is.merged.Compare(was.merged); {
		case by < 0:
			d.Result, d.Why = ResultEarlier, then.obstacleOf(key)
		case by > 0:
			d.Result, d.Why = ResultLater, now.obstacleOf(key)
		}
		d.Unknown = now.isUnknown(is)
	}
	if d.Result == ResultNever || d.Result == ResultPending {
		o := now.unit(was.unit).obstacles[obstacleKey{was.env, was.release}]
		d.Unknown = slices.Contains(onlyWhileOpen, policies.GateName(o.what))
	}
	r.Counts[d.Result]++
	if d.Result != ResultSame {
		r.Differences = append(r.Differences, d)
	}
	if was.revert {
		return
	}
	in, at := then.degradedBefore(was)
	if in == "" && d.Result != ResultSame && d.Result != ResultEarlier {
		r.HeldWell++
	}
	if in != "" && d.Result == ResultNever {
		r.Stopped = append(r.Stopped, Stopped{Component: was.unit, Environment: was.env, Release: was.release, Name: was.name,
			DegradedIn: in,
			DegradedAt: at, Why: d.Why})
	}
}

// replay is what came of components by some rules.
type replay struct {
	outcomes []*outcome
	groups   []*group
}

func (r *replay) unit(name string) *unitModel {
	for _, g := range r.groups {
		if u := g.unit(name); u != nil {
			return u
		}
	}
	return nil
}

func (r *replay) isUnknown(o *outcome) bool {
	u := r.unit(o.unit)
	return u != nil && u.unknown[o.env+"|"+o.release]
}

// obstacleOf is what a release waited for last; where it never was about to come, why nothing did.
func (r *replay) obstacleOf(key outcomeKey) string {
	u := r.unit(key.unit)
	if u == nil {
		return ""
	}
	if o, known := u.obstacles[obstacleKey{key.env, key.release}]; known {
		return o.String()
	}
	return u.obstacleIn(key.env)
}

// degradedBefore finds where the release of a promotion degraded by the record, there or in an
// environment before; empty where it didn't.
func (r *replay) degradedBefore(o *outcome) (env string, at time.Time) {
	u := r.unit(o.unit)
	before := u.upstreamOf(o.env)
	for _, name := range append(before, o.env) {
		for _, l := range u.script.landings[name] {
			if l.release.ID != o.release || l.landed.By == promotion.ByRevert {
				continue
			}
			for i := range l.verdicts {
				if l.verdicts[i].isDegraded() {
					return name, l.verdicts[i].at
				}
			}
		}
	}
	return "", time.Time{}
}

func (tv *timedVerdict) isDegraded() bool {
	for _, t := range tv.targets {
		if t.Verdict.State == verification.Degraded {
			return true
		}
	}
	return false
}

// upstreamOf are the environments before one, the first of the pipeline first.
func (u *unitModel) upstreamOf(env string) []string {
	needed := map[string]bool{env: true}
	var out []string
	for i := len(u.envs) - 1; i >= 0; i-- {
		f := u.envs[i].facts
		if !needed[f.Name] {
			continue
		}
		for _, a := range f.Spec.After {
			needed[a] = true
		}
		if f.Name != env {
			out = append(out, f.Name)
		}
	}
	slices.Reverse(out)
	return out
}

// add counts what came of components.
func (s *Summary) add(r *replay) {
	for _, o := range r.outcomes {
		if o.merged.IsZero() {
			continue
		}
		if o.revert {
			s.Reverts++
			continue
		}
		s.Merges++
		if o.manual {
			s.MergedByHand++
		}
		if !o.degraded.IsZero() {
			s.Degraded++
		}
		u := r.unit(o.unit)
		e := u.env(o.env)
		if e == nil {
			continue
		}
		for _, g := range e.facts.Gates {
			if g.Approvals != nil {
				s.Approvals += g.Approvals.Count
			}
		}
		if from := u.arrivedAt(o.release); !from.IsZero() && u.isLast(o.env) {
			s.leads = append(s.leads, int64(o.merged.Sub(from)/time.Second))
		}
	}
}

func (u *unitModel) isLast(env string) bool {
	return !slices.ContainsFunc(u.envs, func(e *envModel) bool { return slices.Contains(e.facts.Spec.After, env) })
}

// arrivedAt is when a release came to a source environment first; zero: it isn't in the record.
func (u *unitModel) arrivedAt(release string) time.Time {
	var first time.Time
	for _, e := range u.envs {
		if !e.facts.Source() {
			continue
		}
		for i, l := range u.script.landings[e.facts.Name] {
			if l.release.ID == release && i > 0 {
				first = earliest(first, l.at)
			}
		}
	}
	return first
}

// finish computes what is about all.
func (s *Summary) finish(span time.Duration) {
	if weeks := span.Hours() / (24 * 7); weeks > 0 {
		s.MergesPerWeek = float64(int(float64(s.Merges)/weeks*10+0.5)) / 10
	}
	slices.Sort(s.leads)
	if n := len(s.leads); n > 0 {
		s.LeadMedian, s.LeadP90 = s.leads[n/2], s.leads[min(n*9/10, n-1)]
	}
	s.leads = nil
}

// finish puts all in order.
func (r *Report) finish() {
	r.Before.finish(r.Until.Sub(r.Since))
	r.After.finish(r.Until.Sub(r.Since))
	when := func(d *Difference) time.Time {
		if d.Then.IsZero() {
			return d.Now
		}
		return d.Then
	}
	slices.SortFunc(r.Differences, func(a, b Difference) int {
		return cmp.Or(when(&a).Compare(when(&b)), cmp.Compare(a.Component, b.Component), cmp.Compare(a.Environment, b.Environment),
			cmp.Compare(a.Release, b.Release))
	})
	r.Differences = r.Differences[:min(len(r.Differences), MaxDifferences)]
	slices.SortFunc(r.Stopped, func(a, b Stopped) int {
		return cmp.Or(a.DegradedAt.Compare(b.DegradedAt), cmp.Compare(a.Component, b.Component), cmp.Compare(a.Environment, b.Environment))
	})
	slices.SortFunc(r.Mismatches, func(a, b Mismatch) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Component, b.Component), cmp.Compare(a.Environment, b.Environment),
			strings.Compare(a.What, b.What))
	})
	slices.Sort(r.Unknown)
	r.Unknown = slices.Compact(r.Unknown)
}

// Table is the report as text for a terminal: what differs, and all in sum.
func (r *Report) Table() string {
	var b strings.Builder
	for i := range r.Differences {
		d := &r.Differences[i]
		at := d.Then
		if at.IsZero() {
			at = d.Now
		}
		fmt.Fprintf(&b, "%s  %-20s %-10s %-20s %s\n", at.UTC().Format("2006-01-02 15:04"), d.Component, d.Environment,
			cmp.Or(d.Name, short(d.Release)), d.describe())
	}
	fmt.Fprintf(&b, "\n%-24s %12s %12s\n", "", "before", "after")
	row := func(name, before, after string) { fmt.Fprintf(&b, "%-24s %12s %12s\n", name, before, after) }
	count := func(name string, before, after int) { row(name, fmt.Sprint(before), fmt.Sprint(after)) }
	count("merges", r.Before.Merges, r.After.Merges)
	row("merges a week", fmt.Sprint(r.Before.MergesPerWeek), fmt.Sprint(r.After.MergesPerWeek))
	row("lead time, median", seconds(r.Before.LeadMedian), seconds(r.After.LeadMedian))
	row("lead time, p90", seconds(r.Before.LeadP90), seconds(r.After.LeadP90))
	count("approvals needed", r.Before.Approvals, r.After.Approvals)
	count("merged by hand", r.Before.MergedByHand, r.After.MergedByHand)
	count("reverts", r.Before.Reverts, r.After.Reverts)
	count("degraded", r.Before.Degraded, r.After.Degraded)
	fmt.Fprintf(&b, "\n%d would have been stopped, %d that went well held\n", len(r.Stopped), r.HeldWell)
	for _, s := range r.Stopped {
		fmt.Fprintf(&b, "stopped: %s %s before %s; it degraded in %s at %s\n", s.Component, cmp.Or(s.Name, short(s.Release)), s.Environment,
			s.DegradedIn, s.DegradedAt.UTC().Format(time.RFC3339))
	}
	for _, m := range r.Mismatches {
		fmt.Fprintf(&b, "not explained: %s %s %s %s\n", m.Component, m.Environment, cmp.Or(m.Name, short(m.Release)), m.What)
	}
	for _, text := range r.Unknown {
		fmt.Fprintf(&b, "not known: %s\n", text)
	}
	return b.String()
}

func (d *Difference) describe() string {
	text := d.Result
	if d.Revert {
		text = "its revert " + text
	}
	if d.Result == ResultEarlier || d.Result == ResultLater {
		text += " by " + seconds(max(d.Seconds, -d.Seconds))
	}
	if d.Why != "" {
		text += ": " + d.Why
	}
	return text
}

func seconds(n int64) string { return (time.Duration(n) * time.Second).String() }
