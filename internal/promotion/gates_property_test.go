package promotion

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/policies"
)

// drawApprovals is an approvals gate at random.
func drawApprovals(t *rapid.T) *policies.Approvals {
	a := &policies.Approvals{Count: rapid.IntRange(1, 2).Draw(t, "count"), Distinct: rapid.Bool().Draw(t, "distinct"), MaxAge: rapid.SampledFrom([]time.Duration{0, 0, time.Hour}).Draw(t, "maxAge")}
	switch rapid.SampledFrom([]string{"", "", "team", "user", "owners"}).Draw(t, "from") {
	case "team":
		a.From.Teams = []string{"acme/sre"}
	case "user":
		a.From.Users = []string{"ada", "grace"}
	case "owners":
		a.From.Codeowners = true
	}
	return a
}

// drawWindow is a window at random: one with times of its own, or Argo CD's.
func drawWindow(t *rapid.T) policies.Window {
	if rapid.IntRange(0, 2).Draw(t, "argocd") == 0 {
		return policies.Window{ArgoCD: true}
	}
	pick := func(label string, from ...string) string { return rapid.SampledFrom(from).Draw(t, label) }
	return policies.Window{Cron: pick("cron", "0 9 * * *", "30 11 * * MON-7", "* * * * *", "0 0 31 * *", "@daily"), Duration: time.Duration(rapid.IntRange(1, 600).Draw(t, "minutes")) * time.Minute, Timezone: pick("zone", "UTC", "Europe/Berlin", "Asia/Kolkata")}
}

// drawFreeze is a freeze at random around the days of these tests.
func drawFreeze(t *rapid.T) *policies.Freeze {
	days := rapid.SampledFrom([]policies.Moment{"2026-03-01", "2026-03-02", "2026-03-03", "2026-03-04"})
	return &policies.Freeze{From: days.Draw(t, "from"), To: days.Draw(t, "to"), Timezone: "Europe/Berlin"}
}

// drawGate is a gate at random, some of which pass now and then.
func drawGate(t *rapid.T) policies.Gate {
	pick := func(label string, from ...string) string { return rapid.SampledFrom(from).Draw(t, label) }
	switch rapid.IntRange(0, 10).Draw(t, "kind") {
	case 0:
		return policies.Gate{Approvals: drawApprovals(t)}
	case 1:
		w := drawWindow(t)
		return policies.Gate{Window: &w}
	case 2:
		return policies.Gate{Freeze: drawFreeze(t)}
	case 3:
		text := policies.Expression(pick("expression", "true", "false", `release.images.all(i, i.tag == "r2")`, "now.getMinutes() < 30", "targets[9].name == ''", `{"outcome": "fail"}`))
		return policies.Gate{Expression: &text}
	case 4:
		return policies.Gate{Checks: &policies.Checks{Require: []string{pick("check", "ci", "*", "e2e")}, On: pick("on", "", "head", "release")}}
	case 5:
		return policies.Gate{Soak: &policies.Soak{Environment: pick("soak", "", "dev", "prod"), For: time.Duration(rapid.IntRange(1, 3).Draw(t, "hours")) * time.Hour}}
	case 6:
		return policies.Gate{Metric: &policies.Metric{Prometheus: "main", Query: pick("query", "up", "up{v={{ .tag }}}"), When: "value < 1", For: 2 * time.Minute, Every: time.Minute, OnEmpty: pick("onEmpty", "wait", "pass")}}
	case 7:
		return policies.Gate{HTTP: &policies.HTTP{Endpoint: "board", Every: time.Minute, Timeout: time.Second, MaxAge: 10 * time.Minute}}
	case 8:
		all := policies.Windows{}
		for range rapid.IntRange(0, 3).Draw(t, "windows") {
			all = append(all, drawWindow(t))
		}
		return policies.Gate{Windows: all}
	case 9:
		return policies.Gate{Settled: &policies.Settled{Drift: pick("drift", "block", "block", "warn", "")}}
	}
	return policies.Gate{}
}

