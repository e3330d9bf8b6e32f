package people

import (
	"context"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/store/record"

	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/policies"
)

// ReviewRequestRecords are kept nowhere else: without the database they are made once more.
var ReviewRequestRecords = record.Declare[record.Pull, policies.ReviewRequests](record.Declaration{
	Name: "review-requests", Owner: "controller/facts", Lifetime: record.UntilSettled,
	Doc: "The reviews that were requested. Without it they are requested once more.",
})

// ReadReviewRequests reads what reviews of a pull request were requested; none where that can't
// be understood.
func ReadReviewRequests(ctx context.Context, s record.Reader, repo string, number int) (policies.ReviewRequests, error) {
	r, _, err := ReviewRequestRecords.Get(ctx, s, record.OfPull(repo, number))
	return r, err
}

// ForgetRefusedReviewers forgets those from whom the forge took no request for a review of a pull
// request, so that it is made again. A person has it tried again, and may have given them access
// meanwhile. Granted requests stay.
func ForgetRefusedReviewers(ctx context.Context, s record.ReadWriter, repo string, number int) error {
	known, err := ReadReviewRequests(ctx, s, repo, number)
	if err != nil || len(known.Refused) == 0 {
		return err
	}
	known.Names = slices.DeleteFunc(known.Names, func(name string) bool {
		return slices.ContainsFunc(known.Refused, func(r policies.RefusedReviewer) bool { return strings.EqualFold(r.Name, name) })
	})
	known.Refused = nil
	return ReviewRequestRecords.Put(ctx, s, record.OfPull(repo, number), known)
}

// ReviewersToRequest are those whose reviews an action requests, as the forge names them.
func ReviewersToRequest(x promotion.RequestReviewers) (forge.Reviewers, error) {
	from := forge.Reviewers{Users: x.Reviewers.Users}
	for _, name := range x.Reviewers.Teams {
		organisation, team, err := policies.ParseTeam(name)
		if err != nil {
			return from, err // a gate with such a one isn't valid
		}
		from.Teams = append(from.Teams, forge.Team{Organisation: organisation, Name: team})
	}
	return from, nil
}

// PutReviewRequests writes down that reviews were requested, and from whom the forge took no
// request.
func PutReviewRequests(ctx context.Context, s record.ReadWriter, repo string, x promotion.RequestReviewers,
	refused []forge.RefusedReviewer) error {
	known, err := ReadReviewRequests(ctx, s, repo, x.Pull)
	if err != nil {
		return err
	}
	known.Release = x.Release
	for _, name := range x.Reviewers.Names() {
		known.Refused = slices.DeleteFunc(known.Refused, func(r policies.RefusedReviewer) bool { return r.Name == name })
		if !slices.Contains(known.Names, name) {
			known.Names = append(known.Names, name)
		}
	}
	for _, r := range refused {
		known.Refused = append(known.Refused, policies.RefusedReviewer{Name: r.Name, Reason: r.Reason})
	}
	return ReviewRequestRecords.Put(ctx, s, record.OfPull(repo, x.Pull), known)
}
