package memoryforge

import (
	"slices"

	"github.com/liftlock/liftlock/internal/forge"
)

// Verdict is what a review says.
type Verdict string

// The verdicts of a review.
const (
	Approve        Verdict = "approve"
	RequestChanges Verdict = "request changes"
	Remark         Verdict = "remark" // only comments
)

// reviewState is what a review says by now.
type reviewState int

const (
	commented reviewState = iota
	approved
	changesRequested
	dismissed
)

type review struct {
	info  forge.Review // but for Approved and Rejected
	by    *account
	state reviewState
}

// addReview is somebody's word on a commit of a pull request; empty: on its head.
func (c *call) addReview(p *pull, v Verdict, commit string) error {
	state, ok := map[Verdict]reviewState{Approve: approved, RequestChanges: changesRequested, Remark: commented}[v]
	if commit == "" {
		commit = p.info.Head
	}
	switch {
	case !ok:
		return c.failure(forge.ErrInvalid, "Validation Failed: event is invalid")
	case c.by == p.author && state != commented:
		return c.failure(forge.ErrInvalid, "Unprocessable Entity: Can not "+string(v)+" on your own pull request")
	case commit != p.info.Head && !slices.Contains(p.commits, commit):
		return c.failure(forge.ErrInvalid, "Validation Failed: commit_id is not part of the pull request")
	}
	p.reviews = append(p.reviews, &review{by: c.by, state: state, info: forge.Review{
		ID: c.nextID(), User: c.by.user.Login, UserID: c.by.user.ID, Bot: c.by.user.Bot, Commit: commit, At: c.now(),
	}})
	c.endRequests(p, c.by)
	c.markUpdated(p)
	c.emitPullEvent(ReviewEvent, p, c.by, "submitted")
	return nil
}

// dismissReview takes a review's word back.
func (c *call) dismissReview(p *pull, v *review, by *account) {
	v.state = dismissed
	c.markUpdated(p)
	c.emitPullEvent(ReviewEvent, p, by, "dismissed")
}

// listReviews gives one review an account, as the drivers do.
func (p *pull) listReviews() []forge.Review {
	var given []forge.GivenReview
	for _, v := range p.reviews {
		info := v.info
		info.Approved, info.Rejected = v.state == approved, v.state == changesRequested
		given = append(given, forge.GivenReview{Decides: v.state != commented, Review: info})
	}
	return forge.NewestReviews(given)
}

// reviewStates is the last word of everybody who approved or asked for changes; mere
// comments don't take a word back.
func (p *pull) reviewStates() map[*account]reviewState {
	last := map[*account]reviewState{}
	for _, v := range p.reviews {
		if v.state != commented {
			last[v.by] = v.state
		}
	}
	return last
}
