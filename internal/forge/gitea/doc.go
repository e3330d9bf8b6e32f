// Package gitea is the forge driver for Gitea and Forgejo, over their REST API
// with a token. It is the only place, with its file in webhooks, that knows the
// Gitea SDK.
//
// It translates, and makes up for what Gitea's API doesn't say, as of 1.23: which
// pull requests a branch has had (there is no filter), the head of a closed pull
// request whose branch lives on (the branch's commit is shown instead), whether a
// pull request that isn't mergeable conflicts or is still being checked, and
// what a hook's secret is. What it remembers for that is bounded and may be lost
// at any time. It doesn't retry and decides nothing.
package gitea
