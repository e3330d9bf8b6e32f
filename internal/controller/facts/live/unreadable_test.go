package live

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
)

// unreadableState is a store that can't be read.
type unreadableState struct{ err error }

func (u unreadableState) Record(context.Context, store.RecordKey) ([]byte, bool, error) {
	return []byte(`{"healthy": {"web-qa": true}}`), true, u.err
}

// TestReadState takes a value that can't be understood for none, and no failure for that.
func TestReadState(t *testing.T) {
	s := newTestStore(t)
	for name, c := range map[string]struct {
		data string
		want HealthBeforeMerge
		ok   bool
	}{
		"none":            {},
		"of another kind": {data: `[]`},
		"in part":         {data: `{"components": {"web": true}, "healthy": []}`},
		"a record":        {`{"at": "2026-03-02T12:00:00Z", "healthy": {"web-qa": true}, "components": {"web": true}}`, HealthBeforeMerge{At: time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC), Healthy: map[string]bool{"web-qa": true}, Components: map[string]bool{"web": true}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			about := record.OfPull("hub:acme/"+name, 7)
			if c.data != "" {
				if err := s.PutRecord(t.Context(), HealthBefore.Key(about), []byte(c.data)); err != nil {
					t.Fatal(err)
				}
			}
			got, ok, err := HealthBefore.Get(t.Context(), s, about)
			if diff := cmp.Diff(c.want, got); diff != "" || ok != c.ok || err != nil {
				t.Errorf("%t, %v (-want +got):\n%s", ok, err, diff)
			}
		})
	}
	away := errors.New("the store is away")
	got, ok, err := HealthBefore.Get(t.Context(), unreadableState{away}, record.OfPull("r", 7))
	if ok || !errors.Is(err, away) || got.Healthy != nil {
		t.Errorf("of a store that is away: %+v, %t, %v", got, ok, err)
	}
}
