package promotion

import (
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/policies"
)

// simShapes are the pipelines that worlds are made of: name and after.
var simShapes = map[string][][]string{
	"line":        {{"dev"}, {"qa", "dev"}, {"prod", "qa"}},
	"diamond":     {{"dev"}, {"qa-a", "dev"}, {"qa-b", "dev"}, {"prod", "qa-a", "qa-b"}},
	"two sources": {{"dev-a"}, {"dev-b"}, {"qa", "dev-a", "dev-b"}, {"prod", "qa"}},
	"fan":         {{"dev"}, {"qa", "dev"}, {"prod-eu", "qa"}, {"prod-us", "qa", "prod-eu"}},
}

// newSimulation draws a pipeline and a fleet that may already differ.
func newSimulation(t *rapid.T) *simulation {
	w := &simulation{now: noon, targets: map[string][]*simTarget{}, refused: map[string]bool{}, adopted: map[string]bool{},
		truth: simTruth{verified: map[string]bool{}, promotedAt: map[string]time.Time{}}}
	w.likely = rapid.Permutation(simEvents).Draw(t, "events")
	w.loseStore()
	names := []string{"diamond", "fan", "line", "two sources"}
	verify := pipeline.Verify{ArriveWithin: mins(15), Timeout: mins(10), HealthyFor: mins(1), Watch: mins(30), Debounce: pipeline.Duration(30 * time.Second)}
	for _, def := range simShapes[rapid.SampledFrom(names).Draw(t, "shape")] {
		s := pipeline.Environment{Name: def[0], After: def[1:], Verify: verify, OnDegraded: pipeline.OnDegraded{Action: pipeline.OnDegradedHold}}
		if !s.IsSource() {
			s.Open = rapid.SampledFrom([]string{pipeline.Auto, pipeline.Auto, pipeline.Manual}).Draw(t, "open")
			s.Merge = rapid.SampledFrom([]string{pipeline.Auto, pipeline.Auto, pipeline.Manual}).Draw(t, "merge")
			s.OnDegraded.Action = rapid.SampledFrom([]string{pipeline.OnDegradedRevert, pipeline.OnDegradedRevertAndMerge, pipeline.OnDegradedRevertAndMerge, pipeline.OnDegradedHold}).Draw(t, "onDegraded")
			s.OnDegraded.Quorum = rapid.SampledFrom([]pipeline.Quorum{{}, {}, {Targets: 1}, {Targets: 2}, {Percent: 50}, {Percent: 51}, {Percent: 100}}).Draw(t, "quorum")
			if n := rapid.IntRange(0, 2).Draw(t, "approvals"); n > 0 {
				s.Gates = []policies.Gate{{Approvals: &policies.Approvals{Count: n}}}
			}
			if drift := rapid.SampledFrom([]string{"", "", policies.DriftBlock, policies.DriftWarn}).Draw(t, "drift"); drift != "" {
				s.Gates = append(s.Gates, policies.Gate{Settled: &policies.Settled{Drift: drift}})
			}
		}
		w.specs = append(w.specs, s)
		release := id(rapid.SampledFrom([]string{"r0", "r1", "r1"}).Draw(t, "start"))
		w.log = append(w.log, simCommit{sha: fmt.Sprintf("%040d", len(w.log)+1), env: s.Name, after: release, at: w.now.Add(-24 * time.Hour)})
		for i := range rapid.IntRange(1, 2).Draw(t, "targets") {
			w.targets[s.Name] = append(w.targets[s.Name], &simTarget{name: fmt.Sprintf("web-%s-%d", s.Name, i), cluster: fmt.Sprintf("c%d", i), state: verification.Verified})
		}
	}
	w.spec = pipeline.Spec{Mode: pipeline.ModeAct, Environments: w.specs, Limits: pipeline.Limits{OpenPerEnvironment: 2, MergesPerHour: 20, RevertsPer10Minutes: 3}}
	return w
}

func (si *simulation) sources(is bool) []string {
	var out []string
	for _, s := range si.specs {
		if s.IsSource() == is {
			out = append(out, s.Name)
		}
	}
	return out
}

// giveCommand is a person's command.
func (si *simulation) giveCommand(verb, env string) {
	si.commands++
	si.store.pending = append(si.store.pending, PendingCommand{ID: si.commands, Verb: command.Verb(verb), Environment: env, By: "ada", At: si.now})
	if verb == "promote" {
		si.truth.promotedAt[env] = si.now
	}
}

