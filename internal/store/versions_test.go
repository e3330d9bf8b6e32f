package store

import "testing"

// TestHistoryVersions holds that a cache of a component's history is known to be old after every
// change of that history, and after no other. That holds when the database's clock stands still or
// goes back, and when the database is lost.
func TestHistoryVersions(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, w *testStore) {
		type versions struct{ web, api, webPast, apiPast int64 }
		read := func() versions {
			t.Helper()
			return versions{value(w.ArrivalsVersion(ctx, "web"))(t), value(w.ArrivalsVersion(ctx, "api"))(t),
				value(w.PastPullsVersion(ctx, "r", "shop", "web"))(t), value(w.PastPullsVersion(ctx, "r", "shop", "api"))(t)}
		}
		last := read()
		if last != (versions{}) {
			t.Errorf("before anything was written: %v", last)
		}
		// expect says which must have been raised since.
		expect := func(what string, web, api, webPast, apiPast bool) {
			t.Helper()
			now := read()
			for _, c := range []struct {
				name          string
				before, after int64
				want          bool
			}{{"web", last.web, now.web, web}, {"api", last.api, now.api, api}, {"web's closed", last.webPast, now.webPast, webPast}, {"api's closed", last.apiPast, now.apiPast, apiPast}} {
				if (c.after > c.before) != c.want || c.after < c.before {
					t.Errorf("after %s: %s was %d and is %d", what, c.name, c.before, c.after)
				}
			}
			last = now
		}
		arrive := func(a Arrival) {
			t.Helper()
			must(t, w.Tx(ctx, "arrive", func(tx *Tx) error { _, err := tx.PutArrival(ctx, a); return err }))
		}
		one := Arrival{Unit: "web", Environment: "qa", Release: "a", Commit: "1", At: w.Now()}
		arrive(one)
		expect("an arrival", true, false, false, false)
		if last.web < toMicros(start) {
			t.Errorf("a database made anew would begin with %d again", last.web)
		}
		one.VerifiedAt = w.Now()
		arrive(one)
		expect("a verification", true, false, false, false)
		w.Advance(-1e9)
		arrive(Arrival{Unit: "web", Environment: "qa", Release: "b", Commit: "2", At: w.Now()})
		arrive(Arrival{Unit: "api", Environment: "qa", Release: "b", Commit: "2", At: w.Now()})
		expect("the clock went back", true, true, false, false)

		pull := Pull{Repo: "r", Number: 1, Branch: "liftlock/shop/qa/batch", State: "closed", ClosedAt: w.Now(), UpdatedAt: w.Now()}
		must(t, w.PutPulls(ctx, pull))
		expect("an unsettled pull request", false, false, false, false)
		pull = found(w.Pull(ctx, "r", 1))(t)
		settle := func() {
			t.Helper()
			must(t, w.Tx(ctx, "settle", func(tx *Tx) error {
				return tx.SettlePull(ctx, pull, "rules", PastPull{Pipeline: "shop", Component: "api", Environment: "qa"}, PastPull{Pipeline: "shop", Component: "web", Environment: "qa"})
			}))
		}
		settle()
		expect("it is settled", false, false, true, true)
		settle()
		expect("it is settled again", false, false, true, true)
		must(t, w.PutPulls(ctx, pull))
		expect("something is heard of it", false, false, true, true)
		must(t, w.PutPulls(ctx, pull))
		expect("something is heard of what isn't settled", false, false, false, false)
	})
}
