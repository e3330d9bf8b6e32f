package controller

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/controller/act"
	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/stored"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/policies"
)

// TestRealFailureIsReported holds that a step that only went stale, after which the unit is
// evaluated again at once, doesn't hide another component's failure.
func TestRealFailureIsReported(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused")
	for name, order := range map[string][]error{"first": {refused, act.ErrStale}, "last": {act.ErrStale, refused}} {
		f := failures{}
		for _, err := range order {
			f.record("qa", err)
		}
		if err := (stepFailures{f}).joined(); isStale(err) || !errors.Is(err, refused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	f := failures{}
	f.record("qa", act.ErrStale)
	if err := (stepFailures{f}).joined(); !isStale(err) || f["qa"] == nil || f["prod"] != nil {
		t.Errorf("moved: %v", err)
	}
}

// TestAFailureDelaysNothingElse holds when a key runs again of which a part failed.
func TestAFailureDelaysNothingElse(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		delay time.Duration
		next  time.Time
		want  time.Duration
	}{
		"nothing else waits":        {5 * time.Minute, time.Time{}, 5 * time.Minute},
		"another debounce ends":     {5 * time.Minute, now.Add(30 * time.Second), 30 * time.Second},
		"the rest waits for longer": {2 * time.Second, now.Add(time.Hour), 2 * time.Second},
		"something was done":        {5 * time.Minute, now, time.Second},
		"a time that is past":       {5 * time.Minute, now.Add(-time.Hour), time.Second},
	} {
		if got := retryTime(now, c.delay, c.next); !got.Equal(now.Add(c.want)) {
			t.Errorf("%s: after %s, want %s", name, got.Sub(now), c.want)
		}
	}
}

// TestUnitRunsAgainAfterAnAction holds that a unit runs again at once after an action, and not where
// there was nothing to do. An open pull request isn't said to be unmanaged.
func TestUnitRunsAgainAfterAnAction(t *testing.T) {
	t.Parallel()
	for name, c := range listKindsOfUnit() {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, c.spec, manualQA, c.components...)
			w.must(w.run(wake.ForUnit(w.unit(c.key))))
			w.release("2.0.0", c.components...)
			atOnce := false
			for range 10 {
				before := len(w.pulls())
				w.clock.Step(2 * time.Second)
				next, err := w.runKey(t.Context(), wake.ForUnit(w.unit(c.key)).String())
				if w.must(err); len(w.pulls()) > before {
					atOnce = next.Equal(w.clock.Now())
					break
				}
			}
			if !atOnce {
				t.Error("after its pull request was opened it doesn't run again at once")
			}
			w.sweepAll(c.key)
			next, err := w.runKey(t.Context(), wake.ForUnit(w.unit(c.key)).String())
			if w.must(err); next.Equal(w.clock.Now()) {
				t.Error("it runs again at once though there was nothing to do")
			}
			number := w.pulls()[0].Number
			w.must(w.run(wake.ForPull(w.repo.ID, number)))
			for _, s := range w.pull(number).Statuses {
				if strings.Contains(s.Description, "nothing looks after") {
					t.Errorf("it is said to be nobody's: %+v", s)
				}
			}
			rules, _, err := w.forge.File(repoName, "main", ".liftlock.yaml")
			w.must(err)
			var gone []string
			for _, component := range c.components {
				gone = append(gone, kustomizationOf(component, "qa"))
			}
			check := func(what string) {
				t.Helper()
				if all := w.pull(number).Statuses; len(all) != 1 || all[0].State != "failure" || !strings.Contains(all[0].Description, " in qa any more: nothing looks after") {
					t.Errorf("without its environment, %s, it is said %+v", what, all)
				}
			}
			_, err = w.forge.CommitAs(repoName, "linus", "main", "Rules", map[string]string{".liftlock.yaml": strings.Replace(rules, manualQA, "", 1)})
			w.must(err)
			w.runRepository()
			w.sweepAll(c.key)
			check("whose targets are there still")
			_, err = w.forge.CommitAs(repoName, "linus", "main", "Targets", nil, gone...)
			w.must(err)
			w.runRepository()
			w.must(w.run(wake.ForPull(w.repo.ID, number)))
			check("whose targets are gone too")
		})
	}
}

