package store

import (
	"fmt"
	"testing"
	"time"
)

// TestUrgentKeysComeFirst holds the order of claims: by urgency, then by how long a key has been
// due. The longest waiting one can be had whatever it is.
func TestUrgentKeysComeFirst(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, w *testStore) {
		claim := func() Claim {
			t.Helper()
			all := value(w.Claim(ctx, "me", 1))(t)
			if len(all) != 1 {
				t.Fatalf("claimed %v", all)
			}
			return all[0]
		}
		must(t, w.WakeAs(ctx, Background, "sweep"))
		for i := range 1000 {
			must(t, w.Wake(ctx, fmt.Sprintf("unit %04d", i)))
		}
		w.Advance(time.Second)
		must(t, w.WakeAs(ctx, Urgent, "merge"))
		must(t, w.WakeAs(ctx, Urgent, "unit 0700"))
		must(t, w.WakeAs(ctx, Background, "unit 0800")) // it stays as urgent as it was
		w.Advance(time.Second)
		first, second := claim(), claim()
		if first.Key != "merge" && second.Key != "merge" || first.Key != "unit 0700" && second.Key != "unit 0700" || first.Urgency != Urgent {
			t.Errorf("claimed first were %+v and %+v", first, second)
		}
		if c := value(w.ClaimOldest(ctx, "me", 1))(t); len(c) != 1 || c[0].Key != "sweep" {
			t.Errorf("the oldest is %+v", c)
		}
		if all := value(w.Claim(ctx, "me", 1000))(t); len(all) != 999 {
			t.Errorf("%d were left", len(all))
		}
		// A key that is woken while it runs is as urgent as that wake; else its own next run is as
		// the run says.
		must(t, w.Wake(ctx, first.Key))
		must(t, w.Finish(ctx, "me", first, Outcome{Next: w.Now().Add(time.Minute), Urgency: Normal}))
		must(t, w.Finish(ctx, "me", second, Outcome{Next: w.Now(), Urgency: Background}))
		if a, b := claim(), claim(); a.Key != first.Key || a.Urgency != Normal || b.Key != second.Key || b.Urgency != Background {
			t.Errorf("then came %+v and %+v", a, b)
		}
	})
}

// TestUrgencyOutlivesOtherWakes holds that a key whose next run is urgent stays so where
// something less urgent wakes it before, while it runs or after. Another key is as urgent as its
// due wake.
func TestUrgencyOutlivesOtherWakes(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, w *testStore) {
		for _, c := range []struct {
			what          string
			before        Urgency // of the claim
			during, after Urgency // of what wakes it; anyUrgency: nothing does
			next          Urgency // that the run asks for; anyUrgency: it asks for none
			want          Urgency
			untilItIsDue  time.Duration
		}{
			{"nothing wakes it", Normal, anyUrgency, anyUrgency, Urgent, Urgent, time.Minute},
			{"a push afterwards", Normal, anyUrgency, Normal, Urgent, Urgent, 0},
			{"a sweep afterwards", Urgent, anyUrgency, Background, Urgent, Urgent, 0},
			{"a push meanwhile", Urgent, Normal, anyUrgency, Urgent, Urgent, 0},
			{"a push meanwhile, and nothing urgent is left", Urgent, Normal, anyUrgency, Normal, Normal, 0},
			{"a sweep meanwhile, and a push", Urgent, Background, Normal, Normal, Normal, 0},
			{"a sweep, and nothing urgent is left", Urgent, anyUrgency, Background, Normal, Background, 0},
			{"a sweep, and it is to run at no time", Urgent, anyUrgency, Background, anyUrgency, Background, 0},
			{"something urgent", Background, anyUrgency, Urgent, Normal, Urgent, 0},
		} {
			must(t, w.WakeAs(ctx, c.before, "a"))
			run := w.claim(t, me, "a")[0]
			w.Advance(time.Second)
			wakeAs := func(u Urgency) {
				if u != anyUrgency {
					must(t, w.WakeAs(ctx, u, "a"))
				}
			}
			wakeAs(c.during)
			end := Outcome{Next: w.Now().Add(time.Minute), Urgency: c.next}
			if c.next == anyUrgency {
				end = Outcome{}
			}
			must(t, w.Finish(ctx, me, run, end))
			w.Advance(time.Second)
			wakeAs(c.after)
			if c.untilItIsDue > 0 {
				w.claim(t, me)
				w.Advance(c.untilItIsDue)
			}
			got := w.claim(t, me, "a")[0]
			if got.Urgency != c.want {
				t.Errorf("%s: claimed as %d, want %d", c.what, got.Urgency, c.want)
			}
			must(t, w.Finish(ctx, me, got, Outcome{}))
		}
	})
}
