package act

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/world/faulttest"
)

func unitName(w *fixture, component string) string { return wake.UnitName(w.unit(component)) }

// arrival is what is written down of what is in an environment.
func (f *fixture) arrival(component, env string) store.Arrival {
	f.t.Helper()
	all, err := f.store.Arrivals(f.ctx(), unitName(f, component))
	f.must(err)
	for _, a := range all {
		if a.Environment == env {
			return a
		}
	}
	f.t.Fatalf("nothing arrived in %s", env)
	return store.Arrival{}
}

func TestRecordVerification(t *testing.T) {
	eachKind(t, func(w *fixture) {
		n := w.land("2.0.0")
		w.evaluate()
		w.now = w.now.Add(time.Hour)
		ev, d := w.evaluate()
		w.metrics.recorded = nil
		c := ev.Components[0]
		env := c.Env("qa")
		name := c.Facts.Unit.Component
		record := promotion.Record{Environment: "qa", Release: env.Release.Value.ID, Commit: env.Landed.Value.Commit, Verified: true}
		took, measured := c.Facts.Now.Sub(env.History[0].At), c.Facts.MeasureDelivery(record)

		other := record
		other.Release = "another"
		w.must(w.do(ev, d, other))
		other = record
		other.Commit = "another"
		w.must(w.do(ev, d, other))
		w.compare("what isn't there", []any{w.arrival(name, "qa").VerifiedAt, w.events("verified")[len(w.names):], w.metrics.recorded}, []any{time.Time{}, []string{}, []string(nil)})
		for range 2 {
			w.must(w.do(ev, d, record))
			a := w.arrival(name, "qa")
			w.compare("the arrival", []any{a.VerifiedAt.Equal(c.Facts.Now), a.DegradedAt, a.Release, a.Commit}, []any{true, time.Time{}, record.Release, record.Commit})
			w.compare("the row", []any{w.promotionOf(name, n).State, w.promotionOf(name, n).Kind, w.promotionOf(name, n).Release}, []any{promotion.Verified, "promotion", record.Release})
			w.compare("events", w.events("verified")[len(w.names):], []string{name + ": " + env.History[0].Name + " is verified in qa"})
		}
		w.compare("metrics", w.metrics.recorded[:2], []string{fmt.Sprintf("qa verified %s", took), fmt.Sprintf("shop/qa %+v", measured)})

		ev, d = w.evaluate()
		record.Verified, record.Degraded = false, true
		w.metrics.recorded = nil
		for range 2 {
			w.must(w.do(ev, d, record))
			a := w.arrival(name, "qa")
			w.compare("the arrival", []any{a.VerifiedAt.IsZero(), a.DegradedAt.Equal(ev.Now)}, []any{false, true})
			w.compare("the row", w.promotionOf(name, n).State, promotion.Degraded)
			w.compare("events", w.events("degraded"), []string{name + ": " + env.History[0].Name + " is degraded in qa"})
		}
		w.compare("metrics", strings.HasPrefix(w.metrics.recorded[0], "qa degraded 1h"), true)
	})
}

func TestRecordVerificationOfARevert(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "web")
	n := w.land("2.0.0")
	ev, d, revert := w.requestRevert()
	w.must(w.do(ev, d, revert))
	ev, d = w.evaluate()
	w.must(w.do(ev, d, w.merge(ev, n+1)))
	ev, d = w.evaluate()
	env := ev.Components[0].Env("qa")
	w.must(w.do(ev, d, promotion.Record{Environment: "qa", Release: env.Release.Value.ID, Commit: env.Landed.Value.Commit, Verified: true}))
	p := w.promotionOf("web", n+1)
	w.compare("the revert's row", []string{p.Kind, p.State, p.Release}, []string{"revert", promotion.Verified, revert.Release})
}

