package forgetest

import (
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/forge"
)

// Verdict is what a reviewer says.
type Verdict string

// The verdicts of a review.
const (
	Approve     Verdict = "approve"
	Reject      Verdict = "reject" // asks for changes
	CommentOnly Verdict = "remark" // comments only
)

// Backend is a forge that the contract is run in.
type Backend struct {
	Type string // the forge's type, as package webhooks calls it

	// NewRepository gives a fresh private repository for one case.
	NewRepository func(t *testing.T) *Repository

	// WithBadToken is the driver with credentials that the forge doesn't know.
	WithBadToken func(t *testing.T) forge.Forge

	// NewRepositoryFor gives one that merges by a method (merge, squash or rebase), where
	// that is the repository's choice. nil: NewRepository.
	NewRepositoryFor func(t *testing.T, method string) *Repository

	// NewQueueRepository gives one that merges by the forge's merge queue; nil: Liftlock knows
	// none of this forge.
	NewQueueRepository func(t *testing.T) *Repository

	// Differences is where the forge can't do as others do.
	Differences Differences

	// Timeout is how long to wait for what the forge does in its own time: check
	// for conflicts, deliver a webhook.
	Timeout time.Duration
}

// Differences is what the contract leaves to a forge; the zero value is GitHub's and Gitea's.
type Differences struct {
	SquashMerges bool   // what is squashed lands by a merge commit
	ForwardOnly  bool   // rebase only moves the base forward, to a branch that isn't behind it
	FailedWord   string // its word for a status that failed, by an error or not; empty: it has two
	ReviewedOnce bool   // of who has reviewed no other review can be requested
	// the driver works as an app: its account is a bot's that administers nothing, and there is one webhook
	// for all repositories
	App          bool
	HidesEditors bool // nobody is told who edited a comment
	OwnEdits     bool // nobody edits others' comments but who administers the repository, and the times of one that was edited show it
	NoDeliveries bool // what it couldn't deliver to a webhook isn't told
}

// Repository is a fresh repository, with one commit on its branch main, and the
// people around it.
type Repository struct {
	Repo     forge.Repo
	Forge    forge.Forge // the driver under test; administers the repository
	Reviewer forge.Forge // the driver as a second account, which may write
	Stranger string      // the login of an account without access
	Nobody   string      // a login that doesn't exist

	ReviewerEmail string // an address that the forge connects with the second account

	// Team is a team that has the second account in it, also in one below it where the
	// forge nests teams, and nobody else. Its zero value: the world has none.
	Team forge.Team
	// MakeTeam makes a team that nobody is in, RenameTeam gives one another name in its
	// organisation. nil where the world can't.
	MakeTeam   func(t *testing.T, team forge.Team)
	RenameTeam func(t *testing.T, team forge.Team, name string)

	// Review gives a review as the second account. commit is the head that it is
	// given on.
	Review func(t *testing.T, number int, v Verdict, commit string)

	// Protect has merging into main need so many approvals and these statuses. nil where the
	// world can't.
	Protect func(t *testing.T, approvals int, contexts ...string)

	// Requested lists the logins and teams (organisation/name) from whom a review is
	// requested. RemoveRequest takes the request to an account off.
	Requested     func(t *testing.T, number int) []string
	RemoveRequest func(t *testing.T, number int, login string)

	// GuardBranches lets only some accounts push to the branches that a pattern names (of GitHub's
	// kind, liftlock/**/*). nil where the world can't.
	GuardBranches func(t *testing.T, pattern string, logins ...string)

	// MoveBranch moves a branch to a commit of the repository as the second account, by force.
	// nil where the world can't, or the forge doesn't say who pushed a pull request's commits.
	MoveBranch func(t *testing.T, branch, commit string)

	// Fork opens a pull request onto main from a branch of this name in a fork,
	// with a change. nil where the world has no forks.
	Fork func(t *testing.T, branch string) (number int)

	// Git is how the repository is read and written beside the driver; nil: by the git
	// program, over CloneURL.
	Git Git

	// RunQueue lets the merge queue come to its end. nil where the repository has none.
	RunQueue func(t *testing.T)

	// AutoMerge has a person set a pull request to merge by itself, which the repository's rules
	// don't let merge yet. nil where the forge has nothing like it, or its own test.
	AutoMerge func(t *testing.T, number int)

	// Hooks lists the repository's webhooks as they are; AddHook makes one. nil where
	// the world delivers none over HTTP.
	Hooks   func(t *testing.T) []Hook
	AddHook func(t *testing.T, h Hook)
}