// TestComparisonsThatWake holds of which Applications a unit waits for every comparison: while what
// landed arrives, and not once it is only their health that counts.
func TestComparisonsThatWake(t *testing.T) {
	w := newFixture(t, "", manualQA, "web")
	number := w.openOne("web", "2.0.0", "web").Number
	_, err := w.forge.MergePull(repoName, number, "grace", "merge")
	w.must(err)
	seen := map[string]bool{}
	look := func() string {
		t.Helper()
		w.runRepository()
		if err := w.run(wake.ForUnit(w.unit("web"))); err != nil && !isStale(err) {
			t.Fatal(err)
		}
		row, _, err := w.opts.Store.Unit(t.Context(), wake.UnitName(w.unit("web")))
		w.must(err)
		var v stored.Unit
		w.must(json.Unmarshal(row.Data, &v))
		for i := range v.Decision.Envs {
			env := &v.Decision.Envs[i]
			if env.Environment != "qa" || !waitsForArgoCD(env) {
				continue
			}
			state := env.Targets["web-qa"].State
			want := state != string(verification.Soaking) && (state != string(verification.Degraded) || env.Revert == 0)
			if got := w.apps.isAwaiting(wake.ForUnit(w.unit("web")), "hub/web-qa"); got != want {
				t.Errorf("%s: it waits for comparisons: %v", state, got)
			}
			seen[state] = true
			return state
		}
		return ""
	}
	for range 10 {
		look()
	}
	w.setHealth("Degraded", "web")
	for range 10 {
		if look() == string(verification.Degraded) {
			break
		}
	}
	for _, state := range []verification.State{verification.Refreshing, verification.Soaking, verification.Degraded} {
		if !seen[string(state)] {
			t.Errorf("it was never %s; it was %v", state, slices.Sorted(maps.Keys(seen)))
		}
	}
}

// TestAFailureIsShownInItsEnvironment holds that a failure is reported for its environment until it
// is over, and that the failed run says when the rest of it wants to run.
func TestAFailureIsShownInItsEnvironment(t *testing.T) {
	t.Parallel()
	for name, c := range listKindsOfUnit() {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, c.spec, manualQA, c.components...)
			w.must(w.run(wake.ForUnit(w.unit(c.key))))
			w.fail("open a pull request", forge.ErrForbidden)
			w.release("2.0.0", c.components...)
			var failed error
			for range 9 {
				if err := w.run(wake.ForUnit(w.unit(c.key))); err != nil && !isStale(err) {
					failed = err
				}
			}
			if !errors.Is(failed, forge.ErrForbidden) {
				t.Fatalf("failed: %v", failed)
			}
			if dev, qa := w.reasons(c.components[0], "dev"), w.reasons(c.components[0], "qa"); len(dev) > 0 || len(qa) == 0 || !strings.Contains(qa[len(qa)-1], "it is tried again") {
				t.Errorf("dev says %q, qa %q", dev, qa)
			}
			w.failNothing()
			w.settle(c.key, "a pull request is open", func() bool { return len(w.pulls()) == 1 })
			if qa := w.reasons(c.components[0], "qa"); slices.ContainsFunc(qa, func(s string) bool { return strings.Contains(s, "it is tried again") }) {
				t.Errorf("qa still says %q", qa)
			}
		})
	}
}

// reasons are what a component's environment says of itself.
func (f *fixture) reasons(component, env string) []string {
	f.t.Helper()
	row, _, err := f.opts.Store.Unit(f.t.Context(), wake.UnitName(f.unit(component)))
	f.must(err)
	var v stored.Unit
	f.must(json.Unmarshal(row.Data, &v))
	var out []string
	for _, e := range v.Decision.Envs {
		for _, why := range e.Why {
			if e.Environment == env {
				out = append(out, why.Text)
			}
		}
	}
	return out
}

// TestJoiningJustBeforeTheMergeIsReverted holds that the state of a component's targets before the
// merge is known. That holds also where it joined a batch's pull request a moment before, without
// an evaluation since.
func TestJoiningJustBeforeTheMergeIsReverted(t *testing.T) {
	w := newFixture(t, "  batch: environment\n", manualQA, "api", "web")
	p := w.openOne("batch", "2.0.0", "web")
	w.release("2.0.0", "api")
	w.settle("batch", "api joins", func() bool { return w.pulls()[0].Head != p.Head })
	_, err := w.forge.MergePull(repoName, p.Number, "grace", "merge")
	w.must(err)
	w.mu.Lock()
	w.health["api-qa"] = "Degraded"
	w.mu.Unlock()
	w.runRepository()
	w.settle("batch", "the degradation of api is answered", func() bool { return len(w.pulls()) > 1 || len(w.reasons("api", "qa")) > 0 })
	if all := w.pulls(); len(all) != 2 || !strings.HasPrefix(all[1].Branch, "liftlock-revert/") {
		t.Errorf("qa says %q, and there are %d pull requests", w.reasons("api", "qa"), len(all))
	}
}

// TestASlowLookIsNoTimeOfHealth holds that a target is healthy from when it was seen so, and
// not from when a look began that took long.
func TestASlowLookIsNoTimeOfHealth(t *testing.T) {
	w := newFixture(t, "", manualQA, "web")
	w.must(w.run(wake.ForUnit(w.unit("web"))))
	w.release("2.0.0", "web")
	seen := map[string]time.Time{}
	w.beforeGet = func(name string) {
		w.clock.Step(20 * time.Second)
		if seen[name].IsZero() {
			seen[name] = w.clock.Now()
		}
	}
	for range 10 {
		clear(seen)
		w.must(w.run(wake.ForUnit(w.unit("web"))))
		rows, err := w.opts.Store.Observations(t.Context(), wake.UnitName(w.unit("web")))
		w.must(err)
		for _, row := range rows {
			var m verification.Memory
			w.must(json.Unmarshal(row.Data, &m))
			if row.Environment != "dev" || m.HealthySince.IsZero() {
				continue
			}
			if at := seen["web-dev"]; m.HealthySince.Before(at) {
				t.Errorf("healthy since %v, seen so at %v", m.HealthySince, at)
			}
			return
		}
	}
	t.Fatal("it was never healthy")
}