// simNext is where a target's verdict can go from where it is.
var simNext = map[verification.State][]verification.State{
	verification.Absent:      {verification.Arriving},
	verification.Arriving:    {verification.Syncing, verification.Queued, verification.Failed, verification.Unclear, verification.Absent},
	verification.Queued:      {verification.Arriving},
	verification.Syncing:     {verification.Refreshing, verification.Degraded, verification.Failed},
	verification.Refreshing:  {verification.Progressing, verification.Soaking, verification.Unclear},
	verification.Progressing: {verification.Soaking, verification.Degraded, verification.Suspended},
	verification.Suspended:   {verification.Soaking, verification.Failed},
	verification.Soaking:     {verification.Verified, verification.Verified, verification.Progressing, verification.Degraded},
	verification.Verified:    {verification.Degraded, verification.Unclear, verification.Progressing},
	verification.Degraded:    {verification.Soaking, verification.Verified, verification.Unclear},
	verification.Failed:      {verification.Syncing, verification.Verified},
	verification.Unclear:     {verification.Soaking, verification.Degraded, verification.Verified},
}

// event lets something happen that is none of Liftlock's doing.
func (si *simulation) event(t *rapid.T) {
	env := func() string { return oneOf(t, append(si.sources(true), si.sources(false)...), "env") }
	down := func() string { return oneOf(t, si.sources(false), "env") }
	mine := func() *simPull {
		var open []*simPull
		for _, p := range si.pulls {
			if p.open && p.ours {
				open = append(open, p)
			}
		}
		if len(open) == 0 {
			return nil
		}
		return oneOf(t, open, "pull")
	}
	release := func() string {
		if rapid.Bool().Draw(t, "new") {
			si.released++
		}
		return id(fmt.Sprintf("r%d", max(0, si.released-rapid.IntRange(0, 3).Draw(t, "older"))))
	}
	toggle := func(s *string, v string) {
		if *s == "" {
			*s = v
		} else {
			*s = ""
		}
	}
	si.now = si.now.Add(time.Duration(rapid.IntRange(1, 120).Draw(t, "seconds")) * time.Second)
	if rapid.IntRange(0, 9).Draw(t, "another server decides") == 0 {
		si.skew = time.Duration(rapid.IntRange(-90, 90).Draw(t, "its clock is off by")) * time.Second
	}
	switch what := rapid.SampledFrom(si.likely).Draw(t, "event"); what {
	case "release":
		r := release()
		for _, s := range si.sources(true) {
			si.commit(s, r, "person")
		}
	case "release one":
		si.commit(oneOf(t, si.sources(true), "env"), release(), "person")
	case "change by hand":
		si.commit(down(), release(), "person")
	case "noise":
		e := env()
		si.commit(e, si.currentRelease(e), "person")
	case "verdict":
		tg := rapid.SampledFrom(si.targets[env()]).Draw(t, "target")
		tg.state, tg.since = rapid.SampledFrom(simNext[tg.state]).Draw(t, "state"), si.now
	case "drift":
		tg := rapid.SampledFrom(si.targets[down()]).Draw(t, "target")
		tg.drift = rapid.SampledFrom([]string{"", "drifted", "untold"}).Draw(t, "drift")
	case "well":
		si.settle(env(), verification.Verified)
	case "bad":
		e := down()
		for _, s := range si.sources(false) {
			if c := &si.log[si.landed(s)]; c.by == "ours" && si.now.Sub(c.at) < time.Hour {
				e = s
			}
		}
		si.settle(e, verification.Degraded)
	case "approve":
		if p := mine(); p != nil && !p.revert {
			p.approvals[rapid.SampledFrom([]string{"ada", "grace"}).Draw(t, "who")] = p.release
		}
	case "label":
		if p := mine(); p != nil {
			p.held = !p.held
		}
	case "hold":
		h := Hold{Scope: rapid.SampledFrom([]string{"component", "environment", "pipeline"}).Draw(t, "scope"), By: "ada", At: si.now, Reverts: rapid.Bool().Draw(t, "reverts")}
		if h.Scope == "environment" {
			h.Environment = down()
		}
		if len(si.holds) > 0 {
			si.holds = nil
		} else {
			si.holds = []Hold{h}
		}
	case "holds unreadable":
		toggle(&si.holdsErr, "the state branch can't be read")
	case "pipeline file":
		toggle(&si.broken, ".liftlock.yaml:3: unknown key")
	case "targets":
		if si.problems == nil {
			si.problems = []string{"argocd/shop.yaml: a template error"}
		} else {
			si.problems = nil
		}
	case "person closes":
		if p := mine(); p != nil {
			p.open, p.ended = false, si.now
		}
	case "person merges":
		if p := mine(); p != nil {
			si.merge(p, false, rapid.Bool().Draw(t, "trailers"))
		}
	case "person pushes":
		if p := mine(); p != nil {
			p.head, p.changed = si.newHead(), si.now
			if p.revert || rapid.Bool().Draw(t, "spoilt") {
				p.headModified = "it changes base/kustomization.yaml"
			} else {
				p.release = release() // well made, but who knows what it is
			}
		}
	case "stranger":
		e, revert := down(), rapid.Bool().Draw(t, "revert")
		if i := slices.IndexFunc(si.pulls, func(p *simPull) bool { return p.open && !p.ours }); i >= 0 {
			si.pulls[i].open, si.pulls[i].ended = false, si.now
		} else if si.openOurs(e, revert) == nil {
			si.create(&simPull{env: e, revert: revert, release: si.currentRelease(e), base: len(si.log)})
		}
	case "promote", "revert", "retry":
		si.giveCommand(what, env())
	case "store lost":
		si.loseStore()
	case "mergeable":
		if p := mine(); p != nil {
			p.mergeable, p.changed = rapid.SampledFrom([]string{"yes", "yes", "unknown", "blocked", "behind"}).Draw(t, "word"), si.now
		}
	case "weather":
		if len(si.incidents) > 0 {
			si.incidents = nil
		} else {
			si.incidents = []ClusterIncident{{Cluster: "c0", Target: "db", Since: si.now}}
		}
	case "places":
		si.limits.OpenByOthers = map[string]int{down(): rapid.IntRange(0, 3).Draw(t, "open")}
	case "refused":
		si.refused[down()+"|"+release()] = true
	case "hours":
		si.now = si.now.Add(time.Duration(rapid.IntRange(1, 5).Draw(t, "hours")) * time.Hour)
	}
}

