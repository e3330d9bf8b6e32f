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
	Approve Verdict = "approve"
	Reject  Verdict = "reject" // asks for changes
	Remark  Verdict = "remark" // comments only
)

// World is a forge that the contract is run in.
type World struct {
	Type string // the forge's type, as package webhooks calls it

	// Place gives a fresh private repository for one case.
	Place func(t *testing.T) *Place

	// BadToken is the driver with credentials that the forge doesn't know.
	BadToken func(t *testing.T) forge.Forge

	// Patience is how long to wait for what the forge does in its own time: check
	// for conflicts, deliver a webhook.
	Patience time.Duration
}

// Place is a fresh repository, with one commit on its branch main, and the
// people around it.
type Place struct {
	Repo     forge.Repo
	Forge    forge.Forge // the driver under test; administers the repository
	Reviewer forge.Forge // the driver as a second account, which may write
	Stranger string      // the login of an account without access
	Nobody   string      // a login that doesn't exist

	// Review gives a review as the second account. commit is the head that it is
	// given on.
	Review func(t *testing.T, number int, v Verdict, commit string)

	// Fork opens a pull request onto main from a branch of this name in a fork,
	// with a change. nil where the world has no forks.
	Fork func(t *testing.T, branch string) (number int)

	// Hooks lists the repository's webhooks as they are; AddHook makes one.
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
func Run(t *testing.T, w World) {
	for _, c := range []struct {
		name string
		run  func(t *testing.T, s *scene)
	}{
		{"identity", identity},
		{"open, and open again", create},
		{"open without a branch", createWithoutBranch},
		{"title and body", update},
		{"close and reopen", closeAndReopen},
		{"labels", labels},
		{"by branch", byBranch},
		{"a branch used again", branchUsedAgain},
		{"list since", since},
		{"from a fork", fork},
		{"comments", comments},
		{"reactions", reactions},
		{"reviews", reviews},
		{"permissions", permissions},
		{"commit statuses", statuses},
		{"merge by a merge commit", merge("merge", 2)},
		{"merge by squash", merge("squash", 1)},
		{"merge by rebase", merge("rebase", 1)},
		{"merge a head that moved", mergeStale},
		{"merge what is closed", mergeClosed},
		{"conflict", conflict},
		{"authors of a commit", authors},
		{"delete a branch", deleteBranch},
		{"webhook", hook},
		{"webhook delivers", hookDelivers(w.Type)},
		{"what isn't there", gone},
		{"canceled", canceled},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.run(t, newScene(t, w))
		})
	}
	t.Run("bad credentials", func(t *testing.T) { badCredentials(t, w) })
}
