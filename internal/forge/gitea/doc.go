// Package gitea is the forge driver for Gitea and Forgejo, over their REST API with a token. It is
// the only place, with its file in webhooks, that knows the Gitea SDK.
//
// It translates, and finds out what Gitea's API doesn't say, as of 1.23. That is which pull
// requests a branch has had (there is no filter), and the head of a closed pull request whose
// branch lives on (the branch's commit is shown instead). It is also whether a pull request that
// isn't mergeable conflicts or is still being checked, and a hook's secret. Its memory for that is
// bounded and may be lost at any time. It doesn't retry and decides nothing.
package gitea
