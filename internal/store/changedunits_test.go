package store

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
)

// unitCalls counts how units are read.
type unitCalls struct {
	*Store
	single, whole int
}

func (u *unitCalls) Units(ctx context.Context, f UnitFilter) ([]Unit, error) {
	if !f.WithoutData {
		u.whole++
	}
	return u.Store.Units(ctx, f)
}

func (u *unitCalls) Unit(ctx context.Context, key string) (Unit, bool, error) {
	u.single++
	return u.Store.Unit(ctx, key)
}

// TestChangedUnits reads the data of what isn't known, and of no more than that where it is little.
func TestChangedUnits(t *testing.T) {
	s := OpenMemory(Options{})
	defer func() { must(t, s.Close()) }()
	const all = 2 * maxSingleReads
	must(t, s.Tx(ctx, "judged", func(tx *Tx) error {
		for n := range all {
			if err := tx.PutUnit(ctx, Unit{Key: fmt.Sprintf("unit %03d", n), Pipeline: "shop", Component: fmt.Sprintf("c%03d", n), Digest: "1", Data: json.RawMessage(fmt.Sprintf(`{"n":%d}`, n))}); err != nil {
				return err
			}
		}
		return nil
	}))
	for _, c := range []struct{ known, single, whole int }{{all, 0, 0}, {all - 1, 1, 0}, {all - maxSingleReads, maxSingleReads, 0}, {all - maxSingleReads - 1, 0, 1}, {0, 0, 1}} {
		calls := &unitCalls{Store: s}
		n := 0
		rows := value(ChangedUnits(ctx, calls, func(u *Unit) bool {
			if u.Data != nil {
				t.Errorf("%s was read whole to know whether it has changed", u.Key)
			}
			n++
			return n <= c.known
		}))(t)
		if len(rows) != all || calls.single != c.single || calls.whole != c.whole {
			t.Errorf("%d known: %d units in %d calls for one and %d for all, want %d and %d", c.known, len(rows), calls.single, calls.whole, c.single, c.whole)
		}
		for i, u := range rows {
			if u.Key != fmt.Sprintf("unit %03d", i) || i >= c.known && string(u.Data) != fmt.Sprintf(`{"n":%d}`, i) {
				t.Fatalf("%d known: number %d is %s: %s", c.known, i, u.Key, u.Data)
			}
		}
	}
}

// TestChangedUnitIsGone leaves out a unit that was forgotten after the list was read.
func TestChangedUnitIsGone(t *testing.T) {
	s := OpenMemory(Options{})
	defer func() { must(t, s.Close()) }()
	put := func(tx *Tx) error {
		for _, key := range []string{"a", "b"} {
			if err := tx.PutUnit(ctx, Unit{Key: key, Component: key, Digest: "1", Data: json.RawMessage(`{}`)}); err != nil {
				return err
			}
		}
		return nil
	}
	must(t, s.Tx(ctx, "judged", put))
	rows := value(ChangedUnits(ctx, s, func(u *Unit) bool {
		if u.Key == "a" {
			must(t, s.Tx(ctx, "forgotten", func(tx *Tx) error { return tx.DeleteUnit(ctx, "a") }))
		}
		return false
	}))(t)
	if len(rows) != 1 || rows[0].Key != "b" {
		t.Errorf("got %+v", rows)
	}
}
