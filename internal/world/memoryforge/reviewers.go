package memoryforge

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/forge"
)

// RequestReviewers requests reviews, each by itself.
func (v *view) RequestReviewers(ctx context.Context, r forge.Repo, number int, from forge.Reviewers) (refused []forge.RefusedReviewer,
	err error) {
	if from.IsEmpty() {
		return nil, nil
	}
	err = v.withPull(ctx, "request reviews of "+r.Number(number), r, number, forge.PermissionWrite, func(c *call, p *pull) error {
		refuse := func(name, reason string) {
			refused = append(refused, forge.RefusedReviewer{Name: name, Reason: reason})
		}
		const noCollaborator = "Reviews may only be requested from collaborators."
		for _, t := range from.Teams {
			switch {
			case !strings.EqualFold(t.Organisation, r.Owner):
				refuse(t.String(), "it is no team of "+r.Owner)
			case !c.hasTeamAccess(t):
				refuse(t.String(), noCollaborator)
			default:
				c.requestReview(p, t.String())
			}
		}
		for _, login := range from.Users {
			a := c.findAccount(login)
			switch {
			case a == nil || c.repo.permissionOf(a) < forge.PermissionRead:
				refuse(login, noCollaborator)
			case a == p.author:
				refuse(login, "Review cannot be requested from pull request author.")
			default:
				c.requestReview(p, a.user.Login)
			}
		}
		return nil
	})
	return refused, err
}

// hasTeamAccess says whether a team has access to the repository: nobody gives it to teams
// here, so it has where one of its members does.
func (c *call) hasTeamAccess(t forge.Team) bool {
	team := c.teams[strings.ToLower(t.String())]
	if team == nil {
		return false
	}
	for login := range team.members {
		if a := c.findAccount(login); a != nil && c.repo.permissionOf(a) >= forge.PermissionRead {
			return true
		}
	}
	return false
}

// requestReview notes that a review is requested from an account or a team.
func (c *call) requestReview(p *pull, name string) {
	if p.requested[name] {
		return
	}
	if p.requested == nil {
		p.requested = map[string]bool{}
	}
	p.requested[name] = true
	c.markUpdated(p)
	c.emitPullEvent(PullRequestEvent, p, c.by, "review_requested")
}

// endRequests takes off those requests that a review of an account answers.
func (c *call) endRequests(p *pull, by *account) {
	maps.DeleteFunc(p.requested, func(name string, _ bool) bool {
		return name == by.user.Login || c.teams[strings.ToLower(name)].contains(by.user.Login)
	})
}

// RequestedReviewers are the logins and teams (organisation/name) from whom a review of a
// pull request is requested, in order; none where there is no such pull request.
func (f *Forge) RequestedReviewers(r forge.Repo, number int) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	repo := f.repos[strings.ToLower(r.String())]
	if repo == nil || number < 1 || number > len(repo.pulls) {
		return nil
	}
	return slices.Sorted(maps.Keys(repo.pulls[number-1].requested))
}

// RemoveReviewRequest takes the request to an account or a team off a pull request.
func (f *Forge) RemoveReviewRequest(r forge.Repo, number int, login, name string) error {
	return f.actOnPull("take a review request off", login, r, number, forge.PermissionWrite, func(c *call, p *pull) error {
		if p.requested[name] {
			delete(p.requested, name)
			c.markUpdated(p)
			c.emitPullEvent(PullRequestEvent, p, c.by, "review_request_removed")
		}
		return nil
	})
}
