package facts

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
)

// TestListMergesUnderWay lists merges that are on their way by the forge's merge queue or by our
// own merge. It also lists those that may be, because nothing was read of them since they joined,
// or since the forge was asked.
func TestListMergesUnderWay(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	pulls, _, r := newCachedPulls(t, now)
	s := pulls.store.(*store.Store)
	o := &recordGatherer{store: s, pulls: pulls}
	hourAgo, before := now.Add(-time.Hour), now.Add(-time.Minute)
	pull := func(number int, state forge.State, queue forge.QueueState) store.Pull {
		pr := forge.PullRequest{Number: number, Branch: "liftlock/shop/qa/web", State: state, Queue: queue, Head: "h", UpdatedAt: before}
		return pulls.pullRow(r, pr, nil, true)
	}
	err := s.Tx(t.Context(), "test", func(tx *store.Tx) error {
		for number, joined := range map[int]joinedQueue{
			1:  {At: before, Pipeline: "shop"},                   // it is in the queue
			2:  {At: before, Pipeline: "shop"},                   // it was read since, and is out of it
			3:  {At: now, Pipeline: "shop"},                      // it wasn't read since
			4:  {At: before, Pipeline: "shop"},                   // it landed
			5:  {At: before, Pipeline: "other"},                  // it counts in another pipeline's limit
			6:  {At: hourAgo, Pipeline: "shop"},                  // it joined at the time, not since
			7:  {At: before, Pipeline: "shop"},                   // the store has no such pull request
			8:  {At: hourAgo.Add(time.Second), Pipeline: "shop"}, // it is in the queue for long
			10: {At: before},                                     // a revert
		} {
			u, revert := promotion.Unit{Repo: r.ID, Pipeline: joined.Pipeline}, joined.Pipeline == ""
			if revert {
				u.Pipeline = "shop"
			}
			if err := PutJoinedQueue(t.Context(), tx, u, number, "h", revert, joined.At); err != nil {
				return err
			}
		}
		for number, merge := range map[int]promotion.MergeRecord{
			1:  {Kind: promotion.KindPromotion, SentAt: before.Add(-time.Second)}, // it joined the queue by it
			11: {Kind: promotion.KindPromotion, SentAt: now},                      // it may have landed since it was read
			12: {Kind: promotion.KindPromotion, SentAt: before},                   // it was read since, and is open
			13: {Kind: promotion.KindPromotion, SentAt: now},                      // it landed, and counts as that
			14: {Kind: promotion.KindRevert, SentAt: now},
		} {
			u := promotion.Unit{Repo: r.ID, Pipeline: "shop", Component: "web"}
			if err := Merging.Put(t.Context(), tx, OfMerge(u, number), merge); err != nil {
				return err
			}
		}
		other := promotion.Unit{Repo: r.ID, Pipeline: "other", Component: "web"}
		if err := Merging.Put(t.Context(), tx, OfMerge(other, 11), promotion.MergeRecord{Kind: promotion.KindPromotion, SentAt: before}); err != nil {
			return err
		}
		open := forge.NotQueued
		if err := tx.PutPulls(t.Context(), pull(11, forge.Open, open), pull(12, forge.Open, open), pull(13, forge.Merged, open), pull(14, forge.Open, open)); err != nil {
			return err
		}
		if err := tx.PutRecord(t.Context(), joinedQueues.Key(record.OfPull(r.ID, 9)), []byte("[")); err != nil {
			return err
		}
		return tx.PutPulls(t.Context(), pull(1, forge.Open, forge.Queued), pull(2, forge.Open, forge.NotQueued), pull(3, forge.Open, forge.NotQueued), pull(4, forge.Merged, forge.Queued),
			pull(5, forge.Open, forge.Queued), pull(6, forge.Open, forge.Queued), pull(8, forge.Open, forge.Queued), pull(9, forge.Open, forge.Queued), pull(10, forge.Open, forge.Queued))
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := o.listMergesUnderWay(t.Context(), o.store, r.ID, "shop", hourAgo)
	want := []promotion.QueuedMerge{{Pull: 1, At: before}, {Pull: 3, At: now}, {Pull: 8, At: hourAgo.Add(time.Second)}, {Pull: 11, At: now}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("wanted, got (%v):\n%s", err, diff)
	}
}

// TestReadJoinedQueue says when this very head joined the forge's merge queue.
func TestReadJoinedQueue(t *testing.T) {
	s, u := newTestStore(t), promotion.Unit{Repo: "r", Pipeline: "shop"}
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	if err := s.Tx(t.Context(), "test", func(tx *store.Tx) error { return PutJoinedQueue(t.Context(), tx, u, 7, "h", false, at) }); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		pull int
		head string
		want time.Time
	}{"this head": {7, "h", at}, "another head": {7, "i", time.Time{}}, "another pull request": {8, "h", time.Time{}}} {
		if got, err := readJoinedQueue(t.Context(), s, "r", c.pull, c.head); err != nil || !got.Equal(c.want) {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}

// TestPutJoinedQueueLate holds that what is noted of a head since it was to join the queue stays,
// where that it joined is written down late.
func TestPutJoinedQueueLate(t *testing.T) {
	s, u := newTestStore(t), promotion.Unit{Repo: "r", Pipeline: "shop"}
	first, late := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC), time.Date(2026, 5, 1, 12, 1, 0, 0, time.UTC)
	for _, c := range []struct {
		name   string
		before func(tx *store.Tx) error
		want   time.Time
	}{
		{"nothing is noted", func(*store.Tx) error { return nil }, late},
		{"of another head", func(tx *store.Tx) error { return PutJoinedQueue(t.Context(), tx, u, 7, "before", false, first) }, late},
		{"it joined", func(tx *store.Tx) error { return PutJoinedQueue(t.Context(), tx, u, 7, "h", false, first) }, first},
		{"it was taken out", func(tx *store.Tx) error { return PutLeftQueue(t.Context(), tx, "r", 7, "h") }, time.Time{}},
	} {
		err := s.Tx(t.Context(), "test", func(tx *store.Tx) error {
			return errors.Join(tx.DeleteRecord(t.Context(), joinedQueues.Key(record.OfPull("r", 7))), c.before(tx), PutJoinedQueue(t.Context(), tx, u, 7, "h", false, late))
		})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := readJoinedQueue(t.Context(), s, "r", 7, "h"); err != nil || !got.Equal(c.want) {
			t.Errorf("%s: %s, %v", c.name, got, err)
		}
	}
}
