package act

import (
	"errors"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store/record"
)

// TestSetDeploymentFails holds that a deployment is created once whatever fails. An earlier one is
// found where the store doesn't know it. A refusal by the forge is recorded and fails nothing.
func TestSetDeploymentFails(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "  deployments: true\n", "web")
	w.open("2.0.0")
	ev, d := w.evaluate()
	unit := ev.Unit
	at := w.now.Add(-time.Minute)
	set := promotion.SetDeployment{Environment: "qa", Commit: "merged", At: at, State: promotion.DeploymentInProgress, Reason: "syncing", Pull: 1, Members: []promotion.Member{{Component: "web", Release: "r2", Name: "2.0.0"}}}
	known := func() facts.StoredDeployments {
		t.Helper()
		k, err := facts.ReadDeployments(w.ctx(), w.store, unit)
		w.must(err)
		return k
	}
	task := promotion.DeploymentTask(unit)
	w.failEach(func() (func() error, func()) {
		w.must(w.store.DeleteRecord(w.ctx(), facts.Deployments.Key(record.Unit(unit))))
		w.forge.deployments = []forge.Deployment{{ID: 901, Environment: "qa", Task: task, Commit: "before", CreatedAt: at.Add(-time.Hour)}, {ID: 902, Environment: "qa", Task: task, Commit: "later", CreatedAt: at.Add(time.Second)}}
		w.forge.deploymentStates = map[int64]forge.DeploymentState{901: forge.DeploymentSuccess}
		return func() error { return w.do(ev, d, set) }, func() {
			w.compare("how many there are", len(w.forge.deployments), 3)
			made := w.forge.deployments[2]
			w.compare("its state", w.forge.deploymentStates[made.ID], forge.DeploymentInProgress)
			w.compare("what is made", []any{made.Environment, made.Task, made.Commit, made.Description, made.Payload["release"], made.Payload["kind"]}, []any{"qa", "liftlock:shop/web", "merged", "web 2.0.0 (#1)", "r2", "promotion"})
			w.compare("written down", known(), facts.StoredDeployments{"qa": {
				{DeploymentRecord: promotion.DeploymentRecord{Commit: "before", At: at.Add(-time.Hour)}, ID: 901},
				{DeploymentRecord: promotion.DeploymentRecord{Commit: "merged", At: at, State: promotion.DeploymentInProgress}, ID: made.ID},
			}})
		}
	})
	ev, d = w.evaluate()
	w.compare("as a fact", len(ev.Facts().Deployments.Records["qa"]), 2)
	for state, want := range map[forge.DeploymentState]forge.DeploymentState{forge.DeploymentSuccess: forge.DeploymentInactive, forge.DeploymentFailure: forge.DeploymentFailure} {
		w.forge.deploymentStates[901] = state
		w.must(w.do(ev, d, promotion.SetDeployment{Environment: "qa", Commit: "before", At: at, State: promotion.DeploymentInactive}))
		w.compare("what is over", w.forge.deploymentStates[901], want)
		_, still := known().Find("qa", "before")
		w.compare("it is forgotten", still, false)
		stored := known()
		stored.Put("qa", facts.StoredDeployment{ID: 901, DeploymentRecord: promotion.DeploymentRecord{Commit: "before", At: at}}, func(string) bool { return true })
		w.must(facts.Deployments.Put(w.ctx(), w.store, record.Unit(unit), stored))
	}
	w.forge.deployments = nil // somebody deleted them
	w.must(w.do(ev, d, promotion.SetDeployment{Environment: "qa", Commit: "before", At: at, State: promotion.DeploymentInactive}))
	w.compare("refusals of what is over", len(w.actor.DeploymentRefusals()), 0)

	w.must(w.store.DeleteRecord(w.ctx(), facts.Deployments.Key(record.Unit(unit))))
	set.Commit = ev.Components[0].Env("qa").Landed.Value.Commit
	for name, c := range map[string]struct {
		err  error
		want string // what is said; empty: the action fails and nothing is written down
	}{
		"no permission":  {&forge.Error{Op: "create", Kind: forge.ErrForbidden, Status: 403, Message: "Resource not accessible", Hint: "the token needs the permission deployments=write"}, "Resource not accessible; the token needs the permission deployments=write"},
		"refused":        {&forge.Error{Op: "create", Kind: forge.ErrInvalid}, "create: refused by the forge"},
		"away":           {&forge.Error{Op: "create", Kind: forge.ErrRetryable}, ""},
		"too many calls": {&forge.Error{Op: "create", Kind: forge.ErrRateLimited}, ""},
	} {
		w.must(w.store.DeleteRecord(w.ctx(), facts.Deployments.Key(record.Unit(unit))))
		w.forge.refuseDeployments = c.err
		err := w.do(ev, d, set)
		got, is := known().Find("qa", set.Commit)
		if c.want == "" {
			if !errors.Is(err, c.err.(*forge.Error).Kind) || is {
				t.Errorf("%s: %v, %+v", name, err, got)
			}
			continue
		}
		w.must(err)
		if refusal := w.actor.DeploymentRefusals()[w.repo.ID]; got.Refused != c.want || !got.RefusedAt.Equal(w.now) || refusal.Reason != c.want {
			t.Errorf("%s: %+v, %+v", name, got, refusal)
		}
	}
	if n := w.logs.FilterMessageSnippet("takes no deployments").Len(); n != 1 {
		t.Errorf("it is logged %d times", n)
	}
	w.forge.refuseDeployments = nil
	w.must(w.do(ev, d, set))
	w.compare("refusals", len(w.actor.DeploymentRefusals()), 0)
}
