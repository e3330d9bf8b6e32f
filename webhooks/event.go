package webhooks

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Kind is what an event is about, in the same words for every forge.
type Kind string

// The kinds of events. Other is authentic, and nothing that a wake-up depends on.
const (
	Push         Kind = "push"         // a branch or tag was created, moved or deleted
	PullRequest  Kind = "pull_request" // a pull request was opened, changed or closed
	Review       Kind = "review"       // a review was given, edited or dismissed
	Comment      Kind = "comment"      // a comment in a pull request's conversation
	Status       Kind = "status"       // a commit status, check run or check suite
	Installation Kind = "installation" // an app was installed, suspended or taken away, or given other repositories
	Rules        Kind = "rules"        // what the forge demands of merges into branches was changed
	Repository   Kind = "repository"   // the repository itself was renamed, moved, archived or deleted
	ImagePush    Kind = "image_push"   // something was pushed to a registry of containers
	Ping         Kind = "ping"         // the forge tries the hook
	Other        Kind = "other"
)

// Event is one delivery, reduced to what a wake-up key needs. Fields that the
// payload doesn't have are empty: callers fall back to the wider key (the
// repository instead of the pull request).
type Event struct {
	Forge    string `json:"forge"`            // its type: github, gitea, gitlab or registry
	Delivery string `json:"delivery"`         // the forge's identity of the delivery; a redelivery keeps it
	Name     string `json:"name"`             // the forge's own name for the event
	Kind     Kind   `json:"kind"`             // the neutral kind
	Action   string `json:"action,omitempty"` // what happened, in the forge's word: opened, submitted, success
	Repo     string `json:"repo,omitempty"`   // owner/name
	// the forge's number of the repository, which stays when it is renamed or moved, and which no other gets;
	// 0: not said
	RepoID     int64  `json:"repo_id,omitempty"`
	Branch     string `json:"branch,omitempty"`      // Push: without refs/heads/; empty for a tag
	Before     string `json:"before,omitempty"`      // Push: the commit before; zeros when the branch is new
	After      string `json:"after,omitempty"`       // Push: the commit after; zeros when Deleted
	Deleted    bool   `json:"deleted,omitempty"`     // Push: the branch or tag is gone
	Number     int    `json:"number,omitempty"`      // the pull request
	HeadBranch string `json:"head_branch,omitempty"` // the pull request's, or the status's where it names exactly one
	Fork       bool   `json:"fork,omitempty"`        // the pull request's head is in another repository
	Commit     string `json:"commit,omitempty"`      // the pull request's head or the status's commit
	Context    string `json:"context,omitempty"`     // Status: its name, as ci/test; empty where several are meant, or it isn't said
	Sender     string `json:"sender,omitempty"`      // login

	Former string `json:"former,omitempty"` // Repository: owner/name before it was renamed or moved to another owner; Repo is the new one

	InstallationID int64  `json:"installation_id,omitempty"` // Installation: the forge's number of it
	Owner          string `json:"owner,omitempty"`           // Installation: the login of whose it is, also a new name

	// Images are the repositories of an ImagePush: of a forge's packages with the registry's name, of a registry without.
	Images []string `json:"images,omitempty"`
}

// maxField bounds every string of an event, in bytes. Forges stop far below:
// a branch name at 255, owner and name at 140 together.
const maxField = 1024

// checkFields refuses values that no forge sends, before they become keys, rows or
// arguments somewhere: overlong ones, control characters (PostgreSQL can't
// store NUL) and commits that aren't hexadecimal.
func (e *Event) checkFields() error {
	if e.Number < 0 {
		return errors.New("the pull request's number is negative")
	}
	if e.RepoID < 0 {
		return errors.New("the repository's number is negative")
	}
	return cmp.Or(
		checkText("action", e.Action), checkText("repository name", e.Repo), checkText("former repository name", e.Former),
		checkText("branch", e.Branch),
		checkText("head branch", e.HeadBranch), checkText("sender", e.Sender), checkText("owner", e.Owner),
		checkCommit("commit before", e.Before), checkCommit("commit after", e.After), checkCommit("commit", e.Commit))
}

// setContext fills in a status's name. One that no forge takes is nobody's, and no reason to
// refuse what is said of the commit.
func (e *Event) setContext(name string) {
	if checkText("context", name) == nil {
		e.Context = name
	}
}

func checkText(name, value string) error {
	if len(value) > maxField {
		return fmt.Errorf("the %s is longer than %d bytes", name, maxField)
	}
	if !utf8.ValidString(value) || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return fmt.Errorf("the %s holds control characters", name)
	}
	return nil
}

var commitPattern = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})?$`)

// checkCommit accepts SHA-1 and SHA-256 object names, and nothing.
func checkCommit(name, value string) error {
	if !commitPattern.MatchString(value) {
		return fmt.Errorf("the %s is not a commit id", name)
	}
	return nil
}
