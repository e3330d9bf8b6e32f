package gitlab

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/liftlock/liftlock/internal/forge"
)

// RequestReviewers adds reviewers to those that a merge request has. GitLab takes the numbers of
// accounts, all reviewers at once, and silently leaves out those that it doesn't take. So an
// account that is missing in its answer was refused. Accounts that have reviewed keep their state.
func (d *Driver) RequestReviewers(ctx context.Context, r forge.Repo, n int, from forge.Reviewers) ([]forge.RefusedReviewer, error) {
	if from.IsEmpty() {
		return nil, nil
	}
	m, err := d.readMergeRequest(ctx, r, n)
	if err != nil {
		return nil, err
	}
	var refused []forge.RefusedReviewer
	refuse := func(name, why string) { refused = append(refused, forge.RefusedReviewer{Name: name, Reason: why}) }
	for _, t := range from.Teams {
		refuse(t.String(), "GitLab requests reviews of people, not of groups")
	}
	var ids []int64
	for _, a := range m.Reviewers {
		ids = append(ids, a.ID)
	}
	wanted := map[int64]string{}
	for _, login := range from.Users {
		a, err := d.findUser(ctx, login)
		switch {
		case err != nil:
			return refused, err
		case a == nil:
			refuse(login, "there is no such account on the forge")
		case a.ID == m.Author.id():
			refuse(login, fmt.Sprintf("who opened %s doesn't review it", number(r, n)))
		case !slices.Contains(ids, a.ID):
			wanted[a.ID] = login
			ids = append(ids, a.ID)
		}
	}
	if len(wanted) == 0 {
		return refused, nil
	}
	var changed mergeRequest
	if _, err := d.callMergeRequest(ctx, "request reviews of "+number(r, n), r, n, http.MethodPut, mergeRequestChange{ReviewerIDs: ids},
		&changed); err != nil {
		return refused, err
	}
	for _, id := range ids {
		if login, ok := wanted[id]; ok && !slices.ContainsFunc(changed.Reviewers, func(a account) bool { return a.ID == id }) {
			refuse(login, "GitLab doesn't take this reviewer: either it may not read the project, or the edition has one reviewer only")
		}
	}
	return refused, nil
}
