package facts

import (
	"context"
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/stored"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
)

// newTestStore is a new store on disk.
func newTestStore(t *testing.T) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), "sqlite://"+filepath.Join(t.TempDir(), "liftlock.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// TestCountAhead counts the components that have waited longer for a place. The same ones come
// first for every caller, and two never wait for each other.
func TestCountAhead(t *testing.T) {
	s := newTestStore(t)
	g := &recordGatherer{store: s}
	start := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	unit := func(component string) promotion.Unit {
		return promotion.Unit{Repo: "hub:acme/fleet", Pipeline: "shop", Component: component}
	}
	since := map[string]time.Time{"web": start.Add(2 * time.Minute), "api": start, "db": start.Add(2 * time.Minute), "late": start.Add(time.Hour)}
	err := s.Tx(t.Context(), "test", func(tx *store.Tx) error {
		for component, at := range since {
			u := unit(component)
			view := stored.Unit{Unit: u}
			view.Decision.Envs = []promotion.EnvState{{Environment: "qa", Promotion: promotion.Waiting, ReadySince: at}}
			data, err := json.Marshal(view)
			if err != nil {
				return err
			}
			if err := tx.PutUnit(context.Background(), store.Unit{Key: wake.UnitName(u), Repo: u.Repo, Pipeline: u.Pipeline, Component: component, Digest: component, UpdatedAt: at, Data: data}); err != nil {
				return err
			}
			waits, err := json.Marshal(queuedSince{"qa": at})
			if err != nil {
				return err
			}
			if err := tx.PutRecord(context.Background(), queued.Key(record.Unit(u)), waits); err != nil {
				return err
			}
		}
		other := promotion.Unit{Repo: "hub:acme/fleet", Pipeline: "shopping", Component: "web"} // another pipeline, whose name begins alike
		return tx.PutRecord(context.Background(), queued.Key(record.Unit(other)), []byte(`{"qa":"2026-03-02T00:00:00Z"}`))
	})
	if err != nil {
		t.Fatal(err)
	}
	for component, want := range map[string]map[string]int{
		"api":  {},
		"db":   {"qa": 1}, // as long as web: by name
		"web":  {"qa": 2},
		"late": {"qa": 3},
		"new":  {"qa": 4}, // was never judged
	} {
		l := promotion.Limits{QueuedAhead: map[string]int{}}
		if err := g.countAhead(t.Context(), unit(component), s, &l); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, l.QueuedAhead); diff != "" {
			t.Errorf("ahead of %s (-want +got):\n%s", component, diff)
		}
	}
	err = s.Tx(t.Context(), "test", func(tx *store.Tx) error { return g.DropQueued(context.Background(), tx, unit("api")) })
	if err != nil {
		t.Fatal(err)
	}
	l := promotion.Limits{QueuedAhead: map[string]int{}}
	if err := g.countAhead(t.Context(), unit("db"), s, &l); err != nil || len(l.QueuedAhead) > 0 {
		t.Errorf("after api left: %v, %v", l.QueuedAhead, err)
	}
}
