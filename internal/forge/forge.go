package forge

import (
	"context"
	"strconv"
	"time"
)

// Repo names a repository on a forge: the owner (user, organisation or group
// path) and the repository's own name, both as the forge spells them.
type Repo struct {
	Owner string
	Name  string
}

// String is "owner/name".
func (r Repo) String() string { return r.Owner + "/" + r.Name }

// Number names a pull request or an issue of the repository, as people do: owner/name#7.
func (r Repo) Number(n int) string { return r.String() + "#" + strconv.Itoa(n) }

// State is where a pull request is in its life.
type State string

// The states of a pull request. Merged is never reported as Closed.
const (
	Open   State = "open"
	Closed State = "closed"
	Merged State = "merged"
)

// Mergeable is the forge's own opinion of whether a merge would succeed now.
type Mergeable string

// These are a forge's words on a merge. Unknown means that the forge is still computing it: look
// again. Dirty means that it conflicts with its base; Blocked means that branch protection, a
// required check or a review stops it.
const (
	MergeableUnknown Mergeable = "unknown"
	MergeableYes     Mergeable = "yes"
	MergeableDirty   Mergeable = "dirty"
	MergeableBlocked Mergeable = "blocked"
	MergeableBehind  Mergeable = "behind"
)

// QueueState is how an open pull request stands to the forge's own merge queue.
type QueueState string

// These are a forge's words on its queue. Queued is also one that the forge merges by itself once
// its conditions are met.
const (
	NotQueued QueueState = ""
	Queued    QueueState = "queued"
)

// PullRequest is a pull (merge) request as it was read from the forge.
type PullRequest struct {
	Number    int
	URL       string // for people
	Title     string
	Body      string
	Author    string // login
	AuthorID  int64  // of the account; 0: not known
	Branch    string // head branch, without refs/heads/
	Fork      bool   // the head lives in another repository
	Head      string // head commit, 40 hex digits
	Ref       string // full name of the ref under which the forge keeps the head, also a fork's
	Base      string // base branch
	State     State
	Draft     bool
	Labels    []string // sorted
	Mergeable Mergeable
	// the forge's word for a Mergeable that isn't yes, as it spells it; GitLab's rules of approval behind it,
	// where they are read
	MergeReason string
	Queue       QueueState
	// Pipeline is the forge's run of checks on the head that decides whether they succeed, where
	// statuses belong to such runs (GitLab) and the pull request was read by itself. 0 means that
	// none is known.
	Pipeline    int64
	MergeCommit string // when Merged: the commit that landed on the base branch
	// SquashCommit is the commit that its own were made one of, where MergeCommit merged that one
	// (GitLab); empty: there is none beside MergeCommit.
	SquashCommit string
	MergedBy     string // when Merged: login
	MergedByID   int64  // of the account; 0: not known
	CreatedAt    time.Time
	UpdatedAt    time.Time
	ClosedAt     time.Time // zero while open; also set when merged
	MergedAt     time.Time // zero unless Merged

	// CommentCount is how many comments its conversation has; nil: not told, as in lists.
	CommentCount *int
}

// HasLabel says whether the pull request carries the label.
func (p *PullRequest) HasLabel(name string) bool {
	for _, l := range p.Labels {
		if l == name {
			return true
		}
	}
	return false
}

// Review is a person's standing word on a pull request.
type Review struct {
	ID       int64
	User     string
	UserID   int64 // of the account
	Bot      bool
	Approved bool // approved and not dismissed; false: asked for changes, dismissed or only commented
	Rejected bool // asked for changes and not dismissed
	Commit   string
	At       time.Time
	MayWrite *bool // whether the user may write to the repository; nil: not told
}

// Comment is one comment in a pull request's conversation.
type Comment struct {
	ID        int64
	User      string
	UserID    int64 // of the account
	Bot       bool
	Body      string
	CreatedAt time.Time
	UpdatedAt time.Time
	URL       string
	NodeID    string // by which GitHub's GraphQL API has it; empty: the forge has none
}

// Permission is what a user may do in a repository, in rising order.
type Permission int

// The permissions that Liftlock tells apart.
const (
	PermissionNone Permission = iota
	PermissionRead
	PermissionWrite
	PermissionAdmin
)

