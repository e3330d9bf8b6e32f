package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"
)

func assertEqual(t testing.TB, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("differs (-want +got):\n%s", d)
	}
}

func TestDeliveries(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, w *testStore) {
		d := Delivery{Forge: "hub", ID: "1", Event: "push", Repo: "acme/fleet", ReceivedAt: w.Now(), Keys: []string{"repo:acme/fleet", "pr:7"}}
		has := func(d Delivery) bool { return value(w.HasDelivery(ctx, d.Forge, d.ID))(t) }
		if has(d) {
			t.Fatal("it is there before it came")
		}
		if !value(w.Accept(ctx, d))(t) {
			t.Fatal("the first is not fresh")
		}
		if !has(d) || has(Delivery{Forge: "other", ID: d.ID}) || has(Delivery{Forge: d.Forge, ID: "2"}) {
			t.Fatal("only it must be there")
		}
		c := w.claim(t, me, "repo:acme/fleet", "pr:7")
		must(t, w.Finish(ctx, me, c[0], Outcome{}))
		if value(w.Accept(ctx, d))(t) {
			t.Fatal("delivered again, it is fresh")
		}
		w.claim(t, me)
		d.Forge = "other"
		if !value(w.Accept(ctx, d))(t) {
			t.Fatal("the same id of another forge is not fresh")
		}
		if value(w.Accept(ctx, Delivery{Forge: "hub", ID: "2", ReceivedAt: w.Now()}))(t) != true {
			t.Fatal("one that wakes nothing is not fresh")
		}
		if n := value(w.PruneDeliveries(ctx, w.Now()))(t); n != 0 {
			t.Fatalf("pruned %d that are not older", n)
		}
		w.Advance(time.Second)
		if n := value(w.PruneDeliveries(ctx, w.Now()))(t); n != 3 {
			t.Fatalf("pruned %d, want 3", n)
		}
		if has(d) {
			t.Fatal("it is there after it was forgotten")
		}
		if !value(w.Accept(ctx, d))(t) {
			t.Fatal("after it was forgotten, it is not fresh")
		}
		for _, bad := range []Delivery{{ID: "1"}, {Forge: "hub"}, {Forge: "hub", ID: "3", Keys: []string{""}},
			{Forge: "hub", ID: "4", Keys: make([]string, maxKeys+1)}, {Forge: "hub", ID: "5", Repo: "\x00"}} {
			if _, err := w.Accept(ctx, bad); !errors.Is(err, ErrInvalid) {
				t.Errorf("Accept(%.80v): %v, want ErrInvalid", bad, err)
			}
		}
	})
}

func TestPulls(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, w *testStore) {
		const repo = "acme/fleet"
		at := w.Now()
		pull := func(number int, branch string, updated time.Time, data string) Pull {
			return Pull{Repo: repo, Number: number, Branch: branch, State: "open", CreatedAt: at, UpdatedAt: updated, Data: json.RawMessage(data), Version: 1}
		}
		one, two := pull(1, "liftlock/shop/qa/web", at, `{"a":1}`), pull(2, "liftlock/shop/qa/web2", at, "")
		two.Data = nil
		three := pull(3, "Liftlock/shop", at, `{}`)
		must(t, w.PutPulls(ctx, one, two, three))
		must(t, w.SetPullCursor(ctx, repo, at))
		assertEqual(t, value(w.PullCursor(ctx, repo))(t), at)
		assertEqual(t, value(w.OpenPulls(ctx, repo, ""))(t), []Pull{three, two, one})
		assertEqual(t, value(w.OpenPulls(ctx, repo, "liftlock/"))(t), []Pull{two, one})
		assertEqual(t, value(w.OpenPulls(ctx, repo, "liftlock/shop/qa/web2"))(t), []Pull{two})
		assertEqual(t, value(w.OpenPulls(ctx, "acme/other", ""))(t), []Pull(nil))
		assertEqual(t, found(w.Pull(ctx, repo, 1))(t), one)
		absent(w.Pull(ctx, repo, 9))(t)
		if got := value(w.PullCursor(ctx, "acme/other"))(t); !got.IsZero() {
			t.Fatalf("cursor of an unread repository is %s", got)
		}

		newer, older := pull(1, one.Branch, at.Add(time.Second), `{"a":2}`), pull(1, one.Branch, at.Add(-time.Second), `{"a":0}`)
		must(t, w.PutPulls(ctx, newer))
		must(t, w.PutPulls(ctx, older))
		newer.Version = 2
		assertEqual(t, found(w.Pull(ctx, repo, 1))(t), newer)

		// Where two answers have the same second, the newer one is the one that was asked for
		// later.
		overtaken, last := pull(1, one.Branch, newer.UpdatedAt, `{"a":3}`), pull(1, one.Branch, newer.UpdatedAt, `{"a":4}`)
		for i, c := range []struct {
			p          Pull
			seen, want int64
		}{
			{overtaken, 1, 0}, {overtaken, 0, 0}, {older, 2, 0}, {last, 2, 3}, {overtaken, 2, 0},
			{pull(1, one.Branch, newer.UpdatedAt.Add(time.Second), `{"a":5}`), 2, 4}, {pull(5, "liftlock/shop/qa/api", at, `{}`), 0, 1},
		} {
			if got := value(w.PutPullSince(ctx, c.p, c.seen))(t); got != c.want {
				t.Errorf("answer %d, read after version %d, has version %d, want %d", i, c.seen, got, c.want)
			}
		}

		must(t, w.PutPulls(ctx, pull(4, strings.Repeat("é", maxKey), at, `{}`)))
		if got := found(w.Pull(ctx, repo, 4))(t).Branch; len(got) > maxKey || !utf8.ValidString(got) {
			t.Fatalf("a stranger's long branch is kept as %q", got)
		}
		must(t, w.SetPullCursor(ctx, repo, time.Time{}))
		if got := value(w.PullCursor(ctx, repo))(t); !got.IsZero() {
			t.Fatalf("cursor is %s after it was reset", got)
		}
	})
}

