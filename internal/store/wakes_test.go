package store

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

const me = "runner-1"

// claim claims everything that is due and compares the keys, in any order.
func (ts *testStore) claim(t *testing.T, owner string, want ...string) []Claim {
	t.Helper()
	claims := value(ts.Claim(ctx, owner, 100))(t)
	got := keysOf(claims)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Fatalf("claimed %q, want %q", got, want)
	}
	return claims
}

func TestWakes(t *testing.T) {
	tests := []struct {
		name string
		run  func(t *testing.T, w *testStore)
	}{
		{"a woken key is claimed once", func(t *testing.T, w *testStore) {
			must(t, w.Wake(ctx, "a", "b", "a"))
			w.claim(t, me, "a", "b")
			w.claim(t, me)
		}},
		{"the longest due comes first, and no more than asked for", func(t *testing.T, w *testStore) {
			for _, k := range []string{"c", "a", "b"} {
				must(t, w.Wake(ctx, k))
				w.Advance(time.Second)
			}
			for _, want := range []string{"c", "a", "b"} {
				got := keysOf(value(w.Claim(ctx, me, 1))(t))
				if !slices.Equal(got, []string{want}) {
					t.Fatalf("claimed %q, want %q", got, want)
				}
			}
		}},
		{"a later time waits", func(t *testing.T, w *testStore) {
			must(t, w.WakeAt(ctx, w.Now().Add(time.Minute), "a"))
			w.claim(t, me)
			w.Advance(time.Minute - time.Microsecond)
			w.claim(t, me)
			w.Advance(time.Microsecond)
			w.claim(t, me, "a")
		}},
		{"an earlier time replaces a later one", func(t *testing.T, w *testStore) {
			must(t, w.WakeAt(ctx, w.Now().Add(time.Hour), "a"))
			must(t, w.WakeAt(ctx, w.Now().Add(time.Minute), "a"))
			must(t, w.WakeAt(ctx, w.Now().Add(time.Hour), "a"))
			w.Advance(time.Minute)
			w.claim(t, me, "a")
		}},
		{"a time in the past is now", func(t *testing.T, w *testStore) {
			must(t, w.WakeAt(ctx, w.Now().Add(-time.Hour), "a"))
			w.claim(t, me, "a")
		}},
		{"a wake during a run causes another run, and not beside it", func(t *testing.T, w *testStore) {
			must(t, w.Wake(ctx, "a"))
			c := w.claim(t, me, "a")
			must(t, w.Wake(ctx, "a"))
			w.claim(t, "runner-2")
			must(t, w.Finish(ctx, me, c[0], Outcome{}))
			w.claim(t, "runner-2", "a")
		}},
		{"no wake during a run, no other run", func(t *testing.T, w *testStore) {
			must(t, w.Wake(ctx, "a"))
			c := w.claim(t, me, "a")
			must(t, w.Finish(ctx, me, c[0], Outcome{}))
			w.claim(t, me)
			absent(w.NextDue(ctx))(t)
		}},
		{"a time asked for during a run is kept", func(t *testing.T, w *testStore) {
			must(t, w.Wake(ctx, "a"))
			c := w.claim(t, me, "a")
			must(t, w.WakeAt(ctx, w.Now().Add(time.Minute), "a"))
			must(t, w.Finish(ctx, me, c[0], Outcome{Next: w.Now().Add(time.Hour)}))
			w.claim(t, me)
			w.Advance(time.Minute)
			w.claim(t, me, "a")
		}},
		{"a run says when the next is due", func(t *testing.T, w *testStore) {
			must(t, w.Wake(ctx, "a"))
			c := w.claim(t, me, "a")
			next := w.Now().Add(time.Minute)
			must(t, w.Finish(ctx, me, c[0], Outcome{Next: next}))
			if got := found(w.NextDue(ctx))(t); !got.Equal(next) {
				t.Fatalf("next due at %s, want %s", got, next)
			}
			w.Advance(time.Minute)
			w.claim(t, me, "a")
		}},
		{"a key that is held back stays back however often it is woken", func(t *testing.T, w *testStore) {
			must(t, w.Wake(ctx, "a"))
			c := w.claim(t, me, "a")
			back := w.Now().Add(time.Minute)
			must(t, w.Finish(ctx, me, c[0], Outcome{NotBefore: back}))
			absent(w.NextDue(ctx))(t)
			must(t, w.Wake(ctx, "a"))
			w.claim(t, me)
			if got := found(w.NextDue(ctx))(t); !got.Equal(back) {
				t.Fatalf("next due at %s, want %s", got, back)
			}
			w.Advance(time.Minute)
			c = w.claim(t, me, "a")
			must(t, w.Finish(ctx, me, c[0], Outcome{}))
			must(t, w.Wake(ctx, "a"))
			w.claim(t, me, "a")
		}},
		{"failures in a row are counted", func(t *testing.T, w *testStore) {
			failed, putOff, done := Outcome{Failed: true}, Outcome{PutOff: true}, Outcome{}
			for _, step := range []struct {
				fails   int
				outcome Outcome
			}{{0, failed}, {1, failed}, {2, putOff}, {2, done}, {0, putOff}, {0, failed}, {1, done}} {
				must(t, w.Wake(ctx, "a"))
				c := w.claim(t, me, "a")
				if c[0].Fails != step.fails {
					t.Fatalf("claimed with %d fails, want %d", c[0].Fails, step.fails)
				}
				must(t, w.Finish(ctx, me, c[0], step.outcome))
			}
		}},
		{"a lease that isn't renewed ends", func(t *testing.T, w *testStore) {
			must(t, w.Wake(ctx, "a"))
			c := w.claim(t, me, "a")
			if got := found(w.NextDue(ctx))(t); !got.Equal(w.Now().Add(DefaultLease)) {
				t.Fatalf("next due at %s, want the end of the lease", got)
			}
			w.Advance(DefaultLease)
			second := w.claim(t, "runner-2", "a")
			if err := w.Finish(ctx, me, c[0], Outcome{}); !errors.Is(err, ErrLost) {
				t.Fatalf("finish of a lost claim: %v, want ErrLost", err)
			}
			must(t, w.Finish(ctx, "runner-2", second[0], Outcome{}))
		}},
		{"a lost claim is lost also when its owner has the key again", func(t *testing.T, w *testStore) {
			must(t, w.Wake(ctx, "a"))
			first := w.claim(t, me, "a")
			w.Advance(DefaultLease)
			second := w.claim(t, me, "a")
			if err := w.Finish(ctx, me, first[0], Outcome{}); !errors.Is(err, ErrLost) {
				t.Fatalf("finish of a lost claim: %v, want ErrLost", err)
			}
			must(t, w.Finish(ctx, me, second[0], Outcome{}))
		}},
		{"a run stores nothing once another one has its key", func(t *testing.T, w *testStore) {
			must(t, w.Wake(ctx, "b"))
			run := WithClaim(ctx, me, w.claim(t, me, "b")[0])
			put := func(value string) error {
				return w.Tx(run, "run", func(tx *Tx) error {
					return errors.Join(tx.PutRecord(run, recordKey("found"), []byte(value)), tx.Wake(run, "a", "b", "c"))
				})
			}
			must(t, put("first"))
			if got := value(w.TakeSlot(run, "slot", me, time.Hour))(t); !got {
				t.Fatal("the slot is taken")
			}
			w.Advance(DefaultLease)
			must(t, put("late, and nobody else has it"))
			second := w.claim(t, "runner-2", "a", "b", "c")
			_, slot := w.TakeSlot(run, "slot", me, time.Hour)
			for what, err := range map[string]error{"a transaction": put("late"), "a write": w.PutRecord(run, recordKey("found"), []byte("late")), "a wake": w.Wake(run, "d"), "a slot": slot} {
				if !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "the run of b") {
					t.Errorf("%s of a run whose claim is lost: %v, want ErrLost", what, err)
				}
			}
			if got := string(found(w.Record(ctx, recordKey("found")))(t)); got != "late, and nobody else has it" {
				t.Errorf("%q is stored", got)
			}
			must(t, w.FreeSlot(run, "slot", me))
			if got := value(w.TakeSlot(ctx, "slot", "runner-2", time.Hour))(t); !got {
				t.Error("a run whose claim is lost can't give its slot back")
			}
			for _, c := range second {
				must(t, w.Finish(ctx, "runner-2", c, Outcome{}))
			}
			w.claim(t, me)
			if err := put("nobody runs it"); !errors.Is(err, ErrLost) {
				t.Errorf("once the other run has ended: %v, want ErrLost", err)
			}
		}},
		{"a renewed lease goes on, and the lost ones are named", func(t *testing.T, w *testStore) {
			must(t, w.Wake(ctx, "a", "b"))
			w.claim(t, me, "a", "b")
			w.Advance(DefaultLease / 2)
			if lost := value(w.Renew(ctx, me, []string{"a"}))(t); len(lost) != 0 {
				t.Fatalf("lost %q, want none", lost)
			}
			w.Advance(DefaultLease / 2)
			w.claim(t, "runner-2", "b")
			if lost := value(w.Renew(ctx, me, []string{"a", "b", "c"}))(t); !slices.Equal(lost, []string{"b", "c"}) {
				t.Fatalf("lost %q, want b and c", lost)
			}
		}},
		{"claims that nobody knows of are freed", func(t *testing.T, w *testStore) {
			must(t, w.Wake(ctx, "a", "b", "c"))
			w.claim(t, me, "a", "b", "c")
			must(t, w.Wake(ctx, "other"))
			w.claim(t, "runner-2", "other")
			w.Advance(time.Second)
			if freed := value(w.FreeClaims(ctx, me, []string{"b", "other"}))(t); freed != 2 {
				t.Fatalf("%d were freed, want 2", freed)
			}
			c := w.claim(t, "runner-2", "a", "c")
			if c[0].Gen != 2 {
				t.Fatalf("the claim after is %+v, want another one", c[0])
			}
			if lost := value(w.Renew(ctx, me, []string{"a", "b"}))(t); !slices.Equal(lost, []string{"a"}) {
				t.Fatalf("lost %q, want a", lost)
			}
			if freed := value(w.FreeClaims(ctx, me, nil))(t); freed != 1 {
				t.Fatalf("%d were freed, want the one that is left", freed)
			}
			if freed := value(w.FreeClaims(ctx, me, nil))(t); freed != 0 {
				t.Fatalf("%d were freed, want none", freed)
			}
		}},
		{"the queue's depth", func(t *testing.T, w *testStore) {
			if d := value(w.Depth(ctx))(t); d != (Depth{}) {
				t.Fatalf("depth of an empty queue is %+v", d)
			}
			must(t, w.Wake(ctx, "running"))
			w.claim(t, me, "running")
			must(t, w.Wake(ctx, "due"))
			w.Advance(time.Second)
			must(t, w.Wake(ctx, "due too"))
			must(t, w.WakeAt(ctx, w.Now().Add(time.Hour), "later"))
			want := Depth{Due: 2, Later: 1, Running: 1, Oldest: time.Second}
			if d := value(w.Depth(ctx))(t); d != want {
				t.Fatalf("depth is %+v, want %+v", d, want)
			}
		}},
		{"many keys at once", func(t *testing.T, w *testStore) {
			var keys []string
			for i := range 3*wakesAtOnce + 7 {
				keys = append(keys, "key-"+string(rune('A'+i%26))+string(rune('0'+i/26)))
			}
			must(t, w.Wake(ctx, keys...))
			claims := value(w.Claim(ctx, me, 1000))(t)
			if len(claims) != len(keys) {
				t.Fatalf("claimed %d, want %d", len(claims), len(keys))
			}
			if lost := value(w.Renew(ctx, me, keys))(t); len(lost) != 0 {
				t.Fatalf("lost %q", lost)
			}
		}},
		{"what can't be a key is refused", func(t *testing.T, w *testStore) {
			for _, key := range []string{"", "a\x00b", "\xff", string(make([]byte, maxKey+1))} {
				if err := w.Wake(ctx, key); !errors.Is(err, ErrInvalid) {
					t.Errorf("Wake(%.20q): %v, want ErrInvalid", key, err)
				}
			}
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { onEachDatabase(t, tt.run) })
	}
}