// drawFloor is what the server's file asks for, whatever the pipeline's does.
func drawFloor(t *rapid.T) (floor *policies.Approvals, freezes []policies.Gate) {
	if rapid.IntRange(0, 3).Draw(t, "floor") == 0 {
		floor = drawApprovals(t)
	}
	if rapid.IntRange(0, 3).Draw(t, "serverFreeze") == 0 {
		freezes = []policies.Gate{{Freeze: drawFreeze(t)}}
	}
	return floor, freezes
}

// drawSyncWindows is how Argo CD's sync windows stand for the targets of an environment.
func drawSyncWindows(t *rapid.T, now time.Time) []policies.TargetWindow {
	var all []policies.TargetWindow
	for range rapid.IntRange(0, 2).Draw(t, "targets") {
		w := policies.TargetWindow{Target: "web", Project: "shop", Closed: rapid.IntRange(0, 3).Draw(t, "closed") == 0}
		if rapid.Bool().Draw(t, "changes") {
			w.Changes = now.Add(time.Hour)
		}
		if rapid.IntRange(0, 9).Draw(t, "windowErr") == 0 {
			w.Err = "no such Application exists yet"
		}
		all = append(all, w)
	}
	return all
}

// drawDrift is how a target differs from Git, as its verdict has it and as gates are to know.
func drawDrift(t *rapid.T) (verification.Verdict, policies.TargetDrift) {
	v, d := verification.Verdict{State: verification.Verified}, policies.TargetDrift{Target: "web-qa"}
	switch rapid.SampledFrom([]string{"in sync", "in sync", "in sync", "drifted", "untold", "not looked"}).Draw(t, "drifted") {
	case "in sync":
		v.InSync, d.InSync = true, true
	case "drifted":
		v.Drift, d.Differs, d.Since = &verification.Drift{Since: noon}, "differs from Git", noon
	case "untold":
		v.DriftUntold, d.Err = "away", "away"
	}
	return v, d
}

// drawReadings adds what servers answered until now, or that they didn't.
func drawReadings(t *rapid.T, now time.Time, f *policies.Facts) {
	failed := func(label string) string { return rapid.SampledFrom([]string{"", "", "", "away"}).Draw(t, label) }
	for _, query := range []string{"up", `up{v="r2"}`} {
		r := policies.MetricReading{Prometheus: "main", Query: query, Every: time.Minute, Err: failed("metricErr"), NextAt: now.Add(time.Minute)}
		for i := rapid.IntRange(0, 4).Draw(t, "samples"); i > 0; i-- {
			s := policies.MetricSample{At: now.Add(-time.Duration(i) * time.Minute), Values: rapid.SampledFrom([][]float64{{0}, {0}, {0}, {0, 0.5}, {0, 2}, nil}).Draw(t, "values")}
			if rapid.IntRange(0, 9).Draw(t, "problem") == 0 {
				s.Values, s.Problem = nil, "NaN"
			}
			r.Samples = append(r.Samples, s)
		}
		f.Metrics = append(f.Metrics, r)
	}
	f.Endpoints = []policies.EndpointReading{{Endpoint: "board", Answered: rapid.IntRange(0, 4).Draw(t, "answered") > 0, Err: failed("endpointErr"), NextAt: now.Add(time.Minute),
		Outcome: rapid.SampledFrom([]policies.Outcome{policies.Pass, policies.Pass, policies.Wait, policies.Fail, "", "maybe"}).Draw(t, "outcome"), At: now.Add(-time.Duration(rapid.IntRange(0, 12).Draw(t, "age")) * time.Minute)}}
}

