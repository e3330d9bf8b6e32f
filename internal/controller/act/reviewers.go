package act

import (
	"context"
	"errors"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/facts/people"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
)

// requestReviewers requests reviews, and writes that down when it is done: after a death in between
// they are requested once more, which changes nothing for who hasn't answered. A final refusal of
// the forge is recorded too, so that it isn't tried for ever.
func (a *Actor) requestReviewers(ctx context.Context, c *facts.ComponentEvaluation, x promotion.RequestReviewers) error {
	r := c.Snapshot.Repo
	from, err := people.ReviewersToRequest(x)
	if err != nil {
		return err
	}
	refused, err := r.Forge.RequestReviewers(ctx, r.Name, x.Pull, from)
	switch {
	case isRefusal(err):
		refused = nil
		for _, name := range x.Reviewers.Names() {
			refused = append(refused, forge.RefusedReviewer{Name: name, Reason: refusalWords(err)})
		}
	case err != nil:
		return err
	}
	for _, f := range refused {
		a.opts.Log.Warn("the forge takes no request for a review from one whom an approvals gate names",
			zap.String("pull", r.Name.Number(x.Pull)), zap.String("reviewer", f.Name), zap.String("reason", f.Reason))
	}
	return people.PutReviewRequests(ctx, a.opts.Store, r.ID, x, refused)
}

// refusalWords are the forge's own words for what it doesn't do.
func refusalWords(err error) string {
	var refusal *forge.Error
	if !errors.As(err, &refusal) || refusal.Message == "" {
		return err.Error()
	}
	if refusal.Hint != "" {
		return refusal.Message + "; " + refusal.Hint
	}
	return refusal.Message
}
