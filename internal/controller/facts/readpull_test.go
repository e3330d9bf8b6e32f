package facts

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/store/record"
	"github.com/liftlock/liftlock/internal/world/memoryforge"
)

// silentQueue is a forge that tells a pull request's place in its merge queue only to callers that
// ask for it, as drivers do for which that is a call of its own.
type silentQueue struct {
	forge.Forge
	err error // instead of that
}

func (s silentQueue) PullRequest(ctx context.Context, r forge.Repo, number int) (*forge.PullRequest, error) {
	pr, err := s.Forge.PullRequest(ctx, r, number)
	switch {
	case err == nil && forge.HasMergeQueue(ctx) && s.err != nil:
		return nil, s.err
	case err == nil && !forge.HasMergeQueue(ctx):
		pr.Queue = forge.NotQueued
	}
	return pr, err
}

// TestQueueIsFound finds without the store that a pull request of ours is in the forge's merge
// queue, and has all others read with that from then on.
func TestQueueIsFound(t *testing.T) {
	unsupported := &forge.Error{Op: "read", Kind: forge.ErrUnsupported}
	for name, c := range map[string]struct {
		change func(w *story, n int)
		err    error // of a forge that is to tell of its queue
		want   forge.QueueState
		found  bool // that merges go through a queue
	}{
		"in the queue":        {want: forge.Queued, found: true},
		"not in the queue":    {change: func(w *story, n int) { w.must(w.forge.As(storyBot).LeaveQueue(w.ctx(), storyRepo, n)) }, want: forge.NotQueued},
		"merged":              {change: func(w *story, n int) { _, err := w.forge.MergeByHand(storyRepo, n, "grace", "merge"); w.must(err) }, want: forge.NotQueued},
		"somebody else's":     {change: func(w *story, _ int) { w.repo.BotLogin, w.repo.BotID = "another", 99 }, want: forge.NotQueued},
		"a forge without one": {err: unsupported, want: forge.NotQueued},
	} {
		t.Run(name, func(t *testing.T) {
			w := newStory(t, threeEnvs, []string{"dev", "qa", "prod"}, "web")
			w.must(w.forge.QueueMerges(storyRepo))
			n, _, head := openToQA(w)
			_, err := w.repo.Forge.Merge(w.ctx(), storyRepo, forge.MergeRequest{Number: n, Head: head, Method: "merge"})
			w.must(err)
			if c.change != nil {
				c.change(w, n)
			}
			w.restart()
			w.repo.Forge = silentQueue{w.repo.Forge, c.err}
			w.failUntilDone("read", w.restart, func(ctx context.Context) error {
				pr, err := w.o.PullCache.RefreshPullRequest(ctx, w.repo, n)
				if err == nil && pr.Queue != c.want {
					t.Errorf("its queue is %v", pr.Queue)
				}
				return err
			})
			if _, found, err := w.store.Record(w.ctx(), MergesByQueue.Key(record.Repository(w.repo.ID))); err != nil || found != c.found {
				t.Errorf("merges go through a queue: %t, %v", found, err)
			}
			if known, err := w.o.PullCache.findCachedPull(w.ctx(), w.repo, n); err != nil || known.PR.Queue != c.want || !known.Read {
				t.Errorf("the store has %+v, %v", known, err)
			}
		})
	}
}

// TestReviewsComeWithThePull reads a pull request of which the reviews were wanted before with
// them in one call, where the forge gives both.
func TestReviewsComeWithThePull(t *testing.T) {
	w := newStory(t, threeEnvs, []string{"dev", "qa", "prod"}, "web")
	n, _, _ := openToQA(w)
	w.must(w.forge.Review(storyRepo, n, "linus", memoryforge.Approve, ""))
	bulk := &bulkForge{Forge: w.forge.As(storyBot)}
	w.repo.Forge = bulk
	read := func(want bool) *pullDetail {
		t.Helper()
		w.wait(time.Second)
		d, err := w.o.PullCache.readPull(w.ctx(), w.repo, n)
		w.must(err)
		if d.pr.Number != n || d.wanted != want {
			t.Errorf("it is %+v", d)
		}
		return d
	}
	if d := read(false); bulk.calls != 0 || d.reviews.Read {
		t.Errorf("nobody wants its reviews, and they are read: %d calls, %+v", bulk.calls, d)
	}
	d, err := w.o.PullCache.completeDetail(w.ctx(), w.repo, read(false), true, false)
	w.must(err)
	w.o.PullCache.details.Put(detailKey(w.repo, n), d)
	if d = read(true); bulk.calls != 1 || !d.reviews.Read || len(d.reviews.All) != 1 || d.reviews.All[0].User != "linus" {
		t.Errorf("with its reviews: %d calls, %+v", bulk.calls, d)
	}
	bulk.err = &forge.Error{Op: "read", Kind: forge.ErrUnsupported}
	if d = read(true); d.reviews.Read {
		t.Errorf("where the forge can't: %+v", d)
	}
	bulk.err, bulk.none = nil, true
	if d = read(true); d.reviews.Read {
		t.Errorf("where the forge gives none: %+v", d)
	}
	bulk.err = &forge.Error{Op: "read", Kind: forge.ErrRetryable}
	if d, err := w.o.PullCache.readPull(w.ctx(), w.repo, n); !errors.Is(err, forge.ErrRetryable) || d != nil {
		t.Errorf("where it fails: %+v, %v", d, err)
	}
}

// bulkForge is a forge that reads several pull requests at once, or fails to.
type bulkForge struct {
	forge.Forge
	calls int
	none  bool
	err   error
}

func (b *bulkForge) ReviewedPullRequests(ctx context.Context, r forge.Repo, numbers ...int) ([]forge.ReviewedPullRequest, error) {
	b.calls++
	if b.err != nil || b.none {
		return nil, b.err
	}
	return b.Forge.(forge.BulkReader).ReviewedPullRequests(ctx, r, numbers...)
}