// StatusState is the state of a commit status.
type StatusState string

// The states that every forge has.
const (
	StatusPending StatusState = "pending"
	StatusSuccess StatusState = "success"
	StatusFailure StatusState = "failure"
	StatusError   StatusState = "error"
)

// Status is a commit status.
type Status struct {
	Context     string
	State       StatusState
	Description string // cut to what the forge takes by the driver
	TargetURL   string
	Creator     string
	Pipeline    int64 // to be set: the PullRequest's, which it then joins; 0: the forge chooses
}

// CheckState is how a check stands.
type CheckState string

// The states of a check. Skipped is one that didn't run because its conditions weren't met.
const (
	CheckPending CheckState = "pending"
	CheckPassed  CheckState = "passed"
	CheckSkipped CheckState = "skipped"
	CheckFailed  CheckState = "failed"
)

// Check is what a program says of a commit: a commit status, or a check run where the
// forge has those.
type Check struct {
	Name  string
	App   string // login of the account; of an app, with its [bot]
	State CheckState
	Word  string // the forge's own for the state
}

// CheckOfStatus is a commit status as a check. A state that no forge is known to have
// didn't pass.
func CheckOfStatus(context, creator, state string) Check {
	c := Check{Name: context, App: creator, State: CheckFailed, Word: state}
	switch state {
	case "success":
		c.State = CheckPassed
	case "pending":
		c.State = CheckPending
	case "skipped":
		c.State = CheckSkipped
	}
	return c
}

// NewPullRequest is what is needed to open one.
type NewPullRequest struct {
	Title, Body string
	Branch      string // head branch in the same repository
	Base        string
	Labels      []string // created where they don't exist
}

// PullRequestUpdate says what to change in a pull request; nil leaves a thing as it is.
type PullRequestUpdate struct {
	Title, Body *string
	Base        *string // the branch that it is to be merged into; of one that is open
	State       *State  // Open or Closed
}

// MergeRequest asks for a merge of exactly one head.
type MergeRequest struct {
	Number  int
	Head    string // the commit that was judged; another head is ErrConflict
	Method  string // merge, squash or rebase
	Title   string // of the merge or squash commit
	Message string // its body; carries the trailers
}

// Hook is the webhook that Liftlock wants to find on a repository.
type Hook struct {
	URL    string
	Secret string
	Events []string // the forge's own event names; empty: the driver's DefaultEvents
}

// User is an account on the forge.
type User struct {
	ID    int64 // stays when the login is changed; 0: not known
	Login string
	Bot   bool
	Email string // Me's alone: the address by which the forge connects commits with it; empty: none is known
}