// smooth is a stretch in which all goes well: releases are made, facts are known, arrivals are
// healthy, people approve and merge.
func (si *simulation) smooth(t *rapid.T) {
	si.now = si.now.Add(time.Minute)
	if oneOf(t, []bool{true, false, false}, "release") {
		si.released++
		for _, s := range si.sources(true) {
			si.commit(s, id(fmt.Sprintf("r%d", si.released)), "person")
		}
	}
	for _, s := range si.specs {
		if !slices.ContainsFunc(si.targets[s.Name], func(tg *simTarget) bool { return tg.state == verification.Degraded || tg.state == verification.Failed }) {
			si.settle(s.Name, verification.Verified)
		}
	}
	if rapid.Bool().Draw(t, "people") {
		for _, p := range si.pulls {
			if p.open && p.ours && !p.revert && p.headModified == "" {
				p.approvals["ada"], p.approvals["grace"] = p.release, p.release
			}
		}
	}
	for range 4 {
		si.run(t, false)
	}
}

// simEvents can happen. In each world some are more likely than others, so that
// every few of them meet often in some world.
var simEvents = []string{"release", "release one", "change by hand", "noise", "verdict", "drift", "well", "bad", "approve", "label", "hold", "holds unreadable",
	"pipeline file", "targets", "person closes", "person merges", "person pushes", "stranger", "promote", "revert", "retry", "store lost", "mergeable",
	"weather", "places", "refused", "hours"}

// oneOf draws evenly; rapid's own draws prefer what comes first.
func oneOf[T any](t *rapid.T, of []T, label string) T {
	n := 0
	for range 8 {
		n *= 2
		if rapid.Bool().Draw(t, label) {
			n++
		}
	}
	return of[n*len(of)/256]
}

func (si *simulation) settle(env string, s verification.State) {
	for _, t := range si.targets[env] {
		t.state, t.since = s, si.now
	}
}
