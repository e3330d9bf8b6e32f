package backtest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/policies"
)

// scenario is what happens outside of Liftlock, from which a record is made by the rules of the time.
type scenario struct {
	rules      *pipeline.Pipeline
	components []scenarioComponent
	delays     map[eventKind]time.Duration // of what Liftlock does
	byHand     time.Duration               // until a person merges what is ready
	until      time.Time
}

type scenarioComponent struct {
	name     string
	releases []scenarioRelease
	holds    []promotion.Hold
	commands []promotion.PendingCommand
	vetoes   []scenarioVeto
}

type scenarioRelease struct {
	id       string
	at       time.Time
	verified map[string]time.Duration // after it landed, by environment
	degraded map[string]time.Duration // likewise
	approved map[string][]time.Time   // by environment: when people approve its pull request
}

type scenarioVeto struct {
	env, release string
	at           time.Time
}

func releaseID(name string) string { return fmt.Sprintf("%-64s", name)[:64] }

// threeEnvironments is dev, qa and prod in a row.
func threeEnvironments(change func(p *pipeline.Pipeline)) *pipeline.Pipeline {
	verify := pipeline.Verify{ArriveWithin: pipeline.Duration(time.Hour), Timeout: pipeline.Duration(time.Hour), Watch: pipeline.Duration(48 * time.Hour)}
	p := &pipeline.Pipeline{Metadata: pipeline.Metadata{Name: "shop"}, Spec: pipeline.Spec{Mode: pipeline.ModeAct, Batch: pipeline.BatchComponent,
		Limits: pipeline.Limits{OpenPerEnvironment: 1000, MergesPerHour: 100000, RevertsPer10Minutes: 100000}}}
	for _, e := range [][]string{{"dev"}, {"qa", "dev"}, {"prod", "qa"}} {
		p.Spec.Environments = append(p.Spec.Environments, pipeline.Environment{Name: e[0], After: e[1:], Open: pipeline.Auto, Merge: pipeline.Auto,
			Verify: verify, OnDegraded: pipeline.OnDegraded{Action: pipeline.OnDegradedHold}})
	}
	if change != nil {
		change(p)
	}
	return p
}

// record makes the record of a scenario.
func (s *scenario) record(t testing.TB) *Record {
	t.Helper()
	rules := map[string]Rules{"a": {Pipeline: s.rules}}
	p := newPlan()
	for kind, took := range s.delays {
		for _, e := range s.rules.Spec.Environments {
			p.usual[usualKey{kind, e.Name, false}] = []time.Duration{took}
		}
	}
	for _, e := range s.rules.Spec.Environments {
		p.usual[usualKey{eventMerged, e.Name, true}] = []time.Duration{s.byHand}
	}
	p.freeze()
	var scripts []*script
	for i := range s.components {
		scripts = append(scripts, s.script(&s.components[i]))
	}
	out := &Record{Rules: rules, Until: s.until}
	source, used := newRuleSource(rules, nil), newUsage()
	var groups []*group
	for _, list := range groupScripts(scripts, source) {
		g := newGroup(list, source, used, p, true)
		groups = append(groups, g)
		states := make([]*State, len(list))
		base := len(out.Traces)
		for _, one := range list {
			out.Traces = append(out.Traces, Trace{Unit: one.unit})
		}
		g.watch = func(f promotion.Facts, d promotion.Decision) {
			for i := range f.Components {
				state, change, err := NextChange(states[i], &f.Components[i], &d.Components[i], "a")
				if err != nil {
					t.Fatal(err)
				}
				if states[i] = state; change != nil {
					trace := &out.Traces[base+i]
					trace.Changes = append(trace.Changes, *change)
				}
			}
		}
	}
	runGroups(groups, s.until)
	return out
}

// script is what happens outside to a component.
func (s *scenario) script(c *scenarioComponent) *script {
	start := noon.Add(-time.Hour)
	out := &script{unit: promotion.Unit{Repo: "hub:acme/shop", Pipeline: "shop", Component: c.name}, start: start,
		landings: map[string][]*landing{}, pulls: map[pullKey][]timedPull{}}
	state := &State{Rules: "a", Holds: promotion.Sure([]promotion.Hold(nil)), Envs: map[string]*EnvironmentState{}}
	first := releaseID("r0")
	for _, e := range s.rules.Spec.Environments {
		old := &landing{env: e.Name, release: promotion.Release{ID: first, Name: "r0"}, at: start,
			landed:   promotion.Landed{Commit: "c0", At: start.Add(-time.Hour), By: promotion.ByBaseline},
			verdicts: []timedVerdict{{at: start, targets: scenarioTargets(c.name, e.Name, verification.Verified)}}}
		out.landings[e.Name] = []*landing{old}
		out.events = append(out.events, &event{kind: eventLanded, env: e.Name, from: start, until: start, landing: old, unit: c.name, release: first})
		state.Envs[e.Name] = &EnvironmentState{Release: promotion.Sure(old.release), Landed: promotion.Sure(old.landed)}
	}
	out.absolute = []timedState{{start, state}}
	for _, r := range c.releases {
		s.addRelease(out, c, r)
	}
	for _, v := range c.vetoes {
		out.events = append(out.events, &event{kind: eventVetoed, env: v.env, from: v.at, until: v.at, release: releaseID(v.release), unit: c.name})
	}
	now := *state
	for i, h := range c.holds {
		now.Holds = promotion.Sure(c.holds[:i+1])
		next := now
		out.absolute = append(out.absolute, timedState{h.At, &next})
	}
	now.Commands = map[string]*promotion.PendingCommand{}
	for i := range c.commands {
		k := c.commands[i]
		next := now
		next.Commands = map[string]*promotion.PendingCommand{fmt.Sprint(k.ID): &k}
		out.absolute = append(out.absolute, timedState{k.At, &next})
	}
	return out
}

