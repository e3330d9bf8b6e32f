package store

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/liftlock/liftlock/internal/pipeline/event"
)

func TestPromotions(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, w *testStore) {
		p := Promotion{Unit: "u", Repo: "acme/fleet", Pipeline: "shop", Component: "web", Environment: "qa", Kind: "promotion",
			Release: "r1", Pull: 7, State: "open", CreatedAt: w.Now(), UpdatedAt: w.Now(), Data: json.RawMessage(`{}`)}
		p.ID = value(w.PutPromotion(ctx, p))(t)

		byPull := p
		byPull.ID, byPull.State, byPull.CreatedAt, byPull.UpdatedAt = 0, "merged", w.Now().Add(time.Hour), w.Now().Add(time.Hour)
		assertEqual(t, value(w.PutPromotion(ctx, byPull))(t), p.ID)
		p.State, p.UpdatedAt = byPull.State, byPull.UpdatedAt
		assertEqual(t, found(w.Promotion(ctx, p.ID))(t), p)
		assertEqual(t, found(w.PromotionByPull(ctx, p.Unit, p.Repo, 7))(t), p)
		absent(w.PromotionByPull(ctx, p.Unit, p.Repo, 8))(t)
		absent(w.Promotion(ctx, p.ID+100))(t)

		waiting := Promotion{Unit: "u", Repo: p.Repo, Pipeline: "shop", Component: "web", Environment: "prod", Kind: "promotion", State: "waiting", CreatedAt: w.Now(), UpdatedAt: w.Now()}
		waiting.ID = value(w.PutPromotion(ctx, waiting))(t)
		other := waiting
		other.ID, other.Component = 0, "api"
		other.ID = value(w.PutPromotion(ctx, other))(t)
		if other.ID == waiting.ID {
			t.Fatal("two promotions without a pull request are taken for one")
		}
		absent(w.PromotionByPull(ctx, p.Unit, p.Repo, 0))(t)
		waiting.Pull, waiting.State = 8, "open"
		assertEqual(t, value(w.PutPromotion(ctx, waiting))(t), waiting.ID)

		for _, tt := range []struct {
			name   string
			filter PromotionFilter
			want   []Promotion
		}{
			{"all", PromotionFilter{}, []Promotion{other, waiting, p}},
			{"component", PromotionFilter{Pipeline: "shop", Component: "web"}, []Promotion{waiting, p}},
			{"environment", PromotionFilter{Environment: "qa"}, []Promotion{p}},
			{"states", PromotionFilter{States: []string{"open", "merged"}}, []Promotion{waiting, p}},
			{"limit", PromotionFilter{Limit: 1}, []Promotion{other}},
			{"the next page", PromotionFilter{Limit: 1, Before: other.ID}, []Promotion{waiting}},
			{"after the last page", PromotionFilter{Before: p.ID}, nil},
			{"kind", PromotionFilter{Kind: "revert"}, nil},
			{"release", PromotionFilter{Release: "r1"}, []Promotion{p}},
			{"beginning of a release", PromotionFilter{Release: "r"}, []Promotion{p}},
			{"end of a release", PromotionFilter{Release: "1"}, nil},
			{"pull", PromotionFilter{Pull: 8}, []Promotion{waiting}},
			{"nothing", PromotionFilter{Repo: "acme/other"}, nil},
		} {
			t.Run(tt.name, func(t *testing.T) { assertEqual(t, value(w.Promotions(ctx, tt.filter))(t), tt.want) })
		}
		if _, err := w.PutPromotion(ctx, Promotion{ID: 999}); !errors.Is(err, ErrInvalid) {
			t.Fatalf("an unknown ID: %v, want ErrInvalid", err)
		}
	})
}

