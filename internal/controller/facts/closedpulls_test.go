package facts

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
)

// TestForgetClosedPulls holds that nothing is kept of refusals and turns of what is closed, and
// everything of what is open, and of other repositories.
func TestForgetClosedPulls(t *testing.T) {
	t.Parallel()
	o, _, r := newCachedPulls(t, time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))
	other := &branch.Repository{ID: r.ID + "-2"}
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
		rows, err := o.store.(*store.Store).Records(t.Context(), store.RecordFilter{})
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			names = append(names, row.String())
		}
		return names
	}
	err := o.store.Tx(t.Context(), "test", func(tx *store.Tx) error {
		return errors.Join(
			tx.PutRecord(t.Context(), updateTurns.Key(record.OfBranch(r.ID, "main")), []byte(`{"pull":1}`)),
			tx.PutRecord(t.Context(), updateTurns.Key(record.OfBranch(r.ID, "release")), []byte(`{"pull":12}`)),
			ForgetClosedPulls(t.Context(), tx, r.ID, []forge.PullRequest{{Number: 12}}))
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"refused-merge of hub:acme/fleet#12", "refused-merge of hub:acme/fleet-2#1", "update-turn of hub:acme/fleet (release)"}
	if diff := cmp.Diff(want, kept()); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
}