func TestUnits(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, w *testStore) {
		web := Unit{Key: "unit:shop/web", Repo: "acme/fleet", Pipeline: "shop", Component: "web", Digest: "1", UpdatedAt: w.Now(), Data: json.RawMessage(`{"n":1}`)}
		api := Unit{Key: "unit:shop/api", Repo: "acme/fleet", Pipeline: "shop", Component: "api", Digest: "1", UpdatedAt: w.Now(), Data: json.RawMessage(`{}`)}
		ads := Unit{Key: "unit:ads/web", Repo: "acme/ads", Pipeline: "ads", Component: "web", Digest: "1", UpdatedAt: w.Now()}
		for _, u := range []Unit{web, api, ads} {
			must(t, w.PutUnit(ctx, u))
		}
		assertEqual(t, value(w.Units(ctx, UnitFilter{}))(t), []Unit{ads, api, web})
		assertEqual(t, value(w.Units(ctx, UnitFilter{Pipeline: "shop"}))(t), []Unit{api, web})
		assertEqual(t, value(w.Units(ctx, UnitFilter{Repo: "acme/ads"}))(t), []Unit{ads})
		assertEqual(t, value(w.Units(ctx, UnitFilter{Repo: "acme/ads", Pipeline: "shop"}))(t), []Unit(nil))

		assertEqual(t, value(w.Units(ctx, UnitFilter{Contains: `"n":1`}))(t), []Unit{web})
		bare := web
		bare.Data = nil
		assertEqual(t, value(w.Units(ctx, UnitFilter{Contains: `"n":1`, WithoutData: true}))(t), []Unit{bare})
		unchanged := web
		unchanged.UpdatedAt, unchanged.Data = w.Now().Add(time.Hour), json.RawMessage(`{"n":2}`)
		must(t, w.PutUnit(ctx, unchanged))
		assertEqual(t, found(w.Unit(ctx, web.Key))(t), web)
		changed := unchanged
		changed.Digest = "2"
		must(t, w.PutUnit(ctx, changed))
		assertEqual(t, found(w.Unit(ctx, web.Key))(t), changed)

		must(t, w.PutObservations(ctx, Observation{Unit: web.Key, Environment: "qa", Target: "web-qa"}))
		must(t, w.EnqueueMerge(ctx, "acme/fleet", web.Key))
		must(t, w.DeleteUnit(ctx, web.Key))
		must(t, w.DeleteUnit(ctx, web.Key))
		absent(w.Unit(ctx, web.Key))(t)
		assertEqual(t, value(w.Observations(ctx, web.Key))(t), []Observation(nil))
		assertEqual(t, value(w.MergeQueue(ctx, "acme/fleet"))(t), []string(nil))
	})
}