// Forge is what Liftlock needs of a Git hosting service. A driver is safe for
// concurrent use. Every call is bounded by its context; every error wraps one
// of this package's kinds where the forge's answer allows to tell.
type Forge interface {
	// Me is the identity that the credentials belong to.
	Me(ctx context.Context) (User, error)
	// CloneURL is where Git finds the repository over HTTP, without
	// credentials; GitAuth gives the credentials for it, good for ten minutes at least.
	CloneURL(ctx context.Context, r Repo) (string, error)
	GitAuth(ctx context.Context, r Repo) (username, password string, err error)
	// CommitURL and CompareURL are pages for people, which may not be there: of a commit,
	// and of what head has and base hasn't.
	CommitURL(r Repo, commit string) string
	CompareURL(r Repo, base, head string) string

	// PullRequests lists pull requests of every state that were updated at or
	// after since (zero: all of them), most recently updated first.
	PullRequests(ctx context.Context, r Repo, since time.Time) ([]PullRequest, error)
	// PullRequest reads one, with Mergeable filled in, and Queue where the forge tells it with
	// the rest or WithMergeQueue was said of the context. ErrNotFound when there is none.
	PullRequest(ctx context.Context, r Repo, number int) (*PullRequest, error)
	// PullRequestsByBranch lists those whose head is the branch of this very
	// repository, of every state, newest first.
	PullRequestsByBranch(ctx context.Context, r Repo, branch string) ([]PullRequest, error)
	// MayOpen says, without a call, whether the limits that are known allow a CreatePullRequest
	// now: nil, or ErrRateLimited, as that would answer, and when to try again.
	MayOpen(ctx context.Context, r Repo) error
	// CreatePullRequest opens one. When an open one already exists for this
	// branch and base, that one is returned with created false. After ErrRateLimited
	// there is none but one that was there before.
	CreatePullRequest(ctx context.Context, r Repo, n NewPullRequest) (pr *PullRequest, created bool, err error)
	UpdatePullRequest(ctx context.Context, r Repo, number int, c PullRequestUpdate) error
	// Merge merges exactly m.Head and returns the commit that landed. Merging a pull request that
	// is already merged with that head is success. Where the forge merges by a queue, that head
	// joins it, which is no error, and the commit is empty. It lands later, or never, and with a
	// message of the forge's. ErrConflict: the head moved or the base was modified meanwhile;
	// ErrNotMergeable: the forge refuses for a reason that it names.
	Merge(ctx context.Context, r Repo, m MergeRequest) (commit string, err error)
	// UpdateBranch brings a pull request's head, which must be head, up to date with its base
	// by a merge commit of the forge's, which drops no approvals. It may be there a moment
	// later only. ErrConflict: the head moved, or it conflicts with its base; ErrUnsupported:
	// the forge has none that pins the head, or drops approvals by it too.
	UpdateBranch(ctx context.Context, r Repo, number int, head string) error
	// LeaveQueue takes a pull request out of the forge's merge queue; one that isn't in
	// it, or is closed, is success. ErrConflict: it is merged, or being merged;
	// ErrRetryable: it is in the queue still; ErrForbidden: the credentials may not;
	// ErrUnsupported: Liftlock knows no queue of this forge.
	LeaveQueue(ctx context.Context, r Repo, number int) error
	// Rules reads the forge's own requirements before a pull request into a branch merges, as far
	// as the credentials see them. A rule that they don't see is Hidden, and no error. A branch
	// without rules has none, and so may one that isn't there.
	Rules(ctx context.Context, r Repo, branch string) (*BranchRules, error)
	// DeleteBranch removes a branch; one that is already gone is success.
	DeleteBranch(ctx context.Context, r Repo, branch string) error

	Reviews(ctx context.Context, r Repo, number int) ([]Review, error)
	// RequestReviewers requests a review of an open pull request from accounts and teams: one call,
	// and where the forge refuses some of the names one more for each. Those whom the forge doesn't
	// take are refused, with its reason, and no error. They don't exist, have no access to the
	// repository or are the pull request's author, or they are teams that aren't its
	// organisation's. The others are requested all the same. A request that is already there stays.
	// A reviewer who has reviewed is asked to review again, which may cost the approval its weight
	// in the forge's own rules. One who has removed the request is asked again too. The caller has
	// to know whom not to ask a second time. Without names nothing is called. ErrNotFound: there is
	// no such pull request; ErrForbidden: the credentials may not request reviews of it.
	RequestReviewers(ctx context.Context, r Repo, number int, from Reviewers) ([]RefusedReviewer, error)
	// Permission is the user's effective permission; an unknown user has none.
	Permission(ctx context.Context, r Repo, login string) (Permission, error)

	// IsTeamMember says whether an account is in a team of an organisation, or in one below
	// it where the forge nests teams. ErrNotFound where the team isn't there or can't be seen;
	// an unknown account is in none.
	IsTeamMember(ctx context.Context, t Team, login string) (bool, error)
	// TeamNumber is the number of the team that has the name now. A renamed team keeps its own, and
	// another team under its former name has another. ErrNotFound as for IsTeamMember.
	TeamNumber(ctx context.Context, t Team) (int64, error)

	// MergedPullRequests are the merged pull requests that the forge connects with a
	// commit: those that landed as it, and maybe those that have it among their
	// commits. With MergedBy. ErrNotFound where the forge doesn't know the commit.
	MergedPullRequests(ctx context.Context, r Repo, commit string) ([]PullRequest, error)
	// PullRequestAuthors says who made all commits of a pull request, and who pushed them, where
	// that is known. It is ErrTooMany when there are more than can be read, or where MaxPushes
	// moves of the branch aren't enough to find the pushers.
	PullRequestAuthors(ctx context.Context, r Repo, pr *PullRequest) ([]CommitAuthors, error)
	// CommitAuthors says who made the commits that head has and base hasn't, oldest
	// first; an empty base: head alone. ErrTooMany as above.
	CommitAuthors(ctx context.Context, r Repo, base, head string) ([]CommitAuthors, error)
	// Commits are those that head has and base hasn't, oldest first. Either is a commit, a
	// tag or a branch. ErrNotFound where the repository or one of them isn't there or can't
	// be seen; ErrTooMany as above.
	Commits(ctx context.Context, r Repo, base, head string) ([]Commit, error)
	// Pushes gives the moves of a branch, newest first, as far back as the forge
	// remembers, until enough says that it is. ErrTooMany when more than MaxPushes
	// weren't enough.
	Pushes(ctx context.Context, r Repo, branch string, enough func(Push) bool) error

	AddLabels(ctx context.Context, r Repo, number int, labels ...string) error
	// RemoveLabel: a label that isn't there is success.
	RemoveLabel(ctx context.Context, r Repo, number int, label string) error

	// Comments lists the conversation's comments updated at or after since, oldest first.
	Comments(ctx context.Context, r Repo, number int, since time.Time) ([]Comment, error)
	CreateComment(ctx context.Context, r Repo, number int, body string) (*Comment, error)
	UpdateComment(ctx context.Context, r Repo, number int, id int64, body string) error
	// React adds a reaction ("eyes", "+1", "-1", "confused") to a comment; twice is once.
	React(ctx context.Context, r Repo, number int, comment int64, reaction string) error
	// HasReacted says whether Me has left any reaction on the comment.
	HasReacted(ctx context.Context, r Repo, number int, comment int64) (bool, error)
	// Authorship says how far a comment that was read is known to be its author's, and who edited
	// it, as far as that is known. ErrNotFound: it isn't there any more.
	Authorship(ctx context.Context, r Repo, number int, c *Comment) (a Authorship, editor string, err error)

	// SetStatus sets a commit status. ErrUnsupported where the forge keeps none of a commit
	// that is a fork's alone.
	SetStatus(ctx context.Context, r Repo, commit string, s Status) error
	// Statuses are the newest status of each context on a commit.
	Statuses(ctx context.Context, r Repo, commit string) ([]Status, error)
	// Checks are the statuses and check runs on a commit, of all pages: the newest of
	// each name and app, sorted by both. A status and a check run of the same name and
	// app are two.
	Checks(ctx context.Context, r Repo, commit string) ([]Check, error)

	// HasDeployments says whether the forge keeps deployments. Where it doesn't, the four
	// calls about them are ErrInvalid, and cost no call.
	HasDeployments() bool
	// Deployments are the newest of a task in an environment, newest first and at most
	// MaxDeployments; none also where there is no such environment.
	Deployments(ctx context.Context, r Repo, environment, task string) ([]Deployment, error)
	// CreateDeployment makes another one, also where there is one like it, and returns its
	// ID. The forge neither merges anything for it nor waits for statuses.
	CreateDeployment(ctx context.Context, r Repo, d Deployment) (int64, error)
	// DeploymentState is the newest state of a deployment; empty where it has none yet.
	DeploymentState(ctx context.Context, r Repo, id int64) (DeploymentState, error)
	// SetDeploymentStatus gives a deployment a state. Other deployments of the environment
	// stay as they are.
	SetDeploymentStatus(ctx context.Context, r Repo, id int64, s DeploymentStatus) error

	// EnsureHook creates the webhook, or repairs the one with the same URL
	// (events, content type, active, secret). changed says whether it had to.
	EnsureHook(ctx context.Context, r Repo, h Hook) (changed bool, err error)
	// MissedDeliveries lists what the forge couldn't deliver to a webhook, in a few calls
	// however much that is. ErrUnsupported where the forge doesn't show it; ErrNotFound where
	// there is no such webhook.
	MissedDeliveries(ctx context.Context, r Repo, q DeliveryQuery) (MissedDeliveries, error)
}
