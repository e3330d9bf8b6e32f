package people

import (
	"context"
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/store"
	"github.com/liftlock/liftlock/internal/store/record"
)

// An approval counts for the difference that it was given on, and for what was in the pull request
// then. Once Liftlock has put another release in its place that is over: an account that may push
// could bring the former one back, with the approvals that it had.

// ApprovalPeriod is since when approvals of a pull request count.
type ApprovalPeriod struct {
	Since time.Time `json:"since"` // when its release was replaced last, by the forge's clock
	// Heads are those that were replaced then and before. Another head that we have pushed since
	// the time may have been approved in the same second.
	Heads []string `json:"heads,omitempty"`

	pushed branch.Pushed
}

// maxReplacedHeads bounds how many are kept.
const maxReplacedHeads = 100

var approvalPeriods = record.Declare[record.Pull, ApprovalPeriod](record.Declaration{
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

// ReadApprovalPeriod reads since when the approvals of an open promotion count. Where the store was lost, and
// nothing proves that the head is ours, that is since it is known. head is its branch.
func (rg *ReviewGatherer) ReadApprovalPeriod(ctx context.Context, repo *branch.Repository, head string, p *promotion.Pull,
	isProven bool) (ApprovalPeriod, error) {
	period, _, err := approvalPeriods.Get(ctx, rg.records, record.OfPull(repo.ID, p.Number))
	if err != nil {
		return period, err
	}
	pushed, known, err := branch.PushedHeads.Get(ctx, rg.records, record.OfBranch(repo.ID, head))
	if err != nil {
		return period, err
	}
	period.pushed = pushed
	if !known && !isProven && repo.Marks.HasKeys() && p.HeadSince.After(period.Since) {
		period.Since = p.HeadSince
	}
	return period, nil
}

// Covers says that a review was given on what the pull request moves now.
func (a *ApprovalPeriod) Covers(rv *forge.Review) bool {
	return a.Since.IsZero() || rv.At.After(a.Since) || a.pushed.Find([]string{rv.Commit}) != nil && !slices.Contains(a.Heads, rv.Commit)
}