func TestEvents(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, w *testStore) {
		newEvents, cancel := w.Subscribe()
		shown, leave := w.SubscribeShown()
		defer leave()
		must(t, w.PutUnit(ctx, Unit{Key: "u", Digest: "1"}))
		await(t, shown, "a unit")
		select {
		case <-newEvents:
			t.Error("a unit was signalled as an event")
		default:
		}
		event := func(component, once string, pull int) Event {
			return Event{At: w.Now(), Repo: "acme/fleet", Pipeline: "shop", Component: component, Environment: "qa", Pull: pull, Kind: "opened", Message: "m", IdempotencyKey: once}
		}
		assertEqual(t, value(w.AddEvents(ctx, event("web", "1", 1), event("api", "2", 2), event("web", "1", 1)))(t), 2)
		await(t, newEvents, "new events")
		await(t, shown, "new events")
		assertEqual(t, value(w.AddEvents(ctx, event("web", "", 1), event("web", "", 1), event("web", "2", 1)))(t), 2)
		await(t, newEvents, "new events")
		cancel()
		all := value(w.Events(ctx, EventFilter{}))(t)
		if len(all) != 4 || !slices.IsSortedFunc(all, func(a, b Event) int { return int(a.Seq - b.Seq) }) {
			t.Fatalf("events are %+v", all)
		}
		want := event("web", "1", 1)
		want.Seq = all[0].Seq
		assertEqual(t, all[0], want)
		assertEqual(t, value(w.Events(ctx, EventFilter{After: all[1].Seq}))(t), all[2:])
		assertEqual(t, value(w.Events(ctx, EventFilter{Component: "api", Repo: "acme/fleet", Pull: 2}))(t), all[1:2])
		assertEqual(t, value(w.Events(ctx, EventFilter{Newest: true, Limit: 1}))(t), all[3:])
		assertEqual(t, value(w.Events(ctx, EventFilter{Environment: "prod"}))(t), []Event(nil))

		must(t, func() error { _, err := w.AddEvents(ctx, Event{Message: strings.Repeat("x\x00", maxText)}); return err }())
		got := value(w.Events(ctx, EventFilter{Newest: true, Limit: 1}))(t)[0]
		if len(got.Message) > maxText || !strings.HasSuffix(got.Message, "…") || !got.At.Equal(w.Now()) {
			t.Fatalf("a long message is kept as %d bytes at %s", len(got.Message), got.At)
		}
		select {
		case <-newEvents:
			t.Fatal("signalled after cancel")
		default:
		}
	})
}

func TestAudit(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, w *testStore) {
		a := Audit{At: w.Now(), Actor: "ada", Via: "comment", Verb: "hold", Subject: "shop/prod", Reason: "r", Outcome: "held", Source: "c1", Data: []byte(`{"gates":[]}`)}
		must(t, w.AddAudit(ctx, a))
		must(t, w.AddAudit(ctx, a))
		b := Audit{Actor: "ci", Via: "api", Verb: "promote", Subject: "shop/qa", Outcome: "refused"}
		must(t, w.AddAudit(ctx, b))
		must(t, w.AddAudit(ctx, b))
		all := value(w.AuditTrail(ctx, AuditFilter{}, 0))(t)
		if len(all) != 3 {
			t.Fatalf("%d entries, want 3", len(all))
		}
		a.ID = all[2].ID
		assertEqual(t, all[2], a)
		assertEqual(t, value(w.AuditTrail(ctx, AuditFilter{Actor: "ada", Subject: "shop/prod"}, 10))(t), all[2:])
		assertEqual(t, value(w.AuditTrail(ctx, AuditFilter{Via: "api", Verb: "promote"}, 1))(t), all[:1])
		w.Advance(time.Minute)
		must(t, w.AddAudit(ctx, Audit{Actor: "ada", Verb: "hold", Subject: "shop/qa2", Environment: "qa"}))
		all = value(w.AuditTrail(ctx, AuditFilter{}, 0))(t)
		for name, c := range map[string]struct {
			f    AuditFilter
			want []Audit
		}{
			"a prefix":       {AuditFilter{SubjectPrefixes: []string{"shop/qa"}}, all[:3]},
			"prefixes":       {AuditFilter{SubjectPrefixes: []string{"shop/qa2", "shop/prod"}, Actor: "ada", Before: all[0].ID}, all[3:]},
			"an environment": {AuditFilter{Environment: "qa"}, all[:1]},
			"another one":    {AuditFilter{Environment: "prod"}, nil},
			"any prefix":     {AuditFilter{SubjectPrefixes: []string{"shop/qa2", ""}}, all},
			"since":          {AuditFilter{Since: w.Now()}, all[:1]},
			"until":          {AuditFilter{Until: w.Now()}, all[1:]},
			"before":         {AuditFilter{Before: all[1].ID}, all[2:]},
			"all of it":      {AuditFilter{SubjectPrefixes: []string{"shop/"}, Until: w.Now(), Before: all[1].ID, Actor: "ada"}, all[3:]},
			"past those":     {AuditFilter{Since: w.Now().Add(time.Minute)}, nil},
		} {
			if got := value(w.AuditTrail(ctx, c.f, 0))(t); len(got) != len(c.want) || len(got) > 0 && got[0].ID != c.want[0].ID {
				t.Errorf("%s: %v, want %v", name, got, c.want)
			}
		}
	})
}