// TestKeyThatProcessesDieOn holds that a key whose runs end the process is left alone for longer
// each time, whatever wakes it. One that was run beside it comes to its end alone.
func TestKeyThatProcessesDieOn(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, w *testStore) {
		const evil, honest = "delivery|evil", "delivery|honest"
		die := func() {
			if w.open != nil {
				w.reopen() // SQLite's next process knows that the last one is gone
			}
			w.Advance(DefaultLease)
		}
		aside := func(key string, fails int) time.Duration {
			return deathDelay(newClaim{Claim: Claim{Key: key, Fails: fails}, died: true}, DefaultLease)
		}
		if aside(evil, 2) == aside(honest, 2) {
			t.Fatal("both are left alone for the same time")
		}
		must(t, w.Wake(ctx, evil, honest))
		w.claim(t, "p1", evil, honest)
		die()
		w.claim(t, "p2", evil, honest) // a machine goes away once in a while
		die()
		must(t, w.WakeAs(ctx, Urgent, "another"))
		must(t, w.Finish(ctx, "p3", w.claim(t, "p3", "another")[0], Outcome{}))
		must(t, w.WakeAs(ctx, Urgent, evil))
		w.claim(t, "p3")

		w.Advance(max(aside(evil, 2), aside(honest, 2)))
		for _, c := range w.claim(t, "p4", evil, honest) {
			if c.Fails != 2 {
				t.Errorf("%s has failed %d times", c.Key, c.Fails)
			}
			if c.Key == honest {
				must(t, w.Finish(ctx, "p4", c, Outcome{}))
			}
		}
		die()
		must(t, w.Wake(ctx, evil, honest))
		if c := w.claim(t, "p5", honest); c[0].Fails != 0 {
			t.Errorf("what came to its end has failed %d times", c[0].Fails)
		}
		w.Advance(aside(evil, 3) - time.Second)
		if next, again := aside(evil, 3), aside(evil, 30); next < 2*aside(evil, 2) || again > 2*maxDeathLeases*DefaultLease {
			t.Errorf("it is left alone for %s, and for %s at last", next, again)
		}
		must(t, w.Wake(ctx, evil))
		if slices.Contains(keysOf(value(w.Claim(ctx, "p6", 100))(t)), evil) {
			t.Error("it was claimed before its time")
		}
		w.Advance(time.Second)
		if !slices.Contains(keysOf(value(w.Claim(ctx, "p6", 100))(t)), evil) {
			t.Error("it is left alone for ever")
		}
	})
}