func TestArrived(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, w *testStore) {
		a := Arrival{Unit: "u", Environment: "qa", Release: "r1", Commit: "c1", At: w.Now()}
		assertEqual(t, value(w.PutArrival(ctx, a))(t), int64(1))
		b := Arrival{Unit: "u", Environment: "prod", Release: "r1", Commit: "c2", At: w.Now(), Data: json.RawMessage(`{}`)}
		assertEqual(t, value(w.PutArrival(ctx, b))(t), int64(2))
		a.VerifiedAt, a.DegradedAt = w.Now().Add(time.Second), w.Now().Add(time.Minute)
		assertEqual(t, value(w.PutArrival(ctx, a))(t), int64(1))
		assertEqual(t, value(w.PutArrival(ctx, Arrival{Unit: "other", Environment: "qa", Release: "r1", Commit: "c1"}))(t), int64(1))
		a.Seq, b.Seq = 1, 2
		assertEqual(t, value(w.Arrivals(ctx, "u"))(t), []Arrival{b, a})

		update := func(changed Arrival) {
			t.Helper()
			must(t, w.Tx(ctx, "update", func(tx *Tx) error { return tx.UpdateArrivalData(ctx, changed) }))
		}
		version := value(w.ArrivalsVersion(ctx, "u"))(t)
		update(Arrival{Unit: "u", Environment: "qa", Release: "r2", Commit: "c1", Data: json.RawMessage(`{}`)})
		assertEqual(t, value(w.ArrivalsVersion(ctx, "u"))(t), version)
		a.Data = json.RawMessage(`{"n":1}`)
		update(Arrival{Unit: "u", Environment: "qa", Release: "r1", Commit: "c1", Data: a.Data}) // without the times
		assertEqual(t, value(w.Arrivals(ctx, "u"))(t), []Arrival{b, a})
		if now := value(w.ArrivalsVersion(ctx, "u"))(t); now <= version {
			t.Errorf("the version of what changed was %d and is %d", version, now)
		}

		for i := range 2 * RecentArrivals {
			seq := value(w.PutArrival(ctx, Arrival{Unit: "u", Environment: "qa", Release: fmt.Sprint("r", i), Commit: "c9"}))(t)
			assertEqual(t, seq, int64(3+i))
		}
		all := value(w.Arrivals(ctx, "u"))(t)
		qa := slices.DeleteFunc(slices.Clone(all), func(a Arrival) bool { return a.Environment != "qa" })
		if len(qa) != RecentArrivals || qa[0].Seq != 2+2*RecentArrivals || len(all) != len(qa)+1 {
			t.Fatalf("recent are %d of qa, the newest is %d; %d in all", len(qa), qa[0].Seq, len(all))
		}
	})
}

// TestOlderArrivals finds what arrived before the recent ones by its release, with what was said of it.
func TestOlderArrivals(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, w *testStore) {
		put := func(env, release, commit string, bad bool) (a Arrival) {
			t.Helper()
			a = Arrival{Unit: "u", Environment: env, Release: release, Commit: commit, At: w.Now(), Data: json.RawMessage(`{}`)}
			if bad {
				a.DegradedAt = w.Now()
			}
			a.Seq = value(w.PutArrival(ctx, a))(t)
			return a
		}
		put("dev", "bad", "c1", false)
		bad := put("dev", "bad", "c2", true)
		again := put("dev", "again", "c3", true)
		slow := put("qa", "bad", "c4", false)
		for i := range RecentArrivals - 1 {
			put("dev", fmt.Sprint("r", i), fmt.Sprint("d", i), false)
		}
		assertEqual(t, value(w.OlderArrivals(ctx, "u", "again", "bad", "r1"))(t), []Arrival{bad}) // again is still recent
		put("dev", "r100", "d100", false)
		assertEqual(t, value(w.OlderArrivals(ctx, "u", "again", "bad", "r1"))(t), []Arrival{again, bad})
		assertEqual(t, value(w.OlderArrivals(ctx, "u", "bad", "none"))(t), []Arrival{bad})
		assertEqual(t, value(w.OlderArrivals(ctx, "u"))(t), []Arrival(nil))
		assertEqual(t, value(w.OlderArrivals(ctx, "other", "bad"))(t), []Arrival(nil))
		if recent := value(w.Arrivals(ctx, "u"))(t); !slices.ContainsFunc(recent, func(a Arrival) bool { return a.Seq == slow.Seq }) {
			t.Error("what arrived elsewhere is recent no more")
		}

		version, at := value(w.ArrivalsVersion(ctx, "u"))(t), w.Now()
		take := func(env string, above, below int64) {
			t.Helper()
			must(t, w.Tx(ctx, "take back", func(tx *Tx) error { return tx.WithdrawArrivals(ctx, "u", env, above, below, at) }))
		}
		take("dev", again.Seq, again.Seq+1)
		take("stage", 0, 1000)
		assertEqual(t, value(w.ArrivalsVersion(ctx, "u"))(t), version)
		take("dev", bad.Seq-1, again.Seq+1)
		bad.WithdrawnAt, again.WithdrawnAt = at, at
		assertEqual(t, value(w.OlderArrivals(ctx, "u", "again", "bad"))(t), []Arrival{again, bad})
		if now := value(w.ArrivalsVersion(ctx, "u"))(t); now <= version {
			t.Errorf("the version of what changed was %d and is %d", version, now)
		}
		at = at.Add(time.Hour)
		take("dev", 0, again.Seq)
		assertEqual(t, value(w.OlderArrivals(ctx, "u", "bad"))(t), []Arrival{bad}) // since when stays
		put("dev", "new", "d101", false)
		assertEqual(t, value(w.OlderArrivals(ctx, "u", "bad"))(t), []Arrival{bad})
		back := put("dev", "bad", "d102", false)
		assertEqual(t, value(w.OlderArrivals(ctx, "u", "bad"))(t), []Arrival(nil)) // the newest speaks
		assertEqual(t, value(w.Arrivals(ctx, "u"))(t)[0], back)
	})
}

