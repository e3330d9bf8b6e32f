package controller

import (
	"context"
	"errors"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/controller/wake"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
	"github.com/liftlock/liftlock/internal/wording"
	"github.com/liftlock/liftlock/webhooks"
)

const (
	// hookInterval is how often a webhook is looked after. Sweeps may be rarer, or more frequent.
	hookInterval = 10 * time.Minute

	// refusalDelay is how long after a delivery that we refused the forge's list is read: it
	// has the delivery only once it was answered.
	refusalDelay = 5 * time.Second
)

// runHook creates or repairs a repository's webhook, and looks at what the forge couldn't deliver
// to it. Nothing rests on either: what isn't found here is found by polling and sweeping, later.
func (co *Controller) runHook(ctx context.Context, r *Repository) (time.Time, error) {
	if r.Hook == nil {
		return time.Time{}, nil // it isn't managed any more
	}
	ctx = forge.WithPriority(ctx, forge.PriorityBackground)
	next := co.opts.Clock.Now().Add(hookInterval)
	changed, err := r.Forge.EnsureHook(ctx, r.Name, *r.Hook)
	if ctx.Err() != nil {
		return next, ctx.Err() // the run was cut off, which says nothing of the webhook: it is tried again
	}
	if err != nil {
		co.opts.Log.Warn("the webhook can't be managed; polling finds what it would have told", zap.String("repository", r.ID),
			zap.Error(err))
	}
	if changed {
		co.opts.Log.Info("the webhook was created or repaired", zap.String("repository", r.ID))
		// Nobody knows what it would have told until now: a forge doesn't list what it never sent.
		if err := co.opts.Store.WakeAs(ctx, store.Normal, wake.Strings(keysOfEverything(r)...)...); err != nil {
			co.pending.add(false, wakeAfterBurst, keysOfEverything(r)...) // the next run finds it right
			return time.Time{}, err
		}
	}
	if err != nil && !errors.Is(err, forge.ErrInvalid) {
		return next, nil // the list wouldn't be answered either
	}
	err = co.wakeMissed(ctx, r)
	if errors.Is(err, forge.ErrUnsupported) {
		return next, nil
	}
	var refused *forge.Error
	if errors.As(err, &refused) && ctx.Err() == nil {
		co.opts.Log.Warn("what the forge couldn't deliver to the webhook isn't known; sweeping finds what it was about",
			zap.String("repository", r.ID), zap.Error(err))
		return next, nil
	}
	return next, err
}

// keysOfEverything look at a whole repository.
func keysOfEverything(r *Repository) []wake.Key {
	return []wake.Key{wake.ForRepository(r.ID), wake.ForSweep(r.ID)}
}

var deliveryCursors = record.Declare[record.Repository, string](record.Declaration{
	Name: "delivery-cursor", Owner: "controller", Lifetime: record.Lasting,
	Doc: "How far the forge's list of missed deliveries was read.",
})

// wakeMissed wakes what the deliveries were about that the forge couldn't make since the last look.
// Each is written down as one that came, so it wakes once, whether it is listed or delivered again.
// The cursor is recorded last: a process that ends before reads again.
func (co *Controller) wakeMissed(ctx context.Context, r *Repository) error {
	cursor, _, err := deliveryCursors.Get(ctx, co.opts.Store, record.Repository(r.ID))
	if err != nil {
		return err
	}
	var unread error // of the store
	list, err := r.Forge.MissedDeliveries(ctx, r.Name, forge.DeliveryQuery{URL: r.Hook.URL, Cursor: cursor, IsKnown: func(id string) bool {
		known, err := co.opts.Store.HasDelivery(ctx, r.ForgeRef, id)
		unread = errors.Join(unread, err)
		return known
	}})
	if err != nil || unread != nil {
		return errors.Join(err, unread)
	}
	for i := range list.Deliveries {
		if err := co.acceptMissed(ctx, r, &list.Deliveries[i]); err != nil {
			return err
		}
	}
	if list.Incomplete {
		if err := co.opts.Store.WakeAs(ctx, store.Normal, wake.Strings(keysOfEverything(r)...)...); err != nil {
			return err
		}
	}
	if n := len(list.Deliveries); n > 0 || list.Incomplete {
		answer := ""
		if n > 0 {
			answer = list.Deliveries[0].Answer
		}
		co.opts.Log.Info("deliveries of the webhook were missed; looking at what they were about", zap.String("repository", r.ID),
			zap.Int("deliveries", n), zap.Bool("maybe more", list.Incomplete), zap.String("last answered", answer))
	}
	return deliveryCursors.Put(ctx, co.opts.Store, record.Repository(r.ID), list.Cursor)
}

// acceptMissed takes a delivery up as if it had come. Its content only says where to look. Where
// that can't be read, or names another repository, the whole repository is evaluated.
func (co *Controller) acceptMissed(ctx context.Context, r *Repository, missed *forge.MissedDelivery) error {
	d := store.Delivery{Forge: r.ForgeRef, ID: missed.ID, Event: missed.Event, Repo: r.Name.String(), ReceivedAt: co.opts.Clock.Now(),
		Urgency: store.Normal}
	if err := co.readMissed(ctx, r, missed, &d); err != nil {
		return err
	}
	_, err := co.opts.Store.Accept(ctx, d)
	if errors.Is(err, store.ErrInvalid) { // no name of a delivery that anybody gives
		return co.opts.Store.WakeAs(ctx, store.Normal, wake.Strings(keysOfEverything(r)...)...)
	}
	return err
}

// readMissed says whom a missed delivery wakes. A delivery on which it panics does so each time,
// and must not keep those after it from being read.
func (co *Controller) readMissed(ctx context.Context, r *Repository, missed *forge.MissedDelivery, d *store.Delivery) (err error) {
	defer func() {
		if p := recover(); p != nil {
			co.opts.Log.Error("a missed delivery can't be read; looking at the whole repository",
				zap.String("repository", r.ID), zap.String("delivery", wording.Clip(missed.ID, 80)),
				zap.String("event", wording.Clip(missed.Event, 80)), zap.Any("panic", p), zap.Stack("stack"))
			d.Keys, d.Records, d.DueAt, d.Urgency, err = wake.Strings(keysOfEverything(r)...), nil, time.Time{}, store.Normal, nil
		}
	}()
	d.Keys = wake.Strings(keysOfEverything(r)...)
	ev, err := webhooks.Parse(r.ForgeType, missed.ID, missed.Event, missed.Payload)
	if err != nil || !strings.EqualFold(ev.Repo, d.Repo) {
		return nil //nolint:nilerr // the whole repository is looked at
	}
	keys := KeysOfEvent(ctx, co.opts.Store, r.ID, r.BotLogin, ev)
	d.Keys, d.Urgency = wake.Strings(keys...), UrgencyOfEvent(ev)
	if d.Records, err = RecordsOfEvent(r.ID, r.BotLogin, ev); err == nil && len(keys) > 0 {
		d.DueAt, err = TimeOfEvent(ctx, co.opts.Store, r.ID, ev, d.ReceivedAt)
	}
	return err
}

// DeliveryRefused is told of a delivery that couldn't be taken, and has the forge's list read soon
// once the store can be written again. Nothing is kept of a repository whose webhook isn't managed.
func (co *Controller) DeliveryRefused(repo string) {
	if r, _ := co.repository(repo); r != nil && r.Hook != nil {
		co.pending.add(false, wakeAfterDelay, wake.ForHook(repo))
	}
}