// drawSoak is how long something was verified without a break.
func drawSoak(t *rapid.T, now time.Time) Soak {
	hours := func(label string) time.Duration {
		return time.Duration(rapid.IntRange(0, 3).Draw(t, label)) * time.Hour
	}
	s := Soak{Longest: hours("longest")}
	if rapid.Bool().Draw(t, "runs") {
		s.Served, s.Seen, s.Paused = hours("served"), now, rapid.Bool().Draw(t, "paused")
	}
	return s
}

// drawReview is what is known of the pull request that the gates are about, or not.
func drawReview(t *rapid.T) policies.Facts {
	var f policies.Facts
	for _, who := range []string{"ada", "grace"} {
		if rapid.Bool().Draw(t, who) {
			f.Approvals = append(f.Approvals, policies.Approval{User: who, MayWrite: true, Current: rapid.IntRange(0, 3).Draw(t, "current") > 0,
				At: noon.Add(-time.Duration(rapid.IntRange(0, 2).Draw(t, "at")) * time.Hour), Teams: rapid.SampledFrom([][]string{nil, {"acme/sre"}}).Draw(t, "teams")})
		}
	}
	if rapid.IntRange(0, 4).Draw(t, "rejected") == 0 {
		f.Rejections = []policies.Approval{{User: "ken", MayWrite: true}}
	}
	if f.FilesRead = rapid.Bool().Draw(t, "filesRead"); f.FilesRead {
		f.Files = []policies.OwnedFile{{Path: "apps/web/qa/k.yaml", Owners: rapid.SampledFrom([][]string{nil, {"ada"}, {"acme/sre"}}).Draw(t, "owners")}}
	}
	if rapid.IntRange(0, 4).Draw(t, "teamsErr") == 0 {
		f.TeamsErr = map[string]string{"acme/sre": "away"}
	}
	f.ApprovalsErr = rapid.SampledFrom([]string{"", "", "", "away"}).Draw(t, "approvalsErr")
	f.AuthorsErr = rapid.SampledFrom([]string{"", "", "", "away"}).Draw(t, "authorsErr")
	f.Authors = rapid.SampledFrom([][]policies.Account{nil, {{ID: 1, Login: "bob"}}, {{ID: 5, Login: "linus-t"}}, {{ID: 1, Login: "bob"}, {Login: "linus"}}, {{ID: 2, Login: "grace"}, {ID: 9, Login: "Eve"}}}).Draw(t, "authors")
	f.ChecksErr = rapid.SampledFrom([]string{"", "", "", "away"}).Draw(t, "checksErr")
	if rapid.Bool().Draw(t, "releaseChecksRead") {
		f.ReleaseChecks = []policies.ReleaseChecks{{Environment: "dev", Commit: "c", Err: rapid.SampledFrom([]string{"", "", "away"}).Draw(t, "releaseChecksErr"),
			Checks: []policies.Check{{Name: "ci", State: rapid.SampledFrom([]policies.CheckState{policies.CheckPassed, policies.CheckPassed, policies.CheckFailed}).Draw(t, "releaseCheck")}}}}
	}
	if f.ChecksRead = rapid.IntRange(0, 3).Draw(t, "checksRead") > 0; f.ChecksRead {
		f.Checks = []policies.Check{{Name: "ci", State: rapid.SampledFrom([]policies.CheckState{policies.CheckPassed, policies.CheckPassed, policies.CheckPending, policies.CheckFailed}).Draw(t, "check")}}
	}
	if rapid.IntRange(0, 3).Draw(t, "released") > 0 {
		f.Promotion = &policies.Promotion{Release: &policies.Release{Name: "r2"}}
		if rapid.Bool().Draw(t, "image") {
			f.Promotion.Release.Images = []policies.Image{{Name: "web", Tag: "r2"}}
		}
	}
	return f
}