func TestArgoCDIsRequested(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "web")
	ev, d := w.evaluate()
	w.must(w.do(ev, d, promotion.Refresh{Environment: "qa", Target: "web-qa"}))
	w.must(w.do(ev, d, promotion.Sync{Environment: "qa", Target: "web-qa", Tip: "c1"}))
	w.compare("requests", w.argocd.requests, []string{"refresh argocd/web-qa", "sync argocd/web-qa to c1, prune auto: Liftlock: 1.0.0 of web in qa"})
	for _, a := range []promotion.Action{promotion.Refresh{Environment: "qa", Target: "gone"}, promotion.Refresh{Environment: "nowhere", Target: "web-qa"}, promotion.Sync{Environment: "qa", Target: "web-dev"}} {
		w.mustBeStale(w.do(ev, d, a), "is no target any more")
	}
	w.faults = faulttest.Faults{At: 1}
	if err := w.do(ev, d, promotion.Refresh{Environment: "qa", Target: "web-qa"}); !errors.Is(err, faulttest.ErrInjected) || !strings.Contains(err.Error(), "refresh web-qa") {
		t.Errorf("it failed with %v", err)
	}
	w.faults = faulttest.Faults{At: 1}
	if err := w.do(ev, d, promotion.Sync{Environment: "qa", Target: "web-qa"}); !errors.Is(err, faulttest.ErrInjected) {
		t.Errorf("it failed with %v", err)
	}
	w.compare("requests", len(w.argocd.requests), 2)
	targets := ev.Components[0].Unit.Envs["qa"].Targets
	targets[0].ArgoCD = "other"
	for _, a := range []promotion.Action{promotion.Refresh{Environment: "qa", Target: "web-qa"}, promotion.Sync{Environment: "qa", Target: "web-qa"}} {
		if err := w.do(ev, d, a); err == nil || errors.Is(err, ErrStale) || !strings.Contains(err.Error(), `no Argo CD named "other"`) {
			t.Errorf("an unknown Argo CD: %v", err)
		}
	}
	other := &fakeArgoCD{w: w}
	w.actor.opts.ArgoCDs["other"] = other
	w.must(w.do(ev, d, promotion.Refresh{Environment: "qa", Target: "web-qa"}))
	w.compare("requests", []int{len(other.requests), len(w.argocd.requests)}, []int{1, 2})
}

func TestRestartVerification(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "web")
	w.verifyDev()
	unit := unitName(w, "web")
	dev, qa := w.gatherer.ArgoCDs.TargetName(&w.targets("dev")[0]), w.gatherer.ArgoCDs.TargetName(&w.targets("qa")[0])
	w.must(w.store.Tx(w.ctx(), "observed", func(tx *store.Tx) error {
		return tx.PutObservations(w.ctx(), store.Observation{Unit: unit, Environment: "dev", Target: dev, Data: []byte("{}")},
			store.Observation{Unit: unit, Environment: "qa", Target: qa, Data: []byte("{}")})
	}))
	w.now = w.now.Add(time.Hour)
	ev, d := w.evaluate()
	w.must(w.do(ev, d, promotion.RestartVerification{Environment: "dev"}))
	a := w.arrival("web", "dev")
	w.compare("the arrival", []any{a.At.Equal(ev.Now), a.VerifiedAt, a.DegradedAt, a.Commit}, []any{true, time.Time{}, time.Time{}, w.remoteHead("main")})
	left, err := w.store.Observations(w.ctx(), unit)
	w.must(err)
	if len(left) != 1 || left[0].Environment != "qa" {
		t.Errorf("the observations are %+v", left)
	}
	w.compare("events", w.events("retry"), []string{"web: the verification starts again"})
	ev.Components[0].Env("dev").Landed.OK = false
	at := a.At
	w.now = w.now.Add(time.Hour)
	w.must(w.do(ev, d, promotion.RestartVerification{Environment: "dev"}))
	w.compare("what isn't known to have landed", w.arrival("web", "dev").At, at)
}

// TestRestartVerificationWithASync remembers of the targets that are to be synced again which
// sync failed, and nothing of others.
func TestRestartVerificationWithASync(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "web")
	w.verifyDev()
	ev, d := w.evaluate()
	env := ev.Components[0].Env("dev")
	began := w.now.Add(-time.Minute)
	env.Targets[0].Verdict.Unsynced = &verification.Unsynced{LastSync: began}
	for _, resync := range [][]string{{"another"}, {env.Targets[0].Name}} {
		w.must(w.do(ev, d, promotion.RestartVerification{Environment: "dev", Resync: resync}))
		left, err := w.store.Observations(w.ctx(), unitName(w, "web"))
		w.must(err)
		if resync[0] != env.Targets[0].Name {
			w.compare("others are remembered", len(left), 0)
			continue
		}
		w.compare("remembered", len(left), 1)
		var memory verification.Memory
		w.must(json.Unmarshal(left[0].Data, &memory))
		w.compare("what is remembered", []any{left[0].Target, memory.Commit, memory.Release, memory.RetriedAfter.Equal(began)},
			[]any{env.Targets[0].ID, env.Landed.Value.Commit, env.Release.Value.ID, true})
	}
}

// TestRestartVerificationAfterIllness remembers of a target that it was unwell before the sync.
func TestRestartVerificationAfterIllness(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "web")
	w.verifyDev()
	ev, d := w.evaluate()
	env := ev.Components[0].Env("dev")
	env.Targets[0].Verdict.UnhealthyBefore = true
	w.must(w.do(ev, d, promotion.RestartVerification{Environment: "dev"}))
	left, err := w.store.Observations(w.ctx(), unitName(w, "web"))
	w.must(err)
	if len(left) != 1 {
		t.Fatalf("%d targets are remembered", len(left))
	}
	var memory verification.Memory
	w.must(json.Unmarshal(left[0].Data, &memory))
	w.compare("what is remembered", memory, verification.Memory{Commit: env.Landed.Value.Commit, Release: env.Release.Value.ID, UnhealthyBefore: true})
}