func (s *scenario) addRelease(out *script, c *scenarioComponent, r scenarioRelease) {
	id := releaseID(r.id)
	for _, e := range s.rules.Spec.Environments {
		l := &landing{env: e.Name, release: promotion.Release{ID: id, Name: r.id}, at: r.at,
			landed: promotion.Landed{Commit: "commit-" + r.id, At: r.at, By: promotion.ByPromotion}}
		l.verdicts = []timedVerdict{{at: r.at, targets: scenarioTargets(c.name, e.Name, verification.Arriving)}}
		if after, ok := r.verified[e.Name]; ok {
			l.verdicts = append(l.verdicts, timedVerdict{at: r.at.Add(after), targets: scenarioTargets(c.name, e.Name, verification.Verified)})
		}
		if after, ok := r.degraded[e.Name]; ok {
			l.verdicts = append(l.verdicts, timedVerdict{at: r.at.Add(after), targets: scenarioTargets(c.name, e.Name, verification.Degraded)})
		}
		out.landings[e.Name] = append(out.landings[e.Name], l)
		if e.IsSource() {
			l.landed.By = promotion.ByPerson
			out.events = append(out.events, &event{kind: eventLanded, env: e.Name, from: r.at, until: r.at, landing: l, unit: c.name, release: id})
			continue
		}
		key := pullKey{e.Name, id, false}
		pull := &promotion.Pull{Mergeable: promotion.MergeClean, Review: policies.Facts{ChecksRead: true}}
		out.pulls[key] = []timedPull{{r.at, pull}}
		var approvals []policies.Approval
		for i, at := range r.approved[e.Name] {
			approvals = append(approvals, policies.Approval{User: fmt.Sprintf("user%d", i), UserID: int64(i + 1), MayWrite: true, Current: true, At: at})
			next := *pull
			next.Review.Approvals = approvals[:i+1]
			out.pulls[key] = append(out.pulls[key], timedPull{at, &next})
			out.absolute = append(out.absolute, timedState{at, out.absolute[0].state})
		}
	}
}

func scenarioTargets(component, env string, state verification.State) map[string]*promotion.Target {
	name := component + "-" + env
	return map[string]*promotion.Target{name: {Name: name, Cluster: env, HealthyBefore: promotion.Sure(true),
		Verdict: verification.Verdict{State: state, InSync: true}}}
}

// usualDelays is how long what Liftlock does takes.
var usualDelays = map[eventKind]time.Duration{eventOpened: 3 * time.Second, eventMerged: 20 * time.Second, eventReplaced: time.Second,
	eventClosed: time.Second}

// oneRelease is verified everywhere after ten minutes.
func oneRelease(id string, at time.Time) scenarioRelease {
	return scenarioRelease{id: id, at: at, verified: map[string]time.Duration{"dev": 10 * time.Minute, "qa": 10 * time.Minute, "prod": 10 * time.Minute}}
}

func mustRun(t testing.TB, r *Record, changed *pipeline.Pipeline) *Report {
	t.Helper()
	report, err := Run(context.Background(), r.Input(), changed)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// replaysToItself holds that a record's own rules give exactly what happened.
func replaysToItself(t testing.TB, r *Record) *Report {
	t.Helper()
	report := mustRun(t, r, nil)
	for _, d := range report.Differences {
		t.Errorf("by its own rules: %+v", d)
	}
	for _, m := range report.Mismatches {
		t.Errorf("not explained: %+v", m)
	}
	return report
}

// describe is what differs, a line each, without the times.
func describe(r *Report) string {
	var out []string
	for _, d := range r.Differences {
		d.Why, _, _ = strings.Cut(d.Why, ":")
		out = append(out, fmt.Sprintf("%s %s %s %s %s", d.Component, d.Environment, d.Name, d.describe(), d.Then.Sub(noon)))
	}
	return strings.Join(out, "\n")
}
