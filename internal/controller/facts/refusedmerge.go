package facts

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
)

// refusedMerge is a merge of a head that the forge refused for a reason of its own.
type refusedMerge struct {
	Head string    `json:"head"`
	Why  string    `json:"why"`
	At   time.Time `json:"at"`
}

func refusedMergeKey(r *Repository, number int) string {
	return refusedMergePrefix(r.ID) + strconv.Itoa(number)
}

func refusedMergePrefix(repo string) string { return "refused|" + repo + "|" }

// RecordRefusedMerge writes down that the forge refused to merge a head: sent again at once, it
// would only be refused again.
func (o *pullGatherer) RecordRefusedMerge(ctx context.Context, r *Repository, number int, head string, refusal error) error {
	raw, err := json.Marshal(refusedMerge{Head: head, Why: refusal.Error(), At: o.now()})
	if err != nil {
		return fmt.Errorf("write down that the merge of #%d was refused: %w", number, err)
	}
	return o.store.Tx(ctx, "refused", func(tx *store.Tx) error { return tx.PutState(ctx, refusedMergeKey(r, number), raw) })
}

// addRefusal fills in that the forge refused to merge the head. A head of which it says that it
// can be merged counts as blocked until something is heard of the pull request, or MaxAge has
// passed: what it said may be over. Of one that it says it blocks, the words are kept.
func (o *Gatherer) addRefusal(ctx context.Context, r *Repository, p *OpenPull, known *cachedPull) error {
	refused, _, err := readState[refusedMerge](ctx, o.opts.Store, refusedMergeKey(r, p.Number))
	if refused.Head != p.Head || p.Queued {
		return err
	}
	notified := known.NotifiedAt.After(refused.At)
	if p.Mergeable != promotion.MergeBlocked {
		if p.Mergeable != promotion.MergeClean || notified || o.opts.Now().Sub(refused.At) > o.opts.MaxAge {
			return nil
		}
		p.Mergeable = promotion.MergeState(forge.MergeableBlocked)
	}
	p.Refusal = &promotion.MergeRefusal{Why: refused.Why, At: refused.At, NotifiedSince: notified}
	return nil
}
