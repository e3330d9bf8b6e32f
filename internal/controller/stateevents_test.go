package controller

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/pipeline/event"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/policies"
)

func TestNoteworthyStates(t *testing.T) {
	wait := []policies.Result{{Gate: "hold", Outcome: policies.Wait, Reason: "the pull request has the label"}, {Gate: "approvals", Outcome: policies.Wait, Reason: "1 of 2 approvals"}}
	for name, c := range map[string]struct {
		env  promotion.EnvState
		want map[string]string
	}{
		"nothing":         {promotion.EnvState{State: promotion.Verified, Promotion: promotion.Opened, Pull: 3, Gates: []policies.Result{{Gate: "approvals", Outcome: policies.Pass}}}, nil},
		"failed":          {promotion.EnvState{State: promotion.Failed, Name: "1.2", LandedPull: 2, Reason: "not synced"}, map[string]string{"failed": "1.2 failed in qa: not synced"}},
		"failed, unnamed": {promotion.EnvState{State: promotion.Failed, Reason: "not synced"}, map[string]string{"failed": "what is there failed in qa: not synced"}},
		"diverged":        {promotion.EnvState{State: promotion.Diverged, Reason: "linus changed it by hand"}, map[string]string{"diverged": "qa: linus changed it by hand"}},
		"untold": {promotion.EnvState{State: promotion.Verifying, Targets: map[string]promotion.TargetView{
			"web-c": {Reason: "well"}, "web-b": {Untold: true, Reason: "health is Unknown"}, "web-a": {Untold: true, Reason: "it is away"},
		}}, map[string]string{"untold": "web-a in qa: it is away (and 1 other target)"}},
		"untold, one":       {promotion.EnvState{State: promotion.Verified, Targets: map[string]promotion.TargetView{"web-b": {Untold: true, Reason: "health is Unknown"}}}, map[string]string{"untold": "web-b in qa: health is Unknown"}},
		"held and waiting":  {promotion.EnvState{Promotion: promotion.Held, Pull: 3, CandidateName: "1.3", Gates: wait}, map[string]string{"held": "#3 into qa is held: the pull request has the label", "waiting": "#3 brings 1.3 to qa and waits: 1 of 2 approvals"}},
		"held without one":  {promotion.EnvState{Promotion: promotion.Held}, nil},
		"gates without one": {promotion.EnvState{Promotion: promotion.Waiting, Gates: wait}, nil},
	} {
		c.env.Environment = "qa"
		got := map[string]string{}
		for kind, s := range noteworthyStates(&c.env) {
			got[string(kind)] = s.text
		}
		if !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestStatesAreNotifiedOnce holds that a state is told when it begins, not with every look,
// and again when it begins again.
func TestStatesAreNotifiedOnce(t *testing.T) {
	w := newFixture(t, "", manualQA, "web")
	p := w.openOne("web", "2.0.0", "web")
	held := func() (n int) {
		t.Helper()
		all, err := w.opts.Store.Events(t.Context(), store.EventFilter{Limit: 1000})
		w.must(err)
		for _, e := range all {
			if e.Kind == event.Held && e.Pull == p.Number && strings.Contains(e.Message, "is held: the pull request has the label") {
				n++
			}
		}
		return n
	}
	for i, verb := range []command.Verb{command.Hold, command.Unhold, command.Hold} {
		_, err := w.command("ada", p.Number, "web", command.Command{Verb: verb, Reason: strings.Repeat("x", i)})
		w.must(err)
		w.settle("web", string(verb), func() bool {
			return slices.Contains(w.pulls()[0].Labels, promotion.LabelHold) == (verb == command.Hold)
		})
		for range 3 {
			w.must(w.run(wake.ForUnit(w.unit("web"))))
		}
		if want := i/2 + 1; held() != want {
			t.Errorf("after %d commands it was told %d times, want %d", i+1, held(), want)
		}
	}
}

// TestBrokenRecordOfAUnit holds that a reader that can't read the last decision about a unit names
// the unit, and that its next run writes it anew.
func TestBrokenRecordOfAUnit(t *testing.T) {
	w := newFixture(t, "", manualQA, "web")
	p := w.openOne("web", "2.0.0", "web")
	name := wake.UnitName(w.unit("web"))
	row, _, err := w.opts.Store.Unit(t.Context(), name)
	w.must(err)
	row.Data, row.Digest = []byte(`{"decision": 7}`), "broken"
	w.must(w.opts.Store.Tx(t.Context(), "broken", func(tx *store.Tx) error { return tx.PutUnit(t.Context(), row) }))
	if err := w.run(wake.ForSweep(w.repo.ID)); err == nil || !strings.Contains(err.Error(), "read the view of "+name) {
		t.Errorf("a sweep ended with %v", err)
	}
	w.must(w.forge.AddLabel(repoName, p.Number, "linus", promotion.LabelHold))
	if err := w.run(wake.ForPull(w.repo.ID, p.Number)); err != nil {
		t.Errorf("its pull request's run ended with %v", err)
	}
	if err := w.run(wake.ForUnit(w.unit("web"))); err == nil || !strings.Contains(err.Error(), "read the unit "+name) {
		t.Errorf("its own run, which has something to say, ended with %v", err)
	}
	w.must(w.forge.RemoveLabel(repoName, p.Number, "linus", promotion.LabelHold))
	w.must(w.run(wake.ForPull(w.repo.ID, p.Number)))
	w.must(w.run(wake.ForUnit(w.unit("web"))))
	w.must(w.run(wake.ForSweep(w.repo.ID)))
}