// TestALateRunStoresNothing holds that a run whose key another process has by now, as it took longer than
// its lease, overwrites nothing with what it found out before.
func TestALateRunStoresNothing(t *testing.T) {
	w := newFixture(t, "", manualQA, "web")
	key := wake.ForUnit(w.unit("web"))
	w.must(w.run(key))
	w.release("2.0.0", "web")
	w.must(w.opts.Store.Wake(t.Context(), key.String()))
	claim := func(owner string) store.Claim {
		claims, err := w.opts.Store.Claim(t.Context(), owner, 1000)
		w.must(err)
		i := slices.IndexFunc(claims, func(c store.Claim) bool { return c.Key == key.String() })
		if i < 0 {
			t.Fatalf("%s claims %+v", owner, claims)
		}
		return claims[i]
	}
	stored := func() any {
		arrivals, err := w.opts.Store.Arrivals(t.Context(), wake.UnitName(w.unit("web")))
		w.must(err)
		rows, err := w.opts.Store.Observations(t.Context(), wake.UnitName(w.unit("web")))
		w.must(err)
		unit, _, err := w.opts.Store.Unit(t.Context(), wake.UnitName(w.unit("web")))
		w.must(err)
		return []any{arrivals, rows, unit}
	}
	var before any // as the run's claim is lost
	run := func(c store.Claim) {
		w.runLeased(t.Context(), c, w.newLease(w.clock.Now()), func(context.Context, context.CancelCauseFunc) {})
	}
	var other []store.Claim
	w.beforeGet = func(string) {
		if other == nil {
			w.clock.Step(store.DefaultLease)
			other, before = append(other, claim("another")), stored()
		}
	}
	run(claim(w.opts.Owner))
	if diff := cmp.Diff(before, stored()); diff != "" {
		t.Errorf("a run that was late has stored something (-before +after):\n%s", diff)
	}
	w.must(w.opts.Store.Finish(t.Context(), "another", other[0], store.Outcome{Next: w.clock.Now()}))
	run(claim(w.opts.Owner))
	if cmp.Equal(before, stored()) {
		t.Error("the next run stores nothing either")
	}
}

// TestRevertLimitEvents holds that an environment in which everything is held, because so many reverts
// were opened, has one event for the first of them.
func TestRevertLimitEvents(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	c := &facts.ComponentEvaluation{}
	c.Facts.Now, c.Facts.Unit = now, promotion.Unit{Repo: testRepo, Pipeline: "shop", Component: "web"}
	d := &promotion.ComponentDecision{Envs: []promotion.EnvState{
		{Environment: "dev", Why: []promotion.Reason{{Code: "queued", Text: "its turn comes"}}},
		{Environment: "qa", Why: []promotion.Reason{{Code: "queued", Text: "its turn comes"}, {Code: "storm", Text: "4 reverts in 10 minutes"}}},
	}}
	eventSince := func(oldest time.Duration) store.Event {
		t.Helper()
		c.Facts.Limits.OldestRecentRevert = now.Add(-oldest)
		all := revertLimitEvents(c, d)
		if len(all) != 1 || all[0].Kind != "storm" || all[0].Environment != "qa" || all[0].Component != "web" || all[0].Message != "4 reverts in 10 minutes" || !all[0].At.Equal(now) {
			t.Fatalf("the events are %+v", all)
		}
		return all[0]
	}
	first := eventSince(time.Minute)
	c.Facts.Now = now
	if again := eventSince(time.Minute); again.IdempotencyKey != first.IdempotencyKey {
		t.Error("it has two events")
	}
	if next := eventSince(time.Second); next.IdempotencyKey == first.IdempotencyKey {
		t.Error("the next time has none")
	}
}

// TestGatesOfAPullRequest holds that the gates of a pull request are those of all components that it
// moves, a revert's as well as a promotion's, and no other's.
func TestGatesOfAPullRequest(t *testing.T) {
	t.Parallel()
	gate := func(name string) []policies.Result { return []policies.Result{{Gate: policies.GateName(name)}} }
	d := &promotion.Decision{Components: []promotion.ComponentDecision{
		{Envs: []promotion.EnvState{{Pull: 1, Gates: gate("a"), Revert: 2, RevertGates: gate("b")}, {Pull: 3, Gates: gate("c")}}},
		{Envs: []promotion.EnvState{{Pull: 1, Gates: gate("d"), Revert: 3, RevertGates: gate("e")}}},
	}}
	for pull, want := range map[int]string{1: "ad", 2: "b", 3: "ce", 4: ""} {
		got := ""
		for _, g := range listGates(d, pull) {
			got += string(g.Gate)
		}
		if got != want {
			t.Errorf("#%d has %q, not %q", pull, got, want)
		}
	}
}