func TestObservations(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, w *testStore) {
		obs := func(env, target, data string) Observation {
			return Observation{Unit: "u", Environment: env, Target: target, Data: json.RawMessage(data)}
		}
		must(t, w.PutObservations(ctx, obs("qa", "web-2", `1`), obs("qa", "web-1", `1`), obs("dev", "web", `1`)))
		must(t, w.PutObservations(ctx, obs("qa", "web-2", `2`), obs("dev", "web", `1`)))
		assertEqual(t, value(w.Observations(ctx, "u"))(t), []Observation{obs("dev", "web", `1`), obs("qa", "web-1", `1`), obs("qa", "web-2", `2`)})
		must(t, w.DeleteObservation(ctx, "u", "qa", "web-1"))
		must(t, w.DeleteObservation(ctx, "u", "qa", "web-1"))
		assertEqual(t, len(value(w.Observations(ctx, "u"))(t)), 2)
	})
}

func TestPendingCommands(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, w *testStore) {
		newCommand := PendingCommand{Unit: "u", Environment: "prod", Verb: "promote", Release: "r", By: "ada", ByID: 1 << 40, Reason: "now", Source: "hub:acme/fleet#1/comment/5", At: w.Now()}
		id := value(w.PutPendingCommand(ctx, newCommand))(t)
		again := newCommand
		again.Verb = "revert"
		assertEqual(t, value(w.PutPendingCommand(ctx, again))(t), id)
		newCommand.ID = id
		second := PendingCommand{Unit: "u", Verb: "retry", By: "grace", At: w.Now()}
		second.ID = value(w.PutPendingCommand(ctx, second))(t)
		third := value(w.PutPendingCommand(ctx, PendingCommand{Unit: "u", Verb: "retry", By: "grace"}))(t)
		if third == second.ID {
			t.Fatal("two commands without a source are taken for one")
		}
		bind := func(id int64, release string) {
			t.Helper()
			must(t, w.Tx(ctx, "bind", func(tx *Tx) error { return tx.BindPendingCommand(ctx, id, release) }))
		}
		bind(second.ID, "r2")
		second.Release = "r2"
		must(t, w.FinishPendingCommand(ctx, third, "done"))
		bind(third, "r3") // done: it stays as it was
		assertEqual(t, value(w.PendingCommands(ctx, "u"))(t), []PendingCommand{newCommand, second})
		w.Advance(time.Minute)
		must(t, w.FinishPendingCommand(ctx, id, "promoted"))
		must(t, w.FinishPendingCommand(ctx, id, "too late"))
		assertEqual(t, value(w.PendingCommands(ctx, "u"))(t), []PendingCommand{second})
		newCommand.DoneAt, newCommand.Outcome = w.Now(), "promoted"
		assertEqual(t, found(w.pendingCommandBySource(ctx, newCommand.Source))(t), newCommand)
		assertEqual(t, value(w.PutPendingCommand(ctx, again))(t), id)
		assertEqual(t, value(w.PendingCommands(ctx, "u"))(t), []PendingCommand{second})
	})
}

