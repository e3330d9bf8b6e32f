package facts

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/store"
)

// TestForgetClosedPulls holds that nothing is kept of refusals and turns of what is closed, and
// everything of what is open, and of other repositories.
func TestForgetClosedPulls(t *testing.T) {
	t.Parallel()
	o, _, r := newCachedPulls(t, time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))
	other := &Repository{ID: r.ID + "-2"}
	refusal := errors.New("Waiting on code owner review.")
	for _, err := range []error{
		o.RecordRefusedMerge(t.Context(), r, 1, "c1", refusal),
		o.RecordRefusedMerge(t.Context(), r, 12, "c2", refusal),
		o.RecordRefusedMerge(t.Context(), other, 1, "c1", refusal),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	kept := func() []string {
		var names []string
		for _, prefix := range []string{"refused|", "turn|"} {
			rows, err := o.store.(*store.Store).StateByPrefix(t.Context(), prefix)
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, slices.Sorted(maps.Keys(rows))...)
		}
		return names
	}
	err := o.store.Tx(t.Context(), "test", func(tx *store.Tx) error {
		return errors.Join(
			tx.PutState(t.Context(), UpdateTurnKey(r.ID, "main"), []byte(`{"pull":1}`)),
			tx.PutState(t.Context(), UpdateTurnKey(r.ID, "release"), []byte(`{"pull":12}`)),
			ForgetClosedPulls(t.Context(), tx, r.ID, []forge.PullRequest{{Number: 12}}))
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"refused|hub:acme/fleet-2|1", "refused|hub:acme/fleet|12", "turn|hub:acme/fleet|release"}
	if diff := cmp.Diff(want, kept()); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
}
