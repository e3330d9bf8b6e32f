package forge

import "context"

// MaxBulk is how many pull requests one call of a BulkReader reads.
const MaxBulk = 20

// ReviewedPullRequest is a pull request with its reviews, as Forge.Reviews gives them.
type ReviewedPullRequest struct {
	PullRequest
	Reviews []Review
}

// BulkReader is a forge that can read pull requests with their reviews, and the reviewers'
// permissions, by one call. Otherwise that takes a call for each pull request, each page of its
// reviews and each reviewer.
type BulkReader interface {
	// ReviewedPullRequests reads at most MaxBulk; those that aren't there are left out.
	// ErrUnsupported: this instance, or these credentials, can't, or one of them has more
	// reviews than one call gives; then each is read by itself.
	ReviewedPullRequests(ctx context.Context, r Repo, numbers ...int) ([]ReviewedPullRequest, error)
}
