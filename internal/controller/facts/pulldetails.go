package facts

import (
	"context"
	"fmt"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/facts/people"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion/stored"
)

// pullDetail is an open pull request as it was last read from the forge.
type pullDetail struct {
	pr      forge.PullRequest
	version int64 // of its row in the store
	reviews people.Reviews
	wanted  bool // the reviews were asked for
	checks  people.Checks
	at      time.Time
}

func detailKey(r *branch.Repository, number int) string { return fmt.Sprintf("%s#%d", r.ID, number) }

// queuedMaxAge is how old what is known of a pull request in the forge's merge queue gets: no
// forge tells of all that befalls one there.
const queuedMaxAge = 30 * time.Second

// readDetail reads an open pull request again unless nothing was heard of it since the last time,
// and it isn't in a queue; fresh always reads. Parts that completeDetail added to it before are
// there. unread says that the forge didn't tell whether it can be merged when it was read before:
// that is read again where it matters.
func (pg *pullGatherer) readDetail(ctx context.Context, r *branch.Repository, e *stored.Pull, fresh bool) (d *pullDetail, unread bool,
	err error) {
	key := detailKey(r, e.PR.Number)
	d, _ = pg.details.Get(key)
	maxAge := pg.maxAge
	if d != nil && d.pr.Queue == forge.Queued {
		maxAge = min(maxAge, queuedMaxAge)
	}
	isSame := d != nil && d.pr.Head == e.PR.Head && d.pr.State == e.PR.State
	isRecent := isSame && !d.at.Before(e.NotifiedAt) && pg.now().Sub(d.at) < maxAge
	if fresh || !isRecent {
		if _, err := pg.RefreshPullRequest(ctx, r, e.PR.Number); err != nil {
			return nil, false, err
		}
		if d, _ = pg.details.Get(key); d == nil {
			return nil, false, fmt.Errorf("read #%d of %s: %w", e.PR.Number, r.ID, forge.ErrConflict) // forgotten meanwhile: look again
		}
		return d, false, nil
	}
	return d, d.pr.Mergeable == forge.MergeableUnknown, nil
}

// completeDetail is an open pull request with its reviews and its checks, as far as they are asked
// for. Parts that were read before aren't read again.
func (pg *pullGatherer) completeDetail(ctx context.Context, r *branch.Repository, d *pullDetail, reviews, checks bool) (*pullDetail,
	error) {
	number, wanted := d.pr.Number, d.wanted || reviews
	reviews, checks = reviews && !d.reviews.Read, checks && !d.checks.Read
	if !reviews && !checks && wanted == d.wanted || d.pr.State != forge.Open {
		return d, nil
	}
	full := *d
	full.wanted = wanted
	var err error
	if reviews {
		full.reviews.Read = true
		if full.reviews.All, err = r.Forge.Reviews(ctx, r.Name, number); err != nil {
			if forge.IsRetryable(err) {
				return nil, fmt.Errorf("read the reviews of #%d: %w", number, err)
			}
			full.reviews.Err = err.Error()
		}
	}
	if checks {
		full.checks.Read, full.checks.Commit = true, d.pr.Head
		if full.checks.All, err = r.Forge.Checks(ctx, r.Name, d.pr.Head); err != nil {
			if forge.IsRetryable(err) {
				return nil, fmt.Errorf("read the checks of #%d: %w", number, err)
			}
			full.checks.Err = err.Error()
		}
	}
	pg.mu.Lock()
	defer pg.mu.Unlock()
	key := detailKey(r, number)
	if now, _ := pg.details.Get(key); now == d {
		pg.details.Put(key, &full)
	}
	return &full, nil
}

// ForgetMergeable has an open pull request read again with the next look.
func (pg *pullGatherer) ForgetMergeable(r *branch.Repository, number int) {
	pg.mu.Lock()
	defer pg.mu.Unlock()
	if d, ok := pg.details.Get(detailKey(r, number)); ok {
		again := *d
		again.at = time.Time{}
		pg.details.Put(detailKey(r, number), &again)
	}
}

// uncomputed is how long the forge has been computing whether a pull request can be merged.
type uncomputed struct {
	head, tip string // it computes anew when one of them moves
	since     time.Time
}

// uncomputedSince is since when the forge says that it is still computing whether a head
// can be merged onto a branch's tip; zero when it doesn't.
func (pg *pullGatherer) uncomputedSince(r *branch.Repository, number int, head string, mergeable forge.Mergeable, tip string) time.Time {
	key := detailKey(r, number)
	if mergeable != forge.MergeableUnknown && mergeable != "" {
		pg.uncomputed.Remove(key)
		return time.Time{}
	}
	known, ok := pg.uncomputed.Get(key)
	if !ok || known.head != head || known.tip != tip {
		known = uncomputed{head, tip, pg.now()}
		pg.uncomputed.Put(key, known)
	}
	return known.since
}
