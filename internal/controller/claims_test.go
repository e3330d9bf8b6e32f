package controller

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
)

// TestUrgencyAfterARun holds how urgent a key is that wants to run again by itself.
func TestUrgencyAfterARun(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	unit := wake.ForUnit(promotion.Unit{Repo: "hub:acme/fleet", Pipeline: "main", Component: "api"}).String()
	for _, c := range []struct {
		claim    store.Claim
		pressing bool
		after    time.Duration
		want     store.Urgency
	}{
		{store.Claim{Key: unit, Urgency: store.Urgent}, false, 0, store.Urgent},
		{store.Claim{Key: unit, Urgency: store.Urgent}, false, urgentStep, store.Urgent},
		{store.Claim{Key: unit, Urgency: store.Urgent}, false, urgentStep + time.Second, store.Normal},
		{store.Claim{Key: unit, Urgency: store.Urgent}, true, urgentFor, store.Urgent},
		{store.Claim{Key: unit, Urgency: store.Urgent}, true, urgentFor + time.Second, store.Normal},
		{store.Claim{Key: unit, Urgency: store.Normal}, true, urgentFor, store.Urgent},
		{store.Claim{Key: unit, Urgency: store.Background}, true, urgentFor, store.Urgent},
		{store.Claim{Key: unit, Urgency: store.Normal}, false, time.Second, store.Normal},
		{store.Claim{Key: unit, Urgency: store.Background}, false, time.Second, store.Normal},
		{store.Claim{Key: wake.ForSweep("hub:acme/fleet").String(), Urgency: store.Urgent}, true, time.Second, store.Background},
		{store.Claim{Key: wake.ForHook("hub:acme/fleet").String(), Urgency: store.Urgent}, true, time.Second, store.Background},
	} {
		if got := urgencyAfter(c.claim, c.pressing, now, now.Add(c.after)); got != c.want {
			t.Errorf("%s, %d, pressing: %t, again after %s: %d, not %d", c.claim.Key, c.claim.Urgency, c.pressing, c.after, got, c.want)
		}
	}
}

// TestEveryEighthClaim holds that one claim of eight takes the key that has waited longest.
func TestEveryEighthClaim(t *testing.T) {
	w := newRunnerFixture(t)
	urgent := func(n int) string { return wake.ForPull("hub:acme/fleet", n).String() }
	old := wake.ForSweep("hub:acme/fleet").String()
	w.must(w.opts.Store.WakeAs(t.Context(), store.Background, old))
	w.clock.Step(time.Second)
	for n := range 20 {
		w.must(w.opts.Store.WakeAs(t.Context(), store.Urgent, urgent(n)))
	}
	for _, c := range []struct {
		n, before, want int
		oldest          bool
	}{{3, 0, 3, false}, {4, 3, 4, false}, {1, 7, 1, true}, {3, 8, 3, false}} {
		claims, err := w.claimKeys(t.Context(), c.n, c.before)
		w.must(err)
		got := slices.ContainsFunc(claims, func(k store.Claim) bool { return k.Key == old })
		if len(claims) != c.want || got != c.oldest {
			t.Errorf("%d keys after %d: %+v", c.n, c.before, claims)
		}
	}
}

// TestDefaults holds what goes where an option says nothing, and that one that says something
// goes before.
func TestDefaults(t *testing.T) {
	w := newRunnerFixture(t)
	o := w.opts
	o.Workers, o.Lease, o.Retention = 0, 0, 0
	if got := New(o).opts; got.Workers != defaultWorkers || got.Lease != store.DefaultLease || got.Retention != defaultRetention {
		t.Errorf("the defaults are %d, %s, %s", got.Workers, got.Lease, got.Retention)
	}
	o.Workers, o.Lease, o.Retention = 3, time.Minute, time.Hour
	if got := New(o).opts; got.Workers != 3 || got.Lease != time.Minute || got.Retention != time.Hour {
		t.Errorf("it is %d, %s, %s", got.Workers, got.Lease, got.Retention)
	}
}

// TestClaimsAreKept holds that claimed keys run though the claim of the key that has waited
// longest, which goes with them, fails.
func TestClaimsAreKept(t *testing.T) {
	w := newRunnerFixture(t)
	for n := range 20 {
		w.must(w.opts.Store.WakeAs(t.Context(), store.Urgent, wake.ForPull("hub:acme/fleet", n+1).String()))
	}
	away, calls := errors.New("away"), 0
	w.intercept = func(string) error {
		if calls++; calls == 2 {
			return away
		}
		return nil
	}
	if claims, err := w.claimKeys(t.Context(), 4, 5); err != nil || len(claims) != 3 || calls != 2 {
		t.Errorf("after %d calls there are %d claims, %v", calls, len(claims), err)
	}
	calls = 1 // there is no other claim than that one
	if claims, err := w.claimKeys(t.Context(), 1, 7); !errors.Is(err, away) || len(claims) != 0 {
		t.Errorf("without any there are %d claims, %v", len(claims), err)
	}
}

// TestClaimsWithoutAnswer has keys claimed and the claim's answer lost. They run as soon as the
// store answers again, and not when the claim's lease ends; keys that are being run are left to
// their runs.
func TestClaimsWithoutAnswer(t *testing.T) {
	w := newRunnerFixture(t)
	pull := func(n int) string { return wake.ForPull("hub:acme/fleet", n).String() }
	w.must(w.opts.Store.Wake(t.Context(), pull(1)))
	running, err := w.claimKeys(t.Context(), 1, 0)
	w.must(err)
	w.must(w.opts.Store.Wake(t.Context(), pull(2), pull(3)))

	lost := errors.New("the answer was lost")
	w.loseAnswer = func(call string) error {
		if call == "claim" {
			return lost
		}
		return nil
	}
	if claims, err := w.claimKeys(t.Context(), 2, 1); !errors.Is(err, lost) || len(claims) > 0 {
		t.Fatalf("claimed %+v, %v", claims, err)
	}
	w.loseAnswer = nil
	away := errors.New("away")
	w.intercept = func(string) error { return away }
	if claims, err := w.claimKeys(t.Context(), 2, 1); !errors.Is(err, away) || len(claims) > 0 {
		t.Fatalf("claimed %+v, %v", claims, err)
	}
	w.intercept = nil
	claims, err := w.claimKeys(t.Context(), 4, 1)
	w.must(err)
	if len(claims) != 2 || claims[0].Key != pull(2) || claims[1].Key != pull(3) {
		t.Errorf("claimed %+v, want what was claimed before", claims)
	}
	w.must(w.opts.Store.Finish(t.Context(), w.opts.Owner, running[0], store.Outcome{}))
}

// TestRunningClaims holds that a key is known to be run until the run of its newest claim ends.
func TestRunningClaims(t *testing.T) {
	t.Parallel()
	r := newRunningClaims()
	first, second := store.Claim{Key: "a", Gen: 1}, store.Claim{Key: "a", Gen: 2}
	r.begin([]store.Claim{first, {Key: "b", Gen: 7}})
	r.begin([]store.Claim{second})
	r.end(first)
	if got := r.list(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("run are %q", got)
	}
	r.end(second)
	if got := r.list(); !slices.Equal(got, []string{"b"}) {
		t.Errorf("run are %q", got)
	}
}
