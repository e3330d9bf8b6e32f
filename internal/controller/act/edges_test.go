package act

import (
	"slices"
	"testing"

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