func TestSlots(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, w *testStore) {
		take := func(owner string, want bool) {
			t.Helper()
			assertEqual(t, value(w.TakeSlot(ctx, "merge:acme/fleet", owner, time.Minute))(t), want)
		}
		take("a", true)
		take("a", true)
		take("b", false)
		must(t, w.FreeSlot(ctx, "merge:acme/fleet", "b"))
		take("b", false)
		must(t, w.FreeSlot(ctx, "merge:acme/fleet", "a"))
		take("b", true)
		w.Advance(time.Minute)
		take("a", true)
		assertEqual(t, value(w.TakeSlot(ctx, "merge:acme/other", "b", time.Minute))(t), true)

		count := func(prefix string, want int) {
			t.Helper()
			assertEqual(t, value(w.CountSlots(ctx, prefix))(t), want)
		}
		count("merge:acme/", 2)
		count("merge:acme/o", 1)
		count("merge:acme/p", 0)
		count("", 2)
		w.Advance(time.Minute)
		count("", 0)
	})
}

func TestMergeQueue(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, w *testStore) {
		for _, u := range []string{"b", "a", "c", "b"} {
			must(t, w.EnqueueMerge(ctx, "acme/fleet", u))
		}
		must(t, w.EnqueueMerge(ctx, "acme/other", "x"))
		assertEqual(t, value(w.MergeQueue(ctx, "acme/fleet"))(t), []string{"b", "a", "c"})
		must(t, w.DequeueMerge(ctx, "acme/fleet", "a"))
		must(t, w.DequeueMerge(ctx, "acme/fleet", "a"))
		must(t, w.EnqueueMerge(ctx, "acme/fleet", "a"))
		assertEqual(t, value(w.MergeQueue(ctx, "acme/fleet"))(t), []string{"b", "c", "a"})
	})
}

// recordKey is a record that nothing but its kind tells from others.
func recordKey(kind string) RecordKey { return RecordKey{Kind: kind} }

func TestRecords(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, w *testStore) {
		hold := func(repo string, pull int, name string) RecordKey { return RecordKey{"hold", repo, pull, name} }
		put := func(key RecordKey, data string) {
			must(t, w.PutRecord(ctx, key, []byte(data)))
		}
		absent(w.Record(ctx, hold("acme/fleet", 7, "")))(t)
		put(hold("acme/fleet", 7, "b"), "\x00\xff")
		put(hold("acme/fleet", 7, "a"), "")
		put(hold("acme/fleet", 12, "a"), "x")
		put(hold("acme/fleet", 12, "a"), "y")
		put(hold("acme/other", 7, "a"), "z")
		put(RecordKey{"held", "acme/fleet", 7, "a"}, "other kind")
		assertEqual(t, found(w.Record(ctx, hold("acme/fleet", 7, "b")))(t), []byte("\x00\xff"))
		if got := found(w.Record(ctx, hold("acme/fleet", 7, "a")))(t); len(got) != 0 {
			t.Fatalf("an empty record came back as %q", got)
		}
		names := func(f RecordFilter) (out []string) {
			f.Kinds = []string{"hold"}
			for _, r := range value(w.Records(ctx, f))(t) {
				out = append(out, fmt.Sprintf("%s#%d %s %s", r.Repo, r.Pull, r.Name, r.Data))
			}
			return out
		}
		assertEqual(t, names(RecordFilter{}), []string{"acme/fleet#7 a ", "acme/fleet#7 b \x00\xff", "acme/fleet#12 a y", "acme/other#7 a z"})
		assertEqual(t, names(RecordFilter{Pull: 7, NamePrefix: "a"}), []string{"acme/fleet#7 a ", "acme/other#7 a z"})
		assertEqual(t, names(RecordFilter{Repo: "acme/fleet", Pull: 12}), []string{"acme/fleet#12 a y"})
		must(t, w.DeleteRecord(ctx, hold("acme/fleet", 12, "a")))
		must(t, w.DeleteRecord(ctx, hold("acme/fleet", 12, "a")))
		absent(w.Record(ctx, hold("acme/fleet", 12, "a")))(t)
		must(t, w.Tx(ctx, "settled", func(tx *Tx) error { return tx.DeletePullRecords(ctx, "acme/fleet", 7, "hold", "unknown") }))
		assertEqual(t, names(RecordFilter{}), []string{"acme/other#7 a z"})
		found(w.Record(ctx, RecordKey{"held", "acme/fleet", 7, "a"}))(t)
	})
}

