package store

import (
	"fmt"
	"testing"
	"time"
)

// TestUrgentKeysComeFirst holds the order of claims: by urgency, then by how long
// a key has been due; and that the longest waiting one can be had whatever it is.
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
		// What is woken while it runs is as urgent as that; else its own next run is
		// what the run says.
		must(t, w.Wake(ctx, first.Key))
		must(t, w.Finish(ctx, "me", first, Outcome{Next: w.Now().Add(time.Minute), Urgency: Urgent}))
		must(t, w.Finish(ctx, "me", second, Outcome{Next: w.Now(), Urgency: Background}))
		if a, b := claim(), claim(); a.Key != first.Key || a.Urgency != Normal || b.Key != second.Key || b.Urgency != Background {
			t.Errorf("then came %+v and %+v", a, b)
		}
	})
}
