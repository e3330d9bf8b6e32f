package forge_test

import (
	"io/fs"
	"os"
	"strings"
	"testing"
)

// subjects are the files that every driver has, each with what all drivers have in it, so that who
// knows one finds the same in another. Files that only one forge needs are beside them.
var subjects = []string{
	"authors", "branches", "client", "comments", "deliveries", "deployments", "doc", "errors", "hooks", "inspect", "labels", "merge",
	"pulls", "pushes", "queue", "reviewers", "reviews", "rules", "statuses", "urls", "users",
}

// methods says in which of them a method of the drivers is.
var methods = map[string]string{
	"CommitAuthors": "authors", "PullRequestAuthors": "authors", "MergedPullRequests": "authors", "Commits": "authors", "Pushes": "pushes",
	"DeleteBranch": "branches", "PullRequestsByBranch": "branches", "AddLabels": "labels", "RemoveLabel": "labels",
	"Comments": "comments", "CreateComment": "comments", "UpdateComment": "comments", "React": "comments", "HasReacted": "comments", "Authorship": "comments",
	"MissedDeliveries": "deliveries", "EnsureHook": "hooks", "InspectCredentials": "inspect", "InspectGuard": "inspect", "InspectHooks": "inspect",
	"Merge": "merge", "UpdateBranch": "merge", "LeaveQueue": "queue", "PullRequest": "pulls", "PullRequests": "pulls", "MayOpen": "pulls",
	"CreatePullRequest": "pulls", "UpdatePullRequest": "pulls", "RequestReviewers": "reviewers", "Reviews": "reviews", "Rules": "rules",
	"SetStatus": "statuses", "Statuses": "statuses", "Checks": "statuses", "CloneURL": "urls", "CommitURL": "urls", "CompareURL": "urls",
	"Me": "users", "GitAuth": "users", "Permission": "users", "IsTeamMember": "users", "TeamNumber": "users",
}

// TestDriversAreAlike: a driver has its neighbours' files, with the same in each.
func TestDriversAreAlike(t *testing.T) {
	for _, driver := range []string{"github", "gitlab", "gitea"} {
		folder, texts := os.DirFS(driver), map[string]string{}
		for _, s := range subjects {
			text, err := fs.ReadFile(folder, s+".go")
			if err != nil {
				t.Error(err)
			}
			texts[s] = string(text)
		}
		for method, subject := range methods {
			if !strings.Contains(texts[subject], "\nfunc (d *Driver) "+method+"(") {
				t.Errorf("%s has %s not in %s.go", driver, method, subject)
			}
		}
	}
}