// A transaction sees its own writes, and a failure takes all of them back. Where reads
// don't wait for it, others don't see them before the commit.
func TestTransaction(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, w *testStore) {
		_, readsWait := w.backend.(*memoryDB)
		stop := errors.New("stop")
		put := func(tx *Tx) error {
			if err := tx.PutRecord(ctx, recordKey("k"), []byte("v")); err != nil {
				return err
			}
			if _, ok, err := tx.Record(ctx, recordKey("k")); err != nil || !ok {
				return fmt.Errorf("own write: %v, %v", ok, err)
			}
			if !readsWait {
				absent(w.Record(ctx, recordKey("k")))(t)
			}
			_, err := tx.AddEvents(ctx, Event{Kind: "k"})
			return err
		}
		err := w.Tx(ctx, "run", func(tx *Tx) error {
			if err := put(tx); err != nil {
				return err
			}
			return stop
		})
		if !errors.Is(err, stop) {
			t.Fatalf("got %v, want the function's error", err)
		}
		absent(w.Record(ctx, recordKey("k")))(t)
		must(t, w.Tx(ctx, "run", put))
		found(w.Record(ctx, recordKey("k")))(t)
		assertEqual(t, len(value(w.Events(ctx, EventFilter{}))(t)), 1)
	})
}

func TestTooBigIsRefused(t *testing.T) { onEachDatabase(t, testTooBigIsRefused) }

func testTooBigIsRefused(t *testing.T, w *testStore) {
	big := json.RawMessage(strings.Repeat("x", maxData+1))
	_, event := w.AddEvents(ctx, Event{Data: big})
	_, arrived := w.PutArrival(ctx, Arrival{Unit: "u", Data: big})
	_, promotion := w.PutPromotion(ctx, Promotion{Data: big})
	for name, err := range map[string]error{
		"event": event, "arrived": arrived, "promotion": promotion,
		"pull":        w.PutPulls(ctx, Pull{Repo: "r", Data: big}),
		"unit":        w.PutUnit(ctx, Unit{Key: "u", Data: big}),
		"observation": w.PutObservations(ctx, Observation{Data: big}),
		"state":       w.PutRecord(ctx, recordKey("k"), big),
		"long key":    w.PutRecord(ctx, recordKey(strings.Repeat("x", maxKey+1)), nil),
		"no text":     w.PutUnit(ctx, Unit{Key: "u", Data: json.RawMessage("\xff")}),
	} {
		if !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
}

func TestCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := string(rapid.SliceOf(rapid.Byte()).Draw(t, "s")) + rapid.String().Draw(t, "more")
		n := rapid.IntRange(3, 64).Draw(t, "n")
		got := truncateText(s, n)
		switch {
		case len(got) > n:
			t.Fatalf("%q has %d bytes, want at most %d", got, len(got), n)
		case !isStorable(got):
			t.Fatalf("%q can't be stored", got)
		case isStorable(s) && len(s) <= n && got != s:
			t.Fatalf("%q was changed to %q without need", s, got)
		}
	})
}

// TestAddRecord adds a record where none is, once, however many add it at the same time.
func TestAddRecord(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, w *testStore) {
		const adders = 4
		var wins [adders]bool
		var g errgroup.Group
		for i := range adders {
			g.Go(func() (err error) {
				wins[i], err = w.AddRecord(ctx, recordKey("k"), []byte{byte('0' + i)})
				return err
			})
		}
		must(t, g.Wait())
		data, found, err := w.Record(ctx, recordKey("k"))
		if err != nil || !found || len(data) != 1 {
			t.Fatalf("%q, %t, %v", data, found, err)
		}
		for i, won := range wins {
			if won != (data[0] == byte('0'+i)) {
				t.Errorf("%d is told %t, and the record is %q", i, won, data)
			}
		}
		if added := value(w.AddRecord(ctx, recordKey("k"), []byte("again")))(t); added {
			t.Error("it is added again")
		}
		must(t, w.DeleteRecord(ctx, recordKey("k")))
		if added := value(w.AddRecord(ctx, recordKey("k"), nil))(t); !added {
			t.Error("it isn't added after it was forgotten")
		}
		if _, err := w.AddRecord(ctx, RecordKey{}, nil); !errors.Is(err, ErrInvalid) {
			t.Errorf("without a kind: %v", err)
		}
	})
}
