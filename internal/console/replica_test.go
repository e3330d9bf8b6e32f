package console

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/world/storetest"
)

// newReplicas are a console whose store is another replica's than the one that things are
// written into. It never looks by itself.
func newReplicas(t testing.TB) *testConsole {
	t.Helper()
	dsn := storetest.PostgresSchema(t)
	open := func() *store.Store {
		s, err := store.Open(t.Context(), dsn, store.Options{Now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	worker, other := open(), open()
	w := newTestConsole(t, nil)
	w.store = worker
	w.seed()
	o := w.options
	o.Store, o.Poll = other, time.Hour
	h, err := New(o)
	w.must(err)
	srv := httptest.NewServer(WithSecurityHeaders(h))
	t.Cleanup(srv.Close)
	w.url = srv.URL
	return w
}

// TestOtherReplicasPagesFollow holds that one replica's change shows on the pages of another at
// once: PostgreSQL tells it.
func TestOtherReplicasPagesFollow(t *testing.T) {
	w := newReplicas(t)
	l := w.openStream(t, w.streamOf("/"), nil)
	l.next(anything)
	api := w.openStream(t, w.url+"/api/v1/events", nil)
	api.next(anything)

	w.land()
	first := l.next(changed)
	api.next(changed)
	w.event("web", "prod", "merged", 14, 0, "#14 merged")
	second := l.next(changed)
	if _, _, body := w.get("/"); !strings.Contains(body, "#14 merged") || second.ID == first.ID {
		t.Errorf("the page is told %+v", second)
	}
	api.next(happened)
	// A hold, which is no event of the unit's own.
	w.holds = map[string][]promotion.Hold{"mail": {{Scope: "component", By: "ada", At: before(time.Hour), Until: now.Add(time.Hour)}}}
	w.unit(testRepo, "shop", "mail", "", env("dev", promotion.Verified, "v9", 5*time.Hour, 1))
	l.next(changed)
}

// BenchmarkPageOfAnotherReplica is how long after one replica wrote something down an open page
// of another shows it.
func BenchmarkPageOfAnotherReplica(b *testing.B) {
	w := newReplicas(b)
	l := w.openStream(b, w.streamOf("/"), nil)
	l.next(anything)
	for n := 0; b.Loop(); n++ {
		said := fmt.Sprintf("#%d merged", n)
		w.event("web", "prod", "merged", n, 0, said)
		for l.next(changed); ; l.next(changed) {
			if _, _, body := w.get("/"); strings.Contains(body, said) {
				break
			}
		}
	}
}
