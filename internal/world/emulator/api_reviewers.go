package emulator

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// maxReviewers is how many GitHub's page lets one request; past it the emulator refuses.
const maxReviewers = 15

// reviewersBody is what requests are made and removed with: logins and slugs.
type reviewersBody struct {
	Reviewers []string `json:"reviewers"`
	Teams     []string `json:"team_reviewers"`
}

func wireTeamOf(t *team) wireTeam {
	return wireTeam{ID: t.id, NodeID: nodeID("T", t.id), Name: t.slug, Slug: t.slug}
}

func listReviewRequests(c *call, p *pull) (any, error) {
	w := c.wirePull(p)
	return map[string]any{"users": w.Reviewers, "teams": w.Teams}, nil
}

// requestReviews takes all names or none. Its refusals are those that users of the API show:
// octokit's and the GitHub CLI's of "requested_reviewers".
func requestReviews(c *call, p *pull) (any, error) {
	var in reviewersBody
	if err := c.decodeBody(&in); err != nil {
		return nil, err
	}
	refusal := func(why string) error {
		return newAPIError(http.StatusUnprocessableEntity, "%s", why)
	}
	noCollaborator := refusal(fmt.Sprintf("Reviews may only be requested from collaborators. One or more of the users or teams you "+
		"specified is not a collaborator of the %s repository.", p.repo.fullName()))
	var accounts []*account
	var teams []*team
	for _, login := range in.Reviewers {
		a, err := c.findAccount(login)
		switch {
		case err != nil || p.repo.permissionOf(a) < Read:
			return nil, noCollaborator
		case a == p.author:
			return nil, refusal("Review cannot be requested from pull request author.")
		}
		accounts = append(accounts, a)
	}
	for _, slug := range in.Teams {
		t := c.teams[strings.ToLower(p.repo.owner.login+"/"+slug)]
		if t == nil || !c.hasTeamAccess(p.repo, t) {
			return nil, noCollaborator
		}
		teams = append(teams, t)
	}
	if len(p.reviewers)+len(p.teams)+len(accounts)+len(teams) > maxReviewers {
		return nil, refusal(fmt.Sprintf("A pull request can have at most %d requested reviewers.", maxReviewers))
	}
	for _, a := range accounts {
		if !slices.Contains(p.reviewers, a) {
			p.reviewers = append(p.reviewers, a)
			c.markUpdated(p)
			c.emitPull(p, c.user, "review_requested", map[string]any{"requested_reviewer": c.wireUser(a)})
		}
	}
	for _, t := range teams {
		if !slices.Contains(p.teams, t) {
			p.teams = append(p.teams, t)
			c.markUpdated(p)
			c.emitPull(p, c.user, "review_requested", map[string]any{"requested_team": wireTeamOf(t)})
		}
	}
	c.status = http.StatusCreated
	return c.wirePull(p), nil
}

func removeReviewRequests(c *call, p *pull) (any, error) {
	var in reviewersBody
	if err := c.decodeBody(&in); err != nil {
		return nil, err
	}
	for _, login := range in.Reviewers {
		i := slices.IndexFunc(p.reviewers, func(a *account) bool { return strings.EqualFold(a.login, login) })
		if i >= 0 {
			a := p.reviewers[i]
			p.reviewers = slices.Delete(p.reviewers, i, i+1)
			c.markUpdated(p)
			c.emitPull(p, c.user, "review_request_removed", map[string]any{"requested_reviewer": c.wireUser(a)})
		}
	}
	for _, slug := range in.Teams {
		i := slices.IndexFunc(p.teams, func(t *team) bool { return strings.EqualFold(t.slug, slug) })
		if i >= 0 {
			t := p.teams[i]
			p.teams = slices.Delete(p.teams, i, i+1)
			c.markUpdated(p)
			c.emitPull(p, c.user, "review_request_removed", map[string]any{"requested_team": wireTeamOf(t)})
		}
	}
	return c.wirePull(p), nil
}

// hasTeamAccess says whether a team has access to a repository: nobody gives it to teams here,
// so it has where somebody in it does.
func (f *Forge) hasTeamAccess(r *repository, t *team) bool {
	for _, a := range f.users {
		if t.contains(a.login, f.teams) && r.permissionOf(a) >= Read {
			return true
		}
	}
	return false
}

// endReviewRequests takes off those requests that somebody's review answers: to them, and to
// the teams that they are in.
func (f *Forge) endReviewRequests(p *pull, by *account) {
	if f.face == GitLab {
		return // reviewers stay, and their state says how they decided
	}
	p.reviewers = slices.DeleteFunc(p.reviewers, func(a *account) bool { return a == by })
	p.teams = slices.DeleteFunc(p.teams, func(t *team) bool { return t.contains(by.login, f.teams) })
}
