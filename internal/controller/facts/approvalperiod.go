package facts

import (
	"context"
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
)

// An approval counts for the difference that it was given on, and for what was in the pull request then. Once
// Liftlock has put another release in its place that is over: whoever may push could bring the former one
// back, with the approvals that it had.

// approvalPeriod is since when approvals of a pull request count.
type approvalPeriod struct {
	Since time.Time `json:"since"` // when its release was replaced last, by the forge's clock
	// Heads are those that were replaced then and before: of another head that we have pushed since the time
	// needn't be asked, as an approval may be of the same second.
	Heads []string `json:"heads,omitempty"`

	pushed Pushed
}

// maxReplacedHeads bounds how many are kept.
const maxReplacedHeads = 100

var approvalPeriods = record.Declare[record.Pull, approvalPeriod](record.Declaration{
	Name: "approvals-since", Owner: "controller/facts", Lifetime: record.UntilDropped,
	Doc: "Since when approvals of the pull request count, as its release was replaced then.",
})

// PutReplaced notes that an open pull request moves other releases than before since a time of the forge's; heads
// are those that it had.
func PutReplaced(ctx context.Context, tx *store.Tx, repo string, pull int, since time.Time, heads ...string) error {
	period, _, err := approvalPeriods.Get(ctx, tx, record.OfPull(repo, pull))
	if err != nil {
		return err
	}
	for _, head := range heads {
		if !slices.Contains(period.Heads, head) {
			period.Heads = append(period.Heads, head)
		}
	}
	period.Since, period.Heads = since, period.Heads[max(0, len(period.Heads)-maxReplacedHeads):]
	return approvalPeriods.Put(ctx, tx, record.OfPull(repo, pull), period)
}

// readApprovalPeriod reads since when the approvals of an open promotion count. Where the store was lost, and
// nothing proves that the head is ours, that is since it is known.
func (ga *Gatherer) readApprovalPeriod(ctx context.Context, repo *Repository, p *OpenPull) (approvalPeriod, error) {
	period, _, err := approvalPeriods.Get(ctx, ga.opts.Store, record.OfPull(repo.ID, p.Number))
	if err != nil {
		return period, err
	}
	pushed, known, err := PushedHeads.Get(ctx, ga.opts.Store, record.OfBranch(repo.ID, p.PR.Branch))
	if err != nil {
		return period, err
	}
	period.pushed = pushed
	if !known && p.Proven == nil && repo.Marks.hasKeys() && p.HeadSince.After(period.Since) {
		period.Since = p.HeadSince
	}
	return period, nil
}

// covers says that a review was given on what the pull request moves now.
func (a *approvalPeriod) covers(rv *forge.Review) bool {
	return a.Since.IsZero() || rv.At.After(a.Since) || a.pushed.find([]string{rv.Commit}) != nil && !slices.Contains(a.Heads, rv.Commit)
}
