package store

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// modelKey is a key of the queue as its promises describe it.
type modelKey struct {
	due, notBefore time.Time // zero: none
	owner          string
	lease          time.Time
	gen            int64
	fails          int
}

func (m *modelKey) ready() (time.Time, bool) {
	switch {
	case m.owner != "":
		return m.lease, true
	case m.due.IsZero():
		return time.Time{}, false
	case m.due.Before(m.notBefore):
		return m.notBefore, true
	}
	return m.due, true
}

func (m *modelKey) wake(at time.Time) {
	if m.due.IsZero() || at.Before(m.due) {
		m.due = at
	}
}

// Whatever is done in whatever order, the queue does what its model does.
func TestQueueAgainstModel(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, w *testStore) {
		rapid.Check(t, func(t *rapid.T) {
			mustDraw(t, w.Tx(ctx, "clear", func(tx *Tx) error {
				_, err := tx.db.exec(ctx, `DELETE FROM wakes`)
				return err
			}))
			model := map[string]*modelKey{}
			held := []Claim{} // every claim ever made, also those lost
			owners := map[Claim]string{}
			anyKey := rapid.SampledFrom([]string{"a", "b", "c"})
			anyOwner := rapid.SampledFrom([]string{"x", "y"})
			anyTime := rapid.Custom(func(t *rapid.T) time.Time {
				if rapid.Bool().Draw(t, "none") {
					return time.Time{}
				}
				return w.Now().Add(time.Duration(rapid.IntRange(-5, 60).Draw(t, "in")) * time.Second)
			})
			notPast := func(at time.Time) time.Time {
				if !at.IsZero() && at.Before(w.Now()) {
					return w.Now()
				}
				return at
			}
			t.Repeat(map[string]func(*rapid.T){
				"wake": func(t *rapid.T) {
					key, at := anyKey.Draw(t, "key"), notPast(anyTime.Draw(t, "at"))
					if at.IsZero() {
						at = w.Now()
					}
					mustDraw(t, w.WakeAt(ctx, at, key))
					if model[key] == nil {
						model[key] = &modelKey{}
					}
					model[key].wake(at)
				},
				"claim": func(t *rapid.T) {
					owner := anyOwner.Draw(t, "owner")
					claims, err := w.Claim(ctx, owner, 10)
					mustDraw(t, err)
					got := map[string]bool{}
					for key, k := range model {
						at, ok := k.ready()
						if k.owner == "" || !ok || at.After(w.Now()) {
							continue
						}
						k.fails++ // its run had no end
						if delay := deathDelay(newClaim{Claim: Claim{Key: key, Fails: k.fails}, died: true}, DefaultLease); delay > 0 {
							k.gen++
							k.owner, k.due, k.notBefore = "", w.Now(), w.Now().Add(delay)
						}
					}
					for _, c := range claims {
						got[c.Key] = true
						k := model[c.Key]
						if at, ok := k.ready(); !ok || at.After(w.Now()) {
							t.Fatalf("%s was claimed and isn't due", c.Key)
						}
						k.gen++
						if c.Gen != k.gen || c.Fails != k.fails {
							t.Fatalf("claimed %+v, want gen %d and %d fails", c, k.gen, k.fails)
						}
						k.owner, k.lease, k.due = owner, w.Now().Add(DefaultLease), time.Time{}
						held = append(held, c)
						owners[c] = owner
					}
					for key, k := range model {
						if at, ok := k.ready(); ok && !at.After(w.Now()) && !got[key] {
							t.Fatalf("%s is due and wasn't claimed", key)
						}
					}
				},
				"finish": func(t *rapid.T) {
					if len(held) == 0 {
						t.Skip("nothing was claimed")
					}
					c := rapid.SampledFrom(held).Draw(t, "claim")
					o := Outcome{Next: notPast(anyTime.Draw(t, "next")), NotBefore: notPast(anyTime.Draw(t, "not before")), Failed: rapid.Bool().Draw(t, "failed"), PutOff: rapid.Bool().Draw(t, "put off")}
					err := w.Finish(ctx, owners[c], c, o)
					k := model[c.Key]
					if k.owner != owners[c] || k.gen != c.Gen {
						if !errors.Is(err, ErrLost) {
							t.Fatalf("finish of a lost claim: %v", err)
						}
						return
					}
					mustDraw(t, err)
					k.owner, k.notBefore = "", o.NotBefore
					if !o.Next.IsZero() {
						k.wake(o.Next)
					}
					switch {
					case o.PutOff:
					case o.Failed:
						k.fails++
					default:
						k.fails = 0
					}
				},
				"renew": func(t *rapid.T) {
					owner, key := anyOwner.Draw(t, "owner"), anyKey.Draw(t, "key")
					lost, err := w.Renew(ctx, owner, []string{key})
					mustDraw(t, err)
					k := model[key]
					if mine := k != nil && k.owner == owner; mine != (len(lost) == 0) {
						t.Fatalf("renewed %s for %s: lost %q, the model has %+v", key, owner, lost, k)
					} else if mine {
						k.lease = w.Now().Add(DefaultLease)
					}
				},
				"free": func(t *rapid.T) {
					owner, key := anyOwner.Draw(t, "owner"), anyKey.Draw(t, "key")
					_, err := w.FreeClaims(ctx, owner, []string{key})
					mustDraw(t, err)
					for name, k := range model {
						if k.owner == owner && name != key {
							k.owner, k.due = "", w.Now()
						}
					}
				},
				"time passes": func(t *rapid.T) {
					w.Advance(time.Duration(rapid.IntRange(1, 40).Draw(t, "seconds")) * time.Second)
				},
				"": func(t *rapid.T) {
					var want time.Time
					for _, k := range model {
						if at, ok := k.ready(); ok && (want.IsZero() || at.Before(want)) {
							want = at
						}
					}
					got, ok, err := w.NextDue(ctx)
					mustDraw(t, err)
					if ok == want.IsZero() || ok && !got.Equal(want) {
						t.Fatalf("next due at %s (%v), want %s", got, ok, want)
					}
				},
			})
		})
	})
}

// mustDraw is must inside a property.
func mustDraw(t *rapid.T, err error) {
	if err != nil {
		t.Fatal(err)
	}
}