// TestClaimAudit holds that of several with one source one has it, and that what came of it is
// replaced only by who knows what that was.
func TestClaimAudit(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, w *testStore) {
		var won atomic.Int32
		var all errgroup.Group
		for range 4 {
			all.Go(func() error {
				added, err := w.ClaimAudit(ctx, Audit{Actor: "ada", Verb: "hold", Source: "c1", Outcome: "begun"})
				if added {
					won.Add(1)
				}
				return err
			})
		}
		must(t, all.Wait())
		assertEqual(t, won.Load(), int32(1))
		assertEqual(t, value(w.ReplaceAuditOutcome(ctx, "c1", "taken", "failed"))(t), false)
		assertEqual(t, value(w.ReplaceAuditOutcome(ctx, "c1", "begun", "taken"))(t), true)
		assertEqual(t, value(w.ReplaceAuditOutcome(ctx, "c2", "", "taken"))(t), false)
		must(t, w.AddAudit(ctx, Audit{Actor: "bob", Outcome: "begun"}))
		assertEqual(t, value(w.ReplaceAuditOutcome(ctx, "", "begun", "taken"))(t), false)
		assertEqual(t, value(w.AuditTrail(ctx, AuditFilter{Source: "c1"}, 0))(t)[0].Outcome, "taken")
	})
}

func TestPrune(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, w *testStore) {
		fill := func(id string) {
			t.Helper()
			value(w.Accept(ctx, Delivery{Forge: "hub", ID: id, ReceivedAt: w.Now(), Keys: []string{"idle " + id}}))(t)
			value(w.AddEvents(ctx, Event{Kind: event.Kind(id)}))(t)
			must(t, w.AddAudit(ctx, Audit{Actor: id}))
			must(t, w.FinishPendingCommand(ctx, value(w.PutPendingCommand(ctx, PendingCommand{Unit: id, Verb: "retry"}))(t), "done"))
			value(w.PutArrival(ctx, Arrival{Unit: "gone", Commit: id, At: w.Now()}))(t)
			value(w.PutArrival(ctx, Arrival{Unit: "shown", Commit: id, At: w.Now()}))(t)
			for _, c := range value(w.Claim(ctx, me, 100))(t) {
				must(t, w.Finish(ctx, me, c, Outcome{}))
			}
		}
		must(t, w.PutUnit(ctx, Unit{Key: "shown"}))
		value(w.PutPendingCommand(ctx, PendingCommand{Unit: "open", Verb: "retry"}))(t)
		fill("old")
		must(t, w.WakeAt(ctx, w.Now().Add(time.Hour), "later"))
		w.Advance(time.Minute)
		fill("new")
		assertEqual(t, value(w.Prune(ctx, w.Now()))(t), 6)
		assertEqual(t, value(w.Prune(ctx, w.Now()))(t), 0)
		assertEqual(t, len(value(w.Events(ctx, EventFilter{}))(t)), 1)
		assertEqual(t, len(value(w.AuditTrail(ctx, AuditFilter{}, 0))(t)), 1)
		assertEqual(t, len(value(w.Arrivals(ctx, "shown"))(t)), 2)
		assertEqual(t, len(value(w.Arrivals(ctx, "gone"))(t)), 1)
		assertEqual(t, len(value(w.PendingCommands(ctx, "open"))(t)), 1)
		found(w.NextDue(ctx))(t)
	})
}

// More than one portion of old rows goes in one call.
func TestPruneInPortions(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, w *testStore) {
		must(t, w.Tx(ctx, "fill", func(tx *Tx) error {
			for range 2*pruneAtOnce + 5 {
				if _, err := tx.AddEvents(ctx, Event{}); err != nil {
					return err
				}
			}
			return nil
		}))
		assertEqual(t, value(w.Prune(ctx, w.Now().Add(time.Second)))(t), 2*pruneAtOnce+5)
	})
}
