package facts

import (
	"context"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/store/record"

	"github.com/liftlock/liftlock/internal/promotion"
)

// provenReleases are the releases, by component, of which it is proven that we put them onto the
// branch of an open promotion. The store says so of its head, or a mark that the server signed.
// Where the store knows the branch, no mark is believed: an old one would be true of heads that we
// have replaced since. none: nothing is proven.
func (ga *Gatherer) provenReleases(ctx context.Context, r *branch.Repository, p *pullRecord) (map[string]string, error) {
	pushed, known, err := branch.PushedHeads.Get(ctx, ga.opts.Store, record.OfBranch(r.ID, p.PR.Branch))
	if err != nil {
		return nil, err
	}
	heads, err := headsUpdated(ctx, r.Mirror, p.PR.Head)
	if err != nil {
		return nil, err
	}
	if known {
		if releases := pushed.Find(heads); releases != nil || len(pushed) == 0 {
			return releases, nil
		}
		// Somebody pushed over it; what we put there last is still known.
		return pushed[len(pushed)-1].Releases, nil
	}
	if k, ok := r.Marks.Signed(r.ID, p.PR.Branch, heads, p.PR.Body); ok && k.Kind == promotion.KindPromotion {
		return k.Releases(p.ref.Component), nil
	}
	return nil, nil
}