func TestLiftVeto(t *testing.T) {
	eachKind(t, func(w *fixture) {
		n := w.open("2.0.0")
		pr := w.forge.pulls[n]
		pr.State, pr.ClosedAt, pr.UpdatedAt = forge.Closed, w.now, w.now.Add(time.Minute)
		w.now = w.now.Add(time.Minute)
		w.must(w.gatherer.PullCache.RefreshPullRequests(w.ctx(), w.repo))
		ev, d := w.evaluate()
		for range 2 {
			w.must(w.do(ev, d, promotion.LiftVeto{Environment: "qa", Pull: n}))
			w.compare("it is marked", pr.HasLabel(promotion.LabelSuperseded), true)
		}
		_, d = w.evaluate() // which knows of it
		decided[promotion.Open](w, d)
		for at := 1; at <= 2; at++ {
			w.faults = faulttest.Faults{At: at}
			if err := w.do(ev, d, promotion.LiftVeto{Environment: "qa", Pull: n}); !errors.Is(err, faulttest.ErrInjected) || !strings.Contains(err.Error(), "forgive the closed #1") {
				w.t.Errorf("it failed with %v", err)
			}
		}
	})
}

// TestUnknownActionIsAnError holds that an action which isn't known is an error, not nothing.
func TestUnknownActionIsAnError(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "web")
	n := w.open("2.0.0")
	ev, d := w.evaluate()
	for _, c := range []struct {
		component int
		action    promotion.Action
		says      string
	}{
		{0, promotion.FactRequest{What: "compose", Environment: "qa"}, "look: compose in qa: no way to do promotion.FactRequest"},
		{-1, promotion.FactRequest{What: "compose", Environment: "qa"}, "no way to do promotion.FactRequest"},
		{-1, otherPullAction{promotion.Close{Environment: "qa", Pull: n}}, "no way to do act.otherPullAction"},
	} {
		err := w.doStep(ev, d, promotion.Step{Component: c.component, Action: c.action})
		if err == nil || errors.Is(err, ErrStale) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%T ended with %v", c.action, err)
		}
	}
}

// otherPullAction is an action on a pull request that nobody knows.
type otherPullAction struct{ promotion.Close }

// TestFailingFetch holds that a lost lease whose fetch fails says both.
func TestFailingFetch(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "", "web")
	ev, d, open := w.ready("2.0.0")
	w.setRemoteHead("liftlock/shop/qa/web", w.remoteHead("main"))
	w.faults.Hook = func(call string) {
		if strings.HasPrefix(call, "store: free") {
			w.breakRemote()
		}
	}
	err := w.do(ev, d, open)
	if !errors.Is(err, git.ErrLeaseLost) || !errors.Is(err, git.ErrNoRepository) || errors.Is(err, ErrStale) {
		t.Errorf("it ended with %v", err)
	}
}

// TestSyncRevision syncs those of a target's sources to a commit that follow the branch.
func TestSyncRevision(t *testing.T) {
	t.Parallel()
	own, otherRepo, chart := appset.Source{Here: true, TargetRevision: "main"}, appset.Source{TargetRevision: "main"}, appset.Source{Here: true, Chart: "web", TargetRevision: "main"}
	for name, c := range map[string]struct {
		target appset.Target
		want   []string
	}{
		"the branch":         {appset.Target{Sources: []appset.Source{own}}, []string{"c1"}},
		"its full name":      {appset.Target{Sources: []appset.Source{{Here: true, TargetRevision: "refs/heads/main"}}}, []string{"c1"}},
		"HEAD":               {appset.Target{Sources: []appset.Source{{Here: true, TargetRevision: "HEAD"}}}, []string{"c1"}},
		"another branch":     {appset.Target{Sources: []appset.Source{{Here: true, TargetRevision: "release"}}}, nil},
		"a tag":              {appset.Target{Sources: []appset.Source{{Here: true, TargetRevision: "v1.2"}}}, nil},
		"another repository": {appset.Target{Sources: []appset.Source{otherRepo}}, nil},
		"a chart":            {appset.Target{Sources: []appset.Source{chart}}, nil},
		"several sources":    {appset.Target{Sources: []appset.Source{own, own}}, []string{"c1", "c1"}},
		"some of several":    {appset.Target{Sources: []appset.Source{chart, otherRepo, own}}, []string{"", "", "c1"}},
		"none of several":    {appset.Target{Sources: []appset.Source{chart, otherRepo}}, nil},
		"hydrated":           {appset.Target{Sources: []appset.Source{own}, Hydration: &appset.Hydration{Branch: "env/qa"}}, nil},
	} {
		if got := revisionsOnBranch(&c.target, "main", "c1"); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
