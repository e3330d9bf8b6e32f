package console

import (
	"database/sql"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/stored"
	"github.com/liftlock/liftlock/internal/store"
)

func TestOverviewListsHoldsAndDrift(t *testing.T) {
	w := newTestConsole(t, nil)
	w.seed()
	everywhere := promotion.Hold{Scope: "environment", Environment: "prod", By: "grace", Reason: "holidays", At: before(2 * time.Hour), Until: now.Add(24 * time.Hour)}
	w.holds = map[string][]promotion.Hold{"a": {everywhere}, "b": {everywhere, {Scope: "component", By: "ada", At: before(3 * time.Hour)}}}
	for _, name := range []string{"a", "b"} {
		w.unit(testRepo, "shop", name, "", env("dev", promotion.Verified, "1", time.Hour, 1))
	}
	o := readJSON[api.Overview](w, "/api/v1/overview")
	var held []string
	for _, h := range o.Held {
		by := h.Reason
		if h.Hold != nil {
			by = h.Hold.By
		}
		held = append(held, strings.TrimSpace(h.Component+" "+h.Environment+" "+by[:min(len(by), 12)]))
	}
	if want := []string{"mail qa on hold by a", "b  ada", "prod grace"}; !slices.Equal(held, want) {
		t.Errorf("held is %q, want %q", held, want)
	}
	if len(o.Drifted) != 1 || o.Drifted[0].Target.Name != "qa-b" || len(o.Reverts) != 1 || o.Reverts[0].ID != 4 || len(o.Delivery.Days) != overviewDays {
		t.Errorf("%+v", o)
	}
	_, _, body := w.get("/overview")
	for _, v := range []string{"all components <span class=\"muted\">of shop in prod</span>", "holidays", "in 24 h", "Deployment web (missing)", `href="/promotions/4"`, "1 in all, at most 1 a day"} {
		if !strings.Contains(body, v) {
			t.Errorf("the page has no %q", v)
		}
	}
}

// Where the numbers can't be measured the rest is shown, and the store isn't read again for each reader.
func TestOverviewWithoutNumbers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "liftlock.db")
	at := now
	w := newTestConsole(t, func(o *Options) {
		s, err := store.Open(t.Context(), "sqlite://"+path, store.Options{Now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		o.Store, o.Now = s, func() time.Time { return at }
	})
	w.store = w.options.Store
	w.seed()
	db, err := sql.Open("sqlite", path)
	w.must(err)
	defer db.Close()
	rename := func(from, to string) {
		_, err := db.ExecContext(t.Context(), "ALTER TABLE "+from+" RENAME TO "+to)
		w.must(err)
	}
	rename("arrivals", "elsewhere")
	o := readJSON[api.Overview](w, "/api/v1/overview")
	if len(o.Held) == 0 || len(o.Drifted) == 0 || len(o.Reverts) == 0 || o.Delivery != nil || !strings.Contains(o.DeliveryError, "could not be measured") {
		t.Errorf("%+v", o)
	}
	if status, _, body := w.get("/overview"); status != 200 || !strings.Contains(body, "The numbers are missing: how well") || !strings.Contains(body, "Deployment web (missing)") {
		t.Errorf("the page is answered with %d: %s", status, body)
	}
	rename("elsewhere", "arrivals")
	if o := readJSON[api.Overview](w, "/api/v1/overview"); o.Delivery != nil {
		t.Error("it is tried again at once")
	}
	at = at.Add(deliveryErrorKept)
	if o := readJSON[api.Overview](w, "/api/v1/overview"); o.Delivery == nil || o.DeliveryError != "" {
		t.Errorf("later it is %+v", o)
	}
}

func TestDeliveryIsMeasured(t *testing.T) {
	since := now.Truncate(24*time.Hour).AddDate(0, 0, 1-overviewDays)
	u := &stored.Unit{Environments: []stored.Environment{{Name: "dev"}, {Name: "prod", After: []string{"dev"}}}}
	at := func(day, hour int) time.Time { return since.AddDate(0, 0, day).Add(time.Duration(hour) * time.Hour) }
	promoted, person := mustJSON(map[string]any{"by": "promotion"}), mustJSON(map[string]any{"by": "person"})
	days := make([]deliveryDay, overviewDays)
	measureArrivals(days, since, u, []store.Arrival{ // newest first
		{Environment: "prod", Release: "1", At: at(3, 2), VerifiedAt: at(3, 3), Data: mustJSON(map[string]any{"by": "revert"})},
		{Environment: "prod", Release: "2", At: at(3, 0), DegradedAt: at(3, 1), Data: promoted},
		{Environment: "dev", Release: "2", At: at(2, 0), VerifiedAt: at(2, 1), Data: person},
		{Environment: "prod", Release: "1", At: at(1, 4), VerifiedAt: at(1, 6), Data: promoted},
		{Environment: "dev", Release: "1", At: at(1, 0), VerifiedAt: at(1, 1), Data: person},
		{Environment: "prod", Release: "0", At: at(-9, 0), VerifiedAt: at(-8, 0), Data: promoted}, // before that time
	})
	if d := days[1]; d.changes != 1 || d.failures != 0 || !slices.Equal(d.leads, []time.Duration{6 * time.Hour}) {
		t.Errorf("the first day is %+v", d)
	}
	if d := days[3]; d.changes != 1 || d.failures != 1 || len(d.leads) != 0 || !slices.Equal(d.restores, []time.Duration{2 * time.Hour}) {
		t.Errorf("the day of the failure is %+v", d)
	}
	plots := plotDelivery(&api.Delivery{Changes: 4, Failures: 1, Days: []api.DeliveryDay{{Day: since, Changes: 4, Failures: 1, LeadMedian: 7200}, {Day: since.AddDate(0, 0, 1), Changes: 1}}})
	if p := plots[0]; p.Bars[0].Height != plotHeight || p.Bars[1].Height != plotHeight/4 || p.Bars[1].Y != plotHeight*3/4 || p.Most != "4" {
		t.Errorf("%+v", p)
	}
	if plots[1].Whole != "25 %" || plots[2].Most != "2 h" || !plots[3].Nothing {
		t.Errorf("%+v", plots)
	}
}