// drawSkips are random skips, of which some count. They are of gates of any kind. An author of the
// release gives them (who may have another name by now), or the person who gave the command to
// promote it, a second person, or a token.
func drawSkips(t *rapid.T, now time.Time, kinds []string) []Skip {
	var out []Skip
	for range rapid.IntRange(0, 3).Draw(t, "skips") {
		at := now.Add(rapid.SampledFrom([]time.Duration{-5 * time.Hour, -SkipDuration, time.Second - SkipDuration, -time.Hour, 0, policies.MaxClockAhead, policies.MaxClockAhead + 1, 24 * time.Hour}).Draw(t, "skippedAt"))
		out = append(out, Skip{Gate: policies.GateName(rapid.SampledFrom(kinds).Draw(t, "skip")), By: rapid.SampledFrom([]string{"linus", "LINUS", "eve", "ken"}).Draw(t, "by"), ByID: rapid.SampledFrom([]int64{0, 5}).Draw(t, "byID"), At: at, Until: at.Add(SkipDuration),
			Via: rapid.SampledFrom([]string{"", "", "api"}).Draw(t, "via"), Err: rapid.SampledFrom([]string{"", "", "", "left"}).Draw(t, "skipErr")})
	}
	return out
}

// countsAt says whether a skip counts: that of a second person, while it holds.
func (s *Skip) countsAt(now time.Time, r *policies.Facts, allowSelf bool) bool {
	isAuthor := slices.ContainsFunc(r.Authors, func(a policies.Account) bool {
		return strings.EqualFold(a.Login, s.By) || a.ID != 0 && a.ID == s.ByID
	})
	second := s.Via == "api" || allowSelf || r.AuthorsErr == "" && !isAuthor
	return second && s.Err == "" && now.Before(s.Until) && !s.At.After(now.Add(policies.MaxClockAhead))
}

