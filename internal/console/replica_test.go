package console

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/storetest"
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

// What one replica does, the pages of another show at once: PostgreSQL tells it.
func TestOtherReplicasPagesFollow(t *testing.T) {
	w := newReplicas(t)
	l := w.openStream(t, w.streamOf("/"), nil)
	l.next(func(message) bool { return true })
	api := w.openStream(t, w.url+"/api/v1/events", nil)
	api.next(func(message) bool { return true })

	w.unit(testRepo, "shop", "search", "", env("dev", promotion.Verified, "0.31.0", 0, 1), env("qa", promotion.Verified, "0.30.4", 48*time.Hour, 2), env("prod", promotion.Verified, "0.30.4", 26*time.Hour, 3))
	if p, _ := l.patch(); p.list("rows-hub:acme/fleet-shop") == nil {
		t.Errorf("%+v", p)
	}
	api.next(func(m message) bool { return m.Event == "changed" })
	w.event("web", "prod", "merged", 14, 0, "#14 merged")
	if p, m := l.patch(); p.list("events") == nil || !strings.Contains(m.Data, "#14 merged") {
		t.Errorf("%+v", p)
	}
	api.next(happened)
	// A hold, which is no event of the unit's own.
	w.holds = map[string][]promotion.Hold{"mail": {{Scope: "component", By: "ada", At: before(time.Hour), Until: now.Add(time.Hour)}}}
	w.unit(testRepo, "shop", "mail", "", env("dev", promotion.Verified, "v9", 5*time.Hour, 1))
	_, m := l.patch()
	if !json.Valid([]byte(m.Data)) {
		t.Error("what is sent is no JSON")
	}
}

// BenchmarkPageOfAnotherReplica is how long after one replica wrote something down an open page
// of another shows it.
func BenchmarkPageOfAnotherReplica(b *testing.B) {
	w := newReplicas(b)
	l := w.openStream(b, w.streamOf("/"), nil)
	l.next(func(message) bool { return true })
	for n := 0; b.Loop(); n++ {
		said := fmt.Sprintf("#%d merged", n)
		w.event("web", "prod", "merged", n, 0, said)
		l.next(func(m message) bool { return strings.Contains(m.Data, said) })
	}
}
