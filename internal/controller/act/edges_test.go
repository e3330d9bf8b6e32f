package act

import (
	"slices"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// TestDegradedCause names the first target that is degraded, and says how many more there are.
func TestDegradedCause(t *testing.T) {
	t.Parallel()
	well := promotion.Target{Name: "well", Verdict: verification.Verdict{State: verification.Verified}}
	bad := func(name string) promotion.Target {
		return promotion.Target{Name: name, Verdict: verification.Verdict{State: verification.Degraded, Reason: "it crashes"}}
	}
	for want, targets := range map[string][]promotion.Target{
		"":                             {well},
		": a: it crashes":              {well, bad("a"), well},
		": a: it crashes (and 1 more)": {bad("a"), bad("b")},
		": b: it crashes (and 2 more)": {well, bad("b"), bad("a"), bad("c")},
	} {
		if got := degradedCause(&promotion.Env{Targets: targets}); got != want {
			t.Errorf("it says %q, want %q", got, want)
		}
	}
}

// TestDeploymentsOfReverts says on the forge what went back, and how many components did.
func TestDeploymentsOfReverts(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "  batch: environment\n  deployments: true\n", "api", "web")
	w.open("2.0.0")
	ev, d := w.evaluate()
	members := []promotion.Member{{Component: "api", Release: "r1", Name: "2.0.0"}, {Component: "web", Release: "r2", Name: "2.0.0"}}
	w.must(w.do(ev, d, promotion.SetDeployment{Environment: "qa", Commit: "back", At: w.now, State: promotion.DeploymentInProgress, Pull: 2, Revert: true, Members: members}))
	w.compare("how many there are", len(w.forge.deployments), 1)
	made := w.forge.deployments[0]
	w.compare("what is made", []any{made.Description, made.Payload["release"], made.Payload["kind"], made.Payload["component"]}, []any{"2 components (#2)", promotion.BatchID(members), promotion.KindRevert, promotion.BatchName})
}

// TestLabelsThatAreOver takes off the labels of skips that don't count, and one that would
// make a person's close no veto.
func TestLabelsThatAreOver(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "web")
	n := w.open("2.0.0")
	ev, _ := w.evaluate()
	p := ev.OpenPulls[n]
	p.Skips = []promotion.Skip{{Gate: "soak", By: "ada"}, {Gate: "checks", By: "grace", Err: "grace may not write any more"}}
	p.PR.Labels = []string{promotion.LabelOurs, "x", promotion.LabelSkipped + "soak", promotion.LabelSkipped + "checks", promotion.LabelSkipped + "window", promotion.LabelSuperseded}
	w.forge.pulls[n].Labels = slices.Clone(p.PR.Labels)
	s := &subject{ev: ev, env: "qa", number: n, pull: p}
	w.must(w.actor.putLabels(w.ctx(), s, []string{promotion.LabelOurs, promotion.LabelHold}))
	w.compare("the labels", w.forge.pulls[n].Labels, []string{promotion.LabelOurs, promotion.LabelHold, promotion.LabelSkipped + "soak", "x"})
}

// TestLandingShownAt holds when a merged pull request is said to be verified: a while after the last
// of what it moved landed, and at once where there is more to say of any of them.
func TestLandingShownAt(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	verifying := func(ago time.Duration) promotion.EnvState {
		return promotion.EnvState{Environment: "qa", State: promotion.Verifying, LandedPull: 7, Since: now.Add(-ago)}
	}
	with := func(st promotion.EnvState, change func(*promotion.EnvState)) promotion.EnvState {
		change(&st)
		return st
	}
	for name, c := range map[string]struct {
		api, web promotion.EnvState
		want     time.Time
	}{
		"the last that landed counts":       {verifying(9 * time.Second), verifying(5 * time.Second), now.Add(landingGrace - 5*time.Second)},
		"whatever their order":              {verifying(5 * time.Second), verifying(9 * time.Second), now.Add(landingGrace - 5*time.Second)},
		"by the forge's clock, at most now": {verifying(-time.Hour), verifying(5 * time.Second), now.Add(landingGrace)},
		"one is verified":                   {verifying(9 * time.Second), with(verifying(5*time.Second), func(st *promotion.EnvState) { st.State = promotion.Verified }), time.Time{}},
		"one has something else by now":     {with(verifying(9*time.Second), func(st *promotion.EnvState) { st.LandedPull = 8 }), verifying(5 * time.Second), time.Time{}},
		"one has no such environment":       {verifying(9 * time.Second), with(verifying(5*time.Second), func(st *promotion.EnvState) { st.Environment = "prod" }), time.Time{}},
	} {
		ev, d := &facts.Evaluation{}, &promotion.Decision{}
		s := &subject{ev: ev, d: d, env: "qa", number: 7}
		for component, st := range map[string]promotion.EnvState{"api": c.api, "web": c.web} {
			of := &facts.ComponentEvaluation{}
			of.Facts.Unit.Component = component
			ev.Components = append(ev.Components, of)
			d.Components = append(d.Components, promotion.ComponentDecision{Envs: []promotion.EnvState{st}})
			s.members = append(s.members, promotion.Member{Component: component})
		}
		a := &Actor{opts: Options{Now: func() time.Time { return now }}}
		if got := a.landingShownAt(s); !got.Equal(c.want) {
			t.Errorf("%s: at %s, want %s", name, got, c.want)
		}
		s.members = append(s.members, promotion.Member{Component: "gone"})
		if got := a.landingShownAt(s); !got.IsZero() {
			t.Errorf("%s, and one is gone: at %s", name, got)
		}
	}
}

// TestEndpointsAreReset forgets what endpoints said of a pull request, and of no other.
func TestEndpointsAreReset(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "web")
	ev, d := w.evaluate()
	for _, key := range []string{"endpoints|hub:acme/fleet|1|abc", "endpoint|abc", "endpoints|hub:acme/fleet|2|def", "endpoint|def"} {
		w.must(w.store.PutState(w.ctx(), key, []byte("{}")))
	}
	w.must(w.do(ev, d, promotion.ResetEndpoints{Environment: "qa", Pull: 1}))
	for key, want := range map[string]bool{"endpoints|hub:acme/fleet|1|abc": false, "endpoint|abc": false, "endpoints|hub:acme/fleet|2|def": true, "endpoint|def": true} {
		_, ok, err := w.store.State(w.ctx(), key)
		w.must(err)
		w.compare(key, ok, want)
	}
}
