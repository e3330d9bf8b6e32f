package facts

import (
	"context"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/stored"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
)

// refusedMerge is a merge of a head that the forge refused for a reason of its own.
type refusedMerge struct {
	Head string    `json:"head"`
	Why  string    `json:"why"`
	At   time.Time `json:"at"`
}

var refusedMerges = record.Declare[record.Pull, refusedMerge](record.Declaration{
	Name: "refused-merge", Owner: "controller/facts", Lifetime: record.UntilDropped,
	Doc: "The head whose merge the forge refused for a reason of its own: it isn't tried again at once.",
})

// RecordRefusedMerge writes down that the forge refused to merge a head: sent again at once, it
// would only be refused again.
func (pg *pullGatherer) RecordRefusedMerge(ctx context.Context, r *branch.Repository, number int, head string, refusal error) error {
	refused := refusedMerge{Head: head, Why: refusal.Error(), At: pg.now()}
	return pg.store.Tx(ctx, "refused", func(tx *store.Tx) error {
		return refusedMerges.Put(ctx, tx, record.OfPull(r.ID, number), refused)
	})
}

// addRefusal fills in that the forge refused to merge the head. A head that the forge calls
// mergeable counts as blocked until there is news of the pull request, or MaxAge has passed: the
// refusal's reason may be over. Where the forge says that it blocks one, the words are kept.
func (ga *Gatherer) addRefusal(ctx context.Context, r *branch.Repository, p *OpenPull, known *stored.Pull) error {
	refused, _, err := refusedMerges.Get(ctx, ga.opts.Store, record.OfPull(r.ID, p.Number))
	if refused.Head != p.Head || p.Queued {
		return err
	}
	notified := known.NotifiedAt.After(refused.At)
	if p.Mergeable != promotion.MergeBlocked {
		if p.Mergeable != promotion.MergeClean || notified || ga.opts.Now().Sub(refused.At) > ga.opts.MaxAge {
			return nil
		}
		p.Mergeable = promotion.MergeState(forge.MergeableBlocked)
	}
	p.Refusal = &promotion.MergeRefusal{Why: refused.Why, At: refused.At, NotifiedSince: notified}
	return nil
}
