package memoryforge

import "github.com/liftlock/liftlock/internal/forge"

// Kind is what an event is about; the words are those of package webhooks.
type Kind string

// The kinds of events.
const (
	PushEvent        Kind = "push"         // a branch was created, moved or deleted
	PullRequestEvent Kind = "pull_request" // a pull request was opened, changed or closed
	ReviewEvent      Kind = "review"       // a review was given or dismissed
	CommentEvent     Kind = "comment"      // a comment was made, edited or deleted
	StatusEvent      Kind = "status"       // a commit status was set
)

// Event is one change, as a webhook would tell it.
type Event struct {
	Repo   forge.Repo
	Kind   Kind
	Action string // in GitHub's word: opened, synchronize, submitted, success
	Number int    // of the pull request
	Branch string // the one that was pushed, the pull request's, or the only one whose tip has the status
	Fork   bool   // the pull request's branch is in another repository
	Before string // of a push or synchronize: the commit before; empty: the branch is new
	After  string // the commit after; empty: the branch is gone
	Commit string // the pull request's head, or the one with the status
	Actor  string // login
}

func (c *call) emitEvent(e Event, by *account) {
	e.Repo, e.Actor = c.repo.name, by.user.Login
	c.events = append(c.events, e)
}

// emitPullEvent tells of something about a pull request.
func (c *call) emitPullEvent(kind Kind, p *pull, by *account, action string) {
	c.emitEvent(Event{Kind: kind, Action: action, Number: p.info.Number, Branch: p.info.Branch, Fork: p.info.Fork, Commit: p.info.Head}, by)
}
