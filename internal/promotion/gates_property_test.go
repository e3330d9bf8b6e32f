package promotion

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/liftlock/liftlock/policies"
)

// drawGate is a gate at random, some of which pass now and then.
func drawGate(t *rapid.T) policies.Gate {
	pick := func(label string, from ...string) string { return rapid.SampledFrom(from).Draw(t, label) }
	switch rapid.IntRange(0, 8).Draw(t, "kind") {
	case 0:
		a := &policies.Approvals{Count: rapid.IntRange(1, 2).Draw(t, "count"), Distinct: rapid.Bool().Draw(t, "distinct"), MaxAge: rapid.SampledFrom([]time.Duration{0, 0, time.Hour}).Draw(t, "maxAge")}
		switch pick("from", "", "", "team", "owners") {
		case "team":
			a.From.Teams = []string{"acme/sre"}
		case "owners":
			a.From.Codeowners = true
		}
		return policies.Gate{Approvals: a}
	case 1:
		return policies.Gate{Window: &policies.Window{Cron: pick("cron", "0 9 * * *", "30 11 * * MON-7", "* * * * *", "0 0 31 * *", "@daily"), Duration: time.Duration(rapid.IntRange(1, 600).Draw(t, "minutes")) * time.Minute, Timezone: pick("zone", "UTC", "Europe/Berlin", "Asia/Kolkata")}}
	case 2:
		days := []string{"2026-03-01", "2026-03-02", "2026-03-03", "2026-03-04"}
		return policies.Gate{Freeze: &policies.Freeze{From: policies.Moment(pick("from", days...)), To: policies.Moment(pick("to", days...)), Timezone: "Europe/Berlin"}}
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
	}
	return policies.Gate{}
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

// drawSkips are skips at random, of which some count.
func drawSkips(t *rapid.T, now time.Time) []Skip {
	var out []Skip
	for range rapid.IntRange(0, 2).Draw(t, "skips") {
		out = append(out, Skip{Gate: rapid.SampledFrom(policies.Kinds()).Draw(t, "skip"), By: "linus", Until: now.Add(time.Duration(rapid.IntRange(-1, 2).Draw(t, "for")) * time.Hour),
			Via: rapid.SampledFrom([]string{"", "api"}).Draw(t, "via"), Err: rapid.SampledFrom([]string{"", "", "left"}).Draw(t, "skipErr")})
	}
	return out
}

// TestNothingMergesPastAGate holds, over random gates, facts and times, that a merge is
// decided exactly while every gate passes at that very moment, of the head that was
// judged, and that it is looked at again no later than any of them says.
func TestNothingMergesPastAGate(t *testing.T) {
	merges, waits := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		var gates []policies.Gate
		for range rapid.IntRange(0, 3).Draw(t, "gates") {
			gates = append(gates, drawGate(t))
		}
		f := gatedFacts(gates...)
		f.Now = noon.Add(time.Duration(rapid.IntRange(-30*60, 30*60).Draw(t, "now")) * time.Minute)
		p := f.env("qa").Open
		p.Review = drawReview(t)
		drawReadings(t, f.Now, &p.Review)
		soak := drawSoak(t, f.Now)
		e := f.env("qa")
		e.Spec.Gates = gates
		e.Open.Skips = drawSkips(t, f.Now)
		f.env("dev").History[0].Soak = soak
		d := decideAlone(t, *f)
		facts := p.Review
		facts.Now = f.Now
		facts.Soaked = []policies.Soaked{{Environment: "dev", Direct: true, Running: soak.Served, Goes: !soak.Seen.IsZero() && !soak.Paused, Longest: soak.Longest}}
		isSkipped := func(g *policies.Gate) bool {
			return slices.ContainsFunc(p.Skips, func(k Skip) bool {
				return k.Gate == g.Name() && k.Err == "" && f.Now.Before(k.Until) && (k.Via == "api" || p.Review.AuthorsErr == "")
			})
		}
		for i := range gates {
			if gates[i].Approvals != nil && !isSkipped(&gates[i]) {
				facts.ApprovalGates = append(facts.ApprovalGates, gates[i].Approvals)
			}
		}
		pass := true
		for i := range gates {
			r := gates[i].Evaluate(facts)
			pass = pass && (r.Outcome == policies.Pass || isSkipped(&gates[i]))
			if !r.Next.IsZero() && (d.Next.IsZero() || d.Next.After(r.Next)) || !r.Until.IsZero() && (d.Next.IsZero() || d.Next.After(r.Until)) {
				t.Fatalf("it looks again at %s, the gate says %+v", d.Next, r)
			}
		}
		i := slices.IndexFunc(d.Actions, func(a Action) bool { _, is := a.(Merge); return is })
		switch {
		case i >= 0 && !pass:
			t.Fatalf("it merges past its gates: %+v", d.Env("qa").Gates)
		case i < 0 && pass:
			t.Fatalf("it waits although all gates pass: %+v", d.Env("qa"))
		case i >= 0:
			merges++
			if m := d.Actions[i].(Merge); m.Head != p.Head {
				t.Fatalf("it merges %s, judged was %s", m.Head, p.Head)
			}
		default:
			waits++
		}
	})
	if merges < 20 || waits < 20 {
		t.Errorf("only %d merges and %d waits were tried", merges, waits)
	}
}