// Hook is a webhook as the forge has it.
type Hook struct {
	URL    string
	Events []string
	Active bool
}

// Run holds a driver to the contract.
func Run(t *testing.T, w Backend) {
	for _, c := range []struct {
		name string
		run  func(t *testing.T, s *fixture)
	}{
		{"identity", testIdentity},
		{"open, and open again", testCreate},
		{"open without a branch", testCreateWithoutBranch},
		{"title and body", testUpdate},
		{"another base", testChangeBase},
		{"close and reopen", testCloseAndReopen},
		{"labels", testLabels},
		{"by branch", testByBranch},
		{"a branch used again", testBranchUsedAgain},
		{"list since", testListSince},
		{"from a fork", testFork},
		{"comments", testComments},
		{"reactions", testReactions},
		{"who edited a comment", testAuthorship},
		{"reviews", testReviews},
		{"an approval's head", testApprovalHead},
		{"read together", testBulk},
		{"requested reviews", testReviewRequests},
		{"permissions", testPermissions},
		{"teams", testTeams},
		{"commit statuses", testStatuses},
		{"deployments", testDeployments},
		{"merge a head that moved", testMergeStale},
		{"merge what is closed", testMergeClosed},
		{"conflict", testConflict},
		{"rules of a branch", testRules},
		{"bring a branch up to date", testUpdateBranch},
		{"authors of commits", testCommitAuthors},
		{"pushes", testPushes},
		{"pushes of a pull request", testPushers},
		{"delete a branch", testDeleteBranch},
		{"webhook", testHook},
		{"webhook delivers", testHookDelivers(w.Type)},
		{"missed deliveries", testMissedDeliveries(w.Type)},
		{"inspect the credentials", testInspectCredentials},
		{"inspect the repository", testInspectRepository},
		{"inspect webhooks", testInspectHooks},
		{"inspect a team", testInspectTeam},
		{"inspect who may push", testInspectGuard},
		{"what isn't there", testNotFound},
		{"canceled", testCanceled},
		{"an ended lease", testEndedLease},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.run(t, newFixture(t, w, w.NewRepository(t)))
		})
	}
	for _, method := range []string{"merge", "squash", "rebase"} {
		newRepository := func(t *testing.T) *Repository {
			if w.NewRepositoryFor != nil {
				return w.NewRepositoryFor(t, method)
			}
			return w.NewRepository(t)
		}
		t.Run("merge by "+method, func(t *testing.T) { testMerge(t, newFixture(t, w, newRepository(t)), method) })
		t.Run("authors of a pull request, "+method, func(t *testing.T) { testMergedPull(t, newFixture(t, w, newRepository(t)), method) })
	}
	t.Run("auto-merge", func(t *testing.T) { testAutoMerge(t, newFixture(t, w, w.NewRepository(t))) })
	if w.NewQueueRepository == nil {
		t.Run("no merge queue", func(t *testing.T) { testNoQueue(t, newFixture(t, w, w.NewRepository(t))) })
	} else {
		t.Run("merge queue", func(t *testing.T) { testQueue(t, newFixture(t, w, w.NewQueueRepository(t))) })
		t.Run("dropped from the merge queue", func(t *testing.T) { testQueueDrops(t, newFixture(t, w, w.NewQueueRepository(t))) })
	}
	t.Run("bad credentials", func(t *testing.T) { testBadCredentials(t, w) })
}
