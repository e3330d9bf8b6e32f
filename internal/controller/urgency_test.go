package controller

import (
	"fmt"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/command"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/webhooks"
)

// TestWhatIsUrgentDoesNotWaitForAPush holds that commands, merges and degradations are
// the next to run while a thousand units wait, and that those come to run all the same.
func TestWhatIsUrgentDoesNotWaitForAPush(t *testing.T) {
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