// TestNothingMergesPastAGate holds, over random gates, floors, facts, skips and times, that a merge
// is decided exactly while every gate passes at that very moment, and of the judged head. No skip
// passes the server file's gates, and the next decision comes no later than any gate says.
func TestNothingMergesPastAGate(t *testing.T) {
	merges, waits, skipped, kept := 0, 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		var own []policies.Gate
		for range rapid.IntRange(0, 3).Draw(t, "gates") {
			own = append(own, drawGate(t))
		}
		limit, freezes := drawFloor(t)
		f := gatedFacts(slices.Concat(policies.ApplyFloor(own, limit), freezes)...)
		f.Now = noon.Add(time.Duration(rapid.IntRange(-30*60, 30*60).Draw(t, "now")) * time.Minute)
		e := f.env("qa")
		p := e.Open
		p.Review = drawReview(t)
		drawReadings(t, f.Now, &p.Review)
		soak := drawSoak(t, f.Now)
		f.env("dev").History[0].Soak = soak
		e.Spec.Gates, e.Floor = own, slices.Concat(policies.ApplyFloor(nil, limit), freezes)
		e.SyncWindows = drawSyncWindows(t, f.Now)
		verdict, drift := drawDrift(t)
		e.Targets[0].Verdict = verdict
		kinds := []string{"window", "approvals", "freeze"}
		for i := range own {
			kinds = append(kinds, string(own[i].Name()))
		}
		p.Skips = drawSkips(t, f.Now, kinds)
		allowSelf := rapid.IntRange(0, 3).Draw(t, "allowSelf") == 0
		f.Pipeline.Spec.BreakGlass = rapid.SampledFrom([]*pipeline.BreakGlass{nil, {}}).Draw(t, "breakGlass")
		if allowSelf {
			f.Pipeline.Spec.BreakGlass = &pipeline.BreakGlass{AllowSelf: true}
		}
		d := decideAlone(t, *f)

		isSkipped := func(kind policies.GateName) bool {
			return slices.ContainsFunc(p.Skips, func(k Skip) bool { return k.Gate == kind && k.countsAt(f.Now, &p.Review, allowSelf) })
		}
		facts := p.Review
		facts.Now, facts.SyncWindows, facts.Drift = f.Now, e.SyncWindows, []policies.TargetDrift{drift}
		facts.Soaked = []policies.Soaked{{Environment: "dev", Direct: true, Running: soak.Served, Goes: !soak.Seen.IsZero() && !soak.Paused, Longest: soak.Longest}}
		var evaluated []policies.Gate
		for _, g := range e.Gates {
			if !isSkipped(g.Name()) {
				evaluated = append(evaluated, g)
			}
		}
		for _, g := range e.Floor {
			if isSkipped(g.Name()) {
				evaluated = append(evaluated, g)
			}
		}
		for _, g := range evaluated {
			if g.Approvals != nil {
				facts.ApprovalGates = append(facts.ApprovalGates, g.Approvals)
			}
		}
		pass := true
		for _, g := range evaluated {
			r := g.Evaluate(facts)
			pass = pass && r.Outcome == policies.Pass
			if !r.Next.IsZero() && (d.Next.IsZero() || d.Next.After(r.Next)) || !r.Until.IsZero() && (d.Next.IsZero() || d.Next.After(r.Until)) {
				t.Fatalf("it looks again at %s, the gate says %+v", d.Next, r)
			}
		}
		for _, k := range p.Skips {
			if isSkipped(k.Gate) && k.countsAt(f.Now, &p.Review, allowSelf) && (d.Next.IsZero() || d.Next.After(k.Until)) && slices.ContainsFunc(own, func(g policies.Gate) bool { return g.Name() == k.Gate }) && len(p.Skips) == 1 {
				t.Fatalf("it looks again at %s, and a skip ends at %s", d.Next, k.Until)
			}
		}
		i := slices.IndexFunc(d.Actions, func(a Action) bool { _, is := a.(Merge); return is })
		switch {
		case i >= 0 && !pass:
			t.Fatalf("it merges past its gates: %+v", d.Env("qa").Gates)
		case i < 0 && pass:
			t.Fatalf("it waits although all gates pass: %+v", d.Env("qa"))
		case i < 0:
			waits++
			return
		}
		merges++
		m := d.Actions[i].(Merge)
		if m.Head != p.Head || !m.Until.IsZero() && !m.Until.After(f.Now) {
			t.Fatalf("it merges %s until %s, judged was %s", m.Head, m.Until, p.Head)
		}
		for _, g := range evaluated {
			if r := g.Evaluate(facts); !r.Until.IsZero() && (m.Until.IsZero() || m.Until.After(r.Until)) {
				t.Fatalf("it merges until %s, a gate says %+v", m.Until, r)
			}
		}
		for _, g := range own {
			lasts := func(k Skip) bool {
				return k.Gate == g.Name() && k.countsAt(f.Now, &p.Review, allowSelf) && !m.Until.IsZero() && !k.Until.Before(m.Until)
			}
			if isSkipped(g.Name()) && g.Evaluate(facts).Outcome != policies.Pass && !slices.ContainsFunc(p.Skips, lasts) {
				t.Fatalf("it merges until %s, by skips that are over then: %+v", m.Until, p.Skips)
			}
		}
		// The server file's gates pass by themselves, whatever was skipped.
		alone := facts
		alone.ApprovalGates = nil
		if limit != nil {
			alone.ApprovalGates = []*policies.Approvals{limit}
		}
		for _, g := range e.Floor {
			kept++
			if r := g.Evaluate(alone); r.Outcome != policies.Pass {
				t.Fatalf("it merges past the server's floor %+v: %+v", r, d.Env("qa").Gates)
			}
		}
		if slices.ContainsFunc(own, func(g policies.Gate) bool { return isSkipped(g.Name()) }) {
			skipped++
		}
	})
	if merges < 20 || waits < 20 {
		t.Errorf("only %d merges and %d waits were tried", merges, waits)
	}
	t.Logf("%d merges, of which %d by a skip, past %d conditions of the server's that passed; %d waits", merges, skipped, kept, waits)
}
