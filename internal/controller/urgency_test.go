package controller

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/webhooks"
)

// TestUrgentKeysPassAPush holds that commands, merges and degradations are
// the next to run while a thousand units wait, and that those come to run all the same.
func TestUrgentKeysPassAPush(t *testing.T) {
	w := newFixture(t, "", manualQA, "web", "api")
	p := w.openOne("web", "2.0.0", "web")
	drain := func() {
		all, err := w.opts.Store.Claim(t.Context(), "others", 1000)
		w.must(err)
		for _, c := range all {
			w.must(w.opts.Store.Finish(t.Context(), "others", c, store.Outcome{}))
		}
	}
	var waiting []wake.Key
	for i := range 1000 {
		waiting = append(waiting, wake.ForUnit(promotion.Unit{Repo: w.repo.ID, Pipeline: "shop", Component: fmt.Sprintf("c%04d", i)}))
	}
	next := func(what string, want wake.Key) {
		t.Helper()
		w.clock.Step(time.Millisecond)
		claims, err := w.claimKeys(t.Context(), 1, 0)
		w.must(err)
		if len(claims) != 1 || claims[0].Key != want.String() {
			t.Errorf("after %s the next is %+v, not %s", what, claims, want)
		}
		for _, c := range claims {
			w.must(w.opts.Store.Finish(t.Context(), "me", c, store.Outcome{}))
		}
	}
	drain()
	w.must(w.opts.Store.Wake(t.Context(), wake.Strings(waiting...)...))
	_, err := w.command("ada", p.Number, "web", command.Command{Verb: command.Hold})
	w.must(err)
	next("a hold", wake.ForUnit(w.unit("web")))
	w.must(w.enqueueMerge(t.Context(), w.unit("web"), false))
	next("a wish to merge", wake.ForMerge(w.repo.ID))

	w.AppChanged(verification.App{ArgoCD: "hub", Namespace: "argocd", Name: "api-qa", Health: "Degraded"}, false)
	if !w.storePending(t.Context(), w.wakePending) {
		t.Fatal("what was heard could not be stored")
	}
	next("a degradation", wake.ForUnit(w.unit("api")))

	ev := &webhooks.Event{Kind: webhooks.Review, Number: p.Number, Sender: "ada"}
	_, err = w.opts.Store.Accept(t.Context(), store.Delivery{Forge: "hub", ID: "1", Event: "review", Repo: repoName, ReceivedAt: w.clock.Now(),
		Keys: wake.Strings(KeysOfEvent(t.Context(), w.opts.Store, w.repo.ID, bot, ev)...), Urgency: UrgencyOfEvent(ev)})
	w.must(err)
	next("a review", wake.ForPull(w.repo.ID, p.Number))

	// Somebody urgent all the time: the others still come to run.
	served := 0
	for before := range 4 * oldestEvery {
		w.must(w.opts.Store.WakeAs(t.Context(), store.Urgent, wake.ForMerge(w.repo.ID).String()))
		claims, err := w.claimKeys(t.Context(), 1, before)
		w.must(err)
		for _, c := range claims {
			if c.Urgency != store.Urgent {
				served++
			}
			w.must(w.opts.Store.Finish(t.Context(), "me", c, store.Outcome{}))
		}
	}
	if served != 4 {
		t.Errorf("%d of those that wait were served", served)
	}
}

// TestADegradationStaysUrgent holds that a unit that has to be evaluated again soon because it may
// be degraded then is urgent, whatever woke it last. A unit with nothing pressing isn't.
func TestADegradationStaysUrgent(t *testing.T) {
	slowly := strings.Replace(quickly, "debounce: 1s", "debounce: 2m", 1)
	w := newFixture(t, "", strings.Replace(autoQA, quickly, slowly, 1), "web")
	unit := wake.ForUnit(w.unit("web")).String()
	w.release("2.0.0", "web")
	w.settle("web", "it is verified in qa", func() bool { return w.isVerified("web") })
	// rest runs the unit as a wake did until it comes to rest. It says when it is due again and how
	// urgent it is then; false: it waits for news.
	rest := func(u store.Urgency) (in time.Duration, urgency store.Urgency, again bool) {
		t.Helper()
		w.dropDue()
		w.must(w.opts.Store.WakeAs(t.Context(), u, unit))
		began := w.clock.Now()
		for w.clock.Since(began) < urgentFor {
			claims, err := w.claimKeys(t.Context(), 1, 0)
			w.must(err)
			switch {
			case len(claims) == 0:
				w.clock.Step(time.Second)
			case claims[0].Key != unit:
				w.must(w.opts.Store.Finish(t.Context(), w.opts.Owner, claims[0], store.Outcome{}))
			case w.clock.Since(began) > urgentStep:
				w.must(w.opts.Store.Finish(t.Context(), w.opts.Owner, claims[0], store.Outcome{}))
				return w.clock.Since(began), claims[0].Urgency, true
			default:
				w.runLeased(t.Context(), claims[0], w.newLease(w.clock.Now()), func(context.Context, context.CancelCauseFunc) {})
			}
		}
		return 0, 0, false
	}
	for _, u := range []store.Urgency{store.Urgent, store.Normal, store.Background} {
		if in, got, again := rest(u); again && got == store.Urgent {
			t.Errorf("with nothing pressing, a unit that ran as %d is urgent again after %s", u, in)
		}
	}
	for _, u := range []store.Urgency{store.Background, store.Normal, store.Urgent} {
		w.setHealth("Healthy", "web")
		rest(store.Normal)
		w.setHealth("Degraded", "web")
		if in, got, again := rest(u); !again || got != store.Urgent {
			t.Errorf("a degradation whose unit ran as %d is due again: %t, after %s, as %d", u, again, in, got)
		}
	}
}