// A transaction that finishes its key and wakes it leaves it due.
func TestFinishAndWakeInOneTransaction(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, w *testStore) {
		must(t, w.Wake(ctx, "b"))
		c := w.claim(t, me, "b")
		must(t, w.Tx(ctx, "run", func(tx *Tx) error {
			if err := tx.Wake(ctx, "a", "b", "c"); err != nil {
				return err
			}
			return tx.Finish(ctx, me, c[0], Outcome{})
		}))
		w.claim(t, me, "a", "b", "c")
	})
}

// A lost claim takes everything that its run would have stored with it.
func TestLostClaimStoresNothing(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, w *testStore) {
		must(t, w.Wake(ctx, "a"))
		c := w.claim(t, me, "a")
		w.Advance(DefaultLease)
		w.claim(t, "runner-2", "a")
		err := w.Tx(ctx, "run", func(tx *Tx) error {
			if err := tx.PutRecord(ctx, recordKey("k"), []byte("v")); err != nil {
				return err
			}
			if err := tx.Wake(ctx, "b"); err != nil {
				return err
			}
			return tx.Finish(ctx, me, c[0], Outcome{})
		})
		if !errors.Is(err, ErrLost) {
			t.Fatalf("got %v, want ErrLost", err)
		}
		absent(w.Record(ctx, recordKey("k")))(t)
		w.claim(t, me)
	})
}

func TestWakeupsAreSignalled(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, w *testStore) {
		must(t, w.WakeAt(ctx, w.Now().Add(time.Hour), "a"))
		await(t, w.Wakeups(), "a wake")
		must(t, w.Wake(ctx, "a"))
		await(t, w.Wakeups(), "a wake")
		c := w.claim(t, me, "a")
		must(t, w.Finish(ctx, me, c[0], Outcome{Next: w.Now().Add(time.Minute)}))
		await(t, w.Wakeups(), "a finish with a next time")
	})
}

func await(t testing.TB, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(10 * time.Second):
		t.Fatalf("no signal of %s", what)
	}
}
